//! The sizes of the arrays of a table on a device.

use super::image::Array;
use super::options::{Capacity, Layout};
use super::placement::{PAGE, first_of, pages_of};
use super::text::{Text, texts};
use crate::error::{Error, Limit, Result};
use crate::table::TokenTable;
use crate::table::symbols::FIRST_SPECIAL;
use crate::vocabulary::Vocabulary;

/// What the shapes of all [arrays](Array) follow from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sizes {
    pub(crate) layout: Layout,
    pub(crate) states: usize,
    pub(crate) columns: usize,
    pub(crate) tables: usize,
    pub(crate) width: usize,
    /// Of [`Layout::Walk`]: the number of ways in which text is read, the symbols of all of them, and the number of
    /// different symbols.
    pub(super) texts: usize,
    pub(super) symbols: usize,
    pub(crate) alphabet: usize,
    /// Of tables with calls: the most outcomes of a piece, and the most frames of a stack; else 0.
    pub(crate) ends: usize,
    pub(crate) depth: usize,
    /// The most frames that one token adds to a stack at any time, or more where no kernel asks.
    pub(crate) pushes: usize,
    /// Of tables with calls in [`Layout::Classes`]: the most token classes; else 0.
    pub(crate) landings: usize,
}

impl Sizes {
    pub(super) fn new(
        layout: Option<Layout>,
        tables: &[&TokenTable],
        states: usize,
        width: usize,
        capacity: Capacity,
        runs_kernels: bool,
    ) -> Result<Self> {
        let walked = tables.iter().position(|table| table.is_walked());
        let states = states.max(capacity.states);
        // Only tables that are walked have calls.
        let capacity = if walked.is_some() { capacity } else { Capacity { outcomes: 0, ..capacity } };
        let (ends, depth, pushes) = stack_of(tables, layout, capacity, runs_kernels)?;
        // The first table that is walked and has no classes of tokens.
        let unclassed = tables.iter().position(|table| table.is_walked() && !table.has_token_classes());
        let classes = tables.iter().map(|table| table.class_count()).max().unwrap_or(0).max(capacity.classes);
        let sizes = |layout| {
            let walks = layout == Layout::Walk || ends > 0;
            let texts = if walks { texts(tables) } else { Vec::new() };
            let landings = tables.iter().filter_map(|table| table.parts().landings.as_ref());
            // At least one token that is read as itself, so that a table that has one can take the place of one
            // that has none.
            let tokens = texts.iter().map(|text| text.own_symbols()).max().unwrap_or(0).max(1);
            Self {
                layout,
                states,
                columns: if layout == Layout::Dense { width } else { classes },
                tables: tables.len().max(capacity.tables),
                width,
                texts: texts.len(),
                symbols: texts.iter().map(|text| text.symbols(width)).sum(),
                alphabet: if walks { FIRST_SPECIAL as usize + tokens } else { 0 },
                ends,
                depth,
                pushes,
                landings: match layout {
                    Layout::Classes => landings.map(|landings| landings.classes).max().unwrap_or(0),
                    _ => 0,
                },
            }
        };
        match (layout, unclassed) {
            (Some(Layout::Classes), Some(index)) => {
                let way = match tables[index].outcomes() {
                    0 => "compile it with `TokenTable::tabulate`",
                    _ => "add them by `TokenTable::with_token_classes`",
                };
                Err(Error::input(format!(
                    "table {index} is walked and has no token classes: {way}, or take `Layout::Walk`"
                )))
            }
            (Some(layout), _) => Ok(sizes(layout)),
            (None, Some(_)) => Ok(sizes(Layout::Walk)),
            (None, None) if ends > 0 => Ok(sizes(Layout::Classes)),
            (None, None) => {
                let (dense, classes) = (sizes(Layout::Dense), sizes(Layout::Classes));
                Ok(if dense.bytes() < classes.bytes() { dense } else { classes })
            }
        }
    }

    /// Of an arena, whose first table is that of the reserved states alone.
    pub(super) fn arena(
        layout: Option<Layout>,
        vocabulary: &Vocabulary,
        width: usize,
        capacity: Capacity,
    ) -> Self {
        let layout = layout.unwrap_or(Layout::Walk);
        let walks = layout == Layout::Walk;
        let classes = capacity.classes.max(TokenTable::RESERVED_COLUMNS);
        Self {
            layout,
            states: first_of(0).saturating_add(pages_of(capacity.states).max(1).saturating_mul(PAGE)),
            columns: if layout == Layout::Dense { width } else { classes },
            tables: capacity.tables.saturating_add(1),
            width,
            texts: usize::from(walks),
            symbols: if walks { Text::of(vocabulary).symbols(width) } else { 0 },
            alphabet: if walks { FIRST_SPECIAL as usize } else { 0 },
            ends: if walks { capacity.outcomes } else { 0 },
            depth: if walks && capacity.outcomes > 0 { capacity.frames } else { 0 },
            pushes: if walks && capacity.outcomes > 0 { capacity.frames } else { 0 },
            landings: 0,
        }
    }

    /// The numbers of a frame of a stack; 0 where there is no stack.
    pub(crate) fn frame(&self) -> usize {
        if self.ends > 0 { 1 + self.ends } else { 0 }
    }

    /// The numbers of a position.
    pub(crate) fn numbers(&self) -> usize {
        if self.ends > 0 { 3 + self.depth * self.frame() } else { 2 }
    }

    /// The pages of an arena.
    pub(super) fn pages(&self) -> usize {
        pages_of(self.states)
    }

    /// Whether tokens are followed symbol by symbol, some of them at least.
    pub(crate) fn walks(&self) -> bool {
        self.layout == Layout::Walk || self.ends > 0
    }

    /// Whether lookups need the table of a state.
    pub(crate) fn has_owner(&self) -> bool {
        self.layout != Layout::Dense && self.tables > 1
    }

    /// Bytes on the device.
    pub(super) fn bytes(&self) -> usize {
        Array::offset(self, Array::ALL.len()).saturating_mul(size_of::<i32>())
    }

    /// Refuses a table that is too large for its options, for the device or for `i32` indices.
    pub(super) fn check(&self, max_bytes: usize, largest_binding: Option<usize>) -> Result<()> {
        let most = max_bytes.min(i32::MAX as usize);
        if self.bytes() > most {
            return Err(Error::limit(Limit::DeviceBytes(most)));
        }
        match largest_binding {
            Some(binding) if self.bytes() > binding => Err(Error::limit(Limit::Binding(binding))),
            _ => Ok(()),
        }
    }

    /// Refuses a stack that is too large for the memory that the kernels have for a row and for a token.
    #[cfg(feature = "cube")]
    pub(super) fn check_stack(&self) -> Result<()> {
        // WebGPU promises 16 KiB that a cube shares, of which the choice of a token takes 2.
        const ROW: usize = (14 << 10) / size_of::<i32>();
        // What one unit holds by itself lies in slow memory, if it is much.
        const TOKEN: usize = 2048;
        if self.numbers() <= ROW && self.pushes * self.frame() <= TOKEN {
            return Ok(());
        }
        Err(Error::input(format!(
            "a stack of {} frames of {} outcomes is too large for a kernel: compile with fewer `Limits::frames`, or take `Kernels::BuiltIn`",
            self.depth, self.ends
        )))
    }

    /// Whether arrays of `other` fit in these.
    pub(super) fn hold(&self, other: &Self) -> bool {
        self.layout == other.layout
            && self.width == other.width
            && self.states >= other.states
            && self.columns >= other.columns
            && self.tables >= other.tables
            && self.texts >= other.texts
            && self.symbols >= other.symbols
            && self.alphabet >= other.alphabet
            && self.ends >= other.ends
            && (other.ends == 0 || self.depth == other.depth)
            && self.pushes >= other.pushes
            && self.landings >= other.landings
    }
}

/// The most outcomes of the tables, the depth of their stacks, and the most frames that a token adds.
fn stack_of(
    tables: &[&TokenTable],
    layout: Option<Layout>,
    capacity: Capacity,
    runs_kernels: bool,
) -> Result<(usize, usize, usize)> {
    let calls =
        tables.iter().enumerate().filter_map(|(index, table)| Some((index, table.parts().calls.as_ref()?)));
    let calls: Vec<_> = calls.collect();
    let Some((index, first)) = calls.first() else {
        let depth = if capacity.outcomes > 0 { capacity.frames } else { 0 };
        return Ok((capacity.outcomes, depth, depth));
    };
    if layout == Some(Layout::Dense) {
        return Err(Error::input(format!("table {index} has calls and is walked: take `Layout::Walk`")));
    }
    let depth = if capacity.outcomes > 0 { capacity.frames } else { first.depth as usize };
    if let Some((index, other)) = calls.iter().find(|(_, calls)| calls.depth as usize != depth) {
        return Err(Error::input(format!(
            "table {index} has a stack of {} frames, the others of {depth}: compile all with the same `Limits::frames`",
            other.depth
        )));
    }
    let ends = calls.iter().map(|(_, calls)| calls.ends).max().unwrap_or(0);
    // Tables that are to take their place may have longer tokens of brackets.
    let pushes = if capacity.outcomes > 0 || !runs_kernels {
        depth
    } else {
        tables.iter().map(|table| table.parts().pushes() as usize).max().unwrap_or(0)
    };
    Ok((ends.max(capacity.outcomes), depth, pushes))
}
