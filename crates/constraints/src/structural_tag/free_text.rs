//! Free text with excluded texts and triggers.
//!
//! The *marks* of free text are its triggers and the excluded texts. A [`TextSearch`] finds
//! complete marks. It runs in parallel with the automaton of UTF-8, so free text ends after a whole
//! character. Its size is linear in the marks, and so is the automaton of a dispatch made from it.
//!
//! A dispatch is free text without complete marks, then a trigger, then the call of the trigger.
//! Free text may end in each state from which the trigger can be read before another mark is
//! complete. For most triggers these are all states; only if a mark overlaps a trigger, as `"ab"`
//! overlaps `"bc"`, some states are excluded.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::location::Location;
use super::words::followed;
use crate::text_search::{Classes, Found, TextSearch};
use crate::{Deferred, Expression, Kind};
use burn_dfa_automata::{ByteDfa, ByteStateId, Expr, FastMap, Op};
use burn_dfa_common::{Result, limits::Meter};

/// Most marks, and most bytes of all marks.
const MAX_MARKS: usize = 4_096;
const MAX_BYTES: usize = 1 << 16;

/// Most entries of the tables of all automata of a dispatch, and of all free text with triggers in
/// a structural tag.
pub(super) const MAX_ENTRIES: usize = 1 << 25;

/// The limit on the sum, over all triggers, of their bytes times the states in which they may be
/// read differently than at the start.
const MAX_COMPARED: usize = 1 << 26;

/// Free text with its marks.
pub(super) struct FreeText {
    /// `[states, classes]`, by the classes of the marks; state 0 is dead.
    next: Vec<u32>,
    /// Whether a character is complete, by state.
    is_end: Vec<bool>,
    /// The node of the marks, by state.
    node_of: Vec<u32>,
    marks: TextSearch,
}

/// Finds the marks of free text, by classes of bytes that UTF-8 does not distinguish.
fn search(triggers: &[String], excludes: &[String]) -> TextSearch {
    let texts = triggers.iter().chain(excludes).map(String::as_bytes);
    TextSearch::new(Classes::new(texts, Utf8::kind), triggers, excludes)
}

impl FreeText {
    /// Free text with triggers and excluded texts; none is empty, and triggers are distinct.
    pub(super) fn new(triggers: &[String], excludes: &[String]) -> Self {
        let marks = search(triggers, excludes);
        let width = marks.classes.samples.len();
        let mut text = Self { next: vec![0; width], is_end: vec![false, true], node_of: vec![0, 0], marks };
        let mut numbers = FastMap::default();
        numbers.insert((Utf8::Start, 0), 1);
        let mut states = vec![(Utf8::Start, 0)];
        let mut at = 0;
        while at < states.len() {
            let (utf8, node) = states[at];
            for class in 0..width {
                let byte = text.marks.classes.samples[class];
                let to = utf8.next(byte).map(|utf8| (utf8, text.marks.next(node, byte)));
                let to = to.filter(|(_, node)| text.marks.found(*node) == Found::Nothing);
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

    /// The number of entries of its tables.
    pub(super) fn entries(&self) -> usize {
        self.next.len() + self.marks.entries()
    }

    /// Free text without complete marks.
    pub(super) fn text(self: &Arc<Self>) -> Expression {
        self.ending_in(self.is_end.clone())
    }

    /// Free text that ends in one of these states.
    fn ending_in(self: &Arc<Self>, ends: Vec<bool>) -> Expression {
        let own = Arc::clone(self);
        automaton(Deferred::new(move |meter| own.ending(ends.clone(), meter)))
    }

    /// The same as an automaton.
    fn ending(&self, ends: Vec<bool>, meter: &Meter) -> Result<ByteDfa> {
        let start = ByteStateId::START;
        let Classes { of_bytes, samples } = &self.marks.classes;
        let dfa = ByteDfa::from_parts(*of_bytes, samples.len(), self.next.clone(), ends, start);
        // Removes dead states.
        dfa.product(&dfa, Op::Intersection, meter)
    }

    /// The possible end states of free text with another successor for `byte` than the start.
    fn differing(&self, byte: u8) -> Vec<usize> {
        let from_root = self.marks.next(0, byte);
        let differs = |state: &usize| self.marks.next(self.node_of[*state], byte) != from_root;
        (1..self.is_end.len()).filter(|&state| self.is_end[state]).filter(differs).collect()
    }

    /// Free text without complete marks, a trigger, and the call of the trigger.
    ///
    /// # Errors
    /// The number of a trigger that is never complete first, or too many overlaps of triggers.
    pub(super) fn dispatched(
        self: &Arc<Self>,
        calls: &[(String, Expression)],
    ) -> std::result::Result<Expression, Undispatched> {
        // The triggers, by the states in which free text must not end before them.
        let mut groups: BTreeMap<Vec<usize>, Vec<usize>> = BTreeMap::new();
        // States whose text affects the reading of a trigger, by the first byte of the trigger.
        let mut differing: FastMap<u8, Vec<usize>> = FastMap::default();
        let mut compared = 0usize;
        for (number, (trigger, _)) in calls.iter().enumerate() {
            if !self.marks.is_read(trigger, number) {
                return Err(Undispatched::Never(number));
            }
            let first = trigger.as_bytes()[0];
            let states = differing.entry(first).or_insert_with(|| self.differing(first));
            compared = compared.saturating_add(states.len().saturating_mul(trigger.len()));
            if compared > MAX_COMPARED {
                return Err(Undispatched::TooMany);
            }
            let is_barred = |state: &usize| !self.marks.is_read_from(self.node_of[*state], trigger, number);
            groups.entry(states.iter().copied().filter(is_barred).collect()).or_default().push(number);
            if groups.len().saturating_mul(self.next.len()) > MAX_ENTRIES {
                return Err(Undispatched::TooMany);
            }
        }
        let mut dispatched = Vec::with_capacity(groups.len());
        for (barred, triggers) in groups {
            let mut ends = self.is_end.clone();
            barred.into_iter().for_each(|state| ends[state] = false);
            let called = triggers.into_iter().map(|number| {
                let (trigger, called) = &calls[number];
                (trigger.as_str(), called.clone())
            });
            let free = self.ending_in(ends);
            dispatched.push(Expression::sequence([free, followed(called.collect())]));
        }
        Ok(Expression::choice(dispatched))
    }
}

/// Rejects free text with too many marks.
pub(super) fn check_size(triggers: &[String], excludes: &[String], at: &Location) -> Result<()> {
    let all = || triggers.iter().chain(excludes);
    if all().count() > MAX_MARKS || all().map(String::len).sum::<usize>() > MAX_BYTES {
        return Err(at.error(format!(
            "more than {MAX_MARKS} triggers and excluded texts, or {MAX_BYTES} bytes of them; let tags share triggers"
        )));
    }
    Ok(())
}

/// The first of `texts` found in `text`, by its end, in time independent of the number of texts.
pub(super) fn first_of<'t>(texts: &'t [String], text: &str) -> Option<&'t String> {
    let marks = search(&[], texts);
    let mut at = 0;
    let end = text.bytes().position(|byte| {
        at = marks.next(at, byte);
        marks.found(at) == Found::Excluded
    })?;
    texts.iter().find(|found| text.as_bytes()[..=end].ends_with(found.as_bytes()))
}

/// Free text without some texts.
pub(super) fn without(excludes: &[String]) -> Deferred {
    let excludes = excludes.to_vec();
    Deferred::new(move |meter| {
        let free = FreeText::new(&[], &excludes);
        meter.bytes(free.entries().saturating_mul(size_of::<u32>()))?;
        free.ending(free.is_end.clone(), meter)
    })
}

/// Free text without some texts, of at most `max` characters.
pub(super) fn at_most(max: u32, excludes: &[String]) -> Deferred {
    let free = without(excludes);
    Deferred::new(move |meter| {
        let any = Arc::new(Expr::Chars(vec![(char::MIN, char::MAX)]));
        let short = Expr::Repeat { expr: any, min: 0, max: Some(max as usize) }.determinize(meter)?;
        free.lower(meter)?.product(&short, Op::Intersection, meter)
    })
}

/// The reason why a dispatch is impossible.
pub(super) enum Undispatched {
    /// The trigger with this number is never complete first.
    Never(usize),
    /// Triggers overlap in too many ways.
    TooMany,
}

/// A text of an automaton.
pub(super) fn automaton(dfa: Deferred) -> Expression {
    Expression::constraint(Kind::Deferred(dfa).into())
}

/// The missing part of a character.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Utf8 {
    Start,
    /// This many bytes (the third number), the first of them within a range.
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

    /// A key shared by bytes that are alike in UTF-8.
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
