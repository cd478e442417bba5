//! Grammars built by hand, and by the readers of all syntaxes.

use std::collections::HashMap;
use std::sync::Arc;

use super::form::{Counted, Expression, Grammar, Lexing, Node, Rule, TokenName};
use crate::{CharClass, Constraint, Deferred, Regex};
use burn_dfa_common::{Error, Result};
use burn_dfa_vocabulary::TokenId;

/// The greatest count of 31 bits: more tokens or characters than any output has.
pub(crate) const NO_BOUND: u32 = i32::MAX as u32;

/// The greatest `max_tokens` of a rule.
pub(super) const MAX_TOKENS: u32 = 1_000_000;

/// Collects the rules of a [`Grammar`].
///
/// ```
/// use burn_dfa_tokens::constraint::{Expression, Grammar};
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
/// # Ok::<(), burn_dfa_tokens::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct GrammarBuilder {
    names: Vec<String>,
    numbers: HashMap<String, usize>,
    /// By number.
    bodies: Vec<Option<Expression>>,
    lexing: Lexing,
    checks: Vec<Deferred>,
}

impl Grammar {
    /// A grammar without rules.
    pub fn builder() -> GrammarBuilder {
        GrammarBuilder::default()
    }

    /// The names of the rules, in order of first occurrence.
    pub fn rule_names(&self) -> impl Iterator<Item = &str> {
        self.rules.iter().map(|rule| rule.name.as_str())
    }
}

impl GrammarBuilder {
    /// The rule with this name, as a part of an expression. It may be defined later.
    pub fn rule(&mut self, name: &str) -> Expression {
        Expression(Node::Rule(self.number(name)))
    }

    /// Records a name before its definition, so rules keep their written order.
    pub(super) fn meet(&mut self, name: &str) {
        self.number(name);
    }

    /// Defines a rule.
    ///
    /// # Errors
    /// The rule is already defined.
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

    /// The first rule without a definition.
    pub(super) fn undefined(&self) -> Option<&str> {
        let at = self.bodies.iter().position(Option::is_none)?;
        Some(&self.names[at])
    }

    /// How texts are cut into terminals.
    pub(super) fn lexing(&mut self, lexing: Lexing) {
        self.lexing = lexing;
    }

    /// A condition on the grammar, checked when it is lowered.
    pub(super) fn check(&mut self, check: Deferred) {
        self.checks.push(check);
    }

    /// The grammar of the texts of the rule `start`.
    ///
    /// # Errors
    /// A used rule, or `start`, has no definition.
    pub fn finish(self, start: &str) -> Result<Grammar> {
        if let Some(name) = self.undefined() {
            return Err(Error::input(format!("the rule `{name}` is not defined")));
        }
        let Some(&start) = self.numbers.get(start) else {
            return Err(Error::input(format!("the rule `{start}`, where texts begin, is not defined")));
        };
        let bodies = self.bodies.into_iter().flatten();
        let rules = self.names.into_iter().zip(bodies).map(|(name, body)| Rule { name, body });
        Ok(Grammar { rules: rules.collect(), start, lexing: self.lexing, checks: self.checks })
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

    /// Literal bytes, UTF-8 or not.
    pub fn bytes(bytes: &[u8]) -> Self {
        Self(Node::Literal(bytes.to_vec()))
    }

    /// One character of a class.
    pub fn class(class: &CharClass) -> Self {
        Self(Node::Class(class.ranges().to_vec()))
    }

    /// All parts in order; the empty text if `parts` is empty.
    pub fn sequence(parts: impl IntoIterator<Item = Self>) -> Self {
        Self(Node::Sequence(parts.into_iter().collect()))
    }

    /// One of the parts; no text at all, not even the empty one, if `parts` is empty.
    pub fn choice(parts: impl IntoIterator<Item = Self>) -> Self {
        Self(Node::Choice(parts.into_iter().collect()))
    }

    /// From `min` to `max` repetitions; no upper bound if `max` is `None`.
    #[must_use]
    pub fn repeat(self, min: usize, max: Option<usize>) -> Self {
        Self(Node::Repeat { inner: Arc::new(self), min, max })
    }

    /// The expression, limited to `max_tokens` tokens.
    ///
    /// Only tokens that begin within the expression count. If no token is left, the expression has
    /// to end if it can: no other token may continue it. If it cannot end, it continues for one
    /// token, then the rule applies again, so it ends as soon as it can. With 0 it is the empty
    /// text, and 2,147,483,647 means no bound.
    ///
    /// It is copied for each remaining number of tokens, so neither it nor the grammar around it
    /// may be recursive: compilation fails. The constraint is compiled to the token-level
    /// form.
    ///
    /// ```
    /// use burn_dfa_tokens::constraint::{Expression, Grammar};
    /// use burn_dfa_tokens::{Constraint, Limits, TokenId, CompiledConstraint, Vocabulary};
    ///
    /// let mut builder = Grammar::builder();
    /// let word = Expression::constraint(Constraint::regex("[ab]*")?);
    /// builder
    ///     .define("root", Expression::sequence([word.max_tokens(2), Expression::literal(".")]))?;
    /// let constraint = Constraint::from_grammar(builder.finish("root")?);
    /// let vocabulary =
    ///     Vocabulary::from_bytes([Some("a"), Some("b"), Some("ab"), Some("."), None])?
    ///         .with_eos([TokenId(4)])?;
    /// let compiled = CompiledConstraint::compile(&constraint, &vocabulary, &Limits::default())?;
    /// assert!(
    ///     compiled.accepts(&[2, 0, 3, 4].map(TokenId))
    ///         && !compiled.accepts(&[0, 1, 0, 3, 4].map(TokenId))
    /// );
    /// # Ok::<(), burn_dfa_tokens::Error>(())
    /// ```
    #[must_use]
    pub fn max_tokens(self, max_tokens: u32) -> Self {
        self.counted("a part".to_owned(), max_tokens)
    }

    /// The same with a name for errors.
    pub(crate) fn counted(self, name: String, max_tokens: u32) -> Self {
        match max_tokens {
            0 => Self::literal(""),
            NO_BOUND.. => self,
            max_tokens => {
                Self(Node::Counted(Arc::new(Counted { name, body: self, max_tokens, cut_short: None })))
            }
        }
    }

    /// A regular expression matched as a whole.
    pub(crate) fn regex(regex: Regex) -> Self {
        Self(Node::Regex(Arc::new(regex)))
    }

    /// One token of a set, or any other token if `except`.
    pub(crate) fn tokens(mut ids: Vec<TokenId>, mut names: Vec<String>, except: bool) -> Self {
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
