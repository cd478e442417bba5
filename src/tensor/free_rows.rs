//! What may follow at some places in free text, kept from step to step.

use std::sync::{Mutex, PoisonError};

use crate::table::{RowPosition, StateId};

/// The last few places in free text, with what may follow there.
#[derive(Debug, Default)]
pub(crate) struct FreeRows(Mutex<Vec<FreeRow>>);

/// What may follow at a place in free text.
#[derive(Debug)]
pub(crate) struct FreeRow {
    pub(crate) state: StateId,
    /// The stack there, see [`RowPosition`].
    pub(crate) frames: Vec<u32>,
    /// The longest way to the end from behind a token. With so many tokens left after it the budget forbids none.
    pub(crate) farthest: u32,
    /// Whether the tokens of each class may follow.
    pub(crate) classes: Vec<bool>,
    /// Those of these classes that may not.
    pub(crate) except: Vec<u32>,
}

impl FreeRows {
    /// Gives what is known of the place of a row that has so many tokens left after the next one; whether there is such a place.
    pub(crate) fn find(&self, position: &RowPosition, left: u32, give: impl FnOnce(&FreeRow)) -> bool {
        let rows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_here = |row: &&FreeRow| {
            row.state == position.state && row.farthest <= left && row.frames == position.frames
        };
        rows.iter().find(is_here).map(give).is_some()
    }

    /// Keeps a place in front of the others.
    pub(crate) fn keep(&self, row: FreeRow) {
        const KEPT: usize = 8;
        let mut rows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        rows.retain(|other| other.state != row.state || other.frames != row.frames);
        rows.truncate(KEPT - 1);
        rows.insert(0, row);
    }
}
