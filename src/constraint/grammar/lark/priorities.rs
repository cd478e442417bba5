//! Priorities of terminals: `KEYWORD.2: "if"`.
//!
//! A priority of a rule chooses one of several ways to read the same text, and a text is in the language if there is one. A
//! priority of a terminal says which terminal is read where two match: Lark's contextual lexer reads the one of the
//! higher priority, here the longest one is read, or any of several that end together. So priorities are honoured where
//! both come to the same, and that is where no text of a lower terminal begins with a text of a higher one: then the
//! higher one is the longest where it matches at all.

use std::collections::BTreeMap;

use super::super::form::{Expression, Node};
use super::super::regular;
use super::rules::Lowering;
use super::tree::Kind;
use crate::automaton::Op;
use crate::error::Result;
use crate::limits::{Limits, Meter};

/// Most different priorities.
const MAX_LEVELS: usize = 16;

impl Lowering<'_, '_> {
    /// Refuses priorities of terminals that decide something.
    pub(super) fn check_priorities(&mut self) -> Result<()> {
        if !self.document.has_priorities() {
            return Ok(());
        }
        // By priority: a terminal of it, and what all of them match.
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
        let limits = Limits::default();
        let meter = Meter::start(&limits);
        let mut lower: Vec<Expression> = Vec::new();
        for (number, (priority, (name, terminals))) in levels.into_iter().enumerate() {
            let at = name.and_then(|name| self.known_definition(name)).map_or(0, |definition| definition.at);
            if number == MAX_LEVELS {
                return Err(self.error(at, format!("more than {MAX_LEVELS} different priorities")));
            }
            if !lower.is_empty() {
                let any = Expression(Node::Class(vec![('\0', char::MAX)])).repeat(0, None);
                let begins = Expression::sequence([Expression::choice(terminals.iter().cloned()), any]);
                let begins = regular::lower(&begins, &meter)?;
                let both = regular::lower(&Expression::choice(lower.iter().cloned()), &meter)?;
                let both = both.product(&begins, Op::Intersection, &meter)?;
                if let Some(text) = both.shortest_word() {
                    let text = String::from_utf8_lossy(&text).into_owned();
                    let what = name.map_or_else(
                        || "terminals without one".to_owned(),
                        |name| format!("`{name}` and its like"),
                    );
                    let reason = format!(
                        "the priority {priority} of {what} decides what {text:?} is, where the longest match would not: \
                         leave priorities out, and take what the one matches out of the other by `& ~(…)`"
                    );
                    return Err(self.error(at, reason));
                }
            }
            lower.extend(terminals);
        }
        Ok(())
    }
}
