//! Plans of numbers and strings: automata over their texts.
//!
//! A conjunction without probes becomes one automaton. Any other formula is decided by running the
//! automata of its leaves side by side; see [`product`](super::product).

use std::sync::Arc;

use super::common::{PrebuiltScalar, any_string};
use super::frame::answers;
use super::labeled::{Labeled, Texts};
use super::product::{Judged, Product};
use super::{Plan, Planner};
use crate::json_schema::format::{Certainty, Exactness, Format};
use crate::json_schema::formula::{Formula, Leaf, Term};
use crate::json_schema::json::Json;
use crate::json_schema::number::{self, Notation};
use crate::json_schema::string;
use burn_dfa_automata::{ByteDfa, Expr, Op};
use burn_dfa_common::{Error, Result, threads};

/// The claims of a conjunction on strings.
pub(super) struct Strings {
    /// The leaves, except lengths.
    pub(super) contents: Vec<Formula>,
    /// The least and the greatest number of characters.
    pub(super) min: u64,
    pub(super) max: Option<u64>,
}

/// The most characters up to which all URIs are counted: counting 2,083 characters of any URI takes
/// a million states.
const MANY_CHARACTERS: u64 = 128;

impl Planner<'_> {
    pub(super) fn number(
        &mut self,
        must: Formula,
        probes: &[Formula],
        plan: &mut Plan,
    ) -> Result<Option<Labeled>> {
        let mut residues: Vec<Formula> = std::iter::once(must).chain(probes.iter().copied()).collect();
        let mut notation = Notation::Wide;
        if self.writes_digits(must) {
            // Digits surely are an integer.
            notation = Notation::Digits;
            let integer = self.formulas.leaf(Leaf::Integer);
            residues = self.assign(&residues, &[(integer, Formula::TRUE)].into_iter().collect());
        }
        let (must, probes) = (residues[0], &residues[1..]);
        if probes.iter().all(|probe| probe.decided().is_some()) {
            if must == Formula::TRUE && notation == Notation::Wide {
                notation = Notation::Free;
            }
            if let Some(texts) = self.number_conjunction(must, notation)? {
                if texts.is_empty() {
                    return Ok(None);
                }
                let answers: Vec<bool> = probes.iter().map(|probe| *probe == Formula::TRUE).collect();
                return Ok(Some(Labeled::Alike { texts, outcome: plan.outcome(&answers) }));
            }
        }
        let universe = self.numbers(notation)?;
        self.side_by_side(universe, must, probes, plan)
    }

    /// Whether a formula of numbers claims that they are integers, and integers are written as
    /// digits.
    pub(super) fn writes_digits(&mut self, must: Formula) -> bool {
        let integer = self.formulas.leaf(Leaf::Integer);
        self.schema.integers == Notation::Digits && self.formulas.conjuncts(must).contains(&integer)
    }

    /// The texts of all numbers.
    fn numbers(&self, notation: Notation) -> Result<Arc<Texts>> {
        match self.options().max_digits {
            None => self.common(PrebuiltScalar::Number(notation)),
            max_digits => Ok(Arc::new(number::universe(notation, max_digits, self.meter)?.into())),
        }
    }

    /// The numbers for which all leaves of a conjunction surely hold; `None` for other formulas.
    fn number_conjunction(&mut self, must: Formula, notation: Notation) -> Result<Option<Arc<Texts>>> {
        if must == Formula::TRUE {
            return self.numbers(notation).map(Some);
        }
        let leaves = self.formulas.conjuncts(must);
        if leaves.iter().any(|&leaf| self.formulas.as_leaf(leaf).is_none()) {
            return Ok(None);
        }
        if let Some(known) = self.conjunctions.get(&(must, notation)) {
            return Ok(Some(Arc::clone(known)));
        }
        // The texts of a leaf are in the notation `Wide`.
        let is_said = notation == Notation::Wide && self.options().max_digits.is_none();
        let mut texts = if is_said { None } else { Some(self.numbers(notation)?) };
        for &leaf in leaves.iter() {
            let of_leaf = self.text(leaf, Certainty::Surely).map_err(|error| self.at_leaf(leaf, error))?;
            texts = Some(match texts {
                None => of_leaf,
                Some(texts) => {
                    let both = texts.dfa().product(of_leaf.dfa(), Op::Intersection, self.meter)?;
                    Arc::new(both.into())
                }
            });
        }
        let Some(texts) = texts else { return Ok(None) };
        self.conjunctions.insert((must, notation), Arc::clone(&texts));
        Ok(Some(texts))
    }

    pub(super) fn string(
        &mut self,
        must: Formula,
        probes: &[Formula],
        is_name: bool,
        plan: &mut Plan,
    ) -> Result<Option<Labeled>> {
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
                return Ok(Some(Labeled::Alike { texts, outcome: plan.outcome(&answers) }));
            }
        }
        let residues: Vec<Formula> = std::iter::once(must).chain(probes.iter().copied()).collect();
        let is_content = |own: &Self, leaf: Formula| {
            matches!(own.formulas.as_leaf(leaf), Some(Leaf::Pattern(_) | Leaf::Format(_) | Leaf::Values(_)))
        };
        let is_free = !self.leaves_of(&residues).iter().any(|&leaf| is_content(self, leaf));
        let universe = if is_free || self.options().spelling() == self.options().free_spelling() {
            self.conjunction(Formula::TRUE)?
        } else {
            let content = self.contents(&[])?;
            let max = self.options().max_string;
            let dfa = string::quote(&content, 0, max, self.options().spelling(), self.meter)?;
            Some(Arc::new(dfa.into()))
        };
        match universe {
            Some(universe) => self.side_by_side(universe, must, probes, plan),
            None => Ok(None),
        }
    }

    /// The spelling of strings whose content these leaves restrict.
    pub(super) fn spelling_of(&self, contents: &[Formula]) -> string::Spelling {
        if contents.is_empty() { self.options().free_spelling() } else { self.options().spelling() }
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
            string::quote(&content, min, max, self.spelling_of(&contents), self.meter)?
        };
        let text: Arc<Texts> = Arc::new(dfa.into());
        self.texts.insert(key, Arc::clone(&text));
        Ok(Some(text))
    }

    /// The claims of a conjunction of leaves on strings; `None` for other formulas.
    pub(super) fn strings(&mut self, must: Formula) -> Option<Strings> {
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
        if strings.max.is_some_and(|max| max > MANY_CHARACTERS) {
            for content in &mut strings.contents {
                if let Some(Leaf::Format(Format::Uri | Format::Iri)) = self.formulas.as_leaf(*content) {
                    *content = self.formulas.leaf(Leaf::Format(Format::CountedUrl));
                }
            }
        }
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
        let (spelling, free) = (self.options().spelling(), self.options().free_spelling());
        match self.formulas.as_leaf(must) {
            None if must == Formula::TRUE => self.common(PrebuiltScalar::String(free)).map(Some),
            Some(&Leaf::Format(format)) => self.common(PrebuiltScalar::Format(format, spelling)).map(Some),
            _ => Ok(None),
        }
    }

    /// Builds missing automata of the schema's patterns in parallel, on up to the allowed number of
    /// threads. An automaton that exceeds a limit is skipped; it may turn out not to be needed.
    pub(super) fn lower_patterns(&mut self) {
        // Of a schema with more, some may not be needed.
        const MAX: usize = 256;
        let patterns = self.formulas.all_leaves().filter_map(|(formula, leaf)| match leaf {
            Leaf::Pattern(pattern) => Some((formula, Arc::clone(pattern))),
            _ => None,
        });
        let patterns: Vec<_> = patterns.take(MAX).collect();
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
            Some(Leaf::Integer) => number::integers(self.schema.integers, certainty, meter)?,
            Some(Leaf::AtLeast { bound, exclusive }) => number::at_least(&bound, exclusive, meter)?,
            Some(Leaf::AtMost { bound, exclusive }) => number::at_most(&bound, exclusive, meter)?,
            Some(Leaf::MultipleOf(step)) => number::multiple_of(&step, certainty, meter)?,
            Some(Leaf::Values(values)) if values.iter().all(|value| matches!(value, Json::Number(_))) => {
                let numbers = values.iter().filter_map(|value| match value {
                    Json::Number(number) => Some(number),
                    _ => None,
                });
                number::one_of(numbers, meter)?
            }
            Some(Leaf::Length { min, max }) => {
                string::quote(&*any_string(meter)?, min, max, self.options().free_spelling(), meter)?
            }
            _ => {
                let content = self.content(leaf, certainty)?;
                string::quote(&content, 0, None, self.options().spelling(), meter)?
            }
        };
        let texts: Arc<Texts> = Arc::new(dfa.into());
        self.texts.insert(key, Arc::clone(&texts));
        Ok(texts)
    }

    /// Adds the location of a leaf to an error of its automaton.
    fn at_leaf(&self, leaf: Formula, error: Error) -> Error {
        error.at(|| self.schema.origin(&self.formulas, leaf))
    }

    /// The texts of `universe` that satisfy `must`, with their outcomes.
    fn side_by_side(
        &mut self,
        universe: Arc<Texts>,
        must: Formula,
        probes: &[Formula],
        plan: &mut Plan,
    ) -> Result<Option<Labeled>> {
        let residues: Vec<Formula> = std::iter::once(must).chain(probes.iter().copied()).collect();
        let leaves = self.leaves_of(&residues);
        if leaves.is_empty() {
            return Ok(match answers(&residues) {
                Some(answers) if !universe.is_empty() => {
                    Some(Labeled::Alike { texts: universe, outcome: plan.outcome(&answers) })
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
            let is_bounded = match self.formulas.as_leaf(leaf) {
                Some(Leaf::Format(format)) => format.is_exact() == Exactness::Bounded,
                Some(Leaf::Integer | Leaf::MultipleOf(_)) => true,
                _ => false,
            };
            if is_bounded {
                let text = self.text(leaf, Certainty::Possibly);
                automata.push(text.map_err(|error| self.at_leaf(leaf, error))?);
            }
            judged.push(Judged { leaf, surely, possibly: automata.len() - 1 });
        }
        let automata: Vec<&ByteDfa> = automata.iter().map(|texts| texts.dfa()).collect();
        Product::new(self, &automata, &judged, residues).run(plan)
    }
}
