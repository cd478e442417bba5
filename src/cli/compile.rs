//! The limits of a compilation, and the form of the compiled constraint.

use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};

use crate::constraint::Constraint;
use crate::tensor::TensorOptions;
use crate::vocabulary::Vocabulary;
use burn_dfa_tokens::{CompiledConstraint, ForcedText, Limits, Result};

/// The [`Limits`] of a compilation. A constraint that exceeds a limit is refused, and the error
/// names the option that raises the limit.
#[derive(Args, Clone, Debug)]
pub struct LimitArgs {
    /// Maximum number of states of an automaton during compilation.
    #[arg(long, value_name = "N", default_value_t = Limits::default().states)]
    max_states: usize,
    /// Maximum number of bytes of one automaton or compiled constraint during compilation.
    #[arg(long, value_name = "BYTES", default_value_t = Limits::default().bytes)]
    max_bytes: usize,
    /// Maximum time of one compilation, in seconds; fractions are allowed.
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = seconds)]
    max_seconds: Duration,
    /// Maximum number of frames on the stack of a row with a recursive schema; 0 copies the schema
    /// to a fixed depth instead.
    #[arg(long, value_name = "N", default_value_t = Limits::default().frames)]
    max_frames: usize,
    /// Maximum number of different stacks of the parses of one text of a grammar.
    #[arg(long, value_name = "N", default_value_t = Limits::default().stacks)]
    #[arg(value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=Limits::MAX_STACKS as u64))]
    max_stacks: usize,
    /// Maximum number of threads of one compilation. Default: as many as the machine runs at once.
    #[arg(long, value_name = "N")]
    #[arg(value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..))]
    max_threads: Option<usize>,
}

impl LimitArgs {
    /// The limits.
    pub fn limits(&self) -> Limits {
        let usual = Limits::default();
        Limits {
            states: self.max_states,
            bytes: self.max_bytes,
            time: self.max_seconds,
            frames: self.max_frames,
            stacks: self.max_stacks,
            threads: self.max_threads.unwrap_or(usual.threads),
            ..usual
        }
    }
}

/// How a constraint is compiled.
#[derive(Args, Clone, Debug)]
pub struct CompileArgs {
    /// The limits of the compilation.
    #[command(flatten)]
    limits: LimitArgs,
    /// The form of the compiled constraint.
    #[arg(long, value_enum, default_value_t = Form::Auto)]
    form: Form,
    /// The rule of forced text.
    #[command(flatten)]
    forced_text: ForcedTextArgs,
}

/// The rule of forced text.
#[derive(Args, Clone, Debug)]
pub struct ForcedTextArgs {
    /// The tokens that may spell forced text: only the longest token at each position, or any
    /// token.
    #[arg(long, value_name = "RULE", default_value = "any")]
    #[arg(value_parser = PossibleValuesParser::new(["longest", "any"]).map(forced_text))]
    forced_text: ForcedText,
}

impl ForcedTextArgs {
    /// `limits` with the rule.
    pub fn over(&self, limits: Limits) -> Limits {
        limits.with_forced_text(self.forced_text)
    }
}

impl CompileArgs {
    /// The limits.
    pub fn limits(&self) -> Limits {
        self.forced_text.over(self.limits.limits())
    }

    /// Compiles `constraint` over the tokens of `vocabulary`.
    ///
    /// # Errors
    /// As [`CompiledConstraint::compile`].
    pub fn compile(&self, constraint: &Constraint, vocabulary: &Vocabulary) -> Result<CompiledConstraint> {
        let compile = match self.form {
            Form::Auto => CompiledConstraint::compile,
            Form::TokenLevel => CompiledConstraint::compile_token_level,
            Form::ByteLevel => CompiledConstraint::compile_byte_level,
        };
        compile(constraint, vocabulary, &self.limits())
    }
}

/// The two forms of a [`CompiledConstraint`], or the choice between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// Token-level if the result is small, byte-level otherwise.
    Auto,
    /// The token-level form: a row of token classes for each state; never with a stack.
    TokenLevel,
    /// The byte-level form: an automaton over bytes, which follows the bytes of every token.
    ByteLevel,
}

/// The size limit of a constraint on the model's device.
#[derive(Args, Clone, Debug)]
pub struct DeviceArgs {
    /// Maximum number of bytes of the constraint on the model's device, below 2^31.
    #[arg(long, value_name = "BYTES", default_value_t = TensorOptions::default().max_bytes)]
    max_device_bytes: usize,
}

impl DeviceArgs {
    /// The options of the device constraint.
    pub fn options(&self) -> TensorOptions {
        TensorOptions { max_bytes: self.max_device_bytes, ..TensorOptions::default() }
    }
}

fn forced_text(name: String) -> ForcedText {
    if name == "any" { ForcedText::AnyToken } else { ForcedText::Longest }
}

/// A positive number of seconds.
fn seconds(text: &str) -> std::result::Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "this is no number of seconds".to_owned())?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(time) if !time.is_zero() => Ok(time),
        Err(_) if seconds > 0.0 => Err("this is more seconds than can be counted".to_owned()),
        _ => Err("this has to be a positive number of seconds".to_owned()),
    }
}
