//! The constraints of requests: how they are read, and why they are refused.
//!
//! - `source` identifies a constraint, `style` sets how its JSON is written, `left_out` lists its
//!   unenforceable keywords;
//! - `frontend` compiles a source for the compiler of [`burn_dfa_engine`], and draws its automaton;
//! - `refusal` converts the reason for a refused constraint to an error of the API.

mod frontend;
mod left_out;
mod refusal;
mod source;
mod style;

use std::sync::Arc;

use burn_dfa::{ConstraintCache, Limits, Vocabulary};
use burn_dfa_engine::{Client, CompileError, CompilerConfig, Metrics, PoolError};

pub use self::frontend::{ApiFrontend, Compiled};
pub use self::left_out::LeftOut;
pub use self::refusal::Refusal;
pub use self::source::{ConstraintText, Source};
use self::style::JsonStyle;
use crate::config::Config;
use crate::error::{ApiError, Result};

/// Greatest number of bytes of compiled constraints on disk.
const MAX_DISK_BYTES: u64 = 1 << 30;

/// A constraint of a request: compiled, or being compiled.
pub type Compilation = burn_dfa_engine::Compilation<ApiFrontend>;

/// Compiles the constraints of requests.
#[derive(Debug)]
pub struct Compiler {
    compiler: Arc<burn_dfa_engine::Compiler<ApiFrontend>>,
    max_text: usize,
}

impl Compiler {
    /// A compiler for a vocabulary.
    ///
    /// # Errors
    /// The folder of the cache cannot be written to.
    pub(crate) fn new(
        config: &Config,
        vocabulary: Vocabulary,
        metrics: Arc<dyn Metrics>,
    ) -> burn_dfa::Result<Self> {
        let limits = config.forced_text.over(Limits::new());
        let limits = limits
            .with_time(config.compile_deadline)
            // The pool has as many threads as may compile.
            .with_threads(1)
            .with_bytes(config.compile_bytes)
            .with_frames(config.frames);
        let folder = config.cache_dir.as_ref();
        let disk = folder.map(|folder| ConstraintCache::new(folder, MAX_DISK_BYTES)).transpose()?;
        let frontend = ApiFrontend::new(JsonStyle::new(config));
        let settings = CompilerConfig {
            limits,
            capacity: config.capacity(),
            threads: config.compile_threads,
            max_waiting: config.max_queue,
            cache_bytes: config.cache_bytes,
            disk,
            lazy: config.lazy,
        };
        let compiler = burn_dfa_engine::Compiler::new(frontend, vocabulary, settings, metrics);
        Ok(Self { compiler: Arc::new(compiler), max_text: config.max_constraint })
    }

    /// Compiles a constraint of the field `param`; `None` for plain text. With `--lazy` it returns
    /// as soon as the constraint was read. Dropping the future, or a running compilation, cancels
    /// the compilation unless other requests wait for it.
    ///
    /// # Errors
    /// 400 if the constraint is refused, 503 if the queue is full, other compilations delay this
    /// one or the server is shutting down, 500 if the compiler panics.
    pub async fn compile(&self, client: Client, source: Source, param: &str) -> Result<Option<Compilation>> {
        self.check_size(&source, param)?;
        let compilation = self.compiler.get(client, source).await;
        let compilation = compilation.map_err(|error| api_error(error, param))?;
        Ok(Some(compilation).filter(|compilation| !matches!(compilation, Compilation::Done(None))))
    }

    /// The automaton of a constraint as an SVG picture; the constraint is in the field `param`.
    ///
    /// # Errors
    /// 400 if the constraint is refused, or has no automaton over text or too many states; 503 and
    /// 500 as [`compile`](Self::compile).
    pub async fn picture(&self, client: Client, source: Source, param: &str) -> Result<String> {
        self.check_size(&source, param)?;
        let drawn = self.compiler.run(client, move |frontend, task| frontend.draw(&source, task.limits()));
        drawn.await.map_err(|error| api_error(error, param))
    }

    /// Starts no more compilations, and notifies the requests that wait for one.
    pub fn end(&self) {
        self.compiler.shut_down();
    }

    fn check_size(&self, source: &Source, param: &str) -> Result<()> {
        if source.len() <= self.max_text {
            return Ok(());
        }
        let message = format!("it has {} bytes, of {} that it may have", source.len(), self.max_text);
        Err(ApiError::invalid(param, message).code("constraint_too_large"))
    }
}

/// The error for a request with the constraint in the field `param`.
fn api_error(error: CompileError<Refusal>, param: &str) -> ApiError {
    match error {
        CompileError::Refused(refusal) => refusal.api_error(param),
        CompileError::Overloaded => PoolError::Overloaded.into(),
        CompileError::Shutdown => ApiError::overloaded("the server is shutting down"),
        CompileError::Late => {
            ApiError::overloaded("the constraint was not compiled in time: try again later")
        }
        _ => ApiError::internal("the constraint was not compiled"),
    }
}
