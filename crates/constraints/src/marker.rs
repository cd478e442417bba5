//! Free text up to a marker, then a constraint.
//!
//! A marker of bytes is found by the automaton of Knuth, Morris and Pratt ("Fast pattern matching
//! in strings", 1977). It has a state for every prefix of the marker; the state of the whole marker
//! is the start of the constraint. So the marker is found for every tokenization. A marker token
//! needs one state; only this token leaves it.

use std::collections::HashMap;
use std::sync::Arc;

use super::{TokenAutomaton, TokenEdges, Unrolled};
use burn_dfa_automata::{ByteDfa, ByteStateId, Pushdown, Run, SparseDfa};
use burn_dfa_common::{Result, limits::Meter};
use burn_dfa_vocabulary::{TokenId, TokenKind, Vocabulary};

/// The end of free text; see [`Constraint::after`](super::Constraint::after).
///
/// ```
/// use burn_dfa_tokens::TokenId;
/// use burn_dfa_tokens::constraint::Marker;
///
/// assert_eq!(Marker::from("</think>"), Marker::Text("</think>".into()));
/// assert_eq!(Marker::from(TokenId(7)), Marker::Token(TokenId(7)));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Marker {
    /// The first occurrence of these bytes, in any tokenization. The empty text ends free text
    /// before it begins.
    Text(String),
    /// This token, regardless of its bytes.
    Token(TokenId),
}

impl From<&str> for Marker {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for Marker {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<TokenId> for Marker {
    fn from(token: TokenId) -> Self {
        Self::Token(token)
    }
}

/// The states of free text in an automaton over bytes, and the tokens it does not read as text
/// alone.
#[derive(Clone, Debug, Default)]
pub struct FreeText {
    /// Number of free-text states: states 1 to this number. A token without bytes leaves the state
    /// unchanged.
    pub states: u32,
    /// Tokens that the constraint reads whole.
    pub tokens: TokenEdges,
    /// The edges of marker tokens, `(state, token, next)`: a marker token is never text.
    pub markers: Vec<(u32, TokenId, u32)>,
}

/// An automaton over bytes.
#[derive(Clone, Debug)]
pub struct TextAutomaton {
    /// The automaton over bytes.
    pub dfa: Arc<ByteDfa>,
    /// Its free text and its tokens.
    pub free: FreeText,
    /// The depth to which a schema was expanded.
    pub unrolled: Option<Unrolled>,
}

impl From<Arc<ByteDfa>> for TextAutomaton {
    fn from(dfa: Arc<ByteDfa>) -> Self {
        Self { dfa, free: FreeText::default(), unrolled: None }
    }
}

/// An automaton over bytes with calls.
#[derive(Clone, Debug)]
pub struct CalledText {
    /// The automaton over bytes, with calls.
    pub automaton: Pushdown,
    /// Its free text and its tokens.
    pub free: FreeText,
}

impl Marker {
    /// The number of free-text states before it.
    fn states(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Token(_) => 1,
        }
    }
}

impl FreeText {
    /// Whether the automaton has no free text and reads all tokens as text.
    pub fn is_empty(&self) -> bool {
        self.states == 0 && !self.reads_whole()
    }

    /// Whether some tokens are read whole, or tokens are counted.
    pub fn reads_whole(&self) -> bool {
        !self.tokens.is_empty() || !self.markers.is_empty()
    }

    /// Whether it has no free text and reads all tokens as text, even if it counts them.
    pub(super) fn is_counted_alone(&self) -> bool {
        self.states == 0 && self.markers.is_empty() && self.tokens.edges.is_empty()
    }

    /// Adds the free-text states of `marker` before the existing states. `marker` leads to state
    /// `start` in the new numbering.
    fn behind(self, marker: &Marker, start: u32) -> Self {
        let shift = marker.states() as u32;
        let inner = self.markers.iter().map(|&(state, token, next)| (state + shift, token, next + shift));
        let mut markers: Vec<_> = inner.collect();
        if let &Marker::Token(token) = marker {
            markers.push((1, token, start));
        }
        Self { states: shift + self.states, tokens: self.tokens.shifted(shift), markers }
    }
}

impl CalledText {
    /// Puts free text and `marker` before the automaton.
    pub(super) fn behind(self, marker: &Marker, meter: &Meter) -> Result<Self> {
        let front = marker.states();
        if front == 0 {
            return Ok(self);
        }
        let text = match marker {
            Marker::Text(text) => text.as_bytes(),
            Marker::Token(_) => &[],
        };
        meter.states(front.saturating_add(self.automaton.state_count()))?;
        meter.bytes(front.saturating_mul(1 << 10))?;
        let all: Vec<u8> = (0..=u8::MAX).collect();
        let rows: Vec<Vec<Run>> = match marker {
            Marker::Text(_) => {
                let row = |row: &[u32]| {
                    all.iter().zip(row).map(|(&byte, &to)| (byte, byte, to + 1).into()).collect()
                };
                search(text, &all).chunks_exact(all.len()).map(row).collect()
            }
            Marker::Token(_) => vec![vec![Run { first: 0, last: u8::MAX, target: 1 }]],
        };
        // The number of bytes (or tokens) of the marker still missing.
        let missing = (1..=front as u32).rev().collect::<Vec<_>>();
        let automaton = self.automaton.behind(rows, &missing, meter)?;
        Ok(Self { automaton, free: self.free.behind(marker, front as u32 + 1) })
    }
}

impl TextAutomaton {
    /// The automaton of rows, its table written out.
    pub fn of_rows(rows: &SparseDfa, unrolled: Unrolled, meter: &Meter) -> Result<Self> {
        Ok(Self { unrolled: Some(unrolled), ..Arc::new(rows.to_dense(meter)?).into() })
    }

    /// Puts free text and `marker` before the automaton.
    pub(super) fn behind(self, marker: &Marker, meter: &Meter) -> Result<Self> {
        let text = match marker {
            Marker::Text(text) => text.as_bytes(),
            Marker::Token(_) => &[],
        };
        let front = marker.states();
        if front == 0 {
            return Ok(self);
        }
        let states = front.saturating_add(self.dfa.state_count());
        meter.states(states)?;
        let (classes, samples) = refined(&self.dfa, text);
        meter.bytes(states.saturating_mul(samples.len() + 1).saturating_mul(size_of::<u32>()))?;
        let shift = front as u32;
        let start = self.dfa.start().0 + shift;

        let mut next = vec![0; samples.len()];
        match marker {
            Marker::Text(_) => {
                let rows = search(text, &samples);
                next.extend(
                    rows.into_iter().map(|matched| if matched == shift { start } else { matched + 1 }),
                );
            }
            Marker::Token(_) => next.resize(2 * samples.len(), 1),
        }
        for state in (1..self.dfa.state_count() as u32).map(ByteStateId) {
            let row = samples.iter().map(|&byte| self.dfa.next(state, byte).0);
            next.extend(row.map(|to| if to == 0 { 0 } else { to + shift }));
        }
        let mut accepting = vec![false; front + 1];
        accepting.extend(
            (1..self.dfa.state_count() as u32).map(|state| self.dfa.is_accepting(ByteStateId(state))),
        );
        let dfa = ByteDfa::from_parts(classes, samples.len(), next, accepting, ByteStateId::START);
        let free = self.free.behind(marker, start);
        Ok(Self { dfa: dfa.into(), free, unrolled: self.unrolled })
    }
}

impl TokenAutomaton {
    /// Puts free text of the tokens of `vocabulary` and `marker` before the automaton. A token with
    /// the end of a byte marker must end there, because the automaton reads whole tokens only.
    pub fn behind(self, marker: &Marker, vocabulary: &Vocabulary, meter: &Meter) -> Result<Self> {
        let text = match marker {
            Marker::Text(text) if text.is_empty() => return Ok(self),
            Marker::Text(text) => text.as_bytes(),
            Marker::Token(_) => &[],
        };
        let front = text.len().max(1);
        meter.states(front.saturating_add(self.accepting.len()))?;
        let cells = front.saturating_mul(vocabulary.len()).saturating_add(self.transitions.len());
        meter.bytes(cells.saturating_mul(size_of::<(u32, TokenId, u32)>()))?;
        let all_bytes: Vec<u8> = (0..=u8::MAX).collect();
        let rows = search(text, &all_bytes);
        let (shift, start) = (front as u32, self.start + front as u32);
        let mut transitions = Vec::with_capacity(cells);
        for state in 0..shift {
            meter.time()?;
            for token in (0..vocabulary.len() as u32).map(TokenId) {
                if vocabulary.eos().contains(&token) || vocabulary.kind(token) == TokenKind::Unused {
                    continue;
                }
                let end = match marker {
                    Marker::Token(marker) if *marker == token => Some(shift),
                    Marker::Token(_) => Some(state),
                    Marker::Text(_) => {
                        let bytes = vocabulary.bytes(token).unwrap_or_default();
                        // Free text ends with the marker.
                        bytes.iter().try_fold(state, |matched, &byte| {
                            (matched < shift).then(|| rows[matched as usize * 256 + byte as usize])
                        })
                    }
                };
                let next = end.map(|end| if end == shift { start } else { end + 1 });
                transitions.extend(next.map(|next| (state + 1, token, next)));
            }
        }
        let own = self.transitions.iter().map(|&(state, token, next)| (state + shift, token, next + shift));
        transitions.extend(own);
        let mut accepting = vec![false; front + 1];
        accepting.extend(&self.accepting[1..]);
        Ok(Self { start: 1, transitions, accepting })
    }
}

/// Byte classes that neither `dfa` nor `text` splits, as the class of every byte and a sample byte
/// of each class.
fn refined(dfa: &ByteDfa, text: &[u8]) -> ([u8; 256], Vec<u8>) {
    let mut known = HashMap::new();
    let mut samples = Vec::new();
    let classes = std::array::from_fn(|byte| {
        let byte = byte as u8;
        let key = (dfa.classes()[byte as usize], text.contains(&byte).then_some(byte));
        *known.entry(key).or_insert_with(|| {
            samples.push(byte);
            (samples.len() - 1) as u8
        })
    });
    (classes, samples)
}

/// The number of bytes of `text` matched after one more byte, by the number before and the byte:
/// `[text, samples]`.
fn search(text: &[u8], samples: &[u8]) -> Vec<u32> {
    let width = samples.len();
    let mut rows: Vec<u32> = Vec::with_capacity(text.len() * width);
    // The state after all bytes but the first; a mismatch continues from it.
    let mut other = 0;
    for (matched, &byte) in text.iter().enumerate() {
        let at = rows.len();
        match matched {
            0 => rows.resize(width, 0),
            _ => rows.extend_from_within(other * width..(other + 1) * width),
        }
        let class = samples.iter().position(|&sample| sample == byte);
        if let Some(class) = class {
            if matched > 0 {
                other = rows[other * width + class] as usize;
            }
            rows[at + class] = matched as u32 + 1;
        }
    }
    rows
}
