//! The trainer: batches, the schedule, and the same result of an interrupted and an uninterrupted
//! run.
#![cfg(feature = "train")]

use std::path::Path;

use burn::tensor::FloatDType;
use burn_dfa_decoder::DecoderConfig;
use burn_dfa_tiny::{
    TOKENIZER,
    generator::{Generator, Split},
    training::{Batch, Batches, Checkpoint, END, Lesson, Schedule, TrainOptions, train},
};
use tokenizers::Tokenizer;

fn tokenizer() -> Tokenizer {
    Tokenizer::from_bytes(TOKENIZER).expect("the embedded tokenizer is well formed")
}

#[test]
fn the_targets_of_a_batch_are_the_answer_and_its_end() {
    let tokenizer = tokenizer();
    let generator = Generator::new(1);
    let mut lessons: Vec<_> =
        (0..5).map(|index| Lesson::from(&generator.example(Split::Train, index))).collect();
    lessons.extend((0..5).map(|index| Lesson::from(&generator.call_example(Split::Train, index))));
    let batch = Batch::new(&tokenizer, &lessons).expect("it encodes");
    assert_eq!(batch.inputs.len(), batch.size * batch.length);
    for (row, lesson) in lessons.iter().enumerate() {
        let at: Vec<usize> = (0..batch.rows.len()).filter(|at| batch.rows[*at] == row).collect();
        let targets: Vec<u32> = at.iter().map(|at| batch.targets[*at] as u32).collect();
        let text = tokenizer.decode(&targets, false).expect("it decodes");
        assert_eq!(text, format!("{}{END}", lesson.answer));

        let first = batch.positions[at[0]] as usize;
        let prompt: Vec<u32> =
            batch.inputs[row * batch.length..=first].iter().map(|token| *token as u32).collect();
        assert_eq!(tokenizer.decode(&prompt, false).expect("it decodes"), lesson.prompt);
    }
}

#[test]
fn a_step_has_the_same_batch_in_any_order_of_asking() {
    let tokenizer = tokenizer();
    let mut forward = Batches::new(&tokenizer, 4, 3, 50);
    let first = forward.get(1).expect("it encodes").inputs.clone();
    let later = forward.get(40).expect("it encodes").inputs.clone();
    let mut backward = Batches::new(&tokenizer, 4, 3, 50);
    assert_eq!(backward.get(40).expect("it encodes").inputs, later);
    assert_eq!(backward.get(1).expect("it encodes").inputs, first);
}

#[test]
fn the_schedule_rises_stays_and_falls() {
    let schedule = Schedule { peak: 1.0, warmup: 10, decay: 20, steps: 100 };
    assert_eq!(schedule.rate(4), 0.5);
    assert_eq!(schedule.rate(9), 1.0);
    assert_eq!(schedule.rate(60), 1.0);
    assert_eq!(schedule.rate(90), 0.5);
    assert!(schedule.rate(99) > 0.0);
}

#[test]
fn a_resumed_run_ends_like_one_that_was_not_cut() {
    let folder = std::env::temp_dir().join(format!("burn-dfa-tiny-{}", std::process::id()));
    let whole = run(&folder.join("whole"), 4, false);
    run(&folder.join("cut"), 2, false);
    let progress = Checkpoint::new(folder.join("cut")).progress().expect("it reads");
    assert_eq!(progress.expect("it was written").step, 2);
    let cut = run(&folder.join("cut"), 4, true);
    std::fs::remove_dir_all(&folder).ok();
    assert!(whole == cut, "the weights differ");
}

/// Trains a very small model; returns its weights.
fn run(checkpoint: &Path, steps: usize, resume: bool) -> Vec<u8> {
    let tokenizer = tokenizer();
    let options = TrainOptions {
        config: DecoderConfig {
            num_key_value_heads: 1,
            max_position_embeddings: 256,
            tie_word_embeddings: true,
            ..DecoderConfig::new(tokenizer.get_vocab_size(true), 16, 32, 1, 2)
        },
        // No decay before the fourth step, so that the rate of the first steps is the same in all
        // runs.
        schedule: Schedule { peak: 1e-2, warmup: 1, decay: 1, steps },
        batch: 2,
        seed: 9,
        calls: 50,
        from: None,
        checkpoint: checkpoint.to_path_buf(),
        save_every: 10,
        check_every: 10,
        resume,
    };
    let (model, progress) = train(&options, &tokenizer).expect("it trains");
    assert_eq!(progress.step, steps);
    model.to_safetensors(FloatDType::F32).expect("it can be read back")
}
