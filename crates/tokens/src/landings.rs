//! Token classes of a constraint with calls. A token that changes the stack by its last byte at
//! most is looked up at once, as in the token-level form; every other token is read byte by byte.

use std::sync::Arc;

use super::compile::{Followed, TokenRun};
use super::{CompiledConstraint, StateId, TableParts, TokenReading};
use burn_dfa_automata::{ByteDfa, ByteStateId};
use burn_dfa_common::{Error, Limits, Result, limits::Meter};
use burn_dfa_vocabulary::{TokenId, Vocabulary};

/// The class of each token, and the target of each class.
#[derive(PartialEq, Eq)]
pub struct TokenTransitions {
    /// `[vocabulary]`: the class of each token. Tokens of class 0 are read byte by byte.
    pub class: Vec<u32>,
    /// The number of classes of tokens.
    pub classes: usize,
    /// `[states, classes]`: the state after the last byte, before the stack changes; `DEAD` if the
    /// token is illegal, [`FOLLOWED`](Self::FOLLOWED) if it changes the stack before its last byte.
    to: Vec<u32>,
}

impl TokenTransitions {
    /// The entry of a token that must be read byte by byte.
    pub const FOLLOWED: u32 = u32::MAX;

    /// The target of each class from a state.
    pub fn of(&self, state: StateId) -> &[u32] {
        &self.to[state.index() * self.classes..][..self.classes]
    }

    fn find(parts: &TableParts, vocabulary: &Vocabulary, meter: &Meter) -> Result<Self> {
        let automaton = parts.without_stack();
        let Followed { columns, tokens, runs, .. } = Followed::new(&automaton, vocabulary, meter)?;
        // Column 0 leads nowhere.
        let mut class = vec![0; vocabulary.len()];
        tokens.iter().for_each(|token| class[token.index()] = 1);
        let mut class_of = vec![0; columns.len()];
        class_of[0] = 1;
        let mut used = vec![0];
        for &TokenRun { from, to, column } in &runs {
            let class_of = &mut class_of[column as usize];
            if *class_of == 0 {
                used.push(column);
                *class_of = used.len() as u32;
            }
            tokens[from as usize..to as usize].iter().for_each(|token| class[token.index()] = *class_of);
        }
        for &(token, _) in parts.special().tokens() {
            class[token.index()] = 0;
        }
        let (states, classes) = (parts.bound_to_end.len(), 1 + used.len());
        meter.bytes(states.saturating_mul(classes).saturating_add(class.len()).saturating_mul(4))?;
        let mut to = vec![StateId::DEAD.0; states * classes];
        let free = StateId::UNCONSTRAINED;
        to[free.index() * classes..][..classes].fill(free.0);
        to.iter_mut().step_by(classes).for_each(|to| *to = Self::FOLLOWED);
        for (class, &column) in (1..).zip(&used) {
            let own = columns.get(column).iter().filter(|&&(state, _)| (state as usize) < states);
            for &(state, landing) in own {
                let landing = if landing as usize == states { Self::FOLLOWED } else { landing };
                to[state as usize * classes + class] = landing;
            }
        }
        let mut landings = Self { class, classes, to };
        parts.each_too_short(|state, tokens| {
            let classes = tokens.iter().map(|token| landings.class[token.index()] as usize);
            for class in classes.filter(|&class| class > 0) {
                landings.to[state.index() * landings.classes + class] = StateId::DEAD.0;
            }
        });
        Ok(landings)
    }

    /// The transitions of a smaller vocabulary: its token `i` is token `ids[i]` here.
    pub(super) fn prune(&self, ids: &[TokenId]) -> Self {
        let class = ids.iter().map(|id| self.class[id.index()]).collect();
        Self { class, classes: self.classes, to: self.to.clone() }
    }
}

impl CompiledConstraint {
    /// The constraint with token classes in addition to its bytes, for a constraint with calls. A
    /// device then looks up most tokens at once, and reads a token byte by byte only if the token
    /// changes the stack before its last byte. A constraint without calls has this form as a whole,
    /// see [`compile_token_level`](Self::compile_token_level). Artifacts do not store the classes.
    ///
    /// # Errors
    /// - [`ErrorKind::Input`](crate::ErrorKind::Input) for a constraint without calls;
    /// - [`ErrorKind::Limit`](crate::ErrorKind::Limit) if the classes take too many bytes or too much
    ///   time.
    ///
    /// ```
    /// use burn_dfa_tokens::{Constraint, Limits, TokenId, CompiledConstraint, Vocabulary};
    /// use serde_json::json;
    ///
    /// let vocabulary = Vocabulary::from_bytes(["[", "]", ",", " ", "[]"].map(Some).into_iter().chain([None]))?;
    /// let vocabulary = vocabulary.with_eos([TokenId(5)])?;
    /// let lists = Constraint::json_schema(json!({"type": "array", "items": {"$ref": "#"}}))?;
    /// let limits = Limits::default();
    /// let table = CompiledConstraint::compile(&lists, &vocabulary, &limits)?;
    /// assert!(table.outcomes() > 0 && !table.has_token_classes());
    /// assert!(table.with_token_classes(&limits)?.has_token_classes());
    /// # Ok::<(), burn_dfa_tokens::Error>(())
    /// ```
    pub fn with_token_classes(&self, limits: &Limits) -> Result<Self> {
        let parts = self.parts();
        let (Some(_), TokenReading::Bytes { vocabulary, .. }) = (&parts.calls, &parts.reading) else {
            return Err(Error::input(
                "a table without calls has no stack: `CompiledConstraint::compile_token_level` has its classes",
            ));
        };
        let landings = TokenTransitions::find(parts, vocabulary, &Meter::start(limits))?;
        let parts = TableParts { landings: Some(Arc::new(landings)), ..parts.clone() };
        Ok(Self { parts: Arc::new(parts), unrolled: self.unrolled })
    }

    /// Whether the constraint has calls and [token classes](Self::with_token_classes).
    pub fn has_token_classes(&self) -> bool {
        self.parts().landings.is_some()
    }
}

impl TableParts {
    /// The automaton of the bytes up to the first byte that changes the stack. Every byte after it
    /// leads to an extra state, the last one.
    fn without_stack(&self) -> ByteDfa {
        let TokenReading::Bytes { column_of, special, .. } = &self.reading else {
            unreachable!("a table with calls is walked")
        };
        let reserved = CompiledConstraint::RESERVED_COLUMNS;
        let count = self.columns() - reserved - special.columns();
        let states = self.bound_to_end.len() as u32;
        let (next, columns) = (self.next.all(), self.columns());
        let mut transitions = Vec::with_capacity((states as usize + 1) * count);
        for state in 0..=states {
            if state < StateId::RESERVED {
                transitions.extend(std::iter::repeat_n(0, count));
            } else if state < states && self.rests(StateId(state)) {
                transitions.extend_from_slice(&next[state as usize * columns + reserved..][..count]);
            } else {
                transitions.extend(std::iter::repeat_n(states, count));
            }
        }
        let classes = column_of.map(|column| (column as usize - reserved) as u8);
        let accepting = vec![false; states as usize + 1];
        ByteDfa::from_parts(classes, count, transitions, accepting, ByteStateId(self.start.0))
    }
}
