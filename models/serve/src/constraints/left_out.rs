//! Keywords of schemas that no automaton can enforce; they are left out unless a request is strict.

use burn_dfa::constraint::{ToolChoice, Tools, Treatment, Unenforceable};
use burn_dfa::tokens::limits::Meter;
use burn_dfa::{Constraint, Limits, Result};

use super::style::JsonStyle;

/// A keyword that is left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// The number of the tool whose parameters contain the keyword; `None` for another schema.
    pub tool: Option<usize>,
    /// JSON pointer to the keyword.
    pub pointer: String,
    /// The reason and the effect.
    reason: String,
}

impl LeftOut {
    /// The location in a request whose constraint is in the field `param`.
    pub fn location(&self, param: &str) -> String {
        match self.tool {
            Some(number) => location_in_tool(number, &self.pointer),
            None => format!("{}{}", schema_field(param), self.pointer),
        }
    }

    /// The warning in the answer.
    pub fn warning(&self) -> String {
        format!("{} is left out: {}", self.keyword(), self.reason)
    }

    /// The error for a strict request.
    pub fn refusal(&self, param: &str) -> String {
        let change = match self.pointer.rsplit('/').next() {
            Some("uniqueItems") => "list fewer values for the items with `enum`, or lower `maxItems`",
            _ => "list the names under `properties`",
        };
        format!(
            "{}: {} is not kept by any finite automaton, and `strict` asks for it; {change}, or leave `strict` out and check the value after it was generated",
            self.location(param),
            self.keyword()
        )
    }

    fn keyword(&self) -> String {
        format!("`{}`", self.pointer.rsplit('/').next().unwrap_or_default())
    }
}

/// The field that holds the schema, if the constraint is in the field `param`.
fn schema_field(param: &str) -> &str {
    match param {
        "response_format" => "response_format.json_schema.schema",
        "structured_outputs" => "structured_outputs.json",
        "text.format" => "text.format.schema",
        param => param,
    }
}

/// The location of a part of a tool's parameters.
pub(super) fn location_in_tool(number: usize, pointer: &str) -> String {
    format!("tools[{number}].parameters{pointer}")
}

/// The keywords that a constraint, read with [`Unenforceable::Ignore`], leaves out.
///
/// # Errors
/// The time of `limits` has run out, so that keywords may be missing.
pub(super) fn of(
    tool: Option<usize>,
    limits: &Limits,
    constraint: Result<Option<Constraint>>,
) -> Result<Vec<LeftOut>> {
    let Ok(Some(constraint)) = constraint else { return Ok(Vec::new()) };
    let meter = Meter::start(limits);
    let left_out = constraint.notes(&meter).into_iter().filter_map(|note| match note.treatment {
        Treatment::Unenforceable(reason) => Some(LeftOut { tool, pointer: note.pointer, reason }),
        _ => None,
    });
    let left_out = left_out.collect();
    meter.time()?;
    Ok(left_out)
}

/// The keywords that the parameters of callable tools leave out.
///
/// # Errors
/// As [`of`].
pub(super) fn of_tools(tools: &Tools, style: &JsonStyle, limits: &Limits) -> Result<Vec<LeftOut>> {
    let may_be_called = |name: &String| match tools.choice() {
        ToolChoice::Named(named) => named == name,
        ToolChoice::Allowed { names, .. } => names.contains(name),
        _ => true,
    };
    let called = tools.tools().iter().enumerate().filter(|(_, tool)| may_be_called(&tool.name));
    let mut left_out = Vec::new();
    for (number, tool) in called {
        let options = style.of_arguments(tools, Unenforceable::Ignore);
        let constraint = Constraint::json_schema_with(tool.schema(), &options).map(Some);
        left_out.extend(of(Some(number), limits, constraint)?);
    }
    Ok(left_out)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use burn_dfa::Limit;
    use burn_dfa::constraint::JsonOptions;
    use serde_json::json;

    use super::*;

    #[test]
    fn keywords_are_not_missed_for_lack_of_time() {
        let schema = json!({"type": "array", "items": {"type": "string"}, "uniqueItems": true});
        let options = JsonOptions::new().with_unenforceable(Unenforceable::Ignore);
        let read = || Constraint::json_schema_with(schema.clone(), &options).map(Some);
        let found = of(None, &Limits::new(), read()).expect("there is time");
        assert_eq!(found.iter().map(|left_out| &*left_out.pointer).collect::<Vec<_>>(), ["/uniqueItems"]);
        let error = of(None, &Limits::new().with_time(Duration::ZERO), read()).expect_err("there is none");
        assert_eq!(error.breached(), Some(Limit::Time(Duration::ZERO)));
    }
}
