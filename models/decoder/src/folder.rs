//! Recognizes folders that hold no model by their files, so that the message can name the remedy.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::error::DecoderError;
use crate::folder_problem::{FolderProblem, SINGLE};

/// Bytes that are read to recognize a file that stands in for another.
const HEAD: u64 = 512;

fn refuse<T>(path: impl Into<PathBuf>, problem: FolderProblem) -> Result<T, DecoderError> {
    Err(DecoderError::Folder { path: path.into(), problem })
}

/// Refuses a path that is no model folder, judged by file names.
pub(crate) fn check(folder: &Path) -> Result<(), DecoderError> {
    if folder.is_file() {
        return refuse(folder, FolderProblem::File);
    }
    if !folder.exists() {
        return refuse(folder, FolderProblem::Missing);
    }
    if folder.join("config.json").exists() {
        return Ok(());
    }
    let names = names(folder)?;
    let has = |name: &str| names.iter().any(|other| other == name);
    let problem = if names.is_empty() {
        FolderProblem::Empty
    } else if has("adapter_config.json") {
        let text = std::fs::read(folder.join("adapter_config.json")).unwrap_or_default();
        let config: Option<serde_json::Value> = serde_json::from_slice(&text).ok();
        let base = config.as_ref().and_then(|config| config["base_model_name_or_path"].as_str());
        FolderProblem::Adapter { base: base.map(str::to_owned) }
    } else if has("model_index.json") {
        FolderProblem::Pipeline
    } else if let Some(snapshot) = snapshot(folder) {
        FolderProblem::Cache { snapshot }
    } else {
        let instead = find(&names, &[".gguf", "params.json", ".pth", ".safetensors", ".bin"]);
        FolderProblem::Lacks { file: "config.json", instead }
    };
    refuse(folder, problem)
}

/// The error of a folder without supported weights.
pub(crate) fn without_weights(folder: &Path) -> DecoderError {
    let names = names(folder).unwrap_or_default();
    let instead = find(
        &names,
        &[".safetensors", "pytorch_model.bin", ".bin", ".gguf", ".pth", ".pt", ".onnx", ".h5", ".msgpack"],
    );
    DecoderError::Folder { path: folder.to_owned(), problem: FolderProblem::Lacks { file: SINGLE, instead } }
}

/// Refuses a folder without a supported tokenizer.
pub(crate) fn check_tokenizer(folder: &Path) -> Result<(), DecoderError> {
    let path = folder.join("tokenizer.json");
    if path.exists() {
        return check_file(&path);
    }
    let names = names(folder)?;
    let instead = find(
        &names,
        &["tokenizer.model", "tekken.json", "vocab.json", "merges.txt", ".tiktoken", "vocab.txt"],
    );
    refuse(folder, FolderProblem::Lacks { file: "tokenizer.json", instead })
}

/// Refuses a checkpoint with missing shards.
pub(crate) fn check_shards<'a>(
    folder: &Path,
    files: impl ExactSizeIterator<Item = &'a String>,
) -> Result<(), DecoderError> {
    let of = files.len();
    let missing: Vec<&String> = files.filter(|file| !folder.join(file).exists()).collect();
    match missing.first() {
        None => Ok(()),
        Some(first) => {
            refuse(folder, FolderProblem::Shards { first: (*first).clone(), missing: missing.len(), of })
        }
    }
}

/// Refuses a file that stands in for another: a pointer, or a message of a server. Read errors are
/// left to the reader of the file.
pub(crate) fn check_file(path: &Path) -> Result<(), DecoderError> {
    let mut head = Vec::new();
    let Ok(file) = File::open(path) else { return Ok(()) };
    if file.take(HEAD).read_to_end(&mut head).is_err() {
        return Ok(());
    }
    match stand_in(&head) {
        Some(problem) => refuse(path, problem),
        None => Ok(()),
    }
}

fn stand_in(head: &[u8]) -> Option<FolderProblem> {
    let text = String::from_utf8_lossy(head);
    let text = text.trim_start_matches('\u{feff}').trim_start();
    if text.starts_with("version https://git-lfs") {
        return Some(FolderProblem::Pointer);
    }
    let lower = text.to_ascii_lowercase();
    let is_page = lower.starts_with("<!doctype") || lower.starts_with("<html") || lower.starts_with("<?xml");
    let is_message = [
        "access to model",
        "repository not found",
        "entry not found",
        "invalid username",
        "invalid credentials",
        "unauthorized",
        "not found",
        "{\"error\"",
    ]
    .iter()
    .any(|beginning| lower.starts_with(beginning));
    (is_page || is_message).then(|| {
        let line = text.lines().next().unwrap_or_default();
        FolderProblem::Answer { text: line.chars().take(100).collect() }
    })
}

/// The names of the entries of a folder, sorted.
fn names(folder: &Path) -> Result<Vec<String>, DecoderError> {
    let io = |source| DecoderError::Io { path: folder.to_owned(), source };
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(io)? {
        let name = entry.map_err(io)?.file_name().to_string_lossy().into_owned();
        // Skips Git's own folder, and the remains of interrupted downloads.
        if !name.starts_with('.') && !name.ends_with(".incomplete") {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

/// The first name with the first ending that matches any name.
fn find(names: &[String], endings: &[&str]) -> Option<String> {
    let with = |ending: &&str| names.iter().find(|name| name.ends_with(ending));
    endings.iter().find_map(with).cloned()
}

/// The model in a cache folder, `models--ORGANISATION--NAME/snapshots/REVISION`.
fn snapshot(folder: &Path) -> Option<PathBuf> {
    let snapshots = std::fs::read_dir(folder.join("snapshots")).ok()?;
    let mut found: Vec<PathBuf> = snapshots.filter_map(|entry| Some(entry.ok()?.path())).collect();
    found.sort();
    found.into_iter().find(|path| path.join("config.json").exists())
}
