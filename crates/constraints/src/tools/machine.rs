//! A structural tag as a graph, for reading a text.
//!
//! The grammar of a tag (`structural_tag/lower.rs`) accepts texts and forgets which part of the tag
//! a byte belongs to. This graph keeps the parts: the tool of a call, its arguments, reasoning. It
//! is built from the formats of lowered tools. A node expects one of some texts, or free text up
//! to the first of some marks, or arguments, or the input of a custom tool; never two of these,
//! except free text that does not begin with one of the texts.

use std::collections::BTreeMap;

use super::lower::LoweredTools;
use super::reply::Role;
use crate::{Begin, End, Format, SchemaFormat, Style, Tag, TokenFormat, TokenRef};
use burn_dfa_common::{Error, Result};

/// The possible continuations at a node.
#[derive(Debug, Default)]
pub(super) struct Node {
    pub(super) texts: Vec<Text>,
    pub(super) free: Option<Free>,
    pub(super) arguments: Option<Arguments>,
    pub(super) input: Option<Input>,
    /// Whether the output may end.
    pub(super) may_end: bool,
}

/// A text and its target.
#[derive(Clone, Debug)]
pub(super) struct Text {
    pub(super) text: Box<str>,
    /// The tool whose call begins after the text.
    pub(super) call: Option<usize>,
    pub(super) to: usize,
}

impl AsRef<str> for Text {
    fn as_ref(&self) -> &str {
        &self.text
    }
}

/// Free text.
#[derive(Debug)]
pub(super) struct Free {
    pub(super) role: Role,
    pub(super) marks: Vec<Text>,
    pub(super) may_end: bool,
}

/// The arguments of a call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arguments {
    pub(super) tool: usize,
    pub(super) style: Style,
    pub(super) to: usize,
}

/// The input of a custom tool: the rest of the output, except one of some texts at its end.
#[derive(Clone, Debug)]
pub(super) struct Input {
    pub(super) tool: usize,
    pub(super) ends: Vec<String>,
}

/// Longest text after an input, for all lowered tools.
const MAX_END: usize = 1024;

/// Nodes; the first is the start of an output.
#[derive(Debug)]
pub(super) struct Machine {
    pub(super) nodes: Vec<Node>,
}

impl Machine {
    pub(super) fn new(lowered: &LoweredTools) -> Result<Self> {
        let mut builder = Builder { roles: &lowered.roles, edges: Vec::new() };
        let (start, end) = (builder.node(), builder.node());
        builder.add(&lowered.tag.format, Role::Content, start, end)?;
        builder.edges[end].push(Edge::End);
        let nodes = (0..builder.edges.len()).map(|at| builder.resolved(at)).collect::<Result<_>>()?;
        Ok(Self { nodes })
    }
}

enum Edge {
    /// Without text.
    To(usize),
    Text(Text),
    /// Any text with triggers, and the node after its end.
    Free(Role, Vec<Text>, usize),
    Arguments(Arguments),
    /// The input of this tool, and the node after it.
    Input(usize, usize),
    End,
}

struct Builder<'l> {
    roles: &'l BTreeMap<String, Role>,
    edges: Vec<Vec<Edge>>,
}

impl Builder<'_> {
    fn node(&mut self) -> usize {
        self.edges.push(Vec::new());
        self.edges.len() - 1
    }

    fn text(&mut self, text: &str, call: Option<usize>, from: usize, to: usize) {
        self.edges[from].push(match text.is_empty() {
            true => Edge::To(to),
            false => Edge::Text(Text { text: text.into(), call, to }),
        });
    }

    /// Adds a format between two nodes.
    fn add(&mut self, format: &Format, role: Role, from: usize, to: usize) -> Result<()> {
        match format {
            Format::ConstString { value } => self.text(value, None, from, to),
            Format::JsonSchema(SchemaFormat { style, .. }) => {
                let Role::Call(tool) = role else { return Err(unread()) };
                self.edges[from].push(Edge::Arguments(Arguments { tool, style: *style, to }));
            }
            Format::GrammarText(_) => {
                let Role::Call(tool) = role else { return Err(unread()) };
                self.edges[from].push(Edge::Input(tool, to));
            }
            Format::AnyText(_) | Format::AnyTokens { .. } => {
                self.edges[from].push(Edge::Free(role, Vec::new(), to));
            }
            Format::Sequence { elements } => {
                let mut at = from;
                for (i, element) in elements.iter().enumerate() {
                    let next = if i + 1 == elements.len() { to } else { self.node() };
                    self.add(element, role, at, next)?;
                    at = next;
                }
            }
            Format::Or { elements } => {
                for element in elements {
                    self.add(element, role, from, to)?;
                }
            }
            Format::Optional { content } => {
                self.add(content, role, from, to)?;
                self.edges[from].push(Edge::To(to));
            }
            Format::Star { content } => {
                let again = self.node();
                self.add(content, role, again, again)?;
                self.edges[from].push(Edge::To(again));
                self.edges[again].push(Edge::To(to));
            }
            Format::Tag(tag) => {
                let inner = self.tag(tag, role, to)?;
                self.text(begin(tag)?, inner.call, from, inner.at);
            }
            Format::TriggeredTags(tags) => {
                let again = self.node();
                let after = if tags.stop_after_first { to } else { again };
                let mut triggers = Vec::with_capacity(tags.triggers.len());
                for trigger in &tags.triggers {
                    triggers.push(Text { text: trigger.as_str().into(), call: None, to: self.node() });
                }
                for tag in &tags.tags {
                    let inner = self.tag(tag, role, after)?;
                    let begin = begin(tag)?;
                    let trigger = triggers.iter().find(|trigger| begin.starts_with(&*trigger.text));
                    let trigger = trigger.filter(|trigger| begin != &*trigger.text).ok_or_else(unread)?;
                    let (rest, at) = (&begin[trigger.text.len()..], trigger.to);
                    self.text(rest, inner.call, at, inner.at);
                    if tags.at_least_one {
                        self.text(begin, inner.call, from, inner.at);
                    }
                }
                self.edges[again].push(Edge::Free(role, triggers, to));
                if !tags.at_least_one {
                    self.edges[from].push(Edge::To(again));
                }
            }
            Format::TagsWithSeparator(tags) => {
                let (one, after) = (self.node(), self.node());
                for tag in &tags.tags {
                    let inner = self.tag(tag, role, after)?;
                    self.text(begin(tag)?, inner.call, one, inner.at);
                }
                self.edges[from].push(Edge::To(one));
                self.edges[after].push(Edge::To(to));
                if !tags.stop_after_first {
                    self.text(&tags.separator, None, after, one);
                }
                if !tags.at_least_one {
                    self.edges[from].push(Edge::To(to));
                }
            }
            _ => return Err(unread()),
        }
        Ok(())
    }

    /// Adds a tag without its beginning.
    fn tag(&mut self, tag: &Tag, role: Role, to: usize) -> Result<Inner> {
        let role = self.roles.get(begin(tag)?).copied().unwrap_or(role);
        let (at, after) = (self.node(), self.node());
        self.add(&tag.content, role, at, after)?;
        match &tag.end {
            End::Text(end) => self.text(end, None, after, to),
            End::Texts(ends) => ends.iter().for_each(|end| self.text(end, None, after, to)),
            End::Token(token) => self.text(name(token)?, None, after, to),
        }
        let call = match role {
            Role::Call(tool) => Some(tool),
            _ => None,
        };
        Ok(Inner { at, call })
    }

    /// The continuations of a node, including edges reached without text.
    fn resolved(&self, at: usize) -> Result<Node> {
        let mut node = Node::default();
        for edge in self.reached(at) {
            match edge {
                Edge::To(_) => {}
                Edge::Text(text) => node.texts.push(text.clone()),
                Edge::Free(role, triggers, to) => {
                    let mut free = Free { role: *role, marks: triggers.clone(), may_end: false };
                    for edge in self.reached(*to) {
                        match edge {
                            Edge::To(_) => {}
                            Edge::Text(text) => free.marks.push(text.clone()),
                            Edge::End => free.may_end = true,
                            _ => return Err(unread()),
                        }
                    }
                    if node.free.replace(free).is_some() {
                        return Err(unread());
                    }
                }
                Edge::Arguments(arguments) => {
                    if node.arguments.replace(*arguments).is_some() {
                        return Err(unread());
                    }
                }
                Edge::Input(tool, to) => {
                    let input = Input { tool: *tool, ends: self.ends(*to)? };
                    if node.input.replace(input).is_some() {
                        return Err(unread());
                    }
                }
                Edge::End => node.may_end = true,
            }
        }
        let values = usize::from(node.arguments.is_some()) + usize::from(node.input.is_some());
        let is_more = node.free.is_some() || node.may_end || !node.texts.is_empty();
        if values > 1 || values == 1 && is_more {
            return Err(unread());
        }
        Ok(node)
    }

    /// The texts from a node to the end of the output, on paths without calls and free text.
    fn ends(&self, at: usize) -> Result<Vec<String>> {
        let (mut found, mut rest) = (Vec::new(), vec![(at, String::new())]);
        while let Some((at, read)) = rest.pop() {
            for edge in self.reached(at) {
                match edge {
                    Edge::To(_) => {}
                    Edge::End => found.push(read.clone()),
                    Edge::Text(text) if text.call.is_none() && read.len() <= MAX_END => {
                        rest.push((text.to, format!("{read}{}", text.text)));
                    }
                    _ => return Err(unread()),
                }
            }
        }
        Ok(found)
    }

    /// The edges of a node and of all nodes reachable from it without text.
    fn reached(&self, at: usize) -> impl Iterator<Item = &Edge> {
        let (mut seen, mut next) = (vec![at], 0);
        while next < seen.len() {
            for edge in &self.edges[seen[next]] {
                if let Edge::To(to) = edge
                    && !seen.contains(to)
                {
                    seen.push(*to);
                }
            }
            next += 1;
        }
        seen.into_iter().flat_map(|at| &self.edges[at])
    }
}

/// A tag after its beginning.
struct Inner {
    at: usize,
    call: Option<usize>,
}

fn begin(tag: &Tag) -> Result<&str> {
    match &tag.begin {
        Begin::Text(text) => Ok(text),
        Begin::Token(token) => name(token),
    }
}

/// The text of a special token.
fn name(token: &TokenFormat) -> Result<&str> {
    match &token.token {
        TokenRef::Text(name) => Ok(name),
        TokenRef::Id(_) => Err(unread()),
    }
}

/// The error for a format that no tool is lowered to.
fn unread() -> Error {
    Error::input("a part of the structural tag cannot be read back")
}
