//! The settings of a server: the options of its command line.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use burn_dfa::cli::{Backend, ForcedTextArgs};
use burn_dfa::constraint::Whitespace;
use burn_dfa::generation::{GenerationConfig, SamplingFeatures};
use burn_dfa::{Capacity, TensorOptions};
use burn_dfa_decoder::cli::Weights;
use burn_dfa_engine::EngineConfig;
use clap::builder::{PossibleValuesParser, RangedU64ValueParser, TypedValueParser};
use clap::{Parser, ValueEnum};

/// A server of OpenAI's API for one model. A constrained answer is always complete and always fits
/// its constraint.
///
/// ```
/// use burn_dfa_serve::Config;
/// use clap::Parser;
///
/// let config = Config::parse_from(["burn-dfa-serve", "--port", "0", "--rows", "4"]);
/// assert_eq!((config.port, config.rows), (0, 4));
/// assert!(config.model.is_none()); // the embedded one
/// ```
#[derive(Parser, Clone, Debug)]
#[command(name = "burn-dfa-serve", version, args_override_self = true)]
pub struct Config {
    /// The address to listen on.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub host: IpAddr,
    /// The port to listen on; 0 takes any free port.
    #[arg(long, default_value_t = 8000)]
    pub port: u16,
    /// A GGUF file, or a Hugging Face folder: config.json, tokenizer.json, model.safetensors.
    /// Default: the embedded model.
    #[arg(long, value_name = "PATH")]
    pub model: Option<PathBuf>,
    /// The name of the model in requests. Default: the name of its folder, or tiny.
    #[arg(long, value_name = "NAME")]
    pub served_model_name: Option<String>,
    /// Where the model runs: flex, vulkan, wgpu, cuda, or remote:ws://host:port. All but flex need
    /// the feature of the same name.
    #[arg(long, value_name = "DEVICE", default_value = "flex", visible_alias = "backend")]
    pub device: Backend,
    /// The float type of the weights.
    #[arg(long, value_name = "TYPE", value_enum, default_value_t)]
    pub dtype: Weights,
    /// Answers that are generated at the same time. Keys and values of all rows are reserved at the
    /// start.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = usizes(1..=4096))]
    pub rows: usize,
    /// Tokens of prompt and answer together that a row can hold. Default: the model's positions, at
    /// most 4096.
    #[arg(long, value_name = "TOKENS", value_parser = usizes(2..=1 << 24))]
    pub slots: Option<usize>,
    /// Steps between two reads from the device. More steps are faster on a GPU, and stream in
    /// larger chunks.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = usizes(1..=256))]
    pub sync_interval: usize,
    /// How long the tokens of a stream are held for its next event, in seconds; 0: each chunk is an
    /// event.
    #[arg(long, value_name = "SECONDS", default_value = "0.005", value_parser = interval)]
    pub stream_interval: Duration,
    /// Tokens of prompts that are read between two steps, so that a long prompt delays other
    /// answers only briefly.
    #[arg(long, value_name = "TOKENS", default_value_t = 256, value_parser = usizes(1..=1 << 20))]
    pub prompt_chunk: usize,
    /// Read every prompt from its beginning, even if it shares a prefix with the text of a row,
    /// which could be copied.
    #[arg(long)]
    pub no_prefix_cache: bool,
    /// Begin answers while their constraints are still being compiled: the model reads the prompt
    /// meanwhile.
    #[arg(long)]
    pub lazy: bool,
    /// The greatest number of most likely tokens whose log-probabilities a request may ask for.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = usizes(0..=GenerationConfig::MAX_LOGPROBS as u64))]
    pub max_logprobs: usize,
    /// Compute no log-probabilities, which cost time at each step even if no request asks for them.
    #[arg(long, conflicts_with = "max_logprobs")]
    pub no_logprobs: bool,
    /// The format in which the model writes calls of tools (plain, hermes, llama31, mistral,
    /// qwen_xml, deepseek, deepseek_v31, harmony). Default: by the chat template, else plain.
    #[arg(long, value_name = "FORMAT")]
    pub tool_format: Option<burn_dfa::constraint::ToolFormat>,
    /// White space between the tokens of JSON, if a request does not set it: none, a space after
    /// each comma and colon, lines with two spaces a level, or up to 16 characters anywhere.
    /// Default: spaced; in arguments of calls as models of the format write them, and in structural
    /// tags flexible. The embedded model has compact JSON.
    #[arg(long, value_name = "STYLE", value_parser = styles())]
    pub whitespace: Option<Whitespace>,
    /// Whether answers begin with reasoning, which is then separated from their content.
    #[arg(long, value_enum, default_value = "none")]
    pub reasoning: ReasoningMode,

    /// A key for requests, sent as `Authorization: Bearer`; may be given more than once.
    #[arg(long = "api-key", value_name = "KEY", env = "BURN_DFA_API_KEY", hide_env_values = true, value_parser = key)]
    pub api_keys: Vec<String>,
    /// An origin whose pages may call the server from a browser, or *; may be given more than once.
    /// Default: none.
    #[arg(long = "allow-origin", value_name = "ORIGIN")]
    pub allowed_origins: Vec<String>,
    /// A name of this server that requests may have in their `Host`, besides localhost and its
    /// addresses, or *; may be given more than once. With a key, hosts are checked only if this is
    /// given.
    #[arg(long = "allow-host", value_name = "NAME")]
    pub allowed_hosts: Vec<String>,
    /// Encode special tokens within messages as special tokens, as vLLM does, and not as text.
    #[arg(long)]
    pub special_tokens_in_messages: bool,

    /// Answers that may wait for a row; further requests are refused with 503.
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = usizes(1..=1 << 20))]
    pub max_queue: usize,
    /// Threads that read requests, render chat templates and encode prompts.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = usizes(1..=256))]
    pub prepare_threads: usize,
    /// Threads that compile constraints. If there are several, slow constraints leave one of them
    /// to other constraints.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = usizes(1..=256))]
    pub compile_threads: usize,
    /// Longest time of one compilation, in seconds.
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    pub compile_deadline: Duration,
    /// Most bytes of one structure of a compilation.
    #[arg(long, value_name = "BYTES", default_value_t = 256 << 20)]
    pub compile_bytes: usize,
    /// The tokens that may spell forced text of constraints.
    #[command(flatten)]
    pub forced_text: ForcedTextArgs,
    /// Bytes of compiled constraints that are kept in memory.
    #[arg(long, value_name = "BYTES", default_value_t = 256 << 20)]
    pub cache_bytes: usize,
    /// A folder that keeps compiled constraints, at most 1 GiB of them. Default: none.
    #[arg(long, value_name = "DIR")]
    pub cache_dir: Option<PathBuf>,

    /// States of the constraints that are in use at the same time. They are reserved on a GPU.
    #[arg(long, value_name = "N", default_value_t = 65_536, value_parser = usizes(32..=1 << 24))]
    pub arena_states: usize,
    /// Greatest number of token classes of a constraint.
    #[arg(long, value_name = "N", default_value_t = 512, value_parser = usizes(64..=1 << 16))]
    pub arena_classes: usize,
    /// Greatest number of exits of a procedure of a grammar, mostly 1.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = usizes(1..=16))]
    pub arena_outcomes: usize,
    /// Greatest number of frames on the stack of a row, roughly the nesting depth of values.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = usizes(1..=1024))]
    pub frames: usize,

    /// Greatest size of a request in bytes.
    #[arg(long, value_name = "BYTES", default_value_t = 4 << 20)]
    pub max_body: usize,
    /// Greatest size of a prompt in bytes, after the chat template.
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 20)]
    pub max_prompt: usize,
    /// Greatest size of a schema, a grammar or another constraint in bytes.
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 20)]
    pub max_constraint: usize,
    /// Greatest number of tools of a request.
    #[arg(long, value_name = "N", default_value_t = 128)]
    pub max_tools: usize,
    /// Greatest number of answers to one request, its `n`.
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = usizes(1..=4096))]
    pub max_n: usize,
    /// Greatest number of simultaneous connections.
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = usizes(1..=1 << 20))]
    pub max_connections: usize,
    /// How long a client may take to send a request, or to receive data, in seconds.
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = seconds)]
    pub client_timeout: Duration,
    /// How long answers may continue after the server was asked to end, in seconds.
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = seconds)]
    pub grace: Duration,
    /// The form of the log.
    #[arg(long, value_enum, default_value = "text")]
    pub log: LogForm,
}

impl Config {
    /// The number of most likely tokens whose log-probabilities are computed, if any.
    pub fn logprobs(&self) -> Option<usize> {
        (!self.no_logprobs).then_some(self.max_logprobs)
    }

    /// The capacity for constraints.
    pub(crate) fn capacity(&self) -> Capacity {
        Capacity::new()
            .with_tables(self.rows)
            .with_states(self.arena_states)
            .with_classes(self.arena_classes)
            .with_stack(self.arena_outcomes, self.frames)
    }

    /// The settings of the engine for a model with `positions` positions.
    pub(crate) fn engine(&self, positions: Option<usize>) -> EngineConfig {
        EngineConfig {
            rows: self.rows,
            slots: self.slots.unwrap_or(4096).min(positions.unwrap_or(usize::MAX)),
            sync_interval: self.sync_interval,
            prompt_chunk: Some(self.prompt_chunk),
            prefix_cache: !self.no_prefix_cache,
            logprobs: self.logprobs(),
            features: SamplingFeatures::ALL,
            tensors: TensorOptions::new().with_capacity(self.capacity()).with_max_bytes(i32::MAX as usize),
            max_queue: self.max_queue,
        }
    }
}

/// Whether answers begin with reasoning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ReasoningMode {
    /// No answer.
    None,
    /// Every answer.
    Always,
    /// Some answers.
    Optional,
    /// Every answer, and the chat template writes the beginning of the reasoning.
    Opened,
}

/// The form of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogForm {
    /// A line of text.
    Text,
    /// A line of JSON.
    Json,
}

impl Default for Config {
    /// The settings of a command line without options.
    fn default() -> Self {
        Self::parse_from(["burn-dfa-serve"])
    }
}

/// The styles of white space by their names.
fn styles() -> impl TypedValueParser<Value = Whitespace> {
    let names = Whitespace::NAMED.map(|(name, _)| name);
    PossibleValuesParser::new(names).try_map(|name| name.parse::<Whitespace>())
}

fn usizes(range: std::ops::RangeInclusive<u64>) -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(range)
}

/// A key that a header can hold. An empty key would allow every request.
fn key(text: &str) -> Result<String, String> {
    let is_key = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
    is_key.then(|| text.to_owned()).ok_or_else(|| {
        "a key is one or more visible ASCII characters; leave the option out, and unset BURN_DFA_API_KEY, for a server without a key"
            .to_owned()
    })
}

/// A number of seconds.
fn interval(text: &str) -> Result<Duration, String> {
    let time = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    time.ok_or_else(|| "this has to be a number of seconds".to_owned())
}

/// A positive number of seconds.
fn seconds(text: &str) -> Result<Duration, String> {
    let time = interval(text).ok().filter(|time| !time.is_zero());
    time.ok_or_else(|| "this has to be a positive number of seconds".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_not_empty() {
        let parse = |key: &str| Config::try_parse_from(["burn-dfa-serve", "--api-key", key]);
        assert_eq!(parse("sk-1").map(|config| config.api_keys).ok(), Some(vec!["sk-1".to_owned()]));
        for key in ["", " ", "a b", "a\n", "é"] {
            let error = parse(key).expect_err("it is no key").to_string();
            assert!(error.contains("visible ASCII"), "{error}");
        }
    }
}
