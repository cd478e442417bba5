//! The parts of `tokenizer.json` used by a vocabulary, as in the file.
//!
//! The vocabulary keeps duplicate keys, so that they can be refused. The merges, the largest part
//! of the file, are skipped.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::Vocabulary;

#[derive(Deserialize)]
pub(super) struct File {
    #[serde(default)]
    pub(super) added_tokens: Option<Vec<Added>>,
    #[serde(default)]
    pub(super) pre_tokenizer: Value,
    #[serde(default)]
    pub(super) decoder: Value,
    pub(super) model: Model,
}

#[derive(Deserialize)]
pub(super) struct Added {
    pub(super) id: Id,
    pub(super) content: String,
    pub(super) special: bool,
}

#[derive(Deserialize)]
pub(super) struct Model {
    #[serde(rename = "type", default)]
    pub(super) name: Option<String>,
    pub(super) vocab: Vocab,
    #[serde(default)]
    pub(super) merges: Option<IgnoredAny>,
    #[serde(default)]
    pub(super) max_input_chars_per_word: Option<IgnoredAny>,
    #[serde(default)]
    pub(super) unk_token: Option<String>,
    #[serde(default)]
    pub(super) unk_id: Option<Id>,
    #[serde(default)]
    pub(super) byte_fallback: Option<bool>,
    #[serde(default)]
    pub(super) continuing_subword_prefix: Option<String>,
    #[serde(default)]
    pub(super) end_of_word_suffix: Option<String>,
}

/// The `vocab` of a model, in the order of the file.
pub(super) struct Vocab {
    pub(super) entries: Vec<(String, u32)>,
    /// Whether it is a list of tokens and scores, as in `Unigram`, and not an object of ids.
    pub(super) is_list: bool,
}

impl<'de> Deserialize<'de> for Vocab {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(VocabVisitor)
    }
}

struct VocabVisitor;

impl<'de> Visitor<'de> for VocabVisitor {
    type Value = Vocab;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("an object from tokens to ids, or a list of tokens with scores")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Vocab, A::Error> {
        let mut entries = Vec::new();
        while let Some(piece) = map.next_key::<String>()? {
            let id: Id =
                map.next_value().map_err(|error| A::Error::custom(format!("token {piece:?}: {error}")))?;
            entries.push((piece, id.0));
        }
        Ok(Vocab { entries, is_list: false })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vocab, A::Error> {
        let mut entries = Vec::new();
        while let Some((piece, _score)) = list.next_element::<(String, f64)>()? {
            if entries.len() == Vocabulary::MAX_LEN {
                return Err(A::Error::custom(format!("more than {} tokens", Vocabulary::MAX_LEN)));
            }
            let id = entries.len() as u32;
            entries.push((piece, id));
        }
        Ok(Vocab { entries, is_list: true })
    }
}

/// A token id below [`Vocabulary::MAX_LEN`].
#[derive(Clone, Copy)]
pub(super) struct Id(pub(super) u32);

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(IdVisitor)
    }
}

struct IdVisitor;

impl Visitor<'_> for IdVisitor {
    type Value = Id;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a token id")
    }

    fn visit_u64<E: serde::de::Error>(self, id: u64) -> Result<Id, E> {
        match u32::try_from(id) {
            Ok(small) if (small as usize) < Vocabulary::MAX_LEN => Ok(Id(small)),
            _ => Err(E::custom(format!("id {id} is not below the limit of {}", Vocabulary::MAX_LEN))),
        }
    }

    fn visit_i64<E: serde::de::Error>(self, id: i64) -> Result<Id, E> {
        u64::try_from(id)
            .map_err(|_| E::custom(format!("id {id} is negative")))
            .and_then(|id| self.visit_u64(id))
    }

    fn visit_f64<E: serde::de::Error>(self, id: f64) -> Result<Id, E> {
        Err(E::custom(format!("id {id} is not a whole number in range")))
    }
}
