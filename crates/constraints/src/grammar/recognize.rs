//! Whether a text is in the language of a grammar, by the simplest method: for tests.
//!
//! The table of the ends of each rule from each offset is recomputed from itself until it is
//! stable, so rules may refer to themselves anywhere. Tokens never match.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::form::{Expression, Grammar, Node};
use crate::Regex;
use burn_dfa_automata::ByteDfa;
use burn_dfa_common::{Limits, limits::Meter};

/// Offsets in a text.
type Ends = BTreeSet<usize>;

/// Whether `grammar` has the text `text`.
pub(super) fn accepts(grammar: &Grammar, text: &str) -> bool {
    let mut table = Table {
        text: text.as_bytes(),
        known: BTreeMap::from([((grammar.start, 0), Ends::new())]),
        dfas: BTreeMap::new(),
    };
    loop {
        let before = table.known.clone();
        for &(rule, start) in before.keys() {
            let ends = table.ends(&grammar.rules[rule].body, start);
            table.known.insert((rule, start), ends);
        }
        if table.known == before {
            return before[&(grammar.start, 0)].contains(&text.len());
        }
    }
}

struct Table<'t> {
    text: &'t [u8],
    /// By rule and offset.
    known: BTreeMap<(usize, usize), Ends>,
    dfas: BTreeMap<*const Regex, ByteDfa>,
}

impl Table<'_> {
    fn ends(&mut self, expression: &Expression, start: usize) -> Ends {
        match &expression.0 {
            Node::Literal(bytes) => {
                let found = self.text[start..].starts_with(bytes);
                found.then_some(start + bytes.len()).into_iter().collect()
            }
            Node::Class(ranges) => {
                let rest = std::str::from_utf8(&self.text[start..]).unwrap_or_default();
                let next = rest.chars().next();
                let next = next.filter(|c| ranges.iter().any(|(first, last)| (first..=last).contains(&c)));
                next.map(|c| start + c.len_utf8()).into_iter().collect()
            }
            Node::Regex(regex) => {
                let dfa = self.dfas.entry(Arc::as_ptr(regex)).or_insert_with(|| {
                    let limits = Limits::default();
                    regex.lower(&Meter::start(&limits)).unwrap()
                });
                (start..=self.text.len()).filter(|&end| dfa.matches(&self.text[start..end])).collect()
            }
            Node::Rule(rule) => self.known.entry((*rule, start)).or_default().clone(),
            Node::Sequence(parts) => parts.iter().fold(Ends::from([start]), |ends, part| {
                ends.iter().flat_map(|&at| self.ends(part, at)).collect()
            }),
            Node::Choice(parts) => parts.iter().flat_map(|part| self.ends(part, start)).collect(),
            Node::Repeat { inner, min, max } => {
                let mut all = Ends::new();
                let mut ends = Ends::from([start]);
                for count in 0.. {
                    if count >= *min && (ends.is_subset(&all) || max.is_some_and(|max| count > max)) {
                        break;
                    }
                    if count >= *min {
                        all.extend(&ends);
                    }
                    ends = ends.iter().flat_map(|&at| self.ends(inner, at)).collect();
                }
                all
            }
            Node::And(parts) => {
                let mut parts = parts.iter().map(|part| self.ends(part, start));
                let first = parts.next().unwrap();
                parts.fold(first, |all, ends| &all & &ends)
            }
            Node::Not(inner) => &(start..=self.text.len()).collect::<Ends>() - &self.ends(inner, start),
            Node::Substring(words) => {
                let runs = (0..=words.len()).flat_map(|from| (from..=words.len()).map(move |to| from..to));
                let runs = runs.map(|run| words[run].concat());
                let rest = &self.text[start..];
                runs.filter(|run| rest.starts_with(run.as_bytes())).map(|run| start + run.len()).collect()
            }
            Node::Token { .. } => Ends::new(),
            // Tokens are not known here.
            Node::Counted(counted) => self.ends(&counted.body, start),
            Node::Bounded(bounded) => {
                let mut ends = self.ends(&bounded.body, start);
                if bounded.lazy {
                    ends = ends.first().copied().into_iter().collect();
                }
                let characters = |end: usize| String::from_utf8_lossy(&self.text[start..end]).chars().count();
                ends.retain(|&end| bounded.max_chars.is_none_or(|max| characters(end) <= max));
                ends
            }
            Node::Terminal(_) | Node::Constraint(_) | Node::Grammar(_) => unimplemented!(),
        }
    }
}
