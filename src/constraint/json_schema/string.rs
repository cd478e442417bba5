//! JSON text of strings.
//!
//! A string has its plain text only: characters stand for themselves in UTF-8, but `"`, `\` and control
//! characters, which JSON wants escaped, have a short escape where there is one (`\"` `\\` `\b` `\f` `\n`
//! `\r` `\t`), and control characters the long one as well (`\u000a`, hex digits in either case). Other escapes
//! (`\/`, `\u0061`) would spell the same strings once more and are left out; so every member means a string
//! without lone surrogates, and every such string has a member.
//!
//! Lengths count characters, that is, code points. The pattern is an automaton over the *unescaped* string; its
//! transitions on bytes that are escaped become the escapes, and a counter of characters runs beside it.

use super::ecma;
use super::node::Text;
use crate::automaton::{ByteDfa, Expr, FastMap, RawDfa, StateId};
use crate::error::Result;
use crate::limits::Meter;

/// The automaton of the JSON texts, quotes included, of the strings that `text` admits.
pub(super) fn lower(text: &Text, meter: &Meter) -> Result<ByteDfa> {
    let strings = match &text.pattern {
        Some(pattern) => match ecma::Pattern::parse(pattern) {
            Ok(pattern) => pattern.lower(meter)?,
            Err(_) => unreachable!("the pattern was checked when the schema was read"),
        },
        None => {
            let any = Expr::Chars(vec![(char::MIN, char::MAX)]);
            Expr::Repeat { expr: any.into(), min: 0, max: None }.determinize(meter)?
        }
    };
    Quoting { text, strings: &strings, states: FastMap::default(), queue: Vec::new() }.build(meter)
}

/// Where the text stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Phase {
    /// Before the opening quote.
    Before,
    /// Between or inside characters.
    Inside,
    /// After `\`.
    Escape,
    /// After `\u` and so many zeros, 0 to 2.
    Zeros(u8),
    /// After `\u000`, or `\u001` where set.
    Last(bool),
    /// After the closing quote.
    After,
}

/// A state: of the unescaped string, the characters begun so far, and the phase.
type Key = (StateId, u64, Phase);

/// A product under construction.
struct Quoting<'a> {
    text: &'a Text,
    strings: &'a ByteDfa,
    states: FastMap<Key, u32>,
    queue: Vec<Key>,
}

impl Quoting<'_> {
    fn build(mut self, meter: &Meter) -> Result<ByteDfa> {
        let mut raw = RawDfa::over_bytes();
        let intervals = self.inside_intervals();
        let start = self.state(Some((self.strings.start(), 0, Phase::Before)));
        raw.set_start(start);
        let mut at = 0;
        while let Some(&key) = self.queue.get(at) {
            let runs = self.runs(key, &intervals);
            raw.push(key.2 == Phase::After, runs);
            at += 1;
            // What is queued becomes states.
            if at % 1024 == 0 {
                raw.check(meter)?;
                meter.states(self.queue.len())?;
            }
        }
        raw.minimize(meter)
    }

    /// Bytes that may stand inside a string as they are, cut where anything tells them apart.
    fn inside_intervals(&self) -> Vec<(u8, u8, usize)> {
        let mut intervals = Vec::new();
        for (first, last, class) in self.strings.intervals() {
            for (low, high) in [(0x20, 0x21), (0x23, 0x5b), (0x5d, 0x7f), (0x80, 0xbf), (0xc0, 0xff)] {
                if first.max(low) <= last.min(high) {
                    intervals.push((first.max(low), last.min(high), class));
                }
            }
        }
        intervals
    }

    /// The number of a state; 0 where there is none.
    fn state(&mut self, key: Option<Key>) -> u32 {
        let Some(key) = key.filter(|key| key.0 != StateId::DEAD) else { return 0 };
        *self.states.entry(key).or_insert_with(|| {
            self.queue.push(key);
            self.queue.len() as u32
        })
    }

    /// The count after one more character; `None` where that is one too many. Without a maximum, counts from
    /// the minimum on are one.
    fn count(&self, count: u64) -> Option<u64> {
        match self.text.max {
            Some(max) => (count < max).then_some(count + 1),
            None => Some((count + 1).min(self.text.min)),
        }
    }

    /// The character `byte`, escaped.
    fn escaped(&mut self, (state, count, _): Key, byte: u8) -> u32 {
        let next = self.strings.next(state, byte);
        let key = self.count(count).map(|count| (next, count, Phase::Inside));
        self.state(key)
    }

    fn runs(&mut self, key: Key, intervals: &[(u8, u8, usize)]) -> Vec<(u8, u8, u32)> {
        let (state, count, phase) = key;
        let mut one = |byte: u8, phase| vec![(byte, byte, self.state(Some((state, count, phase))))];
        match phase {
            Phase::Before => one(b'"', Phase::Inside),
            Phase::Inside => self.inside(key, intervals),
            Phase::Escape => {
                let mut runs: Vec<_> =
                    [(b'"', b'"'), (b'\\', b'\\'), (b'b', 8), (b'f', 12), (b'n', 10), (b'r', 13), (b't', 9)]
                        .into_iter()
                        .map(|(letter, byte)| (letter, letter, self.escaped(key, byte)))
                        .collect();
                runs.push((b'u', b'u', self.state(Some((state, count, Phase::Zeros(0))))));
                runs
            }
            Phase::Zeros(2) => {
                let low = self.state(Some((state, count, Phase::Last(false))));
                vec![(b'0', b'0', low), (b'1', b'1', self.state(Some((state, count, Phase::Last(true)))))]
            }
            Phase::Zeros(zeros) => one(b'0', Phase::Zeros(zeros + 1)),
            Phase::Last(second) => (b'0'..=b'9')
                .chain(b'A'..=b'F')
                .chain(b'a'..=b'f')
                .map(|digit| {
                    let value = char::from(digit).to_digit(16).map_or(0, |value| value as u8);
                    (digit, digit, self.escaped(key, value + if second { 16 } else { 0 }))
                })
                .collect(),
            Phase::After => Vec::new(),
        }
    }

    fn inside(&mut self, (state, count, _): Key, intervals: &[(u8, u8, usize)]) -> Vec<(u8, u8, u32)> {
        let mut runs = Vec::with_capacity(intervals.len() + 2);
        if self.strings.is_accepting(state) && count >= self.text.min {
            // All ends are one.
            runs.push((b'"', b'"', self.state(Some((self.strings.start(), 0, Phase::After)))));
        }
        // A pattern may end inside no character, so that an escape begins between two.
        runs.push((b'\\', b'\\', self.state(Some((state, count, Phase::Escape)))));
        for &(first, last, class) in intervals {
            let next = self.strings.next_by_class(state, class);
            let count = if (0x80..=0xbf).contains(&first) { Some(count) } else { self.count(count) };
            let key = count.map(|count| (next, count, Phase::Inside));
            runs.push((first, last, self.state(key)));
        }
        runs.sort_unstable();
        runs
    }
}
