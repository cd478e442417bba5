//! Free text that does not contain some texts, and in which triggers are found.
//!
//! The *marks* of free text are its triggers and the texts that are excluded. One automaton tells where a mark is complete, the
//! automaton of Aho and Corasick ("Efficient string matching", 1975): a state is the longest end of what was read that is how a
//! mark begins. It runs beside the automaton of UTF-8, so that free text ends behind a character. Its size is linear in the
//! marks, and so is the automaton of a dispatch that is made of it.
//!
//! A dispatch is free text in which no mark is complete, then a trigger, then what the trigger calls. Free text may end in each
//! state from which the trigger can be read without another mark being complete before. For most triggers these are all states;
//! only where a mark overlaps a trigger, as `"ab"` does `"bc"`, there are fewer.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::words::followed;
use crate::automaton::{ByteDfa, ByteStateId, Expr, FastMap, Op};
use crate::constraint::{Constraint, Expression};
use crate::error::Result;
use crate::limits::{Limits, Meter};

/// Most marks, and most bytes of all of them.
pub(super) const MAX_MARKS: usize = 4_096;
pub(super) const MAX_BYTES: usize = 1 << 16;

/// Most entries of the tables of all automata.
const MAX_ENTRIES: usize = 1 << 25;

/// Free text with its marks.
pub(super) struct FreeText {
    /// `[states, classes]`, by the classes of the marks; state 0 is dead.
    next: Vec<u32>,
    /// Whether a character is complete, by state.
    is_end: Vec<bool>,
    /// The node of the marks, by state.
    node_of: Vec<u32>,
    marks: Marks,
}

/// The automaton of Aho and Corasick.
struct Marks {
    /// The class of each byte, and a byte of each.
    classes: [u8; 256],
    samples: Vec<u8>,
    /// `[nodes, classes]`; node 0 is the root.
    next: Vec<u32>,
    /// By node.
    found: Vec<Found>,
}

/// What is complete in a node.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Found {
    Nothing,
    Excluded,
    /// The longest trigger, by number.
    Trigger(usize),
}

impl Marks {
    fn new(triggers: &[String], excludes: &[String]) -> Self {
        let (classes, samples) = classes(triggers, excludes);
        let mut marks = Self { classes, samples, next: Vec::new(), found: vec![Found::Nothing] };
        // The nodes that a node leads to, by class.
        let mut children = vec![BTreeMap::new()];
        for (number, trigger) in triggers.iter().enumerate() {
            marks.add(trigger, Found::Trigger(number), &mut children);
        }
        for exclude in excludes {
            marks.add(exclude, Found::Excluded, &mut children);
        }
        marks.link(&children);
        marks
    }

    fn add(&mut self, text: &str, found: Found, children: &mut Vec<BTreeMap<u8, u32>>) {
        let mut at = 0;
        for byte in text.bytes() {
            let new = children.len() as u32;
            let child = *children[at].entry(self.classes[byte as usize]).or_insert(new);
            if child == new {
                children.push(BTreeMap::new());
                self.found.push(Found::Nothing);
            }
            at = child as usize;
        }
        self.found[at] = found;
    }

    /// Fills the table: where a node has no child, it goes on as the longest end of its text does that is a node too.
    fn link(&mut self, children: &[BTreeMap<u8, u32>]) {
        let width = self.samples.len();
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
                    // An excluded text that is complete counts, whatever else is.
                    (_, Found::Excluded) => Found::Excluded,
                    (Found::Nothing, other) => other,
                    (own, _) => own,
                };
                queue.push_back(child);
            }
        }
    }

    fn next(&self, at: u32, byte: u8) -> u32 {
        self.next[at as usize * self.samples.len() + self.classes[byte as usize] as usize]
    }

    /// Whether a trigger is complete behind itself alone, and nothing else is before or with it.
    fn is_read(&self, trigger: &str, number: usize) -> bool {
        let mut at = 0;
        let last = trigger.len() - 1;
        trigger.bytes().enumerate().all(|(read, byte)| {
            at = self.next(at, byte);
            let wanted = if read == last { Found::Trigger(number) } else { Found::Nothing };
            self.found[at as usize] == wanted
        })
    }

    /// The same from a node on, of a trigger for which it holds from the root on.
    fn is_read_from(&self, mut at: u32, trigger: &str, number: usize) -> bool {
        let mut from_root = 0;
        let last = trigger.len() - 1;
        for (read, byte) in trigger.bytes().enumerate() {
            // What was read before the trigger makes no difference any more.
            if at == from_root {
                return true;
            }
            (at, from_root) = (self.next(at, byte), self.next(from_root, byte));
            let wanted = if read == last { Found::Trigger(number) } else { Found::Nothing };
            if self.found[at as usize] != wanted {
                return false;
            }
        }
        true
    }
}

impl FreeText {
    /// Free text with triggers and excluded texts, none of which is empty or twice among the triggers.
    pub(super) fn new(triggers: &[String], excludes: &[String]) -> Self {
        let marks = Marks::new(triggers, excludes);
        let width = marks.samples.len();
        let mut text = Self { next: vec![0; width], is_end: vec![false, true], node_of: vec![0, 0], marks };
        let mut numbers = FastMap::default();
        numbers.insert((Utf8::Start, 0), 1);
        let mut states = vec![(Utf8::Start, 0)];
        let mut at = 0;
        while at < states.len() {
            let (utf8, node) = states[at];
            for class in 0..width {
                let byte = text.marks.samples[class];
                let to = utf8.next(byte).map(|utf8| (utf8, text.marks.next(node, byte)));
                let to = to.filter(|(_, node)| text.marks.found[*node as usize] == Found::Nothing);
                let number = to.map_or(0, |to| {
                    *numbers.entry(to).or_insert_with(|| {
                        states.push(to);
                        text.is_end.push(to.0 == Utf8::Start);
                        text.node_of.push(to.1);
                        states.len() as u32
                    })
                });
                text.next.push(number);
            }
            at += 1;
        }
        text
    }

    /// Free text that ends in one of these states.
    fn ending(&self, ends: Vec<bool>, meter: &Meter) -> Result<ByteDfa> {
        let start = ByteStateId::START;
        let Marks { classes, samples, .. } = &self.marks;
        let dfa = ByteDfa::from_parts(*classes, samples.len(), self.next.clone(), ends, start);
        // Without states that lead nowhere.
        dfa.product(&dfa, Op::Intersection, meter)
    }

    /// Free text in which no mark is complete.
    ///
    /// # Errors
    /// Where a limit is breached.
    pub(super) fn text(&self) -> Result<Expression> {
        Ok(automaton(self.dfa()?))
    }

    /// The same as an automaton.
    ///
    /// # Errors
    /// Where a limit is breached.
    pub(super) fn dfa(&self) -> Result<ByteDfa> {
        let limits = Limits::default();
        self.ending(self.is_end.clone(), &Meter::start(&limits))
    }

    /// Free text of at most so many characters in which no mark is complete.
    ///
    /// # Errors
    /// Where a limit is breached.
    pub(super) fn at_most(&self, most: u32) -> Result<Expression> {
        let limits = Limits::default();
        let meter = Meter::start(&limits);
        let any = Arc::new(Expr::Chars(vec![(char::MIN, char::MAX)]));
        let short = Expr::Repeat { expr: any, min: 0, max: Some(most as usize) }.determinize(&meter)?;
        let text = self.ending(self.is_end.clone(), &meter)?;
        Ok(automaton(text.product(&short, Op::Intersection, &meter)?))
    }

    /// The states in which free text may end and from which a byte leads elsewhere than from the start.
    fn differing(&self, byte: u8) -> Vec<usize> {
        let from_root = self.marks.next(0, byte);
        let differs = |state: &usize| self.marks.next(self.node_of[*state], byte) != from_root;
        (1..self.is_end.len()).filter(|&state| self.is_end[state]).filter(differs).collect()
    }

    /// Free text in which no mark is complete, a trigger, and what follows that.
    ///
    /// # Errors
    /// The number of a trigger that is never complete first, or else a limit that is breached.
    pub(super) fn dispatched(
        &self,
        calls: &[(String, Expression)],
    ) -> std::result::Result<Expression, Undispatched> {
        // The triggers by the states in which free text may not end in front of them.
        let mut groups: BTreeMap<Vec<usize>, Vec<usize>> = BTreeMap::new();
        // States whose text makes a difference to how a trigger is read, by the first byte of the trigger.
        let mut differing: FastMap<u8, Vec<usize>> = FastMap::default();
        for (number, (trigger, _)) in calls.iter().enumerate() {
            if !self.marks.is_read(trigger, number) {
                return Err(Undispatched::Never(number));
            }
            let first = trigger.as_bytes()[0];
            let states = differing.entry(first).or_insert_with(|| self.differing(first));
            let is_barred = |state: &usize| !self.marks.is_read_from(self.node_of[*state], trigger, number);
            groups.entry(states.iter().copied().filter(is_barred).collect()).or_default().push(number);
        }
        if groups.len().saturating_mul(self.next.len()) > MAX_ENTRIES {
            return Err(Undispatched::TooMany);
        }
        let limits = Limits::default();
        let meter = Meter::start(&limits);
        let mut dispatched = Vec::with_capacity(groups.len());
        for (barred, triggers) in groups {
            let mut ends = self.is_end.clone();
            barred.into_iter().for_each(|state| ends[state] = false);
            let called = triggers.into_iter().map(|number| {
                let (trigger, called) = &calls[number];
                (trigger.as_str(), called.clone())
            });
            let free = automaton(self.ending(ends, &meter)?);
            dispatched.push(Expression::sequence([free, followed(called.collect())]));
        }
        Ok(Expression::choice(dispatched))
    }
}

/// Why there is no dispatch.
pub(super) enum Undispatched {
    /// The trigger of this number is never complete first.
    Never(usize),
    /// Triggers overlap in too many ways.
    TooMany,
    Error(crate::error::Error),
}

impl From<crate::error::Error> for Undispatched {
    fn from(error: crate::error::Error) -> Self {
        Self::Error(error)
    }
}

fn automaton(dfa: ByteDfa) -> Expression {
    Expression::constraint(Constraint::dfa(dfa))
}

/// What of a character is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Utf8 {
    Start,
    /// So many bytes, the first of them within a range.
    Rest(u8, u8, u8),
}

impl Utf8 {
    fn next(self, byte: u8) -> Option<Self> {
        let (first, last, after) = match self {
            Self::Start => {
                return Some(match byte {
                    0..=0x7F => Self::Start,
                    0xC2..=0xDF => Self::Rest(0x80, 0xBF, 1),
                    0xE0 => Self::Rest(0xA0, 0xBF, 2),
                    0xED => Self::Rest(0x80, 0x9F, 2),
                    0xE1..=0xEF => Self::Rest(0x80, 0xBF, 2),
                    0xF0 => Self::Rest(0x90, 0xBF, 3),
                    0xF1..=0xF3 => Self::Rest(0x80, 0xBF, 3),
                    0xF4 => Self::Rest(0x80, 0x8F, 3),
                    _ => return None,
                });
            }
            Self::Rest(first, last, missing) => (first, last, missing - 1),
        };
        let rest = if after == 0 { Self::Start } else { Self::Rest(0x80, 0xBF, after) };
        (first..=last).contains(&byte).then_some(rest)
    }

    /// What bytes that are alike in UTF-8 share.
    fn kind(byte: u8) -> (Option<Self>, u8) {
        let kind = match byte {
            0x80..=0x8F => 1,
            0x90..=0x9F => 2,
            0xA0..=0xBF => 3,
            _ => 0,
        };
        (Self::Start.next(byte), kind)
    }
}

/// The class of each byte, and a byte of each.
fn classes(triggers: &[String], excludes: &[String]) -> ([u8; 256], Vec<u8>) {
    let mut is_marked = [false; 256];
    for text in triggers.iter().chain(excludes) {
        text.bytes().for_each(|byte| is_marked[byte as usize] = true);
    }
    let mut known = FastMap::default();
    let mut samples = Vec::new();
    let classes = std::array::from_fn(|byte| {
        let byte = byte as u8;
        let key = (Utf8::kind(byte), is_marked[byte as usize].then_some(byte));
        *known.entry(key).or_insert_with(|| {
            samples.push(byte);
            (samples.len() - 1) as u8
        })
    });
    (classes, samples)
}
