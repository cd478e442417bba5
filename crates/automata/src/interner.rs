//! A set of slices that gives every distinct slice a number.

use super::hash::{Word, hash};
use super::id_table::IdTable;

/// Distinct slices, numbered from 0 in order of arrival, stored back to back.
pub struct Interner<T> {
    items: Vec<T>,
    /// The start of each slice, and the end of the last one.
    bounds: Vec<usize>,
    known: IdTable,
}

impl<T: Word> Interner<T> {
    /// An empty set.
    #[allow(clippy::new_without_default, reason = "one way to make it")]
    pub fn new() -> Self {
        Self { items: Vec::new(), bounds: vec![0], known: IdTable::new() }
    }

    /// The number of `slice`, and whether it is new.
    pub fn intern(&mut self, slice: &[T]) -> (u32, bool) {
        let Self { items, bounds, known } = self;
        let new = bounds.len() as u32 - 1;
        let is_same = |id: u32| &items[bounds[id as usize]..bounds[id as usize + 1]] == slice;
        let (id, is_new) = known.find_or_insert(hash(0, slice), new, is_same);
        if is_new {
            items.extend_from_slice(slice);
            bounds.push(items.len());
        }
        (id, is_new)
    }

    /// Forgets all slices; cheap for small sets.
    pub fn clear(&mut self) {
        self.items.clear();
        self.bounds.truncate(1);
        self.known.clear();
    }

    /// The slice numbered `id`.
    pub fn get(&self, id: u32) -> &[T] {
        &self.items[self.bounds[id as usize]..self.bounds[id as usize + 1]]
    }

    /// The number of different slices.
    #[allow(clippy::len_without_is_empty, reason = "no caller asks")]
    pub fn len(&self) -> usize {
        self.bounds.len() - 1
    }

    /// Approximate memory in use.
    pub fn bytes(&self) -> usize {
        self.items.len() * size_of::<T>() + self.len() * 32
    }
}
