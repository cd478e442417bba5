//! The arrays of an artifact, each a tensor of the file.
//!
//! Each array is declared once, in [`StoredArray::declare`]: its name, type and shape, the values
//! written by a compiled constraint, and the dimension indexed by its entries. Writing, reading,
//! matching lengths and the bounds of all entries follow from the declaration. A new array needs a
//! variant of [`StoredArray`] and its declaration; further conditions on its entries are rules in
//! [`check`](super::check).
//!
//! The arrays on a device have another declaration, in `burn-dfa`: a file holds one constraint with
//! its own state numbers, in a documented format that other programs read, and a reader checks its
//! types, shapes and bounds. A device holds several constraints with renumbered states, in a layout
//! that follows the kernels.

use std::borrow::Cow;
use std::fmt;

use safetensors::tensor::Dtype;

use super::error::broken;
use crate::{ConstraintParts, TokenReading};
use burn_dfa_common::Result;

/// The stored distance of a state without a path to the end.
pub(super) const NO_PATH: u32 = i32::MAX as u32;

/// How tokens are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// One column each.
    TokenLevel,
    /// The columns of their symbols.
    ByteLevel,
    /// The columns of their symbols, with a stack.
    Pushdown,
}

/// The arrays of all forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StoredArray {
    /// The next state by column.
    Next,
    /// The number of tokens to the end, [`NO_PATH`] if no path exists.
    TokensToEnd,
    /// The [bound](ConstraintParts::bound_to_end) on the number of tokens to the end.
    BytesToEnd,
    /// The number of tokens to each exit.
    TokensToExit,
    /// The number of frames that the path to each exit adds to the stack.
    FramesToExit,
    /// The column of every token.
    Class,
    /// The column of every symbol; special tokens have the last columns.
    Column,
    /// The offset of each token's first symbol, then the end of the last token's symbols.
    Offsets,
    /// The symbols of all tokens.
    Symbols,
    /// The effect of each state on the stack: none (0); for a call, the entered state, then the
    /// return state of each exit; for a RETURN, −1 minus its exit.
    Jumps,
    /// The least number of symbols of a legal token under `ForcedText::Longest`. Absent under the
    /// other rule.
    Shortest,
}

/// The unit of an array's length, and of its entries.
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
    /// One more than the maximum number of exits of a procedure.
    Jumps,
    /// The maximum number of exits of a procedure.
    Exits,
}

/// The declaration of an array.
pub(super) struct Declared {
    pub(super) name: &'static str,
    /// The forms with the array.
    pub(super) forms: &'static [Form],
    pub(super) element: Element,
    pub(super) shape: &'static [Dimension],
    /// The dimension indexed by the entries, an upper bound for each entry.
    pub(super) entries: Option<Dimension>,
    /// The values written by a compiled constraint of the form.
    pub(super) values: for<'a> fn(&'a ConstraintParts) -> Cow<'a, [u32]>,
}

impl StoredArray {
    pub(super) const ALL: [Self; 11] = [
        Self::Next,
        Self::TokensToEnd,
        Self::BytesToEnd,
        Self::TokensToExit,
        Self::FramesToExit,
        Self::Class,
        Self::Column,
        Self::Offsets,
        Self::Symbols,
        Self::Jumps,
        Self::Shortest,
    ];

    pub(super) fn declare(self) -> Declared {
        use Dimension::{Alphabet, Columns, Exits, Jumps, States, Symbols, TokenEnds, Tokens};
        use Element::{I32, U16};
        use Form::{ByteLevel, Pushdown, TokenLevel};
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
                forms: &[TokenLevel, ByteLevel],
                element: I32,
                shape: &[States],
                entries: None,
                values: |parts| stored_distances(&parts.all_distances()),
            },
            Self::BytesToEnd => Declared {
                name: "bytes_to_end",
                forms: &[ByteLevel],
                element: I32,
                shape: &[States],
                entries: None,
                values: |parts| stored_distances(&parts.bound_to_end),
            },
            Self::TokensToExit => Declared {
                name: "tokens_to_exit",
                forms: &[Pushdown],
                element: I32,
                shape: &[States, Exits],
                entries: None,
                values: |parts| stored_distances(&parts.all_distances()),
            },
            Self::FramesToExit => Declared {
                name: "frames_to_exit",
                forms: &[Pushdown],
                element: I32,
                shape: &[States, Exits],
                entries: None,
                values: |parts| {
                    parts.calls.as_ref().map_or_else(Cow::default, |calls| (&*calls.frames).into())
                },
            },
            Self::Class => Declared {
                name: "class",
                forms: &[TokenLevel],
                element: I32,
                shape: &[Tokens],
                entries: Some(Columns),
                values: classes,
            },
            Self::Column => Declared {
                name: "column",
                forms: &[ByteLevel, Pushdown],
                element: I32,
                shape: &[Alphabet],
                entries: Some(Columns),
                values: |parts| parts.symbol_columns().into(),
            },
            Self::Offsets => Declared {
                name: "offsets",
                forms: &[ByteLevel, Pushdown],
                element: I32,
                shape: &[TokenEnds],
                entries: None,
                values: offsets,
            },
            Self::Symbols => Declared {
                name: "symbols",
                forms: &[ByteLevel, Pushdown],
                element: U16,
                shape: &[Symbols],
                entries: Some(Alphabet),
                values: symbols,
            },
            Self::Jumps => Declared {
                name: "jumps",
                forms: &[Pushdown],
                element: I32,
                shape: &[States, Jumps],
                entries: None,
                values: jumps,
            },
            Self::Shortest => Declared {
                name: "shortest",
                forms: &[ByteLevel, Pushdown],
                element: I32,
                shape: &[States],
                entries: None,
                values: |parts| parts.all_shortest().into(),
            },
        }
    }

    /// The arrays of a form, with [`Shortest`](Self::Shortest) or without.
    pub(super) fn of(form: Form, has_shortest: bool) -> impl Iterator<Item = Self> {
        let is_there = move |array: &Self| has_shortest || *array != Self::Shortest;
        Self::ALL.into_iter().filter(move |array| array.declare().forms.contains(&form)).filter(is_there)
    }
}

/// Distances in file format.
fn stored_distances(distances: &[u32]) -> Cow<'static, [u32]> {
    distances.iter().map(|&distance| distance.min(NO_PATH)).collect()
}

fn classes(parts: &ConstraintParts) -> Cow<'_, [u32]> {
    match &parts.reading {
        TokenReading::Classes(class) => class.iter().collect(),
        TokenReading::Bytes { .. } => Cow::default(),
    }
}

/// Negative numbers as their bits.
fn jumps(parts: &ConstraintParts) -> Cow<'_, [u32]> {
    let calls = parts.calls.as_ref();
    calls.map_or_else(Cow::default, |calls| calls.jumps.iter().map(|&to| to.cast_unsigned()).collect())
}

fn offsets(parts: &ConstraintParts) -> Cow<'_, [u32]> {
    let symbols = parts.token_symbols();
    symbols.map_or_else(Cow::default, |symbols| symbols.offsets(parts.vocabulary_len, 0).collect())
}

fn symbols(parts: &ConstraintParts) -> Cow<'_, [u32]> {
    let symbols = parts.token_symbols();
    symbols.map_or_else(Cow::default, |symbols| symbols.all(parts.vocabulary_len).collect())
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

    /// The entries; negative numbers decode to numbers beyond every valid bound.
    pub(super) fn decode(self, bytes: &[u8]) -> Vec<u32> {
        match self {
            Self::I32 => bytes.as_chunks().0.iter().map(|&value| u32::from_le_bytes(value)).collect(),
            Self::U16 => bytes.as_chunks().0.iter().map(|&value| u16::from_le_bytes(value).into()).collect(),
        }
    }
}

impl Form {
    pub(super) const ALL: [Self; 3] = [Self::TokenLevel, Self::ByteLevel, Self::Pushdown];
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TokenLevel => "token_level",
            Self::ByteLevel => "byte_level",
            Self::Pushdown => "pushdown",
        })
    }
}

impl Dimension {
    const COUNT: usize = 8;

    /// The singular and plural of the counted unit.
    pub(super) fn names(self) -> [&'static str; 2] {
        match self {
            Self::States => ["state", "states"],
            Self::Columns => ["column", "columns"],
            Self::Tokens => ["token", "tokens"],
            Self::TokenEnds => ["offset", "offsets"],
            Self::Alphabet => ["symbol", "symbols"],
            Self::Symbols => ["index", "indices"],
            Self::Jumps => ["number", "numbers"],
            Self::Exits => ["exit", "exits"],
        }
    }
}

/// The sizes of the dimensions of a form's arrays.
#[derive(Clone, Copy, Default)]
pub(super) struct Sizes([Option<usize>; Dimension::COUNT]);

impl Sizes {
    /// The size of a dimension; 0 if no array has it.
    pub(super) fn of(&self, dimension: Dimension) -> usize {
        self.0[dimension as usize].unwrap_or_default()
    }

    pub(super) fn with(mut self, dimension: Dimension, size: usize) -> Self {
        self.0[dimension as usize] = Some(size);
        self
    }

    /// Records the shape of an array, which must agree with earlier arrays.
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

    /// The shape of an array of `len` entries, with all dimensions but the first known.
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
