//! Random structural tags, their texts, and texts with small errors.

use burn_dfa_tokens::constraint::{
    AnyText, Begin, Dispatch, End, Format, Tag, TagsWithSeparator, TokenDispatch, TokenRef,
    TokenTriggeredTags, TriggeredTags,
};
use rand::Rng;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use serde_json::Value;

use super::leaves::Leaves;

/// The characters of triggers and ends, and of most texts.
pub const ALPHABET: [&str; 5] = ["a", "b", "<", ">", "é"];

/// An item of an input.
#[derive(Clone, Debug)]
pub enum InputItem {
    Text(String),
    Token(TokenRef),
}

/// Generates formats.
pub struct Writer<'a> {
    pub leaves: &'a Leaves,
    /// The tokens that formats may name; empty for formats of text alone.
    pub tokens: &'a [TokenRef],
}

impl Writer<'_> {
    /// The format of a whole text.
    pub fn whole(&self, rng: &mut StdRng) -> Format {
        match rng.random_range(0..6) {
            0 => self.format(rng, 2),
            1 => Format::sequence([self.format(rng, 1), self.triggered(rng, 1)]),
            2 if !self.tokens.is_empty() => self.token_triggered(rng, 1),
            _ => self.triggered(rng, 1),
        }
    }

    fn format(&self, rng: &mut StdRng, depth: usize) -> Format {
        if !self.tokens.is_empty() && rng.random_ratio(1, 3) {
            return self.of_tokens(rng, depth);
        }
        match rng.random_range(0..if depth == 0 { 6 } else { 15 }) {
            0 => Format::any_text(),
            1 => AnyText::new().with_excludes([word(rng, 1, 2)]).into(),
            2 => AnyText::new().with_max_chars(rng.random_range(0..4)).into(),
            3 => Format::const_string(word(rng, 0, 2)),
            4 | 5 => self.leaves.any(rng),
            6 | 7 => Format::sequence([self.format(rng, depth - 1), self.format(rng, depth - 1)]),
            8 => Format::or([self.format(rng, depth - 1), self.format(rng, depth - 1)]),
            9 => self.format(rng, depth - 1).optional(),
            10 => self.format(rng, depth - 1).star(),
            11 => self.format(rng, depth - 1).plus(),
            12 => {
                let min = rng.random_range(0..3);
                let max = rng.random_bool(0.7).then(|| min + rng.random_range(0..2));
                self.format(rng, depth - 1).repeat(min, max)
            }
            13 => {
                let begin = word(rng, 0, 2);
                self.tag(rng, begin, depth - 1).into()
            }
            _ => self.triggered(rng, depth - 1),
        }
    }

    fn tag(&self, rng: &mut StdRng, begin: String, depth: usize) -> Tag {
        let end: End = match rng.random_range(0..8) {
            0 => End::Texts(vec![word(rng, 1, 2), word(rng, 1, 3)]),
            1 if !self.tokens.is_empty() => self.token(rng).into(),
            _ => End::Text(word(rng, 1, 2)),
        };
        Tag::new(&*begin, self.format(rng, depth), end)
    }

    fn triggered(&self, rng: &mut StdRng, depth: usize) -> Format {
        let mut triggers: Vec<String> = (0..rng.random_range(1..4)).map(|_| word(rng, 1, 3)).collect();
        triggers.sort();
        triggers.dedup();
        // A trigger that begins or contains another is never found, or stands before several tags.
        let all = triggers.clone();
        triggers.retain(|one| !all.iter().any(|other| other != one && one.contains(other.as_str())));
        if rng.random_ratio(1, 6) {
            let rules: Vec<_> =
                triggers.into_iter().map(|one| (one, self.format(rng, depth.min(1)))).collect();
            return Dispatch::new(rules).with_again(rng.random()).with_excludes(excludes(rng)).into();
        }
        let mut tags = Vec::new();
        for trigger in &triggers {
            for _ in 0..rng.random_range(1..3) {
                let begin = format!("{trigger}{}", word(rng, 0, 1));
                tags.push(self.tag(rng, begin, depth));
            }
        }
        if rng.random_ratio(1, 6) {
            let tags = TagsWithSeparator::new(tags, word(rng, 0, 1));
            return tags.with_at_least_one(rng.random()).with_stop_after_first(rng.random_ratio(1, 3)).into();
        }
        TriggeredTags::new(triggers, tags)
            .with_at_least_one(rng.random_ratio(1, 3))
            .with_stop_after_first(rng.random_ratio(1, 3))
            .with_excludes(excludes(rng))
            .into()
    }

    fn token(&self, rng: &mut StdRng) -> TokenRef {
        self.tokens.choose(rng).unwrap().clone()
    }

    fn of_tokens(&self, rng: &mut StdRng, depth: usize) -> Format {
        match rng.random_range(0..if depth == 0 { 4 } else { 6 }) {
            0 | 1 => Format::token(self.token(rng)),
            2 => Format::exclude_token([self.token(rng), self.token(rng)]),
            3 if rng.random() => {
                Format::AnyTokens { exclude_tokens: vec![self.token(rng)], max_tokens: Some(2) }
            }
            3 => Format::any_tokens([self.token(rng)]),
            4 => {
                let end: End = if rng.random() { self.token(rng).into() } else { End::Text(word(rng, 1, 2)) };
                Tag::new(self.token(rng), self.format(rng, depth - 1), end).into()
            }
            _ => self.token_triggered(rng, depth - 1),
        }
    }

    fn token_triggered(&self, rng: &mut StdRng, depth: usize) -> Format {
        let mut triggers: Vec<TokenRef> = (0..rng.random_range(1..3)).map(|_| self.token(rng)).collect();
        triggers.dedup();
        let excluded: Vec<TokenRef> =
            self.tokens.iter().filter(|token| !triggers.contains(token)).take(1).cloned().collect();
        let excluded = if rng.random() { excluded } else { Vec::new() };
        if rng.random_ratio(1, 4) {
            let rules: Vec<_> = triggers.into_iter().map(|token| (token, self.format(rng, depth))).collect();
            return TokenDispatch::new(rules).with_again(rng.random()).with_excludes(excluded).into();
        }
        let tags: Vec<Tag> = triggers
            .iter()
            .map(|token| {
                let end: End = if rng.random() { self.token(rng).into() } else { End::Text(word(rng, 1, 2)) };
                Tag::new(token.clone(), self.format(rng, depth), end)
            })
            .collect();
        TokenTriggeredTags::new(triggers, tags)
            .with_at_least_one(rng.random_ratio(1, 3))
            .with_stop_after_first(rng.random_ratio(1, 3))
            .with_excludes(excluded)
            .into()
    }

    /// A likely text of a format; marks may occur by chance at illegal positions.
    pub fn draw(&self, format: &Format, rng: &mut StdRng, items: &mut Vec<InputItem>) {
        let text = |items: &mut Vec<InputItem>, text: &str| items.push(InputItem::Text(text.to_owned()));
        match format {
            Format::ConstString { value } => text(items, value),
            Format::AnyText(free) => {
                let max = free.max_chars.unwrap_or(3) as usize;
                text(items, &word(rng, 0, max.min(3)));
            }
            Format::JsonSchema(_) | Format::Grammar { .. } | Format::Regex { .. } => {
                text(items, &self.leaves.draw(format, rng));
            }
            Format::Sequence { elements } => elements.iter().for_each(|of| self.draw(of, rng, items)),
            Format::Or { elements } => self.draw(elements.choose(rng).unwrap(), rng, items),
            Format::Optional { content } => self.times(content, rng.random_range(0..2), rng, items),
            Format::Star { content } => self.times(content, rng.random_range(0..3), rng, items),
            Format::Plus { content } => self.times(content, rng.random_range(1..3), rng, items),
            Format::Repeat { min, content, .. } => self.times(content, *min as usize, rng, items),
            Format::Tag(tag) => self.draw_tag(tag, rng, items),
            Format::TagsWithSeparator(tags) => {
                for at in 0..rng.random_range(0..3) {
                    if at > 0 {
                        text(items, &tags.separator);
                    }
                    self.draw_tag(tags.tags.choose(rng).unwrap(), rng, items);
                }
            }
            Format::TriggeredTags(tags) => {
                if tags.at_least_one {
                    self.draw_tag(tags.tags.choose(rng).unwrap(), rng, items);
                }
                for _ in 0..rng.random_range(0..3) {
                    // Often, an incomplete trigger.
                    let trigger = tags.triggers.choose(rng).unwrap();
                    let whole: Vec<char> = trigger.chars().collect();
                    let begun: String = whole[..rng.random_range(0..whole.len())].iter().collect();
                    text(items, &format!("{}{begun}", word(rng, 0, 2)));
                    self.draw_tag(tags.tags.choose(rng).unwrap(), rng, items);
                }
                text(items, &word(rng, 0, 2));
            }
            Format::Dispatch(dispatch) => {
                for _ in 0..rng.random_range(0..3) {
                    let (pattern, format) = dispatch.rules.choose(rng).unwrap();
                    text(items, &format!("{}{pattern}", word(rng, 0, 2)));
                    self.draw(format, rng, items);
                }
                text(items, &word(rng, 0, 2));
            }
            Format::Token { token } => items.push(InputItem::Token(token.clone())),
            Format::ExcludeToken { .. } => items.push(InputItem::Token(self.token(rng))),
            Format::AnyTokens { .. } => text(items, &word(rng, 0, 2)),
            Format::TokenTriggeredTags(tags) => {
                for _ in 0..rng.random_range(0..3) {
                    text(items, &word(rng, 0, 2));
                    self.draw_tag(tags.tags.choose(rng).unwrap(), rng, items);
                }
            }
            Format::TokenDispatch(dispatch) => {
                let (token, format) = dispatch.rules.choose(rng).unwrap();
                text(items, &word(rng, 0, 2));
                items.push(InputItem::Token(token.clone()));
                self.draw(format, rng, items);
            }
            other => unimplemented!("{other:?}"),
        }
    }

    fn times(&self, content: &Format, times: usize, rng: &mut StdRng, items: &mut Vec<InputItem>) {
        (0..times).for_each(|_| self.draw(content, rng, items));
    }

    fn draw_tag(&self, tag: &Tag, rng: &mut StdRng, items: &mut Vec<InputItem>) {
        items.push(match &tag.begin {
            Begin::Text(text) => InputItem::Text(text.clone()),
            Begin::Token(token) => InputItem::Token(token.token.clone()),
        });
        self.draw(&tag.content, rng, items);
        items.push(match &tag.end {
            End::Text(text) => InputItem::Text(text.clone()),
            End::Texts(texts) => InputItem::Text(texts.choose(rng).unwrap().clone()),
            End::Token(token) => InputItem::Token(token.token.clone()),
        });
    }
}

/// A word of `least` to `max` characters.
pub fn word(rng: &mut StdRng, least: usize, max: usize) -> String {
    (0..rng.random_range(least..=max)).map(|_| *ALPHABET.choose(rng).unwrap()).collect()
}

fn excludes(rng: &mut StdRng) -> Vec<String> {
    (0..rng.random_range(0..2)).map(|_| word(rng, 1, 2)).collect()
}

/// Whether some trigger contains a mark that is complete first.
pub fn has_hidden_trigger(format: &Format) -> bool {
    let (mut triggers, mut marks) = (Vec::new(), Vec::new());
    let mut rest = vec![serde_json::to_value(format).unwrap()];
    while let Some(value) = rest.pop() {
        for name in ["triggers", "excludes", "end"] {
            let texts: Vec<String> = match &value[name] {
                Value::String(text) => vec![text.clone()],
                Value::Array(texts) => texts.iter().filter_map(|text| Some(text.as_str()?.into())).collect(),
                _ => continue,
            };
            if name == "triggers" { triggers.extend(texts) } else { marks.extend(texts) }
        }
        for rule in value["rules"].as_array().into_iter().flatten() {
            triggers.extend(rule[0].as_str().map(str::to_owned));
        }
        match value {
            Value::Object(fields) => rest.extend(fields.into_iter().map(|(_, value)| value)),
            Value::Array(items) => rest.extend(items),
            _ => {}
        }
    }
    marks.retain(|mark| !mark.is_empty());
    let holds = |trigger: &String| {
        let others = triggers.iter().filter(|other| *other != trigger);
        others.chain(&marks).any(|mark| trigger.contains(mark.as_str()))
    };
    triggers.iter().any(holds)
}

/// A text with one or two small changes.
pub fn changed(rng: &mut StdRng, text: &str) -> String {
    let mut characters: Vec<char> = text.chars().collect();
    for _ in 0..rng.random_range(1..3) {
        let at = rng.random_range(0..=characters.len());
        let new = ALPHABET.choose(rng).unwrap().chars().next().unwrap();
        match rng.random_range(0..5) {
            0 if at < characters.len() => characters[at] = new,
            1 if at < characters.len() => drop(characters.remove(at)),
            2 => characters.truncate(at),
            // Repeats a slice of the text.
            3 if at < characters.len() => {
                let slice = characters[at..(at + 3).min(characters.len())].to_vec();
                let to = rng.random_range(0..=characters.len());
                characters.splice(to..to, slice);
            }
            _ => characters.insert(at, new),
        }
    }
    characters.into_iter().collect()
}
