//! Compiles the constraints of requests, and decides which unenforceable keywords are refused.

use std::sync::Arc;

use burn_dfa::cli::Graph;
use burn_dfa::constraint::Unenforceable;
use burn_dfa::{CompiledConstraint, Constraint, Error, Limits, Unenforced};
use burn_dfa_engine::{Frontend, Key, Refusal as EngineRefusal, Task};

use super::left_out::LeftOut;
use super::refusal::Refusal;
use super::source::Source;
use super::style::JsonStyle;

/// Greatest number of states of an automaton that is drawn.
const MAX_DRAWN_STATES: usize = 100;

/// Reads the constraints of requests.
#[derive(Clone, Debug)]
pub struct ApiFrontend {
    /// The style of JSON if requests leave it open.
    style: JsonStyle,
}

/// A compiled constraint of a request.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The compiled constraint.
    pub constraint: CompiledConstraint,
    /// Keywords of its schemas that are not enforced.
    pub left_out: Arc<[LeftOut]>,
}

impl Frontend for ApiFrontend {
    type Source = Source;
    /// `None` for plain text.
    type Compiled = Option<Compiled>;
    type Refusal = Refusal;

    fn key(&self, source: &Source) -> Key {
        source.key()
    }

    /// Keywords that cannot be enforced are left out, unless the request is strict.
    fn compile(&self, source: &Source, task: &Task) -> Result<Option<Compiled>, Refusal> {
        let limits = task.limits();
        let read = |unenforceable| source.constraint(&self.style, unenforceable, limits);
        let compiled = read(Unenforceable::Refuse).and_then(|constraint| {
            let Some(constraint) = constraint else { return Ok(None) };
            task.report_read();
            Ok(Some(Compiled { constraint: task.compile(&constraint)?, left_out: Arc::default() }))
        });
        let refusal = match compiled {
            Err(refusal) if unenforced(&refusal).is_some() => refusal,
            Err(Refusal::Engine(EngineRefusal::Library(error))) => return Err(located(source, error)),
            compiled => return compiled,
        };
        let left_out = self.check_strict(source, limits, refusal)?;
        let Some(constraint) = read(Unenforceable::Ignore)? else { return Ok(None) };
        Ok(Some(Compiled { constraint: task.compile(&constraint)?, left_out: left_out.into() }))
    }

    fn constraint(compiled: &Option<Compiled>) -> Option<&CompiledConstraint> {
        compiled.as_ref().map(|compiled| &compiled.constraint)
    }

    fn error(refusal: &Refusal) -> Option<&Error> {
        refusal.error()
    }
}

impl ApiFrontend {
    /// A front end with the style of JSON for requests that leave it open.
    pub(super) fn new(style: JsonStyle) -> Self {
        Self { style }
    }

    /// The automaton of a constraint as an SVG picture.
    ///
    /// # Errors
    /// The constraint is refused, or has no automaton over text or too many states.
    pub(super) fn draw(&self, source: &Source, limits: &Limits) -> Result<String, Refusal> {
        let none = || Refusal::Refused("there is no automaton over text to draw".into());
        let read = |unenforceable| source.constraint(&self.style, unenforceable, limits);
        let automaton = |constraint: Option<Constraint>| {
            let automaton = constraint.ok_or_else(none)?.to_automaton(limits).map_err(Refusal::library)?;
            automaton.ok_or_else(none)
        };
        let drawn = read(Unenforceable::Refuse).and_then(automaton);
        let automaton = match drawn {
            Err(refusal) if unenforced(&refusal).is_some() => {
                self.check_strict(source, limits, refusal)?;
                automaton(read(Unenforceable::Ignore)?)?
            }
            drawn => drawn?,
        };
        let states = automaton.state_count() - 1;
        if states > MAX_DRAWN_STATES {
            return Err(Refusal::TooManyStates(format!(
                "{states} states are too many to draw, which are at most {MAX_DRAWN_STATES}"
            )));
        }
        Ok(Graph::new(&automaton).svg())
    }

    /// The unenforceable keywords that caused a refusal.
    ///
    /// # Errors
    /// The refusal, if there are no such keywords, or the request is strict; the time of `limits`
    /// has run out.
    fn check_strict(
        &self,
        source: &Source,
        limits: &Limits,
        refusal: Refusal,
    ) -> Result<Vec<LeftOut>, Refusal> {
        let left_out = source.left_out(&self.style, limits).map_err(Refusal::library)?;
        match left_out.iter().find(|left_out| source.is_strict(left_out)) {
            Some(left_out) => Err(Refusal::Strict(left_out.clone())),
            None if left_out.is_empty() => Err(match refusal {
                Refusal::Engine(EngineRefusal::Library(error)) => located(source, error),
                refusal => refusal,
            }),
            None => Ok(left_out),
        }
    }
}

/// The unenforceable keyword, if it is the only reason for a refusal.
fn unenforced(refusal: &Refusal) -> Option<&Unenforced> {
    match refusal {
        Refusal::Engine(EngineRefusal::Library(error)) => error.unenforced(),
        _ => None,
    }
}

/// A refusal of the library, with the tool in question.
fn located(source: &Source, error: Error) -> Refusal {
    let location = error.pointer().and_then(|pointer| source.locate(pointer));
    match location.map(|(number, pointer)| (number, pointer.to_owned())) {
        Some((number, pointer)) => Refusal::Tool(error, number, pointer),
        None => Refusal::library(error),
    }
}
