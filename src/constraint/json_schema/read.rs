//! From JSON to nodes: which keywords stand where, and what is refused.
//!
//! A reader goes down the schema once, follows references on the way, and remembers what each target became.
//! Its context carries the types that the schemas around leave open, so that `type` beside `anyOf` narrows
//! every branch.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::keywords::{self, Keyword};
use super::node::{Node, NodeId, Nodes, Types};
use super::value::{self, Inexact, Json};
use super::{MAX_DEPTH, reference};
use crate::error::{Error, Result};

/// Reads `root` into nodes; returns them with the root's.
pub(super) fn read(root: &Value) -> Result<(Nodes, NodeId)> {
    let mut reader = Reader {
        root,
        nothing: &Map::new(),
        nodes: Nodes::default(),
        at: String::new(),
        open: HashSet::new(),
        depth: 0,
        targets: HashMap::new(),
    };
    let context = Context { types: Types::ALL, purpose: Purpose::Language, embedded: false };
    let id = reader.schema(root, context)?;
    Ok((reader.nodes, id))
}

/// What a schema is read for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Purpose {
    /// To write its members: what is not closed must be said.
    Language,
    /// To pick values out of an `enum`: what is not said is open.
    Filter,
}

/// What the schemas around say to a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Context {
    /// Types that are open.
    pub(super) types: Types,
    pub(super) purpose: Purpose,
    /// Inside a subschema with an `$id` of its own.
    pub(super) embedded: bool,
}

/// A place in a schema, and what was read so far.
pub(super) struct Reader<'a> {
    root: &'a Value,
    /// The keywords of `true`.
    nothing: &'a Map<String, Value>,
    pub(super) nodes: Nodes,
    /// JSON pointer of the schema at hand.
    pub(super) at: String,
    /// Pointers of the schemas that are being read.
    open: HashSet<String>,
    depth: usize,
    /// What the targets of references became.
    targets: HashMap<(String, Context), NodeId>,
}

impl<'a> Reader<'a> {
    fn schema(&mut self, schema: &'a Value, mut context: Context) -> Result<NodeId> {
        if self.depth == MAX_DEPTH {
            return Err(self.error(format!("schemas are nested more than {MAX_DEPTH} deep")));
        }
        context.embedded |= !self.at.is_empty() && reference::is_embedded(schema);
        self.depth += 1;
        let new = self.open.insert(self.at.clone());
        let node = match schema {
            Value::Bool(false) => Ok(self.nodes.add(Node::Never, &self.at)),
            Value::Bool(true) => self.keywords(self.nothing, context),
            Value::Object(map) => match map.get("$ref") {
                Some(target) => self.reference(map, target, context),
                None => self.keywords(map, context),
            },
            _ => Err(self.error("a schema is an object or a boolean")),
        };
        if new {
            self.open.remove(&self.at);
        }
        self.depth -= 1;
        node
    }

    /// The schema at `tokens` below the one at hand.
    pub(super) fn below(&mut self, tokens: &[&str], schema: &'a Value, context: Context) -> Result<NodeId> {
        let end = self.at.len();
        tokens.iter().for_each(|token| reference::push(&mut self.at, token));
        let node = self.schema(schema, context);
        self.at.truncate(end);
        node
    }

    fn reference(&mut self, map: &Map<String, Value>, target: &Value, context: Context) -> Result<NodeId> {
        for (name, value) in map.iter().filter(|(name, _)| *name != "$ref") {
            if keywords::of(name, value) != Keyword::Annotation {
                self.known(name, value, Types::ALL)?;
                return Err(self.error_at(
                    name,
                    format!("`{name}` beside `$ref` is not offered; move it into the definition, or write the definition out here"),
                ));
            }
        }
        let Some(target) = target.as_str() else {
            return Err(self.error_at("$ref", "a reference is a string"));
        };
        if context.embedded {
            return Err(self.error_at(
                "$ref",
                "the reference stands in a subschema with an `$id` of its own and would count from there; remove that `$id`",
            ));
        }
        let target = reference::resolve(self.root, target).map_err(|reason| self.error_at("$ref", reason))?;
        if self.open.contains(&target.pointer) {
            return Err(self.error_at(
                "$ref",
                "the reference leads back to a schema around it, and recursion is not offered; write out as many levels as are needed",
            ));
        }
        let key = (target.pointer.clone(), Context { embedded: target.embedded, ..context });
        if let Some(&id) = self.targets.get(&key) {
            return Ok(id);
        }
        let here = std::mem::replace(&mut self.at, target.pointer);
        let id = self.schema(target.schema, key.1)?;
        self.at = here;
        self.targets.insert(key, id);
        Ok(id)
    }

    fn keywords(&mut self, map: &'a Map<String, Value>, mut context: Context) -> Result<NodeId> {
        let untyped = context.types == Types::ALL && !map.contains_key("type");
        context.types = context.types.and(self.types(map)?);
        if let Some(values) = self.values(map)? {
            return self.filtered(map, values, context);
        }
        self.all_known(map, context.types)?;
        if map.contains_key("anyOf") {
            return self.any_of(map, context);
        }
        if untyped && context.purpose == Purpose::Language {
            return Err(self.error(
                "the type is left open, and any JSON is not offered; add `type`, `enum`, `const`, `anyOf` or `$ref`",
            ));
        }
        self.shapes(map, context)
    }

    /// Refuses what stands in `map`, restricts values of `types`, and is not honoured.
    fn all_known(&self, map: &Map<String, Value>, types: Types) -> Result<()> {
        map.iter().try_for_each(|(name, value)| self.known(name, value, types))
    }

    fn known(&self, name: &str, value: &Value, types: Types) -> Result<()> {
        match keywords::of(name, value) {
            Keyword::Refused(idle, _) if !idle.meets(types) => Ok(()),
            Keyword::Refused(_, reason) => Err(self.error_at(name, format!("`{name}`: {reason}"))),
            Keyword::Unknown => {
                let advice = match keywords::nearest(name) {
                    Some(nearest) => format!("did you mean `{nearest}`?"),
                    None => "names of extensions begin with `x-`; or remove it".to_owned(),
                };
                Err(self.error_at(name, format!("`{name}` is not a keyword of JSON Schema; {advice}")))
            }
            _ => Ok(()),
        }
    }

    /// Honoured keywords in `map`, other than `except`, that restrict values of `types`.
    fn beside<'m>(
        map: &'m Map<String, Value>,
        types: Types,
        except: &'m [&str],
    ) -> impl Iterator<Item = (&'m str, Types)> {
        map.iter().filter_map(move |(name, value)| match keywords::of(name, value) {
            Keyword::Honoured(of) if of.meets(types) && !except.contains(&name.as_str()) => {
                Some((name.as_str(), of))
            }
            _ => None,
        })
    }

    fn types(&self, map: &Map<String, Value>) -> Result<Types> {
        let named = |token: &[&str], value: &Value| {
            value.as_str().and_then(Types::named).ok_or_else(|| {
                self.error_below(
                    token,
                    "a type is one of `null`, `boolean`, `integer`, `number`, `string`, `array`, `object`",
                )
            })
        };
        match map.get("type") {
            None => Ok(Types::ALL),
            Some(Value::Array(list)) if list.is_empty() => {
                Err(self.error_at("type", "a list of types has one at least"))
            }
            Some(Value::Array(list)) => list.iter().enumerate().try_fold(Types::NONE, |types, (i, value)| {
                Ok(types.or(named(&["type", &i.to_string()], value)?))
            }),
            Some(value) => named(&["type"], value),
        }
    }

    /// The values of `enum` and `const`, where either is there.
    fn values(&self, map: &Map<String, Value>) -> Result<Option<Vec<Json>>> {
        let json = |tokens: &[&str], value: &Value| {
            Json::new(value, MAX_DEPTH).map_err(|inexact| {
                let reason = match inexact {
                    Inexact::Depth => format!("values are nested more than {MAX_DEPTH} deep"),
                    Inexact::Number(number) => format!(
                        "the number {number} is too large to be held exactly; use one below 2^53, or a string"
                    ),
                };
                self.error_below(tokens, reason)
            })
        };
        let constant = map.get("const").map(|value| json(&["const"], value)).transpose()?;
        let Some(listed) = map.get("enum") else {
            return Ok(constant.map(|value| vec![value]));
        };
        let Value::Array(listed) = listed else {
            return Err(self.error_at("enum", "`enum` is a list of values"));
        };
        let mut values = listed
            .iter()
            .enumerate()
            .map(|(i, value)| json(&["enum", &i.to_string()], value))
            .collect::<Result<Vec<_>>>()?;
        if let Some(constant) = constant {
            values.retain(|value| value.value() == constant.value());
        }
        Ok(Some(values))
    }

    fn filtered(
        &mut self,
        map: &'a Map<String, Value>,
        mut values: Vec<Json>,
        context: Context,
    ) -> Result<NodeId> {
        values.retain(|value| value::type_of(value.value()).meets(context.types));
        let types = values.iter().fold(Types::NONE, |types, value| types.or(value::type_of(value.value())));
        self.all_known(map, types)?;
        let context = Context { types, purpose: Purpose::Filter, ..context };
        let filter = if map.contains_key("anyOf") {
            Some(self.any_of(map, context)?)
        } else if Self::beside(map, types, &["type", "enum", "const"]).next().is_some() {
            Some(self.shapes(map, context)?)
        } else {
            None
        };
        Ok(self.nodes.add(Node::Values { values, filter }, &self.at))
    }

    fn any_of(&mut self, map: &'a Map<String, Value>, context: Context) -> Result<NodeId> {
        let branches = match &map["anyOf"] {
            Value::Array(branches) if !branches.is_empty() => branches,
            _ => return Err(self.error_at("anyOf", "`anyOf` is a list of schemas, one at least")),
        };
        let sibling = Self::beside(map, context.types, &["type", "enum", "const", "anyOf"]).next();
        // Beside objects the order of properties would have to be one and the same.
        let exact =
            context.purpose == Purpose::Filter || !context.types.meets(Types::ARRAY.or(Types::OBJECT));
        if let Some((sibling, _)) = sibling
            && !exact
        {
            return Err(self.error_at(
                "anyOf",
                format!("`anyOf` beside `{sibling}` is not offered; move `{sibling}` into every branch"),
            ));
        }
        let ids = branches
            .iter()
            .enumerate()
            .map(|(i, branch)| self.below(&["anyOf", &i.to_string()], branch, context))
            .collect::<Result<Vec<_>>>()?;
        let union = self.nodes.add_union(ids, &self.at);
        if sibling.is_none() {
            return Ok(union);
        }
        let shapes = self.shapes(map, context)?;
        Ok(self.nodes.add(Node::Both(union, shapes), &self.at))
    }

    pub(super) fn error(&self, reason: impl Into<String>) -> Error {
        Error::schema(self.at.clone(), reason)
    }

    pub(super) fn error_at(&self, name: &str, reason: impl Into<String>) -> Error {
        self.error_below(&[name], reason)
    }

    pub(super) fn error_below(&self, tokens: &[&str], reason: impl Into<String>) -> Error {
        let mut pointer = self.at.clone();
        tokens.iter().for_each(|token| reference::push(&mut pointer, token));
        Error::schema(pointer, reason)
    }
}
