//! Reads answers as they come.

use std::sync::Arc;

use super::json::{Ended, JsonScan};
use super::lower::Role;
use super::machine::{Machine, Node, Text};
use super::reply::{Reply, ReplyEvent};
use super::scan::Scan;
use super::xml::{Read, XmlScan};
use super::{Tool, Tools};
use crate::constraint::structural_tag::marks_of;
use crate::error::{Error, Result};

/// Reads one answer of a model that has [tools](Tools), in pieces that may be cut anywhere.
///
/// All deltas of a kind together are what the whole [reply](Self::reply) holds, however the output is cut. Arguments are passed
/// on as they come where they are JSON, and at the end of each where they are XML.
///
/// ```
/// use burn_dfa::constraint::{ReplyEvent, Tool, ToolFormat, Tools};
///
/// let tools = Tools::new([Tool::new("now")])?.with_format(ToolFormat::Hermes);
/// let mut reader = tools.reader()?;
/// let mut text = String::new();
/// for piece in ["It is <", "tool_call>\n{\"name\": \"no", "w\", \"arguments\": {}}\n</tool_call>"] {
///     for event in reader.push(piece.as_bytes())? {
///         if let ReplyEvent::Text(delta) = event {
///             text.push_str(&delta);
///         }
///     }
/// }
/// reader.finish()?;
/// assert_eq!(text, "It is ");
/// assert_eq!(reader.reply().calls[0].name, "now");
/// # Ok::<(), burn_dfa::Error>(())
/// ```
#[derive(Debug)]
pub struct ToolReader {
    machine: Arc<Machine>,
    tools: Vec<Tool>,
    state: State,
    /// The last bytes, of a character that is not complete.
    cut: Vec<u8>,
    /// How many bytes were read.
    at: usize,
    /// Text that was not passed on yet, and its role.
    text: Vec<u8>,
    role: Role,
    events: Vec<ReplyEvent>,
    reply: Reply,
    error: Option<Error>,
}

#[derive(Debug)]
enum State {
    /// One of some texts of a node comes: what was read of it, and which are left.
    Texts {
        node: usize,
        read: Vec<u8>,
        left: Vec<u32>,
    },
    Free {
        node: usize,
        scan: Scan,
    },
    Json {
        to: usize,
        scan: JsonScan,
    },
    Xml {
        to: usize,
        scan: Box<XmlScan>,
    },
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

    /// Reads more of the output, and returns what is new.
    ///
    /// # Errors
    /// [`Error::is_output`]: the output does not have the format, with the byte where that shows. What was read before is in the
    /// [reply](Self::reply), and nothing more is read.
    pub fn push(&mut self, piece: &[u8]) -> Result<Vec<ReplyEvent>> {
        self.error.clone().map_or(Ok(()), Err)?;
        let machine = Arc::clone(&self.machine);
        let read = self.characters(piece, &machine);
        self.flush();
        let events = std::mem::take(&mut self.events);
        self.error = read.err();
        self.error.clone().map_or(Ok(events), Err)
    }

    /// Ends an output that is complete, and returns what was held back.
    ///
    /// # Errors
    /// [`Error::is_output`]: the output is not complete, or had another error before.
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

    /// Ends an output that may have been cut off, and returns what was held back.
    pub fn cut_off(&mut self) -> Vec<ReplyEvent> {
        if let State::Free { scan, .. } = &mut self.state {
            scan.finish(&mut self.text);
        }
        self.flush();
        std::mem::take(&mut self.events)
    }

    /// What was read so far.
    pub fn reply(&self) -> &Reply {
        &self.reply
    }

    /// What was read.
    pub fn into_reply(self) -> Reply {
        self.reply
    }

    /// Reads whole characters, and keeps what is left.
    fn characters(&mut self, piece: &[u8], machine: &Machine) -> Result<()> {
        let mut bytes = std::mem::take(&mut self.cut);
        bytes.extend_from_slice(piece);
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
                        self.state = State::Free { node, scan: Scan::default() };
                    }
                }
                State::Free { node, scan } => {
                    let Some(free) = &machine.nodes[*node].free else { continue };
                    if let Some(found) = scan.push(byte, &free.marks, &mut self.text) {
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
                        self.end_call();
                        self.enter(to, machine)?;
                    }
                    if ended == Ended::Before {
                        bytes.push(byte);
                    }
                }
                State::Xml { to, scan } => {
                    let ends = &machine.nodes[*to].texts;
                    match scan.push(byte, ends)? {
                        Read::Nothing => {}
                        Read::Json(json) => self.text.extend_from_slice(json.as_bytes()),
                        Read::End(json, end) => {
                            self.text.extend_from_slice(json.as_bytes());
                            self.end_call();
                            self.pass(&ends[end], machine)?;
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Goes on behind a text.
    fn pass(&mut self, text: &Text, machine: &Machine) -> Result<()> {
        if let Some(tool) = text.call {
            self.flush();
            let index = self.reply.calls.len();
            self.emit(ReplyEvent::CallBegins { index, name: self.tools[tool].name.clone() });
        }
        self.enter(text.to, machine)
    }

    /// Goes on in a node.
    fn enter(&mut self, at: usize, machine: &Machine) -> Result<()> {
        let node = &machine.nodes[at];
        self.state = match (&node.arguments, &node.free) {
            (Some(arguments), _) => {
                self.take_role(Role::Call(arguments.tool));
                let to = arguments.to;
                match marks_of(arguments.style) {
                    None => State::Json { to, scan: JsonScan::default() },
                    Some(marks) => {
                        let scan = XmlScan::new(&self.tools[arguments.tool], marks)?;
                        State::Xml { to, scan: Box::new(scan) }
                    }
                }
            }
            (None, Some(free)) if node.texts.is_empty() => {
                self.take_role(free.role);
                State::Free { node: at, scan: Scan::default() }
            }
            _ => State::Texts { node: at, read: Vec::new(), left: (0..node.texts.len() as u32).collect() },
        };
        Ok(())
    }

    /// Whether the output may end here.
    fn end(&mut self) -> Result<bool> {
        let machine = Arc::clone(&self.machine);
        if let State::Texts { node, read, .. } = &self.state
            && !read.is_empty()
            && let Some(free) = &machine.nodes[*node].free
        {
            // What was read is how a text begins, and no more.
            let (node, read) = (*node, read.clone());
            self.take_role(free.role);
            self.state = State::Free { node, scan: Scan::default() };
            read.into_iter().try_for_each(|byte| self.step(byte, &machine))?;
        }
        Ok(match &self.state {
            State::Texts { node, read, .. } => {
                let Node { free, may_end, .. } = &machine.nodes[*node];
                read.is_empty() && (*may_end || free.as_ref().is_some_and(|free| free.may_end))
            }
            State::Free { node, .. } => machine.nodes[*node].free.as_ref().is_some_and(|free| free.may_end),
            State::Json { .. } | State::Xml { .. } => false,
        })
    }

    fn end_call(&mut self) {
        self.flush();
        if let Some(index) = self.reply.calls.len().checked_sub(1) {
            self.emit(ReplyEvent::CallEnds { index });
        }
    }

    fn take_role(&mut self, role: Role) {
        self.flush();
        self.role = role;
    }

    /// Passes text on.
    fn flush(&mut self) {
        if self.text.is_empty() {
            return;
        }
        // Only whole characters are read, and marks are whole characters too.
        let delta = String::from_utf8_lossy(&std::mem::take(&mut self.text)).into_owned();
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
