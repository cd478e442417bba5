//! Reading a model: from a Hugging Face folder, or from bytes that are compiled in.

use std::path::Path;

use burn::module::{Module, ModuleMapper, Param};
use burn::tensor::{DType, Device, FloatDType, Tensor};

use crate::checkpoint::Checkpoint;
use crate::config::DecoderConfig;
use crate::error::DecoderError;
use crate::model::Decoder;

impl Decoder {
    /// Reads a folder with `config.json` and `model.safetensors`, or the shards of
    /// `model.safetensors.index.json`.
    ///
    /// The weights are cast to `dtype` on the host, one tensor at a time. Everything is compared with the
    /// configuration before the first of them is read.
    ///
    /// # Errors
    /// When a file is missing or damaged, the architecture or a setting is not supported, a tensor is
    /// missing, misshaped, of a dtype other than F32, F16 or BF16, or has no place in the model, or an index
    /// names a file outside the folder.
    pub fn load(folder: impl AsRef<Path>, dtype: FloatDType, device: &Device) -> Result<Self, DecoderError> {
        let config = DecoderConfig::load(&folder)?;
        Self::assemble(&config, Checkpoint::open(folder.as_ref())?, dtype, device)
    }

    /// Reads a model from the text of its `config.json` and the bytes of its `model.safetensors`.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    ///
    /// # Example
    ///
    /// ```
    /// use burn::tensor::{Device, FloatDType};
    /// use burn_dfa_decoder::{Decoder, DecoderConfig};
    ///
    /// let device = Device::flex();
    /// let config = DecoderConfig::new(128, 32, 64, 2, 4);
    /// let bytes = config.init(&device).to_safetensors(FloatDType::F16)?;
    /// let model = Decoder::from_bytes(&config.to_json(), &bytes, FloatDType::F32, &device)?;
    /// assert_eq!(model.config(), &config);
    ///
    /// let truncated = &bytes[..bytes.len() - 1];
    /// assert!(Decoder::from_bytes(&config.to_json(), truncated, FloatDType::F32, &device).is_err());
    /// # Ok::<(), burn_dfa_decoder::DecoderError>(())
    /// ```
    pub fn from_bytes(
        config: &str,
        weights: &[u8],
        dtype: FloatDType,
        device: &Device,
    ) -> Result<Self, DecoderError> {
        let config = DecoderConfig::from_json(config)?;
        Self::assemble(&config, Checkpoint::from_bytes(weights)?, dtype, device)
    }

    fn assemble(
        config: &DecoderConfig,
        checkpoint: Checkpoint,
        dtype: FloatDType,
        device: &Device,
    ) -> Result<Self, DecoderError> {
        checkpoint.check(config)?;
        let mut filler = Filler { path: Vec::new(), checkpoint, dtype: dtype.into(), device, failure: None };
        // The random weights are never drawn: they are lazy, and replaced before they are looked at.
        let model = config.init(device).map(&mut filler);
        match filler.failure {
            None => Ok(model),
            Some(error) => Err(error),
        }
    }
}

/// Replaces each parameter by the tensor of the same path.
struct Filler<'a> {
    path: Vec<String>,
    checkpoint: Checkpoint<'a>,
    dtype: DType,
    device: &'a Device,
    failure: Option<DecoderError>,
}

impl ModuleMapper for Filler<'_> {
    fn enter_module(&mut self, name: &str, _container: &str) {
        self.path.push(name.to_string());
    }

    fn exit_module(&mut self, _name: &str, _container: &str) {
        self.path.pop();
    }

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        if self.failure.is_some() {
            return param;
        }
        match self.checkpoint.read(&self.path.join(".")) {
            Ok(data) => Param::from_tensor(Tensor::from_data(
                data.convert_dtype(self.dtype),
                (self.device, self.dtype),
            )),
            Err(error) => {
                self.failure = Some(error);
                param
            }
        }
    }
}
