//! Tools as a structural tag, with the meaning of its tags.

use std::collections::{BTreeMap, BTreeSet};

use super::format::{Layout, Wire};
use super::input::Arguments;
use super::{Tool, ToolChoice, ToolFormat, ToolInput, Tools, harmony};
use crate::{AnyText, End, Format, StructuralTag, Style, Tag, TagsWithSeparator, TriggeredTags};
use burn_dfa_common::{Error, Result};

/// The role of a part of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// The answer.
    Content,
    Reasoning,
    /// The arguments of a call of the tool with this number.
    Call(usize),
}

/// A structural tag, and the roles of its tags by their begins. Other tags have the role of the
/// surrounding text.
pub(super) struct Lowered {
    pub(super) tag: StructuralTag,
    pub(super) roles: BTreeMap<String, Role>,
}

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

/// Lowers tools.
///
/// # Errors
/// The choice is impossible, or the format does not support the reasoning.
pub(super) fn lower(own: &Tools) -> Result<Lowered> {
    let callable = Callable::new(own)?;
    let mut roles = BTreeMap::new();
    let Some(wire) = own.format.wire() else {
        let format = harmony::lower(&callable, own.reasoning.as_ref(), &mut roles)?;
        return Ok(Lowered { tag: StructuralTag::new(format), roles });
    };
    let excludes: Vec<&str> = own.reasoning.iter().flat_map(|reasoning| reasoning.marks()).collect();
    let answer = match callable.tools.is_empty() {
        // Without tools, text that looks like a call is text.
        true if own.choice == ToolChoice::Auto => AnyText::new().with_excludes(excludes).into(),
        true => {
            AnyText::new().with_excludes(excludes.into_iter().chain(wire.triggers.iter().copied())).into()
        }
        false => wire.calls(&callable, &excludes, &mut roles),
    };
    let format = match &own.reasoning {
        None => answer,
        Some(reasoning) => {
            let (format, begin) = reasoning.format();
            if roles.insert(begin, Role::Reasoning).is_some() {
                return Err(Error::input("reasoning begins as a call does"));
            }
            Format::sequence([format, answer])
        }
    };
    Ok(Lowered { tag: StructuralTag::new(format), roles })
}

impl Wire {
    fn calls(
        &self,
        callable: &Callable<'_>,
        excludes: &[&str],
        roles: &mut BTreeMap<String, Role>,
    ) -> Format {
        let &Self { before, triggers, .. } = self;
        // In a section, the text before a name belongs to the section and to the separator.
        let section = |open: &str, separator: &str, close: &str, parallel: bool, tags: &[Tag]| {
            let calls = TagsWithSeparator::new(tags.iter().cloned(), format!("{separator}{before}"))
                .with_at_least_one(true)
                .with_stop_after_first(!parallel);
            Tag::new(&*format!("{open}{before}"), calls, close)
        };
        let tags = match self.layout {
            Layout::Apart => self.tags(before, callable, roles),
            Layout::Section { open, separator, close } => {
                let tags = self.tags("", callable, roles);
                vec![section(open, separator, close, callable.parallel, &tags)]
            }
            Layout::Either { open, separator, close } => {
                let tags = self.tags("", callable, roles);
                let one = section("", "", "", false, &tags);
                vec![one, section(open, separator, close, callable.parallel, &tags)]
            }
        };
        if callable.is_required && !matches!(self.layout, Layout::Apart) {
            return Format::or(tags.into_iter().map(Format::from));
        }
        TriggeredTags::new(triggers.iter().copied(), tags)
            .with_at_least_one(callable.is_required)
            .with_stop_after_first(!callable.parallel)
            .with_excludes(excludes.iter().copied())
            .into()
    }

    /// A tag for each tool.
    fn tags(&self, before: &str, callable: &Callable<'_>, roles: &mut BTreeMap<String, Role>) -> Vec<Tag> {
        let tag = |&(number, tool): &(usize, &Tool)| {
            let arguments = Callable::arguments(tool, self.style);
            let begin = format!("{before}{}{}{}", tool.name, self.between, arguments.before);
            let end = End::Text(format!("{}{}", arguments.after, self.after));
            let tag = Tag::new(&*begin, arguments.format, end);
            roles.insert(begin, Role::Call(number));
            tag
        };
        callable.tools.iter().map(tag).collect()
    }
}

/// The error for a feature that a format lacks.
pub(super) fn refused(format: ToolFormat, reason: &str) -> Error {
    Error::request(format!("the format `{format}` {reason}"))
}
