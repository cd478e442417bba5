//! Translates patterns with look-ahead and look-behind to automata, exactly.
//!
//! A state of the automaton is a [formula](super::formula): a condition on the rest of the string.
//! A byte advances every layout state of the formula, and epsilon transitions are followed at once.
//! A look-ahead becomes a condition of its alternative, negated or not. Each look-behind has a
//! *tracker*: a separate formula that searches for the look-behind's pattern from the start of the
//! string on. The look-behind holds if an alternative of its tracker has reached its end, under the
//! conditions of this alternative, which come from look-ahead within the look-behind. `$` is a
//! negated look-ahead for any byte.
//!
//! References: A. K. Chandra, D. C. Kozen, L. J. Stockmeyer, *Alternation*, Journal of the ACM
//! 28(1), 1981; J. A. Brzozowski, *Derivatives of Regular Expressions*, Journal of the ACM 11(4),
//! 1964.

use std::collections::HashSet;
use std::rc::Rc;

use super::formula::{Alternative, Formulas, Held, Truth};
use super::layout::{Assertion, DONE, Layout};
use super::term::Term;
use burn_dfa_automata::{ByteDfa, Cuts, Expr, FastMap, Interner, NfaState, Op, Rows};
use burn_dfa_common::{Result, limits::Meter};

/// The automaton of the strings with a match of `term`.
///
/// # Errors
/// A limit is exceeded.
pub(super) fn lower(term: &Term, meter: &Meter) -> Result<ByteDfa> {
    let layout = Layout::new(term, meter)?;
    let found = Machine::new(&layout, meter).build()?;
    let any = Expr::Chars(vec![(char::MIN, char::MAX)]);
    let strings = Expr::Repeat { expr: any.into(), min: 0, max: None }.determinize(meter)?;
    found.product(&strings, Op::Intersection, meter)
}

/// The context before a position, as bits: the start of the string, or a character of a word.
const START: u32 = 1;
const WORD: u32 = 2;

struct Machine<'l> {
    layout: &'l Layout<'l>,
    meter: &'l Meter<'l>,
    formulas: Formulas,
    /// Contexts: the inputs of assertions at a position. A context is the bits before the position,
    /// and for each tracker the formula under which its match ends here.
    contexts: Interner<u32>,
    /// The alternatives that continue from a state in a context.
    opened: FastMap<(u32, u32), Rc<[Alternative]>>,
    /// For a formula, the first byte of an interval, a context, and whether it is a tracker's: the
    /// formula after a byte of the interval.
    moved: FastMap<(u32, u8, u32, bool), u32>,
    work: usize,
}

/// A position of the automaton: the bits before it, the trackers, and the remaining formula.
type Position = Vec<u32>;

impl<'l> Machine<'l> {
    fn new(layout: &'l Layout<'l>, meter: &'l Meter<'l>) -> Self {
        Self {
            layout,
            meter,
            formulas: Formulas::new(),
            contexts: Interner::new(),
            opened: FastMap::default(),
            moved: FastMap::default(),
            work: 0,
        }
    }

    fn build(mut self) -> Result<ByteDfa> {
        let intervals = self.intervals();
        let mut rows = Rows::new();
        let mut positions = Interner::new();
        positions.intern(&[]); // dead
        let start = self.position(None)?;
        let start = positions.intern(&start).0;
        let mut at = 1;
        while at < positions.len() as u32 {
            let position: Position = positions.get(at).to_vec();
            let mut row = Vec::with_capacity(intervals.len());
            for &(first, last) in &intervals {
                let next = self.position(Some((&position, first)))?;
                row.push((first, last, positions.intern(&next).0));
            }
            rows.push(self.ends(position[position.len() - 1]), row);
            at += 1;
            self.meter.states(positions.len())?;
            self.meter.bytes(self.formulas.bytes() + positions.bytes())?;
            self.meter.time()?;
            if at % 1024 == 0 {
                rows.check(self.meter)?;
            }
        }
        rows.minimize(start, self.meter)
    }

    /// Intervals of bytes that no state distinguishes.
    fn intervals(&self) -> Vec<(u8, u8)> {
        let mut cuts = Cuts::new();
        for state in 0..self.layout.nfa.state_count() as u32 {
            if let NfaState::Bytes(runs) = self.layout.nfa.state(state) {
                runs.iter().for_each(|run| cuts.add(run.first, run.last));
            }
        }
        cuts.intervals().collect()
    }

    /// The position after a byte, or the first one; empty if no match is possible any more.
    fn position(&mut self, last: Option<(&Position, u8)>) -> Result<Position> {
        let before = match last {
            None => START,
            Some((position, _)) if position.as_slice() == [Formulas::TRUE] => return Ok(position.clone()),
            Some((_, byte)) if self.layout.word.is_some() && is_word(byte) => WORD,
            Some(_) => 0,
        };
        let layout = self.layout;
        let mut context = vec![before];
        let mut position = Vec::with_capacity(layout.trackers.len() + 1);
        for (i, &start) in layout.trackers.iter().enumerate() {
            let number = self.contexts.intern(&context).0;
            let tracker = match last {
                None => {
                    let alternatives = self.open(start, number)?.to_vec();
                    self.formulas.all(alternatives)
                }
                Some((position, byte)) => self.step(position[i], byte, number, true)?,
            };
            position.push(tracker);
            let arrived = self
                .formulas
                .alternatives(tracker)
                .into_iter()
                .filter(|alternative| alternative.at == DONE)
                .collect();
            context.push(self.formulas.any(arrived));
        }
        let number = self.contexts.intern(&context).0;
        let left = match last {
            None => {
                let alternatives = self.open(layout.start, number)?.to_vec();
                self.formulas.any(alternatives)
            }
            Some((position, byte)) => self.step(position[layout.trackers.len()], byte, number, false)?,
        };
        match left {
            Formulas::FALSE => return Ok(Vec::new()),
            // Every rest matches, so nothing else need be remembered.
            Formulas::TRUE => position.clear(),
            _ => {}
        }
        position.push(left);
        Ok(position)
    }

    /// The formula after a byte, into `context`.
    fn step(&mut self, formula: u32, byte: u8, context: u32, is_tracker: bool) -> Result<u32> {
        if formula <= Formulas::TRUE && !is_tracker {
            return Ok(formula);
        }
        let key = (formula, byte, context, is_tracker);
        if let Some(&known) = self.moved.get(&key) {
            return Ok(known);
        }
        let mut alternatives = Vec::new();
        'alternatives: for alternative in self.formulas.alternatives(formula) {
            let next = match self.layout.nfa.state(alternative.at) {
                NfaState::Bytes(runs) => {
                    match runs.iter().find(|run| run.first <= byte && byte <= run.last) {
                        Some(run) => Some(run.target),
                        None => continue,
                    }
                }
                // A finished match is dropped: a tracker searches for matches that end at the
                // current position.
                _ if is_tracker => continue,
                _ => None,
            };
            let mut held = Vec::with_capacity(alternative.held.len());
            for old in alternative.held {
                let formula = self.step(old.formula, byte, context, false)?;
                match (Held { formula, ..old }).truth() {
                    Truth::True => {}
                    Truth::False => continue 'alternatives,
                    Truth::Open(now) => held.push(now),
                }
            }
            let opened: Rc<[Alternative]> = match next {
                Some(next) => self.open(next, context)?,
                None => Rc::from([Alternative::to(DONE)]),
            };
            self.tick(opened.len())?;
            alternatives.extend(opened.iter().filter_map(|alternative| alternative.clone().holding(&held)));
        }
        let formula =
            if is_tracker { self.formulas.all(alternatives) } else { self.formulas.any(alternatives) };
        self.moved.insert(key, formula);
        Ok(formula)
    }

    /// The epsilon closure of a state, up to states that read a byte or are done.
    fn open(&mut self, state: u32, context: u32) -> Result<Rc<[Alternative]>> {
        if let Some(known) = self.opened.get(&(state, context)) {
            return Ok(Rc::clone(known));
        }
        let layout = self.layout;
        let mut seen = HashSet::new();
        let mut stack = vec![Alternative::to(state)];
        let mut alternatives = Vec::new();
        while let Some(alternative) = stack.pop() {
            if !seen.insert(alternative.clone()) {
                continue;
            }
            self.tick(1)?;
            match layout.nfa.state(alternative.at) {
                NfaState::Accept | NfaState::Bytes(_) => alternatives.push(alternative),
                NfaState::Union(branches) => {
                    stack.extend(
                        branches.iter().map(|&at| Alternative { at, held: alternative.held.clone() }),
                    );
                }
                NfaState::Look { look, next } => match self.truth(look, context)? {
                    Truth::True => stack.push(Alternative { at: next, ..alternative }),
                    Truth::False => {}
                    Truth::Open(held) => {
                        stack.extend(Alternative { at: next, ..alternative }.holding(&[held]))
                    }
                },
            }
        }
        let alternatives: Rc<[Alternative]> = alternatives.into();
        self.opened.insert((state, context), Rc::clone(&alternatives));
        Ok(alternatives)
    }

    /// Whether an assertion holds in a context, or the condition for it.
    fn truth(&mut self, assertion: Assertion, context: u32) -> Result<Truth> {
        let before = self.contexts.get(context)[0];
        let held = match assertion {
            Assertion::Start if before == START => return Ok(Truth::True),
            Assertion::Start => return Ok(Truth::False),
            Assertion::Ahead { start, negated } => {
                let alternatives = self.open(start, context)?.to_vec();
                Held { formula: self.formulas.any(alternatives), negated }
            }
            Assertion::Behind { tracker, negated } => {
                Held { formula: self.contexts.get(context)[tracker + 1], negated }
            }
            Assertion::Boundary(is_edge) => {
                let word = self.layout.word.into_iter().map(Alternative::to).collect();
                Held { formula: self.formulas.any(word), negated: (before == WORD) == is_edge }
            }
        };
        Ok(held.truth())
    }

    /// Whether a formula is true if the string ends here.
    fn ends(&self, formula: u32) -> bool {
        let alternatives = self.formulas.alternatives(formula);
        let holds = |held: &Held| self.ends(held.formula) != held.negated;
        alternatives.iter().any(|alternative| alternative.at == DONE && alternative.held.iter().all(holds))
    }

    fn tick(&mut self, work: usize) -> Result<()> {
        self.work += work + 1;
        if self.work > 1 << 12 {
            self.work = 0;
            self.meter.time()?;
            self.meter.bytes(self.formulas.bytes())?;
        }
        Ok(())
    }
}

fn is_word(byte: u8) -> bool {
    byte == b'_' || byte.is_ascii_alphanumeric()
}
