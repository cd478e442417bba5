//! The values of schemas, in the styles of structural tags.
//!
//! The schema compiler writes JSON with ordered properties. In the other styles the outermost
//! object is XML, and objects with properties in any order are also written here: `object` writes
//! properties, `value` writes their values, `schema` analyzes the structure of a schema, `markup`
//! has the texts of the styles. JSON within these values is left to the schema compiler, which
//! reads it as a part of the whole schema.

mod markup;
mod names;
mod object;
mod schema;
mod value;

use std::sync::Arc;

use self::markup::{Kinds, Markup};
use self::schema::{Root, SchemaCursor};
use self::value::Writer;
use super::format::{SchemaFormat, Style};
use super::free_text;
use super::lower::check_size;
use super::place::Place;
use crate::json_schema::{Json, MAX_SPACES, Part, Types, Whole};
use crate::{Constraint, Expression, GrammarBuilder, JsonOptions, Kind, Whitespace};
use burn_dfa_automata::FastMap;
use burn_dfa_common::Result;

/// The schemas of a structural tag.
pub(super) struct Schemas<'o> {
    options: &'o JsonOptions,
    /// The rules of schemas, by their input.
    known: FastMap<String, Expression>,
    /// Number of sets of properties in any order.
    sets: usize,
}

impl<'o> Schemas<'o> {
    pub(super) fn new(options: &'o JsonOptions) -> Self {
        Self { options, known: FastMap::default(), sets: 0 }
    }

    /// The rule of a schema.
    ///
    /// # Errors
    /// The schema is malformed, or cannot be honored in its style.
    pub(super) fn lower(
        &mut self,
        format: &SchemaFormat,
        at: &Place,
        builder: &mut GrammarBuilder,
    ) -> Result<Expression> {
        let outer = at.name("json_schema").pointer();
        let json = Json::of(&format.json_schema)
            .map_err(|malformed| burn_dfa_common::error::Error::from(malformed).within(&outer))?;
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
        // Malformed schemas are rejected in every style.
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
            check_size(&[], excludes, &at.name("excludes"))?;
            let free = (!excludes.is_empty()).then(|| free_text::without(excludes));
            let mut plain = excludes.clone();
            if !markup.close.is_empty() {
                plain.push(markup.close.to_owned());
            }
            let plain = free_text::without(&plain);
            let spaces = match options.whitespace {
                Whitespace::Flexible(most) if max_whitespace_cnt.is_some() => Some(most),
                _ => None,
            };
            let whole = Arc::new(Whole::new(json));
            let mut writer = Writer {
                root: Root::new(&whole.json),
                shared: Arc::clone(&whole),
                outer: &outer,
                prefix: &name,
                options: Arc::new(options),
                markup,
                any_order: *any_order,
                excludes,
                free,
                plain,
                spaces,
                rules: FastMap::default(),
                members: 0,
                sets: &mut self.sets,
                depth: 0,
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
pub(crate) struct Marks {
    pub(crate) open: &'static str,
    pub(crate) named: &'static str,
    pub(crate) close: &'static str,
}

/// The marks of a style without type information; `None` for other styles.
pub(crate) fn marks_of(style: Style) -> Option<Marks> {
    let Markup { open, named, close, kinds, value } = Markup::of(style)?;
    (kinds == Kinds::None && value.is_none()).then_some(Marks { open, named, close })
}

/// The declared names with `mark` in them, of the objects of a schema.
pub(crate) fn names_with(schema: &Json, mark: &str) -> Vec<String> {
    let root = Root::new(schema);
    let objects = root.spot().branches(&root, Types::OBJECT).unwrap_or_default();
    let declared = objects.iter().filter_map(|object| object.get("properties"));
    let names = declared.flat_map(|of| of.members()).map(|(name, _)| name);
    names.filter(|name| name.contains(mark)).map(str::to_owned).collect()
}

/// The possible values of a property.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Values {
    pub(crate) types: Types,
    /// Whether all strings are allowed.
    pub(crate) any_string: bool,
}

/// The values of a property of the objects of a schema.
pub(crate) fn values_of(schema: &Json, name: &str) -> Values {
    let root = Root::new(schema);
    let mut values = Values { types: Types::NONE, any_string: true };
    for object in root.spot().branches(&root, Types::OBJECT).unwrap_or_default() {
        let declared = object.get("properties").and_then(|of| of.get(name));
        let patterns = object.get("patternProperties").map(|of| of.members()).unwrap_or_default();
        let rest = object.get("additionalProperties").filter(|of| *of.json != Json::Boolean(false));
        let any = SchemaCursor { json: &value::TRUE, at: String::new() };
        let all = match (declared, patterns.is_empty()) {
            (Some(of), _) => vec![of],
            (None, true) => vec![rest.unwrap_or(any)],
            (None, false) => patterns.into_iter().map(|(_, of)| of).chain(rest).collect(),
        };
        for of in all {
            values.types = values.types.or(of.types(&root));
            values.any_string &= of.takes_any_string(&root);
        }
    }
    values
}

/// Whether a text is written as it is within strings of JSON.
fn can_be_excluded(text: &str) -> bool {
    !text.is_empty() && !text.chars().any(|c| c.is_control() || matches!(c, '"' | '\\'))
}

/// A part of a schema, possibly without values.
fn part(part: Part) -> Expression {
    Expression::constraint(Kind::Part(Arc::new(part)).into())
}
