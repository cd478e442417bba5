//! A set of slices that gives every distinct slice a number.

use std::collections::hash_map::Entry;

use super::fast::FastMap;

/// Distinct slices, numbered from 0 in order of arrival, stored back to back.
pub struct Interner<T> {
    items: Vec<T>,
    ends: Vec<usize>,
    /// For each hash, the last slice with the hash.
    by_hash: FastMap<u64, u32>,
    /// The previous slice with the same hash, or `NONE`.
    previous: Vec<u32>,
}

const NONE: u32 = u32::MAX;

/// A word of a slice, as input of the hash.
pub trait Word: Copy + Eq {
    fn word(self) -> u64;
}

impl Word for u32 {
    fn word(self) -> u64 {
        self.into()
    }
}

impl Word for u64 {
    fn word(self) -> u64 {
        self
    }
}

impl Word for (u32, u32) {
    fn word(self) -> u64 {
        u64::from(self.0) << 32 | u64::from(self.1)
    }
}

impl<T: Word> Interner<T> {
    /// An empty set.
    #[allow(clippy::new_without_default, reason = "one way to make it")]
    pub fn new() -> Self {
        Self { items: Vec::new(), ends: vec![0], by_hash: FastMap::default(), previous: Vec::new() }
    }

    /// The number of `slice`, and whether it is new.
    pub fn intern(&mut self, slice: &[T]) -> (u32, bool) {
        let id = self.previous.len() as u32;
        match self.by_hash.entry(hash(slice)) {
            Entry::Vacant(entry) => {
                entry.insert(id);
                self.previous.push(NONE);
            }
            Entry::Occupied(mut entry) => {
                let mut candidate = *entry.get();
                while candidate != NONE {
                    let at = candidate as usize;
                    if &self.items[self.ends[at]..self.ends[at + 1]] == slice {
                        return (candidate, false);
                    }
                    candidate = self.previous[at];
                }
                self.previous.push(entry.insert(id));
            }
        }
        self.items.extend_from_slice(slice);
        self.ends.push(self.items.len());
        (id, true)
    }

    /// Forgets all slices; cheap for small sets.
    pub fn clear(&mut self) {
        // The cost of clearing a map grows with its capacity.
        const SMALL: usize = 256;
        if self.by_hash.capacity() > SMALL {
            self.by_hash = FastMap::default();
        } else {
            self.by_hash.clear();
        }
        self.items.clear();
        self.ends.truncate(1);
        self.previous.clear();
    }

    /// The sequence numbered `id`.
    pub fn get(&self, id: u32) -> &[T] {
        &self.items[self.ends[id as usize]..self.ends[id as usize + 1]]
    }

    /// The number of different sequences.
    #[allow(clippy::len_without_is_empty, reason = "no caller asks")]
    pub fn len(&self) -> usize {
        self.previous.len()
    }

    /// Approximate memory in use.
    pub fn bytes(&self) -> usize {
        self.items.len() * size_of::<T>() + self.previous.len() * 32
    }
}

/// Hashes in four independent lanes of multiplications.
fn hash<T: Word>(slice: &[T]) -> u64 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut lanes = [0xcbf2_9ce4_8422_2325 ^ slice.len() as u64, 1, 2, 3];
    let mix = |lane: u64, item: T| (lane.rotate_left(23) ^ item.word()).wrapping_mul(FACTOR);
    let chunks = slice.chunks_exact(4);
    let rest = chunks.remainder();
    for chunk in chunks {
        for (lane, &item) in lanes.iter_mut().zip(chunk) {
            *lane = mix(*lane, item);
        }
    }
    for &item in rest {
        lanes[0] = mix(lanes[0], item);
    }
    lanes
        .into_iter()
        .reduce(|all, lane| (all.rotate_left(29) ^ lane ^ all >> 31).wrapping_mul(FACTOR))
        .unwrap_or(0)
}
