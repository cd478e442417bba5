//! Masks and rotations, which differ between layers that see the whole text and layers with a
//! sliding window.
//!
//! In a layer with a window of `n` positions, a position sees itself and the `n - 1` positions
//! before it. The cache keeps all of them.

use burn::tensor::{Bool, Int, Tensor};

/// A value for layers that see the whole text, and another value for layers with a sliding window
/// if they need one.
#[derive(Clone, Debug)]
pub(crate) struct PerKind<T> {
    pub(crate) full: T,
    pub(crate) sliding: Option<T>,
}

impl<T> PerKind<T> {
    /// The value for layers of a kind.
    pub(crate) fn of(&self, sliding: bool) -> &T {
        match &self.sliding {
            Some(value) if sliding => value,
            _ => &self.full,
        }
    }
}

/// Masks that are true at hidden keys.
///
/// # Shapes
/// - `hidden`: `[batch or 1, 1, queries, keys]`, without the window
/// - `query`, `key`: their positions, of the same shape; only computed if there is a window
pub(crate) fn masks(
    hidden: Tensor<4, Bool>,
    window: Option<usize>,
    positions: impl FnOnce() -> [Tensor<4, Int>; 2],
) -> PerKind<Tensor<4, Bool>> {
    let sliding = window.map(|window| {
        let [query, key] = positions();
        hidden.clone().bool_or((query - key).greater_equal_elem(window as i64))
    });
    PerKind { full: hidden, sliding }
}
