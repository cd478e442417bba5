//! The state of the conversion of a document to a grammar.

use std::collections::HashMap;
use std::sync::Arc;

use super::super::builder::GrammarBuilder;
use super::super::form::{Expression, Grammar, Terminal};
use super::super::source::Source;
use super::tree::{Argument, Definition, Document};
use burn_dfa_common::{Error, Result};

/// The state of the conversion of definitions to a grammar.
pub(super) struct Lowering<'a, 't> {
    pub(super) source: Source<'t>,
    pub(super) document: &'a Document<'t>,
    pub(super) builder: GrammarBuilder,
    pub(super) known: HashMap<&'t str, Known>,
    pub(super) units: HashMap<&'t str, Arc<Terminal>>,
    /// The unnamed lexer units, if terminals have priorities.
    pub(super) nameless: Vec<Expression>,
    pub(super) instances: Instances<'a, 't>,
    /// The current instance.
    pub(super) scope: Option<usize>,
    /// The current definition.
    pub(super) rule: Option<&'t str>,
}

/// A regular expression, and its nesting depth.
#[derive(Clone)]
pub(super) struct Regular {
    pub(super) expression: Expression,
    pub(super) levels: usize,
}

/// The state of a terminal.
#[derive(Clone)]
pub(super) enum Known {
    /// It is being made.
    Begun,
    /// It can be part of other terminals.
    Made(Regular),
}

/// The value of a template parameter.
#[derive(Clone, Copy)]
pub(super) enum Value<'a, 't> {
    /// A string, a regex, a range.
    Text(&'a Argument<'t>),
    /// A rule, a terminal or a template.
    Name(&'t str),
    /// An instance, by its number.
    Instance(usize),
}

/// The key of an instance: the definition, the template arguments, the value of the parameter.
#[derive(PartialEq, Eq, Hash)]
pub(super) struct Key<'t> {
    pub(super) definition: &'t str,
    pub(super) values: Vec<ValueKey<'t>>,
    pub(super) parameter: Option<u64>,
}

/// A [`Value`] in a key.
#[derive(PartialEq, Eq, Hash)]
pub(super) enum ValueKey<'t> {
    Text(usize),
    Name(&'t str),
    Instance(usize),
}

/// A rule made from a template or a parametric rule.
pub(super) struct Instance<'a, 't> {
    pub(super) definition: &'a Definition<'t>,
    pub(super) values: Vec<Value<'a, 't>>,
    pub(super) parameter: Option<u64>,
    pub(super) name: String,
}

/// The instances so far, in order of first reference.
#[derive(Default)]
pub(super) struct Instances<'a, 't> {
    pub(super) all: Vec<Instance<'a, 't>>,
    pub(super) numbers: HashMap<Key<'t>, usize>,
    /// Number of instances with a body.
    pub(super) defined: usize,
    pub(super) expanded: usize,
}

impl<'a, 't> Lowering<'a, 't> {
    /// A conversion that has not begun.
    pub(super) fn new(source: Source<'t>, document: &'a Document<'t>) -> Self {
        Self {
            source,
            document,
            builder: Grammar::builder(),
            known: HashMap::new(),
            units: HashMap::new(),
            nameless: Vec::new(),
            instances: Instances::default(),
            scope: None,
            rule: None,
        }
    }

    /// An error within the current definition.
    pub(super) fn error(&self, at: usize, reason: impl Into<String>) -> Error {
        self.source.error(at, self.rule, reason)
    }

    /// The definition of a name, if it exists.
    pub(super) fn known_definition(&self, name: &str) -> Option<&'a Definition<'t>> {
        self.document.number(name).map(|number| &self.document.definitions[number])
    }

    /// The definition of a name used at `at`.
    pub(super) fn definition(&self, name: &str, at: usize) -> Result<&'a Definition<'t>> {
        self.known_definition(name).ok_or_else(|| self.error(at, format!("`{name}` is not defined")))
    }
}

impl<'t> Value<'_, 't> {
    /// The value in the key of an instance.
    pub(super) fn key(&self) -> ValueKey<'t> {
        match self {
            Self::Text(argument) => ValueKey::Text(argument.number),
            Self::Name(name) => ValueKey::Name(name),
            Self::Instance(number) => ValueKey::Instance(*number),
        }
    }
}
