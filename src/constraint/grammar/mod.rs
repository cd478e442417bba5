//! Grammars: GBNF as llama.cpp has it, EBNF as XGrammar has it, Lark as llguidance has it.
//!
//! ```text
//! text ──gbnf, ebnf, lark──▶ Grammar ──▶ Parts ──emit──▶ Network ──subsets──▶ RowDfa or Pushdown
//! ```
//!
//! - `form` is the intermediate form, `builder` makes it;
//! - `gbnf`, `ebnf` and `lark` read the three syntaxes; `source` shows where they went wrong; `cursor`, `literal` and `rules` are what
//!   GBNF and EBNF share; `syntax` chooses among them;
//! - `parts` are expressions made flat, with what is `regular` as automata;
//! - `counted` are parts of which the tokens are counted;
//! - `tokens` are what a grammar names of a vocabulary;
//! - `brackets` decides what is called, `emit` makes a nondeterministic automaton with calls, which the room of automata
//!   determinises;
//! - `shape` shows expressions to whoever draws them, `report` says how a grammar is compiled.

mod brackets;
mod builder;
mod counted;
mod cursor;
mod ebnf;
mod emit;
mod form;
mod gbnf;
mod lark;
mod literal;
mod parts;
#[cfg(test)]
mod recognise;
mod regular;
mod report;
mod rules;
mod shape;
mod source;
mod syntax;
#[cfg(test)]
mod tests;
mod tokens;

pub use builder::GrammarBuilder;
pub(super) use builder::NO_BOUND;
pub(super) use ebnf::regex as read_regex;
pub use form::{Expression, Grammar};
pub use report::{CalledPart, GrammarReport, RuleUse};
pub use shape::Shape;
pub(super) use syntax::GivenGrammar;
pub use syntax::Syntax;

use self::counted::Counting;
use self::emit::Emitter;
use self::parts::Parts;
use crate::automaton::{Conflict, ConflictKind, Determinized, Failure};
use crate::constraint::TokenEdges;
use crate::error::{Error, Result};
use crate::limits::{Limits, Meter};

/// The automaton of a grammar's texts.
pub(super) struct Lexical {
    pub(super) determinized: Determinized,
    /// The tokens that are read whole.
    pub(super) tokens: TokenEdges,
}

impl Grammar {
    /// The automaton of the grammar's texts.
    ///
    /// # Errors
    /// Where there is no text, where the grammar is ambiguous in height without end, where a limit is breached.
    pub(super) fn lower(&self, meter: &Meter) -> Result<Lexical> {
        self.lower_within(meter, &mut Counting::default())
    }

    /// The same as a part of another grammar, of which `counting` are the counted parts.
    fn lower_within(&self, meter: &Meter, counting: &mut Counting) -> Result<Lexical> {
        let parts = Parts::new(self, meter, counting)?;
        let determinized = self.determinized(&parts, meter)?;
        let Some(codes) = &parts.codes else {
            return Ok(Lexical { determinized, tokens: TokenEdges::default() });
        };
        Ok(match determinized {
            Determinized::Finite(rows) => {
                let tokens = codes.edges(rows.rows().all());
                Lexical { determinized: Determinized::Finite(rows.read_as(codes.read_as())), tokens }
            }
            Determinized::Called(automaton) => {
                let tokens = codes.edges(automaton.rows().all());
                Lexical { determinized: Determinized::Called(automaton.read_as(codes.read_as())), tokens }
            }
        })
    }

    fn determinized(&self, parts: &Parts, meter: &Meter) -> Result<Determinized> {
        self.determinize(parts, meter).map(|(_, determinized, _)| determinized)
    }

    /// The automaton of the texts, what it was made by, and the most leads of its states.
    fn determinize<'p, 'm>(
        &self,
        parts: &'p Parts<'m>,
        meter: &'m Meter<'m>,
    ) -> Result<(Emitter<'p, 'm>, Determinized, usize)> {
        // Where a text may end within a call, what is outermost is copied: there is no call to return from.
        let first = self.attempt(parts, meter, false)?;
        let found = match first {
            Err(Conflict { kind: ConflictKind::TextEnd, .. }) => self.attempt(parts, meter, true)?,
            first => first,
        };
        found.map_err(|conflict| self.explained(parts, &conflict, most_stacks(meter)))
    }

    /// The same with calls from the outermost level copied or not.
    fn attempt<'p, 'm>(
        &self,
        parts: &'p Parts<'m>,
        meter: &'m Meter<'m>,
        copies_outermost: bool,
    ) -> Result<std::result::Result<(Emitter<'p, 'm>, Determinized, usize), Conflict>> {
        let mut emitter = emitter(parts, meter)?;
        let start = emitter.emit(self.start, copies_outermost)?;
        if let Some(name) = &parts.counted_name {
            if emitter.network.has_calls() {
                return Err(counted::beside_recursion(name));
            }
            if parts.lexing.is_some() {
                emitter.network.close_at_boundaries()?;
            }
        }
        match emitter.network.determinize(start, most_stacks(meter)) {
            Ok(Some((determinized, leads))) => Ok(Ok((emitter, determinized, leads))),
            Ok(None) => Err(Error::unsatisfiable("the grammar has no text that ends")),
            Err(Failure::Error(error)) => Err(error),
            Err(Failure::Conflict(conflict)) => Ok(Err(conflict)),
        }
    }

    fn explained(&self, parts: &Parts, conflict: &Conflict, most: usize) -> Error {
        let [first, second] = conflict.origins.map(|rule| &self.rules[rule as usize].name);
        let text = match &parts.codes {
            Some(codes) => codes.shown(&conflict.text),
            None => conflict.text.clone(),
        };
        let text = String::from_utf8_lossy(&text);
        Error::grammar_as_a_whole(match conflict.kind {
            ConflictKind::End => format!(
                "after {text:?} it is open whether what the rule `{first}` calls has ended before the last byte or goes on in \
                 `{second}`, and the stack has to know at once: close it with a text that cannot go on so"
            ),
            ConflictKind::TextEnd => format!(
                "after {text:?} the text may end within what the rule `{first}` calls, or go on: close it with a text that \
                 cannot go on"
            ),
            ConflictKind::Height => format!(
                "after {text:?} the rules `{first}` and `{second}` may be within different numbers of calls, in more than \
                 {most} ways: make the texts that open and close them differ"
            ),
        })
    }
}

/// The most leads of a state: how many different stacks ways to read the same text may have.
fn most_stacks(meter: &Meter) -> usize {
    meter.limits().stacks.clamp(1, Limits::MAX_STACKS)
}

/// What emits the parts of a grammar.
fn emitter<'p, 'm>(parts: &'p Parts<'m>, meter: &'m Meter<'m>) -> Result<Emitter<'p, 'm>> {
    let mut emitter = Emitter::new(parts, meter)?;
    if let Some(codes) = &parts.codes {
        emitter.network.set_alphabet(&codes.alphabet());
        if let Some(symbol) = codes.boundary() {
            emitter.network.set_boundary(symbol);
        }
    }
    Ok(emitter)
}
