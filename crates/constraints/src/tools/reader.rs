//! Reads answers incrementally.

use std::sync::Arc;

use super::json::{Ended, JsonScan};
use super::machine::{Free, Machine, Node, Text};
use super::reply::{Reply, ReplyEvent, Role};
use super::xml::{Read, XmlScan};
use super::{Tool, ToolInput, Tools};
use crate::structural_tag::marks_of;
use burn_dfa_common::matcher::TextMatcher;
use burn_dfa_common::{Error, Result};

/// Reads one answer of a model with [tools](Tools), in chunks of any size.
///
/// All deltas of a kind, concatenated, equal the whole [reply](Self::reply), for every division
/// into chunks. JSON arguments are passed on immediately, XML arguments at the end of each
/// argument.
///
/// ```
/// use burn_dfa_tokens::constraint::{ReplyEvent, Tool, ToolFormat, Tools};
///
/// let tools = Tools::new([Tool::new("now")])?.with_format(ToolFormat::Hermes);
/// let mut reader = tools.reader()?;
/// let mut text = String::new();
/// for chunk in ["It is <", "tool_call>\n{\"name\": \"no", "w\", \"arguments\": {}}\n</tool_call>"]
/// {
///     for event in reader.push(chunk.as_bytes())? {
///         if let ReplyEvent::Text(delta) = event {
///             text.push_str(&delta);
///         }
///     }
/// }
/// reader.finish()?;
/// assert_eq!(text, "It is ");
/// assert_eq!(reader.reply().calls[0].name, "now");
/// # Ok::<(), burn_dfa_tokens::Error>(())
/// ```
#[derive(Debug)]
pub struct ToolReader {
    machine: Arc<Machine>,
    tools: Vec<Tool>,
    state: State,
    /// The bytes of an incomplete last character.
    cut: Vec<u8>,
    /// The number of bytes read.
    at: usize,
    /// Text not passed on yet, and its role.
    text: Vec<u8>,
    role: Role,
    events: Vec<ReplyEvent>,
    reply: Reply,
    error: Option<Error>,
}

#[derive(Debug)]
enum State {
    /// One of some texts of a node: the bytes read so far, and the remaining candidates.
    Texts {
        node: usize,
        read: Vec<u8>,
        left: Vec<u32>,
    },
    Free {
        node: usize,
        marks: TextMatcher,
    },
    Json {
        to: usize,
        scan: JsonScan,
    },
    Xml {
        to: usize,
        scan: Box<XmlScan>,
    },
    /// The input of a custom tool, up to one of some ends of the output.
    Input {
        ends: Vec<String>,
    },
    /// The output has ended.
    Ended,
}

impl ToolReader {
    pub(super) fn new(tools: &Tools) -> Result<Self> {
        let machine = Arc::new(Machine::new(&tools.lower()?)?);
        let mut reader = Self {
            machine,
            tools: tools.tools.clone(),
            state: State::Json { to: 0, scan: JsonScan::default() },
            cut: Vec::new(),
            at: 0,
            text: Vec::new(),
            role: Role::Content,
            events: Vec::new(),
            reply: Reply::default(),
            error: None,
        };
        reader.enter(0, &Arc::clone(&reader.machine))?;
        Ok(reader)
    }

    /// Reads more of the output, and returns new events.
    ///
    /// # Errors
    /// [`ErrorKind::Output`](crate::ErrorKind::Output): the output does not have the format, with
    /// the byte of the mismatch. The output read before is in the [reply](Self::reply); later
    /// output is ignored.
    pub fn push(&mut self, chunk: &[u8]) -> Result<Vec<ReplyEvent>> {
        self.error.clone().map_or(Ok(()), Err)?;
        let machine = Arc::clone(&self.machine);
        let read = self.characters(chunk, &machine);
        self.flush();
        let events = std::mem::take(&mut self.events);
        self.error = read.err();
        self.error.clone().map_or(Ok(events), Err)
    }

    /// Ends a complete output, and returns the events of text held back.
    ///
    /// # Errors
    /// [`ErrorKind::Output`](crate::ErrorKind::Output): the output is not complete, or had another
    /// error before.
    pub fn finish(&mut self) -> Result<Vec<ReplyEvent>> {
        self.error.clone().map_or(Ok(()), Err)?;
        let is_complete = self.end()? && self.cut.is_empty();
        let events = self.cut_off();
        if is_complete {
            return Ok(events);
        }
        let error =
            Error::output(format!("the output ends at byte {}, within a part of its format", self.at));
        self.error = Some(error.clone());
        Err(error)
    }

    /// Ends an output that may be cut off, and returns the events of text held back.
    pub fn cut_off(&mut self) -> Vec<ReplyEvent> {
        if let State::Free { marks, .. } = &mut self.state {
            marks.finish(&mut self.text);
        }
        if self.is_read_whole() {
            // The JSON with the input is incomplete.
            self.text.clear();
        }
        self.pass_on(0);
        std::mem::take(&mut self.events)
    }

    /// The reply so far.
    pub fn reply(&self) -> &Reply {
        &self.reply
    }

    /// The reply so far.
    pub fn into_reply(self) -> Reply {
        self.reply
    }

    /// Reads whole characters, and keeps the rest.
    fn characters(&mut self, chunk: &[u8], machine: &Machine) -> Result<()> {
        let mut bytes = std::mem::take(&mut self.cut);
        bytes.extend_from_slice(chunk);
        let (whole, wrong) = match std::str::from_utf8(&bytes) {
            Ok(text) => (text.len(), false),
            Err(error) => (error.valid_up_to(), error.error_len().is_some()),
        };
        for &byte in &bytes[..whole] {
            self.step(byte, machine)?;
            self.at += 1;
        }
        if wrong {
            return Err(Error::output(format!("the output is not UTF-8 at byte {}", self.at)));
        }
        self.cut = bytes.split_off(whole);
        Ok(())
    }

    fn step(&mut self, byte: u8, machine: &Machine) -> Result<()> {
        // The bytes to be read, the next one last.
        let mut bytes = vec![byte];
        while let Some(byte) = bytes.pop() {
            match &mut self.state {
                State::Texts { node, read, left } => {
                    let Node { texts, free, .. } = &machine.nodes[*node];
                    left.retain(|&i| texts[i as usize].text.as_bytes().get(read.len()) == Some(&byte));
                    read.push(byte);
                    let found = left.iter().map(|&i| &texts[i as usize]);
                    if let Some(text) = found.into_iter().find(|text| text.text.len() == read.len()) {
                        self.pass(text, machine)?;
                    } else if left.is_empty() {
                        let Some(free) = free else { return Err(self.wrong(texts)) };
                        bytes.extend(read.iter().rev());
                        let node = *node;
                        self.take_role(free.role);
                        self.state = free_text(node, free);
                    }
                }
                State::Free { node, marks } => {
                    let Some(free) = &machine.nodes[*node].free else { continue };
                    if let Some(found) = marks.push(byte, &mut self.text) {
                        self.pass(&free.marks[found], machine)?;
                    }
                }
                State::Json { to, scan } => {
                    let ended = scan.push(byte);
                    if ended != Ended::Before {
                        self.text.push(byte);
                    }
                    if ended != Ended::No {
                        let to = *to;
                        self.end_call()?;
                        self.enter(to, machine)?;
                    }
                    if ended == Ended::Before {
                        bytes.push(byte);
                    }
                }
                State::Xml { to, scan } => {
                    let ends = &machine.nodes[*to].texts;
                    match scan.push(byte)? {
                        Read::Nothing => {}
                        Read::Json(json) => self.text.extend_from_slice(json.as_bytes()),
                        Read::End(json, end) => {
                            self.text.extend_from_slice(json.as_bytes());
                            self.end_call()?;
                            self.pass(&ends[end], machine)?;
                        }
                    }
                }
                State::Input { .. } => self.text.push(byte),
                State::Ended => return Err(self.wrong(&[])),
            }
        }
        Ok(())
    }

    /// Continues after a text.
    fn pass(&mut self, text: &Text, machine: &Machine) -> Result<()> {
        if let Some(tool) = text.call {
            self.flush();
            let index = self.reply.calls.len();
            self.emit(ReplyEvent::CallBegins { index, name: self.tools[tool].name.clone() });
        }
        self.enter(text.to, machine)
    }

    /// Continues at a node.
    fn enter(&mut self, at: usize, machine: &Machine) -> Result<()> {
        let node = &machine.nodes[at];
        if let Some(input) = &node.input {
            self.take_role(Role::Call(input.tool));
            self.state = State::Input { ends: input.ends.clone() };
            return Ok(());
        }
        self.state = match (&node.arguments, &node.free) {
            (Some(arguments), _) => {
                self.take_role(Role::Call(arguments.tool));
                let to = arguments.to;
                match marks_of(arguments.style) {
                    None => State::Json { to, scan: JsonScan::default() },
                    Some(marks) => {
                        let scan =
                            XmlScan::new(&self.tools[arguments.tool], marks, &machine.nodes[to].texts)?;
                        State::Xml { to, scan: Box::new(scan) }
                    }
                }
            }
            (None, Some(free)) if node.texts.is_empty() => {
                self.take_role(free.role);
                free_text(at, free)
            }
            _ => State::Texts { node: at, read: Vec::new(), left: (0..node.texts.len() as u32).collect() },
        };
        Ok(())
    }

    /// Whether the output may end here.
    fn end(&mut self) -> Result<bool> {
        let machine = Arc::clone(&self.machine);
        if let State::Input { ends } = &self.state {
            let found = ends.iter().filter(|end| self.text.ends_with(end.as_bytes()));
            let Some(end) = found.map(String::len).max() else { return Ok(false) };
            self.text.truncate(self.text.len() - end);
            self.state = State::Ended;
            self.end_call()?;
        }
        if let State::Texts { node, read, .. } = &self.state
            && !read.is_empty()
            && let Some(free) = &machine.nodes[*node].free
        {
            // The bytes read are only a prefix of a text.
            let (node, read) = (*node, read.clone());
            self.take_role(free.role);
            self.state = free_text(node, free);
            read.into_iter().try_for_each(|byte| self.step(byte, &machine))?;
        }
        Ok(match &self.state {
            State::Texts { node, read, .. } => {
                let Node { free, may_end, .. } = &machine.nodes[*node];
                read.is_empty() && (*may_end || free.as_ref().is_some_and(|free| free.may_end))
            }
            State::Free { node, .. } => machine.nodes[*node].free.as_ref().is_some_and(|free| free.may_end),
            State::Json { .. } | State::Xml { .. } | State::Input { .. } => false,
            State::Ended => true,
        })
    }

    fn end_call(&mut self) -> Result<()> {
        if self.is_read_whole() {
            let arguments = std::mem::take(&mut self.text);
            self.text = ToolInput::of_arguments(&String::from_utf8_lossy(&arguments))?.into_bytes();
        }
        self.pass_on(0);
        if let Some(index) = self.reply.calls.len().checked_sub(1) {
            self.emit(ReplyEvent::CallEnds { index });
        }
        Ok(())
    }

    /// Whether the reader is in JSON or XML with the input of a custom tool, which is passed on as
    /// a whole.
    fn is_read_whole(&self) -> bool {
        let Role::Call(tool) = self.role else { return false };
        matches!(self.state, State::Json { .. } | State::Xml { .. })
            && matches!(self.tools[tool].input, Some(ToolInput::Text))
    }

    fn take_role(&mut self, role: Role) {
        self.flush();
        self.role = role;
    }

    /// Passes on the bytes that are certainly text.
    fn flush(&mut self) {
        let held = match &self.state {
            State::Input { ends } => ends.iter().map(String::len).max().unwrap_or(0),
            _ if self.is_read_whole() => self.text.len(),
            _ => 0,
        };
        self.pass_on(held);
    }

    /// Passes text on, except at least `held` of its last bytes.
    fn pass_on(&mut self, held: usize) {
        let mut end = self.text.len().saturating_sub(held);
        while end > 0 && end < self.text.len() && self.text[end] & 0xC0 == 0x80 {
            end -= 1;
        }
        if end == 0 {
            return;
        }
        // Only whole characters are read, and marks are whole characters too.
        let rest = self.text.split_off(end);
        let delta = String::from_utf8_lossy(&std::mem::replace(&mut self.text, rest)).into_owned();
        self.emit(match self.role {
            Role::Content => ReplyEvent::Text(delta),
            Role::Reasoning => ReplyEvent::Reasoning(delta),
            Role::Call(_) => {
                let index = self.reply.calls.len().saturating_sub(1);
                ReplyEvent::Arguments { index, delta }
            }
        });
    }

    fn emit(&mut self, event: ReplyEvent) {
        self.reply.add(&event);
        self.events.push(event);
    }

    fn wrong(&self, wanted: &[Text]) -> Error {
        let wanted: Vec<String> = wanted.iter().take(3).map(|text| format!("{:?}", text.text)).collect();
        let or = if wanted.is_empty() { "its end".to_owned() } else { wanted.join(" or ") };
        Error::output(format!("the output does not have its format at byte {}: it wants {or}", self.at))
    }
}

/// Free text of a node, up to the first of its marks.
fn free_text(node: usize, free: &Free) -> State {
    let marks = free.marks.iter().map(|mark| mark.text.as_bytes());
    State::Free { node, marks: TextMatcher::new(marks) }
}
