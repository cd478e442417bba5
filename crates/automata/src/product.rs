//! Intersection, union and difference: two automata run in parallel.

use super::{ByteDfa, ByteStateId, JointClasses, Rows, Run};
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
        if op.is_dead(self.start(), other.start()) {
            return Ok(Self::empty());
        }
        let classes = JointClasses::new(&[self, other]);
        let pairs = classes.pairs();
        let mut targets = vec![0; pairs.len()];
        let start = (self.start(), other.start());
        let rows = Rows::explore(start, meter, |(a, b), found, runs| {
            for (target, &(in_a, in_b)) in targets.iter_mut().zip(&pairs) {
                let (a, b) = (self.next_by_class(a, in_a), other.next_by_class(b, in_b));
                *target = if op.is_dead(a, b) { 0 } else { found.state((a, b)) };
            }
            runs.extend(classes.intervals.iter().map(|&(first, last, class)| {
                let target = targets[class];
                Run { first, last, target }
            }));
            op.accepts(self.is_accepting(a), other.is_accepting(b))
        })?;
        rows.minimize(1, meter)
    }
}
