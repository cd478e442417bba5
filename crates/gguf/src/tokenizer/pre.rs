//! How texts are split before merges apply: the name in `tokenizer.ggml.pre`, as the
//! `pre_tokenizer` of a `tokenizer.json`.
//!
//! llama.cpp's [vocabulary](https://github.com/ggml-org/llama.cpp/blob/master/src/llama-vocab.cpp)
//! defines the names. The expressions come from the `tokenizer.json` files of the models that gave
//! the names.

use serde_json::{Value, json};

/// Numbers of at most three digits.
const LLAMA_3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
/// As [`LLAMA_3`], and every digit alone.
const QWEN_2: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
/// Words are split before a capital letter that follows a small one.
const TEKKEN: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";
/// The splits of llama.cpp for a file that names none, one after the other.
const UNNAMED: [&str; 4] = [
    r"[\p{P}$+<=>^~|]+",
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)",
    r"\p{N}+",
    r"[0-9][0-9][0-9]",
];

/// How texts are split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PreTokenizer {
    Unnamed,
    Gpt2,
    /// As GPT-2, and every digit alone.
    SmolLm,
    /// Merges need not build a text that is a token.
    Llama3,
    /// As Llama 3, without its shortcut.
    Smaug,
    /// Texts are normalized to composed characters.
    Qwen2,
    DeepSeekQwen,
    Tekken,
}

impl PreTokenizer {
    /// The kind of a name; without a name, what llama.cpp does.
    pub(super) fn named(name: Option<&str>) -> Result<Self, String> {
        Ok(match name {
            None | Some("default") => Self::Unnamed,
            Some("gpt-2" | "phi-2" | "olmo" | "mpt") => Self::Gpt2,
            Some("smollm" | "starcoder" | "refact" | "codeshell") => Self::SmolLm,
            Some("llama-bpe" | "llama3" | "llama-v3" | "falcon3") => Self::Llama3,
            Some("smaug-bpe" | "dbrx") => Self::Smaug,
            Some("qwen2" | "megrez") => Self::Qwen2,
            Some("deepseek-r1-qwen") => Self::DeepSeekQwen,
            Some("tekken") => Self::Tekken,
            Some(other) => {
                return Err(format!(
                    "is {other:?}; default, gpt-2, smollm, starcoder, llama-bpe, smaug-bpe, qwen2, deepseek-r1-qwen and \
                     tekken are supported"
                ));
            }
        })
    }

    /// The `pre_tokenizer`.
    pub(super) fn splits(self) -> Value {
        let by = |regex: &str| json!({"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": false});
        let bytes = |splits: bool| json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": splits});
        let digits = json!({"type": "Digits", "individual_digits": true});
        let parts = match self {
            Self::Gpt2 => return bytes(true),
            Self::Unnamed => UNNAMED.map(by).into_iter().chain([bytes(false)]).collect(),
            Self::SmolLm => vec![digits, bytes(true)],
            Self::Llama3 | Self::Smaug => vec![by(LLAMA_3), bytes(false)],
            Self::Qwen2 | Self::DeepSeekQwen => vec![by(QWEN_2), bytes(false)],
            Self::Tekken => vec![by(TEKKEN), bytes(false)],
        };
        json!({"type": "Sequence", "pretokenizers": parts})
    }

    /// The `normalizer`.
    pub(super) fn normalizer(self) -> Value {
        if self == Self::Qwen2 { json!({"type": "NFC"}) } else { Value::Null }
    }

    /// Whether a split text that is a token becomes it, even if no merges build it.
    pub(super) fn ignores_merges(self) -> bool {
        matches!(self, Self::Llama3 | Self::Tekken)
    }

    /// Whether texts begin with a token, if the file does not say.
    pub(super) fn adds_bos(self) -> bool {
        matches!(self, Self::Llama3 | Self::Tekken)
    }
}
