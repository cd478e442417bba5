//! The intermediate form of all grammars: named rules, each an expression.
//!
//! Every syntax is parsed into this form, and users may build it by hand. Later stages do not
//! depend on the syntax.

use std::sync::Arc;

use super::super::{Constraint, Deferred, Regex};
use burn_dfa_vocabulary::TokenId;

/// Rules, with a start rule.
#[derive(Clone, Debug)]
pub struct Grammar {
    pub(super) rules: Vec<Rule>,
    /// The index of the start rule.
    pub(super) start: usize,
    /// How a text is cut into terminals.
    pub(super) lexing: Lexing,
    /// Conditions that need automata to check. Each check fails when it is lowered, or is an
    /// automaton that is not used.
    pub(super) checks: Vec<Deferred>,
}

/// A name and its expression.
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
    /// Each [terminal](Node::Terminal) is as long as possible, as if a lexer knew from the parser
    /// which terminals may come: a terminal ends if no terminal allowed here can continue with the
    /// next byte.
    Longest {
        /// Ignored text between two terminals and after the last one, any number of times. It may
        /// also come after a [constraint](Node::Constraint), a [token](Node::Token) and a
        /// [grammar](Node::Grammar).
        ignored: Option<Expression>,
        /// Whether it may also come before the first terminal.
        leading: bool,
        /// Whether it may come only once between terminals, so it bounds ignored text.
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

/// The right-hand side of a rule.
#[derive(Clone, Debug)]
pub struct Expression(pub(super) Node);

/// An expression and its operands.
#[derive(Clone, Debug)]
pub(super) enum Node {
    /// These bytes, in order; the empty text if there are none.
    Literal(Vec<u8>),
    /// One character out of inclusive ranges, in UTF-8.
    Class(Vec<(char, char)>),
    /// A regular expression, matched as a whole.
    Regex(Arc<Regex>),
    /// The rule at this index.
    Rule(usize),
    /// All expressions, in order.
    Sequence(Vec<Expression>),
    /// One of the expressions.
    Choice(Vec<Expression>),
    /// From `min` to `max` repetitions; no upper bound if `max` is `None`.
    Repeat { inner: Arc<Expression>, min: usize, max: Option<usize> },
    /// The intersection of expressions without rules.
    And(Vec<Expression>),
    /// The complement of an expression without rules.
    Not(Arc<Expression>),
    /// A unit of lexing. Without rules within.
    Terminal(Arc<Terminal>),
    /// A contiguous run of the strings, in order, possibly empty.
    Substring(Arc<[String]>),
    /// Another constraint, within the text.
    Constraint(Arc<Constraint>),
    /// Another grammar, within the text, with its own way to cut it into terminals.
    Grammar(Arc<Grammar>),
    /// A part with a bounded number of tokens.
    Counted(Arc<Counted>),
    /// Some of the texts of a part.
    Bounded(Arc<Bounded>),
    /// One of some tokens, regardless of their bytes; if `except`, any other token except the end
    /// of the sequence.
    Token { tokens: Vec<TokenName>, except: bool },
}

/// A unit of lexing.
#[derive(Clone, Debug)]
pub(super) struct Terminal {
    /// `None` for a terminal written inline.
    pub(super) name: Option<String>,
    pub(super) body: Expression,
    /// Whether it ends as soon as it can, instead of as late.
    pub(super) lazy: bool,
}

/// Bounded texts of a regular part; rules in it may refer to themselves if the recursion is a loop.
/// It contains no tokens.
#[derive(Clone, Debug)]
pub(super) struct Bounded {
    /// Its name in an error.
    pub(super) name: String,
    pub(super) body: Expression,
    /// Whether each text ends as early as possible: no text is a prefix of another.
    pub(super) lazy: bool,
    /// Most characters.
    pub(super) max_chars: Option<usize>,
}

/// A part with a bounded number of tokens that begin within it. If no token is left, it ends as
/// soon as it can. It may end after every [complete](Self::body) text if the next part can be read;
/// it is no terminal.
#[derive(Clone, Debug)]
pub(super) struct Counted {
    /// Its name in an error.
    pub(super) name: String,
    pub(super) body: Expression,
    /// The most tokens, from 1 on.
    pub(super) max_tokens: u32,
    /// The additional texts after which it may end if no token is left.
    pub(super) cut_short: Option<CutShort>,
}

/// Incomplete texts after which a [counted](Counted) part may end if no token is left. They are
/// regular by their kind, and then the part is regular, too.
#[derive(Clone, Debug)]
pub(super) struct CutShort {
    pub(super) texts: Expression,
    /// Whether this applies only if the texts are arbitrary.
    pub(super) only_any: bool,
}

/// A token, as grammars name it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum TokenName {
    Id(TokenId),
    /// A special token by its text, such as `<think>`.
    Text(String),
}
