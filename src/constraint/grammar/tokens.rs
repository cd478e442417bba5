//! Tokens that a grammar names.
//!
//! A token is read whole, whatever its bytes. While an automaton is built it is one byte that no UTF-8 text has, so that
//! ways, calls and the subset construction need not know of it; afterwards these bytes become special-token edges.

use std::sync::Arc;

use super::form::{Expression, Grammar, Lexing, Node, Rule, TokenName};
use crate::automaton::{ByteDfa, RowDfa, Run};
use crate::error::{Error, Result};
use crate::vocabulary::{TokenId, Vocabulary};

/// The byte of the first token.
pub(super) const FIRST: u8 = 0xF8;

/// Most tokens that a grammar names.
pub(super) const MOST: usize = 256 - FIRST as usize;

/// Whether a run is of tokens.
fn is_token(run: &Run) -> bool {
    run.first >= FIRST
}

/// The edges of tokens among the rows of an automaton.
pub(super) fn edges<'a>(
    rows: impl Iterator<Item = (u32, &'a [Run])>,
    tokens: &[TokenId],
) -> Vec<(u32, TokenId, u32)> {
    let mut edges = Vec::new();
    for (state, row) in rows {
        for run in row.iter().filter(|run| is_token(run)) {
            let named = (run.first..=run.last).map(|byte| tokens[(byte - FIRST) as usize]);
            edges.extend(named.map(|token| (state, token, run.target)));
        }
    }
    edges.sort_unstable_by_key(|&(state, token, _)| (token, state));
    edges
}

/// The bytes of a row.
pub(super) fn bytes_alone(run: &Run) -> bool {
    !is_token(run)
}

/// Whether an automaton reads a byte that stands for a token.
pub(super) fn are_read_by_dfa(dfa: &ByteDfa) -> bool {
    are_read_by_rows(&RowDfa::from(dfa))
}

/// Likewise.
pub(super) fn are_read_by_rows(rows: &RowDfa) -> bool {
    let rows = rows.rows();
    (1..rows.state_count() as u32).any(|state| rows.row(state).iter().any(|run| run.last >= FIRST))
}

impl Grammar {
    /// The same with ids for the names of tokens; `None` where it names none.
    ///
    /// # Errors
    /// Where the vocabulary has no special token of a name.
    pub(in super::super) fn with_ids(&self, vocabulary: &Vocabulary) -> Result<Option<Self>> {
        let mut ids = Ids { vocabulary, found: false };
        let mut rules = Vec::with_capacity(self.rules.len());
        for rule in &self.rules {
            rules.push(Rule { name: rule.name.clone(), body: ids.expression(&rule.body)? });
        }
        let lexing = match &self.lexing {
            Lexing::Longest { ignored: Some(ignored), leading, once } => {
                Lexing::Longest { ignored: Some(ids.expression(ignored)?), leading: *leading, once: *once }
            }
            other => other.clone(),
        };
        Ok(ids.found.then(|| Self { rules, start: self.start, lexing }))
    }
}

/// Puts ids for names.
struct Ids<'v> {
    vocabulary: &'v Vocabulary,
    found: bool,
}

impl Ids<'_> {
    fn expression(&mut self, expression: &Expression) -> Result<Expression> {
        Ok(Expression(match &expression.0 {
            Node::Token { tokens, except } => {
                let ids: Result<Vec<_>> = tokens.iter().map(|token| self.id(token)).collect();
                Node::Token { tokens: ids?, except: *except }
            }
            Node::Sequence(parts) => Node::Sequence(self.all(parts)?),
            Node::Choice(parts) => Node::Choice(self.all(parts)?),
            Node::Repeat { inner, min, max } => {
                Node::Repeat { inner: Arc::new(self.expression(inner)?), min: *min, max: *max }
            }
            Node::Grammar(grammar) => match grammar.with_ids(self.vocabulary)? {
                Some(grammar) => {
                    self.found = true;
                    Node::Grammar(Arc::new(grammar))
                }
                None => Node::Grammar(Arc::clone(grammar)),
            },
            other => other.clone(),
        }))
    }

    fn all(&mut self, parts: &[Expression]) -> Result<Vec<Expression>> {
        parts.iter().map(|part| self.expression(part)).collect()
    }

    fn id(&mut self, token: &TokenName) -> Result<TokenName> {
        let TokenName::Text(name) = token else { return Ok(token.clone()) };
        self.found = true;
        let ids = (0..self.vocabulary.len() as u32).map(TokenId);
        let mut named = ids.filter(|&id| {
            self.vocabulary.bytes(id).is_none() && self.vocabulary.content(id) == Some(name.as_bytes())
        });
        named.next().map(TokenName::Id).ok_or_else(|| {
            Error::incompatible_vocabulary(format!(
                "the grammar names the token {name:?}, which is no special token of the vocabulary: name it by its id"
            ))
        })
    }
}
