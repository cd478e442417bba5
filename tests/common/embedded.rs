//! The embedded model, and requests to it.

use burn::tensor::Device;
use burn_dfa::constraint::JsonOptions;
use burn_dfa::generation::Request;
use burn_dfa::{CompiledConstraint, Constraint, Limits, TokenId, Vocabulary};
use burn_dfa_decoder::{Decoder, Pretrained};
use burn_dfa_tiny::generator::{Generator, Split};

/// The positions of the model.
pub const POSITIONS: usize = 256;

pub struct Embedded {
    pretrained: Pretrained,
    pub vocabulary: Vocabulary,
}

impl Embedded {
    pub fn load(device: &Device) -> Self {
        let pretrained = burn_dfa_tiny::load(device).unwrap();
        Self { vocabulary: pretrained.vocabulary().clone(), pretrained }
    }

    pub fn model(&self) -> &Decoder {
        self.pretrained.model()
    }

    /// A prompt of the held-out set.
    pub fn prompt(&self, index: u64) -> Vec<TokenId> {
        let example = Generator::new(5).example(Split::HeldOut, index);
        self.pretrained.prompt(&example.prompt).unwrap()
    }

    pub fn regex(&self, pattern: &str) -> CompiledConstraint {
        self.compile(&Constraint::regex(pattern).unwrap())
    }

    pub fn schema(&self, name: &str) -> CompiledConstraint {
        let schema = burn_dfa_tiny::schema(name).unwrap();
        self.compile(&schema.constraint().unwrap())
    }

    fn compile(&self, constraint: &Constraint) -> CompiledConstraint {
        CompiledConstraint::compile(constraint, &self.vocabulary, &Limits::default()).unwrap()
    }

    /// A constraint with a stack.
    pub fn recursive(&self, schema: &serde_json::Value, frames: usize) -> CompiledConstraint {
        let options = JsonOptions::new().with_whitespace(burn_dfa_tiny::WHITESPACE);
        self.called(&Constraint::json_schema_with(schema.clone(), &options).unwrap(), frames)
    }

    /// Compiles any constraint with a stack.
    pub fn called(&self, constraint: &Constraint, frames: usize) -> CompiledConstraint {
        let limits = Limits::new().with_frames(frames);
        let compiled = CompiledConstraint::compile(constraint, &self.vocabulary, &limits).unwrap();
        assert!(compiled.exits() > 0, "{constraint:?} has calls");
        compiled
    }

    /// A row per constraint, of `max_new_tokens` each; prompts and seeds depend on `first` and the
    /// row.
    pub fn requests(
        &self,
        constraints: &[Option<&CompiledConstraint>],
        max_new_tokens: usize,
        first: u64,
    ) -> Vec<Request> {
        let rows = (first..).zip(constraints);
        rows.map(|(row, &constraint)| Request {
            constraint: constraint.cloned(),
            ..Request::new(self.prompt(row), max_new_tokens).with_seed(row)
        })
        .collect()
    }
}
