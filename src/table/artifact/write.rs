//! Writing an artefact.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use super::arrays::{Declared, Form, StoredArray};
use super::container::{Container, View};
use super::stored::StoredTable;
use super::{FORMAT, Origin};
use crate::error::{Error, Result};
use crate::limits::{Limits, Meter};
use crate::table::{TokenReading, TokenTable};

impl TokenTable {
    /// The table as the bytes of an artefact; equal tables of one origin give equal bytes.
    ///
    /// ```
    /// use burn_dfa::table::Origin;
    /// use burn_dfa::{Constraint, Limits, TokenId, TokenTable, Vocabulary};
    ///
    /// let vocabulary = Vocabulary::from_chars("ab.".chars())?.with_eos([TokenId(2)])?;
    /// let (constraint, limits) = (Constraint::regex("ab*")?, Limits::default());
    /// let table = TokenTable::compile(&constraint, &vocabulary, &limits)?;
    /// let bytes = table.to_bytes(&Origin::new(&constraint, &limits))?;
    /// assert_eq!(TokenTable::from_bytes(&bytes, &vocabulary, &limits)?, table);
    /// # Ok::<(), burn_dfa::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::is_table`]: a table that [`from_bytes`](Self::from_bytes) would refuse, as one that was
    /// [pruned](Self::prune) is: its distances are those of another vocabulary.
    pub fn to_bytes(&self, origin: &Origin) -> Result<Vec<u8>> {
        self.written(&self.stored().map_err(|error| pruned(&error))?, origin)
    }

    /// As [`to_bytes`](Self::to_bytes) for a reader that believes the distances to the end,
    /// [`hosted_from_bytes`](Self::hosted_from_bytes): also of a table without calls that was pruned.
    #[cfg(feature = "remote")]
    pub(crate) fn to_hosted_bytes(&self) -> Result<Vec<u8>> {
        let stored = StoredTable::of(self.parts())?;
        if stored.form == Form::Called {
            stored.check().map_err(|error| pruned(&error))?;
        }
        self.written(&stored, &Origin::default())
    }

    fn written(&self, stored: &StoredTable, origin: &Origin) -> Result<Vec<u8>> {
        let mut metadata: BTreeMap<String, String> = [
            ("format", FORMAT.to_owned()),
            ("format_version", stored.form.version().to_owned()),
            ("library_version", env!("CARGO_PKG_VERSION").to_owned()),
            ("form", stored.form.to_string()),
            ("start", self.start().to_string()),
            ("fingerprint", self.fingerprint().to_string()),
        ]
        .map(|(name, text)| (name.to_owned(), text))
        .into();
        if stored.frames > 0 {
            metadata.insert("frames".to_owned(), stored.frames.to_string());
        }
        for (name, text) in [("constraint", origin.constraint()), ("limits", origin.limits())] {
            metadata.extend(text.map(|text| (name.to_owned(), text.to_owned())));
        }
        let arrays: Vec<_> = StoredArray::of(stored.form).map(|array| (array, array.declare())).collect();
        let data: Vec<_> =
            arrays.iter().map(|(array, declared)| declared.element.encode(&stored[*array])).collect();
        let views = arrays.iter().zip(&data).map(|(&(array, Declared { name, element, .. }), data)| {
            let view = View { dtype: element.dtype(), shape: stored.sizes.shape(array), data };
            (name.to_owned(), view)
        });
        Container { metadata, tensors: views.collect() }.write()
    }

    /// The arrays of the table, which are checked as those of a file are.
    fn stored(&self) -> Result<StoredTable<'_>> {
        let stored = StoredTable::of(self.parts())?;
        let counted = stored.check()?;
        if stored.form == Form::Called {
            return Ok(stored);
        }
        if let (false, TokenReading::Bytes { vocabulary, .. }) = (counted, &self.parts().reading) {
            let limits = Limits { time: Duration::MAX, ..Limits::default() };
            stored.check_token_distances(vocabulary, &Meter::start(&limits))?;
        }
        Ok(stored)
    }

    /// Writes [`to_bytes`](Self::to_bytes) to a file.
    ///
    /// # Errors
    /// As there; [`Error::is_table`] where the file cannot be written.
    pub fn save(&self, path: impl AsRef<Path>, origin: &Origin) -> Result<()> {
        let path = path.as_ref();
        std::fs::write(path, self.to_bytes(origin)?)
            .map_err(|error| Error::table(format!("cannot write {}: {error}", path.display())))
    }
}

fn pruned(error: &Error) -> Error {
    let reason = error.to_string();
    let reason = reason.strip_prefix("table: artefact, ").unwrap_or(&reason);
    let reason = reason.strip_suffix("; compile the constraint again").unwrap_or(reason);
    Error::table(format!(
        "it cannot be saved ({reason}): a pruned table has the distances of another vocabulary, save the one that it was pruned from"
    ))
}
