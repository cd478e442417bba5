//! Grammars that are built by hand, and by the readers of all syntaxes.

use std::sync::Arc;

use super::form::{Counted, Expression, Grammar, Lexing, Node, Rule, TokenName};
use crate::automaton::FastMap;
use crate::constraint::{CharClass, Constraint, Regex};
use crate::error::{Error, Result};
use crate::vocabulary::TokenId;

/// The greatest count of 31 bits: more tokens or characters than any output has.
pub(in crate::constraint) const NO_BOUND: u32 = i32::MAX as u32;

/// The greatest `max_tokens` of a rule.
pub(super) const MAX_TOKENS: u32 = 1_000_000;

/// Collects the rules of a [`Grammar`].
///
/// ```
/// use burn_dfa::constraint::{Expression, Grammar};
///
/// let mut builder = Grammar::builder();
/// let list = Expression::sequence([
///     Expression::literal("("),
///     builder.rule("list").repeat(0, None),
///     Expression::literal(")"),
/// ]);
/// builder.define("list", list)?;
/// let grammar = builder.finish("list")?;
/// # let _ = grammar;
/// # Ok::<(), burn_dfa::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct GrammarBuilder {
    names: Vec<String>,
    numbers: FastMap<String, usize>,
    /// By number.
    bodies: Vec<Option<Expression>>,
    lexing: Lexing,
}

impl Grammar {
    /// A grammar without rules so far.
    pub fn builder() -> GrammarBuilder {
        GrammarBuilder::default()
    }

    /// The names of the rules, in the order in which they were met.
    pub fn rule_names(&self) -> impl Iterator<Item = &str> {
        self.rules.iter().map(|rule| rule.name.as_str())
    }
}

impl GrammarBuilder {
    /// The rule of this name, as a part of another. It may be defined later.
    pub fn rule(&mut self, name: &str) -> Expression {
        Expression(Node::Rule(self.number(name)))
    }

    /// Notes a name that will be said what it stands for, so that rules are in the order in which they are written.
    pub(super) fn meet(&mut self, name: &str) {
        self.number(name);
    }

    /// Says what a name stands for.
    ///
    /// # Errors
    /// Where it was said before.
    pub fn define(&mut self, name: &str, body: Expression) -> Result<()> {
        let number = self.number(name);
        if self.bodies[number].is_some() {
            return Err(Error::input(format!("the rule `{name}` is defined twice")));
        }
        self.bodies[number] = Some(body);
        Ok(())
    }

    /// Whether a name is defined already.
    pub(super) fn is_defined(&self, name: &str) -> bool {
        self.numbers.get(name).is_some_and(|&number| self.bodies[number].is_some())
    }

    /// The first rule that is used and not defined.
    pub(super) fn undefined(&self) -> Option<&str> {
        let at = self.bodies.iter().position(Option::is_none)?;
        Some(&self.names[at])
    }

    /// How texts are cut into terminals.
    pub(super) fn lexing(&mut self, lexing: Lexing) {
        self.lexing = lexing;
    }

    /// The grammar of the texts that the rule `start` describes.
    ///
    /// # Errors
    /// Where a rule that is used is not defined, or `start` is not.
    pub fn finish(self, start: &str) -> Result<Grammar> {
        if let Some(name) = self.undefined() {
            return Err(Error::input(format!("the rule `{name}` is not defined")));
        }
        let Some(&start) = self.numbers.get(start) else {
            return Err(Error::input(format!("the rule `{start}`, where texts begin, is not defined")));
        };
        let bodies = self.bodies.into_iter().flatten();
        let rules = self.names.into_iter().zip(bodies).map(|(name, body)| Rule { name, body });
        Ok(Grammar { rules: rules.collect(), start, lexing: self.lexing })
    }

    fn number(&mut self, name: &str) -> usize {
        if let Some(&number) = self.numbers.get(name) {
            return number;
        }
        self.numbers.insert(name.to_owned(), self.names.len());
        self.names.push(name.to_owned());
        self.bodies.push(None);
        self.names.len() - 1
    }
}

impl Expression {
    /// A text as it is; it may be empty.
    pub fn literal(text: &str) -> Self {
        Self(Node::Literal(text.as_bytes().to_vec()))
    }

    /// Bytes as they are, UTF-8 or not.
    pub fn bytes(bytes: &[u8]) -> Self {
        Self(Node::Literal(bytes.to_vec()))
    }

    /// One character of a class.
    pub fn class(class: &CharClass) -> Self {
        Self(Node::Class(class.ranges().to_vec()))
    }

    /// All of them, one after the other; of none the empty text.
    pub fn sequence(parts: impl IntoIterator<Item = Self>) -> Self {
        Self(Node::Sequence(parts.into_iter().collect()))
    }

    /// One of them; of none nothing at all, not even the empty text.
    pub fn choice(parts: impl IntoIterator<Item = Self>) -> Self {
        Self(Node::Choice(parts.into_iter().collect()))
    }

    /// From `min` to `max` times the same, without a bound where `max` is `None`.
    #[must_use]
    pub fn repeat(self, min: usize, max: Option<usize>) -> Self {
        Self(Node::Repeat { inner: Arc::new(self), min, max })
    }

    /// The same of at most so many tokens.
    ///
    /// Tokens count that begin within it; one that begins in front of it does not. Where none is left it has to end, if it can: no
    /// other token may go on in it. Where it cannot, it goes on for a token more, and then the same is asked again, so that it ends
    /// as soon as it can. With 0 it is the empty text, and with 2,147,483,647 there is no bound.
    ///
    /// It is copied for each number of tokens that are left, so it must not be recursive, and the grammar around it must not be
    /// either: compiling it is refused. The table is [tabulated](crate::TokenTable::tabulate).
    ///
    /// ```
    /// use burn_dfa::constraint::{Expression, Grammar};
    /// use burn_dfa::{Constraint, Limits, TokenId, TokenTable, Vocabulary};
    ///
    /// let mut builder = Grammar::builder();
    /// let word = Expression::constraint(Constraint::regex("[ab]*")?);
    /// builder.define("root", Expression::sequence([word.max_tokens(2), Expression::literal(".")]))?;
    /// let constraint = Constraint::of_grammar(builder.finish("root")?);
    /// let vocabulary = Vocabulary::from_bytes([Some("a"), Some("b"), Some("ab"), Some("."), None])?.with_eos([TokenId(4)])?;
    /// let table = TokenTable::compile(&constraint, &vocabulary, &Limits::default())?;
    /// assert!(table.accepts(&[2, 0, 3, 4].map(TokenId)) && !table.accepts(&[0, 1, 0, 3, 4].map(TokenId)));
    /// # Ok::<(), burn_dfa::Error>(())
    /// ```
    #[must_use]
    pub fn max_tokens(self, most: u32) -> Self {
        self.counted("a part".to_owned(), most)
    }

    /// The same with a name for errors.
    pub(in crate::constraint) fn counted(self, name: String, most: u32) -> Self {
        match most {
            0 => Self::literal(""),
            NO_BOUND.. => self,
            most => Self(Node::Counted(Arc::new(Counted { name, body: self, most, cut_short: None }))),
        }
    }

    /// What a regular expression matches as a whole.
    pub(in crate::constraint) fn regex(regex: Regex) -> Self {
        Self(Node::Regex(Arc::new(regex)))
    }

    /// One of some tokens, or where `except` any other token.
    pub(in crate::constraint) fn tokens(mut ids: Vec<TokenId>, mut names: Vec<String>, except: bool) -> Self {
        ids.sort_unstable();
        ids.dedup();
        names.sort_unstable();
        names.dedup();
        let ids = ids.into_iter().map(TokenName::Id);
        let tokens = ids.chain(names.into_iter().map(TokenName::Text)).collect();
        Self(Node::Token { tokens, except })
    }

    /// A text of another constraint: a regex, a schema, a grammar.
    pub fn constraint(constraint: Constraint) -> Self {
        Self(Node::Constraint(Arc::new(constraint)))
    }
}
