//! The answer of a model.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use burn_dfa_common::{Error, Result};

/// A part of an answer, as it is read.
///
/// ```
/// use burn_dfa_tokens::constraint::{ReplyEvent, Tool, ToolFormat, Tools};
///
/// let tools = Tools::new([Tool::new("now")])?.with_format(ToolFormat::Hermes);
/// let mut reader = tools.reader()?;
/// let events =
///     reader.push("One moment. <tool_call>\n{\"name\": \"now\", \"arguments\": {".as_bytes())?;
/// assert_eq!(events, [
///     ReplyEvent::Text("One moment. ".into()),
///     ReplyEvent::CallBegins { index: 0, name: "now".into() },
///     ReplyEvent::Arguments { index: 0, delta: "{".into() },
/// ]);
/// # Ok::<(), burn_dfa_tokens::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReplyEvent {
    /// More text.
    Text(String),
    /// More reasoning.
    Reasoning(String),
    /// A tool is called.
    CallBegins {
        /// The index of the call in the answer, from 0.
        index: usize,
        /// The name of the tool.
        name: String,
    },
    /// More of the arguments of a call, as JSON text.
    Arguments {
        /// The index of the call.
        index: usize,
        /// The text.
        delta: String,
    },
    /// The arguments of a call are complete.
    CallEnds {
        /// The index of the call.
        index: usize,
    },
}

/// An answer: all of its [events](ReplyEvent) together.
///
/// ```
/// use burn_dfa_tokens::constraint::{Tool, Tools};
/// use serde_json::json;
///
/// let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}});
/// let tools = Tools::new([Tool::new("weather").with_parameters(schema)])?;
/// let reply = tools.read(r#"Let me see: {"name": "weather", "arguments": {"city": "Bern"}}"#)?;
/// assert_eq!(reply.content, "Let me see: ");
/// assert_eq!(reply.calls[0].value()?, json!({"city": "Bern"}));
/// # Ok::<(), burn_dfa_tokens::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Reply {
    /// The text outside of calls and reasoning.
    pub content: String,
    /// The reasoning.
    pub reasoning: String,
    /// The calls, in their order.
    pub calls: Vec<Call>,
}

impl Reply {
    /// Adds an event.
    pub fn add(&mut self, event: &ReplyEvent) {
        match event {
            ReplyEvent::Text(delta) => self.content.push_str(delta),
            ReplyEvent::Reasoning(delta) => self.reasoning.push_str(delta),
            ReplyEvent::CallBegins { name, .. } => {
                self.calls.push(Call { name: name.clone(), arguments: String::new() });
            }
            ReplyEvent::Arguments { index, delta } => {
                if let Some(call) = self.calls.get_mut(*index) {
                    call.arguments.push_str(delta);
                }
            }
            ReplyEvent::CallEnds { .. } => {}
        }
    }
}

/// A call of a tool.
///
/// ```
/// use burn_dfa_tokens::constraint::{Tool, Tools};
/// use serde_json::json;
///
/// #[derive(serde::Deserialize)]
/// struct Weather {
///     city: String,
/// }
///
/// let schema =
///     json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
/// let tools = Tools::new([Tool::new("weather").with_parameters(schema)])?;
/// let reply = tools.read(r#"{"name": "weather", "arguments": {"city": "Bern"}}"#)?;
/// let weather: Weather = reply.calls[0].parse()?;
/// assert_eq!(weather.city, "Bern");
/// # Ok::<(), burn_dfa_tokens::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Call {
    /// The name of the tool.
    pub name: String,
    /// The arguments, as JSON text.
    pub arguments: String,
}

impl Call {
    /// The arguments as a value.
    ///
    /// # Errors
    /// [`ErrorKind::Output`](crate::ErrorKind::Output): the arguments are not JSON, for example
    /// because the output was cut off, or nested more than 128 deep.
    pub fn value(&self) -> Result<Value> {
        self.parse()
    }

    /// The arguments as a type.
    ///
    /// # Errors
    /// [`ErrorKind::Output`](crate::ErrorKind::Output): the type does not read them.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T> {
        serde_json::from_str(&self.arguments)
            .map_err(|error| Error::output(format!("the arguments of the call of {:?}: {error}", self.name)))
    }
}

/// The role of a part of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// The answer.
    Content,
    Reasoning,
    /// The arguments of a call of the tool with this number.
    Call(usize),
}
