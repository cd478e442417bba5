//! Bytes that encode classes of tokens.
//!
//! Bytes that no part of a grammar distinguishes are read alike everywhere, so one of them
//! represents them all while the automaton is built, and the others are free for use as codes. At
//! least the bytes absent from UTF-8 (C0, C1, F5 to FF) but one are free, and usually over a
//! hundred more: for a grammar in ASCII, most bytes from 80 on.

use super::classes::Sets;
use crate::{TokenClasses, TokenEdges};
use burn_dfa_automata::{FastMap, Run};
use burn_dfa_common::{Error, Result};

/// The codes of a grammar that names tokens.
pub(in super::super) struct Codes {
    classes: TokenClasses,
    /// By class.
    codes: Vec<u8>,
    /// The code of a boundary between two tokens, if tokens are counted.
    boundary: Option<u8>,
    /// The codes of each set, in order.
    of_sets: Vec<Vec<u8>>,
    /// The representative of each byte; a code is a byte with another representative.
    read_as: [u8; 256],
}

impl Codes {
    /// Codes for the classes of `sets`, and one for boundaries between tokens if `counts`.
    /// `partitions` are the byte classes that parts of the grammar distinguish, and `literal` are
    /// bytes read alone.
    ///
    /// # Errors
    /// There are more classes than free bytes.
    pub(in super::super) fn new<'a>(
        sets: &Sets,
        partitions: impl Iterator<Item = &'a [u8; 256]>,
        literal: &[bool; 256],
        counts: bool,
    ) -> Result<Self> {
        let mut of: [usize; 256] = std::array::from_fn(|byte| if literal[byte] { 1 + byte } else { 0 });
        for partition in partitions {
            let mut numbers = FastMap::default();
            for (of, class) in of.iter_mut().zip(partition) {
                let next = numbers.len();
                *of = *numbers.entry((*of, class)).or_insert(next);
            }
        }
        let mut first = FastMap::default();
        let read_as: [u8; 256] = std::array::from_fn(|byte| *first.entry(of[byte]).or_insert(byte as u8));
        let mut free: Vec<u8> = (0..=u8::MAX).filter(|&byte| read_as[byte as usize] != byte).collect();
        let boundary = if counts { free.pop() } else { None };
        if counts && boundary.is_none() {
            return Err(Error::grammar_as_a_whole(
                "it counts tokens and tells all bytes apart: write classes of characters, not of bytes",
            ));
        }
        let max = free.len();
        let (classes, of_sets) = sets.classes(max).ok_or_else(|| {
            Error::grammar_as_a_whole(format!(
                "it tells more than {max} kinds of tokens apart: name those together that are followed by the same"
            ))
        })?;
        free.truncate(classes.count());
        let of_sets = of_sets.iter().map(|set| set.iter().map(|&class| free[class as usize]).collect());
        let of_sets = of_sets.collect();
        Ok(Self { classes, codes: free, boundary, of_sets, read_as })
    }

    /// The codes of a set, in order.
    pub(in super::super) fn of(&self, set: usize) -> &[u8] {
        &self.of_sets[set]
    }

    /// Whether each byte is its own representative, and so is no code.
    pub(in super::super) fn alphabet(&self) -> [bool; 256] {
        std::array::from_fn(|byte| self.read_as[byte] as usize == byte)
    }

    /// The code of a boundary between two tokens, if tokens are counted.
    pub(in super::super) fn boundary(&self) -> Option<u8> {
        self.boundary
    }

    /// The representative of each byte.
    pub(in super::super) fn read_as(&self) -> &[u8; 256] {
        &self.read_as
    }

    /// The edges of tokens among the rows of an automaton.
    pub(in super::super) fn edges<'a>(&self, rows: impl Iterator<Item = (u32, &'a [Run])>) -> TokenEdges {
        let mut class_of = [None; 256];
        for (class, &code) in (0..).zip(&self.codes) {
            class_of[code as usize] = Some(class);
        }
        let mut edges = Vec::new();
        let mut boundaries = vec![0; usize::from(self.boundary.is_some())];
        for (state, row) in rows {
            for run in row {
                let classes = (run.first..=run.last).filter_map(|byte| class_of[byte as usize]);
                edges.extend(classes.map(|class| (state, class, run.target)));
            }
            if let Some(symbol) = self.boundary {
                let past = row.iter().find(|run| (run.first..=run.last).contains(&symbol));
                boundaries.push(past.map_or(0, |run| run.target));
            }
        }
        edges.sort_unstable_by_key(|&(state, class, _)| (class, state));
        TokenEdges { classes: self.classes.clone(), edges, boundaries }
    }

    /// A text of an automaton as a person reads it.
    pub(in super::super) fn shown(&self, text: &[u8]) -> Vec<u8> {
        let is_code = |byte: u8| self.codes.contains(&byte);
        let text = text.iter().filter(|&&byte| Some(byte) != self.boundary);
        text.flat_map(|&byte| if is_code(byte) { b"<token>".to_vec() } else { vec![byte] }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn_dfa_vocabulary::TokenId;

    fn sets(count: u32) -> Sets {
        let mut sets = Sets::default();
        (0..count).for_each(|id| _ = sets.number(vec![TokenId(id)], false));
        sets
    }

    #[test]
    fn bytes_that_are_read_alike_are_codes() {
        let letters = std::array::from_fn(|byte| u8::from((byte as u8).is_ascii_lowercase()));
        let mut literal = [false; 256];
        literal[usize::from(b'x')] = true;
        let codes = Codes::new(&sets(3), [&letters].into_iter(), &literal, false).unwrap();
        let alphabet = codes.alphabet();
        assert!(alphabet[0] && alphabet[usize::from(b'a')] && alphabet[usize::from(b'x')]);
        assert_eq!(alphabet.iter().filter(|&&own| own).count(), 3);
        assert_eq!((codes.read_as()[usize::from(b'q')], codes.read_as()[255]), (b'a', 0));
        assert_eq!(codes.of(0).len(), 1);
        assert!((0..3).all(|set| !alphabet[codes.of(set)[0] as usize]));
        assert!(Codes::new(&sets(253), [&letters].into_iter(), &literal, false).is_ok());
        assert!(Codes::new(&sets(254), [&letters].into_iter(), &literal, false).is_err());
    }

    #[test]
    fn boundaries_have_a_code_of_their_own() {
        let codes = Codes::new(&sets(1), std::iter::empty(), &[false; 256], true).unwrap();
        let symbol = codes.boundary().unwrap();
        assert!(!codes.alphabet()[usize::from(symbol)] && codes.of(0) != [symbol]);
        let row = [Run { first: symbol, last: symbol, target: 7 }];
        let edges = codes.edges([(1, &row[..]), (2, &[])].into_iter());
        assert_eq!(edges.boundaries, [0, 7, 0]);
        assert_eq!(edges.shifted(2).boundaries, [0, 1, 2, 9, 0]);
        assert_eq!(codes.shown(&[0, symbol]), b"\0");
        let all = std::array::from_fn(|byte| byte as u8);
        assert!(Codes::new(&sets(0), [&all].into_iter(), &[false; 256], true).is_err());
    }

    #[test]
    fn edges_are_found_within_runs() {
        let codes = Codes::new(&sets(2), std::iter::empty(), &[false; 256], false).unwrap();
        let row = [Run { first: 0, last: 1, target: 7 }, Run { first: 2, last: 2, target: 8 }];
        assert_eq!(codes.edges([(5, &row[..])].into_iter()).edges, [(5, 0, 7), (5, 1, 8)]);
        assert_eq!(codes.shown(&[0, 1]), b"\0<token>");
    }
}
