//! Saved constraints: arbitrary bytes, and valid files with a few changed bytes and a correct
//! checksum.

use std::sync::LazyLock;

use burn_dfa_tokens::Origin;
use burn_dfa_tokens::{CompiledConstraint, Constraint};
use safetensors::SafeTensors;
use sha2::{Digest, Sha256};

use super::examine::{VOCABULARY, limits, shortest};

/// A valid file of each form.
static SOUND: LazyLock<[Vec<u8>; 2]> = LazyLock::new(|| {
    let constraint = Constraint::regex("(ab|c){1,3}|é*").expect("a regex");
    [CompiledConstraint::compile_token_level, CompiledConstraint::compile_byte_level].map(|compile| {
        let compiled = compile(&constraint, &VOCABULARY, &limits()).expect("a constraint");
        compiled.to_bytes(&Origin::new(&constraint, &limits())).expect("a file")
    })
});

/// Reads the bytes as a file, then a valid file with edits: each edit is three bytes, a position
/// and a value.
pub fn artifact(bytes: &[u8]) {
    read(bytes);
    let Some((form, edits)) = bytes.split_first() else { return };
    let mut file = SOUND[usize::from(form % 2)].clone();
    for edit in edits.as_chunks::<3>().0 {
        let at = usize::from(u16::from_le_bytes([edit[0], edit[1]])) % file.len();
        file[at] = edit[2];
    }
    if let Some((at, checksum)) = checksum(&file) {
        file[at..at + checksum.len()].copy_from_slice(checksum.as_bytes());
    }
    read(&file);
}

/// The result is an error or a valid compiled constraint.
fn read(file: &[u8]) {
    let Ok(constraint) = CompiledConstraint::from_bytes(file, &VOCABULARY, &limits()) else { return };
    constraint.validate().unwrap_or_else(|error| panic!("{error}"));
    shortest(&constraint, &VOCABULARY);
}

/// The position of a file's checksum and the correct checksum, as `docs/artifact.md` specifies.
fn checksum(file: &[u8]) -> Option<(usize, String)> {
    const KEY: &[u8] = b"\"checksum\":\"";
    let at = file.windows(KEY.len()).position(|window| window == KEY)? + KEY.len();
    file.get(at..at + 64)?;
    let (_, header) = SafeTensors::read_metadata(file).ok()?;
    let tensors = SafeTensors::deserialize(file).ok()?;
    let mut hasher = Sha256::new();
    let number = |hasher: &mut Sha256, number: usize| hasher.update((number as u64).to_le_bytes());
    let text = |hasher: &mut Sha256, text: &str| {
        number(hasher, text.len());
        hasher.update(text);
    };
    let mut entries: Vec<_> =
        header.metadata().iter().flatten().filter(|(key, _)| *key != "checksum").collect();
    entries.sort();
    number(&mut hasher, entries.len());
    for (key, value) in entries {
        text(&mut hasher, key);
        text(&mut hasher, value);
    }
    let mut views = tensors.tensors();
    views.sort_by(|a, b| a.0.cmp(&b.0));
    number(&mut hasher, views.len());
    for (name, view) in views {
        text(&mut hasher, &name);
        text(&mut hasher, &view.dtype().to_string());
        number(&mut hasher, view.shape().len());
        view.shape().iter().for_each(|&dimension| number(&mut hasher, dimension));
        hasher.update(view.data());
    }
    let digest = hasher.finalize();
    Some((at, digest.iter().map(|byte| format!("{byte:02x}")).collect()))
}
