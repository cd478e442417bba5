//! The layouts of a table, and their arrays before they are uploaded.

use super::placement::{Joined, PAGE, first_of, pages_of};
use crate::error::{Error, Limit, Result};
use crate::table::StateId;
use crate::table::{Reading, TokenTable, reserved_column};
use crate::vocabulary::{TokenId, Vocabulary};

/// How transitions lie in memory. The results are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Layout {
    /// The next state of every state and token, `[states, width]`: the fewest lookups, for small
    /// vocabularies. It is the tensor of Bumblebee's DFA processor.
    Dense,
    /// The next state of every state and token class, `[states, classes]`, and the class of every token,
    /// `[tables, width]`.
    Classes,
    /// The next state of every state and byte class, `[states, byte classes]`, and the bytes of every token,
    /// which each token walks: for tables that are too large to tabulate, and for a first mask at once.
    Walk,
}

/// Least sizes of the arrays of a table, so that other tables can take their place, or the room of an
/// [`Arena`](super::Arena).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capacity {
    /// States of all tables together, the reserved ones included.
    pub states: usize,
    /// Columns of a table, as counted by [`TokenTable::class_count`].
    pub classes: usize,
    /// Tables.
    pub tables: usize,
}

/// The sizes of the arrays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sizes {
    pub(super) layout: Layout,
    pub(super) states: usize,
    pub(super) columns: usize,
    pub(super) tables: usize,
    pub(super) width: usize,
    /// Of the layout `Walk`: different readings of the vocabulary, the symbols of all of them, and the
    /// length of a row from symbols to columns.
    pub(super) readings: usize,
    pub(super) symbols: usize,
    pub(super) alphabet: usize,
}

/// The arrays of one layout, row by row. Those that a layout does not use are empty.
pub(super) struct Arrays {
    /// `[states, columns]`
    pub(super) next: Vec<i32>,
    /// `[tables, width]`: the class of every token.
    pub(super) class: Vec<i32>,
    /// `[states]`: the table of a state.
    pub(super) owner: Vec<i32>,
    /// `[tables]`: the reading of a table.
    pub(super) reading: Vec<i32>,
    /// `[readings, width + 1]`: where the symbols of every token begin.
    pub(super) offsets: Vec<i32>,
    /// `[symbols]`
    pub(super) symbols: Vec<i32>,
    /// `[tables, alphabet]`: the column of every symbol.
    pub(super) column: Vec<i32>,
    /// `[states]`, `i32::MAX` where there is no way.
    pub(super) tokens_to_end: Vec<i32>,
}

/// The first symbol that is no byte: one for each reserved column.
const RESERVED_SYMBOL: usize = 256;

impl Sizes {
    pub(super) fn new(
        layout: Option<Layout>,
        tables: &[&TokenTable],
        states: usize,
        width: usize,
        capacity: Capacity,
    ) -> Result<Self> {
        let walked = tables.iter().position(|table| table.is_walked());
        let states = states.max(capacity.states);
        let classes = tables.iter().map(|table| table.class_count()).max().unwrap_or(0).max(capacity.classes);
        let sizes = |layout| {
            let walks = layout == Layout::Walk;
            let texts = if walks { texts(tables) } else { Vec::new() };
            let text: usize = texts.iter().map(|text| text.symbols(width)).sum();
            let tabulated = if walks { tables.iter().filter(|table| !table.is_walked()).count() } else { 0 };
            // At least one mark, so that a table that has one can take the place of one that has none.
            let marks = texts.iter().map(|text| text.count).max().unwrap_or(0).max(1);
            let bytes = RESERVED_SYMBOL + TokenTable::RESERVED_COLUMNS + marks;
            Self {
                layout,
                states,
                columns: if layout == Layout::Dense { width } else { classes },
                tables: tables.len().max(capacity.tables),
                width,
                readings: tabulated + texts.len(),
                symbols: text + tabulated * width,
                alphabet: if !walks {
                    0
                } else if tabulated > 0 {
                    bytes.max(classes)
                } else {
                    bytes
                },
            }
        };
        match (layout, walked) {
            (Some(Layout::Classes), Some(index)) => Err(Error::input(format!(
                "table {index} is walked and has no token classes: compile it with `TokenTable::tabulate`, or take `Layout::Walk`"
            ))),
            (Some(layout), _) => Ok(sizes(layout)),
            (None, Some(_)) => Ok(sizes(Layout::Walk)),
            (None, None) => {
                let (dense, classes) = (sizes(Layout::Dense), sizes(Layout::Classes));
                Ok(if dense.bytes() < classes.bytes() { dense } else { classes })
            }
        }
    }

    /// Bytes on the device.
    pub(super) fn bytes(&self) -> usize {
        self.cells().into_iter().fold(0usize, usize::saturating_add).saturating_mul(size_of::<i32>())
    }

    /// Bytes of the largest array.
    pub(super) fn largest(&self) -> usize {
        self.cells().into_iter().max().unwrap_or(0).saturating_mul(size_of::<i32>())
    }

    /// Entries of `next`, `tokens_to_end`, `class`, `owner`, `reading`, `offsets`, `symbols` and `column`.
    fn cells(&self) -> [usize; 8] {
        let owner = if self.has_owner() { self.states } else { 0 };
        let class = if self.layout == Layout::Classes { self.tables.saturating_mul(self.width) } else { 0 };
        let reading = if self.layout == Layout::Walk { self.tables } else { 0 };
        [
            self.states.saturating_mul(self.columns),
            self.states,
            class,
            owner,
            reading,
            self.readings.saturating_mul(self.width + 1),
            self.symbols,
            self.tables.saturating_mul(self.alphabet),
        ]
    }

    /// Whether lookups need the table of a state.
    pub(super) fn has_owner(&self) -> bool {
        self.layout != Layout::Dense && self.tables > 1
    }

    /// Refuses a table that is too large for its options, for the device or for `i32` indices.
    pub(super) fn check(&self, max_bytes: usize, largest_binding: Option<usize>) -> Result<()> {
        let most = max_bytes.min(i32::MAX as usize);
        if self.bytes() > most {
            return Err(Error::limit(Limit::DeviceBytes(most)));
        }
        match largest_binding {
            Some(binding) if self.largest() > binding => Err(Error::limit(Limit::Binding(binding))),
            _ => Ok(()),
        }
    }

    /// Whether arrays of `other` fit in these.
    pub(super) fn hold(&self, other: &Self) -> bool {
        self.layout == other.layout
            && self.width == other.width
            && self.states >= other.states
            && self.columns >= other.columns
            && self.tables >= other.tables
            && self.readings >= other.readings
            && self.symbols >= other.symbols
            && self.alphabet >= other.alphabet
    }

    /// The arrays of `tables`, filled up to these sizes.
    pub(super) fn arrays(&self, tables: &[&TokenTable], joined: &Joined) -> Arrays {
        let mut next = Vec::with_capacity(self.states * self.columns);
        for (table, state) in rows(tables) {
            let to = |next| joined.state(table, StateId(next)).0 as i32;
            self.row(tables[table], state, to, &mut next);
        }
        next.resize(self.states * self.columns, StateId::DEAD.0 as i32);
        let mut tokens_to_end: Vec<i32> = rows(tables)
            .map(|(table, state)| i32::try_from(tables[table].tokens_to_end(state)).unwrap_or(i32::MAX))
            .collect();
        tokens_to_end.resize(self.states, i32::MAX);
        let mut arrays = Arrays {
            next,
            class: Vec::new(),
            owner: Vec::new(),
            reading: Vec::new(),
            offsets: Vec::new(),
            symbols: Vec::new(),
            column: Vec::new(),
            tokens_to_end,
        };
        if self.has_owner() {
            arrays.owner.extend(rows(tables).map(|(table, _)| table as i32));
            arrays.owner.resize(self.states, 0);
        }
        match self.layout {
            Layout::Dense => {}
            Layout::Classes => {
                arrays.class = tables.iter().flat_map(|table| self.classes(table)).collect();
                arrays.class.resize(self.tables * self.width, TokenTable::NEVER as i32);
            }
            Layout::Walk => self.read(tables, &mut arrays),
        }
        arrays
    }

    /// Appends the row of `next` of a state of one table, where `to` says what its own states become.
    pub(super) fn row(
        &self,
        table: &TokenTable,
        state: StateId,
        to: impl Fn(u32) -> i32,
        next: &mut Vec<i32>,
    ) {
        match (self.layout, &table.parts().reading) {
            (Layout::Dense, Reading::Classes(class)) => {
                let row = table.row(state);
                next.extend(class.iter().map(|&class| to(row[class as usize])));
                pad(next, self.width - class.len(), 0);
            }
            (Layout::Dense, Reading::Bytes { .. }) => {
                let tokens = 0..table.vocabulary_len() as u32;
                next.extend(tokens.map(|id| to(table.next(state, TokenId(id)).0)));
                pad(next, self.width - table.vocabulary_len(), 0);
            }
            _ => {
                let row = table.row(state);
                next.extend(row.iter().map(|&next| to(next)));
                // Columns that a table lacks are never looked up, but for the row of `UNCONSTRAINED`, which all share.
                let fill = if state == StateId::UNCONSTRAINED { StateId::UNCONSTRAINED.0 as i32 } else { 0 };
                pad(next, self.columns - row.len(), fill);
            }
        }
    }

    /// The class of every token, `[width]`; nothing where a table has none.
    pub(super) fn classes(&self, table: &TokenTable) -> Vec<i32> {
        match &table.parts().reading {
            Reading::Bytes { .. } => Vec::new(),
            Reading::Classes(class) => {
                let mut classes: Vec<i32> = class.iter().map(|&class| class as i32).collect();
                pad(&mut classes, self.width - class.len(), TokenTable::NEVER as i32);
                classes
            }
        }
    }

    /// The column of every symbol, `[alphabet]`; nothing where there are no symbols.
    pub(super) fn columns_of(&self, table: &TokenTable) -> Vec<i32> {
        if self.layout != Layout::Walk {
            return Vec::new();
        }
        match &table.parts().reading {
            Reading::Classes(_) => (0..self.alphabet as i32).collect(),
            Reading::Bytes { column_of, marks, .. } => {
                let mut columns: Vec<i32> = column_of.iter().map(|&column| column as i32).collect();
                columns.extend(0..TokenTable::RESERVED_COLUMNS as i32);
                let count = table.class_count() as i32;
                columns.extend(count - marks.columns() as i32..count);
                let known = columns.len();
                pad(&mut columns, self.alphabet - known, 0);
                columns
            }
        }
    }

    /// Appends the offsets of a reading of one symbol each.
    fn one_each(&self, arrays: &mut Arrays) {
        let first = arrays.symbols.len() as i32;
        arrays.offsets.extend((0..=self.width as i32).map(|token| first + token));
    }

    /// Fills the arrays by which a token is read as a string of symbols.
    fn read(&self, tables: &[&TokenTable], arrays: &mut Arrays) {
        let texts = texts(tables);
        // The reading of each text, once it is there.
        let mut of_text = vec![None; texts.len()];
        let mut readings = 0;
        for table in tables {
            match &table.parts().reading {
                Reading::Classes(_) => {
                    arrays.reading.push(readings);
                    readings += 1;
                    self.one_each(arrays);
                    arrays.symbols.extend(self.classes(table));
                }
                Reading::Bytes { marks, .. } => {
                    let at = texts.iter().position(|text| text.marks == marks.tokens());
                    let at = at.expect("every walked table has one of the texts");
                    let reading = *of_text[at].get_or_insert_with(|| {
                        readings += 1;
                        texts[at].read(self.width, arrays);
                        readings - 1
                    });
                    arrays.reading.push(reading);
                }
            }
            arrays.column.extend(self.columns_of(table));
        }
        arrays.reading.resize(self.tables, 0);
        arrays.offsets.resize(self.readings * (self.width + 1), 0);
        arrays.symbols.resize(self.symbols, 0);
        arrays.column.resize(self.tables * self.alphabet, 0);
    }
}

/// Of an arena, whose first table is that of the reserved states alone, and has no room to be taken. Where tokens
/// are walked, reading 0 is that of text, and reading `i + 1` is kept for table `i`, should it be tabulated.
impl Sizes {
    pub(super) fn arena(
        layout: Option<Layout>,
        vocabulary: &Vocabulary,
        width: usize,
        capacity: Capacity,
    ) -> Self {
        let layout = layout.unwrap_or(Layout::Walk);
        let walks = layout == Layout::Walk;
        let tables = capacity.tables.saturating_add(1);
        let classes = capacity.classes.max(TokenTable::RESERVED_COLUMNS);
        let text = Text { vocabulary, marks: &[], count: 0 };
        Self {
            layout,
            states: first_of(0).saturating_add(pages_of(capacity.states).max(1).saturating_mul(PAGE)),
            columns: if layout == Layout::Dense { width } else { classes },
            tables,
            width,
            readings: if walks { tables.saturating_add(1) } else { 0 },
            symbols: if walks { tables.saturating_mul(width).saturating_add(text.symbols(width)) } else { 0 },
            alphabet: if walks { classes.max(RESERVED_SYMBOL + TokenTable::RESERVED_COLUMNS) } else { 0 },
        }
    }

    /// The pages of an arena.
    pub(super) fn pages(&self) -> usize {
        pages_of(self.states)
    }

    /// The arrays of an arena without tables but the first, `free`.
    pub(super) fn vacant(&self, vocabulary: &Vocabulary, free: &TokenTable) -> Arrays {
        let mut arrays = self.arrays(&[free], &Joined::new(&[free]));
        if self.layout == Layout::Walk {
            (arrays.offsets, arrays.symbols) = (Vec::new(), Vec::new());
            Text { vocabulary, marks: &[], count: 0 }.read(self.width, &mut arrays);
            for table in 0..self.tables {
                self.one_each(&mut arrays);
                let symbols = if table == 0 { self.classes(free) } else { vec![0; self.width] };
                arrays.symbols.extend(symbols);
            }
            arrays.reading[0] = self.reading(0, free);
        }
        arrays
    }

    /// Of an arena: how table `index` reads tokens.
    pub(super) fn reading(&self, index: usize, table: &TokenTable) -> i32 {
        if table.is_walked() { 0 } else { index as i32 + 1 }
    }

    /// Of an arena: where the symbols of table `index` begin.
    pub(super) fn symbols_of(&self, index: usize) -> usize {
        self.symbols - (self.tables - index) * self.width
    }
}

/// A way of reading walked text: tables that have different marks read the same tokens in different ways.
struct Text<'a> {
    vocabulary: &'a Vocabulary,
    /// A token and its mark.
    marks: &'a [(TokenId, u32)],
    /// Number of marks.
    count: usize,
}

/// Those of `tables`, each once.
fn texts<'a>(tables: &[&'a TokenTable]) -> Vec<Text<'a>> {
    let mut texts: Vec<Text> = Vec::new();
    for table in tables {
        if let Reading::Bytes { vocabulary, marks, .. } = &table.parts().reading
            && !texts.iter().any(|text| text.marks == marks.tokens())
        {
            texts.push(Text { vocabulary, marks: marks.tokens(), count: marks.columns() });
        }
    }
    texts
}

impl Text<'_> {
    /// Room for the symbols of `width` tokens, whichever of them are marks.
    fn symbols(&self, width: usize) -> usize {
        // Those of text, and one for every other id.
        let (tokens, bytes) = self.vocabulary.text_bytes();
        bytes + width - tokens
    }

    /// Appends where the symbols of every token begin, and the symbols.
    fn read(&self, width: usize, arrays: &mut Arrays) {
        for id in (0..width as u32).map(TokenId) {
            arrays.offsets.push(arrays.symbols.len() as i32);
            let mark = self.marks.iter().find(|mark| mark.0 == id);
            match (mark, self.vocabulary.bytes(id)) {
                (Some(&(_, mark)), _) => {
                    let first = RESERVED_SYMBOL + TokenTable::RESERVED_COLUMNS;
                    arrays.symbols.push(first as i32 + mark as i32);
                }
                (None, Some(bytes)) => arrays.symbols.extend(bytes.iter().map(|&byte| i32::from(byte))),
                (None, None) => {
                    let column = reserved_column(self.vocabulary, id);
                    arrays.symbols.push(RESERVED_SYMBOL as i32 + column as i32);
                }
            }
        }
        arrays.offsets.push(arrays.symbols.len() as i32);
    }
}

fn pad(values: &mut Vec<i32>, count: usize, value: i32) {
    values.extend(std::iter::repeat_n(value, count));
}

/// The table and the own state of every joined state, in order.
fn rows<'a>(tables: &'a [&TokenTable]) -> impl Iterator<Item = (usize, StateId)> + 'a {
    let reserved = (0..StateId::RESERVED).map(|state| (0, StateId(state)));
    let own = tables.iter().enumerate().flat_map(|(index, table)| {
        (StateId::RESERVED..table.state_count() as u32).map(move |state| (index, StateId(state)))
    });
    reserved.chain(own)
}
