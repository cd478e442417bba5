//! Whether one language contains another, and whether two languages share a word.

use super::{ByteDfa, ByteStateId, FastMap, JointClasses};

impl ByteDfa {
    /// Whether every word is also a word of `other`.
    ///
    /// Visits pairs of states, each at most once, and stops at the first difference.
    ///
    /// ```
    /// use burn_dfa_tokens::{Constraint, Limits};
    ///
    /// let dfa =
    ///     |regex| Constraint::regex(regex)?.to_byte_dfa(&Limits::default()).map(Option::unwrap);
    /// assert!(dfa("(ab)+")?.is_subset(&dfa("[ab]*")?));
    /// assert!(!dfa("[ab]*")?.is_subset(&dfa("(ab)+")?));
    /// # Ok::<(), burn_dfa_tokens::Error>(())
    /// ```
    pub fn is_subset(&self, other: &Self) -> bool {
        // Every state except the dead one can reach the end, so a pair with only `other` dead is a
        // difference.
        self.all_pairs(
            other,
            |a, _| a == ByteStateId::DEAD,
            |a, b| b != ByteStateId::DEAD && (!self.is_accepting(a) || other.is_accepting(b)),
        )
    }

    /// Whether both languages are equal, regardless of the automata's states. If they differ,
    /// [`difference`](Self::difference) has the words of one language missing from the other.
    ///
    /// Minimal automata of the same language are also equal (`==`). The automaton of a JSON schema
    /// need not be minimal.
    ///
    /// This is the algorithm of Hopcroft and Karp ("A linear algorithm for testing equivalence of
    /// finite automata", 1971): states reached by the same bytes are merged into one set, until a
    /// set has both accepting and other states. Each step joins two sets, so the number of steps is
    /// less than the total number of states.
    ///
    /// ```
    /// use burn_dfa_tokens::{Constraint, Limits};
    /// use serde_json::json;
    ///
    /// let limits = Limits::default();
    /// let dfa =
    ///     |schema| Constraint::json_schema(schema)?.to_byte_dfa(&limits).map(Option::unwrap);
    /// let choice = dfa(json!({"enum": [["a"], ["b"]]}))?;
    /// let items = json!([{"enum": ["a", "b"]}]);
    /// let list = json!({"type": "array", "prefixItems": items, "minItems": 1, "maxItems": 1});
    /// assert!(choice.is_equivalent(&dfa(list)?));
    /// assert!(!choice.is_equivalent(&dfa(json!({"enum": [["a"], ["c"]]}))?));
    /// # Ok::<(), burn_dfa_tokens::Error>(())
    /// ```
    pub fn is_equivalent(&self, other: &Self) -> bool {
        let classes = JointClasses::new(&[self, other]).pairs();
        // The states of this automaton come first, then the states of the other.
        let shift = self.state_count();
        let mut sets = Sets((0..shift + other.state_count()).collect());
        let mut rest = vec![(self.start(), other.start())];
        while let Some((a, b)) = rest.pop() {
            if !sets.join(a.index(), shift + b.index()) {
                continue;
            }
            // Only equally accepting states are joined, so all states of a set agree.
            if self.is_accepting(a) != other.is_accepting(b) {
                return false;
            }
            rest.extend(
                classes
                    .iter()
                    .map(|&(in_a, in_b)| (self.next_by_class(a, in_a), other.next_by_class(b, in_b))),
            );
        }
        true
    }

    /// Whether no word is also a word of `other`.
    ///
    /// Visits pairs of states, each at most once, and stops at the first common word.
    ///
    /// ```
    /// use burn_dfa_tokens::{Constraint, Limits};
    ///
    /// let dfa =
    ///     |regex| Constraint::regex(regex)?.to_byte_dfa(&Limits::default()).map(Option::unwrap);
    /// assert!(dfa("a(ba)*")?.is_disjoint(&dfa("(ab)*")?));
    /// assert!(!dfa("a*")?.is_disjoint(&dfa("b*")?));
    /// # Ok::<(), burn_dfa_tokens::Error>(())
    /// ```
    pub fn is_disjoint(&self, other: &Self) -> bool {
        let dead = |a, b| a == ByteStateId::DEAD || b == ByteStateId::DEAD;
        self.all_pairs(other, dead, |a, b| !(self.is_accepting(a) && other.is_accepting(b)))
    }

    /// Whether `holds` is true for all pairs of states reached by a common byte string. Pairs with
    /// `skip` true are not followed.
    fn all_pairs(
        &self,
        other: &Self,
        skip: impl Fn(ByteStateId, ByteStateId) -> bool,
        holds: impl Fn(ByteStateId, ByteStateId) -> bool,
    ) -> bool {
        let classes = JointClasses::new(&[self, other]).pairs();
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
            for &(in_a, in_b) in &classes {
                let next = (self.next_by_class(a, in_a), other.next_by_class(b, in_b));
                if met.insert((next.0.0, next.1.0), ()).is_none() {
                    stack.push(next);
                }
            }
        }
        true
    }
}

/// Disjoint sets of numbers: each number links to another number of its set; the representative
/// links to itself.
struct Sets(Vec<usize>);

impl Sets {
    /// The representative of the set of a number.
    fn of(&mut self, mut number: usize) -> usize {
        while self.0[number] != number {
            // Halves the path, so that paths stay short.
            self.0[number] = self.0[self.0[number]];
            number = self.0[number];
        }
        number
    }

    /// Joins the sets of two numbers; false if both numbers already share a set.
    fn join(&mut self, a: usize, b: usize) -> bool {
        let (a, b) = (self.of(a), self.of(b));
        self.0[a] = b;
        a != b
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An automaton over `a` and `b`, by the next states of each state and whether it accepts;
    /// state 0 is dead.
    fn automaton(states: &[([u32; 2], bool)]) -> ByteDfa {
        let classes = std::array::from_fn(|byte| match byte as u8 {
            b'a' => 1,
            b'b' => 2,
            _ => 0,
        });
        let next = states.iter().flat_map(|&([a, b], _)| [0, a, b]).collect();
        let accepting = states.iter().map(|&(_, is)| is).collect();
        ByteDfa::from_parts(classes, 3, next, accepting, ByteStateId::START)
    }

    #[test]
    fn equivalence_is_of_languages_and_not_of_states() {
        let dead = ([0, 0], false);
        // `a*`, with one, two and three copies of its state.
        let one = automaton(&[dead, ([1, 0], true)]);
        let two = automaton(&[dead, ([2, 0], true), ([1, 0], true)]);
        let three = automaton(&[dead, ([2, 0], true), ([3, 0], true), ([1, 0], true)]);
        // A renumbering of the same states.
        let turned = automaton(&[dead, ([3, 0], true), ([1, 0], true), ([2, 0], true)]);
        let same = [&one, &two, &three, &turned];
        for (a, b) in same.iter().flat_map(|a| same.map(|b| (a, b))) {
            assert!(a.is_equivalent(b), "{a:?} {b:?}");
        }
        assert!(one != two && two != three);
        // The third `a`, or a `b` after it, makes a difference.
        let finite = automaton(&[dead, ([2, 0], true), ([3, 0], true), ([0, 0], true)]);
        let even = automaton(&[dead, ([2, 0], true), ([1, 0], false)]);
        let other = automaton(&[dead, ([2, 0], true), ([3, 0], true), ([1, 1], true)]);
        let empty = ByteDfa::empty();
        let differ = [&one, &finite, &even, &other, &empty];
        for (i, a) in differ.iter().enumerate() {
            for (j, b) in differ.iter().enumerate() {
                assert_eq!(a.is_equivalent(b), i == j, "{i} {j}");
                assert_eq!(two.is_equivalent(b), j == 0, "{j}");
            }
        }
    }
}
