//! The format of gpt-oss: messages in channels.
//!
//! An answer is messages with `<|start|>assistant` between two of them. Reasoning comes first, with
//! a preamble if a call is not required at once, and then either the final message or calls. The
//! tokens that end these messages end the whole output as well, and a decoder may stop before them:
//! the last message may lack its end token.

use std::collections::BTreeMap;

use super::callable::Callable;
use super::reply::Role;
use super::{Reasoning, ToolFormat};
use crate::{AnyText, End, Format, Style, Tag, TagsWithSeparator};
use burn_dfa_common::{Error, Result};

/// The marks that tokenizers may have as special tokens.
pub(super) const MARKS: [&str; 7] =
    ["<|start|>", "<|channel|>", "<|message|>", "<|constrain|>", CALL, "<|return|>", END];

const NEXT: &str = "<|start|>assistant";
const ANALYSIS: &str = "<|channel|>analysis<|message|>";
const PREAMBLE: &str = "<|channel|>commentary<|message|>";
const FINAL: &str = "<|channel|>final<|message|>";
const END: &str = "<|end|>";
/// The end of a call.
const CALL: &str = "<|call|>";

/// The texts around the name of a tool; the first are written. The recipient of a call comes after
/// the channel or before it.
const HEADERS: [(&str, &str); 5] = [
    ("<|channel|>commentary to=functions.", " <|constrain|>json<|message|>"),
    ("<|channel|>commentary to=functions.", "<|constrain|>json<|message|>"),
    ("<|channel|>commentary to=functions.", "<|message|>"),
    (" to=functions.", "<|channel|>commentary <|constrain|>json<|message|>"),
    (" to=functions.", "<|channel|>commentary json<|message|>"),
];

/// The usual reasoning.
pub(super) fn reasoning() -> Reasoning {
    Reasoning::text(ANALYSIS, END)
}

/// Calls as text, with the arguments as text.
pub(super) fn write(calls: &[(&str, String)]) -> String {
    let [(before, after), ..] = HEADERS;
    let call = |(name, arguments): &(&str, String)| format!("{before}{name}{after}{arguments}{CALL}");
    calls.iter().map(call).collect::<Vec<_>>().join(NEXT)
}

pub(super) fn lower(
    callable: &Callable<'_>,
    reasoning: Option<&Reasoning>,
    roles: &mut BTreeMap<String, Role>,
) -> Result<Format> {
    let text = || AnyText::new().with_excludes(MARKS);
    let mut first = Vec::new();
    if let Some(reasoning) = reasoning {
        if !reasoning.is_between(ANALYSIS, END) {
            return Err(Error::request(format!(
                "the format `{}` has reasoning of its own: take that of `ToolFormat::reasoning`",
                ToolFormat::Harmony
            )));
        }
        roles.insert(ANALYSIS.to_owned(), Role::Reasoning);
        first.push(Format::tag(ANALYSIS, text(), END));
    }
    let mut last = Vec::new();
    if !callable.is_required {
        if !callable.tools.is_empty() {
            first.push(Format::tag(PREAMBLE, text(), END));
        }
        last.push(Format::tag(FINAL, text(), ["<|return|>", END, ""]));
    }
    if !callable.tools.is_empty() {
        last.push(calls(callable, roles));
    }
    let last = Format::or(last);
    Ok(match first.is_empty() {
        true => last,
        false => {
            let message = Format::sequence([Format::or(first), Format::const_string(NEXT)]);
            Format::sequence([message.star(), last])
        }
    })
}

fn calls(callable: &Callable<'_>, roles: &mut BTreeMap<String, Role>) -> Format {
    let mut tags = Vec::with_capacity(callable.tools.len() * HEADERS.len());
    for &(number, tool) in &callable.tools {
        let arguments = Callable::arguments(tool, Style::Json);
        for (before, after) in HEADERS {
            let begin = format!("{before}{}{after}{}", tool.name, arguments.before);
            let ends = [CALL, ""].map(|end| format!("{}{end}", arguments.after));
            tags.push(Tag::new(&*begin, arguments.format.clone(), End::Texts(ends.to_vec())));
            roles.insert(begin, Role::Call(number));
        }
    }
    TagsWithSeparator::new(tags, NEXT)
        .with_at_least_one(true)
        .with_stop_after_first(!callable.parallel)
        .into()
}
