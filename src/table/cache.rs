//! Compiled tables in a folder, for the next process that asks for the same.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use sha2::{Digest, Sha256};

use super::artifact::{Origin, VERSIONS, limits_to_json};
use super::{TokenTable, artifact};
use crate::automaton::{ByteDfa, ByteStateId};
use crate::constraint::Constraint;
use crate::error::{Error, Result};
use crate::limits::Limits;
use crate::vocabulary::Vocabulary;

/// A folder of artefacts: compiles a table once, and loads it from then on.
///
/// Entries are keyed by the constraint and its options, the limits, the form, the fingerprint of the vocabulary and
/// the version of the library, so none is ever stale. They are checked like any artefact; one that does not pass is
/// compiled anew. Any number of threads and processes may share a folder: an entry is written beside and then
/// renamed, so nobody sees half of one. When the folder holds more than its limit, the entries that were not used
/// for longest are removed.
///
/// Whoever can write to the folder can put another constraint in the place of yours: give it to those you trust.
///
/// ```
/// use burn_dfa::{Constraint, Limits, TableCache, TokenId, TokenTable, Vocabulary};
///
/// # let folder = std::env::temp_dir().join(format!("burn-dfa-doc-cache-{}", std::process::id()));
/// let vocabulary = Vocabulary::from_chars("ab.".chars())?.with_eos([TokenId(2)])?;
/// let (constraint, limits) = (Constraint::regex("ab*")?, Limits::default());
/// let cache = TableCache::new(&folder, 256 << 20)?;
/// let table = cache.compile(&constraint, &vocabulary, &limits)?;
/// // From the file.
/// assert_eq!(cache.compile(&constraint, &vocabulary, &limits)?, table);
/// # std::fs::remove_dir_all(&folder).unwrap();
/// # Ok::<(), burn_dfa::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct TableCache {
    folder: PathBuf,
    max_bytes: u64,
}

/// How the names of entries end.
const ENTRY: &str = "safetensors";
/// How the names of files end that are being written.
const PARTIAL: &str = "partial";
/// What is being written for as long was left behind.
const ABANDONED: Duration = Duration::from_secs(3600);

/// Compiles in one of the forms.
type Compile = fn(&Constraint, &Vocabulary, &Limits) -> Result<TokenTable>;

impl TableCache {
    /// A cache in `folder`, which is made where it is missing, of at most `max_bytes`.
    ///
    /// # Errors
    /// [`Error::is_table`]: the folder cannot be made or written to.
    pub fn new(folder: impl AsRef<Path>, max_bytes: u64) -> Result<Self> {
        let folder = folder.as_ref().to_owned();
        let cache = Self { folder, max_bytes };
        let cannot =
            |error| Error::table(format!("cannot write to the cache {}: {error}", cache.folder.display()));
        fs::create_dir_all(&cache.folder).map_err(cannot)?;
        let probe = cache.partial("probe");
        File::create(&probe).and_then(|_| fs::remove_file(&probe)).map_err(cannot)?;
        Ok(cache)
    }

    /// The table of [`TokenTable::compile`], loaded where it is there.
    ///
    /// A table that cannot be written down is returned all the same.
    ///
    /// # Errors
    /// As [`TokenTable::compile`].
    pub fn compile(
        &self,
        constraint: &Constraint,
        vocabulary: &Vocabulary,
        limits: &Limits,
    ) -> Result<TokenTable> {
        self.get("compile", TokenTable::compile, constraint, vocabulary, limits)
    }

    /// The table of [`TokenTable::tabulate`], loaded where it is there; as [`compile`](Self::compile).
    ///
    /// # Errors
    /// As [`TokenTable::tabulate`].
    pub fn tabulate(
        &self,
        constraint: &Constraint,
        vocabulary: &Vocabulary,
        limits: &Limits,
    ) -> Result<TokenTable> {
        self.get("tabulate", TokenTable::tabulate, constraint, vocabulary, limits)
    }

    /// The table of [`TokenTable::walk`], loaded where it is there; as [`compile`](Self::compile).
    ///
    /// # Errors
    /// As [`TokenTable::walk`].
    pub fn walk(
        &self,
        constraint: &Constraint,
        vocabulary: &Vocabulary,
        limits: &Limits,
    ) -> Result<TokenTable> {
        self.get("walk", TokenTable::walk, constraint, vocabulary, limits)
    }

    /// Bytes of all entries.
    pub fn bytes(&self) -> u64 {
        self.files().filter(|file| file.is_entry).map(|file| file.bytes).sum()
    }

    fn get(
        &self,
        form: &str,
        compile: Compile,
        constraint: &Constraint,
        vocabulary: &Vocabulary,
        limits: &Limits,
    ) -> Result<TokenTable> {
        let key = key(form, constraint, vocabulary, limits);
        let path = self.folder.join(&key).with_extension(ENTRY);
        if let Ok(table) = TokenTable::load(&path, vocabulary, limits) {
            // Used now. Where the file is gone or not ours, it is as old as it was.
            let _ = OpenOptions::new()
                .append(true)
                .open(&path)
                .and_then(|file| file.set_modified(SystemTime::now()));
            return Ok(table);
        }
        let table = compile(constraint, vocabulary, limits)?;
        if let Ok(bytes) = table.to_bytes(&Origin::new(constraint, limits))
            && bytes.len() as u64 <= self.max_bytes
        {
            let partial = self.partial(&key);
            let written = File::create_new(&partial).and_then(|mut file| file.write_all(&bytes));
            if written.and_then(|()| fs::rename(&partial, &path)).is_err() {
                let _ = fs::remove_file(&partial);
            }
            self.evict(&path);
        }
        Ok(table)
    }

    /// A name that nobody else writes to.
    fn partial(&self, key: &str) -> PathBuf {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let (process, count) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos();
        self.folder.join(format!("{key}-{process}-{count}-{since}.{PARTIAL}"))
    }

    /// Removes what was used least recently, until the rest is within the limit, and what was left behind; `newest`
    /// stays.
    fn evict(&self, newest: &Path) {
        let (mut entries, partials): (Vec<_>, Vec<_>) = self.files().partition(|file| file.is_entry);
        for file in partials {
            if file.used.elapsed().is_ok_and(|age| age > ABANDONED) {
                let _ = fs::remove_file(file.path);
            }
        }
        let mut bytes: u64 = entries.iter().map(|file| file.bytes).sum();
        entries.sort_by_key(|file| file.used);
        for file in entries.iter().filter(|file| file.path != newest) {
            if bytes <= self.max_bytes {
                return;
            }
            // Another process may have removed it, or have it open where that prevents it.
            if fs::remove_file(&file.path).is_ok() || !file.path.exists() {
                bytes -= file.bytes;
            }
        }
    }

    /// The files of the cache, and no others that lie there.
    fn files(&self) -> impl Iterator<Item = Cached> {
        fs::read_dir(&self.folder).into_iter().flatten().filter_map(|entry| {
            let path = entry.ok()?.path();
            let is_entry = match path.extension()?.to_str()? {
                ENTRY => true,
                PARTIAL => false,
                _ => return None,
            };
            let about = fs::metadata(&path).ok().filter(fs::Metadata::is_file)?;
            Some(Cached { path, is_entry, bytes: about.len(), used: about.modified().ok()? })
        })
    }
}

/// A file of the cache.
struct Cached {
    path: PathBuf,
    is_entry: bool,
    bytes: u64,
    used: SystemTime,
}

/// All that a table depends on, as the name of a file.
fn key(form: &str, constraint: &Constraint, vocabulary: &Vocabulary, limits: &Limits) -> String {
    let mut hasher = Sha256::new();
    let mut text = |bytes: &[u8]| {
        hasher.update((bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    };
    text(env!("CARGO_PKG_VERSION").as_bytes());
    text(VERSIONS.concat().as_bytes());
    text(form.as_bytes());
    text(limits_to_json(limits).as_bytes());
    text(&vocabulary.fingerprint().0);
    let automaton = |dfa: &ByteDfa| {
        Some(format!("{{\"dfa\":\"{}\"}}", artifact::hexadecimal(&Sha256::digest(bytes(dfa)))))
    };
    text(constraint.definition_with(&automaton).unwrap_or_default().as_bytes());
    artifact::hexadecimal(&hasher.finalize())
}

/// The bytes of an automaton.
fn bytes(dfa: &ByteDfa) -> Vec<u8> {
    let mut bytes = dfa.classes().to_vec();
    bytes.extend(dfa.start().0.to_le_bytes());
    for state in (0..dfa.state_count() as u32).map(ByteStateId) {
        bytes.push(dfa.is_accepting(state).into());
        bytes
            .extend((0..dfa.class_count()).flat_map(|class| dfa.next_by_class(state, class).0.to_le_bytes()));
    }
    bytes
}
