//! The keywords of a schema, and how often each is used.

use serde_json::Value;

/// Keywords that do not constrain values.
const ANNOTATIONS: [&str; 18] = [
    "$anchor",
    "$comment",
    "$defs",
    "$id",
    "$schema",
    "$vocabulary",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
    "default",
    "definitions",
    "deprecated",
    "description",
    "examples",
    "id",
    "readOnly",
    "title",
    "writeOnly",
];
/// Keywords that hold schemas by name.
const BY_NAME: [&str; 6] =
    ["$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"];
/// Keywords that hold a schema, or a list of them.
const SCHEMAS: [&str; 16] = [
    "additionalItems",
    "additionalProperties",
    "allOf",
    "anyOf",
    "contains",
    "else",
    "if",
    "items",
    "not",
    "oneOf",
    "prefixItems",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
    "contentSchema",
];

/// The exact keywords, in order of occurrence: all except annotations and keywords at the pointers
/// `noted`.
pub fn count(schema: &Value, noted: &[&str]) -> Vec<(String, usize)> {
    let mut counts: Vec<(String, usize)> = Vec::new();
    let mut rest = vec![(String::new(), schema)];
    while let Some((pointer, schema)) = rest.pop() {
        let Value::Object(keywords) = schema else { continue };
        let mut below = Vec::new();
        for (name, value) in keywords {
            let location = join(&pointer, name);
            if !ANNOTATIONS.contains(&&**name) && !noted.contains(&&*location) {
                match counts.iter_mut().find(|(known, _)| known == name) {
                    Some((_, count)) => *count += 1,
                    None => counts.push((name.clone(), 1)),
                }
            }
            match value {
                Value::Object(schemas) if BY_NAME.contains(&&**name) => {
                    below.extend(schemas.iter().map(|(name, schema)| (join(&location, name), schema)));
                }
                Value::Array(schemas) if SCHEMAS.contains(&&**name) => {
                    let schemas = schemas.iter().enumerate();
                    below.extend(schemas.map(|(at, schema)| (join(&location, &at.to_string()), schema)));
                }
                schema if SCHEMAS.contains(&&**name) => below.push((location, schema)),
                _ => {}
            }
        }
        rest.extend(below.into_iter().rev());
    }
    counts
}

/// Appends a step to a JSON pointer (RFC 6901).
fn join(pointer: &str, name: &str) -> String {
    format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"))
}
