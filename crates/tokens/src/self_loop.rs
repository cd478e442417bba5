//! Positions with nearly the same legal tokens as a state that most characters do not leave.
//!
//! At the start of an object's key, and within it, most characters lead to the state of any other
//! key, and most characters do not leave that state. The mask of that state is found once. The mask
//! of each position near it is the difference: the tokens that begin as the position's own keys do.

use super::mask::Thresholds;
use super::rows::entered;
use super::{BudgetInterval, ConstraintParts, RowPosition, StateId, TokenReading};
use burn_dfa_automata::{Differences, Run};
use burn_dfa_vocabulary::CharacterSet;

/// A state with characters that do not leave it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SelfLoop {
    pub(crate) state: StateId,
    /// The ASCII characters that do not leave it.
    within: CharacterSet,
}

impl SelfLoop {
    /// The self-loop of `state`, which the characters `within` do not leave.
    pub(super) fn of(state: StateId, within: CharacterSet) -> Self {
        Self { state, within: within.and(CharacterSet::ASCII) }
    }

    /// Whether an ASCII byte does not leave the state.
    #[inline]
    pub(super) fn is_kept_by(&self, byte: u8) -> bool {
        self.within.contains(byte)
    }
}

impl ConstraintParts {
    /// The state near `position`: most tokens lead there by their first bytes, and the budget
    /// `left` reaches the end from there. Known for rows that are written on demand only.
    pub(crate) fn near_state(
        &self,
        position: &RowPosition,
        left: &mut BudgetInterval,
        thresholds: &Thresholds,
    ) -> Option<SelfLoop> {
        let TokenReading::Bytes { vocabulary, .. } = &self.reading else { return None };
        let trie = vocabulary.trie();
        let runs = self.next.runs(position.state)?;
        let nodes = |run: &Run| trie.count_between(run.first, run.last);
        let ascii = runs.iter().filter(|run| run.last.is_ascii()).map(|run| (nodes(run), run));
        let (_, main) =
            ascii.max_by_key(|&(nodes, _)| nodes).filter(|&(nodes, _)| nodes > thresholds.near_few_nodes)?;
        let stays = entered(main);
        let others = self.next.runs(stays).filter(|_| stays != position.state)?;
        let own = |run: &&Run| entered(run) == stays && run.last.is_ascii();
        let within = others.iter().filter(own).map(|run| CharacterSet::between(run.first, run.last));
        let within = within.fold(CharacterSet::default(), CharacterSet::or);
        if !within.contains(main.first) || self.calls.as_ref().is_some_and(|calls| !calls.is_plain(stays)) {
            return None;
        }
        let are_ascii = Differences::new(runs, others).all(|(_, last)| last.is_ascii());
        (are_ascii && self.reach(stays, &position.frames, left)).then(|| SelfLoop::of(stays, within))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CompiledConstraint, Constraint, Limits, TokenId, Vocabulary};

    #[test]
    fn a_position_in_a_name_is_near_the_state_of_other_names() {
        let bytes = (0..=u8::MAX).map(|byte| vec![byte]);
        let letters = || b'a'..=b'z';
        let pairs = letters().flat_map(|a| letters().map(move |b| [a, b]));
        let triples = pairs.flat_map(|[a, b]| letters().map(move |c| vec![a, b, c]));
        let words: Vec<_> = bytes.chain(triples).map(Some).chain([None]).collect();
        let end = TokenId(words.len() as u32 - 1);
        let vocabulary = Vocabulary::from_bytes(words).unwrap().with_eos([end]).unwrap();
        let text = Constraint::regex(r#""nab":[0-9]{3}|"[a-z]*":[a-z]|_"#).unwrap();
        let constraint =
            CompiledConstraint::compile_byte_level(&text, &vocabulary, &Limits::default()).unwrap();
        let after = |text: &str| {
            let start = RowPosition::unlimited(constraint.start());
            text.bytes().fold(start, |at, byte| constraint.after(&at, TokenId(byte.into())))
        };
        let near = |text: &str, tokens| {
            constraint.parts().near_state(
                &after(text),
                &mut BudgetInterval::new(tokens),
                &Thresholds::default(),
            )
        };
        let is_near = |text: &str, tokens| near(text, tokens).is_some();
        let other = after("\"q").state;
        for text in ["\"", "\"n", "\"na", "\"nab"] {
            let near = near(text, 4).unwrap();
            assert_eq!(near.state, other, "{text}");
            assert!(
                near.is_kept_by(b'a')
                    && near.is_kept_by(b'z')
                    && !near.is_kept_by(b'"')
                    && !near.is_kept_by(0xc3)
            );
            // A quotation mark, a colon, a letter and the end.
            assert!(!is_near(text, 3), "{text}");
        }
        // The state itself, and positions with other transitions.
        for text in ["\"q", "", "\"nab\":", "\"q\":"] {
            assert!(!is_near(text, 4), "{text}");
        }
    }
}
