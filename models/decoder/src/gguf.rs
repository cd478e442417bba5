//! Opens GGUF files: their metadata as a configuration, their tensors as a checkpoint.

use std::path::Path;

use burn_dfa_gguf::{GgufError, GgufFile};

use crate::checkpoint::{Checkpoint, GgufSource};
use crate::config::DecoderConfig;
use crate::error::DecoderError;

/// Reads the header of a file.
pub(crate) fn header(path: &Path) -> Result<GgufFile, DecoderError> {
    GgufFile::open(path).map_err(|source| DecoderError::Gguf { path: path.to_owned(), source })
}

/// The configuration and the checkpoint of a file, checked against each other.
pub(crate) fn open(
    path: &Path,
    file: &GgufFile,
) -> Result<(DecoderConfig, Checkpoint<'static>), DecoderError> {
    let source = GgufSource::open(path)?;
    let config = file.config(|tensor| source.floats(tensor).map_err(ConfigFailure::Tensor));
    let config = config.map_err(|failure| match failure {
        ConfigFailure::File(source) => DecoderError::Gguf { path: path.to_owned(), source },
        ConfigFailure::Tensor(error) => error,
    })?;
    let config = DecoderConfig::from_json(&config.to_string()).map_err(content(path))?;
    let checkpoint = Checkpoint::gguf(path, file, config.head_dim)?;
    checkpoint.check(&config).map_err(content(path))?;
    Ok((config, checkpoint))
}

/// Names the file of an error in its content.
pub(crate) fn content(path: &Path) -> impl Fn(DecoderError) -> DecoderError {
    move |error| DecoderError::GgufContent { path: path.to_owned(), source: Box::new(error) }
}

/// Why a configuration was refused.
enum ConfigFailure {
    File(GgufError),
    Tensor(DecoderError),
}

impl From<GgufError> for ConfigFailure {
    fn from(error: GgufError) -> Self {
        Self::File(error)
    }
}
