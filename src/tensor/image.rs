//! The arrays of a device constraint, in one buffer.
//!
//! [`Array::declare`] declares each array once: its shape, its fill value, and the values that a
//! constraint writes. Joining constraints, loading a constraint into an arena, replacing all
//! constraints, and the lookups of the kernels use these declarations. A new array needs only a
//! variant of [`Array`] and its declaration.
//!
//! One buffer, because WebGPU allows a kernel only eight buffers.
//!
//! The arrays of an artifact have another declaration, in `burn-dfa-tokens`: a file holds one
//! constraint with its own state numbers, in a documented format that other programs read, and a
//! reader checks its types, shapes and bounds. An image holds several constraints with renumbered
//! states, in a layout that follows the kernels. The values of both come from `ConstraintParts`.

use std::borrow::Cow;
use std::iter::repeat_n;
use std::ops::Range;
use std::sync::atomic::{AtomicI32, Ordering};

use burn::tensor::{Device, Int, Tensor};

use super::arrays::Array;
use super::device::keeps_steps;
#[cfg(feature = "cube")]
use super::device::largest_binding;
#[cfg(feature = "cube")]
use super::mask_rows::PoolSizes;
use super::placement::{Joined, PAGE, first_of, placed, runs};
use super::sizes::chain_of;
use super::text::{self, Text, text_of, texts};
use super::{Sizes, ints};
use crate::in_place::{InPlaceState, in_place};
use crate::vocabulary::Vocabulary;
use burn_dfa_tokens::{CompiledConstraint, StateId, TokenReading};

/// The declaration of an array.
struct Declared {
    rows: usize,
    columns: usize,
    /// The fill value.
    idle: i32,
    written: Written,
}

/// The values that a constraint writes into an array; short rows are padded with the fill value.
enum Written {
    /// A row for every state.
    PerState(fn(&Source, StateId, &mut Vec<i32>)),
    /// A row for every constraint.
    PerConstraint(fn(&Source, &mut Vec<i32>)),
    /// All values at once, for the texts of all constraints.
    Texts(fn(&Sizes, &[Text], &mut Vec<i32>)),
}

/// Arrays begin at multiples of this, so a device can bind or slice them without a copy.
const ALIGNMENT: usize = 64;

impl Array {
    pub(crate) const ALL: [Self; 12] = [
        Self::Next,
        Self::TokensToEnd,
        Self::Jumps,
        Self::Frames,
        Self::Shortest,
        Self::Owner,
        Self::Generation,
        Self::Class,
        Self::Text,
        Self::Column,
        Self::Offsets,
        Self::Symbols,
    ];

    fn declare(self, sizes: &Sizes) -> Declared {
        use Written::{PerConstraint, PerState, Texts};
        let &Sizes { states, columns, constraints, vocab_size, texts, symbols, alphabet, exits, .. } = sizes;
        let byte_level = usize::from(sizes.is_byte_level());
        let declare = |rows, columns, idle, written| Declared { rows, columns, idle, written };
        match self {
            Self::Next => {
                declare(states, columns, StateId::DEAD.0 as i32, PerState(|s, state, out| s.next(state, out)))
            }
            Self::TokensToEnd => {
                declare(states, exits.max(1), i32::MAX, PerState(|s, state, out| s.tokens_to_end(state, out)))
            }
            Self::Jumps => declare(states, sizes.frame(), 0, PerState(|s, state, out| s.jumps(state, out))),
            Self::Frames => declare(states, exits, 0, PerState(|s, state, out| s.frames(state, out))),
            Self::Shortest => {
                declare(states, byte_level, 0, PerState(|s, state, out| s.shortest(state, out)))
            }
            Self::Owner => {
                declare(states, sizes.has_owner().into(), 0, PerState(|s, _, out| out.push(s.index)))
            }
            Self::Generation => {
                declare(states, sizes.runs_kernels.into(), 0, PerState(|s, _, out| out.push(s.generation)))
            }
            Self::Class => declare(
                constraints,
                vocab_size,
                CompiledConstraint::NEVER as i32,
                PerConstraint(|s, out| s.classes(out)),
            ),
            Self::Text => declare(constraints, byte_level, 0, PerConstraint(|s, out| out.push(s.text))),
            Self::Column => declare(constraints, alphabet, 0, PerConstraint(|s, out| s.symbol_columns(out))),
            Self::Offsets => declare(texts, vocab_size.saturating_add(1), 0, Texts(text::offsets)),
            Self::Symbols => declare(1, symbols, 0, Texts(text::symbols)),
        }
    }

    /// The offset of array `index`; past the last array, the length of the image.
    pub(super) fn offset(sizes: &Sizes, index: usize) -> usize {
        Self::ALL[..index].iter().fold(0, |offset: usize, array| {
            let Declared { rows, columns, .. } = array.declare(sizes);
            offset
                .saturating_add(rows.saturating_mul(columns))
                .checked_next_multiple_of(ALIGNMENT)
                .unwrap_or(usize::MAX)
        })
    }
}

/// A constraint, as a source of array values.
struct Source<'a> {
    sizes: &'a Sizes,
    constraint: &'a CompiledConstraint,
    index: i32,
    text: i32,
    generation: i32,
    numbers: Numbers<'a>,
    /// The rows of the transition table, one after the other.
    next: Cow<'a, [u32]>,
    /// The distances of all states in tokens, to each exit with calls.
    distances: Vec<u32>,
}

/// Maps the states of a constraint to their numbers in the image.
enum Numbers<'a> {
    Joined(&'a Joined, usize),
    Paged(&'a [u32]),
}

impl Source<'_> {
    fn number(&self, state: u32) -> i32 {
        let state = match &self.numbers {
            Numbers::Joined(joined, index) => joined.state(*index, StateId(state)),
            Numbers::Paged(pages) => placed(pages, StateId(state)),
        };
        state.0 as i32
    }

    fn next(&self, state: StateId, out: &mut Vec<i32>) {
        let columns = self.constraint.class_count();
        let row = &self.next[state.index() * columns..][..columns];
        out.extend(row.iter().map(|&next| self.number(next)));
        // All constraints share the row of this state, also constraints with more columns.
        if state == StateId::UNCONSTRAINED {
            out.extend(repeat_n(StateId::UNCONSTRAINED.0 as i32, self.sizes.columns - columns));
        }
    }

    fn tokens_to_end(&self, state: StateId, out: &mut Vec<i32>) {
        let exits = self.constraint.parts().calls.as_ref().map_or(1, |calls| calls.exits);
        let distances = &self.distances[state.index() * exits..][..exits];
        out.extend(distances.iter().map(|&distance| i32::try_from(distance).unwrap_or(i32::MAX)));
    }

    fn jumps(&self, state: StateId, out: &mut Vec<i32>) {
        let Some(calls) = &self.constraint.parts().calls else { return };
        // States are positive numbers, exits are negative.
        let jump = calls.jump(state.0).iter();
        out.extend(jump.map(|&to| if to > 0 { self.number(to as u32) } else { to }));
    }

    fn frames(&self, state: StateId, out: &mut Vec<i32>) {
        let Some(calls) = &self.constraint.parts().calls else { return };
        out.extend(calls.frames_of(state).iter().map(|&frames| frames as i32));
    }

    fn shortest(&self, state: StateId, out: &mut Vec<i32>) {
        out.push(self.constraint.parts().shortest(state) as i32);
    }

    fn symbol_columns(&self, out: &mut Vec<i32>) {
        out.extend(self.constraint.parts().symbol_columns().into_iter().map(|column| column as i32));
    }

    fn classes(&self, out: &mut Vec<i32>) {
        if let TokenReading::Classes(class) = &self.constraint.parts().reading {
            out.extend(class.iter().map(|class| class as i32));
        }
    }
}

/// The arrays of constraints on a device, and the parameters of the lookups.
#[derive(Clone, Debug)]
pub(crate) struct Image {
    pub(crate) sizes: Sizes,
    /// All arrays, `i32`.
    pub(crate) values: Tensor<1, Int>,
    /// The offset of each array of [`Array::ALL`].
    pub(crate) offsets: [usize; Array::ALL.len()],
    /// `[max(columns, vocab_size)]`: 0, 1, 2, …
    numbers: Tensor<1, Int>,
    /// With byte-level constraints, the maximum number of symbols of a token; else 0. A recorded
    /// step requires that it never changes.
    pub(crate) longest: usize,
    /// With calls, the maximum number of consecutive states that read no byte. A recorded step
    /// requires that it never changes.
    pub(crate) chain: usize,
    /// The pool of mask rows of a batch, if there is one.
    #[cfg(feature = "cube")]
    pub(crate) pool: Option<PoolSizes>,
}

impl Image {
    /// The image of joined constraints.
    pub(super) fn upload(
        sizes: &Sizes,
        constraints: &[&CompiledConstraint],
        joined: &Joined,
        device: &Device,
    ) -> Self {
        Self::of(sizes, constraints, joined, &texts(constraints), device)
    }

    /// The image of an arena that holds only its first constraint, `free`.
    pub(super) fn vacant(
        sizes: &Sizes,
        vocabulary: &Vocabulary,
        free: &CompiledConstraint,
        device: &Device,
    ) -> Self {
        Self::of(sizes, &[free], &Joined::new(&[free]), &[Text::of(vocabulary)], device)
    }

    fn of(
        sizes: &Sizes,
        constraints: &[&CompiledConstraint],
        joined: &Joined,
        texts: &[Text],
        device: &Device,
    ) -> Self {
        let numbers = 0..sizes.columns.max(sizes.vocab_size) as i32;
        let (longest, chain) = if keeps_steps(device) {
            (text::longest(sizes, texts), sizes.chain)
        } else {
            (text::longest(sizes, &text::texts(constraints)), chain_of(constraints))
        };
        Self {
            values: ints(write_all(sizes, constraints, joined, texts), device),
            offsets: std::array::from_fn(|index| Array::offset(sizes, index)),
            numbers: ints(numbers.collect(), device),
            longest,
            chain,
            sizes: *sizes,
            #[cfg(feature = "cube")]
            pool: None,
        }
    }

    /// The image for kernels that keep mask rows of at most `max_bytes` for a batch.
    #[cfg(feature = "cube")]
    pub(super) fn with_pool(self, max_bytes: usize) -> Self {
        let largest = largest_binding(&self.values.device()).unwrap_or(usize::MAX);
        Self { pool: PoolSizes::new(&self.sizes, max_bytes.min(largest)), ..self }
    }

    /// Overwrites the constraints with other constraints of fitting sizes, in place.
    pub(super) fn replace(&mut self, constraints: &[&CompiledConstraint], joined: &Joined) {
        let values = write_all(&self.sizes, constraints, joined, &texts(constraints));
        self.values.assign(ints(values, &self.values.device()));
        self.chain = self.chain.max(chain_of(constraints));
    }

    /// Writes only one constraint of an arena, in place.
    pub(super) fn put(&mut self, index: usize, constraint: &CompiledConstraint, pages: &[u32]) {
        let sizes = self.sizes;
        self.chain = self.chain.max(chain_of(&[constraint]));
        if constraint.is_byte_level() && self.longest == 0 {
            self.longest = text::longest(&sizes, &texts(&[constraint]));
        }
        let text = if constraint.is_byte_level() { 0 } else { super::BY_CLASS };
        let source = Source {
            sizes: &sizes,
            constraint,
            index: index as i32,
            text,
            generation: generation(),
            numbers: Numbers::Paged(pages),
            next: constraint.parts().next.all(),
            distances: constraint.parts().all_distances(),
        };
        for (array, offset) in Array::ALL.into_iter().zip(self.offsets) {
            let Declared { columns, idle, written, .. } = array.declare(&sizes);
            let mut values = Vec::new();
            match written {
                _ if columns == 0 => {}
                Written::PerState(write) => {
                    for state in (StateId::RESERVED..constraint.state_count() as u32).map(StateId) {
                        write_row(&mut values, columns, idle, |out| write(&source, state, out));
                    }
                    values.resize(pages.len() * PAGE * columns, idle);
                    let mut values = values.as_slice();
                    for run in runs(pages) {
                        let (these, rest) = values.split_at(run.len() * PAGE * columns);
                        self.write(offset + first_of(run.start) * columns, these.to_vec());
                        values = rest;
                    }
                }
                Written::PerConstraint(write) => {
                    write_row(&mut values, columns, idle, |out| write(&source, out));
                    self.write(offset + index * columns, values);
                }
                Written::Texts(_) => {}
            }
        }
    }

    /// Writes a part of the buffer in place.
    #[allow(clippy::single_range_in_vec_init, reason = "one range for each dimension")]
    fn write(&mut self, from: usize, values: Vec<i32>) {
        let at = from..from + values.len();
        let values = ints(values, &self.values.device());
        in_place(&mut self.values, |buffer| buffer.slice_assign([at], values));
    }

    /// The range of an array in the buffer.
    pub(crate) fn range(&self, array: Array) -> Range<usize> {
        let Declared { rows, columns, .. } = array.declare(&self.sizes);
        let from = self.offsets[array as usize];
        from..from + rows * columns
    }

    /// 0, 1, 2, …, `[count]`, for a `count` up to the columns of the widest array.
    #[allow(clippy::single_range_in_vec_init, reason = "one range for each dimension")]
    pub(crate) fn numbers(&self, count: usize) -> Tensor<1, Int> {
        self.numbers.clone().slice([0..count])
    }

    /// `array[index[b]]` for each `b`, by Burn's built-in operations.
    pub(crate) fn entries(&self, array: Array, index: Tensor<1, Int>) -> Tensor<1, Int> {
        self.values.clone().select(0, index + self.range(array).start as i32)
    }

    /// `array[row[b], column[b]]` for each `b`, of an array of `columns` columns.
    pub(crate) fn cells(
        &self,
        array: Array,
        columns: usize,
        row: Tensor<1, Int>,
        column: Tensor<1, Int>,
    ) -> Tensor<1, Int> {
        self.entries(array, row * columns as i32 + column)
    }

    /// Clamps states from outside, so lookups stay in bounds.
    pub(crate) fn in_range(&self, states: Tensor<1, Int>) -> Tensor<1, Int> {
        states.clamp(0, self.sizes.states as i32 - 1)
    }
}

/// A number that no other upload has.
fn generation() -> i32 {
    static NEXT: AtomicI32 = AtomicI32::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Appends a row of an array.
fn write_row(values: &mut Vec<i32>, columns: usize, idle: i32, write: impl FnOnce(&mut Vec<i32>)) {
    let end = values.len() + columns;
    write(values);
    values.resize(end, idle);
}

/// The values of all arrays of joined constraints.
fn write_all(
    sizes: &Sizes,
    constraints: &[&CompiledConstraint],
    joined: &Joined,
    texts: &[Text],
) -> Vec<i32> {
    let generation = generation();
    let sources: Vec<Source> = constraints
        .iter()
        .enumerate()
        .map(|(index, &constraint)| Source {
            sizes,
            constraint,
            index: index as i32,
            text: text_of(texts, constraint),
            generation,
            numbers: Numbers::Joined(joined, index),
            next: constraint.parts().next.all(),
            distances: constraint.parts().all_distances(),
        })
        .collect();
    let mut values = Vec::with_capacity(Array::offset(sizes, Array::ALL.len()));
    for (index, array) in Array::ALL.into_iter().enumerate() {
        let Declared { rows, columns, idle, written } = array.declare(sizes);
        let end = values.len() + rows * columns;
        match written {
            _ if columns == 0 => {}
            Written::PerState(write) => {
                for (source, state) in joined_states(&sources) {
                    write_row(&mut values, columns, idle, |out| write(source, state, out));
                }
            }
            Written::PerConstraint(write) => {
                for source in &sources {
                    write_row(&mut values, columns, idle, |out| write(source, out));
                }
            }
            Written::Texts(write) => write(sizes, texts, &mut values),
        }
        values.resize(end, idle);
        values.resize(Array::offset(sizes, index + 1), 0);
    }
    values
}

/// The constraint and the original number of every joined state, in order; reserved states belong
/// to the first constraint.
fn joined_states<'a>(sources: &'a [Source<'a>]) -> impl Iterator<Item = (&'a Source<'a>, StateId)> {
    let reserved = (0..StateId::RESERVED).map(|state| (&sources[0], StateId(state)));
    let own = sources.iter().flat_map(|source| {
        (StateId::RESERVED..source.constraint.state_count() as u32).map(move |state| (source, StateId(state)))
    });
    reserved.chain(own)
}
