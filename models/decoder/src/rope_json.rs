//! Rotary embeddings in a `config.json`, with the names of every version of transformers.
//!
//! The kind of `rope_scaling` is in `rope_type` or, before transformers 4.43, in `type`.
//! Transformers 5 has an object `rope_parameters`, which also holds the base. Gemma 3 has two of
//! them, one per kind of layer.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::error::DecoderError;
use crate::family::Family;
use crate::frequencies::{Llama3Scaling, Rope, RopeScaling, YarnScaling, mscale};
use crate::raw_config::{Defaults, FULL, RawConfig, SLIDING};

const PARAMETERS: &str = "rope_parameters";
const SLIDING_PARAMETERS: &str = "rope_parameters.sliding_attention";

/// The base of layers with a sliding window in Gemma 3, if the file does not give it.
const LOCAL_THETA: f64 = 1e4;

/// The fields of the object.
#[derive(Clone, Debug, Default, Deserialize)]
struct RawRope {
    rope_type: Option<String>,
    #[serde(rename = "type")]
    old_type: Option<String>,
    rope_theta: Option<f64>,
    factor: Option<f64>,
    low_freq_factor: Option<f64>,
    high_freq_factor: Option<f64>,
    original_max_position_embeddings: Option<usize>,
    attention_factor: Option<f64>,
    beta_fast: Option<f64>,
    beta_slow: Option<f64>,
    mscale: Option<f64>,
    mscale_all_dim: Option<f64>,
    truncate: Option<bool>,
    partial_rotary_factor: Option<f64>,
    /// All other fields.
    #[serde(flatten)]
    unknown: Map<String, Value>,
}

/// The frequencies of all layers, and the frequencies of layers with a sliding window if the family
/// has separate ones.
pub(crate) fn read(
    raw: &RawConfig,
    family: Family,
    positions: usize,
) -> Result<(Rope, Option<Rope>), DecoderError> {
    let theta = Defaults::of(family).theta;
    let original = raw.original_max_position_embeddings.unwrap_or(positions);
    let parameters = raw.rope_parameters.as_ref();
    let part = |kind| parameters.and_then(|all| all.get(kind)).filter(|part| !part.is_null());
    let is_nested = part(FULL).is_some() || part(SLIDING).is_some();
    if is_nested != (family == Family::Gemma3) && parameters.is_some() {
        let message = match family {
            Family::Gemma3 => format!("must be two objects, {FULL} and {SLIDING}"),
            _ => format!("differs between layers, which is not supported in {family}"),
        };
        return Err(DecoderError::config(PARAMETERS, message));
    }
    let scaling = raw.rope_scaling.as_ref();
    if family != Family::Gemma3 {
        let rope = merge(PARAMETERS, parameters, scaling, raw.rope_theta.unwrap_or(theta), original)?;
        return Ok((rope, None));
    }
    let full = merge(PARAMETERS, part(FULL), scaling, raw.rope_theta.unwrap_or(theta), original)?;
    let theta = raw.rope_local_base_freq.unwrap_or(LOCAL_THETA);
    let sliding = merge(SLIDING_PARAMETERS, part(SLIDING), None, theta, original)?;
    Ok((full, Some(sliding)))
}

/// Reads the newer and the older object. If both exist, they must agree.
fn merge(
    field: &'static str,
    new: Option<&Value>,
    old: Option<&Value>,
    theta: f64,
    original: usize,
) -> Result<Rope, DecoderError> {
    let read = |value: &Value| {
        RawRope::deserialize(value).map_err(DecoderError::config_json)?.rope(field, theta, original)
    };
    match (new.map(read).transpose()?, old.map(read).transpose()?) {
        (Some(new), Some(old)) if new.scaling != old.scaling => {
            Err(DecoderError::config("rope_scaling", "is not what rope_parameters says"))
        }
        (Some(rope), _) | (None, Some(rope)) => Ok(rope),
        (None, None) => Ok(Rope::new(theta)),
    }
}

/// The frequencies of an object that holds a base.
#[cfg(test)]
pub(crate) fn of_parameters(parameters: &Value) -> Result<Rope, DecoderError> {
    merge(PARAMETERS, Some(parameters), None, f64::NAN, 0)
}

impl RawRope {
    fn rope(&self, field: &'static str, theta: f64, original: usize) -> Result<Rope, DecoderError> {
        if let Some(name) = self.unknown.keys().next() {
            return Err(DecoderError::config(field, format!("has {name:?}, which is not supported")));
        }
        if self.partial_rotary_factor.is_some_and(|factor| factor != 1.0) {
            return Err(DecoderError::config(field, "has a partial_rotary_factor, which is not supported"));
        }
        let need = |name: &str, value: Option<f64>| {
            value.ok_or_else(|| DecoderError::config(field, format!("has no {name}")))
        };
        let original = self.original_max_position_embeddings.unwrap_or(original);
        let kind = self.rope_type.as_deref().or(self.old_type.as_deref());
        let scaling = match kind {
            None | Some("default") => None,
            Some("linear") => Some(RopeScaling::Linear { factor: need("factor", self.factor)? }),
            Some("llama3") => Some(RopeScaling::Llama3(Llama3Scaling {
                factor: need("factor", self.factor)?,
                low_freq_factor: need("low_freq_factor", self.low_freq_factor)?,
                high_freq_factor: need("high_freq_factor", self.high_freq_factor)?,
                original_max_position_embeddings: original,
            })),
            Some("yarn") => {
                let yarn = YarnScaling::new(need("factor", self.factor)?, original);
                // A scale of 0 counts as missing.
                let scales =
                    [self.mscale, self.mscale_all_dim].map(|scale| scale.filter(|scale| *scale != 0.0));
                let scaled = match scales {
                    [Some(one), Some(all)] => mscale(yarn.factor, one) / mscale(yarn.factor, all),
                    _ => yarn.attention_factor,
                };
                Some(RopeScaling::Yarn(YarnScaling {
                    attention_factor: self.attention_factor.unwrap_or(scaled),
                    beta_fast: self.beta_fast.unwrap_or(yarn.beta_fast),
                    beta_slow: self.beta_slow.unwrap_or(yarn.beta_slow),
                    truncate: self.truncate.unwrap_or(true),
                    ..yarn
                }))
            }
            Some(other) => return Err(DecoderError::RopeType { found: other.to_string() }),
        };
        Ok(Rope { theta: self.rope_theta.unwrap_or(theta), scaling })
    }
}

/// A scaling as `rope_scaling`; `null` without a scaling.
pub(crate) fn write(rope: &Rope) -> Value {
    match rope.scaling {
        None => Value::Null,
        Some(RopeScaling::Linear { factor }) => json!({ "rope_type": "linear", "factor": factor }),
        Some(RopeScaling::Llama3(scaling)) => json!({
            "rope_type": "llama3",
            "factor": scaling.factor,
            "low_freq_factor": scaling.low_freq_factor,
            "high_freq_factor": scaling.high_freq_factor,
            "original_max_position_embeddings": scaling.original_max_position_embeddings,
        }),
        Some(RopeScaling::Yarn(scaling)) => json!({
            "rope_type": "yarn",
            "factor": scaling.factor,
            "original_max_position_embeddings": scaling.original_max_position_embeddings,
            "attention_factor": scaling.attention_factor,
            "beta_fast": scaling.beta_fast,
            "beta_slow": scaling.beta_slow,
            "truncate": scaling.truncate,
        }),
    }
}

/// Writes an object of `rope_parameters`.
pub(crate) fn write_parameters(rope: &Rope) -> Value {
    let mut object = match write(rope) {
        Value::Object(object) => object,
        _ => Map::from_iter([("rope_type".to_string(), json!("default"))]),
    };
    object.insert("rope_theta".into(), json!(rope.theta));
    Value::Object(object)
}
