//! One cheap hash for tables of numbers. It has no seed and does not resist hostile input:
//! colliding keys make compilation slow, bounded by the limit on time. A map whose keys hold texts
//! of the input is a [`HashMap`] with its random seed instead, because texts can be chosen to
//! collide, and are read before the limits are known.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::Run;

/// A map with a fast hash of small keys, for keys without texts of the input.
pub type FastMap<K, V> = HashMap<K, V, BuildHasherDefault<FastHasher>>;

/// Adds a word to a hash. The high bits of the result are well mixed.
pub(super) fn mix(hash: u64, word: u64) -> u64 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    (hash.rotate_left(23) ^ word).wrapping_mul(FACTOR)
}

/// Hashes with one [`mix`] for each word.
#[derive(Clone, Copy, Default)]
pub struct FastHasher(u64);

impl Hasher for FastHasher {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u8(&mut self, word: u8) {
        self.write_u64(word.into());
    }

    fn write_u32(&mut self, word: u32) {
        self.write_u64(word.into());
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = mix(self.0, word);
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }

    // The map takes the bucket from the low bits and the tag from the high bits.
    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }
}

/// An item of a slice with a [`hash`].
pub trait Word: Copy + Eq {
    /// The item as a word.
    fn word(self) -> u64;
}

impl Word for u32 {
    fn word(self) -> u64 {
        self.into()
    }
}

impl Word for (u32, u32) {
    fn word(self) -> u64 {
        u64::from(self.0) << 32 | u64::from(self.1)
    }
}

impl Word for Run {
    fn word(self) -> u64 {
        u64::from(self.first) << 40 | u64::from(self.last) << 32 | u64::from(self.target)
    }
}

/// The hash of a slice and of another word. Four lanes of multiplications are independent.
pub(super) fn hash<T: Word>(other: u64, slice: &[T]) -> u32 {
    let start = other << 32 ^ slice.len() as u64;
    let (chunks, rest) = slice.as_chunks::<4>();
    let mut lanes = [start, 1, 2, 3];
    for chunk in chunks {
        for (lane, &item) in lanes.iter_mut().zip(chunk) {
            *lane = mix(*lane, item.word());
        }
    }
    let joined = if chunks.is_empty() { start } else { lanes.into_iter().fold(0, mix) };
    let all = rest.iter().fold(joined, |hash, &item| mix(hash, item.word()));
    (mix(0, all ^ all >> 32) >> 32) as u32
}
