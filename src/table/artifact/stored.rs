//! The values of all arrays of an artefact, from a table or from a file.

use std::borrow::Cow;
use std::ops::Index;

use super::arrays::{Declared, Dimension, Form, NO_WAY, Sizes, StoredArray};
use super::broken;
use super::container::Container;
use crate::error::Result;
use crate::limits::Meter;
use crate::table::rows::TableRows;
use crate::table::symbols::FIRST_SPECIAL;
use crate::table::{Alphabet, SpecialTokens, StateId, TableParts, TokenReading, TokenTable};
use crate::vocabulary::{Fingerprint, TokenId, Vocabulary};

/// A table as it is stored: indexed by [`StoredArray`], it gives the entries as they are in the file.
pub(super) struct StoredTable<'a> {
    pub(super) form: Form,
    pub(super) start: StateId,
    /// The frames of a stack; 0 where there is none.
    pub(super) frames: usize,
    pub(super) sizes: Sizes,
    /// By array; nothing in those of the other form.
    values: [Cow<'a, [u32]>; StoredArray::ALL.len()],
}

impl Index<StoredArray> for StoredTable<'_> {
    type Output = [u32];

    fn index(&self, array: StoredArray) -> &[u32] {
        &self.values[array as usize]
    }
}

impl<'a> StoredTable<'a> {
    /// The arrays of a table.
    pub(super) fn of(parts: &'a TableParts) -> Result<Self> {
        let form = match parts.reading {
            TokenReading::Classes(_) => Form::Tabulated,
            TokenReading::Bytes { .. } if parts.calls.is_some() => Form::Called,
            TokenReading::Bytes { .. } => Form::Walked,
        };
        let (frames, jumps) =
            parts.calls.as_ref().map_or((0, 0), |calls| (calls.depth as usize, calls.frame()));
        let mut sizes =
            Sizes::default().with(Dimension::Columns, parts.columns()).with(Dimension::Jumps, jumps);
        let mut stored = Self { form, start: parts.start, frames, sizes, values: Default::default() };
        for array in StoredArray::of(form) {
            let values = (array.declare().values)(parts);
            sizes.take(array, &sizes.shape_of(array, values.len()))?;
            stored.values[array as usize] = values;
        }
        Ok(Self { sizes, ..stored })
    }

    /// The arrays of a file of this form, which are of the type and shape that is declared of them.
    pub(super) fn read(
        container: &Container,
        form: Form,
        (start, frames): (StateId, usize),
        meter: &Meter,
    ) -> Result<Self> {
        let names: Vec<_> = StoredArray::of(form).map(|array| array.declare().name).collect();
        if let Some(name) = container.tensors.keys().find(|name| !names.contains(&&***name)) {
            return Err(broken(name, format!("not a tensor of a {form} table")));
        }
        let mut sizes = Sizes::default();
        let mut data = [&[][..]; StoredArray::ALL.len()];
        for array in StoredArray::of(form) {
            let Declared { name, element, .. } = array.declare();
            let view = container.tensors.get(name).ok_or_else(|| broken(name, "it is missing"))?;
            if view.dtype != element.dtype() {
                return Err(broken(name, format!("of {}, not {}", view.dtype, element.dtype())));
            }
            sizes.take(array, &view.shape)?;
            data[array as usize] = view.data;
        }
        meter.states(sizes.of(Dimension::States))?;
        let values =
            StoredArray::ALL.map(|array| array.declare().element.decode(data[array as usize]).into());
        Ok(Self { form, start, frames, sizes, values })
    }

    /// The same, without a copy.
    pub(super) fn borrowed(&self) -> StoredTable<'_> {
        StoredTable { values: self.values.each_ref().map(|values| Cow::Borrowed(&**values)), ..*self }
    }

    /// The table of checked arrays; what is plain is not found yet, nor what the states do to the stack.
    pub(super) fn into_parts(self, vocabulary: &Vocabulary) -> TableParts {
        self.into_parts_of(vocabulary.fingerprint(), vocabulary)
    }

    /// The same of a vocabulary with this fingerprint, which itself is looked at only where tokens are read as text.
    pub(super) fn into_parts_of(mut self, fingerprint: Fingerprint, vocabulary: &Vocabulary) -> TableParts {
        let vocabulary_len = self.tokens();
        let reading = match self.form {
            Form::Tabulated => TokenReading::Classes(self.take(StoredArray::Class).into()),
            Form::Walked | Form::Called => {
                let column_of = std::array::from_fn(|byte| self[StoredArray::Column][byte]);
                TokenReading::Bytes {
                    alphabet: Alphabet::new(&column_of).into(),
                    column_of: Box::new(column_of),
                    vocabulary: vocabulary.clone(),
                    special: self.special_tokens(),
                }
            }
        };
        let mut tokens_to_end = self.take(StoredArray::TokensToEnd);
        tokens_to_end.iter_mut().filter(|tokens| **tokens == NO_WAY).for_each(|tokens| *tokens = u32::MAX);
        TableParts {
            next: TableRows::whole(self.take(StoredArray::Next), self.columns()),
            reading,
            tokens_to_end,
            calls: None,
            landings: None,
            class_tokens: Default::default(),
            start: self.start,
            vocabulary_len,
            fingerprint,
        }
    }

    fn take(&mut self, array: StoredArray) -> Vec<u32> {
        std::mem::take(&mut self.values[array as usize]).into_owned()
    }

    /// The special tokens that have a symbol of their own.
    fn special_tokens(&self) -> SpecialTokens {
        let first = self.byte_columns().end;
        let special = (0..self.tokens() as u32).map(TokenId).filter_map(|token| {
            let symbol = self.symbols_of(token).first()?;
            Some((token, symbol.checked_sub(FIRST_SPECIAL)?))
        });
        SpecialTokens::of_columns(first, self.columns() - first, special.collect())
    }

    pub(super) fn states(&self) -> usize {
        self.sizes.of(Dimension::States)
    }

    pub(super) fn columns(&self) -> usize {
        self.sizes.of(Dimension::Columns)
    }

    /// The number of tokens.
    pub(super) fn tokens(&self) -> usize {
        match self.form {
            Form::Tabulated => self.sizes.of(Dimension::Tokens),
            Form::Walked | Form::Called => self.sizes.of(Dimension::TokenEnds).saturating_sub(1),
        }
    }

    /// The row of every state.
    pub(super) fn rows(&self) -> impl Iterator<Item = &[u32]> {
        self[StoredArray::Next].chunks_exact(self.columns())
    }

    /// The symbols of a token in a checked walked table.
    pub(super) fn symbols_of(&self, token: TokenId) -> &[u32] {
        let [begin, end] = [0, 1].map(|more| self[StoredArray::Offsets][token.index() + more] as usize);
        &self[StoredArray::Symbols][begin..end]
    }

    /// The columns of bytes; none where the table is tabulated.
    pub(super) fn byte_columns(&self) -> std::ops::Range<usize> {
        let first = TokenTable::RESERVED_COLUMNS;
        let special = self.sizes.of(Dimension::Alphabet).saturating_sub(FIRST_SPECIAL as usize);
        match self.form {
            Form::Tabulated => first..first,
            Form::Walked | Form::Called => first..self.columns().saturating_sub(special),
        }
    }
}
