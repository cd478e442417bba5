//! Values, as elements of XML or as JSON objects with properties in any order.

use std::sync::Arc;

use super::super::free_text::first_of;
use super::markup::{Kinds, Markup, TYPES};
use super::part;
use super::schema::{Root, SchemaCursor};
use crate::json_schema::{Json, Part, Types, Whole};
use crate::{Deferred, Expression, GrammarBuilder, JsonOptions};
use burn_dfa_automata::FastMap;
use burn_dfa_common::{Error, Result};

/// Supported keywords of objects and of arrays.
pub(super) const OF_OBJECTS: [&str; 7] = [
    "properties",
    "required",
    "additionalProperties",
    "patternProperties",
    "propertyNames",
    "minProperties",
    "maxProperties",
];
pub(super) const OF_ARRAYS: [&str; 10] = [
    "items",
    "prefixItems",
    "additionalItems",
    "contains",
    "minContains",
    "maxContains",
    "uniqueItems",
    "minItems",
    "maxItems",
    "unevaluatedItems",
];

/// Deepest nesting of arrays and objects written here.
const MAX_DEPTH: usize = 128;

/// Types other than arrays and objects.
const SCALARS: Types = Types::ALL.except(Types::ARRAY).except(Types::OBJECT);

/// Writes the values of a schema.
pub(super) struct Writer<'w, 's> {
    pub(super) root: Root<'s>,
    /// The same, for parts of it.
    pub(super) shared: Arc<Whole>,
    /// The location of the schema.
    pub(super) outer: &'w str,
    /// How the names of rules begin.
    pub(super) prefix: &'w str,
    pub(super) options: Arc<JsonOptions>,
    pub(super) markup: Markup,
    pub(super) any_order: bool,
    pub(super) excludes: &'w [String],
    /// The language of strings in JSON; `None` if unrestricted.
    pub(super) free: Option<Deferred>,
    /// The language of unquoted strings.
    pub(super) plain: Deferred,
    /// Most characters of white space between two tokens.
    pub(super) spaces: Option<usize>,
    /// The rules of arrays and objects, by their kind and the pointer of their schema.
    pub(super) rules: FastMap<(&'static str, String), Expression>,
    /// Number of objects whose properties have rules.
    pub(super) members: usize,
    /// Sets of properties of objects, in all schemas.
    pub(super) sets: &'w mut usize,
    /// Number of enclosing arrays and objects.
    pub(super) depth: usize,
    pub(super) builder: &'w mut GrammarBuilder,
}

impl<'s> Writer<'_, 's> {
    /// The whole schema.
    pub(super) fn root(&mut self) -> Result<Expression> {
        self.check_excludes()?;
        self.check_identifiers()?;
        let root = self.root.spot();
        match self.markup.kinds {
            Kinds::Json => self.json(&root),
            _ if !root.types(&self.root).meets(Types::OBJECT) => {
                Err(root.error("the outermost value is an object in this style; use the style `json`"))
            }
            _ => self.objects(&root, false),
        }
    }

    /// An error during lowering.
    pub(super) fn error(&self, spot: &SchemaCursor, reason: &str) -> Error {
        spot.error(reason).within(self.outer)
    }

    /// Defines a rule.
    pub(super) fn rule(&mut self, name: &str, body: Expression) -> Result<Expression> {
        let rule = self.builder.rule(name);
        self.builder.define(name, body)?;
        Ok(rule)
    }

    /// Rejects names and listed values that contain an excluded text.
    fn check_excludes(&self) -> Result<()> {
        let text = self.root.json.text();
        match first_of(self.excludes, &text) {
            Some(exclude) => Err(self.root.spot().error(format!(
                "the schema holds the text {exclude:?}, which is excluded; leave one of the two out"
            ))),
            None => Ok(()),
        }
    }

    /// Rejects identifiers within the schema, because references depend on them.
    fn check_identifiers(&self) -> Result<()> {
        let root = self.root.json;
        let of_root =
            ["$id", "id"].into_iter().filter(|name| root.get(name).and_then(Json::as_str).is_some());
        let text = root.text();
        if text.matches("\"$id\":\"").count() + text.matches("\"id\":\"").count() > of_root.count() {
            return Err(self.root.spot().error(
                "schemas with identifiers of their own are not offered in this style; use JSON pointers",
            ));
        }
        Ok(())
    }

    /// White space.
    pub(super) fn space(&self) -> Expression {
        let space = [' ', '\n', '\r', '\t'].map(|c| Expression::literal(c.encode_utf8(&mut [0; 4])));
        Expression::choice(space).repeat(0, self.spaces)
    }

    /// JSON, or an element after its name, through its end.
    pub(super) fn value(&mut self, spot: &SchemaCursor<'s>) -> Result<Expression> {
        let Markup { named, value, close, kinds, .. } = self.markup;
        if kinds == Kinds::Json {
            return self.json(spot);
        }
        let mut cases = Vec::new();
        for (kind, body) in self.cases(spot)? {
            let mut parts = vec![Expression::literal(named)];
            if let Some(value) = value {
                parts.extend([self.space(), Expression::literal(value)]);
            }
            parts.extend([Expression::literal(&kind), body, Expression::literal(close)]);
            cases.push(Expression::sequence(parts));
        }
        if cases.is_empty() {
            return Err(spot.error("no value satisfies this schema"));
        }
        Ok(Expression::choice(cases))
    }

    /// The cases of a value: its type information, and the value with white space around it.
    pub(super) fn cases(&mut self, spot: &SchemaCursor<'s>) -> Result<Vec<(String, Expression)>> {
        let types = spot.types(&self.root);
        let others = types.except(Types::STRING);
        let mut cases = Vec::new();
        let kinds = self.markup.kinds;
        if types.meets(Types::STRING) {
            let strings = self.strings(spot);
            match kinds {
                Kinds::String => cases.push(("true\">".to_owned(), strings)),
                Kinds::Type => cases.push(("string\"<|sep|>".to_owned(), self.spaced(strings))),
                Kinds::Nested => cases.push(("raw\">".to_owned(), self.spaced(strings))),
                Kinds::None | Kinds::Json => cases.push((String::new(), self.spaced(strings))),
            }
        }
        match kinds {
            // No value contains the text that closes it, and all JSON without this text is a string
            // too.
            Kinds::None if spot.takes_any_string(&self.root) => {}
            Kinds::None | Kinds::Json if others != Types::NONE => {
                let json = self.json_of(spot, others)?;
                cases.push((String::new(), self.spaced(json)));
            }
            Kinds::String if others != Types::NONE => {
                let json = self.json_of(spot, others)?;
                cases.push(("false\">".to_owned(), self.spaced(json)));
            }
            Kinds::Type => {
                let is_one = TYPES.iter().filter(|(_, of)| of.meets(types)).count() <= 2
                    && !types.meets(Types::STRING);
                for (name, of) in TYPES.into_iter().skip(1) {
                    // An integer counts as a number unless other numbers are possible.
                    let of = Types::ALL.except(Types::ALL.except(of)).except(Types::ALL.except(types));
                    if of == Types::NONE
                        || (name == "integer" && is_one && types.except(Types::NUMBER) == Types::NONE)
                    {
                        continue;
                    }
                    let json = self.json_of(spot, of)?;
                    cases.push((format!("{name}\"<|sep|>"), self.spaced(json)));
                }
            }
            Kinds::Nested => {
                let scalars = others.except(Types::ARRAY.or(Types::OBJECT));
                if scalars != Types::NONE {
                    let json = self.part(spot, scalars);
                    cases.push(("json\">".to_owned(), self.spaced(json)));
                }
                if types.meets(Types::OBJECT) {
                    let object = self.objects(spot, false)?;
                    cases.push(("dict\">".to_owned(), object));
                }
                if types.meets(Types::ARRAY) {
                    let array = self.arrays(spot, false)?;
                    cases.push(("list\">".to_owned(), self.spaced(array)));
                }
            }
            _ => {}
        }
        Ok(cases)
    }

    /// With white space around it.
    fn spaced(&self, inner: Expression) -> Expression {
        Expression::sequence([self.space(), inner, self.space()])
    }

    /// The strings of a schema, unquoted.
    fn strings(&self, spot: &SchemaCursor<'s>) -> Expression {
        part(Part::plain(&self.shared, part_at(spot), &self.plain, &self.options))
    }

    /// The values of some types as JSON, with properties in the order of the schema.
    fn part(&self, spot: &SchemaCursor<'s>, types: Types) -> Expression {
        part(Part::new(&self.shared, part_at(spot), types, self.free.as_ref(), &self.options))
    }

    /// All values as JSON.
    pub(super) fn json(&mut self, spot: &SchemaCursor<'s>) -> Result<Expression> {
        let types = spot.types(&self.root);
        self.json_of(spot, types)
    }

    /// The values of some types as JSON.
    fn json_of(&mut self, spot: &SchemaCursor<'s>, types: Types) -> Result<Expression> {
        if !self.any_order || !types.meets(Types::ARRAY.or(Types::OBJECT)) || is_any(spot.json) {
            return Ok(self.part(spot, types));
        }
        let mut cases = Vec::new();
        let scalars = types.except(Types::ALL.except(SCALARS));
        if scalars != Types::NONE {
            cases.push(self.part(spot, scalars));
        }
        if types.meets(Types::OBJECT) {
            cases.push(self.objects(spot, true)?);
        }
        if types.meets(Types::ARRAY) {
            cases.push(self.arrays(spot, true)?);
        }
        Ok(Expression::choice(cases))
    }

    /// The arrays of a schema, as JSON or without brackets.
    fn arrays(&mut self, spot: &SchemaCursor<'s>, json: bool) -> Result<Expression> {
        self.each(if json { "array" } else { "list" }, spot, Types::ARRAY, &|own, spot| own.array(spot, json))
    }

    /// The objects of a schema, as JSON or as elements.
    pub(super) fn objects(&mut self, spot: &SchemaCursor<'s>, json: bool) -> Result<Expression> {
        self.each(if json { "object" } else { "dict" }, spot, Types::OBJECT, &|own, spot| {
            own.object(spot, json)
        })
    }

    /// A rule for each alternative schema of a value, and a rule that chooses if there are several.
    fn each(
        &mut self,
        kind: &'static str,
        spot: &SchemaCursor<'s>,
        types: Types,
        write: &dyn Fn(&mut Self, &SchemaCursor<'s>) -> Result<Expression>,
    ) -> Result<Expression> {
        let spot = spot.resolved(&self.root)?;
        let key = (kind, spot.at.clone());
        if let Some(known) = self.rules.get(&key) {
            return Ok(known.clone());
        }
        if self.depth == MAX_DEPTH {
            return Err(spot.error(format!("arrays and objects are nested more than {MAX_DEPTH} deep")));
        }
        let branches = spot.branches(&self.root, types)?;
        let name = format!("{}_{kind}_{}", self.prefix, self.rules.len() + 1);
        let rule = self.builder.rule(&name);
        self.rules.insert(key, rule.clone());
        self.depth += 1;
        let body = match &branches[..] {
            [one] if std::ptr::eq(one.json, spot.json) => write(self, one)?,
            several => {
                let cases = several.iter().map(|spot| self.each(kind, spot, types, write));
                Expression::choice(cases.collect::<Result<Vec<_>>>()?)
            }
        };
        self.depth -= 1;
        self.builder.define(&name, body)?;
        Ok(rule)
    }

    fn array(&mut self, spot: &SchemaCursor<'s>, json: bool) -> Result<Expression> {
        spot.check(&[&["items", "minItems", "maxItems"], &OF_OBJECTS[..]].concat())?;
        let items = spot.get("items");
        if let Some(list) = items.as_ref().filter(|items| matches!(items.json, Json::Array(_))) {
            return Err(list.error("a list of schemas is not offered in this style"));
        }
        let item = match (&items, json) {
            (Some(items), true) => self.json(items)?,
            (Some(items), false) => self.element(items)?,
            (None, true) => self.part(&SchemaCursor { json: &TRUE, at: ANY.to_owned() }, Types::ALL),
            (None, false) => self.element(&SchemaCursor { json: &TRUE, at: ANY.to_owned() })?,
        };
        let (min, max) = (spot.count("minItems").unwrap_or(0), spot.count("maxItems"));
        if max.is_some_and(|max| max < min) {
            return Err(spot.error("`maxItems` is less than `minItems`"));
        }
        if !json {
            return Ok(match max {
                Some(0) => Expression::literal(""),
                max => item.repeat(min, max),
            });
        }
        let more = Expression::sequence([self.space(), Expression::literal(","), self.space(), item.clone()]);
        let more = match max {
            Some(0 | 1) => Expression::literal(""),
            max => more.repeat(min.saturating_sub(1), max.map(|max| max - 1)),
        };
        let some = Expression::sequence([item, more, self.space()]);
        let some = match (min, max) {
            (_, Some(0)) => Expression::literal(""),
            (0, _) => some.repeat(0, Some(1)),
            _ => some,
        };
        Ok(Expression::sequence([Expression::literal("["), self.space(), some, Expression::literal("]")]))
    }

    /// An element without a name.
    fn element(&mut self, spot: &SchemaCursor<'s>) -> Result<Expression> {
        let (open, close) = ("<cofl:value type=\"", self.markup.close);
        let cases = self.cases(spot)?.into_iter().map(|(kind, body)| {
            Expression::sequence([
                Expression::literal(open),
                Expression::literal(&kind),
                body,
                Expression::literal(close),
            ])
        });
        Ok(Expression::choice(cases))
    }
}

/// The schema of all values, and a pointer that no schema has.
pub(super) static TRUE: Json = Json::Boolean(true);
pub(super) const ANY: &str = "#any";

/// The pointer of a schema; `None` for the schema of all values.
pub(super) fn part_at<'a>(spot: &'a SchemaCursor) -> Option<&'a str> {
    (spot.at != ANY).then_some(spot.at.as_str())
}

/// Whether a schema restricts nothing.
fn is_any(json: &Json) -> bool {
    match json {
        Json::Boolean(value) => *value,
        Json::Object(members) => members.is_empty(),
        _ => false,
    }
}
