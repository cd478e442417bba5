//! Arguments that command line tools around this library share, for clap: the constraint, how tokens are chosen, the
//! backend.
//!
//! ```
//! use burn_dfa::cli::{ConstraintArgs, SamplingArgs};
//! use clap::Parser;
//!
//! #[derive(Parser)]
//! struct Args {
//!     #[command(flatten)]
//!     constraint: ConstraintArgs,
//!     #[command(flatten)]
//!     sampling: SamplingArgs,
//! }
//!
//! let args = Args::parse_from(["tool", "--regex", "[0-9]+", "--top-k", "40"]);
//! assert!(args.constraint.read()?.is_some());
//! assert_eq!(args.sampling.config().temperature, Some(1.0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::fmt;
use std::path::{Path, PathBuf};

use burn::tensor::Device;
use clap::{Args, ValueEnum};
use serde_json::Value;

use crate::constraint::Constraint;
use crate::generation::GenerationConfig;

/// An error to be shown to whoever typed the command.
pub type Failure = Box<dyn std::error::Error>;

/// The constraint: at most one of these. The group `constraint` can be made required.
#[derive(Args, Clone, Debug, Default)]
#[group(id = "constraint", multiple = false)]
pub struct ConstraintArgs {
    /// The output matches this regular expression as a whole.
    #[arg(long)]
    regex: Option<String>,
    /// The output is JSON valid under the JSON schema in this file.
    #[arg(long, value_name = "FILE")]
    pub schema: Option<PathBuf>,
    /// The output is one of these strings; give it once for each.
    #[arg(long)]
    choice: Option<Vec<String>>,
    /// The constraint is a `response_format` or `structured_outputs` object in this file.
    #[arg(long, value_name = "FILE", visible_alias = "response-format")]
    spec: Option<PathBuf>,
}

impl ConstraintArgs {
    /// The constraint; `None` where none is given, or the file of `--spec` asks for plain text.
    ///
    /// # Errors
    /// A file that cannot be read or is not JSON, and what [`Constraint`] refuses, with the file's name.
    pub fn read(&self) -> Result<Option<Constraint>, Failure> {
        let in_file = |path: &Path, error| Failure::from(format!("{}: {error}", path.display()));
        if let Some(pattern) = &self.regex {
            Ok(Some(Constraint::regex(pattern)?))
        } else if let Some(path) = &self.schema {
            Constraint::json_schema(json(path)?).map(Some).map_err(|error| in_file(path, error))
        } else if let Some(choices) = &self.choice {
            Ok(Some(Constraint::choice(choices.iter().cloned())?))
        } else if let Some(path) = &self.spec {
            Constraint::from_request(&json(path)?).map_err(|error| in_file(path, error))
        } else {
            Ok(None)
        }
    }

    /// Whether one is given.
    pub fn is_some(&self) -> bool {
        self.regex.is_some() || self.schema.is_some() || self.choice.is_some() || self.spec.is_some()
    }
}

/// As it was given: `regex [0-9]+`, `schema person.json`.
impl fmt::Display for ConstraintArgs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(pattern) = &self.regex {
            write!(f, "regex {pattern}")
        } else if let Some(path) = &self.schema {
            write!(f, "schema {}", path.display())
        } else if let Some(choices) = &self.choice {
            write!(f, "choice {}", choices.join(" | "))
        } else if let Some(path) = &self.spec {
            write!(f, "spec {}", path.display())
        } else {
            f.write_str("none")
        }
    }
}

/// How many tokens are generated, and how they are chosen.
#[derive(Args, Clone, Debug)]
pub struct SamplingArgs {
    /// Most tokens to generate, end of sequence included.
    #[arg(long, value_name = "N", default_value_t = 128, visible_alias = "max-new-tokens")]
    pub max_tokens: usize,
    /// Sample at this temperature, above 0. Default: greedy, or 1 where a seed, top-k, top-p or min-p is given.
    #[arg(long, value_name = "T")]
    temperature: Option<f32>,
    /// Sample among the likeliest K tokens.
    #[arg(long, value_name = "K")]
    top_k: Option<usize>,
    /// Sample among the fewest of the likeliest tokens whose probability reaches P.
    #[arg(long, value_name = "P")]
    top_p: Option<f32>,
    /// Sample among the tokens of at least this fraction of the likeliest one's probability.
    #[arg(long, value_name = "P")]
    min_p: Option<f32>,
    /// The seed of the first row; the rows after it count up. Default: 0.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
}

impl SamplingArgs {
    /// Greedy, unless anything that only sampling needs is given.
    pub fn config(&self) -> GenerationConfig {
        let filtered = self.top_k.is_some() || self.top_p.is_some() || self.min_p.is_some();
        let sampled = self.seed.is_some() || filtered;
        let temperature = self.temperature.or(sampled.then_some(1.0));
        GenerationConfig::new()
            .with_temperature(temperature)
            .with_top_k(self.top_k)
            .with_top_p(self.top_p)
            .with_min_p(self.min_p)
    }

    /// The seed of a row.
    pub fn seed(&self, row: u64) -> u64 {
        self.seed.unwrap_or(0).wrapping_add(row)
    }
}

/// A backend by name. One that is not compiled in is refused when it is opened, with the feature that it needs.
///
/// ```
/// use burn_dfa::cli::Backend;
///
/// assert!(Backend::Flex.open().is_ok());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Backend {
    /// The CPU.
    Flex,
    /// Vulkan, through SPIR-V.
    Vulkan,
    /// Any graphics API, through WGSL.
    Wgpu,
    /// CUDA.
    Cuda,
}

impl Backend {
    /// Its first device.
    ///
    /// # Errors
    /// A backend that is not compiled in.
    pub fn open(self) -> Result<Device, Failure> {
        match self {
            Self::Flex => Ok(Device::flex()),
            #[cfg(feature = "vulkan")]
            Self::Vulkan => Ok(Device::vulkan(burn::tensor::DeviceKind::DefaultDevice)),
            #[cfg(feature = "wgpu")]
            Self::Wgpu => Ok(Device::wgpu(burn::tensor::DeviceKind::DefaultDevice)),
            #[cfg(feature = "cuda")]
            Self::Cuda => Ok(Device::cuda(0)),
            #[allow(unreachable_patterns)]
            other => {
                let name = format!("{other:?}").to_lowercase();
                Err(format!("this build has no {name}: build it with `--features {name}`").into())
            }
        }
    }
}

/// Reads a file of JSON.
///
/// # Errors
/// A file that cannot be read or is not JSON, with its name.
pub fn json(path: &Path) -> Result<Value, Failure> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("cannot read {}: {e}", path.display()))?;
    Ok(serde_json::from_str(&text).map_err(|e| format!("{} is not JSON: {e}", path.display()))?)
}
