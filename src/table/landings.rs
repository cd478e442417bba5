//! What each token does to each state of a table with calls, where it changes the stack by its last byte at most. Such a token
//! is looked up at once, as in a tabulated table; the others are followed byte by byte.

use std::sync::Arc;

use super::compile::{Followed, TokenRun};
use super::{StateId, TableParts, TokenReading, TokenTable};
use crate::automaton::{ByteDfa, ByteStateId};
use crate::error::{Error, Result};
use crate::limits::{Limits, Meter};
use crate::vocabulary::{TokenId, Vocabulary};

/// The tokens of a vocabulary by class, and where each class leads to.
#[derive(PartialEq, Eq)]
pub(crate) struct Landings {
    /// `[vocabulary]`: the class of each token. Tokens of class 0 are followed from every state.
    pub(crate) class: Vec<u32>,
    pub(crate) classes: usize,
    /// `[states, classes]`: the state that the last byte leads to, before the stack changes; `DEAD` where the token is
    /// illegal, [`FOLLOWED`](Self::FOLLOWED) where it changes the stack before its last byte.
    to: Vec<u32>,
}

impl Landings {
    pub(crate) const FOLLOWED: u32 = u32::MAX;

    /// Where the tokens of each class lead to from a state.
    pub(crate) fn of(&self, state: StateId) -> &[u32] {
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
        let (states, classes) = (parts.tokens_to_end.len(), 1 + used.len());
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
        Ok(Self { class, classes, to })
    }

    /// The same for other tokens, whose ids are `ids` here.
    pub(super) fn prune(&self, ids: &[TokenId]) -> Self {
        let class = ids.iter().map(|id| self.class[id.index()]).collect();
        Self { class, classes: self.classes, to: self.to.clone() }
    }
}

impl TokenTable {
    /// The same table, of one with calls, with the tokens by class beside it: a device then looks up at once what most tokens
    /// do, and follows byte by byte only those that change the stack before their last byte. Tables without calls have this form
    /// as a whole, see [`tabulate`](Self::tabulate). It is not saved with the table.
    ///
    /// # Errors
    /// - [`Error::is_input`] for a table without calls;
    /// - [`Error::is_limit`] where the classes would take too many bytes, or too long.
    ///
    /// ```
    /// use burn_dfa::{Constraint, Limits, TokenId, TokenTable, Vocabulary};
    /// use serde_json::json;
    ///
    /// let vocabulary = Vocabulary::from_bytes(["[", "]", ",", "[]"].map(Some).into_iter().chain([None]))?;
    /// let vocabulary = vocabulary.with_eos([TokenId(4)])?;
    /// let lists = Constraint::json_schema(json!({"type": "array", "items": {"$ref": "#"}}))?;
    /// let limits = Limits::default();
    /// let table = TokenTable::compile(&lists, &vocabulary, &limits)?;
    /// assert!(table.outcomes() > 0 && !table.has_token_classes());
    /// assert!(table.with_token_classes(&limits)?.has_token_classes());
    /// # Ok::<(), burn_dfa::Error>(())
    /// ```
    pub fn with_token_classes(&self, limits: &Limits) -> Result<Self> {
        let parts = self.parts();
        let (Some(_), TokenReading::Bytes { vocabulary, .. }) = (&parts.calls, &parts.reading) else {
            return Err(Error::input(
                "a table without calls has no stack: `TokenTable::tabulate` has its classes",
            ));
        };
        let landings = Landings::find(parts, vocabulary, &Meter::start(limits))?;
        let parts = TableParts { landings: Some(Arc::new(landings)), ..parts.clone() };
        Ok(Self { parts: Arc::new(parts), unrolled: self.unrolled })
    }

    /// Whether it has calls, and [token classes](Self::with_token_classes) beside them.
    pub fn has_token_classes(&self) -> bool {
        self.parts().landings.is_some()
    }
}

impl TableParts {
    /// The automaton of the bytes up to the first that changes the stack: what is read behind it leads to a state of its own,
    /// the last one.
    fn without_stack(&self) -> ByteDfa {
        let TokenReading::Bytes { column_of, special, .. } = &self.reading else {
            unreachable!("a table with calls is walked")
        };
        let reserved = TokenTable::RESERVED_COLUMNS;
        let count = self.columns() - reserved - special.columns();
        let states = self.tokens_to_end.len() as u32;
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
