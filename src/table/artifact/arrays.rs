//! The arrays of an artefact, each a tensor of the file.
//!
//! Each array is declared once, in [`StoredArray::declare`]: its name, type and shape, what a table writes into it and
//! what its entries number. Writing, reading, the lengths that must agree and the bounds of all entries follow from
//! that. A further array is a variant of [`StoredArray`] and what is declared of it; what else must hold of its entries
//! is a rule in [`check`](super::check).

use std::borrow::Cow;
use std::fmt;

use safetensors::tensor::Dtype;

use super::broken;
use crate::error::Result;
use crate::table::symbols::symbols_of;
use crate::table::{TableParts, TokenReading};
use crate::vocabulary::TokenId;

/// The distance of a state from which there is no way to the end, as it is stored.
pub(super) const NO_WAY: u32 = i32::MAX as u32;

/// How tokens are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// One column each.
    Tabulated,
    /// The columns of their symbols.
    Walked,
    /// The columns of their symbols, with a stack.
    Called,
}

/// The arrays, those of either form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StoredArray {
    /// The state after each column.
    Next,
    /// The least number of tokens to the end, [`NO_WAY`] where there is none.
    TokensToEnd,
    /// The column of every token.
    Class,
    /// The column of every symbol; those of special tokens are the last columns.
    Column,
    /// Where the symbols of every token begin, and where the last ones end.
    Offsets,
    /// The symbols of all tokens.
    Symbols,
    /// What each state does to the stack: nothing (0); or it is a call, with the state that it enters, then those that it returns
    /// to by outcome; or it is a RETURN, with −1 minus its outcome.
    Jumps,
}

/// What the length of an array counts, and what its entries number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dimension {
    States,
    Columns,
    Tokens,
    /// One more than the tokens.
    TokenEnds,
    Alphabet,
    /// The symbols of all tokens together.
    Symbols,
    /// One more than the outcomes of a piece, at most.
    Jumps,
}

/// What is known of an array.
pub(super) struct Declared {
    pub(super) name: &'static str,
    /// The forms that have it.
    pub(super) forms: &'static [Form],
    pub(super) element: Element,
    pub(super) shape: &'static [Dimension],
    /// What the entries number, so that each is below its size.
    pub(super) entries: Option<Dimension>,
    /// What a table of the form writes into it.
    pub(super) values: for<'a> fn(&'a TableParts) -> Cow<'a, [u32]>,
}

impl StoredArray {
    pub(super) const ALL: [Self; 7] =
        [Self::Next, Self::TokensToEnd, Self::Class, Self::Column, Self::Offsets, Self::Symbols, Self::Jumps];

    pub(super) fn declare(self) -> Declared {
        use Dimension::{Alphabet, Columns, Jumps, States, Symbols, TokenEnds, Tokens};
        use Element::{I32, U16};
        use Form::{Called, Tabulated, Walked};
        match self {
            Self::Next => Declared {
                name: "next",
                forms: &Form::ALL,
                element: I32,
                shape: &[States, Columns],
                entries: Some(States),
                values: |parts| parts.next.all(),
            },
            Self::TokensToEnd => Declared {
                name: "tokens_to_end",
                forms: &[Tabulated, Walked],
                element: I32,
                shape: &[States],
                entries: None,
                values: |parts| parts.tokens_to_end.iter().map(|&tokens| tokens.min(NO_WAY)).collect(),
            },
            Self::Class => Declared {
                name: "class",
                forms: &[Tabulated],
                element: I32,
                shape: &[Tokens],
                entries: Some(Columns),
                values: classes,
            },
            Self::Column => Declared {
                name: "column",
                forms: &[Walked, Called],
                element: I32,
                shape: &[Alphabet],
                entries: Some(Columns),
                values: |parts| parts.symbol_columns().into(),
            },
            Self::Offsets => Declared {
                name: "offsets",
                forms: &[Walked, Called],
                element: I32,
                shape: &[TokenEnds],
                entries: None,
                values: offsets,
            },
            Self::Symbols => Declared {
                name: "symbols",
                forms: &[Walked, Called],
                element: U16,
                shape: &[Symbols],
                entries: Some(Alphabet),
                values: symbols,
            },
            Self::Jumps => Declared {
                name: "jumps",
                forms: &[Called],
                element: I32,
                shape: &[States, Jumps],
                entries: None,
                values: jumps,
            },
        }
    }

    /// The arrays of a form.
    pub(super) fn of(form: Form) -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(move |array| array.declare().forms.contains(&form))
    }
}

fn classes(parts: &TableParts) -> Cow<'_, [u32]> {
    match &parts.reading {
        TokenReading::Classes(class) => class.iter().collect(),
        TokenReading::Bytes { .. } => Cow::default(),
    }
}

/// Negative numbers as their bits.
fn jumps(parts: &TableParts) -> Cow<'_, [u32]> {
    let calls = parts.calls.as_ref();
    calls.map_or_else(Cow::default, |calls| calls.jumps.iter().map(|&to| to.cast_unsigned()).collect())
}

fn offsets(parts: &TableParts) -> Cow<'_, [u32]> {
    let mut offsets = vec![0];
    each_token(parts, |symbols| {
        let begin = offsets.last().copied().unwrap_or_default();
        offsets.push(begin + symbols.count() as u32);
    });
    offsets.into()
}

fn symbols(parts: &TableParts) -> Cow<'_, [u32]> {
    let mut all = Vec::new();
    each_token(parts, |symbols| all.extend(symbols));
    all.into()
}

/// Calls `found` with the symbols of every token of a walked table, in order.
fn each_token(parts: &TableParts, mut found: impl FnMut(&mut dyn Iterator<Item = u32>)) {
    if let TokenReading::Bytes { vocabulary, special, .. } = &parts.reading {
        for token in (0..vocabulary.len() as u32).map(TokenId) {
            found(&mut symbols_of(vocabulary, special.tokens(), token));
        }
    }
}

/// The type of an entry in the file, little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Element {
    I32,
    U16,
}

impl Element {
    pub(super) fn dtype(self) -> Dtype {
        match self {
            Self::I32 => Dtype::I32,
            Self::U16 => Dtype::U16,
        }
    }

    pub(super) fn encode(self, values: &[u32]) -> Vec<u8> {
        match self {
            Self::I32 => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
            Self::U16 => values.iter().flat_map(|&value| (value as u16).to_le_bytes()).collect(),
        }
    }

    /// The entries; negative ones are read as numbers that are too large for anything.
    pub(super) fn decode(self, bytes: &[u8]) -> Vec<u32> {
        match self {
            Self::I32 => bytes.as_chunks().0.iter().map(|&value| u32::from_le_bytes(value)).collect(),
            Self::U16 => bytes.as_chunks().0.iter().map(|&value| u16::from_le_bytes(value).into()).collect(),
        }
    }
}

impl Form {
    pub(super) const ALL: [Self; 3] = [Self::Tabulated, Self::Walked, Self::Called];

    /// The version of the format that has it.
    pub(super) fn version(self) -> &'static str {
        match self {
            Self::Tabulated | Self::Walked => "1",
            Self::Called => "2",
        }
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tabulated => "tabulated",
            Self::Walked => "walked",
            Self::Called => "called",
        })
    }
}

impl Dimension {
    const COUNT: usize = 7;

    /// One of the things that are counted, and several of them.
    pub(super) fn names(self) -> [&'static str; 2] {
        match self {
            Self::States => ["state", "states"],
            Self::Columns => ["column", "columns"],
            Self::Tokens => ["token", "tokens"],
            Self::TokenEnds => ["offset", "offsets"],
            Self::Alphabet => ["symbol", "symbols"],
            Self::Symbols => ["place", "places"],
            Self::Jumps => ["number", "numbers"],
        }
    }
}

/// The sizes of the dimensions that the arrays of a form have.
#[derive(Clone, Copy, Default)]
pub(super) struct Sizes([Option<usize>; Dimension::COUNT]);

impl Sizes {
    /// The size of a dimension; 0 where no array has it.
    pub(super) fn of(&self, dimension: Dimension) -> usize {
        self.0[dimension as usize].unwrap_or_default()
    }

    pub(super) fn with(mut self, dimension: Dimension, size: usize) -> Self {
        self.0[dimension as usize] = Some(size);
        self
    }

    /// Takes the shape of an array, which must agree with those that were taken before.
    pub(super) fn take(&mut self, array: StoredArray, shape: &[usize]) -> Result<()> {
        let Declared { name, shape: dimensions, .. } = array.declare();
        if shape.len() != dimensions.len() {
            let names =
                dimensions.iter().map(|dimension| dimension.names()[1]).collect::<Vec<_>>().join(", ");
            return Err(broken(name, format!("of the shape {shape:?}, not [{names}]")));
        }
        for (&size, &dimension) in shape.iter().zip(dimensions) {
            let known = *self.0[dimension as usize].get_or_insert(size);
            if size != known {
                return Err(broken(name, format!("{size} of {known} {}", dimension.names()[1])));
            }
        }
        Ok(())
    }

    /// The shape of an array of so many entries, of which all dimensions but the first are known.
    pub(super) fn shape_of(&self, array: StoredArray, len: usize) -> Vec<usize> {
        let mut shape = self.shape(array);
        let row: usize = shape[1..].iter().product();
        shape[0] = len / row.max(1);
        shape
    }

    /// The shape of an array.
    pub(super) fn shape(&self, array: StoredArray) -> Vec<usize> {
        array.declare().shape.iter().map(|&dimension| self.of(dimension)).collect()
    }
}
