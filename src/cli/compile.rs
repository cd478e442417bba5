//! What a compilation may cost, and the form of its table.

use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::constraint::Constraint;
use crate::error::Result;
use crate::limits::Limits;
use crate::table::TokenTable;
use crate::tensor::TensorOptions;
use crate::vocabulary::Vocabulary;

/// What a compilation may cost: [`Limits`]. A constraint that needs more is refused, and the error names the option
/// that allows it.
#[derive(Args, Clone, Debug)]
pub struct LimitArgs {
    /// Most states of an automaton during compilation.
    #[arg(long, value_name = "N", default_value_t = Limits::default().states)]
    max_states: usize,
    /// Most bytes of memory of one automaton or table during compilation.
    #[arg(long, value_name = "BYTES", default_value_t = Limits::default().bytes)]
    max_bytes: usize,
    /// Longest time of one compilation, in seconds; fractions are allowed.
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = seconds)]
    max_seconds: Duration,
    /// Most frames on the stack of a row that follows a recursive schema; 0 copies the schema to a depth instead.
    #[arg(long, value_name = "N", default_value_t = Limits::default().frames)]
    max_frames: usize,
    /// Most different stacks by which ways to read one text of a grammar may be apart.
    #[arg(long, value_name = "N", default_value_t = Limits::default().stacks)]
    #[arg(value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=Limits::MAX_STACKS as u64))]
    max_stacks: usize,
    /// Most threads of one compilation; as many as the machine runs at once where it is left out.
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

/// How a constraint is compiled to a table.
#[derive(Args, Clone, Debug)]
pub struct CompileArgs {
    /// What it may cost.
    #[command(flatten)]
    limits: LimitArgs,
    /// How the table is held.
    #[arg(long, value_enum, default_value_t = Form::Auto)]
    form: Form,
}

impl CompileArgs {
    /// The limits.
    pub fn limits(&self) -> Limits {
        self.limits.limits()
    }

    /// The table of `constraint` over the tokens of `vocabulary`.
    ///
    /// # Errors
    /// As [`TokenTable::compile`].
    pub fn table(&self, constraint: &Constraint, vocabulary: &Vocabulary) -> Result<TokenTable> {
        let compile = match self.form {
            Form::Auto => TokenTable::compile,
            Form::Tabulated => TokenTable::tabulate,
            Form::Walked => TokenTable::walk,
        };
        compile(constraint, vocabulary, &self.limits())
    }
}

/// The two forms of a [`TokenTable`], or the choice between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// Tabulated where that is small, walked otherwise.
    Auto,
    /// A row of token classes for each state; never with a stack.
    Tabulated,
    /// The automaton over bytes, along which every token is walked.
    Walked,
}

/// What a table may take on the model's device.
#[derive(Args, Clone, Debug)]
pub struct DeviceArgs {
    /// Most bytes that the table takes on the model's device, below 2^31.
    #[arg(long, value_name = "BYTES", default_value_t = TensorOptions::default().max_bytes)]
    max_device_bytes: usize,
}

impl DeviceArgs {
    /// The options of the table's tensors.
    pub fn options(&self) -> TensorOptions {
        TensorOptions { max_bytes: self.max_device_bytes, ..TensorOptions::default() }
    }
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
