//! The values of schemas, in the styles of structural tags.
//!
//! JSON with properties in their order is what the compiler of schemas makes. In the other styles the outermost object is written
//! as XML, and where properties may come in any order objects are written here too: `object` writes properties, `value` what
//! they hold, `schema` finds out what a schema says, `markup` is the text of the styles. What is JSON within is left to the
//! compiler of schemas again, which reads it as a part of the whole schema.

mod markup;
mod names;
mod object;
mod schema;
mod value;

use std::sync::Arc;

use self::markup::{Kinds, Markup};
use self::schema::Spot;
use self::value::Writer;
use super::format::{SchemaFormat, Style};
use super::free_text::FreeText;
use super::place::Place;
use crate::automaton::FastMap;
use crate::constraint::json_schema::{Json, MAX_SPACES, Part, Types};
use crate::constraint::{Constraint, Expression, GrammarBuilder, JsonOptions, Kind, Whitespace};
use crate::error::Result;

/// Most bytes of a schema, times the parts of it that are read apart.
const MAX_WORK: usize = 1 << 28;

/// The schemas of a structural tag.
pub(super) struct Schemas<'o> {
    options: &'o JsonOptions,
    /// The rules of schemas, by what they were given as.
    known: FastMap<String, Expression>,
}

impl<'o> Schemas<'o> {
    pub(super) fn new(options: &'o JsonOptions) -> Self {
        Self { options, known: FastMap::default() }
    }

    /// The rule of a schema.
    ///
    /// # Errors
    /// Where the schema cannot be read, or cannot be honoured in its style.
    pub(super) fn lower(
        &mut self,
        format: &SchemaFormat,
        at: &Place,
        builder: &mut GrammarBuilder,
    ) -> Result<Expression> {
        let outer = at.name("json_schema").pointer();
        let json = Json::of(&format.json_schema)
            .map_err(|malformed| crate::error::Error::from(malformed).within(&outer))?;
        let SchemaFormat { style, any_order, max_whitespace_cnt, excludes, .. } = format;
        let key = format!("{style:?} {any_order} {max_whitespace_cnt:?} {excludes:?} {}", json.text());
        if let Some(known) = self.known.get(&key) {
            return Ok(known.clone());
        }
        let mut options = self.options.clone();
        if let Some(most) = *max_whitespace_cnt {
            let wrong = |reason| at.name("max_whitespace_cnt").error(reason);
            if most == 0 {
                return Err(wrong("wants a count above 0, or null for the usual".to_owned()));
            }
            if most as usize > MAX_SPACES {
                return Err(wrong(format!("wants a count of at most {MAX_SPACES}")));
            }
            options.whitespace = Whitespace::Flexible(most as usize);
        }
        if let Some(i) = excludes.iter().position(|text| !can_be_excluded(text)) {
            return Err(at.name("excludes").index(i).error(
                "a text that is excluded from strings is not empty, and has no quote, backslash or control character",
            ));
        }
        let name = format!("schema_{}", self.known.len() + 1);
        let rule = builder.rule(&name);
        // What is malformed anywhere is refused, whatever the style.
        let body = if *style == Style::Json && !any_order && excludes.is_empty() {
            let schema = Constraint::of_schema(json, &options).map_err(|error| error.within(&outer))?;
            Expression::constraint(schema)
        } else {
            Constraint::of_schema(json.clone(), &options).map_err(|error| error.within(&outer))?;
            let Some(markup) = Markup::of(*style) else {
                return Err(at
                    .name("style")
                    .error("this style is not offered; use `minimax_xml`, or a grammar"));
            };
            let free = match excludes.is_empty() {
                true => None,
                false => Some(Arc::new(FreeText::new(&[], excludes).dfa()?)),
            };
            let mut plain = excludes.clone();
            if !markup.close.is_empty() {
                plain.push(markup.close.to_owned());
            }
            let plain = Arc::new(FreeText::new(&[], &plain).dfa()?);
            let spaces = match options.whitespace {
                Whitespace::Flexible(most) if max_whitespace_cnt.is_some() => Some(most),
                _ => None,
            };
            let mut writer = Writer {
                root: &json,
                size: json.text().len(),
                work: 0,
                prefix: &name,
                options: &options,
                markup,
                any_order: *any_order,
                excludes,
                free,
                plain,
                spaces,
                rules: FastMap::default(),
                builder,
            };
            writer.root().map_err(|error| error.within(&outer))?
        };
        builder.define(&name, body)?;
        self.known.insert(key, rule.clone());
        Ok(rule)
    }
}

/// The texts around a property in a style of XML: `open`, its name, `named`, its value, `close`.
#[derive(Clone, Copy, Debug)]
pub(in crate::constraint) struct Marks {
    pub(in crate::constraint) open: &'static str,
    pub(in crate::constraint) named: &'static str,
    pub(in crate::constraint) close: &'static str,
}

/// The marks of a style that says nothing of the types of values; `None` of others.
pub(in crate::constraint) fn marks_of(style: Style) -> Option<Marks> {
    let Markup { open, named, close, kinds, value } = Markup::of(style)?;
    (kinds == Kinds::None && value.is_none()).then_some(Marks { open, named, close })
}

/// What the values of a property may be.
#[derive(Clone, Copy, Debug)]
pub(in crate::constraint) struct Values {
    pub(in crate::constraint) types: Types,
    /// Whether all strings are among them.
    pub(in crate::constraint) any_string: bool,
}

/// The values of a property of the objects of a schema.
pub(in crate::constraint) fn values_of(schema: &Json, name: &str) -> Values {
    let root = Spot { json: schema, at: String::new() };
    let mut values = Values { types: Types::NONE, any_string: true };
    for object in root.branches(schema, Types::OBJECT, 0).unwrap_or_default() {
        let declared = object.get("properties").and_then(|of| of.get(name));
        let patterns = object.get("patternProperties").map(|of| of.members()).unwrap_or_default();
        let rest = object.get("additionalProperties").filter(|of| *of.json != Json::Boolean(false));
        let any = Spot { json: &value::TRUE, at: String::new() };
        let all = match (declared, patterns.is_empty()) {
            (Some(of), _) => vec![of],
            (None, true) => vec![rest.unwrap_or(any)],
            (None, false) => patterns.into_iter().map(|(_, of)| of).chain(rest).collect(),
        };
        for of in all {
            values.types = values.types.or(of.types(schema));
            values.any_string &= of.takes_any_string(schema);
        }
    }
    values
}

/// Whether a text is written as it is within strings of JSON.
fn can_be_excluded(text: &str) -> bool {
    !text.is_empty() && !text.chars().any(|c| c.is_control() || matches!(c, '"' | '\\'))
}

/// A part of a schema, which may have no value.
fn part(part: Part) -> Expression {
    Expression::constraint(Kind::Part(Arc::new(part)).into())
}
