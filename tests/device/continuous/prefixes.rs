//! Prompts that share a prefix with the text of a row: a row writes the output of its request
//! alone, and only the rest of its prompt is read.

use burn_dfa::ErrorKind;
use std::cell::{Cell, RefCell};

use burn::tensor::{DType, Device, Tensor};
use burn_dfa::generation::{
    ContinuousBatch, ContinuousLm, GenerationConfig, Output, Request, SamplingFeatures, SamplingOptions,
    generate,
};
use burn_dfa::{Capacity, CompiledConstraint, Constraint, Limits, TensorOptions, TokenId, Vocabulary};
use rand::{Rng, SeedableRng, rngs::StdRng};

use crate::common::altered::{Altered, Call, WholePrompts};
use crate::common::{devices, embedded::Embedded, model::RandomLm};
use burn_dfa_testing::words::{EOS, vocabulary};

/// The minimum number of copied tokens.
const LEAST: usize = 16;

fn config(states: usize) -> GenerationConfig {
    let capacity = Capacity { constraints: 4, states, classes: 300, ..Capacity::new() };
    let tensors = TensorOptions { capacity, ..TensorOptions::default() };
    let config = GenerationConfig::new().with_tensors(tensors).with_sync_interval(4);
    config.with_row_features(SamplingFeatures::ALL).with_prefix_cache(true)
}

fn alone<M: ContinuousLm>(model: &M, vocabulary: &Vocabulary, request: &Request) -> Output {
    generate(model, vocabulary, std::slice::from_ref(request), &GenerationConfig::new()).unwrap().remove(0)
}

fn tokens(rng: &mut StdRng, count: usize) -> Vec<TokenId> {
    (0..count).map(|_| TokenId(rng.random_range(0..256))).collect()
}

/// Serves the requests one after the other in idle rows, each in the best row or in any; returns
/// the outputs, and the number of copied tokens.
fn serve<M: ContinuousLm>(
    batch: &mut ContinuousBatch<M>,
    requests: &[Request],
    seed: u64,
) -> (Vec<Output>, usize) {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut outputs: Vec<Option<Output>> = vec![None; requests.len()];
    let (mut waiting, mut in_row) = ((0..requests.len()).rev().collect::<Vec<_>>(), vec![0; batch.rows()]);
    let mut copied = 0;
    while outputs.iter().any(Option::is_none) {
        while rng.random_bool(0.8)
            && let Some(&index) = waiting.last()
        {
            let best = batch.idle_for(&requests[index]);
            let row = if rng.random() { best } else { batch.idle().last() };
            let Some(row) = row else { break };
            match batch.admit(row, &requests[index]) {
                Ok(()) => in_row[row] = index,
                Err(error) if error.kind() == ErrorKind::Full => break,
                Err(error) => panic!("{error}"),
            }
            waiting.pop();
        }
        batch.step(rng.random_range(0..9), |_| ()).unwrap();
        for row in batch.finished().collect::<Vec<_>>() {
            let (index, cached) = (in_row[row], batch.cached_tokens(row).unwrap());
            assert!(cached == 0 || (LEAST..requests[index].prompt.len()).contains(&cached), "{cached}");
            copied += cached;
            outputs[index] = Some(batch.release(row).unwrap());
        }
    }
    (outputs.into_iter().flatten().collect(), copied)
}

/// Conversations: each continues the output of the previous one, or diverges from it.
fn conversations<M: ContinuousLm>(
    model: &M,
    vocabulary: &Vocabulary,
    constraints: &[CompiledConstraint],
    count: usize,
) -> (Vec<Request>, Vec<Output>) {
    let mut rng = StdRng::seed_from_u64(1);
    let warm = SamplingOptions::new().with_temperature(0.9);
    let options = [warm.clone(), SamplingOptions::new(), warm.with_top_p(0.8).with_repetition_penalty(1.4)];
    let (mut requests, mut outputs): (Vec<Request>, Vec<Output>) = (Vec::new(), Vec::new());
    for index in 0..count {
        let mut prompt = match requests.len() {
            0 => tokens(&mut rng, 40),
            earlier => {
                let earlier = rng.random_range(0..earlier);
                let answer = outputs[earlier].tokens.iter().copied().filter(|&token| token != EOS);
                requests[earlier].prompt.iter().copied().chain(answer).collect()
            }
        };
        match rng.random_range(0..4) {
            0 => prompt.truncate(rng.random_range(1..=prompt.len())),
            1 => prompt = tokens(&mut rng, 20),
            _ => {}
        }
        let own = rng.random_range(0..12);
        prompt.extend(tokens(&mut rng, own));
        prompt.truncate(90);
        let request = Request::new(prompt, rng.random_range(12..30)).with_seed(index as u64);
        let request = Request { constraint: constraints.get(index % 5).cloned(), ..request };
        let request = request.with_sampling(options[index % 3].clone());
        outputs.push(alone(model, vocabulary, &request));
        requests.push(request);
    }
    (requests, outputs)
}

#[test]
fn outputs_do_not_depend_on_copied_prefixes() {
    let vocabulary = vocabulary();
    let constraints = ["[0-9]{4}-[0-9]{2}", "(true|false|été)", "[a-c]{1,9}"].map(|pattern| {
        CompiledConstraint::compile(&Constraint::regex(pattern).unwrap(), &vocabulary, &Limits::default())
            .unwrap()
    });
    let flex = RandomLm::new(vocabulary.len() + 5, 9, DType::F32, &Device::flex());
    let (requests, expected) = conversations(&flex, &vocabulary, &constraints, 60);
    for (name, device) in devices::all() {
        let model = RandomLm::new(vocabulary.len() + 5, 9, DType::F32, &device);
        // A software Vulkan is slow.
        let (chunks, count) = if name == "flex" {
            (&[None, Some(1), Some(7), Some(64)][..], requests.len())
        } else {
            (&[None, Some(7)][..], 20)
        };
        for &chunk in chunks {
            for make in [ContinuousBatch::new, ContinuousBatch::record] {
                let config = config(600).with_prompt_chunk(chunk);
                let mut batch = make(&model, &vocabulary, 4, 120, &config).unwrap();
                let (outputs, copied) = serve(&mut batch, &requests[..count], 2);
                for (index, (output, expected)) in outputs.iter().zip(&expected).enumerate() {
                    assert_eq!(output, expected, "{name}, {chunk:?}, request {index}");
                }
                assert!(copied > 5 * count, "{name}, {chunk:?}: {copied} tokens were copied");
            }
        }
    }
}

#[test]
fn the_embedded_model_continues_copied_prefixes() {
    for (name, device) in devices::all() {
        let embedded = Embedded::load(&device);
        let (model, vocabulary) = (embedded.model(), &embedded.vocabulary);
        let constraints = [embedded.schema("person"), embedded.regex("[0-9]{3}-[0-9]{4}")];
        // The same two examples before every prompt.
        let beginning = [embedded.prompt(40), embedded.prompt(41)].concat();
        let (chunks, count) = if name == "flex" { (&[None, Some(9)][..], 12) } else { (&[Some(9)][..], 4) };
        let rows: Vec<_> = (0..count).map(|index| constraints.get(index % 3)).collect();
        let mut requests = embedded.requests(&rows, 60, 0);
        for request in &mut requests {
            request.prompt.splice(0..0, beginning.iter().copied());
        }
        let expected: Vec<Output> =
            requests.iter().map(|request| alone(model, vocabulary, request)).collect();
        for &chunk in chunks {
            for make in [ContinuousBatch::new, ContinuousBatch::record] {
                let config = config(6000).with_prompt_chunk(chunk);
                let mut batch = make(model, vocabulary, 3, 256, &config).unwrap();
                let (outputs, copied) = serve(&mut batch, &requests, 5);
                for (index, (output, expected)) in outputs.iter().zip(&expected).enumerate() {
                    assert_eq!(output.text(), expected.text(), "{name}, {chunk:?}, request {index}");
                }
                // All prompts but the first copy the examples.
                let least = (requests.len() - 1) * beginning.len();
                assert!(copied >= least, "{name}, {chunk:?}: {copied} of {least}");
            }
        }
    }
}

/// A model that records how many prompt tokens it reads at a time.
fn counted<'a>(
    vocabulary: &Vocabulary,
    read: &'a RefCell<Vec<usize>>,
) -> Altered<impl Fn(Call, Tensor<2>) -> Tensor<2> + 'a> {
    let random = RandomLm::new(vocabulary.len(), 9, DType::F32, &Device::flex());
    Altered::new(random, |call, logits| {
        if let Call::Begin(tokens) | Call::Extend(tokens) = call {
            read.borrow_mut().push(tokens.dims()[1]);
        }
        logits
    })
}

#[test]
fn only_the_rest_of_a_prompt_is_read() {
    let vocabulary = vocabulary();
    let read = RefCell::new(Vec::new());
    let model = counted(&vocabulary, &read);
    let mut rng = StdRng::seed_from_u64(3);
    let first = tokens(&mut rng, 30);
    for (shared, copied) in
        [(0, 0), (1, 0), (LEAST - 1, 0), (LEAST, LEAST), (20, 20), (29, 29), (30, 30), (31, 29)]
    {
        // Shares the whole first prompt; a prompt that ends there still reads its last token.
        let mut prompt = first[..shared.min(30)].to_vec();
        if shared < 31 {
            // A token different from the first prompt's.
            let next = first.get(shared).map_or(TokenId(1), |token| TokenId(token.0 ^ 1));
            prompt.push(next);
        }
        for row in [0, 1] {
            for chunk in [None, Some(100)] {
                let config = config(600).with_prompt_chunk(chunk);
                let mut batch = ContinuousBatch::new(&model, &vocabulary, 2, 64, &config).unwrap();
                batch.admit(0, &Request::new(first.clone(), 1)).unwrap();
                assert_eq!(batch.cached_tokens(0), chunk.is_none().then_some(0));
                batch.step(3, |_| ()).unwrap();
                assert_eq!((batch.cached_tokens(0), batch.cached_tokens(1)), (Some(0), None));
                batch.release(0).unwrap();
                assert_eq!(read.take(), [30]);
                let request = Request::new(prompt.clone(), 20).with_seed(4);
                batch.admit(row, &request).unwrap();
                batch.step(30, |_| ()).unwrap();
                assert_eq!(read.take(), [prompt.len() - copied], "{shared} shared, row {row}");
                assert_eq!(batch.cached_tokens(row), Some(copied));
                assert_eq!(batch.release(row).unwrap(), alone(&model, &vocabulary, &request));
            }
        }
    }
}

#[test]
fn running_rows_and_outputs_are_reusable_prefixes() {
    let vocabulary = vocabulary();
    let read = RefCell::new(Vec::new());
    let model = counted(&vocabulary, &read);
    let mut rng = StdRng::seed_from_u64(3);
    let first = Request::new(tokens(&mut rng, 18), 30);
    let answer = alone(&model, &vocabulary, &first).tokens;
    let mut batch = ContinuousBatch::new(&model, &vocabulary, 3, 96, &config(600)).unwrap();
    batch.admit(0, &first).unwrap();
    batch.step(8, |_| ()).unwrap();
    // Its first token and eight more; the model has not read the last one yet.
    let text = [&first.prompt[..], &answer].concat();
    let mut next = |known: usize, own: usize| {
        Request::new([&text[..known], &tokens(&mut rng, own)].concat(), 12).with_seed(own as u64)
    };
    read.take();
    for (request, copied) in [(next(18 + 9, 3), 18 + 8), (next(18 + 9, 3), 18 + 9)] {
        batch.admit(1, &request).unwrap();
        assert_eq!(read.take(), [request.prompt.len() - copied]);
        batch.step(12, |_| ()).unwrap();
        assert_eq!(batch.release(1).unwrap(), alone(&model, &vocabulary, &request));
    }
    batch.step(30, |_| ()).unwrap();
    assert_eq!(batch.release(0).unwrap().tokens, answer);
    // Idle steps write after it.
    batch.admit(1, &Request::new(vec![TokenId(65)], 60)).unwrap();
    batch.step(60, |_| ()).unwrap();
    batch.release(1).unwrap();
    read.take();
    let turn = next(text.len(), 6);
    // In this row it begins without a copy, and no prefix of others is lost.
    assert_eq!(batch.idle_for(&turn), Some(0));
    batch.admit(0, &turn).unwrap();
    assert_eq!(read.take(), [7]);
    batch.step(12, |_| ()).unwrap();
    assert_eq!(batch.release(0).unwrap(), alone(&model, &vocabulary, &turn));
    // Another text replaces the first one.
    let other = next(0, 40);
    batch.admit(0, &other).unwrap();
    read.take();
    let again = next(text.len(), 6);
    batch.admit(1, &again).unwrap();
    assert_eq!(read.take(), [again.prompt.len()]);
    batch.step(12, |_| ()).unwrap();
    for (row, request) in [(0, other), (1, again)] {
        assert_eq!(batch.release(row).unwrap(), alone(&model, &vocabulary, &request));
    }
}

#[test]
fn a_shared_prefix_of_simultaneous_prompts_is_read_once() {
    let vocabulary = vocabulary();
    for chunk in [None, Some(8)] {
        let read = RefCell::new(Vec::new());
        let model = counted(&vocabulary, &read);
        let mut rng = StdRng::seed_from_u64(3);
        let beginning = tokens(&mut rng, 40);
        let requests: Vec<Request> =
            (0..4).map(|_| Request::new([&beginning[..], &tokens(&mut rng, 5)].concat(), 9)).collect();
        let config = config(600).with_prompt_chunk(chunk);
        let mut batch = ContinuousBatch::new(&model, &vocabulary, 4, 64, &config).unwrap();
        batch
            .admit_all(&requests.iter().enumerate().collect::<Vec<_>>())
            .into_iter()
            .for_each(|seated| seated.unwrap());
        batch.step(30, |_| ()).unwrap();
        assert_eq!(read.take().iter().sum::<usize>(), 40 + 4 * 5, "{chunk:?}");
        for (row, request) in requests.iter().enumerate() {
            assert_eq!(batch.release(row).unwrap(), alone(&model, &vocabulary, request), "{chunk:?}");
        }
    }
}

#[test]
fn a_partially_read_prompt_is_a_reusable_prefix() {
    let vocabulary = vocabulary();
    let read = RefCell::new(Vec::new());
    let model = counted(&vocabulary, &read);
    let mut rng = StdRng::seed_from_u64(3);
    let prompt = tokens(&mut rng, 50);
    let mut batch =
        ContinuousBatch::new(&model, &vocabulary, 2, 64, &config(600).with_prompt_chunk(10)).unwrap();
    batch.admit(0, &Request::new(tokens(&mut rng, 2), 60)).unwrap();
    batch.step(1, |_| ()).unwrap();
    batch.admit(1, &Request::new(prompt.clone(), 9)).unwrap();
    batch.step(3, |_| ()).unwrap();
    assert_eq!(batch.cached_tokens(1), Some(0));
    batch.release(1).unwrap();
    batch.step(5, |_| ()).unwrap();
    read.take();
    let request = Request::new(prompt, 9);
    batch.admit(1, &request).unwrap();
    assert_eq!(batch.cached_tokens(1), None);
    batch.step(20, |_| ()).unwrap();
    assert_eq!((read.take(), batch.cached_tokens(1)), (vec![10, 10], Some(30)));
    assert_eq!(batch.release(1).unwrap(), alone(&model, &vocabulary, &request));
}

#[test]
fn nothing_is_copied_from_a_row_that_failed() {
    let vocabulary = vocabulary();
    let (read, fails) = (Cell::new(0), Cell::new(true));
    let random = RandomLm::new(vocabulary.len(), 9, DType::F32, &Device::flex());
    let model = Altered::new(random, |call, logits| {
        if let Call::Begin(tokens) | Call::Extend(tokens) = &call {
            read.set(tokens.dims()[1]);
        }
        match call {
            Call::StepRows if fails.get() => logits.full_like(f32::NEG_INFINITY),
            _ => logits,
        }
    });
    let constraint =
        CompiledConstraint::compile(&Constraint::regex("[a-f]{5}").unwrap(), &vocabulary, &Limits::default());
    let constraint = constraint.unwrap();
    let prompt = tokens(&mut StdRng::seed_from_u64(3), 30);
    let request = Request::new(prompt, 8).with_constraint(&constraint);
    let mut batch = ContinuousBatch::new(&model, &vocabulary, 2, 64, &config(600)).unwrap();
    for fail in [true, false] {
        fails.set(fail);
        batch.admit(0, &request).unwrap();
        batch.step(8, |_| ()).unwrap();
        assert_eq!((read.get(), batch.release(0).is_err()), (30, fail));
    }
    batch.admit(1, &request).unwrap();
    assert_eq!(read.get(), 1);
}

#[test]
fn salts_share_nothing() {
    let vocabulary = vocabulary();
    let model = RandomLm::new(vocabulary.len(), 9, DType::F32, &Device::flex());
    let mut batch = ContinuousBatch::new(&model, &vocabulary, 4, 64, &config(600)).unwrap();
    let request = Request::new(tokens(&mut StdRng::seed_from_u64(3), 40), 2);
    let salted = |salt: &str| request.clone().with_cache_salt(salt);
    let each = [
        (request.clone(), 0),
        (salted("one"), 0),
        (salted("other"), 0),
        (salted("one"), 39),
        (request.clone(), 39),
    ];
    for (request, copied) in each {
        let row = batch.idle_for(&request).unwrap();
        batch.admit(row, &request).unwrap();
        assert_eq!(batch.cached_tokens(row), Some(copied), "{:?}", request.cache_salt);
        batch.step(2, |_| ()).unwrap();
        batch.release(row).unwrap();
    }
}

#[test]
fn the_least_recently_used_row_is_chosen() {
    let vocabulary = vocabulary();
    let model = RandomLm::new(vocabulary.len(), 9, DType::F32, &Device::flex());
    let mut rng = StdRng::seed_from_u64(3);
    let prompts: Vec<_> = (0..4).map(|_| tokens(&mut rng, 20)).collect();
    let mut run = |batch: &mut ContinuousBatch<RandomLm>, prompt: &[TokenId]| {
        let request = Request::new([prompt, &tokens(&mut rng, 2)].concat(), 2);
        let row = batch.idle_for(&request).unwrap();
        batch.admit(row, &request).unwrap();
        let copied = batch.cached_tokens(row).unwrap();
        batch.step(2, |_| ()).unwrap();
        batch.release(row).unwrap();
        (row, copied)
    };
    let mut batch = ContinuousBatch::new(&model, &vocabulary, 3, 64, &config(600)).unwrap();
    assert_eq!(
        prompts[..3].iter().map(|prompt| run(&mut batch, prompt)).collect::<Vec<_>>(),
        [(0, 0), (1, 0), (2, 0)]
    );
    // A copy counts as a use of its source row, so the last row is chosen next.
    assert_eq!(run(&mut batch, &prompts[1]), (0, 20));
    assert_eq!(run(&mut batch, &prompts[3]), (2, 0));
    assert_eq!(run(&mut batch, &prompts[0]), (1, 0));
    // Without a prefix cache the first row is chosen.
    let mut batch =
        ContinuousBatch::new(&model, &vocabulary, 3, 64, &config(600).with_prefix_cache(false)).unwrap();
    assert_eq!([0, 0, 1].map(|index: usize| run(&mut batch, &prompts[index])), [(0, 0); 3]);
}

#[test]
fn a_model_that_copies_nothing_is_refused() {
    let vocabulary = vocabulary();
    let random = RandomLm::new(vocabulary.len(), 9, DType::F32, &Device::flex());
    let model = Altered::with_change(random, WholePrompts);
    let error = ContinuousBatch::new(&model, &vocabulary, 2, 64, &config(600)).unwrap_err();
    assert!(
        error.kind() == ErrorKind::Input && error.to_string().contains("ContinuousLm::copy_prefix"),
        "{error}"
    );
    ContinuousBatch::new(&model, &vocabulary, 2, 64, &config(600).with_prefix_cache(false)).unwrap();
}
