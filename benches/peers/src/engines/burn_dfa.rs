//! burn-dfa on Burn's CPU backend.

use burn::tensor::{DType, Device, Int, Tensor, TensorData};
use burn_dfa::constraint::{JsonOptions, StructuralTag, Whitespace};
use burn_dfa::processor::{ConstraintProcessor, LogitsProcessor, Position, StepContext};
use burn_dfa::{CompiledConstraint, Constraint, DeviceConstraint, Limits, TensorOptions, Vocabulary};

use super::{Compiled, Engine, Grammar, Rows};
use crate::tokens::Tokens;

/// Whether rows start with a warm mask cache.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// Each run starts with an empty mask cache.
    Fresh,
    /// Runs share the mask cache.
    Cached,
}

/// The library on Flex.
pub(super) struct BurnDfa {
    vocabulary: Vocabulary,
    device: Device,
    mode: Mode,
}

impl BurnDfa {
    pub(super) fn new(tokens: &Tokens, mode: Mode) -> Self {
        Self { vocabulary: tokens.vocabulary.clone(), device: Device::flex(), mode }
    }
}

fn tensors(constraint: &CompiledConstraint, device: &Device) -> Result<DeviceConstraint, burn_dfa::Error> {
    DeviceConstraint::new(&[constraint], constraint.vocabulary_len(), &TensorOptions::default(), device)
}

impl Engine for BurnDfa {
    fn name(&self) -> &'static str {
        match self.mode {
            Mode::Fresh => "burn-dfa",
            Mode::Cached => "burn-dfa, kept masks",
        }
    }

    fn compile(&self, grammar: &Grammar) -> Result<Box<dyn Compiled>, String> {
        let compile = || {
            let constraint = match grammar {
                Grammar::Regex(regex) => Constraint::regex(regex)?,
                Grammar::Schema(schema) => {
                    let compact = JsonOptions::new().with_whitespace(Whitespace::Compact);
                    Constraint::json_schema_from_str_with(schema, &compact)?
                }
                Grammar::ContextFree { syntax, text, .. } => Constraint::grammar(*syntax, text)?,
                Grammar::Tools { tag, .. } => Constraint::structural_tag(&StructuralTag::read(tag)?)?,
            };
            let compiled = CompiledConstraint::compile(&constraint, &self.vocabulary, &Limits::default())?;
            let processor = ConstraintProcessor::new(tensors(&compiled, &self.device)?, &[0])?;
            let _start = processor.start();
            Ok((compiled, processor))
        };
        let (compiled, processor) = compile().map_err(|error: burn_dfa::Error| error.to_string())?;
        Ok(Box::new(BurnDfaConstraint { compiled, processor, device: self.device.clone(), mode: self.mode }))
    }

    fn on_all_cores(&self) -> bool {
        false
    }

    fn is_variant(&self) -> bool {
        self.mode != Mode::Fresh
    }
}

struct BurnDfaConstraint {
    compiled: CompiledConstraint,
    processor: ConstraintProcessor,
    device: Device,
    mode: Mode,
}

impl Compiled for BurnDfaConstraint {
    fn start(&self, rows: usize, _on_all_cores: bool) -> Box<dyn Rows> {
        let device_constraint = match self.mode {
            Mode::Fresh => tensors(&self.compiled, &self.device).expect("the constraint that was compiled"),
            Mode::Cached => self.processor.device_constraint().clone(),
        };
        let no_token = device_constraint.no_token() as i32;
        let processor =
            ConstraintProcessor::new(device_constraint, &vec![0; rows]).expect("rows of one constraint");
        let context = StepContext {
            tokens: Tensor::full([rows], no_token, (&self.device, DType::I32)),
            step: Tensor::zeros([1], (&self.device, DType::I32)),
        };
        let state = Some(processor.start());
        Box::new(TensorRows { processor, state, context, logits: None, device: self.device.clone() })
    }

    fn bytes(&self) -> Option<usize> {
        Some(self.processor.device_constraint().bytes())
    }

    fn states(&self) -> Option<usize> {
        Some(self.processor.device_constraint().state_count())
    }
}

struct TensorRows {
    processor: ConstraintProcessor,
    state: Option<Position>,
    context: StepContext,
    logits: Option<Tensor<2>>,
    device: Device,
}

impl TensorRows {
    fn tokens(&self, tokens: impl Iterator<Item = i32>) -> Tensor<1, Int> {
        let tokens: Vec<i32> = tokens.collect();
        let rows = tokens.len();
        Tensor::from_data(TensorData::new(tokens, [rows]), (&self.device, DType::I32))
    }
}

impl Rows for TensorRows {
    fn advance(&mut self, tokens: &[Option<u32>]) -> Result<(), String> {
        let no_token = self.processor.device_constraint().no_token() as u32;
        let tokens = self.tokens(tokens.iter().map(|token| token.unwrap_or(no_token) as i32));
        self.state = self.state.take().map(|state| self.processor.advance(state, tokens));
        Ok(())
    }

    fn prepare(&mut self, logits: &[f32], chosen: Option<&[u32]>) {
        self.logits = None;
        let rows = self.context.tokens.dims()[0];
        let no_token = self.processor.device_constraint().no_token() as i32;
        self.context.tokens = match chosen {
            Some(chosen) => self.tokens(chosen.iter().map(|&token| token as i32)),
            None => self.tokens(std::iter::repeat_n(no_token, rows)),
        };
        let logits = TensorData::new(logits.to_vec(), [rows, logits.len() / rows]);
        self.logits = Some(Tensor::from_data(logits, (&self.device, DType::F32)));
    }

    fn step(&mut self) -> Result<(), String> {
        let (Some(state), Some(logits)) = (self.state.take(), self.logits.take()) else {
            return Err("a step without logits".to_owned());
        };
        let (logits, state) = self.processor.process(state, logits, &self.context);
        (self.logits, self.state) = (Some(logits), Some(state));
        Ok(())
    }

    fn allows(&self, token: u32) -> bool {
        let logits = self.logits.clone().expect("a step came before");
        let token = token as usize;
        logits.slice([0..1, token..token + 1]).into_scalar::<f32>().is_finite()
    }

    fn logits(&self) -> Vec<f32> {
        let logits = self.logits.clone().expect("a step came before");
        logits.into_data().try_to_vec().expect("32-bit floats")
    }
}
