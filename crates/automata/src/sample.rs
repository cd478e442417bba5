//! Words of a language: the shortest word, and random words.

use super::{ByteDfa, ByteStateId, Rows};
use burn_dfa_common::random::Random;

impl ByteDfa {
    /// The shortest word, among equally short words the first in byte order; `None` if the language
    /// is empty.
    ///
    /// ```
    /// use burn_dfa_tokens::{Constraint, Limits};
    ///
    /// let dfa = Constraint::regex("x{3}y*|[b-d]{2}")?.to_byte_dfa(&Limits::default())?.unwrap();
    /// assert_eq!(dfa.shortest_word().as_deref(), Some(&b"bb"[..]));
    /// # Ok::<(), burn_dfa_tokens::Error>(())
    /// ```
    pub fn shortest_word(&self) -> Option<Vec<u8>> {
        let distances = Rows::from(self).distances();
        let mut state = self.start();
        let mut word = Vec::new();
        if self.is_empty() {
            return None;
        }
        while distances[state.index()] > 0 {
            let nearer = |&byte: &u8| distances[self.next(state, byte).index()] < distances[state.index()];
            let byte = (0..=u8::MAX).find(nearer)?;
            word.push(byte);
            state = self.next(state, byte);
        }
        Some(word)
    }

    /// A random word, the same for the same seed; `None` if the language is empty. It is the first
    /// of [`samples`](Self::samples).
    ///
    /// ```
    /// use burn_dfa_tokens::{Constraint, Limits};
    ///
    /// let dfa =
    ///     Constraint::regex("[a-z]+@[a-z]+\\.org")?.to_byte_dfa(&Limits::default())?.unwrap();
    /// let word = dfa.sample(7, 20).unwrap();
    /// assert!(dfa.matches(&word));
    /// assert_eq!(dfa.sample(7, 20), Some(word));
    /// # Ok::<(), burn_dfa_tokens::Error>(())
    /// ```
    pub fn sample(&self, seed: u64, length: usize) -> Option<Vec<u8>> {
        self.samples(seed, length).next()
    }

    /// An infinite sequence of random words; empty if the language is empty. Meant for tests and
    /// for examples of a constraint's outputs.
    ///
    /// A walk follows any transition for up to `length` bytes, and afterward only transitions
    /// closer to the end. Every word of at most `length` bytes can occur, but not with equal
    /// probability: short words are more likely.
    pub fn samples(&self, seed: u64, length: usize) -> impl Iterator<Item = Vec<u8>> {
        let distances = Rows::from(self).distances();
        let mut random = Random(seed);
        let mut bytes = vec![Vec::new(); self.class_count()];
        for byte in 0..=u8::MAX {
            bytes[self.classes()[byte as usize] as usize].push(byte);
        }
        let walk = move || {
            let wander = random.below(length.saturating_add(1));
            let (mut state, mut word) = (self.start(), Vec::new());
            loop {
                let hurry = word.len() >= wander;
                if self.is_accepting(state) && (hurry || random.below(8) == 0) {
                    return Some(word);
                }
                let leads = |class: &usize| {
                    let next = self.next_by_class(state, *class);
                    next != ByteStateId::DEAD
                        && (!hurry || distances[next.index()] < distances[state.index()])
                };
                let classes: Vec<usize> = (0..self.class_count()).filter(leads).collect();
                if classes.is_empty() {
                    return self.is_accepting(state).then_some(word);
                }
                let class = classes[random.below(classes.len())];
                word.push(bytes[class][random.below(bytes[class].len())]);
                state = self.next_by_class(state, class);
            }
        };
        std::iter::from_fn(walk)
    }
}
