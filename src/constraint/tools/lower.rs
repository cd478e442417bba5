//! Tools as a structural tag, and what its tags mean.

use std::collections::BTreeMap;

use super::format::{Layout, Wire};
use super::{Tool, ToolChoice, ToolFormat, Tools, harmony};
use crate::constraint::{
    AnyText, End, Format, SchemaFormat, StructuralTag, Style, Tag, TagsWithSeparator, TriggeredTags,
};
use crate::error::{Error, Result};

/// What a part of an output is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// The answer.
    Content,
    Reasoning,
    /// The arguments of a call of the tool of this number.
    Call(usize),
}

/// A structural tag, and the roles of its tags by how they begin. Other tags have the role of what they stand in.
pub(super) struct Lowered {
    pub(super) tag: StructuralTag,
    pub(super) roles: BTreeMap<String, Role>,
}

/// Tools of which some may be called, so often as this.
pub(super) struct Callable<'t> {
    /// With their numbers.
    pub(super) tools: Vec<(usize, &'t Tool)>,
    /// Whether one is called, and comes first.
    pub(super) is_required: bool,
    /// Whether several may be called.
    pub(super) parallel: bool,
}

impl<'t> Callable<'t> {
    /// What a choice leaves.
    ///
    /// # Errors
    /// Where it leaves nothing and wants a call.
    fn new(own: &'t Tools) -> Result<Self> {
        let all = own.tools.iter().enumerate();
        let tools: Vec<_> = match &own.choice {
            ToolChoice::Auto | ToolChoice::Required => all.collect(),
            ToolChoice::Named(name) => all.filter(|(_, tool)| tool.name == *name).collect(),
            ToolChoice::Allowed { names, .. } => all.filter(|(_, tool)| names.contains(&tool.name)).collect(),
            ToolChoice::None => Vec::new(),
        };
        let named = match &own.choice {
            ToolChoice::Named(name) => std::slice::from_ref(name),
            ToolChoice::Allowed { names, .. } => names,
            _ => &[],
        };
        if let Some(name) = named.iter().find(|name| own.tools.iter().all(|tool| tool.name != **name)) {
            return Err(Error::request(format!("`tool_choice` names the tool {name:?}, which there is not")));
        }
        let is_required = matches!(
            own.choice,
            ToolChoice::Required | ToolChoice::Named(_) | ToolChoice::Allowed { required: true, .. }
        );
        if is_required && tools.is_empty() {
            return Err(Error::request("`tool_choice` wants a call, and there are no tools"));
        }
        let parallel = own.parallel && !matches!(own.choice, ToolChoice::Named(_));
        Ok(Self { tools, is_required, parallel })
    }

    /// The arguments of a tool.
    pub(super) fn arguments(tool: &Tool, style: Style) -> Format {
        SchemaFormat::new(tool.schema()).with_style(style).into()
    }
}

/// Lowers tools.
///
/// # Errors
/// Where the choice cannot be met, or the reasoning is not written in this format.
pub(super) fn lower(own: &Tools) -> Result<Lowered> {
    let callable = Callable::new(own)?;
    let mut roles = BTreeMap::new();
    let Some(wire) = own.format.wire() else {
        let format = harmony::lower(&callable, own.reasoning.as_ref(), &mut roles)?;
        return Ok(Lowered { tag: StructuralTag::new(format), roles });
    };
    let excludes: Vec<&str> = own.reasoning.iter().flat_map(|reasoning| reasoning.marks()).collect();
    let answer = match callable.tools.is_empty() {
        // Without tools nothing that looks like a call is one.
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
        // In a section what comes before a name belongs to the section, and to the separator.
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
            let begin = format!("{before}{}{}", tool.name, self.between);
            let tag =
                Tag::new(&*begin, Callable::arguments(tool, self.style), End::Text(self.after.to_owned()));
            roles.insert(begin, Role::Call(number));
            tag
        };
        callable.tools.iter().map(tag).collect()
    }
}

/// Refuses what a format does not write.
pub(super) fn refused(format: ToolFormat, reason: &str) -> Error {
    Error::request(format!("the format `{format}` {reason}"))
}
