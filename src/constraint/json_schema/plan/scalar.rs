//! Plans of numbers and strings: automata over their texts.
//!
//! A conjunction without probes becomes one automaton. Any other formula is decided by running the automata of its leaves
//! side by side; see [`product`](super::product).

use std::sync::{Arc, OnceLock};

use super::common::Common;
use super::frame::answers;
use super::labelled::{Labelled, Texts};
use super::product::{Judged, Product};
use super::{Plan, Planner};
use crate::automaton::{ByteDfa, Expr, Op};
use crate::constraint::json_schema::format::{Certainty, Exactness};
use crate::constraint::json_schema::formula::{Formula, Leaf, Term};
use crate::constraint::json_schema::json::Json;
use crate::constraint::json_schema::number::{self, Form};
use crate::constraint::json_schema::options::Numbers;
use crate::constraint::json_schema::string;
use crate::error::{Error, Result};
use crate::threads;

/// The claims of a conjunction on strings.
pub(super) struct Strings {
    /// The leaves, but for those of lengths.
    pub(super) contents: Vec<Formula>,
    /// The least and the greatest number of characters.
    pub(super) min: u64,
    pub(super) max: Option<u64>,
}

impl Planner<'_> {
    pub(super) fn number(
        &mut self,
        must: Formula,
        probes: &[Formula],
        plan: &mut Plan,
    ) -> Result<Option<Labelled>> {
        let is_decided = probes.iter().all(|probe| probe.decided().is_some());
        if is_decided && let Some(numbers) = self.common_numbers(must)? {
            let answers: Vec<bool> = probes.iter().map(|probe| *probe == Formula::TRUE).collect();
            return Ok(Some(Labelled::Alike { texts: numbers, outcome: plan.outcome(&answers) }));
        }
        let (form, digits) = self.spelled_numbers();
        let universe = if is_decided && must == Formula::TRUE {
            number::exponential(form, digits, self.meter)?
        } else {
            number::universe(form, digits, self.meter)?
        };
        self.side_by_side(Arc::new(universe.into()), must, probes, plan)
    }

    /// How numbers are written, and the most digits before the point and after it.
    fn spelled_numbers(&self) -> (Form, Option<usize>) {
        let form = match self.options().numbers {
            Numbers::Plain => Form::Plain,
            Numbers::Any => Form::Any,
        };
        (form, self.options().max_digits)
    }

    /// The texts of all numbers, or of all integers.
    fn common_numbers(&self, must: Formula) -> Result<Option<Arc<Texts>>> {
        let (form, None) = self.spelled_numbers() else { return Ok(None) };
        match self.formulas.as_leaf(must) {
            None if must == Formula::TRUE => self.common(Common::Number(form)).map(Some),
            Some(Leaf::Integer) => self.common(Common::Integer(form)).map(Some),
            _ => Ok(None),
        }
    }

    pub(super) fn string(
        &mut self,
        must: Formula,
        probes: &[Formula],
        is_name: bool,
        plan: &mut Plan,
    ) -> Result<Option<Labelled>> {
        if probes.iter().all(|probe| probe.decided().is_some()) {
            let answers: Vec<bool> = probes.iter().map(|probe| *probe == Formula::TRUE).collect();
            if !is_name && let Some(counted) = self.counted(must)? {
                plan.counted = Some((counted, plan.outcome(&answers)));
                return Ok(None);
            }
            if let Some(texts) = self.conjunction(must)? {
                if texts.is_empty() {
                    return Ok(None);
                }
                return Ok(Some(Labelled::Alike { texts, outcome: plan.outcome(&answers) }));
            }
        }
        let universe = match self.conjunction(Formula::TRUE)? {
            Some(universe) => universe,
            None => return Ok(None),
        };
        self.side_by_side(universe, must, probes, plan)
    }

    /// The texts of a conjunction of leaves; `None` if the formula is none.
    fn conjunction(&mut self, must: Formula) -> Result<Option<Arc<Texts>>> {
        let key = (must, Certainty::Surely);
        if let Some(known) = self.texts.get(&key) {
            return Ok(Some(Arc::clone(known)));
        }
        if let Some(text) = self.common_text(must)? {
            self.texts.insert(key, Arc::clone(&text));
            return Ok(Some(text));
        }
        let Some(Strings { contents, min, max }) = self.strings(must) else { return Ok(None) };
        let dfa = if max.is_some_and(|max| max < min) {
            Expr::Literals(vec![]).determinize(self.meter)?
        } else if let Some(Some(texts)) = self.uncounted.get(&contents) {
            texts.counted(min, max, self.meter)?
        } else {
            let content = self.contents(&contents)?;
            self.quoted(&content, min, max)?
        };
        let text: Arc<Texts> = Arc::new(dfa.into());
        self.texts.insert(key, Arc::clone(&text));
        Ok(Some(text))
    }

    /// What a conjunction of leaves claims of strings; `None` if the formula is none.
    pub(super) fn strings(&self, must: Formula) -> Option<Strings> {
        let parts = match must {
            Formula::TRUE => Arc::new([]),
            _ => self.formulas.conjuncts(must),
        };
        let mut strings = Strings { contents: Vec::new(), min: 0, max: None };
        for &part in parts.iter() {
            match self.formulas.term(part) {
                Term::Leaf(Leaf::Length { min, max }) => {
                    strings.min = strings.min.max(*min);
                    strings.max = strings.max.into_iter().chain(*max).min();
                }
                Term::Leaf(_) => strings.contents.push(part),
                _ => return None,
            }
        }
        strings.max = strings.max.or(self.options().max_string);
        Some(strings)
    }

    /// The strings, without quotes, for which all of these leaves surely hold.
    pub(super) fn contents(&mut self, leaves: &[Formula]) -> Result<Arc<ByteDfa>> {
        let mut content: Option<Arc<ByteDfa>> = self.schema.free.clone();
        for &leaf in leaves {
            let next = self.content(leaf, Certainty::Surely);
            let next = next.map_err(|error| self.at_leaf(leaf, error))?;
            content = Some(match content {
                None => next,
                Some(content) => content.product(&next, Op::Intersection, self.meter)?.into(),
            });
        }
        match content {
            Some(content) => Ok(content),
            None => any_string(self.meter),
        }
    }

    /// The texts of all strings, or of a single format.
    fn common_text(&self, must: Formula) -> Result<Option<Arc<Texts>>> {
        if self.options().max_string.is_some() || self.schema.free.is_some() {
            return Ok(None);
        }
        let spelling = self.options().spelling();
        match self.formulas.as_leaf(must) {
            None if must == Formula::TRUE => self.common(Common::String(spelling)).map(Some),
            Some(&Leaf::Format(format)) => self.common(Common::Format(format, spelling)).map(Some),
            _ => Ok(None),
        }
    }

    /// Makes the automata of the schema's patterns at once, on as many threads as there may be, where that is not done yet. One that
    /// breaches a limit is left out: whether it is needed turns out later.
    pub(super) fn lower_patterns(&mut self) {
        // Of a schema with more, some may not be needed.
        const MOST: usize = 256;
        let patterns = self.formulas.all_leaves().filter_map(|(formula, leaf)| match leaf {
            Leaf::Pattern(pattern) => Some((formula, Arc::clone(pattern))),
            _ => None,
        });
        let patterns: Vec<_> = patterns.take(MOST).collect();
        let (meter, threads) = (self.meter, self.meter.limits().threads);
        if threads < 2 || patterns.len() < 2 || !self.contents.is_empty() {
            return;
        }
        let lowered = threads::each(&patterns, threads, |(_, pattern)| pattern.lower(meter));
        let lowered =
            patterns.iter().zip(lowered).filter_map(|((formula, _), dfa)| Some((*formula, dfa.ok()?)));
        self.contents.extend(lowered.map(|(formula, dfa)| ((formula, Certainty::Surely), Arc::new(dfa))));
    }

    /// The strings, without quotes, for which a leaf surely or possibly holds.
    pub(super) fn content(&mut self, leaf: Formula, certainty: Certainty) -> Result<Arc<ByteDfa>> {
        let key = (leaf, certainty);
        if let Some(known) = self.contents.get(&key) {
            return Ok(Arc::clone(known));
        }
        let dfa: Arc<ByteDfa> = match self.formulas.as_leaf(leaf) {
            Some(Leaf::Pattern(pattern)) => pattern.lower(self.meter)?.into(),
            Some(Leaf::Format(format)) => format.lower(certainty, self.meter)?.into(),
            Some(Leaf::Values(values)) => {
                let words = values.iter().filter_map(|value| value.as_str());
                Expr::Literals(words.map(|word| word.as_bytes().to_vec()).collect())
                    .determinize(self.meter)?
                    .into()
            }
            _ => any_string(self.meter)?,
        };
        self.contents.insert(key, Arc::clone(&dfa));
        Ok(dfa)
    }

    /// The texts for which a leaf surely or possibly holds.
    fn text(&mut self, leaf: Formula, certainty: Certainty) -> Result<Arc<Texts>> {
        let key = (leaf, certainty);
        if let Some(known) = self.texts.get(&key) {
            return Ok(Arc::clone(known));
        }
        let meter = self.meter;
        let dfa = match self.formulas.as_leaf(leaf).cloned() {
            Some(Leaf::Integer) => number::integers(meter)?,
            Some(Leaf::AtLeast { bound, exclusive }) => number::at_least(&bound, exclusive, meter)?,
            Some(Leaf::AtMost { bound, exclusive }) => number::at_most(&bound, exclusive, meter)?,
            Some(Leaf::MultipleOf(step)) => number::multiple_of(&step, meter)?,
            Some(Leaf::Values(values)) if values.iter().all(|value| matches!(value, Json::Number(_))) => {
                let mut all = Expr::Literals(vec![]).determinize(meter)?;
                for value in values.iter() {
                    if let Json::Number(number) = value {
                        let one = number::equal_to(number, meter)?;
                        all = all.product(&one, Op::Union, meter)?;
                    }
                }
                all
            }
            Some(Leaf::Length { min, max }) => self.quoted(&any_string(meter)?, min, max)?,
            _ => {
                let content = self.content(leaf, certainty)?;
                self.quoted(&content, 0, None)?
            }
        };
        let texts: Arc<Texts> = Arc::new(dfa.into());
        self.texts.insert(key, Arc::clone(&texts));
        Ok(texts)
    }

    /// Adds the place of a leaf to an error of its automaton.
    fn at_leaf(&self, leaf: Formula, error: Error) -> Error {
        error.at(|| self.schema.origin(&self.formulas, leaf))
    }

    fn quoted(&self, content: &Arc<ByteDfa>, min: u64, max: Option<u64>) -> Result<ByteDfa> {
        string::quote(content, min, max, self.options().spelling(), self.meter)
    }

    /// The texts of `universe` that satisfy `must`, with their outcomes.
    fn side_by_side(
        &mut self,
        universe: Arc<Texts>,
        must: Formula,
        probes: &[Formula],
        plan: &mut Plan,
    ) -> Result<Option<Labelled>> {
        let residues: Vec<Formula> = std::iter::once(must).chain(probes.iter().copied()).collect();
        let leaves = self.leaves_of(&residues);
        if leaves.is_empty() {
            return Ok(match answers(&residues) {
                Some(answers) if !universe.is_empty() => {
                    Some(Labelled::Alike { texts: universe, outcome: plan.outcome(&answers) })
                }
                _ => None,
            });
        }
        let mut automata = vec![universe];
        let mut judged = Vec::with_capacity(leaves.len());
        for &leaf in leaves.iter() {
            let surely = automata.len();
            let text = self.text(leaf, Certainty::Surely);
            automata.push(text.map_err(|error| self.at_leaf(leaf, error))?);
            if let Some(Leaf::Format(format)) = self.formulas.as_leaf(leaf)
                && format.is_exact() == Exactness::Bounded
            {
                let text = self.text(leaf, Certainty::Possibly);
                automata.push(text.map_err(|error| self.at_leaf(leaf, error))?);
            }
            judged.push(Judged { leaf, surely, possibly: automata.len() - 1 });
        }
        let automata: Vec<&ByteDfa> = automata.iter().map(|texts| texts.dfa()).collect();
        Product::new(self, &automata, &judged, residues).run(plan)
    }
}

/// All strings.
pub(super) fn any_string(meter: &crate::limits::Meter) -> Result<Arc<ByteDfa>> {
    static ANY: OnceLock<Arc<ByteDfa>> = OnceLock::new();
    if let Some(dfa) = ANY.get() {
        return Ok(Arc::clone(dfa));
    }
    let any = Expr::Chars(vec![(char::MIN, char::MAX)]);
    let dfa = Expr::Repeat { expr: any.into(), min: 0, max: None }.determinize(meter)?;
    Ok(Arc::clone(ANY.get_or_init(|| dfa.into())))
}
