//! Masks of structural tags: a token is legal if and only if some text begins with the text so far
//! and the token.

use std::collections::BTreeSet;

use burn_dfa_tokens::{
    CompiledConstraint, Constraint, RowPosition, TokenId, Vocabulary,
    constraint::{Format, StructuralTag, TokenRef},
    vocabulary::TokenKind,
};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use serde_json::Value;

use super::leaves::{self, Leaves};
use super::random::{InputItem, Writer, changed};
use super::reading::{Charts, Input, Names, Reader};
use super::{Refused, is_of_a_form, limits};

/// The special tokens of the third vocabulary; their texts look like triggers.
const SPECIAL: [&str; 3] = ["<x>", "<a", "<>"];

/// Text tokens that formats name by id; their ids follow the special tokens.
const NAMED: [&str; 3] = ["ab", "<b", "b>a"];

/// Single bytes, some words, and the end token, which is last.
fn vocabulary(
    special: &[&str],
    words: impl IntoIterator<Item = Vec<u8>>,
    bytes: &BTreeSet<u8>,
) -> Vocabulary {
    let special = special.iter().map(|name| (TokenKind::Special, name.as_bytes().to_vec()));
    let bytes = bytes.iter().map(|&byte| vec![byte]);
    let texts = words.into_iter().chain(bytes).map(|text| (TokenKind::Normal, text));
    let end = (TokenKind::Special, b"the end".to_vec());
    let vocabulary = Vocabulary::from_tokens(special.chain(texts).chain([end])).unwrap();
    let end = TokenId(vocabulary.len() as u32 - 1);
    vocabulary.with_eos([end]).unwrap()
}

/// The bytes that a format may write.
fn bytes(format: &Format) -> BTreeSet<u8> {
    // A stack requires a token for each byte in use, and free text uses all bytes.
    if leaves::has_stack(format) {
        return (0..=u8::MAX).collect();
    }
    let mut bytes: BTreeSet<u8> = leaves::bytes().into_iter().collect();
    let mut rest = vec![serde_json::to_value(format).unwrap()];
    while let Some(value) = rest.pop() {
        match value {
            Value::String(text) => bytes.extend(text.bytes()),
            Value::Array(items) => rest.extend(items),
            Value::Object(fields) => rest.extend(fields.into_iter().map(|(_, value)| value)),
            _ => {}
        }
    }
    bytes
}

/// Follows texts through the compiled constraints of one structural tag.
struct Walk<'a> {
    format: &'a Format,
    leaves: &'a Leaves,
    vocabulary: &'a Vocabulary,
    /// The bytes that the format may write.
    bytes: &'a BTreeSet<u8>,
    names: Names,
    charts: Charts<'a>,
    /// Whether the format names no token, so that only the bytes of a token count.
    text: bool,
    steps: usize,
    read: Input,
    tokens: Vec<TokenId>,
}

impl Walk<'_> {
    fn end(&self) -> TokenId {
        *self.vocabulary.eos().first().expect("an end")
    }

    /// The legal tokens, by the formats.
    fn legal(&self) -> BTreeSet<TokenId> {
        let end = self.end();
        let (mut input, start) = (self.read.clone(), self.read.len());
        let mut reads = |token: u32, text: Option<&[u8]>| {
            input.push(token, text);
            let (_, open) = Reader::new(&input, self.leaves, &self.names, &self.charts).read(self.format);
            input.pop(start);
            open
        };
        // The possible next bytes, which exclude most tokens quickly.
        let mut firsts = self.bytes.clone();
        if self.text {
            firsts.retain(|&byte| reads(u32::MAX, Some(&[byte])));
        }
        let ids = (0..self.vocabulary.len() as u32).map(TokenId).filter(|&id| id != end);
        let mut legal: BTreeSet<TokenId> = ids
            .filter(|&id| match self.vocabulary.bytes(id) {
                Some([byte]) if self.text => firsts.contains(byte),
                Some(text) if !firsts.contains(&text[0]) => false,
                text => reads(id.0, text),
            })
            .collect();
        if Reader::new(&self.read, self.leaves, &self.names, &self.charts).read(self.format).0 {
            legal.insert(end);
        }
        legal
    }

    /// Follows a text while it is legal, then random legal tokens. Returns the number of legal
    /// tokens of several bytes or of special kind.
    fn along(mut self, constraints: &[CompiledConstraint], wanted: &[InputItem], rng: &mut StdRng) -> usize {
        let mut wanted = items(wanted);
        let mut positions: Vec<RowPosition> =
            constraints.iter().map(|constraint| RowPosition::unlimited(constraint.start())).collect();
        let mut words = 0;
        for _ in 0..self.steps {
            let expected = self.legal();
            for (constraint, position) in constraints.iter().zip(&positions) {
                let tokens = (0..self.vocabulary.len() as u32).map(TokenId);
                let found: BTreeSet<TokenId> =
                    tokens.filter(|&token| constraint.can_end(&constraint.after(position, token))).collect();
                assert!(
                    found == expected,
                    "legal alone in the constraint: {:?}, by the formats: {:?}, after {:?} of\n{:?}",
                    self.shown(&(&found - &expected)),
                    self.shown(&(&expected - &found)),
                    self.shown(&self.tokens),
                    self.format
                );
            }
            words += expected
                .iter()
                .filter(|&&token| self.vocabulary.bytes(token).is_none_or(|text| text.len() > 1))
                .count();
            let next: Vec<TokenId> =
                expected.iter().copied().filter(|&token| self.goes_on(&wanted, token)).collect();
            let token = match next.choose(rng) {
                Some(&token) => {
                    self.drop_from(&mut wanted, token);
                    token
                }
                None => {
                    wanted.clear();
                    let any: Vec<TokenId> = expected.iter().copied().collect();
                    *any.choose(rng).expect("a row is never without a token")
                }
            };
            if token == self.end() {
                break;
            }
            self.read.push(token.0, self.vocabulary.bytes(token));
            self.tokens.push(token);
            for (constraint, position) in constraints.iter().zip(&mut positions) {
                *position = constraint.after(position, token);
            }
        }
        words
    }

    /// Whether the wanted text continues with a token.
    fn goes_on(&self, wanted: &[Result<u8, TokenRef>], token: TokenId) -> bool {
        match (self.vocabulary.bytes(token), wanted.first()) {
            (None, Some(Err(TokenRef::Text(name)))) => self.names[name.as_bytes()].contains(&token.0),
            (_, Some(Err(TokenRef::Id(id)))) => *id == token.0,
            (Some(text), _) => {
                text.len() <= wanted.len()
                    && text.iter().zip(wanted).all(|(byte, wanted)| *wanted == Ok(*byte))
            }
            _ => false,
        }
    }

    fn drop_from(&self, wanted: &mut Vec<Result<u8, TokenRef>>, token: TokenId) {
        let named = wanted.first().is_some_and(Result::is_err);
        let read = if named { 1 } else { self.vocabulary.bytes(token).map_or(1, <[u8]>::len) };
        wanted.drain(..read);
    }

    fn shown<'t>(&self, tokens: impl IntoIterator<Item = &'t TokenId>) -> Vec<String> {
        let content = |token: &TokenId| self.vocabulary.content(*token).unwrap_or_default();
        tokens
            .into_iter()
            .map(|token| format!("{} {}", token.0, String::from_utf8_lossy(content(token))))
            .collect()
    }
}

/// The bytes and named tokens of the items.
fn items(wanted: &[InputItem]) -> Vec<Result<u8, TokenRef>> {
    let each = wanted.iter().flat_map(|item| match item {
        InputItem::Text(text) => text.bytes().map(Ok).collect(),
        InputItem::Token(token) => vec![Err(token.clone())],
    });
    each.collect()
}

/// Random parts of texts, which cross the boundaries of triggers and ends.
fn cut(texts: &[Vec<InputItem>], rng: &mut StdRng) -> BTreeSet<Vec<u8>> {
    let mut words = BTreeSet::new();
    for items in texts {
        let text: Vec<u8> = self::items(items).into_iter().filter_map(Result::ok).collect();
        for _ in 0..4 {
            let from = rng.random_range(0..=text.len());
            let word = &text[from..(from + rng.random_range(2..9)).min(text.len())];
            if word.len() > 1 {
                words.insert(word.to_vec());
            }
        }
    }
    words
}

/// The tokens of a vocabulary in addition to single bytes and the end token.
#[derive(Clone, Copy, PartialEq)]
pub enum Tokens {
    Bytes,
    /// Words from texts of the format.
    Words,
    /// Words, special tokens, and tokens that formats name by id.
    Named,
}

/// Compares the compiled constraints of a format in each form with the format, along its texts.
/// Returns the number of legal tokens of several bytes or of special kind.
pub fn check(
    writer: &Writer,
    format: &Format,
    tokens: Tokens,
    steps: usize,
    rng: &mut StdRng,
    refused: &mut Refused,
) -> usize {
    let constraint = match Constraint::structural_tag(&StructuralTag::new(format.clone())) {
        Ok(constraint) => constraint,
        Err(error) => {
            refused.add(&error, format);
            return 0;
        }
    };
    let mut drawn: Vec<Vec<InputItem>> = vec![Vec::new(); 6];
    drawn.iter_mut().for_each(|items| writer.draw(format, rng, items));
    let (special, named) =
        if tokens == Tokens::Named { (&SPECIAL[..], &NAMED[..]) } else { (&[][..], &[][..]) };
    let mut words: Vec<Vec<u8>> = named.iter().map(|text| text.as_bytes().to_vec()).collect();
    if tokens != Tokens::Bytes {
        let cut = cut(&drawn, rng);
        words.extend(cut.into_iter().filter(|word| !named.iter().any(|text| text.as_bytes() == word)));
    }
    let bytes = bytes(format);
    let vocabulary = vocabulary(special, words, &bytes);
    let mut constraints = Vec::new();
    for make in [
        CompiledConstraint::compile,
        CompiledConstraint::compile_token_level,
        CompiledConstraint::compile_byte_level,
    ] {
        match make(&constraint, &vocabulary, &limits()) {
            Ok(compiled) => constraints.push(compiled),
            // Some forms are not available: the token-level form has no stack and may be too large,
            // and the byte-level form cannot count tokens.
            Err(error) if !constraints.is_empty() && is_of_a_form(&error) => {}
            Err(error) => {
                refused.add(&error, format);
                return 0;
            }
        }
    }
    let mut names = Names::new();
    for id in 0..vocabulary.len() as u32 {
        let content = vocabulary.content(TokenId(id)).unwrap_or_default();
        names.entry(content.to_vec()).or_default().push(id);
    }
    let mut met = 0;
    for items in drawn.iter_mut().take(3) {
        if let Some(InputItem::Text(text)) = items.first_mut().filter(|_| rng.random_ratio(1, 3)) {
            *text = changed(rng, text);
        }
        let walk = Walk {
            format,
            leaves: writer.leaves,
            vocabulary: &vocabulary,
            bytes: &bytes,
            names: names.clone(),
            charts: Charts::default(),
            text: writer.tokens.is_empty(),
            steps,
            read: Input::default(),
            tokens: Vec::new(),
        };
        met += walk.along(&constraints, items, rng);
    }
    met
}

#[test]
fn masks_over_bytes_and_over_words_across_triggers_match_the_formats() {
    const FORMATS: u64 = 60;
    let leaves = Leaves::new();
    let writer = Writer { leaves: &leaves, tokens: &[] };
    let mut refused = Refused::default();
    let mut words = 0;
    for seed in 0..FORMATS {
        let mut rng = StdRng::seed_from_u64(10_000 + seed);
        let format = writer.whole(&mut rng);
        // Special tokens that no format names are no text, even if their names match.
        for tokens in [Tokens::Bytes, Tokens::Words, Tokens::Named] {
            words += check(&writer, &format, tokens, 20, &mut rng, &mut refused);
        }
    }
    println!("{words} words, refused {refused:?}");
    assert!(refused.total() <= 3 * FORMATS as usize / 5, "{refused:?}");
    assert!(words > 10_000, "{words}");
}

#[test]
fn masks_of_formats_on_tokens_match_the_formats() {
    const FORMATS: u64 = 120;
    let leaves = Leaves::new();
    let by_name = SPECIAL.map(TokenRef::from);
    let by_id = (0..6).map(TokenRef::from);
    let tokens: Vec<TokenRef> = by_name.into_iter().chain(by_id).collect();
    let writer = Writer { leaves: &leaves, tokens: &tokens };
    let mut refused = Refused::default();
    let mut words = 0;
    for seed in 0..FORMATS {
        let mut rng = StdRng::seed_from_u64(20_000 + seed);
        let format = writer.whole(&mut rng);
        words += check(&writer, &format, Tokens::Named, 20, &mut rng, &mut refused);
    }
    println!("{words} words, refused {refused:?}");
    assert!(refused.total() <= FORMATS as usize / 4, "{refused:?}");
    assert!(words > 5_000, "{words}");
}
