//! Writing an artifact.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use super::arrays::{Declared, Form};
use super::container::{Container, View};
use super::stored::StoredTable;
use super::{FORMAT, Origin, VERSION};
use crate::distance::Distances;
use crate::{CompiledConstraint, TokenReading};
use burn_dfa_common::{Error, Limits, Result, limits::Meter};

impl CompiledConstraint {
    /// The compiled constraint as the bytes of an artifact; equal constraints of one origin give
    /// equal bytes.
    ///
    /// ```
    /// use burn_dfa_tokens::Origin;
    /// use burn_dfa_tokens::{Constraint, Limits, TokenId, CompiledConstraint, Vocabulary};
    ///
    /// let vocabulary = Vocabulary::from_chars("ab.".chars())?.with_eos([TokenId(2)])?;
    /// let (constraint, limits) = (Constraint::regex("ab*")?, Limits::default());
    /// let compiled = CompiledConstraint::compile(&constraint, &vocabulary, &limits)?;
    /// let bytes = compiled.to_bytes(&Origin::new(&constraint, &limits))?;
    /// assert_eq!(CompiledConstraint::from_bytes(&bytes, &vocabulary, &limits)?, compiled);
    /// # Ok::<(), burn_dfa_tokens::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Artifact`](crate::ErrorKind::Artifact): a constraint that
    /// [`from_bytes`](Self::from_bytes) would refuse, such as a [pruned](Self::prune) constraint:
    /// its distances belong to another vocabulary.
    pub fn to_bytes(&self, origin: &Origin) -> Result<Vec<u8>> {
        self.written(&self.stored().map_err(|error| pruned(&error))?, origin)
    }

    /// As [`to_bytes`](Self::to_bytes), for the server of a remote device, which trusts the
    /// distances to the end ([`to_server_constraint`](crate::Artifact::to_server_constraint)): also
    /// writes a pruned constraint without calls.
    #[doc(hidden)]
    pub fn to_server_bytes(&self) -> Result<Vec<u8>> {
        let stored = StoredTable::of(self.parts())?;
        if stored.form == Form::Pushdown {
            stored.check().map_err(|error| pruned(&error))?;
        }
        self.written(&stored, &Origin::default())
    }

    fn written(&self, stored: &StoredTable, origin: &Origin) -> Result<Vec<u8>> {
        let mut metadata: BTreeMap<String, String> = [
            ("format", FORMAT.to_owned()),
            ("format_version", VERSION.to_owned()),
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
        let arrays: Vec<_> = stored.arrays().map(|array| (array, array.declare())).collect();
        let data: Vec<_> =
            arrays.iter().map(|(array, declared)| declared.element.encode(&stored[*array])).collect();
        let views = arrays.iter().zip(&data).map(|(&(array, Declared { name, element, .. }), data)| {
            let view = View { dtype: element.dtype(), shape: stored.sizes.shape(array), data };
            (name.to_owned(), view)
        });
        Container { metadata, tensors: views.collect() }.write()
    }

    /// The arrays of the constraint, checked like the arrays of a file.
    fn stored(&self) -> Result<StoredTable<'_>> {
        let stored = StoredTable::of(self.parts())?;
        let counted = stored.check()?;
        self.parts().check_shortest()?;
        if let Some((array, distances)) = stored.token_distances().zip(stored.distances())
            && !self.parts().distances.are_own()
        {
            let mut own = self.parts().clone();
            own.distances = if counted { Distances::default() } else { Distances::exact() };
            own.check_distances(array, &distances)?;
        }
        if stored.form == Form::Pushdown {
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
    /// As [`to_bytes`](Self::to_bytes); [`ErrorKind::Artifact`](crate::ErrorKind::Artifact) if the
    /// file cannot be written.
    pub fn save(&self, path: impl AsRef<Path>, origin: &Origin) -> Result<()> {
        let path = path.as_ref();
        std::fs::write(path, self.to_bytes(origin)?)
            .map_err(|error| Error::artifact(format!("cannot write {}: {error}", path.display())))
    }
}

fn pruned(error: &Error) -> Error {
    let reason = error.to_string();
    let reason = reason.strip_prefix("compiled constraint: artifact, ").unwrap_or(&reason);
    let reason = reason.strip_suffix("; compile the constraint again").unwrap_or(reason);
    Error::artifact(format!(
        "it cannot be saved ({reason}): a pruned constraint has the distances of another vocabulary, save the one that it was pruned from"
    ))
}
