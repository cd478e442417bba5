//! The ids of tokens that a grammar names by their text.

use std::collections::HashMap;
use std::sync::Arc;

use crate::grammar::form::{Counted, Expression, Grammar, Lexing, Node, Rule, TokenName};
use burn_dfa_common::{Error, Result};
use burn_dfa_vocabulary::{TokenId, Vocabulary};

impl Grammar {
    /// Whether tokens are a part of it.
    pub(crate) fn names_tokens(&self) -> bool {
        let ignored = match &self.lexing {
            Lexing::Longest { ignored, .. } => ignored.as_ref(),
            _ => None,
        };
        self.rules.iter().map(|rule| &rule.body).chain(ignored).any(Expression::names_tokens)
    }

    /// The same grammar with ids for the names of tokens; `None` if it names none.
    ///
    /// # Errors
    /// The vocabulary has no token with such a name.
    pub(crate) fn with_ids(&self, vocabulary: &Vocabulary) -> Result<Option<Self>> {
        let mut ids = Ids { vocabulary, by_text: None, found: false };
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
        Ok(ids.found.then(|| Self { rules, start: self.start, lexing, checks: self.checks.clone() }))
    }
}

impl Expression {
    fn names_tokens(&self) -> bool {
        match &self.0 {
            Node::Token { .. } => true,
            Node::Sequence(parts) | Node::Choice(parts) => parts.iter().any(Self::names_tokens),
            Node::Repeat { inner, .. } => inner.names_tokens(),
            Node::Grammar(grammar) => grammar.names_tokens(),
            Node::Counted(counted) => counted.body.names_tokens(),
            _ => false,
        }
    }
}

/// Puts ids for names.
struct Ids<'v> {
    vocabulary: &'v Vocabulary,
    /// The tokens of each text, computed on first use.
    by_text: Option<HashMap<&'v [u8], Vec<TokenId>>>,
    found: bool,
}

impl Ids<'_> {
    fn expression(&mut self, expression: &Expression) -> Result<Expression> {
        Ok(Expression(match &expression.0 {
            Node::Token { tokens, except } => {
                let mut ids = Vec::with_capacity(tokens.len());
                tokens.iter().try_for_each(|token| self.ids(token, &mut ids))?;
                Node::Token { tokens: ids, except: *except }
            }
            Node::Sequence(parts) => Node::Sequence(self.all(parts)?),
            Node::Choice(parts) => Node::Choice(self.all(parts)?),
            Node::Repeat { inner, min, max } => {
                Node::Repeat { inner: Arc::new(self.expression(inner)?), min: *min, max: *max }
            }
            Node::Counted(counted) => {
                let body = self.expression(&counted.body)?;
                Node::Counted(Arc::new(Counted { body, ..(**counted).clone() }))
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

    /// Adds the ids of a token; for a text, all tokens with this text.
    fn ids(&mut self, token: &TokenName, ids: &mut Vec<TokenName>) -> Result<()> {
        let TokenName::Text(name) = token else {
            ids.push(token.clone());
            return Ok(());
        };
        self.found = true;
        let vocabulary = self.vocabulary;
        let by_text = self.by_text.get_or_insert_with(|| {
            let mut by_text: HashMap<&[u8], Vec<TokenId>> = HashMap::new();
            for id in (0..vocabulary.len() as u32).map(TokenId) {
                by_text.entry(vocabulary.content(id).unwrap_or_default()).or_default().push(id);
            }
            by_text
        });
        let Some(named) = by_text.get(name.as_bytes()) else {
            return Err(Error::incompatible_vocabulary(format!(
                "the grammar names the token {name:?}, which is no token of the vocabulary: name it by its id"
            )));
        };
        ids.extend(named.iter().copied().map(TokenName::Id));
        Ok(())
    }
}
