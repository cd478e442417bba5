//! A schema as a document: its draft, its identifiers, and the targets of references.
//!
//! References stay within the document: JSON pointers (RFC 6901), anchors, and the identifiers of
//! embedded schemas, resolved against the enclosing identifiers (RFC 3986, section 5.2).
//!
//! A dynamic reference leads to the outermost schema with its anchor on the path from the root. So
//! the meaning of a schema depends on the [`Scope`] of its reading.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::sync::OnceLock;

use super::draft::Draft;
use super::json::Json;
use super::uri::{percent_decode, resolve};
use crate::json_pointer::{self, push};

/// The target of a reference.
pub(super) struct Target<'a> {
    /// JSON pointer of the schema, as written in plain form.
    pub(super) pointer: String,
    pub(super) schema: &'a Json,
}

/// For each name of a dynamic anchor shared by several resources, the identifier of the outermost
/// of these resources on the path from the root; the name of `$recursiveAnchor` is empty. A
/// *resource* is a schema with an identifier, or the root.
type Outermost<'a> = BTreeMap<&'a str, &'a str>;

/// The number of a scope, which is an [`Outermost`]. Equal scopes have one number; 0 is empty.
pub(super) type Scope = u32;

/// The state of the document before a schema was entered.
pub(super) struct Outside {
    base: String,
    scope: Scope,
    bytes: usize,
}

impl Outside {
    /// Bytes held, with the bytes of a new scope of the schema.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

/// The scopes of a document so far.
struct Scopes<'a> {
    /// By number.
    outermost: Vec<Rc<Outermost<'a>>>,
    numbers: HashMap<Rc<Outermost<'a>>, Scope>,
    /// The scope within a resource, by the scope outside of it and its identifier.
    within: HashMap<(Scope, &'a str), Scope>,
}

impl<'a> Scopes<'a> {
    fn new() -> Self {
        let empty = Rc::new(Outermost::new());
        let numbers = HashMap::from([(Rc::clone(&empty), 0)]);
        Self { outermost: vec![empty], numbers, within: HashMap::new() }
    }

    /// The scope within the resource `base`, which has the anchors `names`, and the bytes it takes.
    fn within(&mut self, outside: Scope, base: &'a str, names: &'a [String]) -> (Scope, usize) {
        if let Some(&known) = self.within.get(&(outside, base)) {
            return (known, 0);
        }
        let known = &self.outermost[outside as usize];
        let (mut scope, mut bytes) = (outside, size_of::<(Scope, &str, Scope)>());
        if !names.iter().all(|name| known.contains_key(name.as_str())) {
            let mut outermost = Outermost::clone(known);
            for name in names {
                outermost.entry(name.as_str()).or_insert(base);
            }
            bytes += outermost.len() * size_of::<[&str; 2]>();
            let outermost = Rc::new(outermost);
            scope = *self.numbers.entry(Rc::clone(&outermost)).or_insert(self.outermost.len() as Scope);
            if scope as usize == self.outermost.len() {
                self.outermost.push(outermost);
            }
        }
        self.within.insert((outside, base), scope);
        (scope, bytes)
    }
}

/// Facts about a whole document, computed once for all of its parts.
#[derive(Default)]
pub(super) struct Facts {
    mentions: OnceLock<[bool; 2]>,
    identifiers: OnceLock<Identifiers>,
}

impl Facts {
    /// Whether the document `root` may say something of unevaluated parts, and whether it may have
    /// dynamic references.
    pub(super) fn mentions(&self, root: &Json) -> [bool; 2] {
        *self.mentions.get_or_init(|| mentions(root))
    }
}

/// A schema with its identifiers.
pub(super) struct Document<'a> {
    root: &'a Json,
    facts: &'a Facts,
    /// The version of `$schema`, or the default version.
    pub(super) draft: Draft,
    /// Whether `$schema` names it.
    pub(super) named: bool,
    /// The identifier against which references of the current schema are resolved.
    base: String,
    scope: Scope,
    scopes: Scopes<'a>,
    /// Whether dynamic references exist.
    is_dynamic: bool,
}

/// The names by which references find the schemas of a document.
#[derive(Default)]
struct Identifiers {
    /// For each absolute identifier the pointer.
    resources: HashMap<String, String>,
    /// For each pointer to a schema with an identifier, its absolute identifier.
    bases: HashMap<String, String>,
    /// For each identifier and name of an anchor the pointer.
    anchors: HashMap<(String, String), String>,
    /// For each identifier the sorted names of its dynamic anchors that are the anchors of several
    /// resources; the name of `$recursiveAnchor` is empty.
    contested: HashMap<String, Vec<String>>,
    /// Whether the identifiers exceed [`MAX_BYTES`].
    too_many: bool,
}

/// Most bytes of a reference.
const MAX_REFERENCE: usize = 1 << 16;

/// Most bytes of pointers and identifiers kept for a document, since each may repeat in every
/// schema below.
const MAX_BYTES: usize = 256 << 20;

impl<'a> Document<'a> {
    /// `facts` belong to `root`.
    pub(super) fn new(root: &'a Json, facts: &'a Facts) -> Self {
        let uri = root.get("$schema").and_then(Json::as_str);
        let named = uri.and_then(Draft::of);
        let draft = named.unwrap_or_else(|| Draft::instead_of(uri));
        let base = identifier(root, draft).map_or_else(String::new, |id| resolve("", id));
        let [_, is_dynamic] = facts.mentions(root);
        let is_dynamic = is_dynamic && draft >= Draft::D2019;
        let mut document = Self {
            root,
            facts,
            draft,
            named: named.is_some(),
            base: String::new(),
            scope: 0,
            scopes: Scopes::new(),
            is_dynamic,
        };
        document.go(base);
        document
    }

    /// The scope of the current schema.
    pub(super) fn scope(&self) -> Scope {
        self.scope
    }

    /// Goes to a resource.
    fn go(&mut self, base: String) -> Outside {
        let base = std::mem::replace(&mut self.base, base);
        let mut outside = Outside { bytes: base.len(), base, scope: self.scope };
        if self.is_dynamic
            && let Some((base, names)) = self.identifiers().contested.get_key_value(&self.base)
        {
            let (scope, bytes) = self.scopes.within(self.scope, base, names);
            self.scope = scope;
            outside.bytes += bytes;
        }
        outside
    }

    /// Enters the schema at `pointer`, and returns the argument of [`leave`](Self::leave).
    pub(super) fn enter(&mut self, pointer: &str, schema: &Json) -> Outside {
        match identifier(schema, self.draft) {
            Some(id) if !pointer.is_empty() => self.go(resolve(&self.base, id)),
            _ => Outside { base: self.base.clone(), scope: self.scope, bytes: self.base.len() },
        }
    }

    /// Goes to `pointer`, anywhere in the document.
    pub(super) fn jump(&mut self, pointer: &str) -> Outside {
        let base = {
            let identifiers = self.identifiers();
            let mut prefix = pointer;
            loop {
                if let Some(base) = identifiers.bases.get(prefix) {
                    break base.clone();
                }
                match prefix.rfind('/') {
                    Some(end) => prefix = &prefix[..end],
                    None => break String::new(),
                }
            }
        };
        self.go(base)
    }

    pub(super) fn leave(&mut self, outside: Outside) {
        (self.base, self.scope) = (outside.base, outside.scope);
    }

    /// Follows a reference; the error is the reason.
    pub(super) fn resolve(&self, reference: &str) -> Result<Target<'a>, String> {
        if reference.len() > MAX_REFERENCE {
            return Err(format!("a reference of {} bytes: {MAX_REFERENCE} are the most", reference.len()));
        }
        let absolute = resolve(&self.base, reference);
        let (uri, fragment) = absolute.split_once('#').unwrap_or((&absolute, ""));
        let fragment = percent_decode(fragment)
            .ok_or_else(|| format!("the reference {reference:?} is not percent-encoded UTF-8"))?;
        let root = self.root;
        if self.identifiers().too_many {
            return Err(format!(
                "the names and identifiers of the schema take more than {MAX_BYTES} bytes, repeated in every place below them; shorten them"
            ));
        }
        let (mut pointer, mut schema) = match self.identifiers().resources.get(uri) {
            Some(pointer) => (pointer.clone(), self.at(pointer)),
            None if reference.starts_with('#') => (String::new(), root),
            None => {
                return Err(format!(
                    "the reference {reference:?} leaves the schema; copy its target into `$defs` and refer to `#/$defs/…`"
                ));
            }
        };
        if !fragment.is_empty() && !fragment.starts_with('/') {
            let anchor = self.identifiers().anchors.get(&(uri.to_owned(), fragment.clone()));
            let Some(pointer) = anchor else {
                return Err(format!(
                    "the reference {reference:?} leads nowhere: there is no anchor {fragment:?}"
                ));
            };
            return Ok(self.target(pointer));
        }
        for name in json_pointer::tokens(&fragment) {
            schema = step(schema, &name).ok_or_else(|| {
                format!("the reference {reference:?} leads nowhere: {pointer:?} has no {name:?}")
            })?;
            push(&mut pointer, &name);
        }
        Ok(Target { pointer, schema })
    }

    /// Resolves a `$dynamicRef` or `$recursiveRef`: if its static target is a dynamic anchor, it
    /// leads to the outermost anchor of the same name.
    pub(super) fn resolve_dynamic(&self, reference: &str) -> Result<Target<'a>, String> {
        let target = self.resolve(reference)?;
        let absolute = resolve(&self.base, reference);
        let (uri, name) = absolute.split_once('#').unwrap_or((&absolute, ""));
        let Some(&outermost) = self.scopes.outermost[self.scope as usize].get(name) else {
            return Ok(target);
        };
        let identifiers = self.identifiers();
        let is_contested =
            |names: &Vec<String>| names.binary_search_by(|known| known.as_str().cmp(name)).is_ok();
        if !identifiers.contested.get(uri).is_some_and(is_contested) {
            return Ok(target);
        }
        let found = match name {
            "" => identifiers.resources.get(outermost),
            _ => identifiers.anchors.get(&(outermost.to_owned(), name.to_owned())),
        };
        Ok(found.map_or(target, |pointer| self.target(pointer)))
    }

    fn identifiers(&self) -> &'a Identifiers {
        self.facts.identifiers.get_or_init(|| {
            let mut identifiers = Identifiers::default();
            identifiers.collect(self.root, self.draft);
            identifiers
        })
    }

    /// The schema at a collected pointer.
    fn at(&self, pointer: &str) -> &'a Json {
        self.root.at(pointer).unwrap_or(self.root)
    }

    fn target(&self, pointer: &str) -> Target<'a> {
        Target { pointer: pointer.to_owned(), schema: self.at(pointer) }
    }
}

/// The form in which a keyword contains schemas.
enum Holds {
    One,
    List,
    Members,
}

const HOLDERS: &[(&str, Holds)] = &[
    ("additionalItems", Holds::One),
    ("additionalProperties", Holds::One),
    ("allOf", Holds::List),
    ("anyOf", Holds::List),
    ("oneOf", Holds::List),
    ("prefixItems", Holds::List),
    ("items", Holds::One),
    ("items", Holds::List),
    ("contains", Holds::One),
    ("not", Holds::One),
    ("if", Holds::One),
    ("then", Holds::One),
    ("else", Holds::One),
    ("propertyNames", Holds::One),
    ("unevaluatedItems", Holds::One),
    ("unevaluatedProperties", Holds::One),
    ("contentSchema", Holds::One),
    ("properties", Holds::Members),
    ("patternProperties", Holds::Members),
    ("$defs", Holds::Members),
    ("definitions", Holds::Members),
    ("dependentSchemas", Holds::Members),
    ("dependencies", Holds::Members),
];

impl Identifiers {
    fn collect(&mut self, root: &Json, draft: Draft) {
        let mut rest = vec![(String::new(), String::new(), root)];
        // For each name of a dynamic anchor, the resources with this anchor.
        let mut dynamic: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let mut bytes = 0;
        while let Some((pointer, mut base, schema)) = rest.pop() {
            if bytes > MAX_BYTES {
                self.too_many = true;
                return;
            }
            if !matches!(schema, Json::Object(_)) {
                continue;
            }
            if let Some(id) = identifier(schema, draft) {
                base = resolve(&base, id);
                // As an identifier, and with two anchors.
                bytes += 4 * (pointer.len() + base.len());
            }
            if pointer.is_empty() || identifier(schema, draft).is_some() {
                self.bases.insert(pointer.clone(), base.clone());
                self.resources.entry(base.clone()).or_insert_with(|| pointer.clone());
                if schema.get("$recursiveAnchor") == Some(&Json::Boolean(true)) {
                    dynamic.entry(String::new()).or_default().push(base.clone());
                }
            }
            self.anchors_of(&pointer, &base, schema, draft, &mut dynamic);
            for (name, holds) in HOLDERS {
                let Some(held) = schema.get(name) else { continue };
                let mut below = |token: &str, schema| {
                    bytes += pointer.len() + base.len();
                    if bytes > MAX_BYTES {
                        return;
                    }
                    let mut below = String::with_capacity(pointer.len() + name.len() + token.len() + 2);
                    below.push_str(&pointer);
                    push(&mut below, name);
                    if !matches!(holds, Holds::One) {
                        push(&mut below, token);
                    }
                    rest.push((below, base.clone(), schema));
                };
                match (holds, held) {
                    (Holds::One, Json::Object(_)) => below("", held),
                    (Holds::List, Json::Array(list)) => {
                        list.iter().enumerate().for_each(|(i, schema)| below(&i.to_string(), schema));
                    }
                    (Holds::Members, Json::Object(members)) => {
                        members.iter().for_each(|(name, schema)| below(name, schema));
                    }
                    _ => {}
                }
            }
        }
        for (name, bases) in dynamic.into_iter().filter(|(_, bases)| bases.len() > 1) {
            for base in bases {
                let names = self.contested.entry(base).or_default();
                if names.last() != Some(&name) {
                    names.push(name.clone());
                }
            }
        }
    }

    /// Collects the anchors of one schema.
    fn anchors_of(
        &mut self,
        pointer: &str,
        base: &str,
        schema: &Json,
        draft: Draft,
        dynamic: &mut BTreeMap<String, Vec<String>>,
    ) {
        let text = |name: &str| schema.get(name).and_then(Json::as_str).map(str::to_owned);
        let mut names: Vec<String> = Vec::new();
        if draft >= Draft::D2019 {
            names.extend(text("$anchor"));
            if let Some(name) = text("$dynamicAnchor") {
                dynamic.entry(name.clone()).or_default().push(base.to_owned());
                names.push(name);
            }
        } else if schema.get("$ref").is_none() {
            let id = text(if draft == Draft::D4 { "id" } else { "$id" });
            names.extend(id.as_deref().and_then(|id| id.strip_prefix('#')).map(str::to_owned));
        }
        for name in names {
            self.anchors.entry((base.to_owned(), name)).or_insert_with(|| pointer.to_owned());
        }
    }
}

/// The identifier of a schema; a mere fragment is an anchor of older drafts.
fn identifier(schema: &Json, draft: Draft) -> Option<&str> {
    if draft <= Draft::D7 && schema.get("$ref").is_some() {
        return None;
    }
    let name = if draft == Draft::D4 { "id" } else { "$id" };
    schema.get(name).and_then(Json::as_str).filter(|id| !id.starts_with('#') && !id.is_empty())
}

fn step<'a>(value: &'a Json, name: &str) -> Option<&'a Json> {
    match value {
        Json::Object(members) => members.get(name),
        Json::Array(items) => {
            let plain = name == "0" || !name.starts_with(['0', '+']);
            items.get(name.parse::<usize>().ok().filter(|_| plain)?)
        }
        _ => None,
    }
}

/// Whether `unevaluatedProperties` or `unevaluatedItems` is a name anywhere in the schema, and
/// whether `$dynamicRef` or `$recursiveRef` is.
fn mentions(schema: &Json) -> [bool; 2] {
    const NAMES: [[&str; 2]; 2] =
        [["unevaluatedProperties", "unevaluatedItems"], ["$dynamicRef", "$recursiveRef"]];
    let mut found = [false; 2];
    let mut rest = vec![schema];
    while let Some(value) = rest.pop() {
        match value {
            Json::Object(members) => {
                for (found, names) in found.iter_mut().zip(NAMES) {
                    *found |= names.iter().any(|name| members.contains_key(name));
                }
                rest.extend(members.values());
            }
            Json::Array(items) => rest.extend(items),
            _ => {}
        }
    }
    found
}
