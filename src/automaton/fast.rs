//! Maps with a cheap hash, for keys of a few machine words. The hash does not resist hostile input: keys that were
//! chosen to collide make compilation slow, which the limit on time bounds.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map by [`FastHasher`].
pub(crate) type FastMap<K, V> = HashMap<K, V, BuildHasherDefault<FastHasher>>;

/// One multiplication per word.
#[derive(Clone, Copy, Default)]
pub(crate) struct FastHasher(u64);

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
        self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }

    // The map takes the bucket from the low bits and the tag from the high ones. A product mixes its high bits well.
    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }
}
