//! What each keyword is: honoured, an annotation, or refused with a reason and a way out.
//!
//! A keyword restricts values of certain types only: `minLength` says nothing about an integer. Beside a
//! `type` that leaves those types out it is idle and ignored, as the standard has it, even where it would be
//! refused otherwise. A keyword that is not known is refused: it may be a typo of one that restricts.

use serde_json::Value;

use super::node::Types;

/// What to do about a keyword.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keyword {
    /// Honoured; restricts these types.
    Honoured(Types),
    /// Restricts nothing.
    Annotation,
    /// Would restrict these types; the reason with a way out.
    Refused(Types, &'static str),
    /// In no vocabulary.
    Unknown,
}

use Keyword::{Annotation, Honoured, Refused};

const FORMAT: &str = "it is an annotation in the standard, but who writes it expects it to bind, and it would \
     not; say it with `pattern`, or remove it";
const RANGE: &str = "ranges of numbers are not offered; list the values with `enum`, or remove it and check \
     the value afterwards";
const NAMES: &str = "names outside `properties` are not offered; list the names under `properties`, with \
     `additionalProperties: false`";
const TUPLE: &str = "items that differ by place are not offered; use an object with named properties, or one \
     schema for all `items`";
const CONTENT: &str = "the content of a string is not looked into; remove it and check the value afterwards";
const EVALUATED: &str = "it is not offered; use `additionalProperties: false` in the schema that lists the \
     properties, or one schema for all `items`";
const DRAFT_3: &str = "it is a keyword of draft 3, which is not offered; use draft 2020-12";
const DYNAMIC: &str = "dynamic references are not offered; use `$ref` to a definition of this schema";
const CONDITION: &str = "conditions are not offered; list the cases as branches of `anyOf`";
const DEPENDENT: &str =
    "properties that depend on others are not offered; list the cases as branches of `anyOf`";
const CONTAINS: &str =
    "it is not offered; put the schema on all `items`, or use an object with named properties";

/// Keywords with a meaning, sorted by what becomes of them.
const KEYWORDS: &[(&str, Keyword)] = &[
    ("type", Honoured(Types::ALL)),
    ("enum", Honoured(Types::ALL)),
    ("const", Honoured(Types::ALL)),
    ("anyOf", Honoured(Types::ALL)),
    ("$ref", Honoured(Types::ALL)),
    ("properties", Honoured(Types::OBJECT)),
    ("required", Honoured(Types::OBJECT)),
    ("additionalProperties", Honoured(Types::OBJECT)),
    ("items", Honoured(Types::ARRAY)),
    ("minItems", Honoured(Types::ARRAY)),
    ("maxItems", Honoured(Types::ARRAY)),
    ("minLength", Honoured(Types::STRING)),
    ("maxLength", Honoured(Types::STRING)),
    ("pattern", Honoured(Types::STRING)),
    ("allOf", Refused(Types::ALL, "intersections are not offered; write one schema that says all of it")),
    (
        "oneOf",
        Refused(
            Types::ALL,
            "branches that exclude each other are not offered; use `anyOf`, which is the same where no value \
             satisfies two branches",
        ),
    ),
    ("not", Refused(Types::ALL, "complements are not offered; say what is allowed instead")),
    ("if", Refused(Types::ALL, CONDITION)),
    ("$dynamicRef", Refused(Types::ALL, DYNAMIC)),
    ("$recursiveRef", Refused(Types::ALL, DYNAMIC)),
    ("extends", Refused(Types::ALL, DRAFT_3)),
    ("disallow", Refused(Types::ALL, DRAFT_3)),
    ("divisibleBy", Refused(Types::NUMBER, DRAFT_3)),
    (
        "nullable",
        Refused(
            Types::ALL,
            "it belongs to OpenAPI 3.0; use a list of types such as `[\"string\", \"null\"]`",
        ),
    ),
    ("minimum", Refused(Types::NUMBER, RANGE)),
    ("maximum", Refused(Types::NUMBER, RANGE)),
    ("exclusiveMinimum", Refused(Types::NUMBER, RANGE)),
    ("exclusiveMaximum", Refused(Types::NUMBER, RANGE)),
    (
        "multipleOf",
        Refused(
            Types::NUMBER,
            "multiples are not offered; use `type: integer`, list the values with `enum`, or remove it",
        ),
    ),
    // The standard's formats are of strings, OpenAPI's (`int32`) of numbers too.
    ("format", Refused(Types::STRING.or(Types::NUMBER), FORMAT)),
    ("contentEncoding", Refused(Types::STRING, CONTENT)),
    ("contentMediaType", Refused(Types::STRING, CONTENT)),
    ("contentSchema", Refused(Types::STRING, CONTENT)),
    ("patternProperties", Refused(Types::OBJECT, NAMES)),
    ("propertyNames", Refused(Types::OBJECT, NAMES)),
    (
        "minProperties",
        Refused(
            Types::OBJECT,
            "counting properties is not offered; name those that must be there in `required`",
        ),
    ),
    (
        "maxProperties",
        Refused(Types::OBJECT, "counting properties is not offered; list the cases as branches of `anyOf`"),
    ),
    ("dependentRequired", Refused(Types::OBJECT, DEPENDENT)),
    ("dependentSchemas", Refused(Types::OBJECT, DEPENDENT)),
    ("dependencies", Refused(Types::OBJECT, DEPENDENT)),
    ("unevaluatedProperties", Refused(Types::OBJECT, EVALUATED)),
    ("unevaluatedItems", Refused(Types::ARRAY, EVALUATED)),
    ("prefixItems", Refused(Types::ARRAY, TUPLE)),
    ("contains", Refused(Types::ARRAY, CONTAINS)),
    (
        "uniqueItems",
        Refused(
            Types::ARRAY,
            "no finite automaton remembers all items; remove it and check the value afterwards",
        ),
    ),
];

/// Keywords that only say something about a schema: of the standard in its drafts (`then`, `else` and
/// `additionalItems` say nothing without `if` and a list of `items`, which are refused), of OpenAPI, and of
/// widespread editors and generators.
const ANNOTATIONS: &[&str] = &[
    "title",
    "description",
    "default",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
    "$schema",
    "$id",
    "$comment",
    "$anchor",
    "$dynamicAnchor",
    "$recursiveAnchor",
    "$vocabulary",
    "$defs",
    "definitions",
    "id",
    "then",
    "else",
    "minContains",
    "maxContains",
    "additionalItems",
    "example",
    "externalDocs",
    "xml",
    "comment",
    "links",
    "self",
    "readonly",
    "markdownDescription",
    "enumNames",
    "enumDescriptions",
    "markdownEnumDescriptions",
    "deprecationMessage",
    "errorMessage",
    "defaultSnippets",
    "propertyOrder",
    "javaType",
    "javaName",
    "javaInterfaces",
    "extendsJavaClass",
    "tsType",
];

/// What to do about `name: value`.
pub(super) fn of(name: &str, value: &Value) -> Keyword {
    if ANNOTATIONS.contains(&name) || is_extension(name) || is_idle(name, value) {
        return Annotation;
    }
    KEYWORDS.iter().find(|(known, _)| *known == name).map_or(Keyword::Unknown, |(_, what)| *what)
}

/// Names that no vocabulary of the standard will claim: `x-` is for extensions, a leading `_` takes a
/// keyword out of force.
fn is_extension(name: &str) -> bool {
    name.starts_with("x-") || name.starts_with('_')
}

/// Values that make a refused keyword say nothing.
fn is_idle(name: &str, value: &Value) -> bool {
    match name {
        "uniqueItems" | "exclusiveMinimum" | "exclusiveMaximum" => *value == Value::Bool(false),
        "minProperties" => super::value::count(value) == Some(0),
        "patternProperties" | "dependentRequired" | "dependentSchemas" | "dependencies" => {
            value.as_object().is_some_and(|members| members.is_empty())
        }
        _ => false,
    }
}

/// The known keyword that `name` is most likely a typo of.
pub(super) fn nearest(name: &str) -> Option<&'static str> {
    if name.len() > 32 {
        return None;
    }
    let known = KEYWORDS.iter().map(|(known, _)| *known).chain(ANNOTATIONS.iter().copied());
    known
        .map(|known| (distance(&name.to_lowercase(), &known.to_lowercase()), known))
        .filter(|(distance, known)| distance * 3 < known.len())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known)
}

/// Levenshtein's distance in bytes.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut corner = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let cost = (corner + usize::from(x != y)).min(row[j] + 1).min(row[j + 1] + 1);
            corner = row[j + 1];
            row[j + 1] = cost;
        }
    }
    row[b.len()]
}
