//! The state that all requests share.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use burn_dfa::cli::Backend;
use burn_dfa::generation::{ContinuousLm, Recordable};
use burn_dfa_decoder::{Pretrained, cli::Weights};
use burn_dfa_engine::{Engine, Pool, Reload};

use crate::answer::now;
use crate::config::Config;
use crate::constraints::Compiler;
use crate::error::{ApiError, Result};
use crate::metrics::Metrics;
use crate::text::TextModel;

/// The name of the embedded model.
const TINY: &str = "tiny";

/// An error of the start.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// A model, its texts, its engine and its settings.
#[derive(Debug)]
pub struct App {
    /// The settings.
    pub config: Config,
    /// The name of the model in requests.
    pub name: String,
    /// The start of the server, in seconds since 1970.
    pub started: u64,
    /// The texts of the model.
    pub text: TextModel,
    /// The model.
    pub engine: Engine,
    /// Compiles constraints.
    pub compiler: Compiler,
    /// Threads that read requests and encode prompts.
    pub pool: Pool,
    /// The metrics.
    pub metrics: Arc<Metrics>,
    ends: AtomicBool,
}

impl App {
    /// Loads the model of a configuration, and starts its engine.
    ///
    /// # Errors
    /// The model cannot be read, the backend is not compiled in, or the sizes do not fit.
    pub fn load(config: Config) -> std::result::Result<Self, Failure> {
        let pretrained = load(&config.device, config.model.as_deref(), config.dtype)?;
        let model = pretrained.model().clone();
        let (device, folder, dtype) = (config.device.clone(), config.model.clone(), config.dtype);
        let reload = move || match load(&device, folder.as_deref(), dtype) {
            Ok(pretrained) => Ok(pretrained.model().clone()),
            Err(failure) => Err(failure.to_string()),
        };
        let reload: Option<Reload<_>> = match config.device {
            Backend::Remote(_) => Some(Box::new(reload)),
            _ => None,
        };
        Self::begin(config, Arc::new(pretrained), model, reload)
    }

    /// Serves `model` with the texts of `pretrained`.
    ///
    /// # Errors
    /// The sizes do not fit, or the cache folder is not writable.
    pub fn new<M: ContinuousLm + Recordable + Send + 'static>(
        config: Config,
        pretrained: Arc<Pretrained>,
        model: M,
    ) -> std::result::Result<Self, Failure> {
        Self::begin(config, pretrained, model, None)
    }

    fn begin<M: ContinuousLm + Recordable + Send + 'static>(
        config: Config,
        pretrained: Arc<Pretrained>,
        model: M,
        reload: Option<Reload<M>>,
    ) -> std::result::Result<Self, Failure> {
        // `.` and `..` have no name.
        let named = |folder: &PathBuf| match folder.file_name() {
            None => folder.canonicalize().ok(),
            Some(_) => Some(folder.clone()),
        };
        let folder = config.model.as_ref().and_then(named);
        let folder = folder.as_ref().and_then(|folder| folder.file_name());
        let of_folder = || folder.map_or_else(|| TINY.to_owned(), |name| name.to_string_lossy().into_owned());
        let name = config.served_model_name.clone().unwrap_or_else(of_folder);
        let text = TextModel::new(pretrained, &config)?;
        let metrics = Arc::new(Metrics::new(&name)?);
        let sizes = config.engine(model.max_positions());
        let pool = Pool::new(config.prepare_threads, config.max_queue);
        let vocabulary = text.vocabulary().clone();
        let compiler = Compiler::new(&config, vocabulary.clone(), metrics.clone())?;
        let engine = Engine::start(model, vocabulary, sizes, metrics.clone(), reload)?;
        Ok(Self {
            config,
            name,
            started: now(),
            text,
            engine,
            compiler,
            pool,
            metrics,
            ends: AtomicBool::new(false),
        })
    }

    /// Refuses a request for another model.
    ///
    /// # Errors
    /// 404 if the model does not exist.
    pub fn check_model(&self, requested: Option<&str>) -> Result<()> {
        match requested {
            Some(requested) if requested != self.name => {
                let message =
                    format!("the model `{requested}` does not exist; this server has `{}`", self.name);
                let error = ApiError::new(axum::http::StatusCode::NOT_FOUND, message);
                Err(error.at("model").code("model_not_found"))
            }
            _ => Ok(()),
        }
    }

    /// Whether new requests are answered.
    pub fn is_ready(&self) -> bool {
        !self.ends.load(Ordering::Acquire) && self.engine.is_alive()
    }

    /// How long chunks of an answer are held for its next event; `None`: until its end.
    pub fn interval(&self, streams: bool) -> Option<Duration> {
        streams.then_some(self.config.stream_interval)
    }

    /// Refuses new requests, and requests that wait for their constraint before they are queued.
    /// Answers in the queue or in a row continue.
    pub fn end(&self) {
        self.ends.store(true, Ordering::Release);
        self.compiler.end();
    }
}

impl App {
    /// Refuses a prompt that is too long to encode.
    ///
    /// # Errors
    /// 400 if it has more bytes than the configuration allows.
    pub fn check_prompt(&self, prompt: &str, param: &str) -> Result<()> {
        let max = self.config.max_prompt;
        if prompt.len() <= max {
            return Ok(());
        }
        let message = format!("the prompt has {} bytes, of {max} that it may have", prompt.len());
        Err(ApiError::invalid(param, message).code("context_length_exceeded"))
    }
}

impl Drop for App {
    fn drop(&mut self) {
        // Waits for the thread that uses the device.
        self.engine.shut_down(Duration::ZERO);
    }
}

/// The model of a folder, or the embedded one.
fn load(device: &Backend, folder: Option<&Path>, dtype: Weights) -> std::result::Result<Pretrained, Failure> {
    let device = device.open().map_err(|failure| failure.to_string())?;
    Ok(match folder {
        None => burn_dfa_tiny::load(&device)?,
        Some(folder) => burn_dfa_decoder::cli::load(folder, dtype, &device)?,
    })
}
