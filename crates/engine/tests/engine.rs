//! The engine with the embedded model: answers that share a batch, its queue and its arena.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use burn_dfa::prelude::Device;
use burn_dfa::{Capacity, CompiledConstraint, Constraint, Limits, TensorOptions};
use burn_dfa_engine::{
    Client, Ending, Engine, EngineConfig, Event, Failure, Generation, GenerationRequest, Metrics, Prompt,
    SubmitError,
};
use tokio::runtime::{Builder, Runtime};

/// An engine of two rows whose arena holds `states` states.
fn start(states: usize, prompt_chunk: Option<usize>, max_queue: usize, metrics: Arc<dyn Metrics>) -> Engine {
    let tiny = burn_dfa_tiny::load(&Device::flex()).expect("it loads");
    let capacity = Capacity::new().with_constraints(2).with_states(states).with_classes(256);
    let config = EngineConfig {
        prompt_chunk,
        prefix_cache: prompt_chunk.is_some(),
        tensors: TensorOptions::new().with_capacity(capacity),
        max_queue,
        ..EngineConfig::new(2, 256)
    };
    Engine::start(tiny.model().clone(), tiny.vocabulary().clone(), config, metrics, None)
        .expect("the sizes fit")
}

/// Prompts whose answers match the patterns.
fn prompts(patterns: &[String]) -> Vec<Prompt> {
    let tiny = burn_dfa_tiny::load(&Device::flex()).expect("it loads");
    let prompt = |(index, pattern): (usize, &String)| {
        let constraint = Constraint::regex(pattern).expect("a pattern");
        let limits = Limits::default();
        let constraint = CompiledConstraint::compile(&constraint, tiny.vocabulary(), &limits);
        Prompt {
            tokens: tiny.prompt(&format!("Please send {index} lamps.")).expect("a prompt"),
            max_new_tokens: 128,
            constraint: Some(constraint.expect("it compiles").into()),
        }
    };
    patterns.iter().enumerate().map(prompt).collect()
}

fn request(prompts: Vec<Prompt>) -> GenerationRequest {
    GenerationRequest { prompts, n: 1, ..GenerationRequest::default() }
}

fn runtime() -> Runtime {
    Builder::new_current_thread().build().expect("a runtime")
}

/// The texts of complete answers.
fn texts(mut generation: Generation, count: usize) -> Result<Vec<String>, Failure> {
    let mut texts = vec![String::new(); count];
    let mut ended = 0;
    runtime().block_on(async {
        while let Some((index, event)) = generation.next().await {
            match event {
                Event::Started => {}
                Event::Chunk { text, .. } => texts[index].push_str(&text),
                Event::Ended { ending, .. } => {
                    assert!(matches!(ending, Ending::Complete | Ending::OutOfTokens), "{ending:?}");
                    ended += 1;
                }
                Event::Failed(failure) => return Err(failure),
            }
        }
        assert_eq!(ended, count);
        Ok(texts)
    })
}

/// Each constraint needs more than half of the arena, and some need little of it.
#[test]
fn answers_wait_for_arena_space_and_do_not_depend_on_others() {
    let patterns: Vec<String> =
        (0..10).map(|index| format!("[a-d]{{{}}}", if index % 3 == 0 { 60 } else { 5 + index })).collect();
    let prompts = prompts(&patterns);
    let mut found = Vec::new();
    for prompt_chunk in [None, Some(16)] {
        let engine = start(96, prompt_chunk, 100, Arc::new(()));
        let together = engine.submit(request(prompts.clone())).expect("the queue has space");
        let together = texts(together, prompts.len()).expect("all end");
        for (prompt, text) in prompts.iter().zip(&together) {
            let alone = engine.submit(request(vec![prompt.clone()])).expect("the queue has space");
            assert_eq!(texts(alone, 1).expect("it ends")[0], *text);
        }
        found.push(together);
    }
    assert_eq!(found[0], found[1]);
    assert_eq!(found[0][0].len(), 60);
}

#[test]
fn a_constraint_that_cannot_fit_is_refused() {
    let engine = start(32, None, 100, Arc::new(()));
    let patterns = ["[a-d]{60}".to_owned()];
    let generation = engine.submit(request(prompts(&patterns))).expect("the queue has space");
    assert!(matches!(texts(generation, 1), Err(Failure::Library(_))));
}

/// Counts the ends of answers.
#[derive(Default)]
struct Counts {
    complete: AtomicUsize,
    canceled: AtomicUsize,
}

impl Metrics for Counts {
    fn ended(&self, ending: Option<Ending>, _elapsed: Duration) {
        let count = match ending {
            Some(Ending::Complete | Ending::OutOfTokens) => &self.complete,
            Some(Ending::Canceled) => &self.canceled,
            other => panic!("{other:?}"),
        };
        count.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn dropping_a_generation_cancels_its_answers() {
    let counts = Arc::new(Counts::default());
    let engine = start(256, None, 100, counts.clone());
    let prompts = prompts(&["[a-d]{100}".to_owned(), "[a-d]{3}".to_owned()]);
    let mut long = engine.submit(request(vec![prompts[0].clone(); 50])).expect("the queue has space");
    runtime().block_on(long.next());
    drop(long);
    let short = engine.submit(request(vec![prompts[1].clone()])).expect("the queue has space");
    texts(short, 1).expect("it ends");
    assert_eq!(counts.complete.load(Ordering::Relaxed), 1);
    // The others had no row.
    assert!((1..=2).contains(&counts.canceled.load(Ordering::Relaxed)));
}

#[test]
fn a_full_queue_and_an_ended_engine_refuse_requests() {
    let engine = start(256, None, 2, Arc::new(()));
    let prompts = prompts(&["[a-d]{3}".to_owned()]);
    let three = request(vec![prompts[0].clone(); 3]);
    let refused = engine.submit(three).expect_err("it exceeds the queue");
    assert_eq!(refused, SubmitError::Full { waiting: 0, max_queue: 2 });
    let two = GenerationRequest { n: 2, client: Client::new([1; 32]), ..request(prompts.clone()) };
    assert_eq!(texts(engine.submit(two).expect("the queue has space"), 2).expect("both end").len(), 2);
    engine.shut_down(Duration::from_secs(60));
    assert!(!engine.is_alive());
    assert_eq!(engine.submit(request(prompts)).expect_err("it has ended"), SubmitError::Shutdown);
}
