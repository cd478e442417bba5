//! The command line, and what it names: a device, a model, a constraint.

use std::error::Error;
use std::path::{Path, PathBuf};

use burn::tensor::{Device, FloatDType};
use burn_dfa::generation::Options;
use burn_dfa::{Constraint, TokenId, Vocabulary};
use burn_dfa_llama::{ChatTemplate, Llama, Message, Pretrained};
use clap::{Parser, ValueEnum};

pub type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Text from a Llama-family model that matches a constraint. Without a prompt: a demonstration.
#[derive(Parser)]
#[command(name = "smollm2")]
pub struct Args {
    /// A Hugging Face folder: config.json, tokenizer.json, model.safetensors. Default: the embedded model.
    #[arg(long, value_name = "DIR")]
    model: Option<PathBuf>,
    /// What the model is asked. It goes through the model's chat template, where there is one.
    #[arg(long)]
    pub prompt: Option<String>,
    /// The output is JSON valid under the JSON schema in this file.
    #[arg(long, value_name = "FILE", group = "constraint")]
    schema: Option<PathBuf>,
    /// The output matches this regular expression as a whole.
    #[arg(long, group = "constraint")]
    regex: Option<String>,
    /// The output is one of these.
    #[arg(long, num_args = 1.., group = "constraint")]
    choice: Option<Vec<String>>,
    /// The constraint is a `response_format` or `structured_outputs` object in this file.
    #[arg(long, value_name = "FILE", group = "constraint")]
    spec: Option<PathBuf>,
    /// Leave the constraint out.
    #[arg(long)]
    pub unconstrained: bool,
    /// Where the model runs. GPU devices need the feature of the same name.
    #[arg(long, value_enum, default_value = "flex")]
    pub device: DeviceName,
    /// Most tokens to generate, end of sequence included.
    #[arg(long, default_value_t = 128)]
    pub max_tokens: usize,
    /// Sample at this temperature, above 0. Default: greedy, or 1 where a seed, top-k, top-p or min-p is given.
    #[arg(long)]
    temperature: Option<f32>,
    /// Sample among the likeliest K tokens.
    #[arg(long)]
    top_k: Option<usize>,
    /// Sample among the fewest of the likeliest tokens whose probability reaches P.
    #[arg(long)]
    top_p: Option<f32>,
    /// Sample among the tokens of at least this fraction of the likeliest one's probability.
    #[arg(long)]
    min_p: Option<f32>,
    /// The seed of the first row; the rows after it count up. Default: 0.
    #[arg(long)]
    seed: Option<u64>,
    /// Rows to generate from the prompt.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(..=4096))]
    pub batch: u64,
    /// Record the decode step once and replay it; a device that cannot, such as Flex, runs it again.
    #[arg(long)]
    pub graph: bool,
    /// One JSON object per row, on a line each, instead of text.
    #[arg(long)]
    pub json: bool,
}

/// A backend by name.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DeviceName {
    Flex,
    Vulkan,
    Wgpu,
    Cuda,
}

impl Args {
    /// Whether there is nothing to generate but the demonstration.
    pub fn is_demo(&self) -> bool {
        let constraint =
            self.schema.is_some() || self.regex.is_some() || self.choice.is_some() || self.spec.is_some();
        let sampled = self.options().temperature.is_some();
        let other = self.json || self.unconstrained || self.graph || self.batch != 1;
        self.prompt.is_none() && self.model.is_none() && !constraint && !sampled && !other
    }

    /// The constraint asked for, with its description.
    pub fn constraint(&self) -> Result<Option<(String, Constraint)>> {
        if self.unconstrained {
            return Ok(None);
        }
        let named = if let Some(path) = &self.schema {
            let schema = json_file(path)?;
            let constraint =
                Constraint::json_schema(schema).map_err(|e| format!("{}: {e}", path.display()))?;
            (format!("schema {}", path.display()), constraint)
        } else if let Some(pattern) = &self.regex {
            (format!("regex {pattern}"), Constraint::regex(pattern)?)
        } else if let Some(choices) = &self.choice {
            (format!("choice {}", choices.join(" | ")), Constraint::choice(choices.iter().cloned())?)
        } else if let Some(path) = &self.spec {
            let constraint = Constraint::from_request(&json_file(path)?)
                .map_err(|e| format!("{}: {e}", path.display()))?;
            match constraint {
                Some(constraint) => (format!("spec {}", path.display()), constraint),
                None => return Ok(None),
            }
        } else {
            return Ok(None);
        };
        Ok(Some(named))
    }

    /// Greedy, unless anything that only sampling needs is given.
    pub fn options(&self) -> Options {
        let filtered = self.top_k.is_some() || self.top_p.is_some() || self.min_p.is_some();
        let sampled = self.seed.is_some() || filtered;
        let temperature = self.temperature.or(sampled.then_some(1.0));
        Options { temperature, top_k: self.top_k, top_p: self.top_p, min_p: self.min_p, ..Options::default() }
    }

    /// The seed of the first row.
    pub fn seed(&self) -> u64 {
        self.seed.unwrap_or(0)
    }

    /// The model, on its device.
    pub fn load(&self) -> Result<Pretrained> {
        let device = self.device.open()?;
        match &self.model {
            Some(folder) => Ok(Pretrained::load(folder, FloatDType::F32, &device)?),
            None => {
                let config = std::str::from_utf8(burn_dfa_tiny::CONFIG)?;
                let model = Llama::from_bytes(config, burn_dfa_tiny::WEIGHTS, FloatDType::F32, &device)?;
                let tokenizer_config = std::str::from_utf8(burn_dfa_tiny::TOKENIZER_CONFIG)?;
                let template = ChatTemplate::from_files(Some(tokenizer_config), None)?;
                Ok(Pretrained::new(model, burn_dfa_tiny::TOKENIZER, template)?)
            }
        }
    }
}

impl DeviceName {
    fn open(self) -> Result<Device> {
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
                let name =
                    other.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
                Err(format!("this build has no {name}: build it with `--features {name}`").into())
            }
        }
    }
}

/// The vocabulary of a model: its tokenizer's, as wide as its logits, with its ends of sequence.
pub fn vocabulary(args: &Args, pretrained: &Pretrained) -> Result<Vocabulary> {
    if let Some(folder) = &args.model {
        return Ok(Vocabulary::from_folder(folder)?);
    }
    let eos = pretrained.eos().iter().map(|&id| TokenId(id));
    let vocabulary = Vocabulary::from_tokenizer_json(pretrained.tokenizer_json())?;
    Ok(vocabulary.pad_to(pretrained.model().config().vocab_size)?.with_eos(eos)?)
}

/// The prompt as the model expects it.
pub fn encode(pretrained: &Pretrained, prompt: &str) -> Result<Vec<TokenId>> {
    let ids = match pretrained.chat_template() {
        Some(_) => pretrained.encode_chat(&[Message::user(prompt)])?,
        None => pretrained.encode(prompt)?,
    };
    Ok(ids.into_iter().map(TokenId).collect())
}

fn json_file(path: &Path) -> Result<serde_json::Value> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("cannot read {}: {e}", path.display()))?;
    Ok(serde_json::from_str(&text).map_err(|e| format!("{} is not JSON: {e}", path.display()))?)
}
