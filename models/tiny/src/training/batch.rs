//! Batches of examples with prompts of similar length.
//!
//! Step `n` always gets the same batch: examples are taken in chunks of [`CHUNK`] batches, sorted
//! by the length of the prompt within the chunk, and cut; then the batches of the chunk are
//! shuffled. No example is used twice.

use burn::tensor::{Device, Int, Tensor, TensorData};
use tokenizers::Tokenizer;

use super::{END, Error, Lesson};
use crate::generator::{Generator, Kind, Random, Split};

/// Batches that are sorted together.
const CHUNK: usize = 16;

/// Number of lessons per 100 tool calls that teach the answer from a tool result.
const ANSWERS: usize = 20;

/// Share of each kind per 100 records: lists and rows of digits take the longest to learn.
const MIX: [(Kind, usize); 4] = [(Kind::Person, 20), (Kind::Order, 15), (Kind::Event, 35), (Kind::Team, 30)];

/// An example as tokens.
#[derive(Debug, Clone)]
struct Encoded {
    /// Prompt, answer, end.
    tokens: Vec<u32>,
    /// Number of prompt tokens.
    prompt: usize,
}

/// Token ids of several examples, padded on the right.
///
/// Inputs and targets are shifted by one position against each other.
#[derive(Debug, Clone)]
pub struct Batch {
    /// Rows.
    pub size: usize,
    /// Columns.
    pub length: usize,
    /// Input tokens, row by row.
    pub inputs: Vec<i32>,
    /// Flat positions (`row * length + column`) whose target belongs to an answer or ends it.
    pub positions: Vec<i32>,
    /// The targets at these positions.
    pub targets: Vec<i32>,
    /// The row of each of these positions.
    pub rows: Vec<usize>,
    /// Input tokens without the padding.
    pub tokens: u64,
}

impl Batch {
    /// Encodes examples, in the order given.
    pub fn new(tokenizer: &Tokenizer, lessons: &[Lesson]) -> Result<Self, Error> {
        let encoded: Result<Vec<_>, _> =
            lessons.iter().map(|lesson| Encoded::new(tokenizer, lesson)).collect();
        Ok(Self::pad(&encoded?))
    }

    fn pad(examples: &[Encoded]) -> Self {
        let length = examples.iter().map(|example| example.tokens.len() - 1).max().unwrap_or(0);
        let mut batch = Self {
            size: examples.len(),
            length,
            inputs: Vec::with_capacity(examples.len() * length),
            positions: Vec::new(),
            targets: Vec::new(),
            rows: Vec::new(),
            tokens: 0,
        };
        for (row, example) in examples.iter().enumerate() {
            let last = example.tokens.len() - 1;
            batch.tokens += last as u64;
            for column in 0..length {
                // The padding is never a target, and a causal mask hides it.
                let token = if column < last { example.tokens[column] } else { example.tokens[last] };
                batch.inputs.push(token as i32);
                if column + 1 >= example.prompt && column < last {
                    batch.positions.push((row * length + column) as i32);
                    batch.targets.push(example.tokens[column + 1] as i32);
                    batch.rows.push(row);
                }
            }
        }
        batch
    }

    /// The inputs as a tensor of shape `[size, length]`.
    pub fn inputs(&self, device: &Device) -> Tensor<2, Int> {
        let data = TensorData::new(self.inputs.clone(), [self.size, self.length]);
        Tensor::from_data(data, device)
    }

    /// The positions as a tensor of shape `[targets]`.
    pub fn positions(&self, device: &Device) -> Tensor<1, Int> {
        let data = TensorData::new(self.positions.clone(), [self.positions.len()]);
        Tensor::from_data(data, device)
    }

    /// The targets as a tensor of shape `[targets]`.
    pub fn targets(&self, device: &Device) -> Tensor<1, Int> {
        let data = TensorData::new(self.targets.clone(), [self.targets.len()]);
        Tensor::from_data(data, device)
    }

    /// A weight for each target as a tensor of shape `[targets]`: `first` for the first target of a
    /// row, else 1.
    pub fn weights(&self, first: f32, device: &Device) -> Tensor<1> {
        let begins = |at: usize| at == 0 || self.rows[at - 1] != self.rows[at];
        let weights: Vec<f32> = (0..self.rows.len()).map(|at| if begins(at) { first } else { 1.0 }).collect();
        Tensor::from_floats(weights.as_slice(), device)
    }
}

impl Encoded {
    fn new(tokenizer: &Tokenizer, lesson: &Lesson) -> Result<Self, Error> {
        let prompt = tokenizer.encode(lesson.prompt.as_str(), false)?;
        let answer = tokenizer.encode(format!("{}{END}", lesson.answer), false)?;
        Ok(Self { prompt: prompt.len(), tokens: [prompt.get_ids(), answer.get_ids()].concat() })
    }
}

/// The endless sequence of training batches.
#[derive(Debug)]
pub struct Batches<'a> {
    tokenizer: &'a Tokenizer,
    generator: Generator,
    seed: u64,
    size: usize,
    /// Number of tool calls per 100 examples.
    calls: usize,
    /// Number of the current chunk and its batches.
    chunk: Option<(usize, Vec<Batch>)>,
}

impl<'a> Batches<'a> {
    /// Batches of `size` examples: `calls` in 100 are tool calls, the rest records.
    pub fn new(tokenizer: &'a Tokenizer, seed: u64, size: usize, calls: usize) -> Self {
        Self { tokenizer, generator: Generator::new(seed), seed, size, calls, chunk: None }
    }

    /// The batch of step `step`.
    pub fn get(&mut self, step: usize) -> Result<&Batch, Error> {
        let number = step / CHUNK;
        if self.chunk.as_ref().is_none_or(|(have, _)| *have != number) {
            self.chunk = Some((number, self.make(number)?));
        }
        let (_, batches) = self.chunk.as_ref().expect("the chunk was just made");
        Ok(&batches[step % CHUNK])
    }

    fn make(&self, number: usize) -> Result<Vec<Batch>, Error> {
        let count = CHUNK * self.size;
        let first = (number * count) as u64;
        let mut examples = (first..first + count as u64)
            .map(|index| Encoded::new(self.tokenizer, &self.lesson(index)))
            .collect::<Result<Vec<_>, _>>()?;
        // Sorts only by the prompt: the lengths of answers differ by kind, and batches with one
        // kind of answer would pull the model back and forth between calling and not calling.
        examples.sort_by_key(|example| example.prompt);
        let mut batches: Vec<Batch> = examples.chunks(self.size).map(Batch::pad).collect();
        let mut random = Random::new(!self.seed, number as u64);
        for last in (1..batches.len()).rev() {
            batches.swap(last, random.below(last + 1));
        }
        Ok(batches)
    }

    /// Example number `index`: a tool call, or a record of some kind.
    fn lesson(&self, index: u64) -> Lesson {
        let mut random = Random::new(self.seed.rotate_left(16), index);
        if random.chance(self.calls) {
            if random.chance(ANSWERS) {
                return Lesson::from(&self.generator.answer_example(Split::Train, index));
            }
            return Lesson::from(&self.generator.call_example(Split::Train, index));
        }
        let kind = mixed(&mut Random::new(self.seed.rotate_left(32), index));
        Lesson::from(&self.generator.example_of(kind, Split::Train, index))
    }
}

/// A kind, with the shares of [`MIX`].
fn mixed(random: &mut Random) -> Kind {
    let mut left = random.below(100);
    for (kind, share) in MIX {
        if left < share {
            return kind;
        }
        left -= share;
    }
    unreachable!("the shares add up to 100")
}
