//! Automata as rows of runs: for those that are too large to spread out twice.

use super::{ByteDfa, ByteStateId, FastMap, Interner};
use crate::error::Result;
use crate::limits::Meter;

/// The bytes `first..=last` lead to `target`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ByteRun {
    pub(crate) first: u8,
    pub(crate) last: u8,
    pub(crate) target: u32,
}

/// A deterministic automaton over bytes, trimmed and numbered, as rows of runs.
///
/// State 0 is dead, 1 the start; the others are numbered breadth first. The runs of a row are in order, do not
/// overlap and lead to live states. Bytes that no state tells apart share a class, as in a [`ByteDfa`].
#[derive(Clone, Debug)]
pub(crate) struct RowDfa {
    runs: Vec<ByteRun>,
    /// Where the runs of each state end; those of state `s` begin where those of `s - 1` end.
    ends: Vec<u32>,
    accepting: Vec<bool>,
    /// The least number of bytes to an accepting state; `u32::MAX` in the dead one.
    to_end: Vec<u32>,
    classes: [u8; 256],
    class_count: usize,
    /// The bytes that no run begins or ends within, in intervals: of each byte, and the class of each.
    interval: [u8; 256],
    class_of: Vec<u8>,
}

impl RowDfa {
    /// The automaton of some rows, whose number 0 is the dead state; `None` where its language is empty.
    ///
    /// # Errors
    /// Where a limit is breached.
    pub(crate) fn new<'a>(
        states: usize,
        start: u32,
        row: impl Fn(u32) -> &'a [(u8, u8, u32)],
        accepting: impl Fn(u32) -> bool,
        meter: &Meter,
    ) -> Result<Option<Self>> {
        let mut number = vec![0u32; states];
        let mut live = vec![true; states];
        loop {
            let found = Self::numbered(start, &row, &accepting, &live, &mut number, meter)?;
            // What is reached is alive, as a rule.
            if !found.to_end[1..].contains(&u32::MAX) {
                return Ok((start != 0 && live[start as usize]).then_some(found));
            }
            for (live, number) in live.iter_mut().zip(&mut number) {
                *live = *number != 0 && found.to_end[*number as usize] != u32::MAX;
                *number = 0;
            }
            if !live[start as usize] {
                return Ok(None);
            }
        }
    }

    /// The automaton of the live states, breadth first; `number` takes their numbers.
    fn numbered<'a>(
        start: u32,
        row: &impl Fn(u32) -> &'a [(u8, u8, u32)],
        accepting: &impl Fn(u32) -> bool,
        live: &[bool],
        number: &mut [u32],
        meter: &Meter,
    ) -> Result<Self> {
        let mut runs: Vec<ByteRun> = Vec::new();
        let (mut ends, mut accepts) = (vec![0], vec![false]);
        let mut classing = Classing::new();
        let mut queue = vec![0, start];
        number[start as usize] = 1;
        let mut at = 1;
        while at < queue.len() {
            let state = queue[at];
            let begin = runs.len();
            for &(first, last, to) in row(state) {
                if to == 0 || !live[to as usize] {
                    continue;
                }
                let place = &mut number[to as usize];
                if *place == 0 {
                    *place = queue.len() as u32;
                    queue.push(to);
                }
                match runs[begin..].last_mut() {
                    Some(run) if run.target == *place && run.last + 1 == first => run.last = last,
                    _ => runs.push(ByteRun { first, last, target: *place }),
                }
            }
            classing.add(&runs[begin..]);
            ends.push(runs.len() as u32);
            accepts.push(accepting(state));
            at += 1;
            if at % 4096 == 0 {
                meter.time()?;
            }
        }
        let Classes { interval, merged, count } = classing.merge();
        // Classes in order of their first byte; intervals are.
        let mut numbers = vec![None; count];
        let mut class_count = 0;
        let class_of: Vec<u8> = merged
            .iter()
            .map(|&class| {
                *numbers[class as usize].get_or_insert_with(|| {
                    class_count += 1;
                    (class_count - 1) as u8
                })
            })
            .collect();
        let mut found = Self {
            runs,
            ends,
            accepting: accepts,
            to_end: Vec::new(),
            classes: interval.map(|interval| class_of[interval as usize]),
            class_count,
            interval,
            class_of,
        };
        found.to_end = found.bytes_to_end();
        Ok(found)
    }

    /// The same automaton as rows.
    pub(crate) fn of(dfa: &ByteDfa) -> Self {
        let intervals = dfa.intervals();
        let mut runs: Vec<ByteRun> = Vec::new();
        let (mut ends, mut accepting) = (Vec::new(), Vec::new());
        for state in 0..dfa.state_count() as u32 {
            let begin = runs.len();
            for &(first, last, class) in &intervals {
                let target = dfa.next_by_class(ByteStateId(state), class).0;
                match runs[begin..].last_mut() {
                    _ if target == 0 => {}
                    Some(run) if run.target == target && run.last + 1 == first => run.last = last,
                    _ => runs.push(ByteRun { first, last, target }),
                }
            }
            ends.push(runs.len() as u32);
            accepting.push(dfa.is_accepting(ByteStateId(state)));
        }
        let mut interval = [0; 256];
        for (at, &(first, last, _)) in intervals.iter().enumerate() {
            interval[first as usize..=last as usize].fill(at as u8);
        }
        let class_of = intervals.iter().map(|&(_, _, class)| class as u8).collect();
        let (classes, class_count) = (*dfa.classes(), dfa.class_count());
        let to_end = Vec::new();
        let mut rows = Self { runs, ends, accepting, to_end, classes, class_count, interval, class_of };
        rows.to_end = rows.bytes_to_end();
        rows
    }

    /// The least number of bytes from every state to an accepting one.
    fn bytes_to_end(&self) -> Vec<u32> {
        let states = self.state_count();
        // The states before each state, back to back.
        let mut ends = vec![0u32; states + 1];
        for run in &self.runs {
            ends[run.target as usize + 1] += 1;
        }
        for state in 0..states {
            ends[state + 1] += ends[state];
        }
        let mut before = vec![0u32; self.runs.len()];
        // From where each begins to where it ends, as it is filled.
        for state in 0..states as u32 {
            for run in self.row(state) {
                let end = &mut ends[run.target as usize];
                before[*end as usize] = state;
                *end += 1;
            }
        }
        let mut to_end = vec![u32::MAX; states];
        let mut queue: Vec<u32> = (0..states as u32).filter(|&s| self.accepting[s as usize]).collect();
        for &state in &queue {
            to_end[state as usize] = 0;
        }
        let mut at = 0;
        while at < queue.len() {
            let state = queue[at];
            at += 1;
            let from = if state == 0 { 0 } else { ends[state as usize - 1] };
            for &before in &before[from as usize..ends[state as usize] as usize] {
                if to_end[before as usize] == u32::MAX {
                    to_end[before as usize] = to_end[state as usize] + 1;
                    queue.push(before);
                }
            }
        }
        to_end
    }

    /// The automaton spread out.
    ///
    /// # Errors
    /// Where a limit is breached.
    pub(crate) fn spread(&self, meter: &Meter) -> Result<ByteDfa> {
        let (states, width) = (self.state_count(), self.class_count);
        meter.bytes(states.saturating_mul(width).saturating_mul(4))?;
        let mut transitions = vec![0; states * width];
        for (state, row) in transitions.chunks_exact_mut(width).enumerate().skip(1) {
            self.fill(state as u32, row, 0);
        }
        Ok(ByteDfa::from_parts(self.classes, width, transitions, self.accepting.clone(), ByteStateId::START))
    }

    /// Writes the row of `state` by class, `shift` added to its targets; the rest of `row` is left as it is.
    pub(crate) fn fill(&self, state: u32, row: &mut [u32], shift: u32) {
        for run in self.row(state) {
            let (first, last) = (self.interval[run.first as usize], self.interval[run.last as usize]);
            for &class in &self.class_of[first as usize..=last as usize] {
                row[class as usize] = run.target + shift;
            }
        }
    }

    /// Number of states, the dead one included.
    pub(crate) fn state_count(&self) -> usize {
        self.accepting.len()
    }

    pub(crate) fn class_count(&self) -> usize {
        self.class_count
    }

    /// The class of every byte.
    pub(crate) fn classes(&self) -> &[u8; 256] {
        &self.classes
    }

    pub(crate) fn is_accepting(&self, state: u32) -> bool {
        self.accepting[state as usize]
    }

    /// The least number of bytes from every state to an accepting one; `u32::MAX` where there is no way.
    pub(crate) fn to_end(&self) -> &[u32] {
        &self.to_end
    }

    pub(crate) fn row(&self, state: u32) -> &[ByteRun] {
        let state = state as usize;
        let from = if state == 0 { 0 } else { self.ends[state - 1] };
        &self.runs[from as usize..self.ends[state] as usize]
    }

    /// Memory in use, roughly.
    pub(crate) fn bytes(&self) -> usize {
        self.runs.len() * size_of::<ByteRun>() + self.state_count() * 9
    }
}

/// Which bytes the rows tell apart.
struct Classes {
    /// Of each byte.
    interval: [u8; 256],
    /// Of each interval, a number that it shares with those that no row tells from it.
    merged: Vec<u8>,
    count: usize,
}

/// Rows as far as they tell bytes apart.
struct Classing {
    /// Where runs begin, and behind which they end.
    cuts: [bool; 257],
    /// The bytes that some row treats unlike all others.
    alone: [bool; 256],
    /// The shapes of other rows: their runs, with the first one of the same target.
    shapes: Interner<u32>,
    scratch: Vec<u32>,
    /// By target, the row that met it last, and the first run in it that leads there.
    met: Vec<(u32, u32)>,
    rows: u32,
}

impl Classing {
    fn new() -> Self {
        Self {
            cuts: [false; 257],
            alone: [false; 256],
            shapes: Interner::new(),
            scratch: Vec::new(),
            met: Vec::new(),
            rows: 0,
        }
    }

    fn add(&mut self, row: &[ByteRun]) {
        match row {
            [] => return,
            [run] if run.first == run.last => {
                self.cut(run);
                self.alone[run.first as usize] = true;
                return;
            }
            _ => {}
        }
        self.rows += 1;
        self.scratch.clear();
        for (at, run) in row.iter().enumerate() {
            self.cut(run);
            let target = run.target as usize;
            if self.met.len() <= target {
                self.met.resize(target + 1 + target / 2, (0, 0));
            }
            if self.met[target].0 != self.rows {
                self.met[target] = (self.rows, at as u32);
            }
            let same = self.met[target].1;
            self.scratch.push(same << 16 | u32::from(run.first) << 8 | u32::from(run.last));
        }
        self.shapes.intern(&self.scratch);
    }

    fn cut(&mut self, run: &ByteRun) {
        self.cuts[run.first as usize] = true;
        self.cuts[run.last as usize + 1] = true;
    }

    /// The intervals that no row tells apart.
    fn merge(self) -> Classes {
        let mut count = 1;
        let interval: [u8; 256] = std::array::from_fn(|byte| {
            count += usize::from(byte > 0 && self.cuts[byte]);
            (count - 1) as u8
        });
        let intervals = count;
        let mut merged = vec![0u8; intervals];
        count = 1;
        // Of the intervals in a block of `merged`, those with one mark stay together.
        let mut refine = |marks: &[u32]| {
            let mut mark_of = [None; 256];
            let splits = |(&block, &mark): (&u8, &u32)| {
                mark_of[block as usize].replace(mark).is_some_and(|other| other != mark)
            };
            if count == intervals || !merged.iter().zip(marks).any(splits) {
                return;
            }
            let mut refined: FastMap<(u8, u32), u8> = FastMap::default();
            for (block, &mark) in merged.iter_mut().zip(marks) {
                let new = refined.len() as u8;
                *block = *refined.entry((*block, mark)).or_insert(new);
            }
            count = refined.len();
        };
        let mut marks = vec![0; intervals];
        let mut next = 0;
        for (byte, _) in self.alone.iter().enumerate().filter(|(_, alone)| **alone) {
            next += 1;
            marks[interval[byte] as usize] = next;
        }
        refine(&marks);
        for shape in 0..self.shapes.len() as u32 {
            marks.fill(0);
            for &run in self.shapes.get(shape) {
                let (first, last) = (interval[(run >> 8 & 0xff) as usize], interval[(run & 0xff) as usize]);
                marks[first as usize..=last as usize].fill((run >> 16) + 1);
            }
            refine(&marks);
        }
        Classes { interval, merged, count }
    }
}
