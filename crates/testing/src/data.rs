//! Test data: a small sample in `tests/sample`, and a large folder outside of the project.
//!
//! Tests always use the sample. The folder adds real tokenizers, schemas and regexes with verdicts.
//! It is the folder in `BURN_DFA_DATA`, by default `shared/data` in a folder above this package. A
//! test with missing data prints a notice on standard error and is skipped; if
//! `BURN_DFA_REQUIRE_DATA` is set, it fails instead.

use std::path::{Path, PathBuf};

use burn_dfa_tokens::{TokenId, Vocabulary};

use crate::skip::skipped;

/// The environment variable with the folder.
const FOLDER: &str = "BURN_DFA_DATA";
/// If this variable is set, a missing folder or file fails the tests.
const REQUIRE: &str = "BURN_DFA_REQUIRE_DATA";

/// Rows of Rust's corpus that are valid for `regex-lite` alone, which has ASCII classes and ASCII
/// case.
pub const OF_REGEX_LITE: [&str; 6] = [
    "rust-regex regex-lite/perl-class-decimal",
    "rust-regex regex-lite/perl-class-space",
    "rust-regex regex-lite/perl-class-word",
    "rust-regex regex-lite/case-insensitive-is-ascii-only",
    "rust-regex regex-lite/dot-always-matches-codepoint",
    "rust-regex regex-lite/negated-class-always-matches-codepoint",
];

/// A file of rows, and its name in messages.
pub struct Corpus {
    pub name: String,
    pub path: PathBuf,
}

impl Corpus {
    fn sample(file: &str) -> Self {
        let path = above(&format!("tests/sample/{file}")).expect("the sample is a part of the project");
        Self { name: format!("sample/{file}"), path }
    }

    fn outside(file: &str) -> Option<Self> {
        Some(Self { name: file.to_owned(), path: find(file)? })
    }

    pub fn is_sample(&self) -> bool {
        self.name.starts_with("sample/")
    }

    pub fn read(&self) -> String {
        std::fs::read_to_string(&self.path).unwrap_or_else(|error| panic!("{}: {error}", self.path.display()))
    }
}

/// A file of the sample, and the existing files of the folder.
fn with_sample<'a>(sample: &str, outside: impl IntoIterator<Item = &'a str>) -> Vec<Corpus> {
    [Corpus::sample(sample)].into_iter().chain(outside.into_iter().filter_map(Corpus::outside)).collect()
}

/// Schemas with instances, as JSON lines `{id, schema, tests: [{valid, data, needs_format?}]}`: the
/// sample, MaskBench.
pub fn schemas() -> Vec<Corpus> {
    let names = list("maskbench").into_iter().filter(|name| name.ends_with(".jsonl"));
    let outside: Vec<String> = names.map(|name| format!("maskbench/{name}")).collect();
    with_sample("schemas.jsonl", outside.iter().map(String::as_str))
}

/// Regexes with strings that each accepts and rejects as a whole, `[{regex, accepts, rejects}]`:
/// the sample, RE2, Rust.
pub fn regexes() -> Vec<Corpus> {
    with_sample("regexes.json", ["regex/re2_search_fullmatch.json", "regex/rust_regex_fullmatch.json"])
}

/// Values of `pattern`, `[{pattern}]`: the sample, MaskBench.
pub fn patterns() -> Vec<Corpus> {
    with_sample("patterns.json", ["maskbench/patterns.json"])
}

/// The required tests of a draft in the form of the official suite: the sample, and the suite
/// without the tests that need a server.
pub fn draft(name: &str) -> Vec<Corpus> {
    let folder = format!("json-schema-test-suite/{name}");
    let files = list(&folder).into_iter().filter(|file| file.ends_with(".json") && file != "refRemote.json");
    let outside: Vec<String> = files.map(|file| format!("{folder}/{file}")).collect();
    with_sample(&format!("drafts/{name}.json"), outside.iter().map(String::as_str))
}

/// Optional tests of a draft in the official suite: the tests of formats, and these files if they
/// exist.
pub fn optional(name: &str, files: &[&str]) -> Vec<Corpus> {
    let optional = format!("json-schema-test-suite/{name}/optional");
    let Some(folder) = folder().map(|folder| folder.join(&optional)).filter(|folder| folder.is_dir()) else {
        return Vec::new();
    };
    let formats = list(&format!("{optional}/format")).into_iter().map(|file| format!("format/{file}"));
    let files = files.iter().map(|file| format!("{file}.json")).chain(formats);
    let corpora = files.map(|file| Corpus { path: folder.join(&file), name: format!("{optional}/{file}") });
    corpora.filter(|corpus| corpus.path.exists()).collect()
}

/// A tokenizer's folder, and its end token.
pub struct Tokenizer {
    pub name: &'static str,
    pub folder: PathBuf,
    pub eos: TokenId,
}

impl Tokenizer {
    pub fn json(&self) -> String {
        let path = self.folder.join("tokenizer.json");
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    pub fn vocabulary(&self) -> Vocabulary {
        Vocabulary::from_tokenizer_json(self.json()).unwrap().with_eos([self.eos]).unwrap()
    }
}

/// The tokenizer of the embedded model, byte-level BPE.
pub fn tiny() -> Tokenizer {
    let folder = above("models/tiny").expect("the embedded model is a part of the project");
    Tokenizer { name: "tiny", folder, eos: TokenId(0) }
}

/// The embedded tokenizer, and three tokenizers of other models: two with byte-level BPE, and
/// SentencePiece with byte fallback.
pub fn tokenizers() -> Vec<Tokenizer> {
    let outside =
        [("smollm2", 2), ("gpt2", 50_256), ("mistral_v1", 2)].into_iter().filter_map(|(name, eos)| {
            Some(Tokenizer { name, folder: find(&format!("tokenizers/{name}"))?, eos: TokenId(eos) })
        });
    [tiny()].into_iter().chain(outside).collect()
}

/// `path` in the nearest folder above this package that contains it.
fn above(path: &str) -> Option<PathBuf> {
    let folders = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    folders.map(|folder| folder.join(path)).find(|path| path.exists())
}

/// The large folder, if it exists.
fn folder() -> Option<PathBuf> {
    let named = std::env::var_os(FOLDER).map(PathBuf::from);
    named.or_else(|| above("shared/data")).filter(|folder| folder.is_dir())
}

/// The file or folder at `path` in the large folder. If it is missing, prints a notice and returns
/// `None`.
pub fn find(path: &str) -> Option<PathBuf> {
    let found = folder().map(|folder| folder.join(path)).filter(|path| path.exists());
    if found.is_none() {
        assert!(
            std::env::var_os(REQUIRE).is_none(),
            "{REQUIRE} is set, and there is no {path} in the test data"
        );
        skipped(format_args!("no {path} in the test data ({FOLDER} names its folder)"));
    }
    found
}

/// The sorted names in the folder at `path` of the large folder; empty if it is missing.
pub fn list(path: &str) -> Vec<String> {
    let Some(folder) = find(path) else { return Vec::new() };
    let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = names.filter_map(|name| name.into_string().ok()).collect();
    names.sort();
    names
}
