//! Whether one language contains another, and whether two have words in common.

use super::{ByteDfa, ByteStateId, FastMap};

impl ByteDfa {
    /// Whether every word is a word of `other` too.
    ///
    /// It visits pairs of states, each at most once, and stops at the first difference.
    ///
    /// ```
    /// use burn_dfa::{Constraint, Limits};
    ///
    /// let dfa = |regex| Constraint::regex(regex)?.to_byte_dfa(&Limits::default()).map(Option::unwrap);
    /// assert!(dfa("(ab)+")?.is_subset(&dfa("[ab]*")?));
    /// assert!(!dfa("[ab]*")?.is_subset(&dfa("(ab)+")?));
    /// # Ok::<(), burn_dfa::Error>(())
    /// ```
    pub fn is_subset(&self, other: &Self) -> bool {
        // Every state but the dead one can reach the end, so a pair in which only `other` is dead is a difference.
        self.all_pairs(
            other,
            |a, _| a == ByteStateId::DEAD,
            |a, b| b != ByteStateId::DEAD && (!self.is_accepting(a) || other.is_accepting(b)),
        )
    }

    /// Whether both languages are the same. For minimal automata this is equality (`==`).
    pub fn is_equivalent(&self, other: &Self) -> bool {
        self == other
    }

    /// Whether no word is a word of `other` too.
    ///
    /// It visits pairs of states, each at most once, and stops at the first word of both.
    ///
    /// ```
    /// use burn_dfa::{Constraint, Limits};
    ///
    /// let dfa = |regex| Constraint::regex(regex)?.to_byte_dfa(&Limits::default()).map(Option::unwrap);
    /// assert!(dfa("a(ba)*")?.is_disjoint(&dfa("(ab)*")?));
    /// assert!(!dfa("a*")?.is_disjoint(&dfa("b*")?));
    /// # Ok::<(), burn_dfa::Error>(())
    /// ```
    pub fn is_disjoint(&self, other: &Self) -> bool {
        let dead = |a, b| a == ByteStateId::DEAD || b == ByteStateId::DEAD;
        self.all_pairs(other, dead, |a, b| !(self.is_accepting(a) && other.is_accepting(b)))
    }

    /// Whether `holds` is true of all pairs of states that some byte string leads to. Pairs for which `skip` is true
    /// are not followed.
    fn all_pairs(
        &self,
        other: &Self,
        skip: impl Fn(ByteStateId, ByteStateId) -> bool,
        holds: impl Fn(ByteStateId, ByteStateId) -> bool,
    ) -> bool {
        let columns: FastMap<(u8, u8), ()> =
            self.classes().iter().zip(other.classes()).map(|(&a, &b)| ((a, b), ())).collect();
        let start = (self.start(), other.start());
        let mut met = FastMap::from_iter([((start.0.0, start.1.0), ())]);
        let mut stack = vec![start];
        while let Some((a, b)) = stack.pop() {
            if skip(a, b) {
                continue;
            }
            if !holds(a, b) {
                return false;
            }
            for &(in_a, in_b) in columns.keys() {
                let next = (self.next_by_class(a, in_a.into()), other.next_by_class(b, in_b.into()));
                if met.insert((next.0.0, next.1.0), ()).is_none() {
                    stack.push(next);
                }
            }
        }
        true
    }
}
