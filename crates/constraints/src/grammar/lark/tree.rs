//! The definitions of a grammar: their attributes and their right-hand sides.

use std::collections::HashMap;

use super::super::form::{Expression, Node};
use super::parametric::{Condition, Step};

/// A part of a definition.
pub(super) struct Tree<'t> {
    pub(super) at: usize,
    pub(super) kind: Kind<'t>,
}

/// A part and its operands.
pub(super) enum Kind<'t> {
    /// A string, a regex, a range of characters: parts allowed in terminals.
    Regular(Expression),
    /// A part allowed only in rules, and its name in errors.
    Foreign(Expression, &'static str),
    /// A rule or a terminal.
    Name(&'t str),
    /// A template with arguments, or a rule with the value of its parameter.
    Use(Box<Use<'t>>),
    /// A part that counts only if a condition on the parameter holds.
    If(Box<Tree<'t>>, Condition),
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

/// A template with arguments, or a rule with the value of its parameter.
pub(super) struct Use<'t> {
    pub(super) name: &'t str,
    pub(super) arguments: Vec<Argument<'t>>,
    pub(super) step: Option<Step>,
}

/// An argument of a template.
pub(super) struct Argument<'t> {
    pub(super) tree: Tree<'t>,
    pub(super) text: &'t str,
    /// The same for the same text.
    pub(super) number: usize,
}

/// A rule or a terminal.
pub(super) struct Definition<'t> {
    pub(super) name: &'t str,
    pub(super) at: usize,
    pub(super) terminal: bool,
    /// The parameters of a template, at least one; empty for other definitions.
    pub(super) parameters: Vec<&'t str>,
    /// Whether it is defined as `name::_`.
    pub(super) parametric: bool,
    /// Of two matching terminals, the one with the higher priority is read.
    pub(super) priority: i32,
    pub(super) attributes: Attributes<'t>,
    pub(super) body: Tree<'t>,
}

/// How a rule is to be matched.
#[derive(Default)]
pub(super) struct Attributes<'t> {
    /// It ends as soon as it can.
    pub(super) lazy: bool,
    /// The text that ends the rule.
    pub(super) end: Option<End<'t>>,
    /// The end of the sequence ends it, as in `stop=""`; this only turns the rule into a terminal.
    pub(super) whole: bool,
    /// Most characters of the rule.
    pub(super) max_chars: Option<usize>,
    /// Most tokens that begin in the rule, at least 1.
    pub(super) max_tokens: Option<u32>,
    /// A temperature makes a terminal of a rule.
    pub(super) temperature: bool,
    /// The attribute names, with their offsets.
    pub(super) met: Vec<(&'t str, usize)>,
}

/// The end of a rule: the rule matches up to the first match of its body and this end.
pub(super) struct End<'t> {
    pub(super) value: Tree<'t>,
    /// Whether the end is a `stop`, which is hidden from captures of the rule. If a string after
    /// the rule begins with the same text, the end is that text.
    pub(super) stop: bool,
}

impl<'t> Attributes<'t> {
    pub(super) fn is_empty(&self) -> bool {
        self.met.is_empty()
    }

    /// Whether the attributes require that the rule is matched as a whole.
    pub(super) fn is_whole(&self) -> bool {
        self.lazy || self.whole || self.end.is_some() || self.max_chars.is_some() || self.temperature
    }

    /// Texts of at most `max_chars` characters.
    pub(super) fn bounded(&self, body: Expression) -> Expression {
        let Some(max) = self.max_chars else { return body };
        let any = Expression(Node::Class(vec![('\0', char::MAX)]));
        Expression(Node::And(vec![body, any.repeat(0, Some(max))]))
    }

    /// The offset of an attribute.
    pub(super) fn offset_of(&self, name: &str) -> Option<usize> {
        self.met.iter().find(|(met, _)| *met == name).map(|&(_, at)| at)
    }
}

/// The lines of a grammar.
#[derive(Default)]
pub(super) struct Document<'t> {
    pub(super) definitions: Vec<Definition<'t>>,
    /// The index of the first definition of each name.
    numbers: HashMap<&'t str, usize>,
    priorities: bool,
    pub(super) ignored: Vec<Tree<'t>>,
    pub(super) options: Options,
}

impl<'t> Document<'t> {
    pub(super) fn define(&mut self, definition: Definition<'t>) {
        self.priorities |= definition.terminal && definition.priority != 0;
        self.numbers.entry(definition.name).or_insert(self.definitions.len());
        self.definitions.push(definition);
    }

    pub(super) fn replace(&mut self, number: usize, definition: Definition<'t>) {
        self.priorities |= definition.terminal && definition.priority != 0;
        self.definitions[number] = definition;
    }

    /// Whether a terminal has a priority.
    pub(super) fn has_priorities(&self) -> bool {
        self.priorities
    }

    /// The index of the first definition of a name.
    pub(super) fn number(&self, name: &str) -> Option<usize> {
        self.numbers.get(name).copied()
    }
}

/// The options of `%llguidance` and `%grammar_options`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Options {
    /// Whether ignored text may come before the first terminal.
    pub(super) leading: bool,
    /// Whether it may be ignored only once between two terminals.
    pub(super) once: bool,
}

impl<'t> Definition<'t> {
    /// A terminal with this tree.
    pub(super) fn of_terminal(name: &'t str, at: usize, body: Tree<'t>) -> Self {
        let (parameters, attributes) = (Vec::new(), Attributes::default());
        Self { name, at, terminal: true, parameters, parametric: false, priority: 0, attributes, body }
    }

    /// Adds alternatives.
    pub(super) fn extend(&mut self, tree: Tree<'t>) {
        match &mut self.body.kind {
            Kind::Choice(parts) => parts.push(tree),
            _ => {
                let at = self.body.at;
                let all = Tree { at, kind: Kind::Choice(Vec::new()) };
                let first = std::mem::replace(&mut self.body, all);
                self.body.kind = Kind::Choice(vec![first, tree]);
            }
        }
    }

    /// Whether it is instantiated at each use.
    pub(super) fn is_generic(&self) -> bool {
        self.parametric || !self.parameters.is_empty()
    }
}
