//! The intermediate form of all grammars: named rules, each an expression.
//!
//! Every syntax is read into this form, and users may build it by hand. Nothing behind it knows which syntax it came from.

use std::sync::Arc;

use super::super::{Constraint, Regex};
use crate::vocabulary::TokenId;

/// Rules, of which one is where texts begin.
#[derive(Clone, Debug)]
pub struct Grammar {
    pub(super) rules: Vec<Rule>,
    /// The index of the rule that describes the whole text.
    pub(super) start: usize,
    /// How a text is cut into terminals.
    pub(super) lexing: Lexing,
}

/// A name and what it stands for.
#[derive(Clone, Debug)]
pub(super) struct Rule {
    pub(super) name: String,
    pub(super) body: Expression,
}

/// How a text is cut into terminals.
#[derive(Clone, Debug, Default)]
pub(super) enum Lexing {
    /// It is not: a text is in the language if any derivation has it.
    #[default]
    None,
    /// Each [terminal](Node::Terminal) is as long as it can be, as a lexer that is told by the parser which terminals may come
    /// would cut the text: a terminal ends where no terminal that may come here can go on with the next byte.
    Longest {
        /// What may stand between two terminals and behind the last one, as often as it likes. It may also stand behind a
        /// [constraint](Node::Constraint), a [token](Node::Token) and a [grammar](Node::Grammar).
        ignored: Option<Expression>,
        /// Whether it may stand in front of the first terminal too.
        leading: bool,
        /// Whether it may stand there only once, so that it bounds what is ignored.
        once: bool,
    },
}

impl Lexing {
    /// The same within a text.
    pub(super) fn within(&self) -> Self {
        match self {
            Self::None => Self::None,
            Self::Longest { ignored, once, .. } => {
                Self::Longest { ignored: ignored.clone(), leading: false, once: *once }
            }
        }
    }
}

/// What a rule stands for: the right-hand side of a grammar.
#[derive(Clone, Debug)]
pub struct Expression(pub(super) Node);

/// An expression, and what it is made of.
#[derive(Clone, Debug)]
pub(super) enum Node {
    /// These bytes, in this order; the empty text where there are none.
    Literal(Vec<u8>),
    /// One character out of inclusive ranges, in UTF-8.
    Class(Vec<(char, char)>),
    /// What a regular expression matches as a whole.
    Regex(Arc<Regex>),
    /// The rule with this index.
    Rule(usize),
    /// All of them, one after the other.
    Sequence(Vec<Expression>),
    /// One of them.
    Choice(Vec<Expression>),
    /// From `min` to `max` times the same; any number from `min` on where `max` is `None`.
    Repeat { inner: Arc<Expression>, min: usize, max: Option<usize> },
    /// What each of them describes. Without rules within.
    And(Vec<Expression>),
    /// Whatever it does not describe. Without rules within.
    Not(Arc<Expression>),
    /// A unit of lexing. Without rules within.
    Terminal(Arc<Terminal>),
    /// A run of neighbours out of these, in their order, which may be empty.
    Substring(Arc<[String]>),
    /// Another constraint, within the text.
    Constraint(Arc<Constraint>),
    /// Another grammar, within the text, with its own way to cut it into terminals.
    Grammar(Arc<Grammar>),
    /// A part of at most so many tokens.
    Counted(Arc<Counted>),
    /// One of some tokens, whatever their bytes; where `except` is set any token but these and the end of the sequence.
    Token { tokens: Vec<TokenName>, except: bool },
}

/// A unit of lexing.
#[derive(Clone, Debug)]
pub(super) struct Terminal {
    /// `None` where it is written in place.
    pub(super) name: Option<String>,
    pub(super) body: Expression,
    /// Whether it ends as soon as it can, instead of as late.
    pub(super) lazy: bool,
}

/// A part of which the tokens are counted that begin within it. Where none is left it ends as soon as it can, and it ends wherever
/// it is [complete](Self::body) and what follows can be read; it is no terminal.
#[derive(Clone, Debug)]
pub(super) struct Counted {
    /// What it is called in an error.
    pub(super) name: String,
    pub(super) body: Expression,
    /// The most tokens, from 1 on.
    pub(super) most: u32,
    /// What it may also end behind where no token is left.
    pub(super) cut_short: Option<CutShort>,
}

/// Texts that are not complete, behind which a [counted](Counted) part may end where no token is left. They are regular by their kind,
/// and then so is the part.
#[derive(Clone, Debug)]
pub(super) struct CutShort {
    pub(super) texts: Expression,
    /// Whether that is so only if these are any texts.
    pub(super) only_any: bool,
}

/// A token, as grammars name it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum TokenName {
    Id(TokenId),
    /// A special token by its text, such as `<think>`.
    Text(String),
}
