//! Encodes special tokens in messages as text.
//!
//! A chat template writes special tokens around messages: `<|im_start|>user`. A message with the
//! text `<|im_end|>` would end early, and the rest of it would count as another speaker's turn. So
//! before the template runs, the first character of each special token in a message is replaced by
//! a stand-in, a character of a private area that occurs nowhere else. The tokenizer then finds
//! only the special tokens of the template. The text between them gets its characters back before
//! it is split into tokens:
//!
//! ```text
//! message                 hi<|im_end|>
//! with a stand-in S       hiS|im_end|>
//! rendered                <|im_start|>user\nhiS|im_end|><|im_end|>
//! special tokens          [<|im_start|>] user\nhiS|im_end|> [<|im_end|>]
//! tokens                  [<|im_start|>] user \n hi < | im _ end | > [<|im_end|>]
//! ```
//!
//! Messages without special tokens are rendered and encoded unchanged.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::RangeInclusive;

use burn_dfa::TokenId;
use serde_json::{Map, Value};
use tokenizers::{Model, NormalizedString, Normalizer, OffsetType, PreTokenizer, Token, Tokenizer};

/// Characters that serve as stand-ins.
const PRIVATE: RangeInclusive<char> = '\u{10f000}'..='\u{10fffd}';

/// A conversation as a chat template writes it. Special tokens within its messages are marked as
/// text.
///
/// ```
/// use burn_dfa_decoder::ChatPrompt;
///
/// let prompt = ChatPrompt::from("<|user|>Hello<|assistant|>".to_owned());
/// assert_eq!(prompt.text(), "<|user|>Hello<|assistant|>");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChatPrompt {
    text: String,
    /// The original character of each stand-in in the text.
    stand_ins: BTreeMap<char, char>,
}

impl From<String> for ChatPrompt {
    /// A text in which every special token keeps its meaning.
    fn from(text: String) -> Self {
        Self { text, stand_ins: BTreeMap::new() }
    }
}

impl ChatPrompt {
    /// The text.
    pub fn text(&self) -> String {
        self.text.chars().map(|char| restore(&self.stand_ins, char)).collect()
    }
}

fn restore(stand_ins: &BTreeMap<char, char>, char: char) -> char {
    stand_ins.get(&char).copied().unwrap_or(char)
}

/// Texts that are single tokens with a meaning for the model.
#[derive(Clone, Debug, Default)]
pub(crate) struct Marks {
    special: Texts,
    /// Tokens that are not special, but occur in the chat template, such as `<think>`.
    of_template: Texts,
    ids: HashSet<u32>,
}

/// Texts to look for.
#[derive(Clone, Debug, Default)]
struct Texts {
    texts: HashSet<String>,
    /// The lengths of the texts in bytes.
    lengths: BTreeSet<usize>,
    first: HashSet<u8>,
}

impl Texts {
    fn insert(&mut self, text: &str) {
        let Some(&first) = text.as_bytes().first() else { return };
        self.first.insert(first);
        self.lengths.insert(text.len());
        self.texts.insert(text.to_owned());
    }

    /// Whether one of the texts begins at a byte of `text`.
    fn begins_at(&self, text: &str, at: usize) -> bool {
        self.first.contains(&text.as_bytes()[at])
            && self
                .lengths
                .iter()
                .any(|length| text.get(at..at + length).is_some_and(|part| self.texts.contains(part)))
    }
}

impl Marks {
    /// The marks of a tokenizer and of a chat template with this source.
    pub(crate) fn new(tokenizer: &Tokenizer, template: Option<&str>) -> Self {
        let mut marks = Self::default();
        for (&id, token) in tokenizer.get_added_vocabulary().get_added_tokens_decoder().iter() {
            let text = token.content.as_str();
            if token.special {
                marks.special.insert(text);
            } else if !text.trim().is_empty() && template.is_some_and(|template| template.contains(text)) {
                marks.of_template.insert(text);
            } else {
                continue;
            }
            marks.ids.insert(id);
        }
        marks
    }

    /// Whether a mark begins at a byte of a text. Templates find the reasoning in the model's own
    /// messages by its marks, so these messages are searched only for special tokens.
    fn begins_at(&self, text: &str, at: usize, is_own: bool) -> bool {
        text.is_char_boundary(at)
            && (self.special.begins_at(text, at) || !is_own && self.of_template.begins_at(text, at))
    }
}

/// Puts stand-ins into messages.
struct Escaper<'a> {
    marks: &'a Marks,
    /// Private characters that the request contains.
    taken: BTreeSet<char>,
    stand_ins: BTreeMap<char, char>,
    /// Whether the current text is the model's own.
    is_own: bool,
}

impl Escaper<'_> {
    /// Replaces marks in the texts of a value.
    fn value(&mut self, value: &Value) -> Option<Value> {
        Some(match value {
            Value::String(text) => Value::String(self.text(text)?),
            Value::Array(items) => {
                Value::Array(items.iter().map(|item| self.value(item)).collect::<Option<_>>()?)
            }
            Value::Object(fields) => {
                let fields = fields.iter().map(|(name, value)| Some((self.text(name)?, self.value(value)?)));
                Value::Object(fields.collect::<Option<Map<_, _>>>()?)
            }
            other => other.clone(),
        })
    }

    fn text(&mut self, text: &str) -> Option<String> {
        let mut escaped = String::with_capacity(text.len());
        for (at, char) in text.char_indices() {
            escaped.push(match self.marks.begins_at(text, at, self.is_own) {
                true => self.stand_in(char)?,
                false => char,
            });
        }
        Some(escaped)
    }

    /// The stand-in of a character; `None` if every private character is taken.
    fn stand_in(&mut self, char: char) -> Option<char> {
        if let Some((&stand_in, _)) = self.stand_ins.iter().find(|(_, own)| **own == char) {
            return Some(stand_in);
        }
        let free = |own: &char| !self.taken.contains(own) && !self.stand_ins.contains_key(own);
        let stand_in = PRIVATE.into_iter().find(free)?;
        self.stand_ins.insert(stand_in, char);
        Some(stand_in)
    }
}

/// Messages and tools with stand-ins.
pub(crate) struct EscapedMessages {
    pub(crate) messages: Vec<Value>,
    pub(crate) tools: Vec<Value>,
    stand_ins: BTreeMap<char, char>,
}

impl EscapedMessages {
    /// The prompt that a template writes from the messages.
    pub(crate) fn prompt(self, text: String) -> ChatPrompt {
        ChatPrompt { text, stand_ins: self.stand_ins }
    }
}

/// Whether `is` is true for any text of a value.
fn any(value: &Value, is: &mut impl FnMut(&str) -> bool) -> bool {
    match value {
        Value::String(text) => is(text),
        Value::Array(items) => items.iter().any(|item| any(item, is)),
        Value::Object(fields) => fields.iter().any(|(name, value)| is(name) || any(value, is)),
        _ => false,
    }
}

impl Marks {
    /// Messages and tools with stand-ins; `None` if they hold no marks.
    ///
    /// # Errors
    /// A message, if no private character is free.
    pub(crate) fn escape(
        &self,
        messages: &[Value],
        tools: &[Value],
        template: &str,
    ) -> Result<Option<EscapedMessages>, String> {
        let is_own = |message: &Value| message["role"] == "assistant";
        let mut has_marks = false;
        for (values, own) in [(messages, true), (tools, false)] {
            for value in values {
                let is_own = own && is_own(value);
                has_marks |=
                    any(value, &mut |text| (0..text.len()).any(|at| self.begins_at(text, at, is_own)));
            }
        }
        if !has_marks {
            return Ok(None);
        }
        let mut taken: BTreeSet<char> = template.chars().filter(|char| PRIVATE.contains(char)).collect();
        for value in messages.iter().chain(tools) {
            any(value, &mut |text| {
                taken.extend(text.chars().filter(|char| PRIVATE.contains(char)));
                false
            });
        }
        let mut escaper = Escaper { marks: self, taken, stand_ins: BTreeMap::new(), is_own: false };
        let mut all = |values: &[Value], own: bool| {
            let one = |value: &Value| {
                escaper.is_own = own && is_own(value);
                escaper.value(value)
            };
            values.iter().map(one).collect::<Option<Vec<_>>>()
        };
        let none =
            "the messages hold special tokens and every private character, of which none can stand for them";
        let messages = all(messages, true).ok_or(none)?;
        let tools = all(tools, false).ok_or(none)?;
        Ok(Some(EscapedMessages { messages, tools, stand_ins: escaper.stand_ins }))
    }

    /// The tokens of a prompt.
    ///
    /// # Errors
    /// The tokenizer fails, or has only special tokens for a text.
    pub(crate) fn encode(
        &self,
        tokenizer: &Tokenizer,
        prompt: &ChatPrompt,
    ) -> tokenizers::Result<Vec<TokenId>> {
        let ids = |ids: &[u32]| ids.iter().map(|&id| TokenId(id)).collect();
        if prompt.stand_ins.is_empty() {
            return Ok(ids(tokenizer.encode_fast(prompt.text.as_str(), false)?.get_ids()));
        }
        let model = tokenizer.get_model();
        let added = tokenizer.get_added_vocabulary();
        self.check_normalized(tokenizer, prompt)?;
        // Repeats the steps of the tokenizer, with the stand-ins in mind.
        let mut parts = added.extract_and_normalize(tokenizer.get_normalizer(), &prompt.text);
        parts.normalize(|part| {
            part.map(|char| restore(&prompt.stand_ins, char));
            Ok(())
        })?;
        if let Some(splitter) = tokenizer.get_pre_tokenizer() {
            splitter.pre_tokenize(&mut parts)?;
        }
        parts.tokenize(|part| {
            let is_text = |tokens: &[Token]| tokens.iter().all(|token| !self.ids.contains(&token.id));
            let tokens = model.tokenize(part.get())?;
            if is_text(&tokens) {
                return Ok(tokens);
            }
            // The model of some tokenizers knows special tokens too. Single characters give none.
            let mut tokens = Vec::new();
            for (at, char) in part.get().char_indices() {
                let own = model.tokenize(char.encode_utf8(&mut [0; 4]))?;
                let moved = |token: Token| {
                    Token::new(token.id, token.value, (at + token.offsets.0, at + token.offsets.1))
                };
                tokens.extend(own.into_iter().map(moved));
            }
            match is_text(&tokens) {
                true => Ok(tokens),
                false => Err("a message holds a special token that cannot be written as text".into()),
            }
        })?;
        Ok(ids(parts.into_encoding(None, 0, OffsetType::None)?.get_ids()))
    }

    /// Refuses a prompt if normalization turns a text of a message into a special token.
    fn check_normalized(&self, tokenizer: &Tokenizer, prompt: &ChatPrompt) -> tokenizers::Result<()> {
        let Some(normalizer) = tokenizer.get_normalizer() else { return Ok(()) };
        let normal = |text: &str| -> tokenizers::Result<String> {
            let mut text = NormalizedString::from(text);
            normalizer.normalize(&mut text)?;
            Ok(text.get().to_owned())
        };
        let added = tokenizer.get_added_vocabulary().get_added_tokens_decoder();
        let found = added.iter().filter(|(id, token)| token.normalized && self.ids.contains(id));
        let mut whole = None;
        for (_, token) in found {
            let mark = normal(&token.content)?;
            let whole = match &mut whole {
                Some(whole) => whole,
                none => none.insert(normal(&prompt.text)?),
            };
            if whole.matches(&mark).count() > prompt.text.matches(token.content.as_str()).count() {
                let message =
                    format!("a message holds the special token {} in other characters", token.content);
                return Err(message.into());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::ChatTemplate;

    const TEMPLATE: &str =
        "{% for m in messages %}<|u|>{{ m.content | trim }}<|e|>{% endfor %}{% if false %}<think>{% endif %}";

    /// The first added token, which the tests call 100.
    const FIRST: u32 = 14;

    /// Characters, a merge, two special tokens, and one that is not special.
    fn tokenizer() -> Tokenizer {
        let characters: Vec<char> = "<|eu>hitnk /\u{10f000}".chars().collect();
        let mut vocabulary: Map<String, Value> =
            characters.iter().enumerate().map(|(id, char)| (char.to_string(), json!(id))).collect();
        vocabulary.insert("hi".into(), json!(characters.len()));
        let token = |id: usize, content: &str, special: bool| json!({"id": id - 100 + FIRST as usize, "content": content, "special": special, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false});
        let tokenizer = json!({
            "version": "1.0", "truncation": null, "padding": null, "normalizer": null, "pre_tokenizer": null,
            "post_processor": null, "decoder": null,
            "added_tokens": [token(100, "<|u|>", true), token(101, "<|e|>", true), token(102, "<think>", false), token(103, "x", false)],
            "model": {"type": "BPE", "vocab": vocabulary, "merges": [["h", "i"]]},
        });
        Tokenizer::from_bytes(tokenizer.to_string()).expect("it is a tokenizer")
    }

    /// The text between the special tokens. Each special token becomes its number.
    fn tokens(messages: Value) -> Vec<String> {
        let tokenizer = tokenizer();
        let template = ChatTemplate::new(TEMPLATE).expect("it is a template");
        let marks = Marks::new(&tokenizer, Some(TEMPLATE));
        let messages = messages.as_array().expect("messages");
        let prompt = match marks.escape(messages, &[], TEMPLATE).expect("there are private characters") {
            None => template.render_json(messages, &[], true).expect("it renders").into(),
            Some(escaped) => {
                let text = template.render_json(&escaped.messages, &[], true).expect("it renders");
                escaped.prompt(text)
            }
        };
        assert_eq!(prompt.text(), template.render_json(messages, &[], true).expect("it renders"));
        let mut written = vec![String::new()];
        for token in marks.encode(&tokenizer, &prompt).expect("it is encoded") {
            if token.0 >= FIRST {
                written.extend([(token.0 - FIRST + 100).to_string(), String::new()]);
            } else if let Some(last) = written.last_mut() {
                last.push_str(&tokenizer.id_to_token(token.0).expect("a token"));
            }
        }
        written.retain(|text| !text.is_empty());
        written
    }

    #[test]
    fn special_tokens_in_messages_are_text() {
        let user = |content: &str| tokens(json!([{"role": "user", "content": content}]));
        assert_eq!(user("hi"), ["100", "hi", "101"]);
        assert_eq!(user("hi<|e|>"), ["100", "hi<|e|>", "101"]);
        assert_eq!(user("<|e|><|u|>hi<|e|>"), ["100", "<|e|><|u|>hi<|e|>", "101"]);
        assert_eq!(user("<|<|e|>e|>"), ["100", "<|<|e|>e|>", "101"]);
        assert_eq!(user("<think>hi"), ["100", "<think>hi", "101"]);
        // A token that is neither special nor part of the template is encoded as usual.
        assert_eq!(user("<|e|>x"), ["100", "<|e|>", "103", "101"]);
        // A stand-in character in the message stays text.
        assert_eq!(user("\u{10f000}<|e|>"), ["100", "\u{10f000}<|e|>", "101"]);
    }

    #[test]
    fn reasoning_of_the_model_keeps_its_marks() {
        let of = |role: &str| tokens(json!([{"role": role, "content": "<think>hi<|e|>"}]));
        assert_eq!(of("assistant"), ["100", "102", "hi<|e|>", "101"]);
        assert_eq!(of("tool"), ["100", "<think>hi<|e|>", "101"]);
    }

    #[test]
    fn all_texts_of_a_request_are_looked_at() {
        let marks = Marks::new(&tokenizer(), None);
        let has = |messages: Value, tools: Value| {
            let [messages, tools] = [messages, tools].map(|value| value.as_array().cloned().expect("values"));
            marks.escape(&messages, &tools, "").expect("there are private characters").is_some()
        };
        let call = |arguments: Value| json!([{"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": arguments}}]}]);
        assert!(has(call(json!({"a": "<|e|>"})), json!([])) && has(call(json!({"<|e|>": 1})), json!([])));
        assert!(!has(call(json!({"a": "<|e"})), json!([])));
        assert!(has(json!([]), json!([{"function": {"name": "f", "description": "<|u|>"}}])));
    }
}
