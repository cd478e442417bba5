//! The values of schemas, in the styles of structural tags.
//!
//! The schema compiler reads and plans a schema; this module is a second emitter of its plans. In
//! the styles other than JSON, the outermost object is XML: `object` writes planned objects and
//! arrays as elements, `value` the values of elements, `names` the names of undeclared properties,
//! all to a `network`; `markup` has the texts of the styles. JSON and strings within elements are
//! automata of the schema compiler, which also emits JSON with properties in any order.

mod markup;
mod names;
mod network;
mod object;
mod value;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use self::markup::{Kinds, Markup};
use self::network::Emitter;
use super::format::{SchemaFormat, Style};
use super::free_text::{self, check_size, first_of};
use super::location::Location;
use crate::definition::SchemaSource;
use crate::json_schema::{self, Json, MAX_SPACES, Planned, Schema, Types};
use crate::{
    Constraint, Deferred, Expression, GrammarBuilder, JsonOptions, Kind, Note, Unrolled, Whitespace,
};
use burn_dfa_automata::SparseAutomaton;
use burn_dfa_common::error::Error;
use burn_dfa_common::{Result, limits::Meter};

/// The schemas of a structural tag.
pub(super) struct Schemas<'o> {
    options: &'o JsonOptions,
    /// The rules of schemas, by their input.
    known: HashMap<String, Expression>,
}

impl<'o> Schemas<'o> {
    pub(super) fn new(options: &'o JsonOptions) -> Self {
        Self { options, known: HashMap::new() }
    }

    /// The rule of a schema.
    ///
    /// # Errors
    /// The schema is malformed, or cannot be honored in its style.
    pub(super) fn lower(
        &mut self,
        format: &SchemaFormat,
        at: &Location,
        builder: &mut GrammarBuilder,
    ) -> Result<Expression> {
        let outer = at.name("json_schema").pointer();
        let json =
            Json::of(&format.json_schema).map_err(|malformed| Error::from(malformed).within(&outer))?;
        let SchemaFormat { style, any_order, max_whitespace_cnt, excludes, .. } = format;
        let key = format!("{style:?} {any_order} {max_whitespace_cnt:?} {excludes:?} {}", json.text());
        if let Some(known) = self.known.get(&key) {
            return Ok(known.clone());
        }
        let mut options = self.options.clone();
        if let Some(max) = *max_whitespace_cnt {
            let wrong = |reason| at.name("max_whitespace_cnt").error(reason);
            if max == 0 {
                return Err(wrong("wants a count above 0, or null for the usual".to_owned()));
            }
            if max as usize > MAX_SPACES {
                return Err(wrong(format!("wants a count of at most {MAX_SPACES}")));
            }
            options.whitespace = Whitespace::Flexible(max as usize);
        }
        if let Some(i) = excludes.iter().position(|text| !can_be_excluded(text)) {
            return Err(at.name("excludes").index(i).error(
                "a text that is excluded from strings is not empty, and has no quote, backslash or control character",
            ));
        }
        let name = format!("schema_{}", self.known.len() + 1);
        let rule = builder.rule(&name);
        // Malformed schemas are rejected in every style.
        let markup = Markup::of(*style);
        if markup.is_none() && *style != Style::Json {
            return Err(at.name("style").error("this style is not offered; use `minimax_xml`, or a grammar"));
        }
        check_size(&[], excludes, &at.name("excludes"))?;
        let mut plain = excludes.clone();
        plain.extend(markup.map(|markup| markup.close.to_owned()));
        let styled = Styled {
            schema: json_schema::parse(&json, &options).map_err(|error| error.within(&outer))?,
            given: SchemaSource::new(json, options),
            markup,
            is_unordered: *any_order,
            free: (!excludes.is_empty()).then(|| free_text::without(excludes)),
            plain: free_text::without(&plain),
            spaces: max_whitespace_cnt.map(|max| max as usize),
            outer: outer.clone(),
        };
        styled.check(excludes).map_err(|error| error.within(&outer))?;
        let body: Constraint = Kind::Styled(Arc::new(styled)).into();
        builder.define(&name, Expression::constraint(body))?;
        self.known.insert(key, rule.clone());
        Ok(rule)
    }
}

/// A schema in a style.
pub(crate) struct Styled {
    schema: Schema,
    given: SchemaSource,
    /// `None` for JSON.
    markup: Option<Markup>,
    is_unordered: bool,
    /// The language of names and of strings; `None` if unrestricted.
    free: Option<Deferred>,
    /// The language of unquoted strings.
    plain: Deferred,
    /// Most characters of white space between two elements.
    spaces: Option<usize>,
    /// The location of the schema.
    outer: String,
}

impl Styled {
    /// Rejects a schema that cannot be written in its style, as far as known without automata.
    fn check(&self, excludes: &[String]) -> Result<()> {
        if let Some(exclude) = first_of(excludes, &self.given.schema().text()) {
            return Err(Error::schema(
                "",
                format!("the schema holds the text {exclude:?}, which is excluded; leave one of the two out"),
            ));
        }
        let Some(markup) = self.markup else { return Ok(()) };
        if !self.schema.types().meets(Types::OBJECT) {
            return Err(Error::schema(
                "",
                "the outermost value is an object in this style; use the style `json`",
            ));
        }
        self.check_ends(markup)
    }

    /// Rejects a declared name that contains the end marker of names, if another name ends there.
    fn check_ends(&self, markup: Markup) -> Result<()> {
        let named = markup.named;
        let declared = self.schema.declared();
        for name in declared.iter().filter(|name| markup.ends_within(&markup.name(name))) {
            let ended = |name: &str| [&markup.name(name)[..], named.as_bytes()].concat();
            let own = ended(name);
            let is_shorter = |other: &String| other != name && own.starts_with(&ended(other));
            if declared.iter().any(is_shorter) || self.schema.may_have_others() {
                let reason = format!(
                    "in this style {named:?} ends a name, which this name holds, so that it may be another one; rename the property"
                );
                return Err(self.schema.error_of(name, reason));
            }
        }
        Ok(())
    }

    /// The automaton of the texts, with calls if they are better.
    ///
    /// # Errors
    /// No value satisfies the schema, or a limit is exceeded.
    pub(crate) fn lower(&self, meter: &Meter) -> Result<(SparseAutomaton, Unrolled)> {
        self.lower_within(meter).map_err(|error| error.at(String::new).within(&self.outer))
    }

    fn lower_within(&self, meter: &Meter) -> Result<(SparseAutomaton, Unrolled)> {
        let free = self.free.as_ref().map(|free| free.lower(meter)).transpose()?;
        let settled = self.given.settled(&self.schema, meter)?;
        let Some(markup) = self.markup else {
            if !self.is_unordered && free.is_none() {
                return settled.lower_called(meter);
            }
            return settled.into_owned().arranged(free, self.is_unordered, false).lower_called(meter);
        };
        let schema = settled.into_owned().arranged(free, self.is_unordered, true);
        let planned = Planned::new(&schema, meter)?;
        let unrolled = planned.unrolled();
        Emitter::new(self, markup, &planned, meter)?.texts().map(|texts| (texts, unrolled))
    }

    /// Remarks on the schema.
    pub(crate) fn explain(&self, meter: &Meter) -> Vec<Note> {
        match self.given.settled(&self.schema, meter) {
            Ok(settled) => settled.explain(meter),
            Err(_) => self.schema.explain(meter),
        }
    }
}

/// Omits the schema.
impl fmt::Debug for Styled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Styled").field("outer", &self.outer).finish_non_exhaustive()
    }
}

/// The texts around a property in a style of XML: `open`, its name, `named`, its value, `close`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Marks {
    pub(crate) open: &'static str,
    pub(crate) named: &'static str,
    pub(crate) close: &'static str,
}

impl Marks {
    /// The texts before and after the value of a property, with line breaks around the value.
    pub(crate) fn around(self, name: &str) -> (String, String) {
        let Self { open, named, close } = self;
        (format!("{open}{name}{named}\n"), format!("\n{close}"))
    }
}

/// The marks of a style without type information; `None` for other styles.
pub(crate) fn marks_of(style: Style) -> Option<Marks> {
    let Markup { open, named, close, kinds, value } = Markup::of(style)?;
    (kinds == Kinds::None && value.is_none()).then_some(Marks { open, named, close })
}

/// Whether a text is written as it is within strings of JSON.
fn can_be_excluded(text: &str) -> bool {
    !text.is_empty() && !text.chars().any(|c| c.is_control() || matches!(c, '"' | '\\'))
}
