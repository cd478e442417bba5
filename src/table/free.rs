//! The states of free text in a walked table.
//!
//! In free text nearly every token may follow. A state of free text is one that nearly all characters lead back to; such
//! states share a set of characters that lead each of them back to itself. So all tokens of these characters alone may
//! follow there if the end can be reached from the state itself, and only the rest of the tokens has to be walked: those
//! in which a trigger may begin, and parts of characters.
//!
//! From a state amid the beginning of a trigger most first bytes lead where they lead from the state of free text
//! before it. Tokens that begin with one of these are as legal as there, and the others are walked.

use std::ops::RangeInclusive;

use super::{StateId, TableParts, TokenReading};
use crate::vocabulary::{FirstBytes, Symbols, WIDE};

/// Most characters of ASCII that may lead elsewhere from a state of free text. From a state within a JSON string 34 do:
/// control characters, quotes and backslashes.
const MOST_OTHERS: u32 = 32;

/// The symbols of the printable characters of ASCII.
const PRINTABLE: Symbols = (1 << 95) - 1;

/// What of a walked table is free text.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct FreeStates {
    /// The characters that lead every state of free text to itself.
    characters: FirstBytes,
    /// A state, and the state of free text that it is almost like; in order. A state of free text stands with itself.
    like: Vec<(u32, u32)>,
}

/// Characters beyond ASCII: their first bytes, from the first to the last, and the columns of each byte behind.
struct Sequence {
    first: (u8, u8),
    rest: Vec<Vec<u32>>,
}

impl FreeStates {
    /// The characters that lead every state of free text to itself.
    pub(crate) fn characters(&self) -> FirstBytes {
        self.characters
    }

    fn like(&self, state: StateId) -> Option<StateId> {
        let at = self.like.binary_search_by_key(&state.0, |&(state, _)| state).ok()?;
        Some(StateId(self.like[at].1))
    }
}

impl TableParts {
    /// The state of free text that `state` is, or is almost like: tokens of the characters of free text whose first byte is not
    /// among those that [part](Self::parts_from) the two lead to it from both.
    pub(crate) fn free_text(&self, state: StateId) -> Option<StateId> {
        match &self.reading {
            TokenReading::Bytes { free, .. } => free.like(state),
            TokenReading::Classes(_) => None,
        }
    }

    /// Whether a byte leads elsewhere from `state` than from `free`, where it begins a character of free text.
    pub(crate) fn parts_from(&self, state: StateId, free: StateId, byte: u8) -> bool {
        let TokenReading::Bytes { column_of, free: FreeStates { characters, .. }, .. } = &self.reading else {
            return true;
        };
        let column = column_of[byte as usize] as usize;
        characters.contains(byte) && self.row(state)[column] != self.row(free)[column]
    }

    /// Finds the states of free text, and those that are almost like them. What leads back to a state is known.
    pub(super) fn find_free(&mut self) {
        let TokenReading::Bytes { rests, .. } = &self.reading else { return };
        let enough = PRINTABLE.count_ones() - MOST_OTHERS;
        let own = (StateId::RESERVED..).zip(&rests[StateId::RESERVED as usize..]);
        let sequences = WIDE.map(|sequence| Sequence {
            first: sequence[0],
            rest: sequence[1..].iter().map(|&(first, last)| self.columns_of(first..=last)).collect(),
        });
        let found = own
            .filter(|&(_, rests)| (rests & PRINTABLE).count_ones() >= enough)
            .filter_map(|(state, _)| Some((state, self.leading_back(StateId(state), &sequences)?)));
        let found: Vec<(u32, FirstBytes)> = found.collect();
        let Some(&(_, first)) = found.first() else { return };
        // What all of them share, without those that share too little with the ones before.
        let characters = found.iter().fold(first, |characters, &(_, back)| {
            let both = characters.and(back);
            if both.ascii() >= 128 - MOST_OTHERS { both } else { characters }
        });
        let states =
            found.into_iter().filter(|(_, back)| back.and(characters) == characters).map(|(state, _)| state);
        let like = self.almost_like(&states.collect::<Vec<_>>(), characters);
        if let TokenReading::Bytes { free, .. } = &mut self.reading {
            *free = FreeStates { characters, like };
        }
    }

    /// The columns of some bytes, each once.
    fn columns_of(&self, bytes: RangeInclusive<u8>) -> Vec<u32> {
        let TokenReading::Bytes { column_of, .. } = &self.reading else { return Vec::new() };
        let mut columns: Vec<u32> = bytes.map(|byte| column_of[byte as usize]).collect();
        columns.sort_unstable();
        columns.dedup();
        columns
    }

    /// The characters that lead a state to itself, those of a first byte together; `None` where they are too few for free text.
    fn leading_back(&self, state: StateId, sequences: &[Sequence]) -> Option<FirstBytes> {
        let TokenReading::Bytes { column_of, .. } = &self.reading else { return None };
        if !self.has_end(state) || !self.rests(state) {
            return None;
        }
        let row = self.row(state);
        let reads = |byte: u8| row[column_of[byte as usize] as usize];
        let ascii = FirstBytes::new((0..128).filter(|&byte| reads(byte) == state.0));
        if ascii.ascii() < 128 - MOST_OTHERS {
            return None;
        }
        let mut next = Vec::new();
        // Whether all that may follow what a first byte leads to leads back.
        let mut leads_back = |begun: u32, rest: &[Vec<u32>]| {
            let mut states = vec![begun];
            let is_read = rest.iter().all(|columns| {
                states.iter().all(|&from| self.rests(StateId(from)))
                    && self.follow(&mut states, &mut next, columns)
            });
            is_read && states == [state.0]
        };
        let mut wide = Vec::new();
        for Sequence { first: (first, last), rest } in sequences {
            let mut known = None;
            for byte in *first..=*last {
                let begun = reads(byte);
                let leads = match known {
                    Some((same, leads)) if same == begun => leads,
                    _ => leads_back(begun, rest),
                };
                known = Some((begun, leads));
                wide.extend(leads.then_some(byte));
            }
        }
        Some(ascii.or(FirstBytes::new(wide)))
    }

    /// Replaces states by those that the columns lead to; false where one of them leads nowhere.
    fn follow(&self, states: &mut Vec<u32>, next: &mut Vec<u32>, columns: &[u32]) -> bool {
        next.clear();
        for &state in states.iter() {
            let row = self.row(StateId(state));
            let mut last = StateId::DEAD.0;
            for &column in columns {
                let to = row[column as usize];
                if to == StateId::DEAD.0 {
                    return false;
                }
                // There are few.
                if to != last && !next.contains(&to) {
                    next.push(to);
                }
                last = to;
            }
        }
        std::mem::swap(states, next);
        true
    }

    /// The states of free text, and those behind them, and behind these in turn, from which most characters lead where they lead
    /// from one of free text; each with that one.
    fn almost_like(&self, free: &[u32], characters: FirstBytes) -> Vec<(u32, u32)> {
        let TokenReading::Bytes { column_of, .. } = &self.reading else { return Vec::new() };
        let mut weights = vec![0; self.columns];
        let ascii = (0..128).filter(|&byte| characters.contains(byte));
        ascii.for_each(|byte| weights[column_of[byte as usize] as usize] += 1);
        let is_free = |state: &u32| free.binary_search(state).is_ok();
        let mut met = vec![false; self.tokens_to_end.len()];
        let mut like = Vec::new();
        let mut open: Vec<u32> = free.iter().copied().chain([self.start.0]).collect();
        while let Some(state) = open.pop() {
            if state < StateId::RESERVED || std::mem::replace(&mut met[state as usize], true) {
                continue;
            }
            let row = self.row(StateId(state));
            let most = if self.rests(StateId(state)) { heaviest(row, &weights) } else { None };
            if let Some(most) = most.filter(is_free) {
                like.push((state, most));
                open.extend(row.iter().filter(|&&next| !met[next as usize]));
            }
        }
        like.sort_unstable();
        like
    }
}

/// The value that has more than half of the weight, if there is one: found as Boyer and Moore find a majority ("MJRTY", 1991).
fn heaviest(values: &[u32], weights: &[i32]) -> Option<u32> {
    let each = || values.iter().copied().zip(weights.iter().copied());
    let (mut most, mut ahead) = (0, 0);
    for (value, weight) in each() {
        if value == most {
            ahead += weight;
        } else if weight > ahead {
            (most, ahead) = (value, weight - ahead);
        } else {
            ahead -= weight;
        }
    }
    let own: i32 = each().filter(|&(value, _)| value == most).map(|(_, weight)| weight).sum();
    (2 * own > weights.iter().sum()).then_some(most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::constraint::StructuralTag;
    use crate::table::RowPosition;
    use crate::vocabulary::TokenId;
    use crate::{Constraint, Limits, TokenTable, Vocabulary};
    use serde_json::json;

    /// Every byte is the token of its number.
    fn walked(constraint: &Constraint) -> TokenTable {
        let bytes = (0..=u8::MAX).map(|byte| Some([byte]));
        let vocabulary =
            Vocabulary::from_bytes(bytes.chain([None])).unwrap().with_eos([TokenId(256)]).unwrap();
        TokenTable::walk(constraint, &vocabulary, &Limits::default()).unwrap()
    }

    fn after(table: &TokenTable, text: &[u8]) -> StateId {
        let start = RowPosition::unlimited(table.start());
        let bytes = text.iter().map(|&byte| TokenId(byte.into()));
        bytes.fold(start, |position, byte| table.after(&position, byte)).state
    }

    fn characters(table: &TokenTable) -> FirstBytes {
        match &table.parts().reading {
            TokenReading::Bytes { free, .. } => free.characters,
            TokenReading::Classes(_) => FirstBytes::default(),
        }
    }

    fn triggered(triggers: &[&str], excludes: &[&str]) -> Constraint {
        let string = json!({"type": "json_schema", "json_schema": {"type": "string"}});
        let tag = |trigger: &&str| json!({"begin": trigger, "content": string, "end": "</f>"});
        let tags: Vec<_> = triggers.iter().map(tag).collect();
        let format =
            json!({"type": "triggered_tags", "triggers": triggers, "tags": tags, "excludes": excludes});
        let tag = json!({"type": "structural_tag", "format": format});
        Constraint::structural_tag(&StructuralTag::try_from(&tag).unwrap()).unwrap()
    }

    #[test]
    fn states_amid_a_trigger_are_almost_like_free_text() {
        let table = walked(&triggered(&["<f=a>", "<g>"], &["\nstop", "😀"]));
        let parts = table.parts();
        let free = table.start();
        let first_bytes = (0..=0x7f).chain(0xc2..=0xf4);
        let all = FirstBytes::new(first_bytes.filter(|byte| !b"<\n\xf0".contains(byte)));
        assert_eq!(characters(&table), all);
        let parting = |text: &str| {
            let state = after(&table, text.as_bytes());
            assert_eq!(parts.free_text(state), Some(free), "{text:?}");
            (0..=u8::MAX).filter(|&byte| parts.parts_from(state, free, byte)).collect::<Vec<_>>()
        };
        assert_eq!(parting("a é ✓"), b"");
        assert_eq!(parting("<"), b"fg");
        assert_eq!(parting("<f<f"), b"=");
        // The end of an excluded text leads nowhere.
        assert_eq!(parting("\nsto"), b"p");
        assert_eq!(parting("<f=a>\"x\"</f>"), b"");
        // Within a call, and amid a character.
        for text in [&b"<f=a>"[..], b"<f=a>\"", b"<f=a>\"x", b"\xc3", b"\xf0\x9f\x98"] {
            assert_ne!(after(&table, text), StateId::DEAD);
            assert_eq!(parts.free_text(after(&table, text)), None, "{text:?}");
        }
    }

    #[test]
    fn free_texts_share_the_characters_that_begin_none_of_their_triggers() {
        let texts = [("[^<]*<", Some(b"<".as_slice())), ("[^<]*<[^>]*>", Some(b"<>")), (".*", Some(b"\n"))];
        for (pattern, others) in
            texts.into_iter().chain([("\"[^\"\\\\\\x00-\\x1f]*\"", None), ("[ -~]*", None)])
        {
            let table = walked(&Constraint::regex(pattern).unwrap());
            let all = (0..=0x7f).chain(0xc2..=0xf4).filter(|byte| !others.unwrap_or_default().contains(byte));
            let expected = others.map_or(FirstBytes::default(), |_| FirstBytes::new(all));
            assert_eq!(characters(&table), expected, "{pattern}");
            assert_eq!(
                table.parts().free_text(after(&table, b"\"")).is_some(),
                others.is_some(),
                "{pattern}"
            );
        }
    }

    #[test]
    fn what_most_of_the_weight_has_is_found() {
        assert_eq!(heaviest(&[1, 2, 1, 3], &[1, 2, 3, 1]), Some(1));
        assert_eq!(heaviest(&[1, 2, 1, 3], &[1, 2, 1, 0]), None);
        assert_eq!(heaviest(&[5, 6], &[0, 1]), Some(6));
        assert_eq!(heaviest(&[], &[]), None);
    }
}
