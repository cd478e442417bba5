//! The architectures of models, and the names of their tensors in a Hugging Face folder.

use crate::error::GgufError;
use crate::file::{GgufFile, Tensor};
use crate::metadata::Metadata;

const KEY: &str = "general.architecture";

/// The architecture of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Architecture {
    /// Llama, SmolLM2, TinyLlama and Mistral.
    Llama,
    Qwen2,
    Qwen3,
    SmolLm3,
    Gemma3,
}

impl Architecture {
    const ALL: [Self; 5] = [Self::Llama, Self::Qwen2, Self::Qwen3, Self::SmolLm3, Self::Gemma3];

    pub(crate) fn of(metadata: &Metadata) -> Result<Self, GgufError> {
        let found = metadata.text(KEY)?.ok_or_else(|| GgufError::metadata(KEY, "is missing"))?;
        Self::ALL.into_iter().find(|architecture| architecture.name() == found).ok_or_else(|| {
            let known = Self::ALL.map(Self::name).join(", ");
            GgufError::metadata(KEY, format!("is {found:?}; known are {known}"))
        })
    }

    /// Its name in a GGUF file, which is the beginning of its keys.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Llama => "llama",
            Self::Qwen2 => "qwen2",
            Self::Qwen3 => "qwen3",
            Self::SmolLm3 => "smollm3",
            Self::Gemma3 => "gemma3",
        }
    }

    /// The `model_type` of its `config.json`.
    pub(crate) fn model_type(self) -> &'static str {
        if self == Self::Gemma3 { "gemma3_text" } else { self.name() }
    }

    /// The class in transformers.
    pub(crate) fn class(self) -> &'static str {
        match self {
            Self::Llama => "LlamaForCausalLM",
            Self::Qwen2 => "Qwen2ForCausalLM",
            Self::Qwen3 => "Qwen3ForCausalLM",
            Self::SmolLm3 => "SmolLM3ForCausalLM",
            Self::Gemma3 => "Gemma3ForCausalLM",
        }
    }

    /// Whether the rows of queries and keys are stored in the order of another rotary embedding.
    fn interleaves(self) -> bool {
        matches!(self, Self::Llama | Self::SmolLm3)
    }

    /// The name of a tensor in a Hugging Face folder; `None` if it is no parameter.
    fn rename(self, name: &str) -> Option<String> {
        let whole = match name {
            "token_embd.weight" => Some("model.embed_tokens.weight"),
            "output_norm.weight" => Some("model.norm.weight"),
            "output.weight" => Some("lm_head.weight"),
            _ => None,
        };
        if let Some(whole) = whole {
            return Some(whole.into());
        }
        let (layer, rest) = name.strip_prefix("blk.")?.split_once('.')?;
        let (part, kind) = rest.rsplit_once('.')?;
        let gemma = self == Self::Gemma3;
        let part = match part {
            "attn_norm" => "input_layernorm",
            "attn_q" => "self_attn.q_proj",
            "attn_k" => "self_attn.k_proj",
            "attn_v" => "self_attn.v_proj",
            "attn_output" => "self_attn.o_proj",
            "attn_q_norm" => "self_attn.q_norm",
            "attn_k_norm" => "self_attn.k_norm",
            "ffn_norm" if gemma => "pre_feedforward_layernorm",
            "ffn_norm" => "post_attention_layernorm",
            "post_attention_norm" if gemma => "post_attention_layernorm",
            "post_ffw_norm" if gemma => "post_feedforward_layernorm",
            "ffn_gate" => "mlp.gate_proj",
            "ffn_up" => "mlp.up_proj",
            "ffn_down" => "mlp.down_proj",
            _ => return None,
        };
        Some(format!("model.layers.{layer}.{part}.{kind}"))
    }
}

/// A parameter of a model in a [`GgufFile`], and what its numbers are in a Hugging Face folder.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Weight {
    /// Its name in a Hugging Face folder, such as `model.layers.0.self_attn.q_proj.weight`.
    pub name: String,
    /// Its blocks.
    pub tensor: Tensor,
    /// The order of its rows.
    pub order: RowOrder,
    /// The number to add to each of its numbers. The norms of Gemma are stored with one added.
    pub shift: f32,
}

/// The order of the rows of a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowOrder {
    /// As in a Hugging Face folder.
    Same,
    /// The two halves of each head of this many rows are interleaved: 0, 2, 1, 3 for heads of four
    /// rows. The queries and keys of Llama are stored so.
    Interleaved(usize),
}

impl RowOrder {
    /// The row in the file of a row in a Hugging Face folder.
    ///
    /// ```
    /// use burn_dfa_gguf::RowOrder;
    ///
    /// let stored: Vec<usize> = (0..8).map(|row| RowOrder::Interleaved(4).stored(row)).collect();
    /// assert_eq!(stored, [0, 2, 1, 3, 4, 6, 5, 7]);
    /// ```
    pub fn stored(self, row: usize) -> usize {
        match self {
            Self::Interleaved(head @ 2..) => {
                let (start, within) = (row / head * head, row % head);
                start + within % (head / 2) * 2 + within / (head / 2)
            }
            _ => row,
        }
    }
}

impl GgufFile {
    /// The parameters of the model. `head_dim` is the width of a head.
    ///
    /// # Errors
    /// The architecture is not supported, or a tensor is no parameter of it.
    pub fn weights(&self, head_dim: usize) -> Result<Vec<Weight>, GgufError> {
        let architecture = Architecture::of(self.metadata())?;
        let weight = |tensor: &Tensor| {
            let Some(name) = architecture.rename(&tensor.name) else {
                let message = format!("has no place in a model of the architecture {}", architecture.name());
                return Err(GgufError::tensor(&tensor.name, message));
            };
            let is_rotated = name.contains(".q_proj.") || name.contains(".k_proj.");
            let interleaved = architecture.interleaves() && is_rotated;
            if interleaved && !tensor.shape.first().is_some_and(|rows| rows.is_multiple_of(head_dim)) {
                return Err(GgufError::tensor(
                    &tensor.name,
                    format!("has no whole heads of {head_dim} rows"),
                ));
            }
            let plus_one = architecture == Architecture::Gemma3 && name.ends_with("norm.weight");
            Ok(Weight {
                tensor: tensor.clone(),
                order: if interleaved { RowOrder::Interleaved(head_dim) } else { RowOrder::Same },
                shift: if plus_one { -1.0 } else { 0.0 },
                name,
            })
        };
        self.tensors.iter().filter(|tensor| !is_table(&tensor.name)).map(weight).collect()
    }

    /// The tokenizer, as the files of a Hugging Face folder.
    ///
    /// # Errors
    /// A key is missing or has another type, or the kind of tokenizer is not supported.
    pub fn tokenizer_files(&self) -> Result<crate::TokenizerFiles, GgufError> {
        crate::TokenizerFiles::new(self.metadata())
    }
}

/// Whether a tensor is a table that is computed from the configuration.
fn is_table(name: &str) -> bool {
    name == "rope_freqs.weight" || name.ends_with(".attn_rot_embd") || name.ends_with(".rope_freqs.weight")
}
