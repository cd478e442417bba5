//! What stands right of a colon, and definitions.

use super::super::form::{Expression, Node};
use super::attributes::Attributes;

/// A part of a definition.
pub(super) struct Tree<'t> {
    pub(super) at: usize,
    pub(super) kind: Kind<'t>,
}

/// A part, and what it is made of.
pub(super) enum Kind<'t> {
    /// A string, a regex, a range of characters: what may be part of a terminal.
    Regular(Expression),
    /// What may only be part of a rule, and what it is called.
    Foreign(Expression, &'static str),
    /// A rule or a terminal.
    Name(&'t str),
    Sequence(Vec<Tree<'t>>),
    Choice(Vec<Tree<'t>>),
    And(Vec<Tree<'t>>),
    Not(Box<Tree<'t>>),
    Repeat {
        inner: Box<Tree<'t>>,
        min: usize,
        max: Option<usize>,
    },
}

impl Kind<'_> {
    /// The bytes of a string without a flag.
    pub(super) fn text(&self) -> Option<&[u8]> {
        match self {
            Self::Regular(Expression(Node::Literal(text))) => Some(text),
            _ => None,
        }
    }
}

/// A rule or a terminal.
pub(super) struct Definition<'t> {
    pub(super) name: &'t str,
    pub(super) at: usize,
    pub(super) terminal: bool,
    pub(super) attributes: Attributes<'t>,
    pub(super) body: Tree<'t>,
}

/// The lines of a grammar.
#[derive(Default)]
pub(super) struct Document<'t> {
    pub(super) definitions: Vec<Definition<'t>>,
    pub(super) ignored: Vec<Tree<'t>>,
    pub(super) options: Options,
}

/// What `%llguidance` and `%grammar_options` say.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Options {
    /// Whether ignored text may stand in front of the first terminal.
    pub(super) leading: bool,
    /// Whether it may be ignored only once between two terminals.
    pub(super) once: bool,
}
