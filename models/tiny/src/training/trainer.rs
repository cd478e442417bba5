//! The training loop.

use std::path::PathBuf;
use std::time::Instant;

use burn::grad_clipping::GradientClippingConfig;
use burn::module::Module;
use burn::optim::{AdamWConfig, GradientsParams, ModuleOptimizer};
use burn::tensor::activation::log_softmax;
use burn::tensor::{Device, FloatDType, Tensor};
use burn_dfa_decoder::{Decoder, DecoderConfig};
use indicatif::{ProgressBar, ProgressStyle};
use tokenizers::Tokenizer;

use super::{Batch, Batches, Checkpoint, Error, Lesson, Progress, Schedule};
use crate::generator::{Generator, Kind, Split};

/// Rows of a batch when no gradient is needed.
const EVALUATION_ROWS: usize = 64;

/// Held-out records, and held-out tool calls, for the checks of a run.
const CHECKED: u64 = 256;

/// The weight of the first token of an answer, relative to 1: it alone decides whether a tool is
/// called.
const FIRST_TOKEN: f32 = 8.0;

/// The names in a check of examples with a call, examples without a call, and answers from tool
/// results.
const CALL: &str = "call";
const NO_CALL: &str = "no call";
const ANSWER: &str = "answer";

/// The options of a run.
#[derive(Debug, Clone)]
pub struct TrainOptions {
    /// The architecture.
    pub config: DecoderConfig,
    /// Learning rates and number of steps.
    pub schedule: Schedule,
    /// Examples in a batch.
    pub batch: usize,
    /// Seed of the initial weights and of the text.
    pub seed: u64,
    /// Number of tool calls per 100 examples.
    pub calls: usize,
    /// A folder whose model the run starts from, instead of random weights.
    pub from: Option<PathBuf>,
    /// The folder of checkpoints.
    pub checkpoint: PathBuf,
    /// Steps between checkpoints.
    pub save_every: usize,
    /// Steps between checks on held-out examples.
    pub check_every: usize,
    /// Continue from the checkpoint instead of starting over.
    pub resume: bool,
}

/// Trains until the last step of the schedule; returns the model without its gradients.
pub fn train(options: &TrainOptions, tokenizer: &Tokenizer) -> Result<(Decoder, Progress), Error> {
    let device = Device::flex().autodiff();
    device.seed(options.seed);
    let checkpoint = Checkpoint::new(&options.checkpoint);
    let mut model = match &options.from {
        Some(folder) => Decoder::load(folder, FloatDType::F32, &device)?,
        None => options.config.init(&device),
    };
    let mut optimizer = optimizer();
    let mut progress = Progress::default();
    if options.resume {
        model = checkpoint.load_model(model)?;
        optimizer = checkpoint.load_optimizer(optimizer)?;
        progress = checkpoint.progress()?.unwrap_or_default();
    } else if checkpoint.progress()?.is_some() {
        return Err("the folder holds a checkpoint: resume it or name another".into());
    }

    let held_out = HeldOut::new(options.seed, options.calls > 0);
    let mut batches = Batches::new(tokenizer, options.seed, options.batch, options.calls);
    let bar = progress_bar(options.schedule.steps, progress.step);
    report(&bar, &format!("{} parameters, from step {}", model.num_params(), progress.step));
    let earlier = progress.seconds;
    let (start, first_tokens) = (Instant::now(), progress.tokens);

    while progress.step < options.schedule.steps {
        let batch = batches.get(progress.step)?;
        let loss = loss(&model, batch, &device);
        let gradients = GradientsParams::from_grads(loss.backward(), &model);
        let value: f32 = loss.into_scalar();
        if !value.is_finite() {
            return Err(format!("the loss is {value} at step {}", progress.step).into());
        }
        model = optimizer.step(options.schedule.rate(progress.step), model, gradients);

        progress.loss = smooth(progress.loss, f64::from(value), progress.step);
        progress.step += 1;
        progress.tokens += batch.tokens;
        progress.seconds = earlier + start.elapsed().as_secs_f64();
        let rate = (progress.tokens - first_tokens) as f64 / start.elapsed().as_secs_f64();
        bar.set_position(progress.step as u64);
        bar.set_message(format!("loss {:.4}, {rate:.0} tokens/s", progress.loss));

        let done = progress.step == options.schedule.steps;
        if done || progress.step.is_multiple_of(options.check_every) {
            let line = format!(
                "step {}: loss {:.4}, held out exact {}, {} tokens in {:.0} s ({rate:.0}/s)",
                progress.step,
                progress.loss,
                held_out.check(&model.valid(), tokenizer)?,
                progress.tokens,
                progress.seconds,
            );
            report(&bar, &line);
        }
        if done || progress.step.is_multiple_of(options.save_every) {
            checkpoint.save(&model, &optimizer, &progress)?;
        }
    }
    bar.finish();
    Ok((model.valid(), progress))
}

/// For each example, whether every token of the answer and its end is the most likely one after the
/// tokens before it. Greedy decoding answers exactly these examples right.
pub fn teacher_forced(
    model: &Decoder,
    tokenizer: &Tokenizer,
    lessons: &[Lesson],
) -> Result<Vec<bool>, Error> {
    let device = Device::flex();
    let mut right = Vec::with_capacity(lessons.len());
    for rows in lessons.chunks(EVALUATION_ROWS) {
        let batch = Batch::new(tokenizer, rows)?;
        let choices = target_logits(model, &batch, &device)
            .argmax(1)
            .squeeze_dim::<1>(1)
            .equal(batch.targets(&device))
            .into_data();
        let mut exact = vec![true; rows.len()];
        for (agrees, row) in choices.iter::<bool>().zip(&batch.rows) {
            exact[*row] &= agrees;
        }
        right.extend(exact);
    }
    Ok(right)
}

/// Examples for the checks of a run, each with its kind.
struct HeldOut {
    lessons: Vec<Lesson>,
    kinds: Vec<&'static str>,
}

impl HeldOut {
    /// The first [`CHECKED`] records, and as many tool calls if the run has any.
    fn new(seed: u64, calls: bool) -> Self {
        let generator = Generator::new(seed);
        let (mut lessons, mut kinds) = (Vec::new(), Vec::new());
        for index in 0..CHECKED {
            let example = generator.example(Split::HeldOut, index);
            lessons.push(Lesson::from(&example));
            kinds.push(example.kind.name());
        }
        for index in (0..CHECKED).filter(|_| calls) {
            let example = generator.call_example(Split::HeldOut, index);
            lessons.push(Lesson::from(&example));
            kinds.push(if example.call.is_some() { CALL } else { NO_CALL });
            lessons.push(Lesson::from(&generator.answer_example(Split::HeldOut, index)));
            kinds.push(ANSWER);
        }
        Self { lessons, kinds }
    }

    /// The share of right answers, of all records and by kind.
    fn check(&self, model: &Decoder, tokenizer: &Tokenizer) -> Result<String, Error> {
        let right = teacher_forced(model, tokenizer, &self.lessons)?;
        let share = |counts: &dyn Fn(&str) -> bool| {
            let of_kind = self.kinds.iter().zip(&right).filter(|(kind, _)| counts(kind));
            let (all, good) =
                of_kind.fold((0_u32, 0_u32), |(all, good), (_, right)| (all + 1, good + u32::from(*right)));
            (all > 0).then(|| format!("{:.1} %", 100.0 * f64::from(good) / f64::from(all)))
        };
        let records = share(&|kind| ![CALL, NO_CALL, ANSWER].contains(&kind)).unwrap_or_default();
        let kinds: Vec<String> = Kind::ALL
            .map(Kind::name)
            .into_iter()
            .chain([CALL, NO_CALL, ANSWER])
            .filter_map(|name| Some(format!("{name} {}", share(&|kind| kind == name)?)))
            .collect();
        Ok(format!("{records} ({})", kinds.join(", ")))
    }
}

fn optimizer() -> ModuleOptimizer {
    AdamWConfig::new()
        .with_beta_1(0.9)
        .with_beta_2(0.98)
        .with_epsilon(1e-8)
        .with_weight_decay(0.01)
        .with_grad_clipping(Some(GradientClippingConfig::Norm(1.0)))
        .init()
}

/// Mean cross entropy of the tokens of the answers, by their weights.
fn loss(model: &Decoder, batch: &Batch, device: &Device) -> Tensor<1> {
    let logits = target_logits(model, batch, device);
    let targets = batch.targets(device).unsqueeze_dim::<2>(1);
    let weights = batch.weights(FIRST_TOKEN, device);
    let entropy = log_softmax(logits, 1).gather(1, targets).neg().squeeze_dim::<1>(1);
    (entropy * weights.clone()).sum() / weights.sum()
}

/// Logits at the positions with targets, `[targets, vocabulary]`.
fn target_logits(model: &Decoder, batch: &Batch, device: &Device) -> Tensor<2> {
    model.forward_at(batch.inputs(device), batch.positions(device))
}

/// A moving average that starts at the plain mean.
fn smooth(mean: f64, value: f64, seen: usize) -> f64 {
    let weight = (1.0 / (seen + 1) as f64).max(0.02);
    mean + weight * (value - mean)
}

/// Prints a line above the bar, or plainly without a terminal.
fn report(bar: &ProgressBar, line: &str) {
    if bar.is_hidden() {
        println!("{line}");
    } else {
        bar.println(line);
    }
}

fn progress_bar(steps: usize, position: usize) -> ProgressBar {
    let style =
        ProgressStyle::with_template("{elapsed_precise} {wide_bar} {pos}/{len} {msg}, {eta_precise} left")
            .expect("the template is well formed");
    let bar = ProgressBar::new(steps as u64).with_style(style).with_position(position as u64);
    bar.reset_eta();
    bar
}
