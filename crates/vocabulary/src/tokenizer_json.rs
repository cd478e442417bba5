//! Reads `tokenizer.json`, the format of Hugging Face's `tokenizers`.
//!
//! Supported models are `BPE`, `Unigram` and `WordLevel`, with a decoder that gives each token
//! position-independent bytes, see [`decoder`](super::decoder). This includes byte-level BPE
//! (GPT-2, Llama 3, Qwen …) and SentencePiece with or without byte fallback (Llama 2, Mistral,
//! Gemma, T5 …); `WordPiece` and suffixes or prefixes of words (`</w>`) are refused.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use serde_json::error::Category;

use super::decoder::Decoder;
use super::error::{cannot_read, in_file, not_json};
use super::folder::without_mark;
use super::json::{Added, File, Model};
use super::{TokenId, TokenKind, Vocabulary};
use burn_dfa_common::{Error, Result};

/// The source of an id, before its bytes are decoded.
#[derive(Clone, Copy)]
enum Slot<'a> {
    Hole,
    Piece(&'a str),
    Added(&'a Added),
}

impl Vocabulary {
    /// Reads the text of a `tokenizer.json`. The result has no end-of-sequence ids; see
    /// [`with_eos`](Self::with_eos) and [`from_folder`](Self::from_folder).
    ///
    /// An added token overrides an entry of the model with the same id. Ids without either are
    /// [`Unused`](TokenKind::Unused). Entries of the model that spell a special added token or are
    /// the model's unknown token are [`Special`](TokenKind::Special).
    ///
    /// ```
    /// use burn_dfa_tokens::{TokenId, Vocabulary};
    ///
    /// let json = r#"{
    ///     "added_tokens": [{"id": 2, "content": "<|end|>", "special": true}],
    ///     "decoder": {"type": "ByteLevel"},
    ///     "model": {"type": "BPE", "vocab": {"a": 0, "Ġa": 1}, "merges": []}
    /// }"#;
    /// let vocabulary = Vocabulary::from_tokenizer_json(json)?.with_eos([TokenId(2)])?;
    /// assert_eq!(vocabulary.bytes(TokenId(1)), Some(&b" a"[..]));
    /// # Ok::<(), burn_dfa_tokens::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Vocabulary`](crate::ErrorKind::Vocabulary): not such a file; a model or decoder
    /// that is not supported, by name; an id given twice, negative, not below
    /// [`MAX_LEN`](Self::MAX_LEN), or far beyond the number of tokens (16 ids per token and 65,536
    /// more are allowed); a token of more than [`MAX_TOKEN_BYTES`](Self::MAX_TOKEN_BYTES), or more
    /// than [`MAX_BYTES`](Self::MAX_BYTES) in all.
    pub fn from_tokenizer_json(json: impl AsRef<[u8]>) -> Result<Self> {
        let text = std::str::from_utf8(json.as_ref())
            .map_err(|error| not_json(format!("not UTF-8 at byte {}", error.valid_up_to())))?;
        if text.is_empty() {
            return Err(not_json("empty"));
        }
        let file: File =
            serde_json::from_str(without_mark(text)).map_err(|error| match error.classify() {
                Category::Syntax | Category::Eof => not_json(format!("not JSON, {error}")),
                Category::Data | Category::Io => Error::vocabulary(format!("{error}")),
            })?;
        assemble(&file)
    }

    /// Reads a `tokenizer.json` file; see [`from_tokenizer_json`](Self::from_tokenizer_json).
    ///
    /// # Errors
    /// As [`from_tokenizer_json`](Self::from_tokenizer_json), and if the file cannot be read; the
    /// message names the file.
    pub fn from_tokenizer_file(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let json = std::fs::read(path).map_err(|error| cannot_read(path, &error))?;
        Self::from_tokenizer_json(json).map_err(|error| in_file(path, &error))
    }
}

fn assemble(file: &File) -> Result<Vocabulary> {
    let model = &file.model;
    check_model(model)?;
    let decoder = Decoder::new(&file.decoder, &file.pre_tokenizer, model.byte_fallback == Some(true))?;
    let added = file.added_tokens.as_deref().unwrap_or_default();
    let slots = slots(model, added)?;

    let specials: HashSet<&str> = added
        .iter()
        .filter(|token| token.special)
        .map(|token| token.content.as_str())
        .chain(model.unk_token.as_deref())
        .collect();
    let unknown = model.unk_id.map(|id| id.0);
    let mut vocabulary = Vocabulary::default();
    for (id, slot) in (0u32..).zip(slots) {
        let special = |content: &str| specials.contains(content) || unknown == Some(id);
        match slot {
            Slot::Hole => vocabulary.push(TokenKind::Unused, &[])?,
            Slot::Piece(piece) if special(piece) => vocabulary.push(TokenKind::Special, piece.as_bytes())?,
            Slot::Piece(piece) => vocabulary.push(TokenKind::Normal, &decoder.piece(piece)?)?,
            Slot::Added(token) if special(&token.content) => {
                vocabulary.push(TokenKind::Special, token.content.as_bytes())?;
            }
            Slot::Added(token) => vocabulary.push(TokenKind::Added, &decoder.added(&token.content)?)?,
        }
    }
    Ok(vocabulary)
}

/// The name of the model; missing in files from before 2020.
fn model_name(model: &Model) -> &str {
    match &model.name {
        Some(name) => name,
        None if model.vocab.is_list => "Unigram",
        None if model.merges.is_some() => "BPE",
        None if model.max_input_chars_per_word.is_some() => "WordPiece",
        None => "WordLevel",
    }
}

fn check_model(model: &Model) -> Result<()> {
    let refuse =
        |reason: String| Err(Error::vocabulary(format!("the tokenizer's model is not supported: {reason}")));
    let name = model_name(model);
    match name {
        "WordPiece" => {
            return refuse("`WordPiece`, where the bytes of a token depend on the one before it".to_owned());
        }
        "BPE" | "WordLevel" if model.vocab.is_list => {
            return refuse(format!("`{name}` whose `vocab` is a list"));
        }
        "Unigram" if !model.vocab.is_list => {
            return refuse("`Unigram` whose `vocab` is not a list".to_owned());
        }
        "BPE" | "Unigram" | "WordLevel" => {}
        other => return refuse(format!("`{other}`")),
    }
    let affixes = [
        ("continuing_subword_prefix", &model.continuing_subword_prefix),
        ("end_of_word_suffix", &model.end_of_word_suffix),
    ];
    for (key, affix) in affixes {
        if let Some(affix) = affix.as_ref().filter(|affix| !affix.is_empty()) {
            return refuse(format!(
                "`{name}` with the {key} {affix:?}, where the bytes of a token depend on its neighbours"
            ));
        }
    }
    Ok(())
}

/// The source of each id. Refuses duplicate ids before allocating memory up to the highest id.
fn slots<'a>(model: &'a Model, added: &'a [Added]) -> Result<Vec<Slot<'a>>> {
    let entries = &model.vocab.entries;
    let added = || added.iter().filter(|token| !token.content.is_empty());
    let Some(last) = entries.iter().map(|&(_, id)| id).chain(added().map(|token| token.id.0)).max() else {
        return Err(Error::vocabulary("it has no tokens"));
    };
    let count = entries.len() + added().count();
    let limit = count.saturating_mul(16).saturating_add(1 << 16);
    if last as usize >= limit {
        return Err(Error::vocabulary(format!(
            "id {last} is too far beyond its {count} tokens (the limit is {limit})"
        )));
    }

    let mut slots = vec![Slot::Hole; last as usize + 1];
    let mut seen = HashMap::with_capacity(entries.len());
    for (piece, id) in entries {
        if let Slot::Piece(other) = slots[*id as usize] {
            return Err(Error::vocabulary(format!("id {id} is both {other:?} and {piece:?}")));
        }
        if let Some(other) = seen.insert(piece.as_str(), *id).filter(|_| !model.vocab.is_list) {
            return Err(Error::vocabulary(format!("token {piece:?} has both id {other} and id {id}")));
        }
        slots[*id as usize] = Slot::Piece(piece);
    }
    for token in added() {
        let id = TokenId(token.id.0);
        match slots[id.index()] {
            Slot::Added(other) if other.content != token.content => {
                return Err(Error::vocabulary(format!(
                    "added token {id} is both {:?} and {:?}",
                    other.content, token.content
                )));
            }
            _ => slots[id.index()] = Slot::Added(token),
        }
    }
    Ok(slots)
}
