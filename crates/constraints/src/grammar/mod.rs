//! Grammars: GBNF as in llama.cpp, EBNF as in XGrammar, Lark as in llguidance.
//!
//! ```text
//! text ──gbnf, ebnf, lark──▶ Grammar ──▶ FlatGrammar ──emit──▶ TransitionNetwork
//!     ──subsets──▶ SparseDfa or Pushdown
//! ```
//!
//! - `form` is the intermediate form, `builder` builds it;
//! - `gbnf`, `ebnf` and `lark` read the three syntaxes; `source` shows the locations of errors;
//!   `cursor`, `literal` and `rules` are shared by GBNF and EBNF; `syntax` selects a syntax;
//! - `flat` has flat expressions with automata for `regular` ones, and `normal` brings them into a
//!   normal form;
//! - `counted` are parts with counted tokens;
//! - `tokens` are the tokens of a vocabulary named by a grammar;
//! - `brackets` selects the called expressions, `emit` makes a nondeterministic automaton with
//!   calls, which the automata crate determinizes;
//! - `shape` shows expressions for drawings, `report` describes how a grammar is compiled;
//! - `identity` gives constraints keys for caches; `notes` are the remarks on schemas within
//!   grammars.

mod brackets;
mod builder;
mod counted;
mod cursor;
mod ebnf;
mod eliminate;
mod emit;
mod flat;
mod form;
mod gbnf;
mod identity;
mod lark;
mod literal;
mod normal;
mod notes;
#[cfg(test)]
mod recognize;
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
use self::emit::{CalledProcedure, Emitter};
use self::flat::FlatGrammar;
use crate::TokenEdges;
use burn_dfa_automata::{Conflict, ConflictKind, Failure, SparseAutomaton};
use burn_dfa_common::{Error, ErrorKind, Limits, Result, limits::Meter};

/// The automaton of a grammar's texts.
pub(super) struct Lexical {
    pub(super) determinized: SparseAutomaton,
    /// The tokens read whole.
    pub(super) tokens: TokenEdges,
}

/// The automaton of rules, and the fate of each rule.
struct Compiled {
    determinized: SparseAutomaton,
    /// The most stacks that readings of the same text have at once.
    stacks: usize,
    calls: Vec<CalledProcedure>,
    /// By rule, whether it is called.
    called: Vec<bool>,
}

impl Grammar {
    /// The automaton of the grammar's texts.
    ///
    /// # Errors
    /// The grammar has no text, the height of its stack is ambiguous without bound, or a limit is
    /// exceeded.
    pub(super) fn lower(&self, meter: &Meter) -> Result<Lexical> {
        self.lower_within(meter, &mut Counting::default())
    }

    /// The same for a part of another grammar; `counting` has the counted parts of the other
    /// grammar.
    fn lower_within(&self, meter: &Meter, counting: &mut Counting) -> Result<Lexical> {
        let mut flat = FlatGrammar::new(self, meter, counting)?;
        let Compiled { determinized, .. } = self.determinize(&mut flat, meter)?;
        let Some(codes) = &flat.codes else {
            return Ok(Lexical { determinized, tokens: TokenEdges::default() });
        };
        Ok(match determinized {
            SparseAutomaton::Finite(rows) => {
                let tokens = codes.edges(rows.rows().all());
                Lexical { determinized: SparseAutomaton::Finite(rows.read_as(codes.read_as())), tokens }
            }
            SparseAutomaton::Pushdown(automaton) => {
                let tokens = codes.edges(automaton.rows().all());
                Lexical {
                    determinized: SparseAutomaton::Pushdown(automaton.read_as(codes.read_as())),
                    tokens,
                }
            }
        })
    }

    /// Runs the checks that need automata.
    fn check(&self, meter: &Meter) -> Result<()> {
        self.checks.iter().try_for_each(|check| check.lower(meter).map(drop))
    }

    /// The automaton of the texts. If the rules are rejected as written, they are removed from
    /// recursion, and `flat` stays rewritten.
    fn determinize(&self, flat: &mut FlatGrammar, meter: &Meter) -> Result<Compiled> {
        let conflict = match self.attempts(flat, meter)? {
            Ok(compiled) => return Ok(compiled),
            Err(conflict) => conflict,
        };
        let explained = self.explained(flat, &conflict, max_stacks(meter));
        let again = match flat.eliminate() {
            Ok(true) => self.attempts(flat, meter),
            Ok(false) => Ok(Err(conflict)),
            Err(error) => Err(error),
        };
        match again {
            Ok(Ok(compiled)) => Ok(compiled),
            Err(error) if error.kind() == ErrorKind::Canceled => Err(error),
            // The error explains the rules as written, because the user can change these.
            Ok(Err(_)) | Err(_) => Err(explained),
        }
    }

    /// The automaton with calls from the outermost level; without outermost calls if the end of the
    /// text leaves a call without a return.
    fn attempts(&self, flat: &FlatGrammar, meter: &Meter) -> Result<std::result::Result<Compiled, Conflict>> {
        match self.attempt(flat, meter, false)? {
            Err(Conflict { kind: ConflictKind::TextEnd, .. }) => self.attempt(flat, meter, true),
            first => Ok(first),
        }
    }

    /// The same with calls from the outermost level copied or not.
    fn attempt(
        &self,
        flat: &FlatGrammar,
        meter: &Meter,
        copies_outermost: bool,
    ) -> Result<std::result::Result<Compiled, Conflict>> {
        let mut emitter = emitter(flat, meter)?;
        let start = emitter.emit(flat.stands[self.start], copies_outermost)?;
        if let Some(name) = &flat.counted_name {
            if emitter.network.has_calls() {
                return Err(counted::beside_recursion(name));
            }
            if flat.lexing.is_some() {
                emitter.network.close_at_boundaries()?;
            }
        }
        match emitter.network.determinize(start, max_stacks(meter)) {
            Ok(Some((determinized, stacks))) => {
                let calls = emitter.calls();
                Ok(Ok(Compiled { determinized, stacks, calls, called: emitter.called }))
            }
            Ok(None) => Err(Error::unsatisfiable("the grammar has no text that ends")),
            Err(Failure::Error(error)) => Err(error),
            Err(Failure::Conflict(conflict)) => Ok(Err(conflict)),
        }
    }

    fn explained(&self, flat: &FlatGrammar, conflict: &Conflict, max: usize) -> Error {
        let [first, second] = conflict.origins.map(|rule| &self.rules[rule as usize].name);
        let text = match &flat.codes {
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
                 {max} ways: make the texts that open and close them differ"
            ),
        })
    }
}

/// The limit on the stacks that readings of the same text have at once.
pub(super) fn max_stacks(meter: &Meter) -> usize {
    meter.limits().stacks.clamp(1, Limits::MAX_STACKS)
}

/// An emitter for a flat grammar.
fn emitter<'p, 'm>(flat: &'p FlatGrammar<'m>, meter: &'m Meter<'m>) -> Result<Emitter<'p, 'm>> {
    let mut emitter = Emitter::new(flat, meter)?;
    if let Some(codes) = &flat.codes {
        emitter.network.set_alphabet(&codes.alphabet());
        if let Some(symbol) = codes.boundary() {
            emitter.network.set_boundary(symbol);
        }
    }
    Ok(emitter)
}
