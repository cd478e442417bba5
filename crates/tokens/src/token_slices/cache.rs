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
    /// The transition of most of the vocabulary, by state; valid for every stack.
    pub(super) steps: Mutex<Steps>,
}

/// Counts of a vocabulary by column.
pub(super) struct Weighed {
    /// For each column, the number of trie nodes of tokens with its first bytes.
    pub(super) nodes: Vec<(u32, u32)>,
    pub(super) columns: Vec<Column>,
    /// The sum of the weights of all columns.
    pub(super) weight: usize,
}

/// Non-ASCII characters with the same columns.
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
        let mut columns: Vec<(u32, CharacterSet)> = Vec::new();
        let mut place_of = vec![None; column_of.iter().max().map_or(0, |&most| most as usize + 1)];
        for byte in CharacterSet::CHARACTERS.bytes() {
            let column = column_of[byte as usize];
            let place = *place_of[column as usize].get_or_insert_with(|| {
                columns.push((column, CharacterSet::default()));
                columns.len() - 1
            });
            columns[place].1.insert(byte);
        }
        let wide = |class: &LengthClass| Wide {
            first: CharacterSet::of(class.first..=class.last),
            behind: (1..class.length)
                .map(|at| bytes(if at == 1 { class.second } else { CONTINUATION }))
                .collect(),
        };
        let mut all: Vec<Wide> = Vec::new();
        for wide in LENGTH_CLASSES.iter().map(wide) {
            let is_same = |known: &&mut Wide| {
                let columns = known.behind.iter().map(|bytes| &bytes.columns);
                columns.eq(wide.behind.iter().map(|bytes| &bytes.columns))
            };
            match all.iter_mut().find(is_same) {
                Some(known) => known.first = known.first.or(wide.first),
                None => all.push(wide),
            }
        }
        Self { columns, wide: all, weighed: OnceLock::new(), steps: Mutex::default() }
    }

    /// Counts of the vocabulary by column. Computed once.
    pub(super) fn weighed(&self, vocabulary: &Vocabulary) -> &Weighed {
        self.weighed.get_or_init(|| {
            let characters = vocabulary.characters();
            let mut nodes_of = [0; 256];
            for (byte, nodes) in vocabulary.trie().by_first_byte() {
                nodes_of[byte as usize] = nodes.len() as u32;
            }
            let nodes = |set: CharacterSet| set.bytes().map(|byte| nodes_of[byte as usize]).sum();
            let nodes = self.columns.iter().map(|&(column, set)| (column, nodes(set))).collect();
            let weigh = |set| characters.count_rest(set);
            let columns = self.columns.iter();
            let columns: Vec<Column> = columns
                .map(|&(column, set)| Column { column: column as usize, set, weight: weigh(set) })
                .collect();
            let weight = columns.iter().map(|column| column.weight).sum();
            Weighed { nodes, columns, weight }
        })
    }
}

impl Clone for CharTransitionCache {
    /// A clone starts without known steps.
    fn clone(&self) -> Self {
        let wide = self.wide.iter().map(|wide| Wide { first: wide.first, behind: wide.behind.clone() });
        Self {
            columns: self.columns.clone(),
            wide: wide.collect(),
            weighed: OnceLock::new(),
            steps: Mutex::default(),
        }
    }
}

impl PartialEq for CharTransitionCache {
    /// The contents follow from the compiled constraint.
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for CharTransitionCache {}
