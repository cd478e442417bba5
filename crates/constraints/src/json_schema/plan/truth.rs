//! Decides whether a value satisfies a formula.
//!
//! A [`Verdict`] has three values, because a string may be undecided under a `format`. Verdicts are
//! combined by Kleene's three-valued logic, so a formula that does not depend on the undecided
//! string is decided.

use std::sync::Arc;

use super::{List, Planner, Texts};
use crate::json_schema::format::Certainty;
use crate::json_schema::formula::{Except, Formula, Leaf, Term};
use crate::json_schema::json::Json;
use crate::json_schema::number::{self, Decimal};
use crate::json_schema::types::Types;
use burn_dfa_common::Result;

/// Whether a claim holds; `None` if undecided.
pub(in super::super) type Verdict = Option<bool>;

/// The number of values for which a formula surely holds, and for which it possibly holds.
#[derive(Default)]
struct Tally {
    surely: u64,
    possibly: u64,
}

impl Tally {
    fn add(&mut self, verdict: Verdict) {
        self.surely += u64::from(verdict == Some(true));
        self.possibly += u64::from(verdict != Some(false));
    }

    fn at_least(&self, count: u64) -> Verdict {
        match (self.surely >= count, self.possibly >= count) {
            (true, _) => Some(true),
            (_, false) => Some(false),
            _ => None,
        }
    }
}

/// Whether all hold. The verdicts after the first false one are not computed.
fn all(verdicts: impl Iterator<Item = Result<Verdict>>) -> Result<Verdict> {
    let mut all = Some(true);
    for verdict in verdicts {
        match verdict? {
            Some(true) => {}
            Some(false) => return Ok(Some(false)),
            None => all = None,
        }
    }
    Ok(all)
}

fn not(verdict: Verdict) -> Verdict {
    verdict.map(|holds| !holds)
}

impl Planner<'_> {
    /// Whether `value` satisfies `formula` by the standard, regardless of the options.
    pub(in super::super) fn holds(&mut self, formula: Formula, value: &Json) -> Result<Verdict> {
        Ok(match self.formulas.term(formula).clone() {
            Term::Constant(truth) => Some(truth),
            Term::Not(inner) => not(self.holds(inner, value)?),
            Term::And(parts) => all(parts.iter().map(|&part| self.holds(part, value)))?,
            Term::Or(parts) => not(all(parts.iter().map(|&part| Ok(not(self.holds(part, value)?))))?),
            Term::One(parts) => {
                let mut tally = Tally::default();
                for &part in parts.iter() {
                    tally.add(self.holds(part, value)?);
                }
                match (tally.at_least(1), tally.at_least(2)) {
                    (Some(false), _) | (_, Some(true)) => Some(false),
                    (Some(true), Some(false)) => Some(true),
                    _ => None,
                }
            }
            Term::Leaf(leaf) => self.leaf_holds(formula, &leaf, value)?,
        })
    }

    fn leaf_holds(&mut self, formula: Formula, leaf: &Leaf, value: &Json) -> Result<Verdict> {
        self.judge(match value {
            Json::String(text) => 1 + text.len(),
            Json::Number(number) => 1 + number.len(),
            _ => 1,
        })?;
        let holds = match (leaf, value) {
            (Leaf::Types(types), _) => types.meets(Types::of(value)),
            (Leaf::Values(values), _) => {
                let list = self.lists.entry(formula).or_insert_with(|| List::new(values).into());
                let list = Arc::clone(list);
                self.judge(list.compared_with(value))?;
                list.contains(value)
            }
            (Leaf::Later(_), _) => {
                let formula = self.looked_up(formula)?;
                return self.holds(formula, value);
            }

            (Leaf::Length { min, max }, Json::String(text)) => {
                let length = text.chars().count() as u64;
                *min <= length && max.is_none_or(|max| length <= max)
            }
            (Leaf::Pattern(_), Json::String(text)) => {
                self.content(formula, Certainty::Surely)?.matches(text.as_bytes())
            }
            (Leaf::Format(_), Json::String(text)) => {
                let surely = self.content(formula, Certainty::Surely)?.matches(text.as_bytes());
                let possibly = self.content(formula, Certainty::Possibly)?.matches(text.as_bytes());
                return Ok((surely == possibly).then_some(surely));
            }

            (Leaf::Integer, Json::Number(_)) => Types::of(value) == Types::INTEGER,
            (Leaf::AtLeast { bound, exclusive }, Json::Number(number)) => {
                number > bound || (!exclusive && number == bound)
            }
            (Leaf::AtMost { bound, exclusive }, Json::Number(number)) => {
                number < bound || (!exclusive && number == bound)
            }
            (Leaf::MultipleOf(step), Json::Number(number)) => {
                let text = number.text();
                self.multiples(formula, step)?.dfa().matches(text.as_bytes())
            }

            (Leaf::Present(name), Json::Object(members)) => members.contains_key(name),
            (Leaf::Property(name, below), Json::Object(members)) => match members.get(name) {
                Some(member) => return self.holds(*below, member),
                None => true,
            },
            (Leaf::Matching(pattern, below), Json::Object(members)) => {
                return all(members.iter().map(|(name, member)| {
                    match self.matches(pattern, &name.as_str().into())? {
                        true => self.holds(*below, member),
                        false => Ok(Some(true)),
                    }
                }));
            }
            (Leaf::Others(except, below), Json::Object(members)) => {
                return all(members.iter().map(|(name, member)| {
                    match self.is_other(except, &name.as_str().into())? {
                        true => self.holds(*below, member),
                        false => Ok(Some(true)),
                    }
                }));
            }
            (Leaf::Names(below), Json::Object(members)) => {
                return all(members.keys().map(|name| self.holds(*below, &Json::String(name.clone()))));
            }
            (Leaf::Properties { certain, .. }, Json::Object(members)) => members.len() as u64 >= *certain,

            (Leaf::Item(at, below), Json::Array(items)) => match items.get(*at as usize) {
                Some(item) => return self.holds(*below, item),
                None => true,
            },
            (Leaf::Rest(from, below), Json::Array(items)) => {
                return all(items.iter().skip(*from as usize).map(|item| self.holds(*below, item)));
            }
            (Leaf::Contains(below, count), Json::Array(items)) => {
                let mut tally = Tally::default();
                for item in items {
                    tally.add(self.holds(*below, item)?);
                }
                return Ok(tally.at_least(*count));
            }
            (Leaf::Items(count), Json::Array(items)) => items.len() as u64 >= *count,
            (Leaf::Unique { .. }, Json::Array(items)) => {
                for (at, item) in items.iter().enumerate() {
                    self.judge(at)?;
                    if items[..at].iter().any(|other| other.is_same(item)) {
                        return Ok(Some(false));
                    }
                }
                true
            }
            _ => true,
        };
        Ok(Some(holds))
    }

    /// Counts the work of verdicts, and checks the limits now and then.
    fn judge(&mut self, work: usize) -> Result<()> {
        self.judged += work;
        self.look()
    }

    /// Whether `name` is not excluded by `additionalProperties`.
    pub(super) fn is_other(&mut self, except: &Arc<Except>, name: &Arc<str>) -> Result<bool> {
        // A set, since an object may have thousands of names.
        let excepted = self.excepted.entry(Arc::as_ptr(except) as usize);
        if excepted.or_insert_with(|| except.names.iter().cloned().collect()).contains(name) {
            return Ok(false);
        }
        for pattern in &except.patterns {
            if self.matches(pattern, name)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether `pattern` matches in `name`.
    pub(super) fn matches(
        &mut self,
        pattern: &Arc<crate::json_schema::ecma::Pattern>,
        name: &Arc<str>,
    ) -> Result<bool> {
        let leaf = self.formulas.leaf(Leaf::Pattern(Arc::clone(pattern)));
        if let Some(&known) = self.names.get(&(leaf, Arc::clone(name))) {
            return Ok(known);
        }
        let matches = self.content(leaf, Certainty::Surely)?.matches(name.as_bytes());
        self.names.insert((leaf, Arc::clone(name)), matches);
        Ok(matches)
    }

    fn multiples(&mut self, formula: Formula, step: &Decimal) -> Result<Arc<Texts>> {
        let key = (formula, Certainty::Surely);
        if let Some(known) = self.texts.get(&key) {
            return Ok(Arc::clone(known));
        }
        let texts: Arc<Texts> = Arc::new(number::multiple_of(step, Certainty::Surely, self.meter)?.into());
        self.texts.insert(key, Arc::clone(&texts));
        Ok(texts)
    }
}
