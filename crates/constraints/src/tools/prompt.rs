//! Tools as a text for a prompt, for models whose chat template does not show tools.

use std::fmt::Write;

use serde_json::json;

use super::callable::Callable;
use super::written::{nothing, spaced};
use super::{Tool, ToolInput, Tools};
use crate::Style;

impl Tools {
    /// A description of the tools for the model: their names, descriptions and arguments, and the
    /// format of a call. A server puts this text into the system message if the chat template of
    /// the model does not show tools.
    ///
    /// ```
    /// use burn_dfa_tokens::constraint::{Tool, Tools};
    ///
    /// let tools = Tools::new([Tool::new("now").with_description("Tells the time.")])?;
    /// let prompt = tools.prompt();
    /// assert!(prompt.contains("now: Tells the time."));
    /// assert!(prompt.contains(r#"{"name": "now", "arguments": {}}"#));
    /// # Ok::<(), burn_dfa_tokens::Error>(())
    /// ```
    pub fn prompt(&self) -> String {
        let mut text = String::from("You can call these tools:\n");
        for tool in &self.tools {
            let _ = write!(text, "\n{}", tool.name);
            if let Some(description) = &tool.description {
                let _ = write!(text, ": {description}");
            }
            let _ = writeln!(text, "\n{}", arguments(tool));
        }
        let (is_required, parallel) = match Callable::new(self) {
            Ok(callable) => (callable.is_required, callable.parallel),
            Err(_) => (false, false),
        };
        let call = match is_required {
            true => "Answer with a call of a tool, written like this and with nothing before it:",
            false => "To call a tool, write the call like this:",
        };
        let _ = writeln!(text, "\n{call}");
        for tool in self.tools.iter().take(1) {
            text.push_str(&self.example(&[tool]));
        }
        if let (true, [one, other, ..]) = (parallel, &self.tools[..]) {
            let _ = write!(text, "\n\nSeveral calls in one answer:\n{}", self.example(&[one, other]));
        }
        text
    }

    /// Calls of some tools, with the names of their arguments.
    fn example(&self, tools: &[&Tool]) -> String {
        let style = self.format.wire().map_or(Style::Json, |wire| wire.style);
        let raw = |tool: &Tool| {
            let input = Callable::arguments(tool, style);
            format!("{}TEXT{}", input.before, input.after)
        };
        let is_raw = |tool: &&&Tool| matches!(tool.input, Some(ToolInput::Grammar(_)));
        if let Some(tool) = tools.iter().find(is_raw) {
            return self.format.write_raw(&[(tool.name.as_str(), raw(tool))]);
        }
        let calls: Vec<_> = tools
            .iter()
            .map(|tool| {
                let schema = tool.schema();
                let mut given = nothing();
                let names = schema["properties"].as_object().into_iter().flatten();
                for (name, _) in names {
                    given[name.as_str()] = json!("…");
                }
                (tool.name.as_str(), given)
            })
            .collect();
        self.format.write(&calls)
    }
}

/// The arguments of a tool.
fn arguments(tool: &Tool) -> String {
    match &tool.input {
        None => format!("Arguments, by a JSON schema: {}", spaced(&tool.schema())),
        Some(ToolInput::Text) => "Its argument `input` is any text.".to_owned(),
        Some(ToolInput::Grammar(grammar)) => {
            format!(
                "Its argument `input` is a text of this {} grammar:\n{}",
                grammar.syntax, grammar.definition
            )
        }
    }
}
