//! Tools as a structural tag, with the meaning of its tags.

use std::collections::BTreeMap;

use super::callable::Callable;
use super::format::{Layout, Wire};
use super::reply::Role;
use super::{Tool, ToolChoice, Tools, harmony};
use crate::{AnyText, End, Format, StructuralTag, Tag, TagsWithSeparator, TriggeredTags};
use burn_dfa_common::{Error, Result};

/// A structural tag, and the roles of its tags by their begins. Other tags have the role of the
/// surrounding text.
pub(super) struct LoweredTools {
    pub(super) tag: StructuralTag,
    pub(super) roles: BTreeMap<String, Role>,
}

/// Lowers tools.
///
/// # Errors
/// The choice is impossible, or the format does not support the reasoning.
pub(super) fn lower(own: &Tools) -> Result<LoweredTools> {
    let callable = Callable::new(own)?;
    let mut roles = BTreeMap::new();
    let Some(wire) = own.format.wire() else {
        let format = harmony::lower(&callable, own.reasoning.as_ref(), &mut roles)?;
        return Ok(LoweredTools { tag: StructuralTag::new(format), roles });
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
    Ok(LoweredTools { tag: StructuralTag::new(format), roles })
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
