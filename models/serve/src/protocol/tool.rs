//! The definitions of tools in a request.

use serde_json::Value;

use super::warning::Warnings;

/// The fields of a tool besides its type, for definitions with and without an object under the name
/// of the type.
const FUNCTION: [&str; 4] = ["name", "description", "parameters", "strict"];
const CUSTOM: [&str; 3] = ["name", "description", "format"];

/// The definitions without unknown fields, such as `cache_control`. Each unknown field adds a
/// warning.
pub fn known(given: &[Value], warnings: &mut Warnings) -> Vec<Value> {
    let mut tools = given.to_vec();
    for (index, tool) in tools.iter_mut().enumerate() {
        let kind = match tool["type"].as_str() {
            Some("function") => "function",
            Some("custom") => "custom",
            // An unknown type is refused later.
            _ => continue,
        };
        let own: &[&str] = if kind == "custom" { &CUSTOM } else { &FUNCTION };
        let at = format!("tools[{index}]");
        if tool.get(kind).is_some() {
            keep(tool, &["type", kind], &at, warnings);
            keep(&mut tool[kind], own, &format!("{at}.{kind}"), warnings);
        } else {
            let flat: Vec<&str> = ["type"].into_iter().chain(own.iter().copied()).collect();
            keep(tool, &flat, &at, warnings);
        }
    }
    tools
}

/// Removes all fields of an object except these.
fn keep(value: &mut Value, known: &[&str], at: &str, warnings: &mut Warnings) {
    let Value::Object(fields) = value else { return };
    fields.retain(|name, value| {
        let is_known = known.contains(&name.as_str());
        if !is_known && !value.is_null() {
            warnings.ignore(format!("{at}.{name}"));
        }
        is_known
    });
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_that_are_unknown_are_left_out() {
        let given = [
            json!({"type": "function", "function": {"name": "f", "returns": {}}, "cache_control": {}, "x": null}),
            json!({"type": "function", "name": "g", "strict": true, "defer_loading": true}),
            json!({"type": "custom", "custom": {"name": "h", "format": {"type": "text"}, "parameters": {}}}),
            json!({"type": "mcp", "server_label": "s"}),
        ];
        let mut warnings = Warnings::default();
        let tools = known(&given, &mut warnings);
        assert_eq!(tools[0], json!({"type": "function", "function": {"name": "f"}}));
        assert_eq!(tools[1], json!({"type": "function", "name": "g", "strict": true}));
        assert_eq!(tools[2], json!({"type": "custom", "custom": {"name": "h", "format": {"type": "text"}}}));
        assert_eq!(tools[3], given[3]);
        let told = warnings.tell();
        assert_eq!(
            told[0].param,
            "tools[0].cache_control, tools[0].function.returns, tools[1].defer_loading, tools[2].custom.parameters"
        );
    }
}
