//! Converts trees matched as a whole, such as terminals, to regular expressions.

use std::sync::Arc;

use super::super::form::{Counted, CutShort, Expression, Node, Terminal};
use super::lowering::{Known, Lowering, Regular, Value};
use super::tree::{Definition, Kind, Tree};
use burn_dfa_common::Result;

/// Most levels of a terminal, including the levels of terminals within it.
const MAX_LEVELS: usize = 512;

/// The error for a rule within a regular expression.
const WHOLE: &str = "what is matched as a whole has no rules within";

impl<'a, 't> Lowering<'a, 't> {
    /// The lexer unit of a terminal within rules.
    pub(super) fn unit(&mut self, name: &'t str, at: usize) -> Result<Arc<Terminal>> {
        if let Some(unit) = self.units.get(name) {
            return Ok(Arc::clone(unit));
        }
        let body = self.terminal(name, at, 0)?.expression;
        let unit = Arc::new(Terminal { name: Some(name.to_owned()), body, lazy: false });
        self.units.insert(name, Arc::clone(&unit));
        Ok(unit)
    }

    /// The expression of a terminal, used at `at` within an expression of `levels` levels.
    pub(super) fn terminal(&mut self, name: &'t str, at: usize, levels: usize) -> Result<Regular> {
        match self.known.get(name) {
            Some(Known::Begun) => {
                return Err(
                    self.error(at, format!("the terminal `{name}` is part of itself; only rules can be"))
                );
            }
            Some(Known::Made(regular)) => {
                let regular = regular.clone();
                self.check_levels(levels + regular.levels, at)?;
                return Ok(regular);
            }
            None => {}
        }
        let definition = self.definition(name, at)?;
        if !definition.terminal {
            let reason = format!("`{name}` is a rule, and {WHOLE}");
            return Err(self.error(at, reason));
        }
        self.known.insert(name, Known::Begun);
        let outer = (self.rule.replace(name), self.scope.take());
        let made = self.regular(&definition.body, levels + 1)?;
        (self.rule, self.scope) = outer;
        // Shared, so that a terminal within a terminal is not a copy.
        let inner = Arc::new(made.expression);
        let expression = Expression(Node::Repeat { inner, min: 1, max: Some(1) });
        let regular = Regular { expression, levels: made.levels + 1 };
        self.known.insert(name, Known::Made(regular.clone()));
        Ok(regular)
    }

    /// The expression of a tree matched as a whole.
    pub(super) fn regular(&mut self, tree: &'a Tree<'t>, levels: usize) -> Result<Regular> {
        self.check_levels(levels, tree.at)?;
        self.spend(0, tree.at)?;
        let (node, levels) = match &tree.kind {
            Kind::Regular(expression) => return Ok(Regular { expression: expression.clone(), levels: 1 }),
            Kind::Name(name) => {
                return match self.resolve(name) {
                    Value::Name(name) => self.terminal(name, tree.at, levels),
                    Value::Text(argument) => self.regular(&argument.tree, levels),
                    Value::Instance(_) => {
                        Err(self.error(tree.at, format!("`{name}` stands for a rule here, and {WHOLE}")))
                    }
                };
            }
            Kind::Use(used) => {
                return Err(self.error(tree.at, format!("`{}` stands for a rule, and {WHOLE}", used.name)));
            }
            Kind::If(..) => {
                return Err(self.error(tree.at, format!("`%if` chooses among rules, and {WHOLE}")));
            }
            Kind::Foreign(_, what) => {
                return Err(
                    self.error(tree.at, format!("{what} cannot be part of what is matched as a whole"))
                );
            }
            Kind::Sequence(parts) => self.each(parts, levels, Node::Sequence)?,
            Kind::Choice(parts) => self.each(parts, levels, Node::Choice)?,
            Kind::And(parts) => self.each(parts, levels, Node::And)?,
            Kind::Not(inner) => {
                let inner = self.regular(inner, levels + 1)?;
                (Node::Not(Arc::new(inner.expression)), inner.levels)
            }
            Kind::Repeat { inner, min, max } => {
                let inner = self.regular(inner, levels + 1)?;
                let (min, max) = (*min, *max);
                (Node::Repeat { inner: Arc::new(inner.expression), min, max }, inner.levels)
            }
        };
        Ok(Regular { expression: Expression(node), levels: levels + 1 })
    }

    fn each(
        &mut self,
        parts: &'a [Tree<'t>],
        levels: usize,
        node: impl FnOnce(Vec<Expression>) -> Node,
    ) -> Result<(Node, usize)> {
        let mut deepest = 0;
        let mut expressions = Vec::with_capacity(parts.len());
        for part in parts {
            let regular = self.regular(part, levels + 1)?;
            deepest = deepest.max(regular.levels);
            expressions.push(regular.expression);
        }
        Ok((node(expressions), deepest))
    }

    fn check_levels(&self, levels: usize, at: usize) -> Result<()> {
        if levels > MAX_LEVELS {
            let reason =
                format!("terminals within terminals are more than {MAX_LEVELS} levels deep: make them rules");
            return Err(self.error(at, reason));
        }
        Ok(())
    }

    /// The body of a rule with attributes that require a match as a whole; `None` for other rules.
    pub(super) fn whole(&mut self, rule: &'a Definition<'t>, name: &str) -> Result<Option<Expression>> {
        let attributes = &rule.attributes;
        let foreign = matches!(rule.body.kind, Kind::Foreign(_, "`%json`" | "`%lark`"));
        let bounded = attributes.end.is_some() || attributes.max_chars.is_some();
        if !attributes.lazy && !attributes.whole && !bounded && (!attributes.temperature || foreign) {
            return Ok(None);
        }
        // A token is read whole and counts no characters, so nothing needs a bound.
        let token = matches!(rule.body.kind, Kind::Foreign(_, "a token"));
        let other = attributes.lazy || attributes.whole || attributes.end.is_some() || attributes.temperature;
        if token && !other {
            return Ok(None);
        }
        let mut body = self.regular(&rule.body, 0)?.expression;
        if let Some(end) = &attributes.end {
            let end = self.regular(&end.value, 0)?.expression;
            body = Expression::sequence([body, end]);
        }
        // The end of the rule counts, too.
        body = attributes.bounded(body);
        let lazy = attributes.lazy || attributes.end.is_some();
        let name = Some(name.to_owned());
        Ok(Some(Expression(Node::Terminal(Arc::new(Terminal { name, body, lazy })))))
    }

    /// The body of a rule, of at most as many tokens as its attributes allow.
    pub(super) fn counted(
        &mut self,
        rule: &'a Definition<'t>,
        name: &str,
        body: Expression,
    ) -> Result<Expression> {
        let Some(max_tokens) = rule.attributes.max_tokens else { return Ok(body) };
        if matches!(rule.body.kind, Kind::Foreign(_, "a token")) && rule.attributes.end.is_none() {
            // It is one.
            return Ok(body);
        }
        let cut_short = self.cut_short(rule)?;
        Ok(Expression(Node::Counted(Arc::new(Counted {
            name: name.to_owned(),
            body,
            max_tokens,
            cut_short,
        }))))
    }

    /// The texts after which a rule may end if no token is left, before its end: its body without
    /// the end. For a lazy rule of any text followed by a string, this is the text, as in XGrammar.
    fn cut_short(&mut self, rule: &'a Definition<'t>) -> Result<Option<CutShort>> {
        let attributes = &rule.attributes;
        let (tree, only_any) = match &rule.body.kind {
            _ if attributes.end.is_some() => (&rule.body, false),
            Kind::Sequence(parts) if attributes.lazy && attributes.max_chars.is_none() => match &parts[..] {
                [first, last] if last.kind.text().is_some() => (first, true),
                _ => return Ok(None),
            },
            _ => return Ok(None),
        };
        let texts = attributes.bounded(self.regular(tree, 0)?.expression);
        Ok(Some(CutShort { texts, only_any }))
    }
}
