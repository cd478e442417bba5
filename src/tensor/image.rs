//! The arrays of a table, in one buffer on the device.
//!
//! Each array is declared once, in [`Array::declare`]: its shape, what it holds where nothing was written, and what a
//! table writes into it. Joining tables, loading one into an arena, replacing all of them and the lookups of the
//! kernels follow from that. A further array is a variant of [`Array`] and what is declared of it.
//!
//! One buffer, because WebGPU grants a kernel eight of them.

use std::borrow::Cow;
use std::ops::Range;

use burn::tensor::{Device, Int, Tensor};

use super::options::Layout;
use super::placement::{Joined, PAGE, first_of, placed, runs};
use super::text::{self, FOLLOWED, Text, text_of, texts};
use super::{Sizes, ints};
use crate::persistent::Persistent;
use crate::table::{Landings, StateId, TokenReading, TokenTable};
use crate::vocabulary::{TokenId, Vocabulary};

/// The arrays, in the order in which they lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Array {
    /// `[states, columns]`: the state after each column.
    Next,
    /// `[states]`: the least number of tokens to the end, `i32::MAX` where there is no way; with calls `[states, ends]`, to
    /// each end of the state's piece.
    TokensToEnd,
    /// `[states, 1 + ends]`, with calls: what a state does to the stack, see `table::Calls`.
    Jumps,
    /// `[states, ends]`, with calls: the frames that the way to each end adds to the stack.
    Frames,
    /// `[states, landings]`, with calls and token classes: the state that the last byte of each class leads to, or −1 where
    /// tokens are followed, see `table::Landings`.
    Landings,
    /// `[states]`: the table of a state, where there are several.
    Owner,
    /// `[tables, width]`: the class of every token.
    Class,
    /// `[tables]`: the number of the text that the table reads, or [`BY_CLASS`](super::BY_CLASS).
    Text,
    /// `[tables, alphabet]`: the column of every symbol.
    Column,
    /// `[texts, width + 1]`: where the symbols of every token begin.
    Offsets,
    /// `[symbols]`: the symbols of all tokens of all texts.
    Symbols,
}

/// What is known of an array.
struct Declared {
    rows: usize,
    columns: usize,
    /// What stands where nothing was written.
    idle: i32,
    written: Written,
}

/// What a table writes into an array; a row that comes out short is filled up with what is idle.
enum Written {
    /// A row for every state.
    PerState(fn(&Source, StateId, &mut Vec<i32>)),
    /// A row for every table.
    PerTable(fn(&Source, &mut Vec<i32>)),
    /// Everything at once, for the texts of all tables.
    Texts(fn(&Sizes, &[Text], &mut Vec<i32>)),
}

/// Arrays begin at multiples of this, so that a device can bind or slice them without a copy.
const ALIGNMENT: usize = 64;

impl Array {
    pub(crate) const ALL: [Self; 11] = [
        Self::Next,
        Self::TokensToEnd,
        Self::Jumps,
        Self::Frames,
        Self::Landings,
        Self::Owner,
        Self::Class,
        Self::Text,
        Self::Column,
        Self::Offsets,
        Self::Symbols,
    ];

    fn declare(self, sizes: &Sizes) -> Declared {
        use Written::{PerState, PerTable, Texts};
        let &Sizes { layout, states, columns, tables, width, texts, symbols, alphabet, ends, .. } = sizes;
        let (classes, walks) = (layout != Layout::Dense, sizes.walks());
        let declare = |rows, columns, idle, written| Declared { rows, columns, idle, written };
        match self {
            Self::Next => {
                declare(states, columns, StateId::DEAD.0 as i32, PerState(|s, state, out| s.next(state, out)))
            }
            Self::TokensToEnd => {
                declare(states, ends.max(1), i32::MAX, PerState(|s, state, out| s.tokens_to_end(state, out)))
            }
            Self::Jumps => declare(states, sizes.frame(), 0, PerState(|s, state, out| s.jumps(state, out))),
            Self::Frames => declare(states, ends, 0, PerState(|s, state, out| s.frames(state, out))),
            Self::Landings => {
                declare(states, sizes.landings, FOLLOWED, PerState(|s, state, out| s.landings(state, out)))
            }
            Self::Owner => {
                declare(states, sizes.has_owner().into(), 0, PerState(|s, _, out| out.push(s.index)))
            }
            Self::Class => declare(
                tables,
                if classes { width } else { 0 },
                TokenTable::NEVER as i32,
                PerTable(|s, out| s.classes(out)),
            ),
            Self::Text => declare(tables, walks.into(), 0, PerTable(|s, out| out.push(s.text))),
            Self::Column => declare(tables, alphabet, 0, PerTable(|s, out| s.symbol_columns(out))),
            Self::Offsets => declare(texts, width.saturating_add(1), 0, Texts(text::offsets)),
            Self::Symbols => declare(1, symbols, 0, Texts(text::symbols)),
        }
    }

    /// Where array `index` begins; past the last, the length of the image.
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

/// A table among others, as its arrays are written.
struct Source<'a> {
    sizes: &'a Sizes,
    table: &'a TokenTable,
    index: i32,
    text: i32,
    numbers: Numbers<'a>,
    /// The rows of the table, one after the other.
    next: Cow<'a, [u32]>,
}

/// The numbers that the states of a table have in the image.
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
        let (table, columns) = (self.table, self.table.class_count());
        let row = &self.next[state.index() * columns..][..columns];
        match (self.sizes.layout, &table.parts().reading) {
            (Layout::Dense, TokenReading::Classes(class)) => {
                out.extend(class.iter().map(|class| self.number(row[class as usize])));
            }
            (Layout::Dense, TokenReading::Bytes { .. }) => {
                let tokens = (0..table.vocabulary_len() as u32).map(TokenId);
                out.extend(tokens.map(|token| self.number(table.next(state, token).0)));
            }
            _ => {
                out.extend(row.iter().map(|&next| self.number(next)));
                // All tables share the row of this state, also those that have more columns.
                if state == StateId::UNCONSTRAINED {
                    out.extend(std::iter::repeat_n(
                        StateId::UNCONSTRAINED.0 as i32,
                        self.sizes.columns - row.len(),
                    ));
                }
            }
        }
    }

    fn tokens_to_end(&self, state: StateId, out: &mut Vec<i32>) {
        let distance = |tokens: u32| i32::try_from(tokens).unwrap_or(i32::MAX);
        match &self.table.parts().calls {
            None => out.push(distance(self.table.tokens_to_end(state))),
            Some(calls) => out.extend(calls.ways_of(state).iter().map(|&way| distance(way))),
        }
    }

    fn jumps(&self, state: StateId, out: &mut Vec<i32>) {
        let Some(calls) = &self.table.parts().calls else { return };
        // States are numbers above 0, outcomes below.
        let jump = calls.jump(state.0).iter();
        out.extend(jump.map(|&to| if to > 0 { self.number(to as u32) } else { to }));
    }

    fn frames(&self, state: StateId, out: &mut Vec<i32>) {
        let Some(calls) = &self.table.parts().calls else { return };
        out.extend(calls.frames_of(state).iter().map(|&frames| frames as i32));
    }

    fn landings(&self, state: StateId, out: &mut Vec<i32>) {
        let Some(landings) = &self.table.parts().landings else { return };
        let to = landings.of(state).iter();
        out.extend(to.map(|&to| if to == Landings::FOLLOWED { FOLLOWED } else { self.number(to) }));
    }

    fn symbol_columns(&self, out: &mut Vec<i32>) {
        out.extend(self.table.parts().symbol_columns().into_iter().map(|column| column as i32));
    }

    fn classes(&self, out: &mut Vec<i32>) {
        let parts = self.table.parts();
        match (&parts.reading, &parts.landings) {
            (TokenReading::Classes(class), _) => out.extend(class.iter().map(|class| class as i32)),
            (_, Some(landings)) if self.sizes.landings > 0 => {
                out.extend(landings.class.iter().map(|&class| class as i32));
            }
            _ => {}
        }
    }
}

/// The arrays of tables on a device, and what the lookups need to know of them.
#[derive(Clone, Debug)]
pub(crate) struct Image {
    pub(crate) sizes: Sizes,
    /// All arrays, `i32`.
    pub(crate) values: Tensor<1, Int>,
    /// Where each of [`Array::ALL`] begins.
    pub(crate) offsets: [usize; Array::ALL.len()],
    /// `[max(columns, width)]`: 0, 1, 2, …
    numbers: Tensor<1, Int>,
    /// The most symbols of a token.
    pub(crate) longest: usize,
    /// The most states that do not read a byte, one after the other, of a table with calls.
    pub(crate) chain: usize,
}

impl Image {
    /// The image of joined tables.
    pub(super) fn upload(sizes: &Sizes, tables: &[&TokenTable], joined: &Joined, device: &Device) -> Self {
        Self::of(sizes, tables, joined, &texts_of(sizes, tables), device)
    }

    /// The image of an arena that holds nothing but its first table, `free`.
    pub(super) fn vacant(sizes: &Sizes, vocabulary: &Vocabulary, free: &TokenTable, device: &Device) -> Self {
        let texts = if sizes.walks() { vec![Text::of(vocabulary)] } else { Vec::new() };
        Self::of(sizes, &[free], &Joined::new(&[free]), &texts, device)
    }

    fn of(sizes: &Sizes, tables: &[&TokenTable], joined: &Joined, texts: &[Text], device: &Device) -> Self {
        let numbers = 0..sizes.columns.max(sizes.width) as i32;
        Self {
            values: ints(write_all(sizes, tables, joined, texts), device),
            offsets: std::array::from_fn(|index| Array::offset(sizes, index)),
            numbers: ints(numbers.collect(), device),
            longest: text::longest(sizes, texts),
            chain: chain_of(tables),
            sizes: *sizes,
        }
    }

    /// Writes other tables, which fit the sizes, in place.
    pub(super) fn replace(&mut self, tables: &[&TokenTable], joined: &Joined) {
        let texts = texts_of(&self.sizes, tables);
        let values = write_all(&self.sizes, tables, joined, &texts);
        self.values.assign(ints(values, &self.values.device()));
        self.longest = text::longest(&self.sizes, &texts);
        self.chain = chain_of(tables);
    }

    /// Writes one table of an arena in place, and nothing else.
    pub(super) fn put(&mut self, index: usize, table: &TokenTable, pages: &[u32]) {
        let sizes = self.sizes;
        self.chain = self.chain.max(chain_of(&[table]));
        let text = if table.is_walked() { 0 } else { super::BY_CLASS };
        let source = Source {
            sizes: &sizes,
            table,
            index: index as i32,
            text,
            numbers: Numbers::Paged(pages),
            next: table.parts().next.all(),
        };
        for (array, offset) in Array::ALL.into_iter().zip(self.offsets) {
            let Declared { columns, idle, written, .. } = array.declare(&sizes);
            let mut values = Vec::new();
            match written {
                _ if columns == 0 => {}
                Written::PerState(write) => {
                    for state in (StateId::RESERVED..table.state_count() as u32).map(StateId) {
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
                Written::PerTable(write) => {
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
        self.values.inplace(|buffer| buffer.slice_assign([at], values));
    }

    /// Where the values of an array lie.
    pub(crate) fn range(&self, array: Array) -> Range<usize> {
        let Declared { rows, columns, .. } = array.declare(&self.sizes);
        let from = self.offsets[array as usize];
        from..from + rows * columns
    }

    /// 0, 1, 2, …, `[count]`: at most as many as a row of any array has columns.
    #[allow(clippy::single_range_in_vec_init, reason = "one range for each dimension")]
    pub(crate) fn numbers(&self, count: usize) -> Tensor<1, Int> {
        self.numbers.clone().slice([0..count])
    }
}

/// The longest chain of states that read nothing, of any of the tables.
fn chain_of(tables: &[&TokenTable]) -> usize {
    let calls = tables.iter().filter_map(|table| table.parts().calls.as_ref());
    calls.map(|calls| calls.chain as usize).max().unwrap_or(0)
}

fn texts_of<'a>(sizes: &Sizes, tables: &[&'a TokenTable]) -> Vec<Text<'a>> {
    if sizes.walks() { texts(tables) } else { Vec::new() }
}

/// Appends a row of an array.
fn write_row(values: &mut Vec<i32>, columns: usize, idle: i32, write: impl FnOnce(&mut Vec<i32>)) {
    let end = values.len() + columns;
    write(values);
    values.resize(end, idle);
}

/// The values of all arrays of joined tables.
fn write_all(sizes: &Sizes, tables: &[&TokenTable], joined: &Joined, texts: &[Text]) -> Vec<i32> {
    let sources: Vec<Source> = tables
        .iter()
        .enumerate()
        .map(|(index, &table)| Source {
            sizes,
            table,
            index: index as i32,
            text: text_of(texts, table),
            numbers: Numbers::Joined(joined, index),
            next: table.parts().next.all(),
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
            Written::PerTable(write) => {
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

/// The table and the own number of every joined state, in order; the reserved states are those of the first table.
fn joined_states<'a>(sources: &'a [Source<'a>]) -> impl Iterator<Item = (&'a Source<'a>, StateId)> {
    let reserved = (0..StateId::RESERVED).map(|state| (&sources[0], StateId(state)));
    let own = sources.iter().flat_map(|source| {
        (StateId::RESERVED..source.table.state_count() as u32).map(move |state| (source, StateId(state)))
    });
    reserved.chain(own)
}
