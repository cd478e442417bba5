//! Byte classes: sets of bytes with equal transitions in every state of an automaton.

use super::{Cuts, FastMap, Interner, Rows, Run};

/// A partition of the bytes into classes, numbered in the order of their first bytes. Two bytes
/// share a class if they lead to the same state in every row.
///
/// The classes are computed in two steps. Neighboring bytes form an *interval* if no run of any row
/// starts or ends between them. Intervals with equal targets in every row form a class.
#[derive(Clone, Debug)]
pub struct ByteClasses {
    of_byte: [u8; 256],
    count: usize,
    /// Interval of each byte.
    interval: [u8; 256],
    /// Class of each interval.
    of_interval: Vec<u8>,
}

impl ByteClasses {
    /// The classes of an automaton.
    pub(super) fn new(rows: &Rows) -> Self {
        let mut distinctions = Distinctions::new(rows.state_count());
        (1..rows.state_count() as u32).for_each(|state| distinctions.add(rows.row(state)));
        distinctions.classes()
    }

    /// The class of every byte.
    pub fn of_bytes(&self) -> &[u8; 256] {
        &self.of_byte
    }

    /// Number of classes.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Writes a row of runs by class into `by_class`, with `shift` added to its targets. Classes
    /// outside of all runs keep their value.
    pub fn fill(&self, row: &[Run], by_class: &mut [u32], shift: u32) {
        for run in row {
            let (first, last) = (self.interval[run.first as usize], self.interval[run.last as usize]);
            for &class in &self.of_interval[first as usize..=last as usize] {
                by_class[class as usize] = run.target + shift;
            }
        }
    }
}

/// Collects the bytes that rows distinguish.
struct Distinctions {
    cuts: Cuts,
    /// Bytes in a class of their own, because some row treats them unlike all others.
    alone: [bool; 256],
    /// The shapes of other rows. The *shape* of a row is its runs with each target replaced by the
    /// first run of the row with the same target; rows of one shape distinguish the same bytes.
    shapes: Interner<u32>,
    scratch: [u32; 256],
    /// For each target, the last row with a run to it, and the first such run of the row.
    met: Vec<(u32, u32)>,
    rows: u32,
}

impl Distinctions {
    /// For an automaton with `states` states.
    fn new(states: usize) -> Self {
        Self {
            cuts: Cuts::new(),
            alone: [false; 256],
            shapes: Interner::new(),
            scratch: [0; 256],
            met: vec![(0, 0); states],
            rows: 0,
        }
    }

    /// Adds the distinctions of a row.
    fn add(&mut self, row: &[Run]) {
        match row {
            [] => return,
            [run] if run.first == run.last => {
                self.cuts.add(run.first, run.last);
                self.alone[run.first as usize] = true;
                return;
            }
            _ => {}
        }
        self.rows += 1;
        for ((at, run), shape) in row.iter().enumerate().zip(&mut self.scratch) {
            self.cuts.add(run.first, run.last);
            let met = &mut self.met[run.target as usize];
            if met.0 != self.rows {
                *met = (self.rows, at as u32);
            }
            *shape = met.1 << 16 | u32::from(run.first) << 8 | u32::from(run.last);
        }
        self.shapes.intern(&self.scratch[..row.len()]);
    }

    fn classes(self) -> ByteClasses {
        let mut interval = [0; 256];
        let mut intervals = 0;
        for (first, last) in self.cuts.intervals() {
            interval[first as usize..=last as usize].fill(intervals as u8);
            intervals += 1;
        }
        let mut merged = vec![0u8; intervals];
        let mut count = 1;
        // The mark of one interval of each block.
        let mut mark_of = [0; 256];
        let mut split: FastMap<(u8, u32), u8> = FastMap::default();
        // Splits the blocks of `merged`: intervals of one block stay together if they have the same
        // mark. Returns false if no block is left to split.
        let mut refine = |marks: &[u32]| {
            merged.iter().zip(marks).for_each(|(&block, &mark)| mark_of[block as usize] = mark);
            split.clear();
            for (block, &mark) in merged.iter_mut().zip(marks) {
                if mark_of[*block as usize] != mark {
                    *block = *split.entry((*block, mark)).or_insert_with(|| {
                        count += 1;
                        (count - 1) as u8
                    });
                }
            }
            count < intervals
        };
        let mut marks = vec![0; intervals];
        let mut next = 0;
        for (byte, _) in self.alone.iter().enumerate().filter(|(_, alone)| **alone) {
            next += 1;
            marks[interval[byte] as usize] = next;
        }
        let mut may_split = refine(&marks);
        for shape in 0..self.shapes.len() as u32 {
            if !may_split {
                break;
            }
            marks.fill(0);
            for &run in self.shapes.get(shape) {
                let (first, last) = (interval[(run >> 8 & 0xff) as usize], interval[(run & 0xff) as usize]);
                marks[first as usize..=last as usize].fill((run >> 16) + 1);
            }
            may_split = refine(&marks);
        }
        // Classes are numbered in order of their first interval.
        let mut numbers = [None; 256];
        let mut count = 0;
        let number = |&merged: &u8| {
            *numbers[merged as usize].get_or_insert_with(|| {
                count += 1;
                (count - 1) as u8
            })
        };
        let of_interval: Vec<u8> = merged.iter().map(number).collect();
        let of_byte = interval.map(|interval| of_interval[interval as usize]);
        ByteClasses { of_byte, count, interval, of_interval }
    }
}
