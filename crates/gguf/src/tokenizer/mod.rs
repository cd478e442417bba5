//! The tokenizer of a GGUF file, as the files that a Hugging Face folder has for it.
//!
//! A file with the key `tokenizer.huggingface.json` holds its `tokenizer.json`. Otherwise the file
//! is written from the tokens, their types, and the merges or scores:
//!
//! | `tokenizer.ggml.model` | written |
//! |---|---|
//! | `gpt2` | byte-level BPE with the merges of the file; [`pre`] knows how its texts are split |
//! | `llama` | BPE of SentencePiece with byte fallback; [`sentencepiece`] derives the merges from the scores |

mod ends;
mod pre;
mod sentencepiece;

use std::collections::HashMap;
use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use crate::error::GgufError;
use crate::metadata::Metadata;
use pre::PreTokenizer;

pub use ends::is_end;

const MODEL: &str = "tokenizer.ggml.model";
const PRE: &str = "tokenizer.ggml.pre";
const TOKENS: &str = "tokenizer.ggml.tokens";
const TYPES: &str = "tokenizer.ggml.token_type";
const MERGES: &str = "tokenizer.ggml.merges";
const SCORES: &str = "tokenizer.ggml.scores";
const BOS: &str = "tokenizer.ggml.bos_token_id";
/// The ends of a sequence, of a turn and of a message.
const ENDS: [&str; 3] =
    ["tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"];
const ADD_BOS: &str = "tokenizer.ggml.add_bos_token";
const ADD_EOS: &str = "tokenizer.ggml.add_eos_token";
const ADD_SPACE: &str = "tokenizer.ggml.add_space_prefix";
const REMOVE_SPACES: &str = "tokenizer.ggml.remove_extra_whitespaces";
const WHOLE: &str = "tokenizer.huggingface.json";
const TEMPLATE: &str = "tokenizer.chat_template";

/// The greatest sum of the squared lengths of the tokens of a SentencePiece vocabulary, in bytes. The
/// sum of Mistral 7B is 1.6 million.
const MAX_SQUARES: usize = 1 << 28;

/// The tokenizer of a GGUF file, as the files of a Hugging Face folder.
///
/// ```no_run
/// use burn_dfa_gguf::GgufFile;
///
/// let files = GgufFile::open("SmolLM2-135M-Instruct.Q4_1.gguf")?.tokenizer_files()?;
/// assert!(files.tokenizer.contains("<|im_end|>"));
/// # Ok::<(), burn_dfa_gguf::GgufError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TokenizerFiles {
    /// `tokenizer.json`.
    pub tokenizer: String,
    /// `tokenizer_config.json`: the chat template, and the texts of the first and the last token.
    pub tokenizer_config: String,
    /// `generation_config.json`: the ids that end a sequence, and the recommended sampling.
    pub generation_config: String,
}

impl TokenizerFiles {
    pub(crate) fn new(metadata: &Metadata) -> Result<Self, GgufError> {
        let tokens = Tokens::new(metadata)?;
        let tokenizer = match metadata.text(WHOLE)? {
            Some(whole) => whole.to_owned(),
            None => tokens.tokenizer(metadata)?,
        };
        let text = |id: Option<u32>| id.map(|id| tokens.texts[id as usize]);
        let eos = tokens.special(metadata, ENDS[0])?;
        let mut tokenizer_config = json!({
            "bos_token": text(tokens.special(metadata, BOS)?),
            "eos_token": text(eos),
        });
        if let Some(template) = metadata.text(TEMPLATE)? {
            tokenizer_config["chat_template"] = json!(template);
        }
        let mut generation_config = json!({ "eos_token_id": tokens.ends(metadata)? });
        for (key, field) in
            [("temp", "temperature"), ("top_k", "top_k"), ("top_p", "top_p"), ("min_p", "min_p")]
        {
            if let Some(number) = metadata.number(&format!("general.sampling.{key}"))? {
                generation_config[field] = json!(number);
                generation_config["do_sample"] = json!(true);
            }
        }
        Ok(Self {
            tokenizer,
            tokenizer_config: tokenizer_config.to_string(),
            generation_config: generation_config.to_string(),
        })
    }
}

/// The type of a token: the numbers of `tokenizer.ggml.token_type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TokenType {
    Normal,
    Unknown,
    Control,
    UserDefined,
    Unused,
    Byte,
}

impl TokenType {
    fn from_number(number: f64) -> Option<Self> {
        [Self::Normal, Self::Unknown, Self::Control, Self::UserDefined, Self::Unused, Self::Byte]
            .into_iter()
            .zip(1u8..)
            .find_map(|(kind, id)| (f64::from(id) == number).then_some(kind))
    }

    /// Whether the token stands for no text.
    fn is_special(self) -> bool {
        matches!(self, Self::Control | Self::Unknown)
    }
}

/// The tokens of a file.
struct Tokens<'a> {
    texts: Vec<&'a str>,
    types: Vec<TokenType>,
    /// The id of each text, except for unused ids.
    ids: HashMap<&'a str, u32>,
}

impl<'a> Tokens<'a> {
    fn new(metadata: &'a Metadata) -> Result<Self, GgufError> {
        let texts = metadata.texts(TOKENS)?.ok_or_else(|| GgufError::metadata(TOKENS, "is missing"))?;
        if u32::try_from(texts.len()).is_err() {
            return Err(GgufError::metadata(TOKENS, "has too many entries"));
        }
        let mut types = match metadata.numbers(TYPES)? {
            None => vec![TokenType::Normal; texts.len()],
            Some(numbers) => {
                let read = |(id, &number): (usize, &f64)| {
                    TokenType::from_number(number).ok_or_else(|| {
                        GgufError::metadata(TYPES, format!("has the unknown type {number} at the token {id}"))
                    })
                };
                numbers.iter().enumerate().map(read).collect::<Result<_, _>>()?
            }
        };
        check_length(TYPES, types.len(), texts.len())?;
        let mut ids = HashMap::with_capacity(texts.len());
        for (id, (text, kind)) in (0u32..).zip(texts.iter().copied().zip(&mut types)) {
            if text.is_empty() {
                *kind = TokenType::Unused;
            }
            if *kind == TokenType::Unused {
                continue;
            }
            if let Some(other) = ids.insert(text, id) {
                return Err(GgufError::metadata(
                    TOKENS,
                    format!("has {text:?} twice, as {other} and as {id}"),
                ));
            }
        }
        Ok(Self { texts, types, ids })
    }

    /// The ids and texts of all tokens of a type that `test` accepts.
    fn of_type(&self, test: impl Fn(TokenType) -> bool) -> impl Iterator<Item = (u32, &'a str, TokenType)> {
        let all = (0u32..).zip(self.texts.iter().copied().zip(&self.types));
        all.filter(move |(_, (_, kind))| test(**kind)).map(|(id, (text, kind))| (id, text, *kind))
    }

    /// The id in a key, which must be the id of a token.
    fn special(&self, metadata: &Metadata, key: &str) -> Result<Option<u32>, GgufError> {
        let Some(id) = metadata.unsigned(key)? else { return Ok(None) };
        match u32::try_from(id) {
            Ok(id) if (id as usize) < self.texts.len() => Ok(Some(id)),
            _ => Err(GgufError::metadata(key, format!("is {id}, but there are {} tokens", self.texts.len()))),
        }
    }

    /// The ids that end a sequence: the ids that the file names, and control tokens with the name
    /// of an end. Files name one end where models have two, the end of a turn and of a text.
    fn ends(&self, metadata: &Metadata) -> Result<Vec<u32>, GgufError> {
        let mut ends = Vec::new();
        for key in ENDS {
            ends.extend(self.special(metadata, key)?);
        }
        let names = || self.of_type(TokenType::is_special);
        let has = |name: &str| names().any(|(_, text, _)| text == name);
        ends.extend(names().filter(|(_, text, _)| is_end(text, has)).map(|(id, ..)| id));
        ends.sort_unstable();
        ends.dedup();
        Ok(ends)
    }

    /// Writes `tokenizer.json`.
    fn tokenizer(&self, metadata: &'a Metadata) -> Result<String, GgufError> {
        let mut parts = match metadata.text(MODEL)? {
            Some("gpt2") => self.byte_level(metadata)?,
            Some("llama") => self.sentencepiece(metadata)?,
            found => {
                let message = match found {
                    None => "is missing".to_owned(),
                    Some(found) => format!("is {found:?}; \"gpt2\" and \"llama\" are supported"),
                };
                return Err(GgufError::metadata(MODEL, message));
            }
        };
        let added = self.of_type(|kind| kind.is_special() || kind == TokenType::UserDefined);
        let added = added.map(|(id, text, kind)| {
            json!({
                "id": id, "content": text, "single_word": false, "lstrip": false, "rstrip": false,
                "normalized": false, "special": kind.is_special(),
            })
        });
        parts.file["version"] = json!("1.0");
        parts.file["added_tokens"] = added.collect();
        let vocab = self.of_type(|kind| kind != TokenType::Unused);
        Ok(parts.write(vocab.map(|(id, text, _)| (id, text))))
    }

    /// A tokenizer whose characters stand for bytes, without its tokens.
    fn byte_level(&self, metadata: &'a Metadata) -> Result<Parts<'a>, GgufError> {
        let name = metadata.text(PRE)?;
        let pre = PreTokenizer::named(name).map_err(|message| GgufError::metadata(PRE, message))?;
        let merges = metadata.texts(MERGES)?.ok_or_else(|| GgufError::metadata(MERGES, "is missing"))?;
        let split = |(index, merge): (usize, &'a str)| {
            let pair = merge.split_once(' ').filter(|pair| self.merges(*pair));
            pair.ok_or_else(|| {
                GgufError::metadata(MERGES, format!("has {merge:?} at {index}, which merges no tokens"))
            })
        };
        let merges = merges.into_iter().enumerate().map(split).collect::<Result<Vec<_>, _>>()?;
        let file = json!({
            "normalizer": pre.normalizer(),
            "pre_tokenizer": pre.splits(),
            "post_processor": self.post_processor(metadata, pre.adds_bos())?,
            "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
        });
        let model = json!({
            "type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
            "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false,
            "ignore_merges": pre.ignores_merges(),
        });
        Ok(Parts { file, model, merges })
    }

    /// Whether two texts and the text of both together are tokens.
    fn merges(&self, (left, right): (&str, &str)) -> bool {
        let is_token = |text: &str| self.ids.contains_key(text);
        is_token(left) && is_token(right) && is_token(&[left, right].concat())
    }

    /// A tokenizer of SentencePiece, without its tokens.
    fn sentencepiece(&self, metadata: &Metadata) -> Result<Parts<'a>, GgufError> {
        if metadata.truth(REMOVE_SPACES)? == Some(true) {
            return Err(GgufError::metadata(REMOVE_SPACES, "is true, which is not supported"));
        }
        let scores = metadata.numbers(SCORES)?.ok_or_else(|| GgufError::metadata(SCORES, "is missing"))?;
        check_length(SCORES, scores.len(), self.texts.len())?;
        // The merges of a token take time and memory in proportion to the square of its length.
        let normal = self.of_type(|kind| kind == TokenType::Normal);
        let squares = normal.map(|(_, text, _)| text.len().saturating_mul(text.len()));
        if squares.fold(0, usize::saturating_add) > MAX_SQUARES {
            return Err(GgufError::metadata(TOKENS, "has tokens that are too long"));
        }
        let adds_space = metadata.truth(ADD_SPACE)?.unwrap_or(true);
        let unknown = self.of_type(|kind| kind == TokenType::Unknown).next().map(|(_, text, _)| text);
        let has_bytes = self.types.contains(&TokenType::Byte);

        let mut normalizers = vec![json!({"type": "Replace", "pattern": {"String": " "}, "content": "▁"})];
        let mut decoders = vec![
            json!({"type": "Replace", "pattern": {"String": "▁"}, "content": " "}),
            json!({"type": "ByteFallback"}),
            json!({"type": "Fuse"}),
        ];
        if adds_space {
            normalizers.insert(0, json!({"type": "Prepend", "prepend": "▁"}));
            decoders.push(json!({"type": "Strip", "content": " ", "start": 1, "stop": 0}));
        }
        let file = json!({
            "normalizer": {"type": "Sequence", "normalizers": normalizers},
            "pre_tokenizer": null,
            "post_processor": self.post_processor(metadata, true)?,
            "decoder": {"type": "Sequence", "decoders": decoders},
        });
        let model = json!({
            "type": "BPE", "dropout": null, "unk_token": unknown, "continuing_subword_prefix": null,
            "end_of_word_suffix": null, "fuse_unk": true, "byte_fallback": has_bytes, "ignore_merges": false,
        });
        Ok(Parts { file, model, merges: sentencepiece::merges(self, &scores) })
    }

    /// Adds the first and the last token of a text. `adds_bos` holds if the file does not say.
    fn post_processor(&self, metadata: &Metadata, adds_bos: bool) -> Result<Value, GgufError> {
        let (bos, eos) = (self.special(metadata, BOS)?, self.special(metadata, ENDS[0])?);
        // A file without the id and without the flag adds nothing.
        let bos = match metadata.truth(ADD_BOS)? {
            Some(true) => {
                Some(bos.ok_or_else(|| GgufError::metadata(BOS, "is missing, and texts begin with it"))?)
            }
            Some(false) => None,
            None => bos.filter(|_| adds_bos),
        };
        let eos = match metadata.truth(ADD_EOS)? {
            Some(true) => {
                Some(eos.ok_or_else(|| GgufError::metadata(ENDS[0], "is missing, and texts end with it"))?)
            }
            _ => None,
        };
        if bos.is_none() && eos.is_none() {
            return Ok(Value::Null);
        }
        let text = |id: u32| self.texts[id as usize];
        let sequence = |name: &str, kind: u8| {
            let token =
                |id: Option<u32>| id.map(|id| json!({"SpecialToken": {"id": text(id), "type_id": kind}}));
            let sequence = Some(json!({"Sequence": {"id": name, "type_id": kind}}));
            [token(bos), sequence, token(eos)].into_iter().flatten().collect::<Vec<Value>>()
        };
        let special = [bos, eos].into_iter().flatten();
        let special = special
            .map(|id| (text(id).to_owned(), json!({"id": text(id), "ids": [id], "tokens": [text(id)]})));
        let pair = [sequence("A", 0), sequence("B", 1)].concat();
        Ok(json!({
            "type": "TemplateProcessing",
            "single": sequence("A", 0),
            "pair": pair,
            "special_tokens": special.collect::<Map<_, _>>(),
        }))
    }
}

/// The parts of a `tokenizer.json` without its vocabulary.
struct Parts<'a> {
    /// The file without its model.
    file: Value,
    /// The model without its vocabulary and its merges.
    model: Value,
    /// The two texts of each merge, in the order in which they apply.
    merges: Vec<(&'a str, &'a str)>,
}

impl Parts<'_> {
    /// Writes the file with a vocabulary.
    ///
    /// The vocabulary and the merges are written entry by entry. As values of JSON they would take
    /// ten times the memory of their text.
    fn write<'t>(&self, vocab: impl Iterator<Item = (u32, &'t str)>) -> String {
        // A merge as one text takes less memory to read than as a pair. Its reader splits the text
        // at every space, and takes the text for a comment if it begins with `#version`.
        let is_one_text = |&(left, right): &(&str, &str)| {
            !left.contains(' ') && !right.contains(' ') && !left.starts_with("#version")
        };
        let are_texts = self.merges.iter().all(is_one_text);
        let comma = |index: usize| if index == 0 { "" } else { "," };

        let mut text = open(&self.file) + ",\"model\":" + &open(&self.model) + ",\"vocab\":{";
        for (index, (id, token)) in vocab.enumerate() {
            let _ = write!(text, "{}{}:{id}", comma(index), json!(token));
        }
        text += "},\"merges\":[";
        for (index, (left, right)) in self.merges.iter().enumerate() {
            let merge = if are_texts { json!(format!("{left} {right}")) } else { json!([left, right]) };
            let _ = write!(text, "{}{merge}", comma(index));
        }
        text + "]}}"
    }
}

/// The text of an object without its last brace.
fn open(object: &Value) -> String {
    let mut text = object.to_string();
    text.pop();
    text
}

fn check_length(key: &str, found: usize, tokens: usize) -> Result<(), GgufError> {
    if found == tokens {
        return Ok(());
    }
    Err(GgufError::metadata(key, format!("has {found} entries for {tokens} tokens")))
}
