//! What a schema says, as far as its structure matters.

use crate::constraint::json_schema::{Json, Types};
use crate::error::{Error, Result};

/// Most references on the way to a schema, and levels at which types are looked for.
const MAX_STEPS: usize = 64;

/// A schema within another one.
#[derive(Clone)]
pub(super) struct Spot<'s> {
    pub(super) json: &'s Json,
    /// JSON pointer.
    pub(super) at: String,
}

/// Keywords that say nothing of values.
const ANNOTATIONS: [&str; 13] = [
    "$schema",
    "$comment",
    "$defs",
    "definitions",
    "$id",
    "title",
    "description",
    "default",
    "examples",
    "example",
    "deprecated",
    "readOnly",
    "writeOnly",
];

/// Keywords that say something of the structure of values.
const STRUCTURAL: [&str; 32] = [
    "$ref",
    "$dynamicRef",
    "$recursiveRef",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "enum",
    "const",
    "dependentRequired",
    "dependentSchemas",
    "dependencies",
    "unevaluatedProperties",
    "unevaluatedItems",
    "properties",
    "required",
    "additionalProperties",
    "patternProperties",
    "propertyNames",
    "minProperties",
    "maxProperties",
    "items",
    "prefixItems",
    "additionalItems",
    "contains",
    "minContains",
    "maxContains",
    "uniqueItems",
    "minItems",
];

impl<'s> Spot<'s> {
    pub(super) fn error(&self, reason: impl Into<String>) -> Error {
        Error::schema(self.at.clone(), reason)
    }

    pub(super) fn get(&self, name: &str) -> Option<Spot<'s>> {
        let json = self.json.get(name)?;
        Some(Spot { json, at: format!("{}/{}", self.at, escaped(name)) })
    }

    /// The items of an array.
    pub(super) fn items(&self) -> Vec<Spot<'s>> {
        let Json::Array(items) = self.json else { return Vec::new() };
        items.iter().enumerate().map(|(i, json)| Spot { json, at: format!("{}/{i}", self.at) }).collect()
    }

    /// The members of an object, with their names.
    pub(super) fn members(&self) -> Vec<(&'s str, Spot<'s>)> {
        let Json::Object(members) = self.json else { return Vec::new() };
        let member = |(name, json): (&'s String, &'s Json)| {
            (name.as_str(), Spot { json, at: format!("{}/{}", self.at, escaped(name)) })
        };
        members.iter().map(member).collect()
    }

    /// The keywords that say something of values.
    fn keywords(&self) -> impl Iterator<Item = &'s str> {
        let members = match self.json {
            Json::Object(members) => Some(members),
            _ => None,
        };
        let names = members.into_iter().flat_map(|members| members.keys()).map(String::as_str);
        names.filter(|name| !ANNOTATIONS.contains(name))
    }

    /// The only keyword that says something of values, if there is one.
    fn only(&self) -> Option<&'s str> {
        let mut keywords = self.keywords();
        keywords.next().filter(|_| keywords.next().is_none())
    }

    /// The schema that a reference, or a list of one schema, stands for.
    pub(super) fn resolved(&self, root: &'s Json) -> Result<Spot<'s>> {
        let mut spot = self.clone();
        for _ in 0..MAX_STEPS {
            spot = match spot.only() {
                Some("$ref") => spot.target(root)?,
                Some("allOf" | "anyOf" | "oneOf") => {
                    let name = spot.only().unwrap_or_default();
                    match &spot.get(name).map(|list| list.items()).unwrap_or_default()[..] {
                        [one] => one.clone(),
                        _ => return Ok(spot),
                    }
                }
                _ => return Ok(spot),
            };
        }
        Err(self.error("references lead from one to another too often"))
    }

    /// Where a reference leads.
    fn target(&self, root: &'s Json) -> Result<Spot<'s>> {
        let wrong = || {
            self.get("$ref")
                .unwrap_or_else(|| self.clone())
                .error("in this style a reference is a JSON pointer into the schema, such as `#/$defs/name`")
        };
        let text = self.json.get("$ref").and_then(Json::as_str).ok_or_else(wrong)?;
        let pointer = text.strip_prefix('#').filter(|_| !text.contains('%')).ok_or_else(wrong)?;
        let mut json = root;
        for token in pointer.split('/').skip(1) {
            let token = token.replace("~1", "/").replace("~0", "~");
            json = match json {
                Json::Array(items) => token.parse::<usize>().ok().and_then(|i| items.get(i)),
                other => other.get(&token),
            }
            .ok_or_else(wrong)?;
        }
        if !pointer.is_empty() && !pointer.starts_with('/') {
            return Err(wrong());
        }
        Ok(Spot { json, at: pointer.to_owned() })
    }

    /// The types of values, and perhaps more.
    pub(super) fn types(&self, root: &'s Json) -> Types {
        self.types_within(root, &mut 0)
    }

    fn types_within(&self, root: &'s Json, steps: &mut usize) -> Types {
        *steps += 1;
        if *steps > MAX_STEPS {
            return Types::ALL;
        }
        let mut types = Types::ALL;
        let mut meet = |other: Types| types = types.except(Types::ALL.except(other));
        if let Some(of) = self.json.get("type") {
            let named = |json: &Json| json.as_str().and_then(Types::named).unwrap_or(Types::ALL);
            meet(match of {
                Json::Array(list) => list.iter().map(named).fold(Types::NONE, Types::or),
                one => named(one),
            });
        }
        if let Some(Json::Array(values)) = self.json.get("enum") {
            meet(values.iter().map(Types::of).fold(Types::NONE, Types::or));
        }
        if let Some(value) = self.json.get("const") {
            meet(Types::of(value));
        }
        for name in ["anyOf", "oneOf"] {
            if let Some(list) = self.get(name) {
                meet(
                    list.items()
                        .iter()
                        .map(|spot| spot.types_within(root, steps))
                        .fold(Types::NONE, Types::or),
                );
            }
        }
        if let Some(list) = self.get("allOf") {
            list.items().iter().for_each(|spot| meet(spot.types_within(root, steps)));
        }
        if self.json.get("$ref").is_some()
            && let Ok(target) = self.target(root)
        {
            meet(target.types_within(root, steps));
        }
        types
    }

    /// Whether all strings are sure to satisfy it.
    pub(super) fn takes_any_string(&self, root: &'s Json) -> bool {
        self.takes_within(root, &mut 0)
    }

    fn takes_within(&self, root: &'s Json, steps: &mut usize) -> bool {
        *steps += 1;
        let Ok(spot) = self.resolved(root) else { return false };
        if *spot.json == Json::Boolean(true) {
            return true;
        }
        if let Some(name @ ("anyOf" | "oneOf")) = spot.only() {
            let list = spot.get(name).map(|list| list.items()).unwrap_or_default();
            let mut takes = list.iter().filter(|spot| spot.types(root).meets(Types::STRING));
            return *steps < MAX_STEPS
                && match name {
                    "anyOf" => takes.any(|spot| spot.takes_within(root, steps)),
                    _ => {
                        takes.next().is_some_and(|spot| spot.takes_within(root, steps))
                            && takes.next().is_none()
                    }
                };
        }
        let of_others = ["type", "properties", "required", "additionalProperties", "items"];
        matches!(spot.json, Json::Object(_))
            && spot.json.get("format").is_none()
            && spot.keywords().all(|name| of_others.contains(&name))
            && spot.types(root).meets(Types::STRING)
    }

    /// The schemas of which a value of a type has to satisfy one.
    pub(super) fn branches(&self, root: &'s Json, types: Types, steps: usize) -> Result<Vec<Spot<'s>>> {
        let spot = self.resolved(root)?;
        let Some(name @ ("anyOf" | "oneOf")) = spot.only() else { return Ok(vec![spot]) };
        if steps > MAX_STEPS {
            return Err(self.error("choices are nested too deep"));
        }
        let list = spot.get(name).map(|list| list.items()).unwrap_or_default();
        let wanted: Vec<_> = list.into_iter().filter(|spot| spot.types(root).meets(types)).collect();
        if name == "oneOf" && wanted.len() > 1 {
            return Err(spot.error(
                "in this style at most one schema of `oneOf` may be of objects, and one of arrays; use `anyOf`",
            ));
        }
        let mut found = Vec::new();
        for spot in wanted {
            found.extend(spot.branches(root, types, steps + 1)?);
        }
        Ok(found)
    }

    /// Refuses keywords of structure but these; what is no keyword says nothing.
    pub(super) fn check(&self, known: &[&str]) -> Result<()> {
        let is_refused = |name: &&str| STRUCTURAL.contains(name) && !known.contains(name);
        match self.keywords().find(is_refused) {
            Some(name) => Err(Error::schema(
                format!("{}/{name}", self.at),
                "this keyword is not offered in this style, or not beside others; write it in another way, or use the style `json`",
            )),
            None => Ok(()),
        }
    }

    /// A count.
    pub(super) fn count(&self, name: &str) -> Option<usize> {
        self.json.get(name).and_then(Json::as_count).map(|count| count.min(usize::MAX as u64) as usize)
    }
}

fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}
