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

/// The help of the program.
const ABOUT: &str = "Serve OpenAI's API for one model. A constrained answer is always complete and always fits its constraint.

Exit codes: 0, the server was asked to end; 2, wrong usage, such as an unreadable model or a port in use.";
const EXAMPLES: &str = "Examples:
  burn-dfa-serve
  burn-dfa-serve --model SmolLM2-135M-Instruct --rows 16
  burn-dfa-serve --model SmolLM2-135M-Instruct.Q4_1.gguf --device wgpu --sync-interval 4
  burn-dfa-serve --host 10.0.0.5 --port 8080 --api-key KEY";

/// A server of OpenAI's API for one model. A constrained answer is always complete and always fits
/// its constraint.
///
/// ```
/// use burn_dfa_serve::Config;
/// use clap::Parser;
///
/// let config = Config::try_parse_from(["burn-dfa-serve", "--port", "0", "--rows", "4"])?;
/// assert_eq!((config.port, config.rows), (0, 4));
/// assert!(config.model.is_none()); // the embedded one
/// # Ok::<(), clap::Error>(())
/// ```
#[derive(Parser, Clone, Debug)]
#[command(name = "burn-dfa-serve", version, args_override_self = true)]
// The comment above has an example in Rust, which is no help for users of the program.
#[command(about = "Serve OpenAI's API for one model", long_about = ABOUT, after_help = EXAMPLES)]
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
    #[arg(long, value_name = "DEVICE", default_value = "flex")]
    pub device: Backend,
    /// The type of the weights in memory. With stored, flex keeps the quantized blocks of a GGUF
    /// file; with the other types, and on other devices, they become floats.
    #[arg(long, value_name = "TYPE", value_enum, default_value_t)]
    pub dtype: Weights,
    /// Number of answers that are generated at the same time. Keys and values of all rows are
    /// reserved at the start.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = usizes(1..=4096))]
    pub rows: usize,
    /// Maximum number of tokens of a row, prompt and answer together. Default: the model's
    /// positions, at most 4096.
    #[arg(long, value_name = "TOKENS", value_parser = usizes(2..=1 << 24))]
    pub slots: Option<usize>,
    /// Number of steps between two reads from the device. More steps are faster on a GPU, and
    /// stream in larger chunks.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = usizes(1..=256))]
    pub sync_interval: usize,
    /// How long the tokens of a stream are held for its next event, in seconds; with 0 each chunk
    /// is an event.
    #[arg(long, value_name = "SECONDS", default_value = "0.005", value_parser = interval)]
    pub stream_interval: Duration,
    /// Number of tokens of prompts that are read between two steps, so that a long prompt delays
    /// other answers only briefly.
    #[arg(long, value_name = "TOKENS", default_value_t = 256, value_parser = usizes(1..=1 << 20))]
    pub prompt_chunk: usize,
    /// Read every prompt from its beginning, even if it shares a prefix with the text of a row,
    /// which could be copied.
    #[arg(long)]
    pub no_prefix_cache: bool,
    /// Queue a request as soon as its constraint was read: the model reads the prompt while the
    /// constraint is compiled. A request holds its row meanwhile.
    #[arg(long)]
    pub lazy: bool,
    /// Maximum number of most likely tokens whose log-probabilities a request may ask for.
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

    /// A key for requests, sent as `Authorization: Bearer`; repeat the option for each key.
    #[arg(long = "api-key", value_name = "KEY", env = "BURN_DFA_API_KEY", hide_env_values = true, value_parser = key)]
    pub api_keys: Vec<String>,
    /// An origin whose pages may call the server from a browser, or *; repeat the option for each
    /// origin. Default: none.
    #[arg(long = "allow-origin", value_name = "ORIGIN")]
    pub allowed_origins: Vec<String>,
    /// A name of this server that requests may have in their `Host`, besides localhost and its
    /// addresses, or *; repeat the option for each name. With a key, hosts are checked only if a
    /// name is given.
    #[arg(long = "allow-host", value_name = "NAME")]
    pub allowed_hosts: Vec<String>,
    /// Encode special tokens within messages as special tokens, as vLLM does, and not as text.
    #[arg(long)]
    pub special_tokens_in_messages: bool,

    /// Maximum number of answers that wait for a row; further requests are refused with 503.
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = usizes(1..=1 << 20))]
    pub max_queue: usize,
    /// Number of threads that read requests, render chat templates and encode prompts.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = usizes(1..=256))]
    pub prepare_threads: usize,
    /// Number of threads that compile constraints. Of several threads, slow constraints leave one
    /// to other constraints.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = usizes(1..=256))]
    pub compile_threads: usize,
    /// Maximum time of one compilation, all its steps together, in seconds.
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds, visible_alias = "max-seconds")]
    pub compile_deadline: Duration,
    /// Maximum number of bytes of one automaton or compiled constraint during compilation.
    #[arg(long, value_name = "BYTES", default_value_t = 256 << 20, visible_alias = "max-bytes")]
    pub compile_bytes: usize,
    /// The tokens that may spell forced text of constraints.
    #[command(flatten)]
    pub forced_text: ForcedTextArgs,
    /// Maximum number of bytes of compiled constraints that are kept in memory.
    #[arg(long, value_name = "BYTES", default_value_t = 256 << 20)]
    pub cache_bytes: usize,
    /// A folder that keeps compiled constraints, at most 1 GiB of them. Default: none.
    #[arg(long, value_name = "DIR")]
    pub cache_dir: Option<PathBuf>,

    /// Maximum number of states of the constraints that are in use at the same time. They are
    /// reserved on a GPU.
    #[arg(long, value_name = "N", default_value_t = 65_536, value_parser = usizes(32..=1 << 24))]
    pub arena_states: usize,
    /// Maximum number of token classes of a constraint.
    #[arg(long, value_name = "N", default_value_t = 512, value_parser = usizes(64..=1 << 16))]
    pub arena_classes: usize,
    /// Maximum number of exits of a procedure of a grammar, mostly 1.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = usizes(1..=16))]
    pub arena_exits: usize,
    /// Maximum number of frames that one token pushes on the stack of a row, roughly its opening
    /// brackets. On a GPU each thread reserves them.
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = usizes(1..=1024))]
    pub arena_pushes: usize,
    /// Memory of a GPU for the masks of visited states, in bytes. With 0 every step computes its
    /// masks.
    #[arg(long, value_name = "BYTES", default_value_t = TensorOptions::new().mask_rows_bytes)]
    pub mask_rows_bytes: usize,
    /// Maximum number of frames on the stack of a row, roughly the nesting depth of values.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = usizes(1..=1024), visible_alias = "max-frames")]
    pub frames: usize,

    /// Maximum number of bytes of a request.
    #[arg(long, value_name = "BYTES", default_value_t = 4 << 20)]
    pub max_body: usize,
    /// Maximum number of bytes of a prompt, after the chat template.
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 20)]
    pub max_prompt: usize,
    /// Maximum number of bytes of a schema, a grammar or another constraint.
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 20)]
    pub max_constraint: usize,
    /// Maximum number of tools of a request.
    #[arg(long, value_name = "N", default_value_t = 128)]
    pub max_tools: usize,
    /// Maximum number of answers to one request, its `n`.
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = usizes(1..=4096))]
    pub max_n: usize,
    /// Maximum number of simultaneous connections.
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = usizes(1..=1 << 20))]
    pub max_connections: usize,
    /// Maximum time that a client takes to send a request, or to receive data, in seconds.
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = seconds)]
    pub client_timeout: Duration,
    /// Maximum time that answers continue after the server was asked to end, in seconds.
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
            .with_constraints(self.rows)
            .with_states(self.arena_states)
            .with_classes(self.arena_classes)
            .with_stack(self.arena_exits, self.frames)
            .with_pushes(self.arena_pushes)
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
            tensors: TensorOptions::new()
                .with_capacity(self.capacity())
                .with_max_bytes(i32::MAX as usize)
                .with_mask_rows_bytes(self.mask_rows_bytes),
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
    fn the_engine_gets_the_memory_of_mask_rows() {
        let bytes = |arguments: &[&str]| {
            let config = Config::try_parse_from([&["burn-dfa-serve"], arguments].concat()).unwrap();
            config.engine(None).tensors.mask_rows_bytes
        };
        assert_eq!(bytes(&[]), 64 << 20);
        assert_eq!(bytes(&["--mask-rows-bytes", "0"]), 0);
    }

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
