//! The structure of a schema.

use std::cell::{Cell, RefCell};

use crate::json_schema::{Json, Types};
use burn_dfa_automata::FastMap;
use burn_dfa_common::{Error, Result};

/// Most references on the way to a schema.
const MAX_STEPS: usize = 64;

/// Most levels searched for types.
const MAX_LEVELS: usize = 256;

/// A whole schema, and facts about the schemas within it, each computed once.
pub(super) struct Root<'s> {
    pub(super) json: &'s Json,
    /// By the address of the schema. A schema still being analyzed counts as one of more values.
    types: RefCell<FastMap<*const Json, Types>>,
    takes: RefCell<FastMap<*const Json, bool>>,
    /// Levels of the current search.
    level: Cell<usize>,
}

impl<'s> Root<'s> {
    pub(super) fn new(json: &'s Json) -> Self {
        Self { json, types: RefCell::default(), takes: RefCell::default(), level: Cell::new(0) }
    }

    /// The whole schema as a schema within itself.
    pub(super) fn spot(&self) -> SchemaCursor<'s> {
        SchemaCursor { json: self.json, at: String::new() }
    }

    /// The value in `known` for a schema, computed by `find` on first use; `find` may recur into
    /// schemas within it.
    fn once<T: Copy>(
        &self,
        known: &RefCell<FastMap<*const Json, T>>,
        schema: &Json,
        instead: T,
        find: impl FnOnce() -> T,
    ) -> T {
        let place = std::ptr::from_ref(schema);
        if let Some(&known) = known.borrow().get(&place) {
            return known;
        }
        if self.level.get() == MAX_LEVELS {
            return instead;
        }
        known.borrow_mut().insert(place, instead);
        self.level.set(self.level.get() + 1);
        let found = find();
        self.level.set(self.level.get() - 1);
        known.borrow_mut().insert(place, found);
        found
    }
}

/// A schema within another one.
#[derive(Clone)]
pub(super) struct SchemaCursor<'s> {
    pub(super) json: &'s Json,
    /// JSON pointer.
    pub(super) at: String,
}

/// Keywords that do not restrict values.
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

/// Keywords that affect the structure of values.
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

impl<'s> SchemaCursor<'s> {
    pub(super) fn error(&self, reason: impl Into<String>) -> Error {
        Error::schema(self.at.clone(), reason)
    }

    pub(super) fn get(&self, name: &str) -> Option<SchemaCursor<'s>> {
        let json = self.json.get(name)?;
        Some(SchemaCursor { json, at: format!("{}/{}", self.at, escaped(name)) })
    }

    /// The items of an array.
    pub(super) fn items(&self) -> Vec<SchemaCursor<'s>> {
        let Json::Array(items) = self.json else { return Vec::new() };
        items
            .iter()
            .enumerate()
            .map(|(i, json)| SchemaCursor { json, at: format!("{}/{i}", self.at) })
            .collect()
    }

    /// The members of an object, with their names.
    pub(super) fn members(&self) -> Vec<(&'s str, SchemaCursor<'s>)> {
        let Json::Object(members) = self.json else { return Vec::new() };
        let member = |(name, json): (&'s String, &'s Json)| {
            (name.as_str(), SchemaCursor { json, at: format!("{}/{}", self.at, escaped(name)) })
        };
        members.iter().map(member).collect()
    }

    /// The keywords that restrict values.
    fn keywords(&self) -> impl Iterator<Item = &'s str> {
        let members = match self.json {
            Json::Object(members) => Some(members),
            _ => None,
        };
        let names = members.into_iter().flat_map(|members| members.keys()).map(String::as_str);
        names.filter(|name| !ANNOTATIONS.contains(name))
    }

    /// The only keyword that restricts values, if exactly one does.
    fn only(&self) -> Option<&'s str> {
        let mut keywords = self.keywords();
        keywords.next().filter(|_| keywords.next().is_none())
    }

    /// The schema behind references and lists of one schema.
    pub(super) fn resolved(&self, root: &Root<'s>) -> Result<SchemaCursor<'s>> {
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

    /// The target of a reference.
    fn target(&self, root: &Root<'s>) -> Result<SchemaCursor<'s>> {
        let wrong = || {
            self.get("$ref")
                .unwrap_or_else(|| self.clone())
                .error("in this style a reference is a JSON pointer into the schema, such as `#/$defs/name`")
        };
        let text = self.json.get("$ref").and_then(Json::as_str).ok_or_else(wrong)?;
        let pointer = text.strip_prefix('#').filter(|_| !text.contains('%')).ok_or_else(wrong)?;
        let json = root.json.at(pointer).ok_or_else(wrong)?;
        Ok(SchemaCursor { json, at: pointer.to_owned() })
    }

    /// The types of values, and perhaps more.
    pub(super) fn types(&self, root: &Root<'s>) -> Types {
        root.once(&root.types, self.json, Types::ALL, || self.found_types(root))
    }

    fn found_types(&self, root: &Root<'s>) -> Types {
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
            meet(values.iter().map(of_listed).fold(Types::NONE, Types::or));
        }
        if let Some(value) = self.json.get("const") {
            meet(of_listed(value));
        }
        for name in ["anyOf", "oneOf"] {
            if let Some(list) = self.get(name) {
                meet(list.items().iter().map(|spot| spot.types(root)).fold(Types::NONE, Types::or));
            }
        }
        if let Some(list) = self.get("allOf") {
            list.items().iter().for_each(|spot| meet(spot.types(root)));
        }
        if self.json.get("$ref").is_some()
            && let Ok(target) = self.target(root)
        {
            meet(target.types(root));
        }
        types
    }

    /// Whether all strings are sure to satisfy it.
    pub(super) fn takes_any_string(&self, root: &Root<'s>) -> bool {
        let Ok(spot) = self.resolved(root) else { return false };
        root.once(&root.takes, spot.json, false, || spot.found_to_take(root))
    }

    /// The same for a schema other than a reference.
    fn found_to_take(&self, root: &Root<'s>) -> bool {
        if *self.json == Json::Boolean(true) {
            return true;
        }
        if let Some(name @ ("anyOf" | "oneOf")) = self.only() {
            let list = self.get(name).map(|list| list.items()).unwrap_or_default();
            let mut takes = list.iter().filter(|spot| spot.types(root).meets(Types::STRING));
            return match name {
                "anyOf" => takes.any(|spot| spot.takes_any_string(root)),
                _ => takes.next().is_some_and(|spot| spot.takes_any_string(root)) && takes.next().is_none(),
            };
        }
        let of_others = ["type", "properties", "required", "additionalProperties", "items"];
        matches!(self.json, Json::Object(_))
            && self.json.get("format").is_none()
            && self.keywords().all(|name| of_others.contains(&name))
            && self.types(root).meets(Types::STRING)
    }

    /// The alternative schemas for a value of some types, each once.
    pub(super) fn branches(&self, root: &Root<'s>, types: Types) -> Result<Vec<SchemaCursor<'s>>> {
        let mut found = Vec::new();
        let mut met: FastMap<*const Json, ()> = FastMap::default();
        let mut rest = vec![self.clone()];
        while let Some(spot) = rest.pop() {
            let spot = spot.resolved(root)?;
            if met.insert(std::ptr::from_ref(spot.json), ()).is_some() {
                continue;
            }
            let Some(name @ ("anyOf" | "oneOf")) = spot.only() else {
                found.push(spot);
                continue;
            };
            let mut list = spot.get(name).map(|list| list.items()).unwrap_or_default();
            list.retain(|spot| spot.types(root).meets(types));
            if name == "oneOf" && list.len() > 1 {
                return Err(spot.error(
                    "in this style at most one schema of `oneOf` may be of objects, and one of arrays; use `anyOf`",
                ));
            }
            rest.extend(list.into_iter().rev());
        }
        Ok(found)
    }

    /// Rejects structural keywords other than `known`; unknown keywords have no effect.
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

/// The type of a listed value; an integer counts as a number here, because it may be written with a
/// fraction of zeros.
fn of_listed(value: &Json) -> Types {
    let types = Types::of(value);
    if types.meets(Types::NUMBER) { Types::NUMBER } else { types }
}
