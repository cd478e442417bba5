//! Reads structural tags, and rejects malformed ones with the JSON pointer of the error.

use serde::de::{Deserialize, Deserializer, Error as _};
use serde_json::Value;

use super::StructuralTag;
use super::format::{
    AnyText, Begin, Dispatch, End, Format, SchemaFormat, Style, Tag, TagsWithSeparator, TokenDispatch,
    TokenFormat, TokenRef, TokenTriggeredTags, TriggeredTags,
};
use super::location::Location;
use crate::GrammarText;
use crate::json_schema::Json;
use burn_dfa_common::{Error, Result};

/// Deepest nesting of arrays and objects, including formats within formats.
pub(super) const MAX_NESTING: usize = 256;

/// Greatest count.
const MAX_COUNT: u64 = i32::MAX as u64;

/// Reads a structural tag.
///
/// # Errors
/// The tag is malformed; the error has the JSON pointer.
pub(super) fn read(json: &Json) -> Result<StructuralTag> {
    let location = Location::ROOT;
    let mut fields = Fields::of(json, &location)?;
    fields.is_type("structural_tag")?;
    let format = match fields.take("format") {
        Some(format) => self::format(format, &location.name("format"))?,
        None => structures(&mut fields)?,
    };
    fields.finish()?;
    Ok(StructuralTag { format })
}

/// The old form: triggers, and tags with schemas.
fn structures(fields: &mut Fields) -> Result<Format> {
    let location = fields.location;
    let Some(structures) = fields.take("structures") else {
        return Err(location.error("wants a `format`, or `triggers` and `structures`"));
    };
    let triggers = fields.strings("triggers")?;
    let tags = list(structures, &location.name("structures"), |structure, location| {
        let mut fields = Fields::of(structure, location)?;
        let (begin, end) = (fields.text("begin")?, fields.text("end")?);
        let name = location.name("schema");
        let schema = match fields.want("schema")? {
            Json::String(text) => {
                let schema = Json::read(text).map_err(|malformed| name.error(malformed.to_string()))?;
                exact(&schema, &name)?
            }
            schema => exact(schema, &name)?,
        };
        fields.finish()?;
        Ok(Tag::new(&*begin, Format::json_schema(schema), &*end))
    })?;
    Ok(TriggeredTags::new(triggers, tags).into())
}

fn format(json: &Json, location: &Location) -> Result<Format> {
    if location.depth() > MAX_NESTING {
        return Err(location.error(format!("formats are nested more than {MAX_NESTING} levels deep")));
    }
    let mut fields = Fields::of(json, location)?;
    let kind = fields.text("type")?;
    let content = |fields: &mut Fields| -> Result<Box<Format>> {
        self::format(fields.want("content")?, &location.name("content")).map(Box::new)
    };
    let elements =
        |fields: &mut Fields| list(fields.want("elements")?, &location.name("elements"), self::format);
    let format = match &*kind {
        "const_string" => Format::ConstString { value: fields.text("value")? },
        "json_schema" => schema(&mut fields)?.into(),
        "qwen_xml_parameter" => Format::QwenXmlParameter { json_schema: fields.schema()? },
        "grammar" => Format::Grammar { grammar: fields.text("grammar")? },
        "grammar_text" => Format::GrammarText(GrammarText {
            syntax: fields.text("syntax")?,
            definition: fields.text("definition")?,
            start: fields.given("start").map(|start| text(start, &location.name("start"))).transpose()?,
        }),
        "regex" => Format::Regex { pattern: fields.text("pattern")? },
        "any_text" => Format::AnyText(AnyText {
            excludes: fields.strings_or_none("excludes")?,
            max_tokens: fields.count("max_tokens")?,
            max_chars: fields.count("max_chars")?,
        }),
        "sequence" => Format::Sequence { elements: elements(&mut fields)? },
        "or" => Format::Or { elements: elements(&mut fields)? },
        "optional" => Format::Optional { content: content(&mut fields)? },
        "plus" => Format::Plus { content: content(&mut fields)? },
        "star" => Format::Star { content: content(&mut fields)? },
        "repeat" => repeat(&mut fields, content)?,
        "tag" => Format::Tag(tag_of(&mut fields)?),
        "triggered_tags" => Format::TriggeredTags(TriggeredTags {
            triggers: fields.strings("triggers")?,
            tags: fields.tags()?,
            at_least_one: fields.flag("at_least_one", false)?,
            stop_after_first: fields.flag("stop_after_first", false)?,
            excludes: fields.strings_or_none("excludes")?,
        }),
        "tags_with_separator" => Format::TagsWithSeparator(TagsWithSeparator {
            tags: fields.tags()?,
            separator: fields.text("separator")?,
            at_least_one: fields.flag("at_least_one", false)?,
            stop_after_first: fields.flag("stop_after_first", false)?,
        }),
        "dispatch" => Format::Dispatch(Dispatch {
            rules: fields.rules(text)?,
            again: fields.flag("loop", true)?,
            excludes: fields.strings_or_none("excludes")?,
        }),
        "token" => Format::Token { token: token(fields.want("token")?, &location.name("token"))? },
        "exclude_token" => Format::ExcludeToken { exclude_tokens: fields.tokens_or_none("exclude_tokens")? },
        "any_tokens" => Format::AnyTokens {
            exclude_tokens: fields.tokens_or_none("exclude_tokens")?,
            max_tokens: fields.count("max_tokens")?,
        },
        "token_triggered_tags" => Format::TokenTriggeredTags(TokenTriggeredTags {
            trigger_tokens: list(fields.want("trigger_tokens")?, &location.name("trigger_tokens"), token)?,
            tags: fields.tags()?,
            exclude_tokens: fields.tokens_or_none("exclude_tokens")?,
            at_least_one: fields.flag("at_least_one", false)?,
            stop_after_first: fields.flag("stop_after_first", false)?,
        }),
        "token_dispatch" => Format::TokenDispatch(TokenDispatch {
            rules: fields.rules(token)?,
            again: fields.flag("loop", true)?,
            exclude_tokens: fields.tokens_or_none("exclude_tokens")?,
        }),
        other => return Err(location.name("type").error(format!("`{}` is no format", other.escape_debug()))),
    };
    fields.finish()?;
    Ok(format)
}

fn schema(fields: &mut Fields) -> Result<SchemaFormat> {
    let mut format = SchemaFormat::new(fields.schema()?);
    if let Some(style) = fields.given("style") {
        let location = fields.location.name("style");
        let named = text(style, &location)?;
        let known = Style::NAMES.into_iter().find(|(name, _)| *name == named);
        let unknown = || location.error(format!("`{}` is no style", named.escape_debug()));
        format.style = known.ok_or_else(unknown)?.1;
    }
    format.any_order = fields.flag("any_order", false)?;
    format.max_whitespace_cnt = fields.count("max_whitespace_cnt")?;
    format.excludes = fields.strings_or_none("excludes")?;
    Ok(format)
}

fn repeat(fields: &mut Fields, content: impl FnOnce(&mut Fields) -> Result<Box<Format>>) -> Result<Format> {
    let location = fields.location;
    let min = fields.want("min")?;
    let min = count(min).ok_or_else(|| location.name("min").error("wants a count"))?;
    let max = fields.want("max")?;
    let max = match count(max) {
        Some(max) => i64::from(max),
        None if max.text() == "-1" => -1,
        None => return Err(location.name("max").error("wants a count, or -1 for no bound")),
    };
    Ok(Format::Repeat { min, max, content: content(fields)? })
}

fn tag(json: &Json, location: &Location) -> Result<Tag> {
    if location.depth() > MAX_NESTING {
        return Err(location.error(format!("tags are nested more than {MAX_NESTING} levels deep")));
    }
    let mut fields = Fields::of(json, location)?;
    fields.is_type("tag")?;
    let tag = tag_of(&mut fields)?;
    fields.finish()?;
    Ok(tag)
}

fn tag_of(fields: &mut Fields) -> Result<Tag> {
    let location = fields.location;
    let token_of = |json: &Json, location: &Location| -> Result<TokenFormat> {
        let mut fields = Fields::of(json, location)?;
        fields.is_type("token")?;
        let token = token(fields.want("token")?, &location.name("token"))?;
        fields.finish()?;
        Ok(TokenFormat { token })
    };
    let at = location.name("begin");
    let begin = match fields.want("begin")? {
        Json::String(text) => Begin::Text(text.clone()),
        json @ Json::Object(_) => Begin::Token(token_of(json, &at)?),
        _ => return Err(at.error("wants a text or a token")),
    };
    let content = Box::new(format(fields.want("content")?, &location.name("content"))?);
    let at = location.name("end");
    let end = match fields.want("end")? {
        Json::String(text) => End::Text(text.clone()),
        json @ Json::Array(_) => End::Texts(list(json, &at, text)?),
        json @ Json::Object(_) => End::Token(token_of(json, &at)?),
        _ => return Err(at.error("wants a text, several, or a token")),
    };
    Ok(Tag { begin, content, end })
}

fn text(json: &Json, location: &Location) -> Result<String> {
    json.as_str().map(str::to_owned).ok_or_else(|| location.error("wants a text"))
}

fn token(json: &Json, location: &Location) -> Result<TokenRef> {
    match json {
        Json::String(text) => Ok(TokenRef::Text(text.clone())),
        json => {
            let wrong = || location.error("wants the id of a token, or the text of a special token");
            count(json).map(TokenRef::Id).ok_or_else(wrong)
        }
    }
}

/// A nonnegative integer of 31 bits.
fn count(json: &Json) -> Option<u32> {
    json.as_count().filter(|&count| count <= MAX_COUNT).map(|count| count as u32)
}

fn list<T>(
    json: &Json,
    location: &Location,
    mut item: impl FnMut(&Json, &Location) -> Result<T>,
) -> Result<Vec<T>> {
    let Json::Array(items) = json else { return Err(location.error("wants an array")) };
    items.iter().enumerate().map(|(at, json)| item(json, &location.index(at))).collect()
}

/// A schema with numbers that a `Value` can hold.
fn exact(json: &Json, location: &Location) -> Result<Value> {
    let value = json.to_value();
    if Json::of(&value).is_ok_and(|again| again == *json) {
        return Ok(value);
    }
    Err(location.error("a number of this schema has more digits than 64 bits hold: write it with fewer"))
}

/// The fields of an object; each is taken once.
struct Fields<'j, 'p> {
    json: &'j Json,
    location: &'p Location<'p>,
    taken: Vec<&'static str>,
}

impl<'j, 'p> Fields<'j, 'p> {
    fn of(json: &'j Json, location: &'p Location<'p>) -> Result<Self> {
        match json {
            Json::Object(_) => Ok(Self { json, location, taken: Vec::new() }),
            _ => Err(location.error("wants an object")),
        }
    }

    fn take(&mut self, name: &'static str) -> Option<&'j Json> {
        self.taken.push(name);
        self.json.get(name)
    }

    /// The same, unless it is null.
    fn given(&mut self, name: &'static str) -> Option<&'j Json> {
        self.take(name).filter(|json| **json != Json::Null)
    }

    fn want(&mut self, name: &'static str) -> Result<&'j Json> {
        let missing = || self.location.error(format!("wants the field `{name}`"));
        self.json.get(name).ok_or_else(missing).inspect(|_| self.taken.push(name))
    }

    /// Rejects another type than `wanted`; the type is optional.
    fn is_type(&mut self, wanted: &str) -> Result<()> {
        match self.take("type") {
            None => Ok(()),
            Some(json) if json.as_str() == Some(wanted) => Ok(()),
            Some(_) => Err(self.location.name("type").error(format!("wants the type `{wanted}`"))),
        }
    }

    fn text(&mut self, name: &'static str) -> Result<String> {
        text(self.want(name)?, &self.location.name(name))
    }

    fn flag(&mut self, name: &'static str, default: bool) -> Result<bool> {
        match self.given(name) {
            None => Ok(default),
            Some(Json::Boolean(value)) => Ok(*value),
            Some(_) => Err(self.location.name(name).error("wants a boolean")),
        }
    }

    fn count(&mut self, name: &'static str) -> Result<Option<u32>> {
        let wrong = || self.location.name(name).error(format!("wants a count of at most {MAX_COUNT}"));
        match self.json.get(name) {
            None | Some(Json::Null) => {
                self.taken.push(name);
                Ok(None)
            }
            Some(json) => {
                let count = count(json).ok_or_else(wrong)?;
                self.taken.push(name);
                Ok(Some(count))
            }
        }
    }

    fn strings(&mut self, name: &'static str) -> Result<Vec<String>> {
        list(self.want(name)?, &self.location.name(name), text)
    }

    fn strings_or_none(&mut self, name: &'static str) -> Result<Vec<String>> {
        self.given(name).map_or(Ok(Vec::new()), |json| list(json, &self.location.name(name), text))
    }

    fn tokens_or_none(&mut self, name: &'static str) -> Result<Vec<TokenRef>> {
        self.given(name).map_or(Ok(Vec::new()), |json| list(json, &self.location.name(name), token))
    }

    fn tags(&mut self) -> Result<Vec<Tag>> {
        list(self.want("tags")?, &self.location.name("tags"), tag)
    }

    fn schema(&mut self) -> Result<Value> {
        exact(self.want("json_schema")?, &self.location.name("json_schema"))
    }

    /// Pairs of a pattern and a format.
    fn rules<T>(&mut self, pattern: impl Fn(&Json, &Location) -> Result<T>) -> Result<Vec<(T, Format)>> {
        list(self.want("rules")?, &self.location.name("rules"), |json, location| match json {
            Json::Array(pair) if pair.len() == 2 => {
                Ok((pattern(&pair[0], &location.index(0))?, format(&pair[1], &location.index(1))?))
            }
            _ => Err(location.error("wants a pair of a pattern and a format")),
        })
    }

    /// Rejects unknown fields.
    fn finish(self) -> Result<()> {
        let Json::Object(members) = self.json else { return Ok(()) };
        match members.keys().find(|name| !self.taken.contains(&name.as_str())) {
            Some(name) => Err(self.location.name(name).error("this field is not known here; leave it out")),
            None => Ok(()),
        }
    }
}

impl TryFrom<&Value> for StructuralTag {
    type Error = Error;

    fn try_from(value: &Value) -> Result<Self> {
        let json = Json::of(value)
            .map_err(|malformed| Error::structural_tag(malformed.pointer, malformed.reason))?;
        Self::of_json(&json)
    }
}

impl TryFrom<&Self> for StructuralTag {
    type Error = Error;

    fn try_from(tag: &Self) -> Result<Self> {
        Ok(tag.clone())
    }
}

impl<'de> Deserialize<'de> for StructuralTag {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        Self::try_from(&value).map_err(D::Error::custom)
    }
}
