//! Converts trees to rules, and the document to a grammar.

use std::sync::Arc;

use super::super::form::{Expression, Grammar, Lexing, Node, Terminal};
use super::super::source::Source;
use super::lowering::{Lowering, Value};
use super::tree::{Definition, Document, Kind, Tree};
use burn_dfa_common::Result;

/// The grammar of a document with the start rule `start`; an error for a missing start rule is at
/// `at`.
pub(super) fn grammar(
    source: Source<'_>,
    document: &Document<'_>,
    start: &str,
    at: usize,
) -> Result<Grammar> {
    let mut lowering = Lowering::new(source, document);
    lowering.check_names()?;
    match lowering.known_definition(start) {
        None => return Err(source.error(at, None, format!("there is no rule `{start}`, where texts begin"))),
        Some(terminal) if terminal.terminal => {
            let reason = format!("texts begin with a rule, and `{start}` is a terminal");
            return Err(source.error(terminal.at, Some(start), reason));
        }
        Some(generic) if generic.is_generic() => {
            let reason =
                format!("texts begin with `{start}`, which has parameters: name a rule that uses it");
            return Err(source.error(generic.at, Some(start), reason));
        }
        Some(_) => {}
    }
    let ignored = lowering.ignored()?;
    for definition in &document.definitions {
        lowering.define(definition)?;
    }
    lowering.define_instances()?;
    lowering.check_priorities()?;
    let super::tree::Options { leading, once } = document.options;
    lowering.builder.lexing(Lexing::Longest { ignored, leading, once });
    lowering.builder.finish(start)
}

impl<'a, 't> Lowering<'a, 't> {
    /// Checks that no name is defined twice, and that parameters of templates differ from defined
    /// names.
    fn check_names(&self) -> Result<()> {
        for (number, definition) in self.document.definitions.iter().enumerate() {
            let taken = |name: &&&str| self.document.number(name).is_some();
            let reason = if self.document.number(definition.name) != Some(number) {
                format!("`{}` is defined already", definition.name)
            } else if let Some(name) = definition.parameters.iter().find(taken) {
                format!("the parameter `{name}` has the name of a rule")
            } else {
                continue;
            };
            return Err(self.source.error(definition.at, Some(definition.name), reason));
        }
        Ok(())
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
            // Checked even if no rule uses it.
            return self.terminal(definition.name, definition.at, 0).map(drop);
        }
        if definition.is_generic() {
            return self.check_generic(&definition.body, &definition.parameters);
        }
        self.builder.meet(definition.name);
        let body = self.body(definition, definition.name)?;
        self.builder.define(definition.name, body)
    }

    /// Defines the referenced instances, including instances referenced by their bodies.
    fn define_instances(&mut self) -> Result<()> {
        while let Some(instance) = self.instances.all.get(self.instances.defined) {
            let (definition, name) = (instance.definition, instance.name.clone());
            self.rule = Some(definition.name);
            self.scope = Some(self.instances.defined);
            self.instances.defined += 1;
            let body = self.body(definition, &name)?;
            self.builder.define(&name, body)?;
        }
        self.scope = None;
        Ok(())
    }

    /// The expression of a rule, from its body and its attributes.
    fn body(&mut self, definition: &'a Definition<'t>, name: &str) -> Result<Expression> {
        let body = match self.whole(definition, name)? {
            Some(body) => body,
            None => self.expression(&definition.body)?,
        };
        self.counted(definition, name, body)
    }

    /// Checks that the names within a template or a parametric rule are defined, even if it is
    /// unused.
    fn check_generic(&self, tree: &'a Tree<'t>, parameters: &[&str]) -> Result<()> {
        let defined = |name: &str, at| match parameters.contains(&name) {
            true => Ok(()),
            false => self.definition(name, at).map(drop),
        };
        match &tree.kind {
            Kind::Regular(_) | Kind::Foreign(..) => Ok(()),
            Kind::Name(name) => defined(name, tree.at),
            Kind::Use(used) => {
                defined(used.name, tree.at)?;
                used.arguments.iter().try_for_each(|argument| self.check_generic(&argument.tree, parameters))
            }
            Kind::Not(inner) | Kind::If(inner, _) | Kind::Repeat { inner, .. } => {
                self.check_generic(inner, parameters)
            }
            Kind::Sequence(parts) | Kind::Choice(parts) | Kind::And(parts) => {
                parts.iter().try_for_each(|part| self.check_generic(part, parameters))
            }
        }
    }

    /// The expression of a tree within a rule.
    pub(super) fn expression(&mut self, tree: &'a Tree<'t>) -> Result<Expression> {
        self.spend(0, tree.at)?;
        Ok(match &tree.kind {
            Kind::Foreign(expression, _) => expression.clone(),
            // The empty text is not a terminal, because ignored text may follow terminals.
            text if text.text().is_some_and(<[u8]>::is_empty) => Expression::literal(""),
            Kind::Regular(_) | Kind::Not(_) => {
                let body = self.regular(tree, 0)?.expression;
                self.nameless(body)
            }
            Kind::Name(name) => match self.resolve(name) {
                Value::Name(name) => self.name(name, tree.at)?,
                Value::Text(argument) => self.expression(&argument.tree)?,
                Value::Instance(number) => {
                    let name = self.instance_name(number);
                    self.builder.rule(&name)
                }
            },
            Kind::Use(used) => self.instance(used, tree.at)?,
            Kind::If(inner, condition) => match condition.holds(self.parameter()) {
                None => return Err(self.without_parameter(tree.at)),
                Some(true) => self.expression(inner)?,
                Some(false) => Expression::choice([]),
            },
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
        self.spend(name.len(), at)?;
        let definition = self.definition(name, at)?;
        if definition.is_generic() {
            let reason = match definition.parametric {
                true => format!("`{name}` is parametric: give it a value, as in `{name}::0`"),
                false => format!("`{name}` is a template: give it its arguments, as in `{name}{{\"a\"}}`"),
            };
            return Err(self.error(at, reason));
        }
        if definition.terminal {
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
                Some(rest) => {
                    let rest = self.nameless(Expression::bytes(rest));
                    expressions.push(rest);
                }
                None => expressions.push(self.expression(part)?),
            }
            last = Some(part);
        }
        Ok(Expression::sequence(expressions))
    }

    /// The rest of a string after a rule with a `stop` that is a prefix of the string.
    ///
    /// The text of a `stop` is hidden from the rule it ends. If the string must come next, it
    /// begins with the stop. If ignored text may come in between, the string need not come next.
    fn stopped(&self, rule: &'a Tree<'t>, string: &'a Tree<'t>) -> Option<&'a [u8]> {
        let text = match &string.kind {
            Kind::Name(name) => match self.resolve(name) {
                Value::Text(argument) => argument.tree.kind.text()?,
                _ => return None,
            },
            kind => kind.text()?,
        };
        let stop = self.meant(rule)?.attributes.end.as_ref().filter(|end| end.stop)?;
        text.strip_prefix(stop.value.kind.text()?).filter(|_| self.document.ignored.is_empty())
    }

    /// A unit of lexing without a name.
    fn nameless(&mut self, body: Expression) -> Expression {
        if self.document.has_priorities() {
            self.nameless.push(body.clone());
        }
        Expression(Node::Terminal(Arc::new(Terminal { name: None, body, lazy: false })))
    }
}
