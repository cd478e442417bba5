//! Converts an automaton of the content of strings to the automaton of their texts.
//!
//! Each state of the content between two characters becomes a state of the text. Between two such
//! states every character is replaced by its spellings: in UTF-8 along the content's own states,
//! and as `\u` with a number along a tree of hex digits. If the length is bounded, characters are
//! counted afterward.

use super::{Spelling, Uncounted};
use burn_dfa_automata::{ByteDfa, ByteStateId, DfaBuilder, FastMap, Run};
use burn_dfa_common::{Result, limits::Meter};

/// The JSON texts, quotes included, of the strings in `content` with `min` to `max` characters.
///
/// All words of `content` must be UTF-8.
///
/// # Errors
/// A limit is exceeded.
pub(in super::super) fn quote(
    content: &ByteDfa,
    min: u64,
    max: Option<u64>,
    spelling: Spelling,
    meter: &Meter,
) -> Result<ByteDfa> {
    uncounted(content, spelling, meter)?.counted(min, max, meter)
}

/// The JSON texts, quotes included, of the strings in `content`, before their characters are
/// counted.
///
/// # Errors
/// A limit is exceeded.
pub(in super::super) fn uncounted(content: &ByteDfa, spelling: Spelling, meter: &Meter) -> Result<Uncounted> {
    let mut quoting = Quoting {
        content,
        intervals: content.intervals(),
        spelling,
        rows: DfaBuilder::new(),
        between: Vec::new(),
        states: FastMap::default(),
        latest: (CharPosition::Between(ByteStateId::DEAD), 0),
    };
    let start = quoting.rows.reserve(1);
    let end = quoting.rows.reserve(1);
    quoting.rows.fill(end, true, &[]);
    let first = quoting.state(CharPosition::Between(content.start()));
    quoting.rows.fill(start, false, &[Run { first: b'"', last: b'"', target: first }]);
    let mut at = 0;
    while let Some(&(state, number)) = quoting.between.get(at) {
        quoting.between(state, number, end);
        at += 1;
        if at % 64 == 0 {
            meter.time()?;
            meter.bytes(quoting.rows.state_count() * ROW_BYTES)?;
        }
    }
    let mut between = vec![false; quoting.rows.state_count()];
    quoting.between.iter().for_each(|&(_, number)| between[number as usize] = true);
    let start = if content.is_empty() { 0 } else { start };
    Ok(Uncounted::new(quoting.rows.into_rows(), start, between))
}

/// The first character beyond 16 bits.
const BEYOND: u32 = 0x10000;

/// Memory of a row, roughly.
const ROW_BYTES: usize = 128;

/// A position in a text, with the state of the content there.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum CharPosition {
    Between(ByteStateId),
    /// Within a character in UTF-8, with this number of bytes to its end.
    Within(ByteStateId, u8),
}

/// The automaton of the texts under construction, before characters are counted.
struct Quoting<'a> {
    content: &'a ByteDfa,
    /// Its bytes as runs of one class.
    intervals: Vec<(u8, u8, usize)>,
    spelling: Spelling,
    rows: DfaBuilder,
    /// The states between characters: the content's and the text's.
    between: Vec<(ByteStateId, u32)>,
    states: FastMap<CharPosition, u32>,
    /// The latest lookup: neighboring bytes usually have the same target.
    latest: (CharPosition, u32),
}

/// Code units or code points, from the first to the last, and their target state.
type Range = (u32, u32, u32);

impl Quoting<'_> {
    /// The state of the text at a position; 0 if the content is dead there.
    fn state(&mut self, position: CharPosition) -> u32 {
        let (CharPosition::Between(state) | CharPosition::Within(state, _)) = position;
        if state == ByteStateId::DEAD {
            return 0;
        }
        if position == self.latest.0 {
            return self.latest.1;
        }
        if let Some(&number) = self.states.get(&position) {
            self.latest = (position, number);
            return number;
        }
        let number = self.rows.reserve(1);
        self.states.insert(position, number);
        match position {
            CharPosition::Between(state) => self.between.push((state, number)),
            CharPosition::Within(state, left) => {
                let runs = self.bytes(state, 0x80, 0xbf, left - 1);
                self.rows.fill(number, false, &runs);
            }
        }
        number
    }

    /// The runs for the bytes `first..=last` of the content in `state`, `left` bytes before the
    /// character's end.
    fn bytes(&mut self, state: ByteStateId, first: u8, last: u8, left: u8) -> Vec<Run> {
        let content = self.content;
        let mut runs: Vec<Run> = Vec::new();
        let begin = self.intervals.partition_point(|interval| interval.1 < first);
        for at in begin..self.intervals.len() {
            let (from, to, class) = self.intervals[at];
            if from > last {
                break;
            }
            let (from, to) = (from.max(first), to.min(last));
            let next = content.next_by_class(state, class);
            let target = self.state(if left == 0 {
                CharPosition::Between(next)
            } else {
                CharPosition::Within(next, left)
            });
            runs.push(Run { first: from, last: to, target });
        }
        runs
    }

    /// Adds the transitions of a state between characters.
    fn between(&mut self, state: ByteStateId, number: u32, end: u32) {
        let mut runs = Vec::new();
        if self.content.is_accepting(state) {
            runs.push(Run { first: b'"', last: b'"', target: end });
        }
        for (first, last) in [(0x20, 0x21), (0x23, 0x5b), (0x5d, 0x7f)] {
            runs.extend(self.bytes(state, first, last, 0));
        }
        if self.spelling.is_raw(0x80) {
            for (first, last, left) in [(0xc2, 0xdf, 1), (0xe0, 0xef, 2), (0xf0, 0xf4, 3)] {
                runs.extend(self.bytes(state, first, last, left));
            }
        }
        let mut escapes = Vec::new();
        for (letter, meaning) in self.spelling.short() {
            let next = self.content.next(state, meaning);
            let target = self.state(CharPosition::Between(next));
            escapes.push(Run { first: letter, last: letter, target });
        }
        let numbered = self.numbered(state);
        escapes.push(Run { first: b'u', last: b'u', target: numbered });
        escapes.sort_unstable();
        let target = self.rows.state(false, &escapes);
        runs.push(Run { first: b'\\', last: b'\\', target });
        runs.sort_unstable();
        self.rows.fill(number, false, &runs);
    }

    /// The state after `\u`, before the numbers of characters.
    fn numbered(&mut self, state: ByteStateId) -> u32 {
        let mut characters = Vec::new();
        for &(first, last) in self.spelling.numbered() {
            self.characters(state, first, last, &mut characters);
        }
        let mut units: Vec<Range> = Vec::new();
        let wide = characters.partition_point(|&(_, last, _)| last < BEYOND);
        for &(first, last, target) in &characters[..wide] {
            units.push((first, last, target));
        }
        // Characters beyond 16 bits take two code units: one for the high ten bits and one for the
        // low ten.
        let mut lows: Vec<Range> = Vec::new();
        let mut pairs: Vec<Range> = Vec::new();
        let mut rest = characters[wide..]
            .iter()
            .map(|&(first, last, target)| (first - BEYOND, last - BEYOND, target))
            .peekable();
        while let Some((mut first, last, target)) = rest.next() {
            while first <= last {
                let high = first >> 10;
                let stop = last.min(high << 10 | 0x3ff);
                lows.push((0xdc00 | first & 0x3ff, 0xdc00 | stop & 0x3ff, target));
                let mut highest = high;
                first = stop + 1;
                if lows.len() == 1 && lows[0].0 == 0xdc00 && stop & 0x3ff == 0x3ff {
                    // All high units with a full range of low units share a tree.
                    highest += (last + 1 - first) >> 10;
                    first = (highest + 1) << 10;
                }
                let more = first <= last || rest.peek().is_some_and(|next| next.0 >> 10 == highest);
                if !more || first & 0x3ff == 0 {
                    let low = self.hex(&lows, 0, 4);
                    let low = self.rows.word(b"\\u", low);
                    pairs.push((0xd800 | high, 0xd800 | highest, low));
                    lows.clear();
                }
            }
        }
        let after = units.partition_point(|&(_, last, _)| last < 0xd800);
        units.splice(after..after, pairs);
        self.hex(&units, 0, 4)
    }

    /// The tree of `digits` more hex digits, for the numbers in `ranges`; `from` is the number with
    /// all of these digits 0.
    fn hex(&mut self, ranges: &[Range], from: u32, digits: u32) -> u32 {
        let size = 1 << (4 * digits);
        match ranges {
            [] => return 0,
            [(_, _, target)] if digits == 0 => return *target,
            _ => {}
        }
        let mut targets = [0; 16];
        let step = size >> 4;
        let mut same: Option<u32> = None;
        for (digit, slot) in targets.iter_mut().enumerate() {
            let first = from + step * digit as u32;
            let last = first + step - 1;
            let begin = ranges.partition_point(|range| range.1 < first);
            let end = ranges.partition_point(|range| range.0 <= last);
            let inside = &ranges[begin..end];
            // All slots fully covered by one range share a tree.
            let full = matches!(inside, [range] if range.0 <= first && last <= range.1 && ranges.len() == 1);
            *slot = match same {
                Some(tree) if full => tree,
                _ => {
                    let tree = self.hex(inside, first, digits - 1);
                    same = full.then_some(tree).or(same);
                    tree
                }
            };
        }
        let letters = |first: u8, digits: std::ops::Range<usize>| {
            digits.map(move |digit| (first + (digit % 10) as u8, digit))
        };
        let letters = letters(b'0', 0..10).chain(letters(b'A', 10..16)).chain(letters(b'a', 10..16));
        let runs = letters.map(|(letter, digit)| Run { first: letter, last: letter, target: targets[digit] });
        self.rows.state(false, &runs.collect::<Vec<_>>())
    }

    /// Appends the targets of the characters `first..=last` from `state`, as ranges in order.
    fn characters(&mut self, state: ByteStateId, first: u32, last: u32, ranges: &mut Vec<Range>) {
        let mut code = first;
        while code <= last.min(0x7f) {
            let next = self.content.next(state, code as u8);
            self.character(code, code, next, ranges);
            code += 1;
        }
        for (low, high, lead, left) in
            [(0x80, 0x7ff, 0xc0, 1), (0x800, 0xffff, 0xe0, 2), (BEYOND, 0x10_ffff, 0xf0, 3)]
        {
            // Beyond ASCII either all characters are numbered or none.
            if last >= high {
                for byte in low >> (6 * left)..=high >> (6 * left) {
                    let next = self.content.next(state, (lead | byte) as u8);
                    self.tail(next, byte << (6 * left), left, ranges);
                }
            }
        }
    }

    /// The characters from `code` on that differ in their last `left` bytes only.
    fn tail(&mut self, state: ByteStateId, code: u32, left: u32, ranges: &mut Vec<Range>) {
        if state == ByteStateId::DEAD {
            return;
        }
        if left == 0 {
            return self.character(code, code, state, ranges);
        }
        let bits = 6 * (left - 1);
        let mut byte = 0x80;
        while byte <= 0xbf {
            let next = self.content.next(state, byte);
            let mut end = byte;
            while end < 0xbf && self.content.next(state, end + 1) == next {
                end += 1;
            }
            let code_of = |byte: u8| code | u32::from(byte & 0x3f) << bits;
            match self.uniform(next, left - 1) {
                Some(target) => {
                    self.character(code_of(byte), code_of(end) | ((1 << bits) - 1), target, ranges)
                }
                None => (byte..=end).for_each(|byte| self.tail(next, code_of(byte), left - 1, ranges)),
            }
            byte = end + 1;
        }
    }

    /// The target of any `left` continuation bytes, if they all have the same one.
    fn uniform(&self, state: ByteStateId, left: u32) -> Option<ByteStateId> {
        if left == 0 || state == ByteStateId::DEAD {
            return Some(state);
        }
        let next = self.content.next(state, 0x80);
        let same = (0x80..=0xbf).all(|byte| self.content.next(state, byte) == next);
        if same { self.uniform(next, left - 1) } else { None }
    }

    /// Appends characters with one target state. No range contains characters both within and
    /// beyond 16 bits.
    fn character(&mut self, first: u32, last: u32, state: ByteStateId, ranges: &mut Vec<Range>) {
        let target = self.state(CharPosition::Between(state));
        match ranges.last_mut() {
            _ if target == 0 => {}
            Some(range) if range.2 == target && range.1 + 1 == first && first != BEYOND => range.1 = last,
            _ => ranges.push((first, last, target)),
        }
    }
}
