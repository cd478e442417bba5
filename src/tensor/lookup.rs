//! The lookups in a table on a device, with Burn's built-in operations.

use std::ops::Range;

use burn::tensor::{Device, Int, Tensor};

use super::ints;
use super::layout::{Arrays, Layout, Sizes};
use super::part::Part;
use super::placement::{PAGE, first_of, runs};
use crate::processor::Persistent;
use crate::table::StateId;

/// The arrays of a table as tensors, `i32`. Those that a layout does not use have one entry.
#[derive(Clone, Debug)]
pub(crate) struct Tensors {
    pub(crate) layout: Layout,
    /// `[states, columns]`
    pub(crate) next: Tensor<2, Int>,
    /// `[tables, width]`
    pub(crate) class: Tensor<2, Int>,
    /// `[states]`
    pub(crate) owner: Tensor<1, Int>,
    /// `[tables]`
    pub(crate) reading: Tensor<1, Int>,
    /// `[readings, width + 1]`
    pub(crate) offsets: Tensor<2, Int>,
    /// `[symbols]`
    pub(crate) symbols: Tensor<1, Int>,
    /// `[tables, alphabet]`
    pub(crate) column: Tensor<2, Int>,
    /// `[states]`
    pub(crate) tokens_to_end: Tensor<1, Int>,
    /// `[width]`, every token where tokens are walked
    every: Tensor<1, Int>,
    /// Whether `owner` is used: there may be several tables.
    pub(crate) has_owner: bool,
    width: usize,
    /// The most symbols of a token, where tokens are walked.
    longest: usize,
}

impl Tensors {
    pub(super) fn upload(sizes: &Sizes, arrays: Arrays, device: &Device) -> Self {
        let matrix = |values: Vec<i32>, rows: usize| {
            if values.is_empty() {
                return ints(vec![0], device).reshape([1, 1]);
            }
            let columns = values.len() / rows;
            ints(values, device).reshape([rows, columns])
        };
        let vector = |values: Vec<i32>| ints(if values.is_empty() { vec![0] } else { values }, device);
        let longest = longest(&arrays.offsets);
        Self {
            layout: sizes.layout,
            next: matrix(arrays.next, sizes.states),
            class: matrix(arrays.class, sizes.tables),
            owner: vector(arrays.owner),
            reading: vector(arrays.reading),
            offsets: matrix(arrays.offsets, sizes.readings.max(1)),
            symbols: vector(arrays.symbols),
            column: matrix(arrays.column, sizes.tables),
            tokens_to_end: vector(arrays.tokens_to_end),
            every: vector(match sizes.layout {
                Layout::Walk => (0..sizes.width as i32).collect(),
                _ => Vec::new(),
            }),
            has_owner: sizes.has_owner(),
            width: sizes.width,
            longest,
        }
    }

    /// Writes arrays of the same sizes in place.
    pub(super) fn replace(&mut self, sizes: &Sizes, arrays: Arrays) {
        let new = Self::upload(sizes, arrays, &self.next.device());
        self.next.assign(new.next);
        self.tokens_to_end.assign(new.tokens_to_end);
        self.class.assign(new.class);
        self.owner.assign(new.owner);
        self.reading.assign(new.reading);
        self.offsets.assign(new.offsets);
        self.symbols.assign(new.symbols);
        self.column.assign(new.column);
        self.longest = new.longest;
    }

    /// Writes one table of an arena in place, and nothing else.
    #[allow(clippy::single_range_in_vec_init, reason = "one range for each dimension")]
    pub(super) fn put(&mut self, sizes: &Sizes, index: usize, pages: &[u32], part: Part) {
        let device = self.next.device();
        let mut written = 0;
        for run in runs(pages) {
            let (from, rows) = (first_of(run.start), run.len() * PAGE);
            let cells = written * sizes.columns..(written + rows) * sizes.columns;
            let next = ints(part.next[cells].to_vec(), &device).reshape([rows, sizes.columns]);
            write(&mut self.next, [from..from + rows, 0..sizes.columns], next);
            let to_end = ints(part.tokens_to_end[written..written + rows].to_vec(), &device);
            write(&mut self.tokens_to_end, [from..from + rows], to_end);
            if self.has_owner {
                let owner = ints(vec![index as i32; rows], &device);
                write(&mut self.owner, [from..from + rows], owner);
            }
            written += rows;
        }
        let row = |values: Vec<i32>| ints(values, &device).reshape([1, -1]);
        match self.layout {
            Layout::Dense => {}
            Layout::Classes => {
                write(&mut self.class, [index..index + 1, 0..sizes.width], row(part.classes));
            }
            Layout::Walk => {
                write(&mut self.reading, [index..index + 1], ints(vec![part.reading], &device));
                write(&mut self.column, [index..index + 1, 0..sizes.alphabet], row(part.columns));
                if !part.classes.is_empty() {
                    let from = sizes.symbols_of(index);
                    write(&mut self.symbols, [from..from + sizes.width], ints(part.classes, &device));
                }
            }
        }
    }

    /// Keeps states that were not made here from being looked up out of bounds.
    pub(super) fn in_range(&self, states: Tensor<1, Int>) -> Tensor<1, Int> {
        states.clamp(0, self.next.dims()[0] as i32 - 1)
    }

    /// The next state for every token, `[batch, width]`; 0 also where the way to the end is longer than
    /// `spare` tokens, `[batch]`.
    pub(super) fn next_of_all(
        &self,
        states: Tensor<1, Int>,
        spare: Option<Tensor<1, Int>>,
    ) -> Tensor<2, Int> {
        let [batch] = states.dims();
        match self.layout {
            Layout::Dense => self.within(self.next.clone().select(0, states), spare),
            Layout::Classes => {
                let class = if self.has_owner {
                    self.class.clone().select(0, self.owner.clone().select(0, states.clone()))
                } else {
                    self.class.clone().expand([batch, self.width])
                };
                self.within(self.next.clone().select(0, states), spare).gather(1, class)
            }
            Layout::Walk => {
                let all = [batch, self.width];
                let token = self.every.clone().reshape([1, self.width]).expand(all).reshape([-1]);
                let state = states.reshape([batch, 1]).expand(all).reshape([-1]);
                self.within(self.walk(state, token).reshape(all), spare)
            }
        }
    }

    /// The next state for one token a row, `[rows]`; tokens must be in range.
    pub(super) fn next(&self, states: Tensor<1, Int>, tokens: Tensor<1, Int>) -> Tensor<1, Int> {
        match self.layout {
            Layout::Dense => at(&self.next, states, tokens),
            Layout::Classes => {
                let class = if self.has_owner {
                    at(&self.class, self.owner.clone().select(0, states.clone()), tokens)
                } else {
                    self.class.clone().reshape([-1]).select(0, tokens)
                };
                at(&self.next, states, class)
            }
            Layout::Walk => self.walk(states, tokens),
        }
    }

    /// Follows the symbols of one token a row, `[rows]`, as many steps as the longest token has.
    fn walk(&self, states: Tensor<1, Int>, tokens: Tensor<1, Int>) -> Tensor<1, Int> {
        let owner =
            if self.has_owner { self.owner.clone().select(0, states.clone()) } else { states.zeros_like() };
        let reading = self.reading.clone().select(0, owner.clone());
        let end = at(&self.offsets, reading.clone(), tokens.clone() + 1);
        let mut place = at(&self.offsets, reading, tokens);
        let mut state = states;
        for _ in 0..self.longest {
            let over = place.clone().greater_equal(end.clone());
            let symbol = self.symbols.clone().select(0, place.clone().min_pair(end.clone() - 1));
            let column = at(&self.column, owner.clone(), symbol);
            state = at(&self.next, state.clone(), column).mask_where(over, state);
            place = place + 1;
        }
        let lost = self.tokens_to_end.clone().select(0, state.clone()).equal_elem(i32::MAX);
        state.mask_fill(lost, StateId::DEAD.0 as i32)
    }

    /// Puts 0 where the way from a next state to the end is longer than the row's spare tokens.
    fn within(&self, next: Tensor<2, Int>, spare: Option<Tensor<1, Int>>) -> Tensor<2, Int> {
        let Some(spare) = spare else {
            return next;
        };
        let [batch, columns] = next.dims();
        let to_end = self.tokens_to_end.clone().select(0, next.clone().reshape([-1]));
        let spare = spare.reshape([batch, 1]).expand([batch, columns]);
        next.mask_fill(to_end.reshape([batch, columns]).greater(spare), StateId::DEAD.0 as i32)
    }
}

/// Writes a part of a tensor, in the buffer that holds it.
fn write<const D: usize>(buffer: &mut Tensor<D, Int>, at: [Range<usize>; D], values: Tensor<D, Int>) {
    buffer.inplace(|buffer| buffer.slice_assign(at, values));
}

/// `table[row[b], column[b]]` for each `b`.
fn at(table: &Tensor<2, Int>, row: Tensor<1, Int>, column: Tensor<1, Int>) -> Tensor<1, Int> {
    let [_, columns] = table.dims();
    table.clone().reshape([-1]).select(0, row * columns as i32 + column)
}

fn longest(offsets: &[i32]) -> usize {
    offsets.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0).max(0) as usize
}
