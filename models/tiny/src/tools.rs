//! The tools that the model can call, in the form of requests to chat models.

use std::fmt::Write as _;

use serde_json::Value;

/// A tool.
///
/// ```
/// let tool = burn_dfa_tiny::tool("get_weather").unwrap();
/// assert_eq!(tool.signature(), "get_weather(city:string,day?:today|tomorrow)");
/// assert_eq!(tool.parameters()["required"], serde_json::json!(["city"]));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tool {
    /// The name, for instance `get_weather`.
    pub name: &'static str,
    /// `{"type": "function", "function": {"name": …, "description": …, "parameters": …}}`.
    pub json: &'static str,
}

impl Tool {
    /// The description as a value, an element of the `tools` of a request.
    pub fn definition(&self) -> Value {
        serde_json::from_str(self.json).expect("the files of the tools are JSON")
    }

    /// The JSON schema of the arguments.
    pub fn parameters(&self) -> Value {
        self.definition()["function"]["parameters"].take()
    }

    /// The line of the tool in a prompt: the name, and for each argument its name, `?` if it is
    /// optional, and its type or its values.
    pub fn signature(&self) -> String {
        let parameters = self.parameters();
        let required = parameters["required"].as_array().expect("the required arguments are listed");
        let properties = parameters["properties"].as_object().expect("arguments have names");
        let arguments: Vec<String> = properties
            .iter()
            .map(|(name, schema)| {
                let optional = if required.iter().any(|needed| needed == name) { "" } else { "?" };
                format!("{name}{optional}:{}", values(schema))
            })
            .collect();
        format!("{}({})", self.name, arguments.join(","))
    }
}

/// The values of an enumeration, or else the type.
fn values(schema: &Value) -> String {
    let texts = |list: &Vec<Value>| list.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("|");
    schema["enum"].as_array().map_or_else(|| schema["type"].as_str().unwrap_or_default().into(), texts)
}

/// The lines before the user's turn if tools are offered: one signature each.
pub fn catalogue(tools: &[&Tool]) -> String {
    tools.iter().fold(String::new(), |mut text, tool| {
        writeln!(text, "{}", tool.signature()).expect("strings can be written to");
        text
    })
}

/// All tools.
pub fn tools() -> &'static [Tool] {
    &TOOLS
}

/// The tool of this name.
pub fn tool(name: &str) -> Option<&'static Tool> {
    TOOLS.iter().find(|tool| tool.name == name)
}

macro_rules! tools {
    ($($name:literal),* $(,)?) => {
        [$(Tool { name: $name, json: include_str!(concat!("../tools/", $name, ".json")) }),*]
    };
}

static TOOLS: [Tool; 12] = tools![
    "get_weather",
    "calculate",
    "convert_currency",
    "find_train",
    "set_timer",
    "set_alarm",
    "add_reminder",
    "set_light",
    "play_music",
    "translate",
    "send_message",
    "book_table",
];
