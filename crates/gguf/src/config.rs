//! The metadata of a model, as the `config.json` of a Hugging Face folder.
//!
//! The keys are described in [gguf.md](https://github.com/ggml-org/ggml/blob/master/docs/gguf.md).

use serde_json::{Value, json};

use crate::architecture::Architecture;
use crate::error::GgufError;
use crate::file::GgufFile;

const EMBEDDINGS: &str = "token_embd.weight";
const OUTPUT: &str = "output.weight";
/// The factors of the rotary frequencies: the frequencies of Llama 3.1 and later, divided.
const ROPE_FACTORS: &str = "rope_freqs.weight";
/// Values of Llama 3.1 and later, which a file does not store.
const LLAMA_3: Llama3 = Llama3 { low: 1.0, high: 4.0, original: 8192.0 };
/// Greatest relative difference between stored and computed factors, which are 32-bit floats.
const TOLERANCE: f64 = 1e-4;
/// The number of layers of Gemma 3 27B, which scales scores differently.
const GEMMA_3_27B: u64 = 62;

/// Settings that no supported model has, and the values without an effect.
const REFUSED: [(&str, f64); 8] = [
    ("expert_count", 0.0),
    ("attn_logit_softcapping", 0.0),
    ("final_logit_softcapping", 0.0),
    ("attention.clamp_kqv", 0.0),
    ("attention.max_alibi_bias", 0.0),
    ("logit_scale", 1.0),
    ("residual_scale", 1.0),
    ("embedding_scale", 1.0),
];

struct Llama3 {
    low: f64,
    high: f64,
    original: f64,
}

impl GgufFile {
    /// The rows of the embedding matrix, which is the width of the logits.
    ///
    /// # Errors
    /// The file has no embedding matrix.
    pub fn vocab_size(&self) -> Result<usize, GgufError> {
        let embeddings = self.tensor(EMBEDDINGS).filter(|tensor| tensor.shape.len() == 2);
        embeddings
            .map(|tensor| tensor.shape[0])
            .ok_or_else(|| GgufError::tensor(EMBEDDINGS, "is missing, or no matrix"))
    }

    /// The `config.json` of the Hugging Face folder that the file was made from, as far as the file
    /// knows it. `rope_factors` reads the numbers of a tensor of 32-bit floats.
    ///
    /// ```no_run
    /// use burn_dfa_gguf::GgufFile;
    ///
    /// let file = GgufFile::open("SmolLM2-135M-Instruct.Q4_1.gguf")?;
    /// let config = file.config(|_| Ok(Vec::new()))?;
    /// assert_eq!(config["num_hidden_layers"], 30);
    /// # Ok::<(), burn_dfa_gguf::GgufError>(())
    /// ```
    ///
    /// # Errors
    /// The architecture or a setting is not supported, or a key is missing or has another type.
    pub fn config<E: From<GgufError>>(
        &self,
        rope_factors: impl FnOnce(&crate::Tensor) -> Result<Vec<f32>, E>,
    ) -> Result<Value, E> {
        let keys = Keys { file: self, architecture: Architecture::of(self.metadata())? };
        keys.refuse_unsupported()?;
        let mut config = keys.sizes()?;
        keys.window(&mut config)?;
        let theta = keys.number("rope.freq_base")?.unwrap_or(1e4);
        config["rope_theta"] = json!(theta);
        config["rope_scaling"] = match self.tensor(ROPE_FACTORS) {
            Some(tensor) => keys.llama3(&rope_factors(tensor)?, theta)?,
            None => keys.scaling()?,
        };
        Ok(config)
    }
}

/// The keys of a file that begin with the name of its architecture.
struct Keys<'a> {
    file: &'a GgufFile,
    architecture: Architecture,
}

impl Keys<'_> {
    fn key(&self, name: &str) -> String {
        format!("{}.{name}", self.architecture.name())
    }

    fn number(&self, name: &str) -> Result<Option<f64>, GgufError> {
        self.file.metadata().number(&self.key(name))
    }

    fn unsigned(&self, name: &str) -> Result<Option<u64>, GgufError> {
        let key = self.key(name);
        if self.file.metadata().is_array(&key) {
            return Err(GgufError::metadata(key, "differs between layers, which is not supported"));
        }
        self.file.metadata().unsigned(&key)
    }

    fn need<T>(&self, name: &str, value: Option<T>) -> Result<T, GgufError> {
        value.ok_or_else(|| GgufError::metadata(self.key(name), "is missing"))
    }

    fn refuse_unsupported(&self) -> Result<(), GgufError> {
        for (name, without_effect) in REFUSED {
            if let Some(number) = self.number(name)?.filter(|number| *number != without_effect) {
                return Err(GgufError::metadata(
                    self.key(name),
                    format!("is {number}, which is not supported"),
                ));
            }
        }
        let causal = self.key("attention.causal");
        if self.file.metadata().truth(&causal)? == Some(false) {
            return Err(GgufError::metadata(
                causal,
                "is false; a model that reads both ways cannot generate",
            ));
        }
        Ok(())
    }

    /// The sizes, the norms and the special tokens.
    fn sizes(&self) -> Result<Value, GgufError> {
        let size = |name| self.need(name, self.unsigned(name)?);
        let (hidden, heads) = (size("embedding_length")?, size("attention.head_count")?);
        let head_dim = match self.unsigned("attention.key_length")? {
            Some(width) => width,
            None if heads > 0 && hidden.is_multiple_of(heads) => hidden / heads,
            None => {
                let message = format!("is {heads}, which does not divide the {hidden} of embedding_length");
                return Err(GgufError::metadata(self.key("attention.head_count"), message));
            }
        };
        for name in ["attention.value_length", "rope.dimension_count"] {
            if let Some(width) = self.unsigned(name)?.filter(|width| *width != head_dim) {
                let message = format!("is {width}, which is not supported for heads of {head_dim}");
                return Err(GgufError::metadata(self.key(name), message));
            }
        }
        let epsilon = "attention.layer_norm_rms_epsilon";
        let id = |name: &str| self.file.metadata().unsigned(&format!("tokenizer.ggml.{name}_token_id"));
        Ok(json!({
            "architectures": [self.architecture.class()],
            "model_type": self.architecture.model_type(),
            "vocab_size": self.file.vocab_size()?,
            "hidden_size": hidden,
            "intermediate_size": size("feed_forward_length")?,
            "num_hidden_layers": size("block_count")?,
            "num_attention_heads": heads,
            "num_key_value_heads": self.unsigned("attention.head_count_kv")?.unwrap_or(heads),
            "head_dim": head_dim,
            "max_position_embeddings": size("context_length")?,
            "rms_norm_eps": self.need(epsilon, self.number(epsilon)?)?,
            "tie_word_embeddings": self.file.tensor(OUTPUT).is_none(),
            "bos_token_id": id("bos")?,
            "eos_token_id": id("eos")?,
        }))
    }

    /// The sliding window, and the settings that only one family has.
    fn window(&self, config: &mut Value) -> Result<(), GgufError> {
        let window = self.unsigned("attention.sliding_window")?.filter(|window| *window > 0);
        match self.architecture {
            // A window in every layer is a setting of Mistral.
            Architecture::Llama if window.is_some() => {
                config["model_type"] = json!("mistral");
                config["architectures"] = json!(["MistralForCausalLM"]);
                config["sliding_window"] = json!(window);
            }
            Architecture::Gemma3 => {
                let pattern = self.unsigned("attention.sliding_window_pattern")?;
                config["sliding_window"] = json!(window);
                config["sliding_window_pattern"] =
                    json!(if window.is_none() { 1 } else { pattern.unwrap_or(6) });
                config["rope_local_base_freq"] = json!(self.number("rope.freq_base_swa")?.unwrap_or(1e4));
                config["query_pre_attn_scalar"] = match config["num_hidden_layers"].as_u64() {
                    Some(GEMMA_3_27B) => {
                        let [hidden, heads] =
                            ["hidden_size", "num_attention_heads"].map(|name| config[name].as_u64());
                        json!(hidden.zip(heads).and_then(|(hidden, heads)| hidden.checked_div(heads)))
                    }
                    _ => config["head_dim"].clone(),
                };
            }
            // The others have a window that they do not use.
            _ => {}
        }
        Ok(())
    }

    /// The scaling of rotary frequencies.
    fn scaling(&self) -> Result<Value, GgufError> {
        let kind_key = self.key("rope.scaling.type");
        let kind = self.file.metadata().text(&kind_key)?;
        let factor = self.number("rope.scaling.factor")?;
        let factor = if kind.is_none() { factor.or(self.number("rope.scale_linear")?) } else { factor };
        match (kind, factor) {
            (Some("none"), _) | (None, None | Some(0.0 | 1.0)) => Ok(Value::Null),
            (Some("linear") | None, _) => {
                Ok(json!({"rope_type": "linear", "factor": self.need("rope.scaling.factor", factor)?}))
            }
            (Some("yarn"), _) => {
                let mut scaling = json!({
                    "rope_type": "yarn",
                    "factor": self.need("rope.scaling.factor", factor)?,
                });
                let original = "rope.scaling.original_context_length";
                scaling["original_max_position_embeddings"] =
                    json!(self.need(original, self.unsigned(original)?)?);
                for (name, field) in [("yarn_beta_fast", "beta_fast"), ("yarn_beta_slow", "beta_slow")] {
                    if let Some(number) = self.number(&format!("rope.scaling.{name}"))? {
                        scaling[field] = json!(number);
                    }
                }
                for name in [
                    "rope.scaling.attn_factor",
                    "rope.scaling.yarn_attn_factor",
                    "rope.scaling.yarn_ext_factor",
                ] {
                    if let Some(number) = self.number(name)?.filter(|number| *number != 1.0) {
                        return Err(GgufError::metadata(
                            self.key(name),
                            format!("is {number}, which is not supported"),
                        ));
                    }
                }
                Ok(scaling)
            }
            (Some(other), _) => {
                let message = format!("is {other:?}; \"none\", \"linear\" and \"yarn\" are supported");
                Err(GgufError::metadata(kind_key, message))
            }
        }
    }

    /// The scaling `llama3` with these factors of frequencies. A file stores the factors alone;
    /// they are compared with the factors of the constants that all published models have.
    fn llama3(&self, factors: &[f32], theta: f64) -> Result<Value, GgufError> {
        let Llama3 { low, high, original } = LLAMA_3;
        let factor = f64::from(factors.iter().copied().fold(1.0, f32::max));
        let width = factors.len() as f64 * 2.0;
        let computed = (0..factors.len()).map(|pair| {
            let frequency = theta.powf(2.0 * pair as f64 / width).recip();
            let turns = original * frequency / (2.0 * std::f64::consts::PI);
            let smooth = ((turns - low) / (high - low)).clamp(0.0, 1.0);
            ((1.0 - smooth) / factor + smooth).recip()
        });
        let is_close =
            |(stored, computed): (&f32, f64)| (f64::from(*stored) / computed - 1.0).abs() < TOLERANCE;
        if factors.iter().all(|factor| *factor == 1.0) {
            return Ok(Value::Null);
        }
        if !factors.iter().zip(computed).all(is_close) {
            return Err(GgufError::tensor(
                ROPE_FACTORS,
                "has factors other than those of Llama 3.1 and later",
            ));
        }
        Ok(json!({
            "rope_type": "llama3", "factor": factor, "low_freq_factor": low, "high_freq_factor": high,
            "original_max_position_embeddings": original as u64,
        }))
    }
}
