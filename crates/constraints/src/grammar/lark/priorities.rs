//! Priorities of terminals: `KEYWORD.2: "if"`.
//!
//! A priority of a rule selects one of several derivations of a text, but a text with any
//! derivation is in the language. A priority of a terminal selects one of two matching terminals:
//! Lark's contextual lexer reads the terminal of the higher priority, whereas here the longest one
//! is read, or any of several with the same end. So priorities are honored if both strategies
//! agree, that is, if no text of a lower terminal begins with a text of a higher one: then the
//! higher terminal is the longest whenever it matches.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::form::{Expression, Node};
use super::super::regular;
use super::super::source::Source;
use super::lowering::Lowering;
use super::tree::Kind;
use crate::Deferred;
use burn_dfa_automata::Op;
use burn_dfa_common::Result;

/// Most different priorities.
const MAX_LEVELS: usize = 16;

impl Lowering<'_, '_> {
    /// Adds a check that rejects priorities with an effect. The check needs automata, so it runs
    /// when the grammar is lowered.
    pub(super) fn check_priorities(&mut self) -> Result<()> {
        if !self.document.has_priorities() {
            return Ok(());
        }
        // By priority: the name of one of its terminals, and the bodies of all its terminals.
        let mut levels: BTreeMap<i32, (Option<&str>, Vec<Expression>)> = BTreeMap::new();
        for (name, unit) in &self.units {
            let priority = self.known_definition(name).map_or(0, |definition| definition.priority);
            let level = levels.entry(priority).or_default();
            // The same one each time.
            level.0 = level.0.into_iter().chain([*name]).min();
            level.1.push(unit.body.clone());
        }
        let nameless = std::mem::take(&mut self.nameless);
        levels.entry(0).or_default().1.extend(nameless);
        for tree in &self.document.ignored {
            let named = match &tree.kind {
                Kind::Name(name) => self.known_definition(name),
                _ => None,
            };
            let ignored = self.regular(tree, 0)?.expression;
            let level = levels.entry(named.map_or(0, |definition| definition.priority)).or_default();
            level.0 = level.0.into_iter().chain(named.map(|definition| definition.name)).min();
            level.1.push(ignored);
        }
        let source: Arc<str> = self.source.text.into();
        let mut lower: Vec<Expression> = Vec::new();
        for (number, (priority, (name, terminals))) in levels.into_iter().enumerate() {
            let at = name.and_then(|name| self.known_definition(name)).map_or(0, |definition| definition.at);
            if number == MAX_LEVELS {
                return Err(self.error(at, format!("more than {MAX_LEVELS} different priorities")));
            }
            if !lower.is_empty() {
                let any = Expression(Node::Class(vec![('\0', char::MAX)])).repeat(0, None);
                let begins = Expression::sequence([Expression::choice(terminals.iter().cloned()), any]);
                let lower = Expression::choice(lower.iter().cloned());
                let what = name.map_or_else(
                    || "terminals without one".to_owned(),
                    |name| format!("`{name}` and its like"),
                );
                let (source, rule) = (Arc::clone(&source), self.rule.map(str::to_owned));
                self.builder.check(Deferred::new(move |meter| {
                    let (begins, lower) = (regular::lower(&begins, meter)?, regular::lower(&lower, meter)?);
                    let both = lower.product(&begins, Op::Intersection, meter)?;
                    let Some(text) = both.shortest_word() else { return Ok(both) };
                    let text = String::from_utf8_lossy(&text).into_owned();
                    let reason = format!(
                        "the priority {priority} of {what} decides what {text:?} is, where the longest match would not: \
                         leave priorities out, and take what the one matches out of the other by `& ~(…)`"
                    );
                    Err(Source { text: &source }.error(at, rule.as_deref(), reason))
                }));
            }
            lower.extend(terminals);
        }
        Ok(())
    }
}
