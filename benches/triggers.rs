//! Free text with calls of many tools.

use burn_dfa::Constraint;
use burn_dfa::constraint::{Format, StructuralTag, Tag, TriggeredTags};
use serde_json::json;

/// Free text with a trigger for each of `tools` tools. The text ends only after `<end>`, so that no
/// step runs after the end.
pub fn endless(tools: usize) -> Constraint {
    let names: Vec<String> = (0..tools).map(|tool| format!("<function=tool_{tool:03}")).collect();
    let tag = |(tool, name): (usize, &String)| {
        // Each tool has a different schema, as real tools do.
        let schema = json!({
            "type": "object",
            "properties": {"query": {"type": "string"}, format!("limit_{tool}"): {"type": "integer"}, "unit": {"enum": ["C", "F"]}},
            "required": ["query"]
        });
        Tag::new(&*format!("{name}>"), Format::json_schema(schema), "</function>")
    };
    let tags: Vec<Tag> = names.iter().enumerate().map(tag).collect();
    let text = Format::tag("", TriggeredTags::new(names.iter().map(String::as_str), tags), "<end>");
    Constraint::structural_tag(&StructuralTag::new(text)).expect("a structural tag")
}
