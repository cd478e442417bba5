//! Rules out of trees, and with them the grammar.

use std::collections::HashMap;
use std::sync::Arc;

use super::super::builder::GrammarBuilder;
use super::super::form::{Expression, Grammar, Lexing, Node, Terminal};
use super::super::source::Source;
use super::terminals::Known;
use super::tree::{Definition, Document, Kind, Tree};
use crate::error::{Error, Result};

/// What is known while a grammar is made of its definitions.
pub(super) struct Lowering<'a, 't> {
    source: Source<'t>,
    document: &'a Document<'t>,
    /// Where in the document a name is defined.
    numbers: HashMap<&'t str, usize>,
    builder: GrammarBuilder,
    pub(super) known: HashMap<&'t str, Known>,
    pub(super) units: HashMap<&'t str, Arc<Terminal>>,
    /// The definition at hand.
    pub(super) rule: Option<&'t str>,
}

/// The grammar of a document whose texts begin with the rule `start`; `at` is where to say that there is none.
pub(super) fn grammar(
    source: Source<'_>,
    document: &Document<'_>,
    start: &str,
    at: usize,
) -> Result<Grammar> {
    let mut lowering = Lowering {
        source,
        document,
        numbers: HashMap::new(),
        builder: Grammar::builder(),
        known: HashMap::new(),
        units: HashMap::new(),
        rule: None,
    };
    lowering.number()?;
    match lowering.numbers.get(start).map(|&number| &document.definitions[number]) {
        None => return Err(source.error(at, None, format!("there is no rule `{start}`, where texts begin"))),
        Some(terminal) if terminal.terminal => {
            let reason = format!("texts begin with a rule, and `{start}` is a terminal");
            return Err(source.error(terminal.at, Some(start), reason));
        }
        Some(_) => {}
    }
    let ignored = lowering.ignored()?;
    for definition in &document.definitions {
        lowering.define(definition)?;
    }
    let super::tree::Options { leading, once } = document.options;
    lowering.builder.lexing(Lexing::Longest { ignored, leading, once });
    lowering.builder.finish(start)
}

impl<'a, 't> Lowering<'a, 't> {
    /// A refusal within the definition at hand.
    pub(super) fn error(&self, at: usize, reason: impl Into<String>) -> Error {
        self.source.error(at, self.rule, reason)
    }

    fn number(&mut self) -> Result<()> {
        for (number, definition) in self.document.definitions.iter().enumerate() {
            if self.numbers.insert(definition.name, number).is_some() {
                let reason = format!("`{}` is defined already", definition.name);
                return Err(self.source.error(definition.at, Some(definition.name), reason));
            }
        }
        Ok(())
    }

    /// The definition of a name that is used at `at`.
    pub(super) fn definition(&self, name: &str, at: usize) -> Result<&'a Definition<'t>> {
        match self.numbers.get(name) {
            Some(&number) => Ok(&self.document.definitions[number]),
            None => Err(self.error(at, format!("`{name}` is not defined"))),
        }
    }

    fn ignored(&mut self) -> Result<Option<Expression>> {
        let mut ignored = Vec::with_capacity(self.document.ignored.len());
        for tree in &self.document.ignored {
            ignored.push(self.regular(tree, 0)?.expression);
        }
        Ok(match ignored.len() {
            0 => None,
            1 => ignored.pop(),
            _ => Some(Expression::choice(ignored)),
        })
    }

    fn define(&mut self, definition: &'a Definition<'t>) -> Result<()> {
        self.rule = Some(definition.name);
        if definition.terminal {
            // Also where no rule uses it.
            return self.terminal(definition.name, definition.at, 0).map(drop);
        }
        self.builder.meet(definition.name);
        let body = match self.whole(definition)? {
            Some(body) => body,
            None => self.expression(&definition.body)?,
        };
        self.builder.define(definition.name, body)
    }

    /// What a tree stands for within a rule.
    fn expression(&mut self, tree: &'a Tree<'t>) -> Result<Expression> {
        Ok(match &tree.kind {
            Kind::Foreign(expression, _) => expression.clone(),
            // So that the empty text is no terminal, behind which something may be ignored.
            text if text.text().is_some_and(<[u8]>::is_empty) => Expression::literal(""),
            Kind::Regular(_) | Kind::Not(_) => unit(self.regular(tree, 0)?.expression),
            Kind::Name(name) => self.name(name, tree.at)?,
            Kind::Sequence(parts) => self.sequence(parts)?,
            Kind::Choice(parts) => {
                let parts = parts.iter().map(|part| self.expression(part)).collect::<Result<Vec<_>>>()?;
                Expression::choice(parts)
            }
            Kind::And(_) => {
                let reason = "`&` is for terminals, not for rules: name a terminal that is both";
                return Err(self.error(tree.at, reason));
            }
            Kind::Repeat { inner, min, max } => self.expression(inner)?.repeat(*min, *max),
        })
    }

    fn name(&mut self, name: &'t str, at: usize) -> Result<Expression> {
        if self.definition(name, at)?.terminal {
            return Ok(Expression(Node::Terminal(self.unit(name, at)?)));
        }
        Ok(self.builder.rule(name))
    }

    fn sequence(&mut self, parts: &'a [Tree<'t>]) -> Result<Expression> {
        let mut expressions = Vec::with_capacity(parts.len());
        let mut last: Option<&'a Tree<'t>> = None;
        for part in parts {
            match last.and_then(|last| self.stopped(last, part)) {
                Some([]) => {}
                Some(rest) => expressions.push(unit(Expression::bytes(rest))),
                None => expressions.push(self.expression(part)?),
            }
            last = Some(part);
        }
        Ok(Expression::sequence(expressions))
    }

    /// What is left of a string behind a rule with a `stop` by which the string begins.
    ///
    /// The text of a `stop` is hidden from the rule that it ends, and where it has to come next anyway it is what comes
    /// next. Where something may be ignored in between it need not come next.
    fn stopped(&self, rule: &Tree<'t>, string: &'a Tree<'t>) -> Option<&'a [u8]> {
        let (Kind::Name(rule), Some(text)) = (&rule.kind, string.kind.text()) else { return None };
        let definition = &self.document.definitions[*self.numbers.get(rule)?];
        let stop = definition.attributes.end.as_ref().filter(|end| end.stop)?;
        text.strip_prefix(stop.value.kind.text()?).filter(|_| self.document.ignored.is_empty())
    }
}

/// A unit of lexing without a name.
fn unit(body: Expression) -> Expression {
    Expression(Node::Terminal(Arc::new(Terminal { name: None, body, lazy: false })))
}
