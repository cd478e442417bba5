//! Tables as files: what is compiled once can be shipped, and read by programs in any language.
//!
//! An artefact is a [safetensors](https://github.com/huggingface/safetensors) file: the arrays of a table as
//! tensors, and texts that tell where it comes from. `docs/artifact.md` holds the format. Reading one believes
//! nothing: whatever the bytes are, what comes of them is an error or a table whose lookups stay in bounds and whose
//! states all lead to the end.

mod arrays;
mod container;
mod origin;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::Path;
use std::sync::Arc;

use safetensors::tensor::Dtype;

use super::{RowPosition, SpecialTokens, StateId, TableParts, TokenReading, TokenTable, walk};
use crate::error::{Error, Limit, Result};
use crate::limits::{Limits, Meter};
use crate::vocabulary::{Fingerprint, TokenId, TokenKind, Vocabulary};
use arrays::{FIRST_SPECIAL, NO_WAY, RESERVED_SYMBOL, StoredArrays, StoredReading};
use container::{CHECKSUM, Container, View};
pub use origin::Origin;
pub(super) use origin::to_json as limits_to_json;

/// What the metadata `format` says.
const FORMAT: &str = "burn-dfa token table";
/// What the metadata `format_version` says.
pub(super) const VERSION: &str = "1";
const TABULATED: &str = "tabulated";
const WALKED: &str = "walked";

/// The file of a table, read but not yet believed; see the [module](super) for what it holds.
///
/// [`TokenTable::load`] is the short way to a table. This is for those who want to look into a file first.
///
/// ```
/// use burn_dfa::table::{Artifact, Origin};
/// use burn_dfa::{Constraint, Limits, TokenId, TokenTable, Vocabulary};
///
/// let vocabulary = Vocabulary::from_chars("ab.".chars())?.with_eos([TokenId(2)])?;
/// let (constraint, limits) = (Constraint::regex("ab*")?, Limits::default());
/// let table = TokenTable::compile(&constraint, &vocabulary, &limits)?;
/// let bytes = table.to_bytes(&Origin::new(&constraint, &limits))?;
///
/// let artifact = Artifact::from_bytes(&bytes)?;
/// assert_eq!(artifact.metadata("constraint"), Some(r#"{"regex":"ab*"}"#));
/// artifact.validate(&limits)?;
/// assert_eq!(artifact.to_table(&vocabulary, &limits)?, table);
/// # Ok::<(), burn_dfa::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Artifact<'a> {
    container: Container<'a>,
    len: usize,
}

impl<'a> Artifact<'a> {
    /// Finds metadata and tensors in a safetensors file.
    ///
    /// # Errors
    /// [`Error::is_table`]: no such file, or one whose tensors overlap or lie outside.
    pub fn from_bytes(bytes: &'a [u8]) -> Result<Self> {
        Ok(Self { container: Container::read(bytes)?, len: bytes.len() })
    }

    /// The text of a name: `format`, `format_version`, `library_version`, `form`, `start`, `fingerprint`,
    /// `constraint`, `limits`, `checksum`, or what somebody else has added.
    pub fn metadata(&self, name: &str) -> Option<&str> {
        self.container.metadata.get(name).map(String::as_str)
    }

    /// All texts, by name.
    pub fn all_metadata(&self) -> &BTreeMap<String, String> {
        &self.container.metadata
    }

    /// Of each tensor its name, its data type as safetensors has it, its shape and its bytes, by name.
    pub fn tensors(&self) -> impl Iterator<Item = (&str, String, &[usize], usize)> {
        let tensors = self.container.tensors.iter();
        tensors.map(|(name, view)| (&**name, view.dtype.to_string(), &*view.shape, view.data.len()))
    }

    /// Where the table comes from.
    pub fn origin(&self) -> Origin {
        Origin::of(self.metadata("constraint"), self.metadata("limits"))
    }

    /// Checks all that can be checked without the vocabulary: format, checksum, sizes, and that every lookup
    /// stays in bounds.
    ///
    /// # Errors
    /// - [`Error::is_table`], naming the metadata or the tensor;
    /// - [`Error::is_limit`]: larger than `limits` allow.
    pub fn validate(&self, limits: &Limits) -> Result<()> {
        let (arrays, _) = self.arrays(&Meter::start(limits))?;
        arrays.check().map(drop)
    }

    /// The table, for the vocabulary that it was compiled for. Nothing in the file is taken on trust.
    ///
    /// # Errors
    /// As [`validate`](Self::validate); [`Error::is_incompatible_vocabulary`] for another vocabulary.
    pub fn to_table(&self, vocabulary: &Vocabulary, limits: &Limits) -> Result<TokenTable> {
        let meter = Meter::start(limits);
        let (arrays, fingerprint) = self.arrays(&meter)?;
        if fingerprint != vocabulary.fingerprint() {
            return Err(Error::incompatible_vocabulary(format!(
                "the artefact was compiled for vocabulary {fingerprint}, this one is {}: compile the constraint for it",
                vocabulary.fingerprint()
            )));
        }
        let counted = arrays.check()?;
        arrays.check_vocabulary(vocabulary)?;
        if !counted {
            arrays.check_token_distances(vocabulary, &meter)?;
        }
        let mut parts = arrays.into_parts(vocabulary);
        parts.find_plain_in_columns();
        let table = TokenTable { parts: Arc::new(parts), unrolled: None };
        table.validate()?;
        Ok(table)
    }

    /// The arrays as they are, and the fingerprint of their vocabulary.
    fn arrays(&self, meter: &Meter) -> Result<(StoredArrays<'static>, Fingerprint)> {
        meter.bytes(self.len)?;
        let text = |name: &str| self.metadata(name).ok_or_else(|| broken(name, "it is missing"));
        if self.metadata("format") != Some(FORMAT) {
            return Err(broken("format", format!("a safetensors file, but not of a {FORMAT}")));
        }
        let version = text("format_version")?;
        if version != VERSION {
            return Err(broken("format_version", format!("{version:?}, this library reads {VERSION}")));
        }
        if text(CHECKSUM)? != self.container.checksum() {
            return Err(broken(CHECKSUM, "the contents have another: the file is damaged"));
        }
        let hexadecimal = text("fingerprint")?;
        let fingerprint =
            fingerprint(hexadecimal).ok_or_else(|| broken("fingerprint", "not 64 hexadecimal digits"))?;
        let start = text("start")?;
        let start = start.parse().map_err(|_| broken("start", format!("{start:?} is no state")))?;

        let form = text("form")?;
        let names: &[&str] = match form {
            TABULATED => &["class", "next", "tokens_to_end"],
            WALKED => &["column", "next", "offsets", "symbols", "tokens_to_end"],
            _ => return Err(broken("form", format!("{form:?}, neither {TABULATED} nor {WALKED}"))),
        };
        if let Some(name) = self.container.tensors.keys().find(|name| !names.contains(&&***name)) {
            return Err(broken(name, format!("not a tensor of a {form} table")));
        }
        let next = self.tensor("next", Dtype::I32)?;
        let &[states, columns] = &next.shape[..] else {
            return Err(broken("next", format!("of the shape {:?}, not [states, columns]", next.shape)));
        };
        meter.states(states)?;
        let list = |name: &str| self.list(name, Dtype::I32).map(integers);
        let mut tokens_to_end = list("tokens_to_end")?;
        if tokens_to_end.len() != states {
            return Err(broken("tokens_to_end", format!("{} of {states} states", tokens_to_end.len())));
        }
        for tokens in tokens_to_end.iter_mut().filter(|tokens| **tokens == i32::MAX as u32) {
            *tokens = NO_WAY;
        }
        let reading = if form == TABULATED {
            StoredReading::Classes(list("class")?.into())
        } else {
            let symbols = self.list("symbols", Dtype::U16)?;
            let symbols = symbols.as_chunks().0.iter().map(|&symbol| u16::from_le_bytes(symbol)).collect();
            StoredReading::Symbols { column: list("column")?, offsets: list("offsets")?, symbols }
        };
        let next = integers(next.data).into();
        Ok((
            StoredArrays {
                next,
                columns,
                tokens_to_end: tokens_to_end.into(),
                start: StateId(start),
                reading,
            },
            fingerprint,
        ))
    }

    fn tensor(&self, name: &str, dtype: Dtype) -> Result<&View<'a>> {
        let view = self.container.tensors.get(name).ok_or_else(|| broken(name, "it is missing"))?;
        if view.dtype != dtype {
            return Err(broken(name, format!("of {}, not {dtype}", view.dtype)));
        }
        Ok(view)
    }

    /// The data of a tensor of one dimension.
    fn list(&self, name: &str, dtype: Dtype) -> Result<&'a [u8]> {
        let view = self.tensor(name, dtype)?;
        if view.shape.len() != 1 {
            return Err(broken(name, format!("of the shape {:?}, not of one dimension", view.shape)));
        }
        Ok(view.data)
    }
}

impl<'a> StoredArrays<'a> {
    fn of(parts: &'a TableParts) -> Self {
        let reading = match &parts.reading {
            TokenReading::Classes(class) => StoredReading::Classes(class.into()),
            TokenReading::Bytes { column_of, vocabulary, special, .. } => {
                let reserved = 0..TokenTable::RESERVED_COLUMNS as u32;
                let marked = parts.columns - special.columns()..parts.columns;
                let (mut offsets, mut symbols) = (vec![0], Vec::new());
                for token in (0..vocabulary.len() as u32).map(TokenId) {
                    let mark = special.column(token).map(|column| column as usize - marked.start);
                    match mark {
                        Some(mark) => symbols.push(FIRST_SPECIAL.saturating_add(mark as u16)),
                        None => symbols.extend(spelling(vocabulary, token)),
                    }
                    offsets.push(symbols.len() as u32);
                }
                let column =
                    column_of.iter().copied().chain(reserved).chain(marked.map(|column| column as u32));
                let column = column.collect();
                StoredReading::Symbols { column, offsets, symbols }
            }
        };
        Self {
            next: (&parts.next).into(),
            columns: parts.columns,
            tokens_to_end: (&parts.tokens_to_end).into(),
            start: parts.start,
            reading,
        }
    }

    /// Checks that tokens are read as `vocabulary` has them.
    fn check_vocabulary(&self, vocabulary: &Vocabulary) -> Result<()> {
        let tokens = (0..vocabulary.len() as u32).map(TokenId);
        let len = match &self.reading {
            StoredReading::Classes(class) => class.len(),
            StoredReading::Symbols { offsets, .. } => offsets.len() - 1,
        };
        if len != vocabulary.len() {
            let name = if let StoredReading::Classes(_) = self.reading { "class" } else { "offsets" };
            return Err(broken(name, format!("{len} tokens, the vocabulary has {}", vocabulary.len())));
        }
        for token in tokens {
            let index = token.index();
            match &self.reading {
                StoredReading::Classes(class) => {
                    let reserved = walk::reserved_column(vocabulary, token);
                    // Special tokens match where transitions name them.
                    let free = vocabulary.kind(token) != TokenKind::Unused && reserved != TokenTable::EOS;
                    let found = class[index];
                    if found != reserved && (!free || found < TokenTable::RESERVED_COLUMNS as u32) {
                        return Err(broken(
                            "class",
                            format!("token {token}: {found}, the vocabulary says {reserved}"),
                        ));
                    }
                }
                StoredReading::Symbols { offsets, symbols, .. } => {
                    let own = &symbols[offsets[index] as usize..offsets[index + 1] as usize];
                    // A marker may be any token that can be written.
                    let reserved = walk::reserved_column(vocabulary, token);
                    let text = vocabulary.bytes(token).is_some();
                    if own[0] >= FIRST_SPECIAL && (text || reserved == TokenTable::UNMATCHED) {
                        continue;
                    }
                    if !own.iter().copied().eq(spelling(vocabulary, token)) {
                        return Err(broken(
                            "symbols",
                            format!("token {token}: not as the vocabulary spells it"),
                        ));
                    }
                }
            }
        }
        Ok(())
    }

    /// Checks the distances to the end where bytes are alive that no token is: by following every token from every
    /// state, as it was compiled.
    fn check_token_distances(&self, vocabulary: &Vocabulary, meter: &Meter) -> Result<()> {
        let parts = self.borrowed().into_parts(vocabulary);
        let TokenReading::Bytes { column_of, .. } = &parts.reading else { return Ok(()) };
        for state in StateId::RESERVED..parts.tokens_to_end.len() as u32 {
            meter.time()?;
            let marked = &parts.row(StateId(state))[self.byte_columns().end..];
            let distances = marked.iter().map(|&to| self.tokens_to_end[to as usize]);
            let mut nearest = distances.min().unwrap_or(NO_WAY);
            parts.each_text(
                RowPosition::unlimited(StateId(state)),
                vocabulary,
                column_of,
                false,
                |_, landing| {
                    nearest = nearest.min(parts.tokens_to_end[landing.index()]);
                },
            );
            self.check_distance(state as usize, nearest)?;
        }
        Ok(())
    }

    fn borrowed(&self) -> StoredArrays<'_> {
        let reading = match &self.reading {
            StoredReading::Classes(class) => StoredReading::Classes(Cow::Borrowed(class)),
            StoredReading::Symbols { column, offsets, symbols } => {
                let (offsets, symbols) = (offsets.clone(), symbols.clone());
                StoredReading::Symbols { column: column.clone(), offsets, symbols }
            }
        };
        StoredArrays {
            next: Cow::Borrowed(&self.next),
            columns: self.columns,
            tokens_to_end: Cow::Borrowed(&self.tokens_to_end),
            start: self.start,
            reading,
        }
    }

    /// The table of checked arrays; what is plain is not found yet.
    fn into_parts(self, vocabulary: &Vocabulary) -> TableParts {
        let first_mark = self.byte_columns().end;
        let reading = match self.reading {
            StoredReading::Classes(class) => TokenReading::Classes(class.into_owned()),
            StoredReading::Symbols { column, offsets, symbols } => TokenReading::Bytes {
                special: {
                    let mark = |(token, &at): (u32, &u32)| {
                        let mark = symbols.get(at as usize)?.checked_sub(FIRST_SPECIAL)?;
                        Some((TokenId(token), mark.into()))
                    };
                    let tokens = (0..).zip(&offsets).take(vocabulary.len()).filter_map(mark).collect();
                    SpecialTokens::of_columns(first_mark, self.columns - first_mark, tokens)
                },
                column_of: Box::new(std::array::from_fn(|byte| column[byte])),
                vocabulary: vocabulary.clone(),
                takes_plain: vec![false; self.tokens_to_end.len()],
                farthest: 0,
            },
        };
        TableParts {
            next: self.next.into_owned(),
            columns: self.columns,
            reading,
            tokens_to_end: self.tokens_to_end.into_owned(),
            start: self.start,
            vocabulary_len: vocabulary.len(),
            fingerprint: vocabulary.fingerprint(),
        }
    }
}

/// The symbols of a token: its bytes, or a reserved column.
fn spelling(vocabulary: &Vocabulary, token: TokenId) -> impl Iterator<Item = u16> {
    let bytes = vocabulary.bytes(token);
    let reserved = || RESERVED_SYMBOL + walk::reserved_column(vocabulary, token) as u16;
    let reserved = bytes.is_none().then(reserved);
    bytes.unwrap_or_default().iter().map(|&byte| u16::from(byte)).chain(reserved)
}

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
        let parts = self.parts();
        let arrays = StoredArrays::of(parts);
        let counted = arrays.check().map_err(|error| pruned(&error))?;
        if let (false, TokenReading::Bytes { vocabulary, .. }) = (counted, &parts.reading) {
            let limits = Limits { time: std::time::Duration::MAX, ..Limits::default() };
            let checked = arrays.check_token_distances(vocabulary, &Meter::start(&limits));
            checked.map_err(|error| pruned(&error))?;
        }
        let mut metadata: BTreeMap<String, String> = [
            ("format", FORMAT.to_owned()),
            ("format_version", VERSION.to_owned()),
            ("library_version", env!("CARGO_PKG_VERSION").to_owned()),
            ("form", if self.is_walked() { WALKED } else { TABULATED }.to_owned()),
            ("start", self.start().to_string()),
            ("fingerprint", self.fingerprint().to_string()),
        ]
        .map(|(name, text)| (name.to_owned(), text))
        .into();
        for (name, text) in [("constraint", origin.constraint()), ("limits", origin.limits())] {
            metadata.extend(text.map(|text| (name.to_owned(), text.to_owned())));
        }

        // `NO_WAY` is the greatest number on a device, too.
        let tokens_to_end: Vec<u32> = arrays.tokens_to_end.iter().map(|&n| n.min(i32::MAX as u32)).collect();
        let mut data = vec![
            ("next", Dtype::I32, vec![self.state_count(), arrays.columns], bytes(&arrays.next)),
            ("tokens_to_end", Dtype::I32, vec![tokens_to_end.len()], bytes(&tokens_to_end)),
        ];
        match &arrays.reading {
            StoredReading::Classes(class) => {
                data.push(("class", Dtype::I32, vec![class.len()], bytes(class)))
            }
            StoredReading::Symbols { column, offsets, symbols } => {
                let symbol_bytes = symbols.iter().flat_map(|symbol| symbol.to_le_bytes()).collect();
                data.push(("column", Dtype::I32, vec![column.len()], bytes(column)));
                data.push(("offsets", Dtype::I32, vec![offsets.len()], bytes(offsets)));
                data.push(("symbols", Dtype::U16, vec![symbols.len()], symbol_bytes));
            }
        }
        let views = data.iter().map(|(name, dtype, shape, data)| {
            ((*name).to_owned(), View { dtype: *dtype, shape: shape.clone(), data })
        });
        Container { metadata, tensors: views.collect() }.write()
    }

    /// The table of an artefact, for the vocabulary that it was compiled for. Nothing is taken on trust: see
    /// [`Artifact`].
    ///
    /// # Errors
    /// - [`Error::is_table`], naming the metadata or the tensor: no artefact, another version, or a damaged one;
    /// - [`Error::is_incompatible_vocabulary`]: an artefact of another vocabulary;
    /// - [`Error::is_limit`]: larger than `limits` allow.
    pub fn from_bytes(bytes: &[u8], vocabulary: &Vocabulary, limits: &Limits) -> Result<Self> {
        Artifact::from_bytes(bytes)?.to_table(vocabulary, limits)
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

    /// Reads what [`save`](Self::save) wrote; a file of more than [`Limits::bytes`] is refused unread.
    ///
    /// # Errors
    /// As [`from_bytes`](Self::from_bytes); [`Error::is_table`] where the file cannot be read.
    pub fn load(path: impl AsRef<Path>, vocabulary: &Vocabulary, limits: &Limits) -> Result<Self> {
        let path = path.as_ref();
        let cannot = |error| Error::table(format!("cannot read {}: {error}", path.display()));
        let len = std::fs::metadata(path).map_err(cannot)?.len();
        if len > limits.bytes as u64 {
            return Err(Error::limit(Limit::Bytes(limits.bytes)));
        }
        Self::from_bytes(&std::fs::read(path).map_err(cannot)?, vocabulary, limits)
    }
}

/// A fault of an artefact, in one of its tensors or metadata.
fn broken(place: &str, what: impl Display) -> Error {
    Error::table(format!("artefact, `{place}`: {what}; compile the constraint again"))
}

fn pruned(error: &Error) -> Error {
    let reason = error.to_string();
    let reason = reason.strip_prefix("table: artefact, ").unwrap_or(&reason);
    let reason = reason.strip_suffix("; compile the constraint again").unwrap_or(reason);
    Error::table(format!(
        "it cannot be saved ({reason}): a pruned table has the distances of another vocabulary, save the one that it was pruned from"
    ))
}

fn bytes(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

fn integers(bytes: &[u8]) -> Vec<u32> {
    bytes.as_chunks().0.iter().map(|&number| u32::from_le_bytes(number)).collect()
}

/// Two lower-case digits a byte.
pub(super) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn fingerprint(hexadecimal: &str) -> Option<Fingerprint> {
    let digits = hexadecimal.as_bytes();
    let value = |digit: u8| char::from(digit).to_digit(16).filter(|_| !digit.is_ascii_uppercase());
    let (pairs, rest) = digits.as_chunks::<2>();
    let bytes: Option<Vec<u8>> =
        pairs.iter().map(|&[high, low]| Some((value(high)? << 4 | value(low)?) as u8)).collect();
    let bytes = bytes.filter(|_| rest.is_empty())?;
    Some(Fingerprint(bytes.try_into().ok()?))
}
