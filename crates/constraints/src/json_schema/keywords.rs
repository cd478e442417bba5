//! The keywords of JSON Schema, by draft.

use super::draft::Draft;

/// How a keyword of a schema is treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keyword {
    /// It is honored, alone or as a part of another keyword (`then`, `$defs`).
    Honored,
    /// It restricts nothing.
    Annotation,
    /// A keyword of another draft than the schema names.
    Foreign,
    /// No known vocabulary has it.
    Unknown,
}

/// Keywords with the first and the last draft that have them.
const KEYWORDS: &[(&str, Draft, Draft)] = {
    use Draft::{D4, D6, D7, D2019, D2020};
    &[
        ("type", D4, D2020),
        ("enum", D4, D2020),
        ("const", D6, D2020),
        ("allOf", D4, D2020),
        ("anyOf", D4, D2020),
        ("oneOf", D4, D2020),
        ("not", D4, D2020),
        ("if", D7, D2020),
        ("then", D7, D2020),
        ("else", D7, D2020),
        ("$ref", D4, D2020),
        ("$dynamicRef", D2020, D2020),
        ("$recursiveRef", D2019, D2019),
        ("$id", D6, D2020),
        ("id", D4, D4),
        ("$anchor", D2019, D2020),
        ("$dynamicAnchor", D2020, D2020),
        ("$recursiveAnchor", D2019, D2019),
        ("$schema", D4, D2020),
        ("$vocabulary", D2019, D2020),
        ("$defs", D2019, D2020),
        ("definitions", D4, D2020),
        ("properties", D4, D2020),
        ("required", D4, D2020),
        ("additionalProperties", D4, D2020),
        ("patternProperties", D4, D2020),
        ("propertyNames", D6, D2020),
        ("minProperties", D4, D2020),
        ("maxProperties", D4, D2020),
        ("dependentRequired", D2019, D2020),
        ("dependentSchemas", D2019, D2020),
        // Later drafts split it in two and keep it for compatibility.
        ("dependencies", D4, D2020),
        ("unevaluatedProperties", D2019, D2020),
        ("items", D4, D2020),
        ("prefixItems", D2020, D2020),
        ("additionalItems", D4, D2020),
        ("contains", D6, D2020),
        ("minContains", D2019, D2020),
        ("maxContains", D2019, D2020),
        ("minItems", D4, D2020),
        ("maxItems", D4, D2020),
        ("uniqueItems", D4, D2020),
        ("unevaluatedItems", D2019, D2020),
        ("minLength", D4, D2020),
        ("maxLength", D4, D2020),
        ("pattern", D4, D2020),
        ("format", D4, D2020),
        ("minimum", D4, D2020),
        ("maximum", D4, D2020),
        ("exclusiveMinimum", D4, D2020),
        ("exclusiveMaximum", D4, D2020),
        ("multipleOf", D4, D2020),
    ]
};

/// Annotations: keywords that do not restrict values, from the drafts of the standard, OpenAPI, and
/// widespread editors and generators.
const ANNOTATIONS: &[&str] = &[
    "title",
    "description",
    "default",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
    "$comment",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
    "example",
    "externalDocs",
    "discriminator",
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

/// How `name` is treated in `draft`.
pub(super) fn of(name: &str, draft: Draft) -> Keyword {
    match KEYWORDS.iter().find(|(known, ..)| *known == name) {
        Some((_, first, last)) if *first <= draft && draft <= *last => Keyword::Honored,
        Some(_) => Keyword::Foreign,
        None if ANNOTATIONS.contains(&name) || name.starts_with("x-") || name.starts_with('_') => {
            Keyword::Annotation
        }
        None => Keyword::Unknown,
    }
}

/// Whether the member holds schemas for references. References into it resolve in every draft.
pub(super) fn holds_definitions(name: &str) -> bool {
    ["$defs", "definitions"].contains(&name)
}

/// The closest known keyword, if `name` is likely a typo.
pub(super) fn nearest(name: &str) -> Option<&'static str> {
    if name.len() > 32 {
        return None;
    }
    let known = KEYWORDS.iter().map(|(known, ..)| *known).chain(ANNOTATIONS.iter().copied());
    known
        // The distance is at least the difference of the lengths.
        .filter(|known| known.len().abs_diff(name.len()) * 3 < known.len())
        .map(|known| (distance(name, known), known))
        .filter(|(distance, known)| distance * 3 < known.len())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known)
}

/// Levenshtein's distance in bytes, without regard to the case of ASCII letters.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut corner = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let changed = usize::from(!x.eq_ignore_ascii_case(&y));
            let cost = (corner + changed).min(row[j] + 1).min(row[j + 1] + 1);
            corner = row[j + 1];
            row[j + 1] = cost;
        }
    }
    row[b.len()]
}
