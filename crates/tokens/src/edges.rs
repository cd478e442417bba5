//! The transitions of a byte-level constraint by whole tokens.
//!
//! If a vocabulary lacks tokens for some bytes, a state alive in bytes may be dead in tokens, and
//! the distances to the end follow from the transitions by tokens. Vocabularies of 250,000 tokens
//! have a million trie nodes, too many to read from every state. Most of the nodes continue with
//! characters that a state treats alike: then the targets of a subtree's tokens follow from the
//! numbers of their characters.
//!
//! Example: from a string of at most 40 characters, `é`, `cat` and `cats` lead one, three and four
//! states further. In the subtree of `c`, these characters are all letters and the tokens have 3 or
//! 4 characters: two edges stand for all of its tokens. The subtree of `"` is read token by token.

use super::{ConstraintParts, StateId, TokenReading};
use burn_dfa_common::{Result, limits::Meter};
use burn_dfa_vocabulary::{CONTINUATION, LENGTH_CLASSES, Symbols, TokenId, Vocabulary, symbol};

/// `(from, to)` for every token of text taken by one of the live `states`, and for every token read
/// whole.
///
/// # Errors
/// If a limit is breached.
pub(super) fn token_edges(
    parts: &ConstraintParts,
    states: impl IntoIterator<Item = u32>,
    vocabulary: &Vocabulary,
    meter: &Meter,
) -> Result<Vec<(u32, u32)>> {
    let TokenReading::Bytes { column_of, special, .. } = &parts.reading else {
        return Ok(Vec::new());
    };
    let trie = vocabulary.trie();
    let is_text = |token: &TokenId| special.column(*token).is_none();
    // The indices of text tokens with their own columns.
    let tokens = trie.all_tokens().iter().enumerate();
    let own: Vec<usize> = match special.tokens() {
        [] => Vec::new(),
        _ => tokens.filter(|&(_, token)| !is_text(token)).map(|(index, _)| index).collect(),
    };
    let is_all_text = |node: usize| {
        let range = trie.subtree(node);
        own.partition_point(|&index| index < range.start) == own.partition_point(|&index| index < range.end)
    };
    let mut characters = AlikeCharacters::new(parts, column_of);
    let mut edges = Vec::new();
    // For each target, the last state with an edge to it.
    let mut met = vec![0; parts.next.states()];
    let mut path = vec![0; trie.max_depth() + 1];
    for state in states {
        meter.time()?;
        meter.bytes(edges.len().saturating_mul(size_of::<(u32, u32)>()))?;
        let mut add = |to: u32| {
            if std::mem::replace(&mut met[to as usize], state) != state {
                edges.push((state, to));
            }
        };
        path[0] = state;
        let mut node = 0;
        let shortest = parts.shortest(StateId(state));
        while node < trie.len() {
            let (depth, byte, end) = (trie.depth(node), trie.byte(node), trie.end(node) as usize);
            let from = path[depth - 1];
            let to = parts.row(StateId(from))[column_of[byte as usize] as usize];
            let is_whole = || depth >= shortest && is_all_text(node);
            if to == StateId::DEAD.0 {
                node = end;
            } else if end > node + 1
                && is_whole()
                && let Some(counts) = trie.character_counts(node)
                && characters.follow(from, 1 << symbol(byte) | trie.below(node), counts, &mut add)
            {
                node = end;
            } else {
                if depth >= shortest && trie.tokens(node).iter().any(is_text) {
                    add(to);
                }
                path[depth] = to;
                node += 1;
            }
        }
        let marked = special.of(&parts.next, StateId(state));
        marked.iter().filter(|&&to| to != StateId::DEAD.0).for_each(|&to| add(to));
    }
    Ok(edges)
}

/// For each state, the symbols whose characters it treats alike.
struct AlikeCharacters<'a> {
    parts: &'a ConstraintParts,
    leads: Vec<Lead>,
    /// By state; `None` if not computed yet.
    known: Vec<Option<Alike>>,
}

/// Characters with the same columns of bytes.
#[derive(PartialEq, Eq)]
struct Lead {
    /// The column of their first byte.
    column: u32,
    /// The columns of each later byte.
    later: Vec<Vec<u32>>,
    /// The symbols of their first bytes.
    symbols: Symbols,
}

/// The characters of the first bytes in `symbols` lead to the state `to`, the characters in `dead`
/// are illegal. Both contain all continuation bytes.
#[derive(Clone, Copy)]
struct Alike {
    symbols: Symbols,
    to: u32,
    dead: Symbols,
}

impl<'a> AlikeCharacters<'a> {
    fn new(parts: &'a ConstraintParts, column_of: &[u32; 256]) -> Self {
        let columns = |(first, last): (u8, u8)| {
            let mut columns = column_of[first as usize..=last as usize].to_vec();
            columns.sort_unstable();
            columns.dedup();
            columns
        };
        let ascii = (0..0x80).map(|byte| (byte, Vec::new()));
        let wide = LENGTH_CLASSES.iter().flat_map(|class| {
            let later: Vec<_> = (1..class.length)
                .map(|at| columns(if at == 1 { class.second } else { CONTINUATION }))
                .collect();
            (class.first..=class.last).map(move |byte| (byte, later.clone()))
        });
        let mut leads: Vec<Lead> = Vec::new();
        for (byte, later) in ascii.chain(wide) {
            let column = column_of[byte as usize];
            match leads.iter_mut().find(|lead| lead.column == column && lead.later == later) {
                Some(lead) => lead.symbols |= 1 << symbol(byte),
                None => leads.push(Lead { column, later, symbols: 1 << symbol(byte) }),
            }
        }
        Self { parts, leads, known: vec![None; parts.next.states()] }
    }

    /// Calls `add` with the states after strings of the given numbers of characters, if from each
    /// state on the way all characters in `symbols` lead to one state. If not, returns `false`, and
    /// the strings of the remaining numbers must be read.
    fn follow(
        &mut self,
        from: u32,
        symbols: Symbols,
        counts: impl IntoIterator<Item = u32>,
        mut add: impl FnMut(u32),
    ) -> bool {
        let (mut at, mut read) = (from, 0);
        for count in counts {
            while read < count {
                let alike = self.alike(at);
                if symbols & !alike.dead == 0 {
                    return true;
                }
                if symbols & !alike.symbols != 0 {
                    return false;
                }
                (at, read) = (alike.to, read + 1);
            }
            add(at);
        }
        true
    }

    fn alike(&mut self, state: u32) -> Alike {
        if let Some(alike) = self.known[state as usize] {
            return alike;
        }
        let mut by_target: Vec<(Option<u32>, Symbols)> =
            self.leads.iter().map(|lead| (self.after(state, lead), lead.symbols)).collect();
        by_target.sort_unstable();
        // One entry per target; symbols with several targets belong to none.
        by_target.dedup_by(|next, group| {
            let is_same = next.0 == group.0;
            group.1 |= if is_same { next.1 } else { 0 };
            is_same
        });
        let (mut met, mut mixed) = (0, 0);
        for &(_, symbols) in &by_target {
            mixed |= met & symbols;
            met |= symbols;
        }
        let later = (CONTINUATION.0..=CONTINUATION.1).fold(0, |all, byte| all | 1 << symbol(byte));
        let mut alike = Alike { symbols: 0, to: StateId::DEAD.0, dead: later };
        for (to, symbols) in by_target {
            let symbols = symbols & !mixed | later;
            match to {
                Some(to) if to == StateId::DEAD.0 => alike.dead = symbols,
                Some(to) if symbols.count_ones() > alike.symbols.count_ones() => {
                    (alike.symbols, alike.to) = (symbols, to);
                }
                _ => {}
            }
        }
        self.known[state as usize] = Some(alike);
        alike
    }

    /// The state after each of some characters; `None` if they lead to several states.
    fn after(&self, state: u32, lead: &Lead) -> Option<u32> {
        let begun = self.parts.row(StateId(state))[lead.column as usize];
        lead.later.iter().try_fold(begun, |state, columns| {
            let row = self.parts.row(StateId(state));
            let to = row[columns[0] as usize];
            columns.iter().all(|&column| row[column as usize] == to).then_some(to)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::{CompiledConstraint, Constraint, Limits};
    use burn_dfa_constraints::Syntax;
    use serde_json::json;

    #[test]
    fn edges_are_those_of_tokens_read_one_by_one() {
        let long = "x".repeat(40);
        let words =
            ["cat", "cats", "c\"", "é", "éa", "aé", "中文字", "中\"", "😀a", "a1", "1a", "a b", " a", &long];
        let bytes: [&[u8]; 5] = [b"\xC3", b"a\xE4", b"\xE4\xB8", b"\x80", b"\xFF"];
        let ascii: Vec<Vec<u8>> = (b' '..=b'~').map(|byte| vec![byte]).collect();
        let words =
            words.iter().map(|word| word.as_bytes().to_vec()).chain(bytes.map(Vec::from)).chain(ascii);
        let words: Vec<_> = words.map(Some).chain([None]).collect();
        let eos = TokenId(words.len() as u32 - 1);
        let vocabulary = Vocabulary::from_bytes(words).unwrap().with_eos([eos]).unwrap();
        let schema = |schema| Constraint::json_schema(schema).unwrap();
        let regex = |text| Constraint::regex(text).unwrap();
        let constraints = [
            schema(json!({"type": "string"})),
            schema(json!({"type": "string", "maxLength": 6})),
            schema(json!({"type": "object", "properties": {"cats": {"type": "string"}, "é": {}},
                "required": ["cats"], "additionalProperties": false})),
            regex(r"(\w{1,3} ){2}\w+"),
            regex("[^é]{2,5}c?"),
            regex("[à-ÿ]*(中文|[一-丁])?.{0,3}"),
            regex(".{0,45}"),
            Constraint::grammar(Syntax::Gbnf, "root ::= [a-z]* \"(\" <[1]> [^x]*").unwrap(),
        ];
        let limits = Limits::default();
        let meter = Meter::start(&limits);
        for constraint in constraints {
            let compiled = CompiledConstraint::compile_byte_level(&constraint, &vocabulary, &limits).unwrap();
            let (parts, states) = (compiled.parts(), StateId::RESERVED..compiled.state_count() as u32);
            assert!(parts.calls.is_none());
            let after = |state: u32, (token, bytes): (TokenId, &[u8])| match parts.special().column(token) {
                Some(column) => parts.row(StateId(state))[column as usize],
                None if parts.is_too_short(StateId(state), bytes) => StateId::DEAD.0,
                None => {
                    bytes.iter().fold(StateId(state), |state, &byte| parts.transitions(state).after(byte)).0
                }
            };
            let expected: BTreeSet<(u32, u32)> = states
                .clone()
                .flat_map(|state| vocabulary.iter().map(move |token| (state, after(state, token))))
                .filter(|&(_, to)| to != StateId::DEAD.0)
                .collect();
            let edges = token_edges(parts, states, &vocabulary, &meter).unwrap();
            assert_eq!(edges.len(), expected.len(), "{constraint:?}");
            assert_eq!(BTreeSet::from_iter(edges), expected, "{constraint:?}");
        }
    }
}
