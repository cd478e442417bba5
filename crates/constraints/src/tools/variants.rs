//! The variants of an enum as tools, from its schemars schema.
//!
//! A variant is identified by its name alone (`"Now"`, externally tagged and without fields), as
//! the one property of an object (`{"Weather": {"city": …}}`, externally tagged), or by a tag
//! property (`{"tool": "weather", "city": …}`, internally or adjacently tagged).

use serde_json::{Map, Value};

use super::{Call, Tool};
use burn_dfa_common::{Error, Result};

/// A variant, and how a value of it is written.
pub(super) struct Variant {
    pub(super) tool: Tool,
    tagging: Tagging,
}

/// How a value names its variant.
enum Tagging {
    Bare,
    Property,
    /// With the name of the tag property.
    Tag(String),
}

/// The variants of an enum.
///
/// # Errors
/// [`ErrorKind::Schema`](crate::ErrorKind::Schema): the schema is not an enum with named variants,
/// or refers to itself as a whole.
pub(super) fn variants(schema: &Value) -> Result<Vec<Variant>> {
    let wrong = || {
        Error::schema(
            "",
            "tools are the variants of an enum that is tagged externally or internally, which this type is not",
        )
    };
    let branches = match (schema.get("oneOf").or(schema.get("anyOf")), schema.get("enum")) {
        (Some(Value::Array(branches)), _) => branches.as_slice(),
        // All variants without fields.
        (None, Some(_)) => std::slice::from_ref(schema),
        _ => return Err(wrong()),
    };
    let mut found = Vec::new();
    for branch in branches {
        if let Some(names) = names(branch) {
            found.extend(names.into_iter().map(|name| variant(name, branch, None, Tagging::Bare)));
            continue;
        }
        let properties = branch.get("properties").and_then(Value::as_object).ok_or_else(wrong)?;
        let required = |name: &str| {
            let names = branch.get("required").and_then(Value::as_array);
            names.is_some_and(|names| names.iter().any(|known| known == name))
        };
        let tagged = properties.iter().find_map(|(tag, of)| {
            let [name] = <[&str; 1]>::try_from(names(of)?).ok()?;
            required(tag).then_some((tag, name))
        });
        let parameters = |of: Value| with_definitions(of, schema);
        found.push(match (tagged, properties.iter().next()) {
            (Some((tag, name)), _) => {
                variant(name, branch, Some(parameters(without(branch, tag))?), Tagging::Tag(tag.clone()))
            }
            (None, Some((name, of))) if properties.len() == 1 && required(name) => {
                variant(name, branch, Some(parameters(of.clone())?), Tagging::Property)
            }
            _ => return Err(wrong()),
        });
    }
    Ok(found)
}

impl Variant {
    /// The value of the enum for a call.
    ///
    /// # Errors
    /// See [`Call::value`].
    pub(super) fn value(&self, call: &Call) -> Result<Value> {
        let mut arguments: Map<String, Value> = call.parse()?;
        let name = call.name.clone();
        Ok(match &self.tagging {
            Tagging::Bare => name.into(),
            Tagging::Property => Map::from_iter([(name, arguments.into())]).into(),
            Tagging::Tag(tag) => {
                arguments.insert(tag.clone(), name.into());
                arguments.into()
            }
        })
    }
}

fn variant(name: &str, branch: &Value, parameters: Option<Value>, tagging: Tagging) -> Variant {
    let description = branch.get("description").and_then(Value::as_str).map(str::to_owned);
    Variant { tool: Tool { description, parameters, ..Tool::new(name) }, tagging }
}

/// The possible strings of the schema.
fn names(schema: &Value) -> Option<Vec<&str>> {
    match (schema.get("const"), schema.get("enum")) {
        (Some(name), _) => Some(vec![name.as_str()?]),
        (None, Some(names)) => names.as_array()?.iter().map(Value::as_str).collect(),
        (None, None) => None,
    }
}

/// A variant without its tag property.
fn without(branch: &Value, tag: &str) -> Value {
    if let Some(of) = branch.get("$ref") {
        // The fields belong to another type.
        return Map::from_iter([("$ref".to_owned(), of.clone())]).into();
    }
    let mut branch = branch.clone();
    if let Some(properties) = branch.get_mut("properties").and_then(Value::as_object_mut) {
        properties.shift_remove(tag);
    }
    if let Some(required) = branch.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|name| name != tag);
    }
    branch
}

/// The schema of arguments, with the definitions of the whole.
fn with_definitions(mut of: Value, schema: &Value) -> Result<Value> {
    let refers_to_whole = |schema: &Value| schema.to_string().contains("\"$ref\":\"#\"");
    let definitions = schema.get("$defs");
    if refers_to_whole(&of) || definitions.is_some_and(refers_to_whole) {
        return Err(Error::schema("", "a tool has its own enum as an argument, which is not offered"));
    }
    if let (Some(of), Some(definitions)) = (of.as_object_mut(), definitions) {
        of.insert("$defs".to_owned(), definitions.clone());
    }
    Ok(of)
}

#[cfg(test)]
mod tests {
    use burn_dfa_common::ErrorKind;
    use serde_json::json;

    use super::*;

    fn call(name: &str, arguments: Value) -> Call {
        Call { name: name.into(), arguments: arguments.to_string() }
    }

    #[test]
    fn externally_tagged_variants_are_tools() {
        let schema = json!({
            "oneOf": [
                {"type": "string", "enum": ["Now", "Stop"]},
                {"type": "object", "description": "Weather now", "properties": {"Weather": {"$ref": "#/$defs/Place"}},
                 "required": ["Weather"], "additionalProperties": false}
            ],
            "$defs": {"Place": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}
        });
        let found = variants(&schema).unwrap();
        let names: Vec<&str> = found.iter().map(|variant| variant.tool.name.as_str()).collect();
        assert_eq!(names, ["Now", "Stop", "Weather"]);
        assert_eq!(found[2].tool.description.as_deref(), Some("Weather now"));
        assert_eq!(
            found[2].tool.parameters,
            Some(json!({"$ref": "#/$defs/Place", "$defs": schema["$defs"]}))
        );
        assert_eq!(found[0].value(&call("Now", json!({}))).unwrap(), json!("Now"));
        let weather = call("Weather", json!({"city": "Bern"}));
        assert_eq!(found[2].value(&weather).unwrap(), json!({"Weather": {"city": "Bern"}}));
        let tools = super::super::Tools::new(found.into_iter().map(|variant| variant.tool)).unwrap();
        let text = r#"{"name": "Weather", "arguments": {"city": "Bern"}}"#;
        assert_eq!(
            tools.read(text).unwrap().calls,
            [Call { arguments: r#"{"city": "Bern"}"#.into(), ..weather }]
        );
        assert!(super::super::tests::automaton(&tools).matches(text.as_bytes()));
    }

    #[test]
    fn internally_tagged_variants_are_tools() {
        let schema = json!({"oneOf": [
            {"type": "object", "properties": {"tool": {"type": "string", "const": "weather"}, "city": {"type": "string"}},
             "required": ["tool", "city"]},
            {"type": "object", "properties": {"tool": {"type": "string", "const": "place"}},
             "required": ["tool"], "$ref": "#/$defs/Place"}
        ], "$defs": {"Place": {"type": "object"}}});
        let found = variants(&schema).unwrap();
        let parameters = found[0].tool.parameters.as_ref().unwrap();
        assert_eq!(
            (&parameters["properties"], &parameters["required"]),
            (&json!({"city": {"type": "string"}}), &json!(["city"]))
        );
        assert_eq!(found[1].tool.parameters.as_ref().unwrap()["$ref"], "#/$defs/Place");
        let value = found[0].value(&call("weather", json!({"city": "Bern"}))).unwrap();
        assert_eq!(value, json!({"city": "Bern", "tool": "weather"}));
    }

    #[test]
    fn other_types_are_refused() {
        for schema in [
            json!({"type": "object", "properties": {"a": {}}}),
            json!({"type": "string"}),
            json!({"anyOf": [{"type": "string"}, {"type": "null"}]}),
            json!({"oneOf": [{"type": "object", "properties": {"A": {"$ref": "#"}}, "required": ["A"]}]}),
        ] {
            assert!(variants(&schema).is_err_and(|error| error.kind() == ErrorKind::Schema), "{schema}");
        }
    }
}
