//! Constraints on tokens regardless of their bytes.

use std::collections::{BTreeSet, HashMap};

use burn_dfa_common::{Error, Result};
use burn_dfa_vocabulary::TokenId;

/// An automaton over tokens; state 0 is dead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenAutomaton {
    /// The state before any token.
    pub start: u32,
    /// `(state, token, next)`, sorted; at most one for each state and token.
    pub transitions: Vec<(u32, TokenId, u32)>,
    /// By state, the dead one included.
    pub accepting: Vec<bool>,
}

/// Explicit transitions `(state, token, next state)` between states numbered by the caller.
///
/// In an accepting state the output may end; the end-of-sequence token needs no transition. Tokens
/// without a transition are not allowed.
///
/// ```
/// use burn_dfa_tokens::constraint::Transitions;
/// use burn_dfa_tokens::{Constraint, TokenId};
///
/// // Token 5 any number of times, then token 7.
/// let transitions =
///     Transitions::new(1, [2], [(1, TokenId(5), 1), (1, TokenId(7), 2)])?;
/// let constraint = Constraint::transitions(transitions);
/// # let _ = constraint;
/// # Ok::<(), burn_dfa_tokens::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transitions {
    automaton: TokenAutomaton,
}

impl Transitions {
    /// Takes any state numbers, in any order; transitions may repeat.
    ///
    /// # Errors
    /// No transition, no accepting state, an initial or accepting state without any transition, or
    /// a state and token with two different next states.
    pub fn new(
        initial: u32,
        accepting: impl IntoIterator<Item = u32>,
        transitions: impl IntoIterator<Item = (u32, TokenId, u32)>,
    ) -> Result<Self> {
        let mut transitions: Vec<_> = transitions.into_iter().collect();
        transitions.sort_unstable();
        transitions.dedup();
        if transitions.is_empty() {
            return Err(Error::input("a constraint by transitions needs at least one of them"));
        }
        if let Some(pair) = transitions.windows(2).find(|pair| {
            let (one, other) = (pair[0], pair[1]);
            (one.0, one.1) == (other.0, other.1)
        }) {
            let ((state, token, one), (.., other)) = (pair[0], pair[1]);
            return Err(Error::input(format!(
                "state {state} has two transitions on token {token}, to state {one} and to state {other}: leave one out"
            )));
        }

        let states: BTreeSet<u32> = transitions.iter().flat_map(|&(state, _, next)| [state, next]).collect();
        let numbers: HashMap<u32, u32> = states.iter().copied().zip(1..).collect();
        let number = |state: u32, role: &str| {
            numbers
                .get(&state)
                .copied()
                .ok_or_else(|| Error::input(format!("the {role} state {state} has no transition in or out")))
        };
        let start = number(initial, "initial")?;
        let mut accepts = vec![false; states.len() + 1];
        for state in accepting {
            accepts[number(state, "accepting")? as usize] = true;
        }
        if !accepts.contains(&true) {
            return Err(Error::input("no state accepts, so no output could ever end"));
        }
        for transition in &mut transitions {
            transition.0 = numbers[&transition.0];
            transition.2 = numbers[&transition.2];
        }
        let automaton = TokenAutomaton { start, transitions, accepting: accepts };
        Ok(Self { automaton })
    }

    pub(super) fn lower(&self) -> TokenAutomaton {
        self.automaton.clone()
    }

    pub(super) fn automaton(&self) -> &TokenAutomaton {
        &self.automaton
    }
}

/// Rejects an empty list and an empty set.
pub(super) fn check_sets(sets: &[Vec<TokenId>]) -> Result<()> {
    if sets.is_empty() {
        return Err(Error::input("a constraint by token sets needs at least one position"));
    }
    if let Some(position) = sets.iter().position(Vec::is_empty) {
        return Err(Error::input(format!("the token set of position {position} is empty")));
    }
    if sets.len() >= u32::MAX as usize - 1 {
        return Err(Error::input("more positions than there are states"));
    }
    Ok(())
}

/// The chain of the sets.
pub(super) fn lower_sets(sets: &[Vec<TokenId>]) -> TokenAutomaton {
    let mut transitions: Vec<_> = (1..)
        .zip(sets)
        .flat_map(|(state, set)| set.iter().map(move |&token| (state, token, state + 1)))
        .collect();
    transitions.sort_unstable();
    transitions.dedup();
    let mut accepting = vec![false; sets.len() + 2];
    accepting[sets.len() + 1] = true;
    TokenAutomaton { start: 1, transitions, accepting }
}
