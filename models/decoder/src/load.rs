//! Reads a model from a Hugging Face folder, a GGUF file, or bytes that are compiled in.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use burn::module::{Module, ModuleMapper, Param};
use burn::tensor::{DType, Device, FloatDType, Shape, Tensor};
use burn_dfa_gguf::GgufFile;

use crate::blocks::Blocks;
use crate::checkpoint::Checkpoint;
use crate::config::DecoderConfig;
use crate::error::DecoderError;
use crate::gguf;
use crate::model::Decoder;
use crate::parameters::parameters;

/// The progress of loading a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadProgress {
    /// Bytes of weights read so far.
    pub bytes: u64,
    /// Bytes of all weights of the model.
    pub total: u64,
}

impl Decoder {
    /// Reads a folder with `config.json` and `model.safetensors`, or the shards of
    /// `model.safetensors.index.json`; or a GGUF file.
    ///
    /// The weights are cast to `dtype`, if it is given. With `None` they keep their stored dtype:
    /// the dtype of most weights, or F32 on a device that lacks it. Everything is compared with the
    /// configuration before the first weight is read.
    ///
    /// Quantized matrices of a GGUF file stay in their blocks on [`Device::flex`] with `None`, and
    /// multiply as they are stored; activations are F32. With a `dtype`, and on other devices, they
    /// are dequantized: to F32 with `None`. A model that keeps blocks cannot be saved.
    ///
    /// The files are mapped into memory. On the CPU, weights that are not cast stay mapped while
    /// the model lives and take no memory twice. Replace such a file by renaming another file to
    /// its name: overwriting or truncating it changes the weights of the model, or ends the
    /// process.
    ///
    /// # Errors
    /// - The folder or the file does not hold a supported model.
    /// - A file is missing or damaged, or an index names a file outside the folder.
    /// - The architecture or a setting is not supported.
    /// - A tensor is missing, misshaped, unknown to the model, or of a dtype other than F32, F16 or
    ///   BF16.
    ///
    /// # Example
    ///
    /// ```
    /// use burn::tensor::{DType, Device, FloatDType};
    /// use burn_dfa_decoder::{Decoder, DecoderConfig};
    ///
    /// let (device, folder) = (Device::flex(), std::env::temp_dir().join("burn-dfa-decoder-load"));
    /// DecoderConfig::new(128, 32, 64, 2, 4).init(&device).save(&folder, FloatDType::BF16)?;
    /// assert_eq!(Decoder::load(&folder, None, &device)?.dtype(), DType::BF16);
    /// assert_eq!(Decoder::load(&folder, FloatDType::F32, &device)?.dtype(), DType::F32);
    /// # Ok::<(), burn_dfa_decoder::DecoderError>(())
    /// ```
    pub fn load(
        folder: impl AsRef<Path>,
        dtype: impl Into<Option<FloatDType>>,
        device: &Device,
    ) -> Result<Self, DecoderError> {
        Self::load_with_progress(folder, dtype, device, |_| ())
    }

    /// Like [`load`](Self::load), and calls `progress` after each tensor.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn load_with_progress(
        folder: impl AsRef<Path>,
        dtype: impl Into<Option<FloatDType>>,
        device: &Device,
        progress: impl FnMut(LoadProgress),
    ) -> Result<Self, DecoderError> {
        let (config, checkpoint) = Self::open(folder.as_ref())?;
        Self::assemble(&config, &checkpoint, dtype.into(), device, progress)
    }

    /// The configuration and the checkpoint of a folder or a GGUF file, checked against each other.
    pub(crate) fn open(folder: &Path) -> Result<(DecoderConfig, Checkpoint<'static>), DecoderError> {
        if GgufFile::is_gguf(folder) {
            return gguf::open(folder, &gguf::header(folder)?);
        }
        let config = DecoderConfig::load(folder)?;
        let checkpoint = Checkpoint::open(folder)?;
        checkpoint.check(&config)?;
        Ok((config, checkpoint))
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
    /// assert!(
    ///     Decoder::from_bytes(&config.to_json(), truncated, FloatDType::F32, &device).is_err()
    /// );
    /// # Ok::<(), burn_dfa_decoder::DecoderError>(())
    /// ```
    pub fn from_bytes(
        config: &str,
        weights: &[u8],
        dtype: impl Into<Option<FloatDType>>,
        device: &Device,
    ) -> Result<Self, DecoderError> {
        let config = DecoderConfig::from_json(config)?;
        let checkpoint = Checkpoint::from_bytes(weights)?;
        checkpoint.check(&config)?;
        Self::assemble(&config, &checkpoint, dtype.into(), device, |_| ())
    }

    /// Reads the weights of a checkpoint that fits the configuration.
    pub(crate) fn assemble(
        config: &DecoderConfig,
        checkpoint: &Checkpoint,
        dtype: Option<FloatDType>,
        device: &Device,
        progress: impl FnMut(LoadProgress),
    ) -> Result<Self, DecoderError> {
        let keeps_blocks = dtype.is_none() && keeps_blocks(device);
        let keeps = |name: &str| keeps_blocks && checkpoint.is_quantized(name);
        let dtype = dtype.unwrap_or_else(|| {
            let stored = checkpoint.dtype(config);
            if device.supports_dtype(stored) { stored } else { FloatDType::F32 }
        });
        let size = DType::from(dtype).size();
        let total = parameters(config).into_iter().map(|(name, shape)| {
            let elements: usize = shape.iter().product();
            if keeps(&name) { checkpoint.size(&name) } else { elements * size }
        });
        let mut filler = Filler {
            path: Vec::new(),
            checkpoint,
            keeps: &keeps,
            kept: HashMap::new(),
            dtype,
            device,
            done: LoadProgress { bytes: 0, total: total.sum::<usize>() as u64 },
            progress,
            failure: None,
        };
        // Random weights are lazy, and are replaced before anything draws them.
        let mut model = config.init(device).map(&mut filler);
        if let Some(error) = filler.failure {
            return Err(error);
        }
        for (name, blocks) in model.blocks() {
            *blocks = filler.kept.remove(&name).map(Arc::new);
        }
        Ok(model)
    }
}

/// Whether a model on this device keeps blocks: on Flex, without autodiff.
fn keeps_blocks(device: &Device) -> bool {
    #[cfg(feature = "flex")]
    return crate::flex::is_flex(&Tensor::<1>::empty([1], device));
    #[cfg(not(feature = "flex"))]
    return false;
}

/// Replaces each parameter by the tensor of the same path.
///
/// Of a matrix that stays in its blocks, the parameter becomes a tensor without rows.
struct Filler<'a, P> {
    path: Vec<String>,
    checkpoint: &'a Checkpoint<'a>,
    /// Whether the matrix of a name stays in its blocks.
    keeps: &'a dyn Fn(&str) -> bool,
    kept: HashMap<String, Blocks>,
    dtype: FloatDType,
    device: &'a Device,
    done: LoadProgress,
    progress: P,
    failure: Option<DecoderError>,
}

impl<P: FnMut(LoadProgress)> ModuleMapper for Filler<'_, P> {
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
        let name = self.path.join(".");
        match self.read(name) {
            Ok(tensor) => {
                (self.progress)(self.done);
                Param::from_tensor(tensor)
            }
            Err(error) => {
                self.failure = Some(error);
                param
            }
        }
    }
}

impl<P> Filler<'_, P> {
    fn read<const D: usize>(&mut self, name: String) -> Result<Tensor<D>, DecoderError> {
        let options = (self.device, DType::from(self.dtype));
        if (self.keeps)(&name) {
            let blocks = self.checkpoint.matrix(&name)?;
            let [_, inputs] = blocks.shape;
            self.done.bytes += blocks.bytes.len() as u64;
            self.kept.insert(name, blocks);
            return Ok(Tensor::zeros(Shape::from(vec![0, inputs]), options));
        }
        let data = self.checkpoint.read(&name, self.dtype)?;
        self.done.bytes += data.as_bytes().len() as u64;
        Ok(Tensor::from_data(data, options))
    }
}
