//! The list of all formulas of a schema, and operations on them.

use std::collections::HashMap;
use std::sync::Arc;

use super::{Formula, Leaf, Term};
use crate::json_schema::types::Types;
use burn_dfa_automata::FastMap;

/// Bytes of a term without its parts. It is in the list and in the map, with its number and the
/// counts of an `Arc`.
const TERM_BYTES: usize = 2 * size_of::<Term>() + size_of::<u64>() + 2 * size_of::<usize>();
/// Bytes of an entry of the map of leaves, without the leaves.
const LEAVES_BYTES: usize = size_of::<(u32, Arc<[Formula]>)>() + 2 * size_of::<usize>();

/// All formulas of a schema, each once.
#[derive(Clone, Debug)]
pub(in super::super) struct Formulas {
    terms: Vec<Term>,
    /// Terms hold names and patterns of the input, so the hash has a random seed.
    known: HashMap<Term, Formula>,
    leaves: FastMap<u32, Arc<[Formula]>>,
    /// By formula; see [`height`](Self::height).
    heights: Vec<u32>,
    /// Bytes held.
    bytes: usize,
    /// Number of visited parts of formulas, as a measure of the time spent.
    work: usize,
}

impl Formulas {
    pub(in super::super) fn new() -> Self {
        // Most schemas have fewer.
        const CAPACITY: usize = 400;
        let mut terms = Vec::with_capacity(CAPACITY);
        terms.extend([Term::Constant(false), Term::Constant(true)]);
        let mut known = HashMap::with_capacity(CAPACITY);
        known.extend([(Term::Constant(false), Formula::FALSE), (Term::Constant(true), Formula::TRUE)]);
        Self { terms, known, leaves: FastMap::default(), heights: vec![0; 2], bytes: 0, work: 0 }
    }

    pub(in super::super) fn term(&self, formula: Formula) -> &Term {
        &self.terms[formula.0 as usize]
    }

    /// Bytes of all formulas.
    pub(in super::super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Number of visited parts of formulas so far.
    pub(in super::super) fn work(&self) -> usize {
        self.work
    }

    /// The nesting height of a formula, including formulas within leaves: 0 for a leaf without
    /// formulas.
    pub(in super::super) fn height(&self, formula: Formula) -> u32 {
        self.heights[formula.0 as usize]
    }

    fn height_of(&self, term: &Term) -> u32 {
        let above = |formula: &Formula| self.height(*formula) + 1;
        match term {
            Term::Not(inner) => above(inner),
            Term::And(parts) | Term::Or(parts) | Term::One(parts) => {
                parts.iter().map(above).max().unwrap_or(0)
            }
            Term::Leaf(leaf) => leaf.below().as_ref().map_or(0, above),
            Term::Constant(_) => 0,
        }
    }

    /// All leaves added so far.
    pub(in super::super) fn all_leaves(&self) -> impl Iterator<Item = (Formula, &Leaf)> {
        (0..).map(Formula).zip(&self.terms).filter_map(|(formula, term)| match term {
            Term::Leaf(leaf) => Some((formula, leaf)),
            _ => None,
        })
    }

    /// The leaf, if the formula is one.
    pub(in super::super) fn as_leaf(&self, formula: Formula) -> Option<&Leaf> {
        match self.term(formula) {
            Term::Leaf(leaf) => Some(leaf),
            _ => None,
        }
    }

    fn add(&mut self, term: Term) -> Formula {
        if let Some(&formula) = self.known.get(&term) {
            return formula;
        }
        let formula = Formula(self.terms.len() as u32);
        self.bytes += TERM_BYTES;
        if let Term::And(parts) | Term::Or(parts) | Term::One(parts) = &term {
            self.bytes += size_of_val(&parts[..]);
        }
        let height = self.height_of(&term);
        self.heights.push(height);
        self.terms.push(term.clone());
        self.known.insert(term, formula);
        formula
    }

    /// The leaf of an object with at least `count` properties.
    pub(in super::super) fn properties(&mut self, count: u64) -> Formula {
        self.leaf(Leaf::Properties { count, certain: count, possible: count })
    }

    /// The formula of `leaf`; it is true if the leaf restricts nothing.
    pub(in super::super) fn leaf(&mut self, leaf: Leaf) -> Formula {
        let says_nothing = match &leaf {
            Leaf::Types(types) if *types == Types::NONE => return Formula::FALSE,
            Leaf::Values(values) if values.is_empty() => return Formula::FALSE,
            Leaf::Types(types) => *types == Types::ALL,
            Leaf::Length { min, max } => *min == 0 && max.is_none(),
            Leaf::Matching(_, formula) | Leaf::Names(formula) => *formula == Formula::TRUE,
            Leaf::Item(_, formula) | Leaf::Rest(_, formula) => *formula == Formula::TRUE,
            Leaf::Properties { certain, .. } => *certain == 0,
            Leaf::Contains(_, count) | Leaf::Items(count) => *count == 0,
            _ => false,
        };
        if says_nothing { Formula::TRUE } else { self.add(Term::Leaf(leaf)) }
    }

    /// The formula of a leaf, kept even if it restricts nothing.
    pub(in super::super) fn kept_leaf(&mut self, leaf: Leaf) -> Formula {
        self.add(Term::Leaf(leaf))
    }

    pub(in super::super) fn not(&mut self, formula: Formula) -> Formula {
        match self.term(formula) {
            Term::Constant(value) => Formula::constant(!value),
            Term::Not(inner) => *inner,
            _ => self.add(Term::Not(formula)),
        }
    }

    pub(in super::super) fn and(&mut self, parts: impl IntoIterator<Item = Formula>) -> Formula {
        match self.gathered(parts, true) {
            None => Formula::FALSE,
            Some(parts) => match parts[..] {
                [] => Formula::TRUE,
                [only] => only,
                _ => self.add(Term::And(parts.into())),
            },
        }
    }

    pub(in super::super) fn or(&mut self, parts: impl IntoIterator<Item = Formula>) -> Formula {
        match self.gathered(parts, false) {
            None => Formula::TRUE,
            Some(parts) => match parts[..] {
                [] => Formula::FALSE,
                [only] => only,
                _ => self.add(Term::Or(parts.into())),
            },
        }
    }

    /// The distinct parts of a conjunction (or a disjunction), with nested ones flattened and
    /// neutral ones removed; `None` if one of them decides the whole.
    fn gathered(&self, parts: impl IntoIterator<Item = Formula>, and: bool) -> Option<Vec<Formula>> {
        let mut flat: Vec<Formula> = Vec::new();
        for part in parts {
            match (self.term(part), and) {
                (Term::Constant(value), _) if *value == and => {}
                (Term::Constant(_), _) => return None,
                (Term::And(inner), true) | (Term::Or(inner), false) => flat.extend_from_slice(inner),
                _ => flat.push(part),
            }
        }
        if flat.len() > 1 {
            let mut seen: FastMap<u32, ()> =
                FastMap::with_capacity_and_hasher(flat.len(), Default::default());
            flat.retain(|part| seen.insert(part.0, ()).is_none());
            let opposite = |part: &Formula| match self.term(*part) {
                Term::Not(inner) => seen.contains_key(&inner.0),
                _ => false,
            };
            if flat.iter().any(opposite) {
                return None;
            }
        }
        Some(flat)
    }

    /// Exactly one of `parts`.
    pub(in super::super) fn one(&mut self, parts: impl IntoIterator<Item = Formula>) -> Formula {
        // The count of each part, in order of first occurrence.
        let mut times: FastMap<Formula, usize> = FastMap::default();
        let mut open: Vec<Formula> = Vec::new();
        let mut found = 0;
        for part in parts {
            match part.decided() {
                Some(false) => {}
                Some(true) => found += 1,
                None => {
                    let times = times.entry(part).or_default();
                    *times += 1;
                    if *times == 1 {
                        open.push(part);
                    }
                }
            }
        }
        if found > 1 {
            return Formula::FALSE;
        }
        let (open, twice): (Vec<_>, Vec<_>) = open.into_iter().partition(|part| times[part] == 1);
        let rest = match (found, &open[..]) {
            (1, _) => {
                let any = self.or(open);
                self.not(any)
            }
            (_, []) => Formula::FALSE,
            (_, [only]) => *only,
            _ => self.add(Term::One(open.into())),
        };
        let none: Vec<Formula> = twice.into_iter().map(|part| self.not(part)).collect();
        self.and(std::iter::once(rest).chain(none))
    }

    /// `if`, `then` and `else`.
    pub(in super::super) fn choose(&mut self, condition: Formula, yes: Formula, no: Formula) -> Formula {
        let otherwise = self.not(condition);
        let first = self.or([otherwise, yes]);
        let second = self.or([condition, no]);
        self.and([first, second])
    }

    /// The distinct leaves of a formula, in order, without the leaves of formulas within leaves.
    pub(in super::super) fn leaves(&mut self, formula: Formula) -> Arc<[Formula]> {
        if let Some(known) = self.leaves.get(&formula.0) {
            return Arc::clone(known);
        }
        let leaves: Arc<[Formula]> = match self.term(formula).clone() {
            Term::Constant(_) => Arc::new([]),
            Term::Leaf(_) => Arc::new([formula]),
            Term::Not(inner) => self.leaves(inner),
            // Parts are distinct.
            Term::And(parts) | Term::Or(parts) | Term::One(parts)
                if parts.iter().all(|&part| self.as_leaf(part).is_some()) =>
            {
                parts
            }
            Term::And(parts) | Term::Or(parts) | Term::One(parts) => {
                let mut seen: FastMap<u32, ()> = FastMap::default();
                let mut all = Vec::new();
                for &part in parts.iter() {
                    let leaves = self.leaves(part);
                    all.extend(leaves.iter().copied().filter(|leaf| seen.insert(leaf.0, ()).is_none()));
                }
                all.into()
            }
        };
        self.work += leaves.len();
        self.bytes += LEAVES_BYTES + size_of_val(&leaves[..]);
        self.leaves.insert(formula.0, Arc::clone(&leaves));
        leaves
    }

    /// The parts of a conjunction; any other formula is its only part.
    pub(in super::super) fn conjuncts(&self, formula: Formula) -> Arc<[Formula]> {
        match self.term(formula) {
            Term::And(parts) => Arc::clone(parts),
            _ => Arc::new([formula]),
        }
    }

    /// The formula with leaves replaced; `None` keeps a leaf.
    pub(in super::super) fn replace(
        &mut self,
        formula: Formula,
        with: &mut impl FnMut(&mut Self, Formula) -> Option<Formula>,
    ) -> Formula {
        self.replaced(formula, with, &mut FastMap::default())
    }

    /// The same, given the replacements known so far.
    fn replaced(
        &mut self,
        formula: Formula,
        with: &mut impl FnMut(&mut Self, Formula) -> Option<Formula>,
        known: &mut FastMap<u32, Formula>,
    ) -> Formula {
        self.work += 1;
        let term = match self.term(formula) {
            Term::Constant(_) => return formula,
            Term::Leaf(_) => return with(self, formula).unwrap_or(formula),
            term => term.clone(),
        };
        match &term {
            Term::And(parts) | Term::Or(parts) | Term::One(parts) => {
                let mut new = Vec::with_capacity(parts.len());
                for &part in parts.iter() {
                    new.push(self.replaced_part(part, with, known));
                }
                match &term {
                    _ if new[..] == parts[..] => formula,
                    Term::And(_) => self.reduced(parts, new, true),
                    Term::Or(_) => self.reduced(parts, new, false),
                    _ => self.one(new),
                }
            }
            Term::Not(inner) => {
                let inner = self.replaced_part(*inner, with, known);
                self.not(inner)
            }
            Term::Constant(_) | Term::Leaf(_) => formula,
        }
    }

    /// The same for a part of a formula, which may be a part of others too.
    fn replaced_part(
        &mut self,
        part: Formula,
        with: &mut impl FnMut(&mut Self, Formula) -> Option<Formula>,
        known: &mut FastMap<u32, Formula>,
    ) -> Formula {
        if matches!(self.term(part), Term::Constant(_) | Term::Leaf(_)) {
            return self.replaced(part, with, known);
        }
        if let Some(&known) = known.get(&part.0) {
            self.work += 1;
            return known;
        }
        let replaced = self.replaced(part, with, known);
        known.insert(part.0, replaced);
        replaced
    }

    /// The conjunction (or the disjunction) of `parts` replaced by `new`.
    fn reduced(&mut self, parts: &[Formula], mut new: Vec<Formula>, and: bool) -> Formula {
        let neutral = Formula::constant(and);
        if !new.iter().zip(parts).all(|(new, part)| new == part || *new == neutral) {
            return if and { self.and(new) } else { self.or(new) };
        }
        // Some of the parts, which are distinct and not negations of each other, remain.
        new.retain(|part| *part != neutral);
        match new[..] {
            [] => neutral,
            [only] => only,
            _ => self.add(if and { Term::And(new.into()) } else { Term::Or(new.into()) }),
        }
    }

    /// The formula with some leaves decided.
    pub(in super::super) fn assign(
        &mut self,
        formula: Formula,
        values: &FastMap<Formula, Formula>,
    ) -> Formula {
        self.replace(formula, &mut |_, leaf| values.get(&leaf).copied())
    }
}
