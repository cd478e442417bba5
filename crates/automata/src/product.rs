//! Intersection, union and difference: two automata run in parallel.

use std::collections::hash_map::Entry;

use super::{ByteDfa, ByteStateId, FastMap, UnminimizedDfa};
use burn_dfa_common::{Limits, Result, limits::Meter};

/// Which words of two languages to keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Words of both languages.
    Intersection,
    /// Words of either language.
    Union,
    /// Words of the first language only.
    Difference,
}

impl Op {
    fn accepts(self, a: bool, b: bool) -> bool {
        match self {
            Self::Intersection => a && b,
            Self::Union => a || b,
            Self::Difference => a && !b,
        }
    }

    /// Whether no accepting pair is reachable from a pair of states.
    fn is_dead(self, a: ByteStateId, b: ByteStateId) -> bool {
        match self {
            Self::Intersection => a == ByteStateId::DEAD || b == ByteStateId::DEAD,
            Self::Union => a == ByteStateId::DEAD && b == ByteStateId::DEAD,
            Self::Difference => a == ByteStateId::DEAD,
        }
    }
}

impl ByteDfa {
    /// The automaton of the words in both languages.
    ///
    /// ```
    /// use burn_dfa_tokens::{Constraint, Limits};
    ///
    /// let limits = Limits::default();
    /// let even = Constraint::regex("(..)*")?.to_byte_dfa(&limits)?.unwrap();
    /// let short = Constraint::regex("a{0,3}")?.to_byte_dfa(&limits)?.unwrap();
    /// let both = even.intersection(&short, &limits)?;
    /// assert_eq!(both, Constraint::choice(["", "aa"])?.to_byte_dfa(&limits)?.unwrap());
    /// # Ok::<(), burn_dfa_tokens::Error>(())
    /// ```
    ///
    /// # Errors
    /// If a limit is breached.
    pub fn intersection(&self, other: &Self, limits: &Limits) -> Result<Self> {
        self.product(other, Op::Intersection, &Meter::start(limits))
    }

    /// The automaton of the words in either language.
    ///
    /// # Errors
    /// If a limit is breached.
    pub fn union(&self, other: &Self, limits: &Limits) -> Result<Self> {
        self.product(other, Op::Union, &Meter::start(limits))
    }

    /// The automaton of the words of this language that are not words of `other`.
    ///
    /// # Errors
    /// If a limit is breached.
    pub fn difference(&self, other: &Self, limits: &Limits) -> Result<Self> {
        self.product(other, Op::Difference, &Meter::start(limits))
    }

    /// The automaton of the words kept by `op`.
    #[doc(hidden)]
    pub fn product(&self, other: &Self, op: Op, meter: &Meter) -> Result<Self> {
        let (symbols, columns) = joint_symbols(self, other);
        let mut pairs = Pairs { op, numbers: FastMap::default(), pairs: Vec::new() };
        let mut raw = UnminimizedDfa::new(symbols);
        let start = pairs.number(self.start(), other.start());
        raw.set_start(start);
        let mut at = 0;
        while at < pairs.pairs.len() {
            let (a, b) = pairs.pairs[at];
            at += 1;
            let row = columns.iter().enumerate().map(|(symbol, &(in_a, in_b))| {
                let target = pairs.number(self.next_by_class(a, in_a), other.next_by_class(b, in_b));
                (symbol as u8, symbol as u8, target)
            });
            raw.push(op.accepts(self.is_accepting(a), other.is_accepting(b)), row);
            meter.states(pairs.pairs.len() + 1)?;
            if at % 1024 == 0 {
                raw.check(meter)?;
            }
        }
        raw.minimize(meter)
    }
}

/// Pairs of states, numbered from 1 in order of arrival; 0 is any dead pair.
struct Pairs {
    op: Op,
    numbers: FastMap<(u32, u32), u32>,
    pairs: Vec<(ByteStateId, ByteStateId)>,
}

impl Pairs {
    fn number(&mut self, a: ByteStateId, b: ByteStateId) -> u32 {
        if self.op.is_dead(a, b) {
            return 0;
        }
        match self.numbers.entry((a.0, b.0)) {
            Entry::Occupied(entry) => *entry.get(),
            Entry::Vacant(entry) => {
                self.pairs.push((a, b));
                *entry.insert(self.pairs.len() as u32)
            }
        }
    }
}

/// The coarsest partition of the bytes into symbols that refines the classes of both automata, and
/// the two classes of each symbol.
fn joint_symbols(a: &ByteDfa, b: &ByteDfa) -> ([u8; 256], Vec<(usize, usize)>) {
    let mut columns = Vec::new();
    let symbols = std::array::from_fn(|byte| {
        let column = (a.classes()[byte] as usize, b.classes()[byte] as usize);
        let known = columns.iter().position(|&known| known == column);
        known.unwrap_or_else(|| {
            columns.push(column);
            columns.len() - 1
        }) as u8
    });
    (symbols, columns)
}
