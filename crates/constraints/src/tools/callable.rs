//! The tools that a model may call, by the choice of the caller.

use std::collections::BTreeSet;

use super::input::Arguments;
use super::{Tool, ToolChoice, ToolInput, Tools};
use crate::Style;
use burn_dfa_common::{Error, Result};

/// The tools that may be called, and the numbers of calls.
pub(super) struct Callable<'t> {
    /// With their numbers.
    pub(super) tools: Vec<(usize, &'t Tool)>,
    /// Whether one is called, and comes first.
    pub(super) is_required: bool,
    /// Whether several may be called.
    pub(super) parallel: bool,
}

impl<'t> Callable<'t> {
    /// The tools that a choice allows.
    ///
    /// # Errors
    /// The choice allows no tool but requires a call.
    pub(super) fn new(own: &'t Tools) -> Result<Self> {
        let all = own.tools.iter().enumerate();
        let tools: Vec<_> = match &own.choice {
            ToolChoice::Auto | ToolChoice::Required => all.collect(),
            ToolChoice::Named(name) => all.filter(|(_, tool)| tool.name == *name).collect(),
            ToolChoice::Allowed { names, .. } => {
                let names: BTreeSet<&String> = names.iter().collect();
                all.filter(|(_, tool)| names.contains(&tool.name)).collect()
            }
            ToolChoice::None => Vec::new(),
        };
        let named = match &own.choice {
            ToolChoice::Named(name) => std::slice::from_ref(name),
            ToolChoice::Allowed { names, .. } => names,
            _ => &[],
        };
        let known: BTreeSet<&String> = own.tools.iter().map(|tool| &tool.name).collect();
        if let Some(name) = named.iter().find(|name| !known.contains(name)) {
            return Err(Error::request(format!("`tool_choice` names the tool {name:?}, which there is not")));
        }
        let is_required = matches!(
            own.choice,
            ToolChoice::Required | ToolChoice::Named(_) | ToolChoice::Allowed { required: true, .. }
        );
        if is_required && tools.is_empty() {
            return Err(Error::request("`tool_choice` wants a call, and there are no tools"));
        }
        // The end of the answer ends a raw text.
        let is_raw = |tool: &Tool| matches!(tool.input, Some(ToolInput::Grammar(_)));
        let parallel = own.parallel
            && !matches!(own.choice, ToolChoice::Named(_))
            && !tools.iter().any(|(_, tool)| is_raw(tool));
        Ok(Self { tools, is_required, parallel })
    }

    /// The arguments of a tool.
    pub(super) fn arguments(tool: &Tool, style: Style) -> Arguments {
        Arguments::new(tool.schema(), tool.input.as_ref(), style)
    }
}
