//! The values of all arrays of an artifact, from a compiled constraint or from a file.

use std::borrow::Cow;
use std::ops::Index;

use super::arrays::{Declared, Dimension, Form, NO_PATH, Sizes, StoredArray};
use super::container::Container;
use super::error::broken;
use crate::distance::Distances;
use crate::rows::TransitionRows;
use crate::symbols::FIRST_SPECIAL;
use crate::{
    CharTransitionCache, CompiledConstraint, ConstraintParts, Shortest, SpecialTokens, StateId, TokenReading,
};
use burn_dfa_common::{Result, limits::Meter};
use burn_dfa_vocabulary::{Fingerprint, TokenId, Vocabulary};

/// The stored form of a compiled constraint: indexed by [`StoredArray`], it returns the entries in
/// file format.
pub(super) struct StoredTable<'a> {
    pub(super) form: Form,
    pub(super) start: StateId,
    /// The number of frames of a stack; 0 without a stack.
    pub(super) frames: usize,
    pub(super) sizes: Sizes,
    /// Whether [`StoredArray::Shortest`] is present.
    pub(super) has_shortest: bool,
    /// Indexed by array; an array missing from the form is empty.
    values: [Cow<'a, [u32]>; StoredArray::ALL.len()],
}

impl Index<StoredArray> for StoredTable<'_> {
    type Output = [u32];

    fn index(&self, array: StoredArray) -> &[u32] {
        &self.values[array as usize]
    }
}

/// Distances from the file format.
fn distances_of(mut stored: Vec<u32>) -> Vec<u32> {
    stored.iter_mut().filter(|distance| **distance == NO_PATH).for_each(|distance| *distance = u32::MAX);
    stored
}

impl<'a> StoredTable<'a> {
    /// The arrays of a compiled constraint.
    pub(super) fn of(parts: &'a ConstraintParts) -> Result<Self> {
        let form = match parts.reading {
            TokenReading::Classes(_) => Form::TokenLevel,
            TokenReading::Bytes { .. } if parts.calls.is_some() => Form::Pushdown,
            TokenReading::Bytes { .. } => Form::ByteLevel,
        };
        let (frames, jumps) =
            parts.calls.as_ref().map_or((0, 0), |calls| (calls.depth as usize, calls.frame()));
        let mut sizes =
            Sizes::default().with(Dimension::Columns, parts.columns()).with(Dimension::Jumps, jumps);
        sizes = sizes.with(Dimension::Exits, jumps.saturating_sub(1));
        let has_shortest = form != Form::TokenLevel && parts.shortest != Shortest::Any;
        let start = parts.start;
        let mut stored = Self { form, start, frames, sizes, has_shortest, values: Default::default() };
        for array in StoredArray::of(form, has_shortest) {
            let values = (array.declare().values)(parts);
            sizes.take(array, &sizes.shape_of(array, values.len()))?;
            stored.values[array as usize] = values;
        }
        Ok(Self { sizes, ..stored })
    }

    /// The arrays of a file of a form, checked against their declared type and shape.
    pub(super) fn read(
        container: &Container,
        form: Form,
        (start, frames): (StateId, usize),
        meter: &Meter,
    ) -> Result<Self> {
        let has_shortest = container.tensors.contains_key(StoredArray::Shortest.declare().name);
        let names: Vec<_> = StoredArray::of(form, has_shortest).map(|array| array.declare().name).collect();
        if let Some(name) = container.tensors.keys().find(|name| !names.contains(&&***name)) {
            return Err(broken(name, format!("not a tensor of the form {form}")));
        }
        let mut sizes = Sizes::default();
        let mut data = [&[][..]; StoredArray::ALL.len()];
        for array in StoredArray::of(form, has_shortest) {
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
        Ok(Self { form, start, frames, sizes, has_shortest, values })
    }

    /// The arrays of the form.
    pub(super) fn arrays(&self) -> impl Iterator<Item = StoredArray> + use<> {
        StoredArray::of(self.form, self.has_shortest)
    }

    /// The same, without a copy.
    pub(super) fn borrowed(&self) -> StoredTable<'_> {
        StoredTable { values: self.values.each_ref().map(|values| Cow::Borrowed(&**values)), ..*self }
    }

    /// The parts of checked arrays; resting symbols and effects on the stack are not computed yet.
    pub(super) fn into_parts(self, vocabulary: &Vocabulary) -> ConstraintParts {
        self.into_parts_of(vocabulary.fingerprint(), vocabulary)
    }

    /// As [`into_parts`](Self::into_parts), with a given fingerprint; `vocabulary` is used only if
    /// tokens are read as text.
    pub(super) fn into_parts_of(
        mut self,
        fingerprint: Fingerprint,
        vocabulary: &Vocabulary,
    ) -> ConstraintParts {
        let vocabulary_len = self.tokens();
        let reading = match self.form {
            Form::TokenLevel => TokenReading::Classes(self.take(StoredArray::Class).into()),
            Form::ByteLevel | Form::Pushdown => {
                let column_of = std::array::from_fn(|byte| self[StoredArray::Column][byte]);
                TokenReading::Bytes {
                    char_transitions: CharTransitionCache::new(&column_of).into(),
                    column_of: Box::new(column_of),
                    vocabulary: vocabulary.clone(),
                    special: self.special_tokens(),
                }
            }
        };
        let bound_to_end = distances_of(self.take(self.bounds()));
        ConstraintParts {
            next: TransitionRows::whole(self.take(StoredArray::Next), self.columns()),
            reading,
            bound_to_end,
            distances: Distances::default(),
            calls: None,
            shortest: if self.has_shortest {
                Shortest::Known(self.take(StoredArray::Shortest).into())
            } else {
                Shortest::Any
            },
            class_tokens: Default::default(),
            start: self.start,
            vocabulary_len,
            fingerprint,
        }
    }

    /// The array with the bounds on the distances, for a form without calls.
    pub(super) fn bounds(&self) -> StoredArray {
        if self.form == Form::TokenLevel { StoredArray::TokensToEnd } else { StoredArray::BytesToEnd }
    }

    /// The array with the distances in tokens of a byte-level form.
    pub(super) fn token_distances(&self) -> Option<StoredArray> {
        match self.form {
            Form::TokenLevel => None,
            Form::ByteLevel => Some(StoredArray::TokensToEnd),
            Form::Pushdown => Some(StoredArray::TokensToExit),
        }
    }

    /// The distances in tokens of a byte-level form.
    pub(super) fn distances(&self) -> Option<Vec<u32>> {
        Some(distances_of(self[self.token_distances()?].to_vec()))
    }

    fn take(&mut self, array: StoredArray) -> Vec<u32> {
        std::mem::take(&mut self.values[array as usize]).into_owned()
    }

    /// The special tokens with their own symbol.
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
            Form::TokenLevel => self.sizes.of(Dimension::Tokens),
            Form::ByteLevel | Form::Pushdown => self.sizes.of(Dimension::TokenEnds).saturating_sub(1),
        }
    }

    /// The row of every state.
    pub(super) fn rows(&self) -> impl Iterator<Item = &[u32]> {
        self[StoredArray::Next].chunks_exact(self.columns())
    }

    /// The symbols of a token in a checked byte-level constraint.
    pub(super) fn symbols_of(&self, token: TokenId) -> &[u32] {
        let [begin, end] = [0, 1].map(|more| self[StoredArray::Offsets][token.index() + more] as usize);
        &self[StoredArray::Symbols][begin..end]
    }

    /// The columns of bytes; empty in the token-level form.
    pub(super) fn byte_columns(&self) -> std::ops::Range<usize> {
        let first = CompiledConstraint::RESERVED_COLUMNS;
        let special = self.sizes.of(Dimension::Alphabet).saturating_sub(FIRST_SPECIAL as usize);
        match self.form {
            Form::TokenLevel => first..first,
            Form::ByteLevel | Form::Pushdown => first..self.columns().saturating_sub(special),
        }
    }
}
