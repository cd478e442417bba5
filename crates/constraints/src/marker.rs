//! Free text up to a marker, then a constraint.
//!
//! A [`TextSearch`] finds a marker of bytes. It has a state for every prefix of the marker; the
//! state of the whole marker is the start of the constraint. So the marker is found for every
//! tokenization. A marker token needs one state; only this token leaves it.

use std::sync::Arc;

use super::text_search::{Classes, TextSearch};
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
        meter.states(front.saturating_add(self.automaton.state_count()))?;
        meter.bytes(front.saturating_mul(1 << 10))?;
        let rows: Vec<Vec<Run>> = match marker {
            Marker::Text(text) => {
                let search = search(text.as_bytes());
                let run = |node, byte| Run { first: byte, last: byte, target: search.next(node, byte) + 1 };
                (0..front as u32).map(|node| (0..=u8::MAX).map(|byte| run(node, byte)).collect()).collect()
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
        let classes = Classes::new([text], |byte| self.dfa.classes()[byte as usize]);
        let width = classes.samples.len();
        meter.bytes(states.saturating_mul(width + 1).saturating_mul(size_of::<u32>()))?;
        let shift = front as u32;
        let start = self.dfa.start().0 + shift;

        let search = TextSearch::new(classes, &[text], &[]);
        let Classes { of_bytes, samples } = &search.classes;
        let mut next = vec![0; width];
        match marker {
            Marker::Text(_) => {
                for node in 0..shift {
                    let matched = samples.iter().map(|&byte| search.next(node, byte));
                    next.extend(matched.map(|matched| if matched == shift { start } else { matched + 1 }));
                }
            }
            Marker::Token(_) => next.resize(2 * width, 1),
        }
        for state in (1..self.dfa.state_count() as u32).map(ByteStateId) {
            let row = samples.iter().map(|&byte| self.dfa.next(state, byte).0);
            next.extend(row.map(|to| if to == 0 { 0 } else { to + shift }));
        }
        let mut accepting = vec![false; front + 1];
        accepting.extend(
            (1..self.dfa.state_count() as u32).map(|state| self.dfa.is_accepting(ByteStateId(state))),
        );
        let dfa = ByteDfa::from_parts(*of_bytes, width, next, accepting, ByteStateId::START);
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
        let search = search(text);
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
                            (matched < shift).then(|| search.next(matched, byte))
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

/// Finds a marker. A node is the number of bytes of the marker that are matched.
fn search(text: &[u8]) -> TextSearch {
    TextSearch::new(Classes::new([text], |_| ()), &[text], &[])
}
