//! The settings of a server, which are the options of its command line.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use burn_dfa::cli::Backend;
use burn_dfa::generation::GenerationConfig;
use burn_dfa_decoder::cli::Weights;
use clap::builder::RangedU64ValueParser;
use clap::{Parser, ValueEnum};

/// A server of OpenAI's API for one model. A constrained answer is always complete and always fits its constraint.
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
    /// The port to listen on; 0 takes any that is free.
    #[arg(long, default_value_t = 8000)]
    pub port: u16,
    /// A Hugging Face folder: config.json, tokenizer.json, model.safetensors. Default: the embedded model.
    #[arg(long, value_name = "DIR")]
    pub model: Option<PathBuf>,
    /// The name by which requests call the model. Default: the name of its folder, or tiny.
    #[arg(long, value_name = "NAME")]
    pub served_model_name: Option<String>,
    /// Where the model runs: flex, vulkan, wgpu, cuda, or remote:ws://host:port. All but flex need the feature of the same name.
    #[arg(long, value_name = "DEVICE", default_value = "flex", visible_alias = "backend")]
    pub device: Backend,
    /// The float type of the weights.
    #[arg(long, value_name = "TYPE", value_enum, default_value_t)]
    pub dtype: Weights,
    /// Answers that are generated at the same time. Keys and values of all rows are reserved at the start.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = usizes(1..=4096))]
    pub rows: usize,
    /// Tokens of prompt and answer together that a row has room for. Default: the model's positions, at most 4096.
    #[arg(long, value_name = "TOKENS", value_parser = usizes(2..=1 << 24))]
    pub slots: Option<usize>,
    /// Steps between two reads from the device. More are faster on a GPU, and stream in larger pieces.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = usizes(1..=256))]
    pub read_every: usize,
    /// How long the tokens of a stream are kept for its next event, in seconds; 0: each piece is an event.
    #[arg(long, value_name = "SECONDS", default_value = "0.005", value_parser = interval)]
    pub stream_interval: Duration,
    /// Tokens of prompts that are read between two steps, so that a long prompt does not hold up the other answers for long.
    #[arg(long, value_name = "TOKENS", default_value_t = 256, value_parser = usizes(1..=1 << 20))]
    pub prompt_chunk: usize,
    /// Read every prompt from its beginning, also where it begins as the text of a row does, which can be copied.
    #[arg(long)]
    pub no_prefix_cache: bool,
    /// Begin answers while their constraints are still being compiled: the model reads the prompt meanwhile.
    #[arg(long)]
    pub lazy: bool,
    /// Of how many of the likeliest tokens a request may ask for the log-probabilities.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = usizes(0..=GenerationConfig::MOST_LOGPROBS as u64))]
    pub max_logprobs: usize,
    /// Compute no log-probabilities, which cost time at each step whether a request asks for them or not.
    #[arg(long, conflicts_with = "max_logprobs")]
    pub no_logprobs: bool,
    /// The format in which the model writes calls of tools (plain, hermes, llama31, mistral, qwen_xml, deepseek,
    /// deepseek_v31, harmony). Default: by the chat template, else plain.
    #[arg(long, value_name = "FORMAT")]
    pub tool_format: Option<burn_dfa::constraint::ToolFormat>,
    /// Whether answers begin with reasoning, which is then kept apart from their content.
    #[arg(long, value_enum, default_value = "none")]
    pub reasoning: ReasoningMode,

    /// The key that requests have to bring as `Authorization: Bearer`; may be given more than once.
    #[arg(long = "api-key", value_name = "KEY", env = "BURN_DFA_API_KEY", hide_env_values = true)]
    pub api_keys: Vec<String>,
    /// An origin whose pages may call the server from a browser; may be given more than once. Default: none.
    #[arg(long = "allow-origin", value_name = "ORIGIN")]
    pub allowed_origins: Vec<String>,

    /// Answers that may wait for a row; a request beyond them is refused with 503.
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = usizes(1..=1 << 20))]
    pub max_queue: usize,
    /// Threads that compile constraints and encode prompts.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = usizes(1..=256))]
    pub compile_threads: usize,
    /// Longest time of one compilation, in seconds.
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    pub compile_deadline: Duration,
    /// Most bytes of one structure of a compilation.
    #[arg(long, value_name = "BYTES", default_value_t = 256 << 20)]
    pub compile_bytes: usize,
    /// Bytes of compiled constraints that are kept in memory.
    #[arg(long, value_name = "BYTES", default_value_t = 256 << 20)]
    pub cache_bytes: usize,
    /// A folder that keeps compiled constraints, at most 1 GiB of them. Default: none.
    #[arg(long, value_name = "DIR")]
    pub cache_dir: Option<PathBuf>,

    /// States of the constraints that are in use at the same time. They are reserved on a GPU.
    #[arg(long, value_name = "N", default_value_t = 65_536, value_parser = usizes(32..=1 << 24))]
    pub arena_states: usize,
    /// Most columns of a constraint's table.
    #[arg(long, value_name = "N", default_value_t = 512, value_parser = usizes(64..=1 << 16))]
    pub arena_classes: usize,
    /// Most outcomes of a called part of a grammar, mostly 1.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = usizes(1..=16))]
    pub arena_outcomes: usize,
    /// Most frames on the stack of a row, about how deep values may be nested.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = usizes(1..=1024))]
    pub frames: usize,

    /// Most bytes of a request.
    #[arg(long, value_name = "BYTES", default_value_t = 4 << 20)]
    pub max_body: usize,
    /// Most bytes of a prompt, after the chat template.
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 20)]
    pub max_prompt: usize,
    /// Most bytes of a schema, a grammar or another constraint.
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 20)]
    pub max_constraint: usize,
    /// Most tools of a request.
    #[arg(long, value_name = "N", default_value_t = 128)]
    pub max_tools: usize,
    /// Most answers to one request, its `n`.
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = usizes(1..=4096))]
    pub max_n: usize,
    /// Most connections at the same time.
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = usizes(1..=1 << 20))]
    pub max_connections: usize,
    /// How long a client may take to send a request, or to take in what was sent to it, in seconds.
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = seconds)]
    pub client_timeout: Duration,
    /// How long answers may go on after the server was asked to end, in seconds.
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = seconds)]
    pub grace: Duration,
    /// The form of the log.
    #[arg(long, value_enum, default_value = "text")]
    pub log: LogForm,
}

impl Config {
    /// Of how many of the likeliest tokens log-probabilities are computed, if at all.
    pub fn logprobs(&self) -> Option<usize> {
        (!self.no_logprobs).then_some(self.max_logprobs)
    }
}

/// Whether answers begin with reasoning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ReasoningMode {
    /// No answer does.
    None,
    /// All of them do.
    Always,
    /// Some may.
    Optional,
    /// All of them do, and the chat template has written its beginning.
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

fn usizes(range: std::ops::RangeInclusive<u64>) -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(range)
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
