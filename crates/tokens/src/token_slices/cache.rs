//! The transitions of characters in one compiled constraint, and the known steps.

use std::sync::{Mutex, OnceLock};

use crate::steps::Steps;
use burn_dfa_vocabulary::{CONTINUATION, CharacterSet, LENGTH_CLASSES, LengthClass, Vocabulary};

/// The transitions of characters in one compiled constraint, and the known steps.
pub struct CharTransitionCache {
    /// The columns of first bytes, each with its characters.
    columns: Vec<(u32, CharacterSet)>,
    pub(super) wide: Vec<Wide>,
    /// Counts of the vocabulary by column.
    weighed: OnceLock<Weighed>,
    /// The transition of most characters, by state, as the latest search met them; valid for every
    /// stack.
    pub(super) steps: Mutex<Steps>,
}

/// Counts of a vocabulary by column.
pub(super) struct Weighed {
    pub(super) columns: Vec<Column>,
    /// The sum of the weights of all columns.
    pub(super) weight: usize,
}

/// Non-ASCII characters with the same columns.
#[derive(Clone)]
pub(super) struct Wide {
    pub(super) first: CharacterSet,
    /// The continuation bytes by their index.
    pub(super) behind: Vec<Bytes>,
}

/// A range of bytes with its columns.
#[derive(Clone)]
pub(super) struct Bytes {
    pub(super) first: u8,
    pub(super) last: u8,
    pub(super) columns: Vec<u32>,
}

/// A column with its characters.
pub(super) struct Column {
    pub(super) column: usize,
    pub(super) set: CharacterSet,
    /// The number of trie nodes of tokens with these first bytes.
    pub(super) nodes: usize,
    /// The number of tokens with these characters in their rests.
    pub(super) weight: usize,
}

impl CharTransitionCache {
    pub(crate) fn new(column_of: &[u32; 256]) -> Self {
        let bytes = |(first, last): (u8, u8)| {
            let mut columns: Vec<u32> = (first..=last).map(|byte| column_of[byte as usize]).collect();
            columns.sort_unstable();
            columns.dedup();
            Bytes { first, last, columns }
        };
        let count = column_of.iter().max().map_or(0, |&greatest| greatest as usize + 1);
        let mut sets = vec![CharacterSet::default(); count];
        for byte in CharacterSet::CHARACTERS.bytes() {
            sets[column_of[byte as usize] as usize].insert(byte);
        }
        let columns = (0..).zip(sets).filter(|(_, set)| !set.is_empty()).collect();
        let to_wide = |class: &LengthClass| Wide {
            first: CharacterSet::of(class.first..=class.last),
            behind: (1..class.length)
                .map(|at| bytes(if at == 1 { class.second } else { CONTINUATION }))
                .collect(),
        };
        let mut wide: Vec<Wide> = Vec::new();
        for new in LENGTH_CLASSES.iter().map(to_wide) {
            let is_same = |known: &&mut Wide| {
                let columns = known.behind.iter().map(|bytes| &bytes.columns);
                columns.eq(new.behind.iter().map(|bytes| &bytes.columns))
            };
            match wide.iter_mut().find(is_same) {
                Some(known) => known.first = known.first.or(new.first),
                None => wide.push(new),
            }
        }
        Self { columns, wide, weighed: OnceLock::new(), steps: Mutex::default() }
    }

    /// Counts of the vocabulary by column. Computed once.
    pub(super) fn weighed(&self, vocabulary: &Vocabulary) -> &Weighed {
        self.weighed.get_or_init(|| {
            let (trie, characters) = (vocabulary.trie(), vocabulary.characters());
            let weigh = |&(column, set): &(u32, CharacterSet)| Column {
                column: column as usize,
                set,
                nodes: set.bytes().map(|byte| trie.count_between(byte, byte)).sum(),
                weight: characters.count_rest(set),
            };
            let columns: Vec<Column> = self.columns.iter().map(weigh).collect();
            Weighed { weight: columns.iter().map(|column| column.weight).sum(), columns }
        })
    }
}

impl Clone for CharTransitionCache {
    /// A clone starts without known steps.
    fn clone(&self) -> Self {
        let (columns, wide) = (self.columns.clone(), self.wide.clone());
        Self { columns, wide, weighed: OnceLock::new(), steps: Mutex::default() }
    }
}

impl PartialEq for CharTransitionCache {
    /// The contents follow from the compiled constraint.
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for CharTransitionCache {}
