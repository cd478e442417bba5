//! The front end of a program, which reads its constraints.

use std::fmt;

use burn_dfa::{CompiledConstraint, Constraint, Error, Limits, Vocabulary};

use crate::cache::Key;
use crate::{CompilerConfig, Refusal};

/// Reads the constraints of a program: the fields of API requests, or the literals of a query.
///
/// [`Compiler`](crate::Compiler) has an example.
pub trait Frontend: Send + Sync + Sized + 'static {
    /// The source of a constraint.
    type Source: Send + 'static;
    /// The result: a compiled constraint with further data of the program, or plain text.
    type Compiled: Clone + Send + Sync + 'static;
    /// The reason for a refused constraint.
    type Refusal: From<Refusal> + Clone + Send + Sync + 'static;

    /// Identifies a source. Sources with the same key are compiled once.
    fn key(&self, source: &Self::Source) -> Key;

    /// Reads a source, and compiles its constraint with [`Task::compile`].
    ///
    /// # Errors
    /// The constraint is refused, or a limit of [`Task::limits`] was exceeded.
    fn compile(&self, source: &Self::Source, task: &Task) -> Result<Self::Compiled, Self::Refusal>;

    /// The constraint of a result; `None` for plain text.
    fn constraint(compiled: &Self::Compiled) -> Option<&CompiledConstraint>;

    /// The error of the library that caused a refusal. The compiler first compiles with a short
    /// time limit. If this error is that limit, it compiles again with [`CompilerConfig::limits`];
    /// with `None`, the refusal is final.
    fn error(refusal: &Self::Refusal) -> Option<&Error>;
}

/// The result of the front end `F` for a source.
pub(crate) type Outcome<F> = Result<<F as Frontend>::Compiled, <F as Frontend>::Refusal>;

/// One compilation, for [`Frontend::compile`].
pub struct Task<'a> {
    pub(crate) vocabulary: &'a Vocabulary,
    pub(crate) config: &'a CompilerConfig,
    pub(crate) limits: &'a Limits,
    pub(crate) is_read: &'a dyn Fn(),
}

impl Task<'_> {
    /// The limits of this compilation.
    pub fn limits(&self) -> &Limits {
        self.limits
    }

    /// Reports that the constraint was read, so that a [lazy](CompilerConfig::lazy) compiler may
    /// return it before it is compiled.
    pub fn report_read(&self) {
        (self.is_read)();
    }

    /// Compiles a constraint, at the level of bytes if it has too many token classes for the
    /// engine.
    ///
    /// # Errors
    /// The library refuses the constraint, or it exceeds the capacity of the engine.
    pub fn compile(&self, constraint: &Constraint) -> Result<CompiledConstraint, Refusal> {
        let Self { vocabulary, config, limits, .. } = self;
        let compile = |byte_level: bool| match (&config.disk, byte_level) {
            (Some(disk), false) => disk.compile(constraint, vocabulary, limits),
            (Some(disk), true) => disk.compile_byte_level(constraint, vocabulary, limits),
            (None, false) => CompiledConstraint::compile(constraint, vocabulary, limits),
            (None, true) => CompiledConstraint::compile_byte_level(constraint, vocabulary, limits),
        };
        let capacity = [config.capacity.states, config.capacity.classes];
        let mut compiled = compile(false).map_err(Refusal::Library)?;
        if !compiled.is_byte_level() && compiled.class_count() > capacity[1] {
            compiled = compile(true).map_err(Refusal::Library)?;
        }
        let size = [compiled.state_count(), compiled.class_count()];
        if size[0] > capacity[0] || size[1] > capacity[1] {
            return Err(Refusal::TooLarge { size, capacity });
        }
        Ok(compiled)
    }
}

impl fmt::Debug for Task<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Task").field("limits", self.limits).finish_non_exhaustive()
    }
}
