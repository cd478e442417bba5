//! How models write calls.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{Reasoning, harmony};
use crate::{Style, Whitespace};
use burn_dfa_common::{Error, Result};

/// How a model writes calls.
///
/// ```
/// use burn_dfa_tokens::constraint::ToolFormat;
///
/// let template = "… <tool_call>\n\
///     {\"name\": <function-name>, \"arguments\": <args-json-object>}\n</tool_call> …";
/// assert_eq!(ToolFormat::of_template(template), Some(ToolFormat::Hermes));
/// assert_eq!("qwen_xml".parse(), Ok(ToolFormat::QwenXml));
/// assert_eq!(ToolFormat::DeepSeek.to_string(), "deepseek");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolFormat {
    /// `{"name": …, "arguments": …}`, or an array of such objects, for models without training on
    /// tool calls.
    #[default]
    Plain,
    /// `<tool_call>\n{"name": …, "arguments": …}\n</tool_call>`, of Hermes and Qwen.
    Hermes,
    /// `{"name": …, "parameters": …}`, of Llama 3.1 to 3.3.
    Llama31,
    /// `[TOOL_CALLS][{"name": …, "arguments": …}]`, of Mistral up to the seventh tokenizer.
    Mistral,
    /// `<tool_call>\n<function=name>\n<parameter=key>\nvalue\n</parameter>\n</function>\n</tool_call>`,
    /// of Qwen3-Coder and Qwen3.5.
    QwenXml,
    /// `<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>name`, and JSON in a fence, of
    /// DeepSeek V3 and R1.
    #[serde(rename = "deepseek")]
    DeepSeek,
    /// `<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>name<｜tool▁sep｜>…`, of DeepSeek V3.1.
    #[serde(rename = "deepseek_v31")]
    DeepSeekV31,
    /// Messages in channels, of gpt-oss.
    Harmony,
}

/// The mark before a call of Hermes and Qwen.
const TOOL_CALL: &str = "<tool_call>";
/// The mark before the calls of Mistral.
const TOOL_CALLS: &str = "[TOOL_CALLS]";
/// The marks around the calls of DeepSeek.
const DEEPSEEK_BEGIN: &str = "<｜tool▁calls▁begin｜>";
const DEEPSEEK_END: &str = "<｜tool▁calls▁end｜>";

/// The texts around calls. A call is `before`, the name of the tool, `between`, arguments and
/// `after`.
pub(super) struct Wire {
    /// The texts that distinguish a call from text.
    pub(super) triggers: &'static [&'static str],
    pub(super) layout: Layout,
    pub(super) before: &'static str,
    pub(super) between: &'static str,
    pub(super) after: &'static str,
    /// How arguments are written.
    pub(super) style: Style,
}

/// The arrangement of calls.
pub(super) enum Layout {
    /// Each call separately.
    Apart,
    /// Together: `open`, calls with `separator` between two of them, `close`.
    Section { open: &'static str, separator: &'static str, close: &'static str },
    /// A single call separately, or several together.
    Either { open: &'static str, separator: &'static str, close: &'static str },
}

impl ToolFormat {
    /// Every format.
    pub const ALL: [Self; 8] = [
        Self::Plain,
        Self::Hermes,
        Self::Llama31,
        Self::Mistral,
        Self::QwenXml,
        Self::DeepSeek,
        Self::DeepSeekV31,
        Self::Harmony,
    ];

    /// The name in options and in JSON.
    const fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Hermes => "hermes",
            Self::Llama31 => "llama31",
            Self::Mistral => "mistral",
            Self::QwenXml => "qwen_xml",
            Self::DeepSeek => "deepseek",
            Self::DeepSeekV31 => "deepseek_v31",
            Self::Harmony => "harmony",
        }
    }

    /// The format of the model with this chat template, detected by marks in the text; `None` if
    /// unknown. [`Plain`](Self::Plain) is never detected.
    pub fn of_template(template: &str) -> Option<Self> {
        let has = |mark: &str| template.contains(mark);
        if has("<|channel|>") && has("<|message|>") {
            Some(Self::Harmony)
        } else if has(DEEPSEEK_BEGIN) {
            Some(if has("```json") { Self::DeepSeek } else { Self::DeepSeekV31 })
        } else if has(TOOL_CALLS) {
            (!has("[ARGS]")).then_some(Self::Mistral)
        } else if has(TOOL_CALL) {
            match (has("<function=") && has("<parameter="), has("arguments") && !has("<arg_key>")) {
                (true, _) => Some(Self::QwenXml),
                (_, true) => Some(Self::Hermes),
                _ => None,
            }
        } else if has("<|start_header_id|>") && has("\"parameters\": ") && !has("<function=") {
            Some(Self::Llama31)
        } else {
            None
        }
    }

    /// The usual reasoning of models of this format, if any: `<think>…</think>`, in Harmony the
    /// channel `analysis`. The caller knows whether the template opens the reasoning and whether
    /// the model omits it.
    pub fn reasoning(self) -> Option<Reasoning> {
        match self {
            Self::Plain | Self::Llama31 | Self::Mistral => None,
            Self::Hermes | Self::QwenXml => Some(Reasoning::think().with_after("\n\n")),
            Self::DeepSeek | Self::DeepSeekV31 => Some(Reasoning::think()),
            Self::Harmony => Some(harmony::reasoning()),
        }
    }

    /// White space within arguments, as models of this format write it. If chat templates write
    /// calls with `tojson`, which is Python's `json.dumps`, it is [spaced](Whitespace::Spaced). The
    /// templates of DeepSeek and Harmony copy the arguments from an earlier answer, so it is
    /// [flexible](Whitespace::FLEXIBLE) for them.
    pub fn whitespace(self) -> Whitespace {
        match self {
            Self::Plain | Self::Hermes | Self::Llama31 | Self::Mistral | Self::QwenXml => Whitespace::Spaced,
            Self::DeepSeek | Self::DeepSeekV31 | Self::Harmony => Whitespace::FLEXIBLE,
        }
    }

    /// The marks that tokenizers may have as special tokens.
    pub(super) fn marks(self) -> &'static [&'static str] {
        match self {
            Self::Plain | Self::Llama31 => &[],
            Self::Hermes | Self::QwenXml => &[TOOL_CALL, "</tool_call>"],
            Self::Mistral => &[TOOL_CALLS],
            Self::DeepSeek | Self::DeepSeekV31 => &[
                DEEPSEEK_BEGIN,
                "<｜tool▁call▁begin｜>",
                "<｜tool▁sep｜>",
                "<｜tool▁call▁end｜>",
                DEEPSEEK_END,
            ],
            Self::Harmony => &harmony::MARKS,
        }
    }

    /// The texts around calls; `None` for Harmony, in which calls are messages.
    pub(super) fn wire(self) -> Option<Wire> {
        let section = |open, separator, close| Layout::Section { open, separator, close };
        let json = Wire {
            triggers: &[],
            layout: Layout::Apart,
            before: "{\"name\": \"",
            between: "\", \"arguments\": ",
            after: "}",
            style: Style::Json,
        };
        Some(match self {
            Self::Plain => Wire {
                triggers: &["{\"name\":", "[{\"name\":"],
                layout: Layout::Either { open: "[", separator: ", ", close: "]" },
                ..json
            },
            Self::Hermes => Wire {
                triggers: &[TOOL_CALL],
                before: "<tool_call>\n{\"name\": \"",
                after: "}\n</tool_call>",
                ..json
            },
            Self::Llama31 => Wire { triggers: &["{\"name\":"], between: "\", \"parameters\": ", ..json },
            Self::Mistral => {
                Wire { triggers: &[TOOL_CALLS], layout: section("[TOOL_CALLS][", ", ", "]"), ..json }
            }
            Self::QwenXml => Wire {
                triggers: &[TOOL_CALL],
                layout: Layout::Apart,
                before: "<tool_call>\n<function=",
                between: ">\n",
                after: "\n</function>\n</tool_call>",
                style: Style::QwenXml,
            },
            Self::DeepSeek => Wire {
                triggers: &[DEEPSEEK_BEGIN],
                layout: section(DEEPSEEK_BEGIN, "\n", DEEPSEEK_END),
                before: "<｜tool▁call▁begin｜>function<｜tool▁sep｜>",
                between: "\n```json\n",
                after: "\n```<｜tool▁call▁end｜>",
                style: Style::Json,
            },
            Self::DeepSeekV31 => Wire {
                triggers: &[DEEPSEEK_BEGIN],
                layout: section(DEEPSEEK_BEGIN, "", DEEPSEEK_END),
                before: "<｜tool▁call▁begin｜>",
                between: "<｜tool▁sep｜>",
                after: "<｜tool▁call▁end｜>",
                style: Style::Json,
            },
            Self::Harmony => return None,
        })
    }
}

impl fmt::Display for ToolFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for ToolFormat {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name).ok_or_else(|| {
            let known = Self::ALL.map(Self::name).join(", ");
            Error::input(format!("{name:?} is no format of calls; these are: {known}"))
        })
    }
}
