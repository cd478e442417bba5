//! The automaton that finds texts in a longer text (A. V. Aho and M. J. Corasick, "Efficient string
//! matching", 1975).
//!
//! A node stands for the longest prefix of one of the texts at the end of the bytes read so far.
//! For one text it is the automaton of Knuth, Morris and Pratt, and node `n` stands for the first
//! `n` bytes. A [`TextMatcher`](burn_dfa_common::matcher::TextMatcher) has no table: it reads one
//! stream, whereas this automaton becomes a part of constraints.

use std::collections::{BTreeMap, VecDeque};
use std::hash::Hash;

use burn_dfa_automata::FastMap;

/// Classes of bytes.
pub(crate) struct Classes {
    /// The class of each byte.
    pub(crate) of_bytes: [u8; 256],
    /// A byte of each class.
    pub(crate) samples: Vec<u8>,
}

impl Classes {
    /// Bytes share a class if they have the same key and no text has them.
    pub(crate) fn new<'t, K: Eq + Hash>(
        texts: impl IntoIterator<Item = &'t [u8]>,
        key: impl Fn(u8) -> K,
    ) -> Self {
        let mut occurs = [false; 256];
        texts.into_iter().flatten().for_each(|&byte| occurs[byte as usize] = true);
        let mut known = FastMap::default();
        let mut samples = Vec::new();
        let of_bytes = std::array::from_fn(|at| {
            let byte = at as u8;
            *known.entry((key(byte), occurs[at].then_some(byte))).or_insert_with(|| {
                samples.push(byte);
                (samples.len() - 1) as u8
            })
        });
        Self { of_bytes, samples }
    }
}

/// The complete text of a node.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    Nothing,
    Excluded,
    /// The longest trigger, by number.
    Trigger(usize),
}

/// The automaton that finds triggers and excluded texts.
pub(crate) struct TextSearch {
    pub(crate) classes: Classes,
    /// `[nodes, classes]`; node 0 is the root.
    next: Vec<u32>,
    /// By node.
    found: Vec<Found>,
}

impl TextSearch {
    /// The automaton of some texts, over their [classes](Classes::new).
    pub(crate) fn new<T: AsRef<[u8]>>(classes: Classes, triggers: &[T], excludes: &[T]) -> Self {
        let mut search = Self { classes, next: Vec::new(), found: vec![Found::Nothing] };
        // The children of a node, by class.
        let mut children = vec![BTreeMap::new()];
        for (number, trigger) in triggers.iter().enumerate() {
            search.add(trigger.as_ref(), Found::Trigger(number), &mut children);
        }
        for exclude in excludes {
            search.add(exclude.as_ref(), Found::Excluded, &mut children);
        }
        search.link(&children);
        search
    }

    fn add(&mut self, text: &[u8], found: Found, children: &mut Vec<BTreeMap<u8, u32>>) {
        let mut at = 0;
        for &byte in text {
            let new = children.len() as u32;
            let child = *children[at].entry(self.classes.of_bytes[byte as usize]).or_insert(new);
            if child == new {
                children.push(BTreeMap::new());
                self.found.push(Found::Nothing);
            }
            at = child as usize;
        }
        self.found[at] = found;
    }

    /// Fills the table: without a child, a node continues like the node of the longest proper
    /// suffix of its text.
    fn link(&mut self, children: &[BTreeMap<u8, u32>]) {
        let width = self.classes.samples.len();
        self.next = vec![0; children.len() * width];
        let mut fail = vec![0; children.len()];
        let mut queue = VecDeque::from([0]);
        while let Some(at) = queue.pop_front() {
            let (row, other) = (at * width, fail[at] * width);
            if at > 0 {
                self.next.copy_within(other..other + width, row);
            }
            for (&class, &child) in &children[at] {
                let child = child as usize;
                // The row of a shorter text is complete.
                fail[child] = if at == 0 { 0 } else { self.next[other + class as usize] as usize };
                self.next[row + class as usize] = child as u32;
                self.found[child] = match (self.found[child], self.found[fail[child]]) {
                    // A complete excluded text takes precedence.
                    (_, Found::Excluded) => Found::Excluded,
                    (Found::Nothing, other) => other,
                    (own, _) => own,
                };
                queue.push_back(child);
            }
        }
    }

    /// The node after a byte.
    pub(crate) fn next(&self, node: u32, byte: u8) -> u32 {
        let class = self.classes.of_bytes[byte as usize];
        self.next[node as usize * self.classes.samples.len() + class as usize]
    }

    /// The complete text of a node.
    pub(crate) fn found(&self, node: u32) -> Found {
        self.found[node as usize]
    }

    /// The number of entries of its table.
    pub(crate) fn entries(&self) -> usize {
        self.next.len()
    }

    /// Whether reading the trigger from the start completes it, without completing another text
    /// before or with it.
    pub(crate) fn is_read(&self, trigger: &str, number: usize) -> bool {
        let mut at = 0;
        let last = trigger.len() - 1;
        trigger.bytes().enumerate().all(|(read, byte)| {
            at = self.next(at, byte);
            let wanted = if read == last { Found::Trigger(number) } else { Found::Nothing };
            self.found(at) == wanted
        })
    }

    /// The same from another node, for a trigger that passes the check from the root.
    pub(crate) fn is_read_from(&self, mut at: u32, trigger: &str, number: usize) -> bool {
        let mut from_root = 0;
        let last = trigger.len() - 1;
        for (read, byte) in trigger.bytes().enumerate() {
            // The text before the trigger makes no difference any more.
            if at == from_root {
                return true;
            }
            (at, from_root) = (self.next(at, byte), self.next(from_root, byte));
            let wanted = if read == last { Found::Trigger(number) } else { Found::Nothing };
            if self.found(at) != wanted {
                return false;
            }
        }
        true
    }
}
