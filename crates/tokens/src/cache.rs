//! A folder of compiled constraints, shared between processes.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use sha2::{Digest, Sha256};

use super::artifact::{Origin, VERSION, limits_to_json};
use super::{CompiledConstraint, artifact};
use burn_dfa_common::{Error, Limits, Result};
use burn_dfa_constraints::Constraint;
use burn_dfa_vocabulary::Vocabulary;

/// A folder of artifacts: compiles a constraint once, and loads it afterward.
///
/// The key of an entry consists of the constraint and its options, the limits, the form, the
/// fingerprint of the vocabulary and the version of the library, so entries are never stale. A
/// grammar built in Rust is keyed by its structure; the grammar of a structural tag, taken out of
/// its constraint, has no key and is compiled each time. Entries are checked like any artifact; an
/// invalid entry is compiled again. Any number of threads and processes may share a folder: an
/// entry is written to a temporary file and then renamed, so no reader sees a partial entry. If the
/// folder exceeds its limit, the least recently used entries are removed.
///
/// Anyone with write access to the folder can replace your constraint: give access only to trusted
/// users.
///
/// ```
/// use burn_dfa_tokens::{
///     CompiledConstraint, Constraint, ConstraintCache, Limits, TokenId, Vocabulary,
/// };
///
/// # let folder = std::env::temp_dir().join(format!("burn-dfa-doc-cache-{}", std::process::id()));
/// let vocabulary = Vocabulary::from_chars("ab.".chars())?.with_eos([TokenId(2)])?;
/// let (constraint, limits) = (Constraint::regex("ab*")?, Limits::default());
/// let cache = ConstraintCache::new(&folder, 256 << 20)?;
/// let compiled = cache.compile(&constraint, &vocabulary, &limits)?;
/// // From the file.
/// assert_eq!(cache.compile(&constraint, &vocabulary, &limits)?, compiled);
/// # std::fs::remove_dir_all(&folder).unwrap();
/// # Ok::<(), burn_dfa_tokens::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ConstraintCache {
    folder: PathBuf,
    max_bytes: u64,
}

/// The file extension of entries.
const ENTRY: &str = "safetensors";
/// The file extension of entries being written.
const PARTIAL: &str = "partial";
/// Partial files older than this were abandoned.
const ABANDONED: Duration = Duration::from_secs(3600);

/// Compiles in one of the forms.
type Compile = fn(&Constraint, &Vocabulary, &Limits) -> Result<CompiledConstraint>;

impl ConstraintCache {
    /// A cache in `folder`, created if missing, of at most `max_bytes`.
    ///
    /// # Errors
    /// [`ErrorKind::Artifact`](crate::ErrorKind::Artifact): the folder cannot be created or written
    /// to.
    pub fn new(folder: impl AsRef<Path>, max_bytes: u64) -> Result<Self> {
        let folder = folder.as_ref().to_owned();
        let cache = Self { folder, max_bytes };
        let cannot =
            |error| Error::artifact(format!("cannot write to the cache {}: {error}", cache.folder.display()));
        fs::create_dir_all(&cache.folder).map_err(cannot)?;
        let probe = cache.partial("probe");
        File::create(&probe).and_then(|_| fs::remove_file(&probe)).map_err(cannot)?;
        Ok(cache)
    }

    /// The result of [`CompiledConstraint::compile`], loaded from the folder if present.
    ///
    /// A compiled constraint that cannot be written to the folder is still returned.
    ///
    /// # Errors
    /// As [`CompiledConstraint::compile`].
    pub fn compile(
        &self,
        constraint: &Constraint,
        vocabulary: &Vocabulary,
        limits: &Limits,
    ) -> Result<CompiledConstraint> {
        self.get("compile", CompiledConstraint::compile, constraint, vocabulary, limits)
    }

    /// The result of [`CompiledConstraint::compile_token_level`], loaded if present; as
    /// [`compile`](Self::compile).
    ///
    /// # Errors
    /// As [`CompiledConstraint::compile_token_level`].
    pub fn compile_token_level(
        &self,
        constraint: &Constraint,
        vocabulary: &Vocabulary,
        limits: &Limits,
    ) -> Result<CompiledConstraint> {
        self.get("token-level", CompiledConstraint::compile_token_level, constraint, vocabulary, limits)
    }

    /// The result of [`CompiledConstraint::compile_byte_level`], loaded if present; as
    /// [`compile`](Self::compile).
    ///
    /// # Errors
    /// As [`CompiledConstraint::compile_byte_level`].
    pub fn compile_byte_level(
        &self,
        constraint: &Constraint,
        vocabulary: &Vocabulary,
        limits: &Limits,
    ) -> Result<CompiledConstraint> {
        self.get("byte-level", CompiledConstraint::compile_byte_level, constraint, vocabulary, limits)
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
    ) -> Result<CompiledConstraint> {
        let Some(key) = key(form, constraint, vocabulary, limits) else {
            return compile(constraint, vocabulary, limits);
        };
        let path = self.folder.join(&key).with_extension(ENTRY);
        if let Ok(compiled) = CompiledConstraint::load(&path, vocabulary, limits) {
            // Marks the entry as used. If the file is missing or not writable, its time stays.
            let _ = OpenOptions::new()
                .append(true)
                .open(&path)
                .and_then(|file| file.set_modified(SystemTime::now()));
            return Ok(compiled);
        }
        let compiled = compile(constraint, vocabulary, limits)?;
        if let Ok(bytes) = compiled.to_bytes(&Origin::new(constraint, limits))
            && bytes.len() as u64 <= self.max_bytes
        {
            let partial = self.partial(&key);
            let written = File::create_new(&partial).and_then(|mut file| file.write_all(&bytes));
            if written.and_then(|()| fs::rename(&partial, &path)).is_err() {
                let _ = fs::remove_file(&partial);
            }
            self.evict(&path);
        }
        Ok(compiled)
    }

    /// A unique file name.
    fn partial(&self, key: &str) -> PathBuf {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let (process, count) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos();
        self.folder.join(format!("{key}-{process}-{count}-{since}.{PARTIAL}"))
    }

    /// Removes abandoned partial files and the least recently used entries, until the rest is
    /// within the limit; keeps `newest`.
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
            // Another process may have removed the file, or an open file may prevent its removal.
            if fs::remove_file(&file.path).is_ok() || !file.path.exists() {
                bytes -= file.bytes;
            }
        }
    }

    /// The files of the cache, ignoring other files in the folder.
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

/// All inputs of a compilation, as a file name; `None` if the constraint has no identity.
fn key(form: &str, constraint: &Constraint, vocabulary: &Vocabulary, limits: &Limits) -> Option<String> {
    let mut hasher = Sha256::new();
    let mut text = |bytes: &[u8]| {
        hasher.update((bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    };
    text(env!("CARGO_PKG_VERSION").as_bytes());
    text(VERSION.as_bytes());
    text(form.as_bytes());
    text(limits_to_json(limits).as_bytes());
    text(&vocabulary.fingerprint().0);
    text(&constraint.identity()?);
    Some(artifact::hexadecimal(&hasher.finalize()))
}
