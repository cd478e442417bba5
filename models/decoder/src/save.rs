//! Writes a model in the Hugging Face layout.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;

use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::{DType, FloatDType, Tensor, TensorData};
use safetensors::Dtype;

use crate::error::DecoderError;
use crate::folder_problem::SINGLE;
use crate::model::Decoder;

impl Decoder {
    /// Returns the bytes of a `model.safetensors`, with the weights cast to `dtype`.
    ///
    /// # Errors
    /// `dtype` is not F32, F16 or BF16, the model keeps the blocks of a GGUF file, or reading a
    /// tensor from the device fails.
    pub fn to_safetensors(&self, dtype: FloatDType) -> Result<Vec<u8>, DecoderError> {
        let stored = match dtype {
            FloatDType::F32 => Dtype::F32,
            FloatDType::F16 => Dtype::F16,
            FloatDType::BF16 => Dtype::BF16,
            other => {
                return Err(DecoderError::Checkpoint {
                    file: SINGLE.into(),
                    message: format!("cannot be written in {other:?}; use F32, F16 or BF16"),
                });
            }
        };
        if self.keeps_blocks() {
            let message =
                "cannot be written from the blocks of a GGUF file; load the file with F32, F16 or BF16";
            return Err(DecoderError::Checkpoint { file: SINGLE.into(), message: message.into() });
        }
        let mut collector =
            Collector { path: Vec::new(), dtype: dtype.into(), stored, entries: Vec::new(), failure: None };
        self.visit(&mut collector);
        if let Some(error) = collector.failure {
            return Err(error);
        }
        let format = HashMap::from([("format".to_string(), "pt".to_string())]);
        safetensors::serialize(collector.entries, Some(format))
            .map_err(|error| DecoderError::Checkpoint { file: SINGLE.into(), message: error.to_string() })
    }

    /// Writes `config.json` and `model.safetensors` into a folder, and creates the folder if
    /// needed.
    ///
    /// # Errors
    /// As [`to_safetensors`](Self::to_safetensors), and if a file cannot be written.
    pub fn save(&self, folder: impl AsRef<Path>, dtype: FloatDType) -> Result<(), DecoderError> {
        let folder = folder.as_ref();
        let weights = self.to_safetensors(dtype)?;
        let io = |path: &Path, result: std::io::Result<()>| {
            result.map_err(|source| DecoderError::Io { path: path.to_path_buf(), source })
        };
        io(folder, std::fs::create_dir_all(folder))?;
        let path = folder.join("config.json");
        io(&path, std::fs::write(&path, self.config().to_json() + "\n"))?;
        let path = folder.join(SINGLE);
        io(&path, std::fs::write(&path, weights))
    }
}

/// Reads every parameter from the device, with its path.
struct Collector {
    path: Vec<String>,
    dtype: DType,
    stored: Dtype,
    entries: Vec<(String, Entry)>,
    failure: Option<DecoderError>,
}

struct Entry {
    data: TensorData,
    shape: Vec<usize>,
    dtype: Dtype,
}

impl safetensors::View for Entry {
    fn dtype(&self) -> Dtype {
        self.dtype
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        Cow::Borrowed(self.data.as_bytes())
    }

    fn data_len(&self) -> usize {
        self.data.as_bytes().len()
    }
}

impl ModuleVisitor for Collector {
    fn enter_module(&mut self, name: &str, _container: &str) {
        self.path.push(name.to_string());
    }

    fn exit_module(&mut self, _name: &str, _container: &str) {
        self.path.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let name = self.path.join(".");
        let tensor = param.val();
        let shape = tensor.dims().to_vec();
        match tensor.try_into_data() {
            Ok(data) => self
                .entries
                .push((name, Entry { data: data.convert_dtype(self.dtype), shape, dtype: self.stored })),
            Err(error) => {
                self.failure =
                    Some(DecoderError::Tensor { name, message: format!("could not be read back: {error}") });
            }
        }
    }
}
