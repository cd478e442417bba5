//! The identity of a constraint: the text of a request that it is made from.

use burn_dfa::constraint::{Expression, Grammar, Tools, Unenforceable, Whitespace};
use burn_dfa::{Constraint, Limits};
use burn_dfa_engine::Key;
use sha2::{Digest, Sha256};

use super::left_out::{self, LeftOut};
use super::refusal::Refusal;
use super::style::JsonStyle;

/// The origin of a constraint.
#[derive(Clone, Debug)]
pub enum Source {
    /// A request.
    Request(ConstraintText),
    /// Callable tools, with the text of their definitions in the request.
    Tools(Box<Tools>, String),
    /// A call of one of some tools, or else a text of a request.
    Either {
        /// The tools; one of them must be called.
        calls: Box<Tools>,
        /// The text of their definitions in the request.
        said: String,
        /// The constraint of the text.
        content: ConstraintText,
        /// Whether a text may replace the call.
        may_be_content: bool,
    },
    /// A constraint after free text that ends with this mark.
    After(String, ConstraintText),
}

/// The constraint of a request.
#[derive(Clone, Debug)]
pub struct ConstraintText {
    /// A request of [`Constraint::from_request_str_with`]: an object with `response_format` or
    /// `structured_outputs`, as text, so that numbers keep their digits. The named classes of its
    /// regexes are ASCII classes, as in other servers.
    pub text: String,
    /// Whether an unenforceable part of its schema is refused.
    pub strict: bool,
}

impl ConstraintText {
    /// The text with compact JSON, unless the request sets the style.
    fn compact(&self) -> String {
        const OUTPUTS: &str = "{\"structured_outputs\":{";
        const COMPACT: &str = "disable_any_whitespace";
        match self.text.strip_prefix(OUTPUTS) {
            Some(rest) if !rest.contains(COMPACT) => format!("{OUTPUTS}\"{COMPACT}\":true,{rest}"),
            _ => self.text.clone(),
        }
    }
}

impl Source {
    /// Bytes of the text.
    pub fn len(&self) -> usize {
        let (text, more, _) = self.texts();
        text.len() + more.len()
    }

    /// Whether the text is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn key(&self) -> Key {
        let kind = match self {
            Self::Request(_) => b'r',
            Self::Tools(..) => b't',
            Self::After(..) => b'a',
            Self::Either { may_be_content: true, .. } => b'e',
            Self::Either { .. } => b'c',
        };
        let (text, more, strict) = self.texts();
        let length = (text.len() as u64).to_le_bytes();
        Sha256::new()
            .chain_update([kind, strict.into()])
            .chain_update(length)
            .chain_update(text)
            .chain_update(more)
            .finalize()
            .into()
    }

    /// The constraint; `None` for plain text.
    pub(super) fn constraint(
        &self,
        style: &JsonStyle,
        unenforceable: Unenforceable,
        limits: &Limits,
    ) -> Result<Option<Constraint>, Refusal> {
        let of_request =
            |request: &ConstraintText| style.read(&request.text, unenforceable).map_err(Refusal::library);
        match self {
            Self::Request(request) => of_request(request),
            Self::Tools(tools, _) => style.of_tools(tools, unenforceable).map(Some).map_err(Refusal::library),
            Self::Either { calls, content, may_be_content, .. } => {
                // The content is read even if a call is required, so that an invalid constraint is
                // refused.
                let read = of_request(content)?;
                let of_calls = style.of_tools(calls, unenforceable).map_err(Refusal::library)?;
                let Some(read) = read.filter(|_| *may_be_content) else { return Ok(Some(of_calls)) };
                let text = apart(read, style, content, unenforceable, calls, limits)?;
                either([of_calls, text]).map(Some).map_err(Refusal::library)
            }
            Self::After(mark, request) => {
                Ok(of_request(request)?.map(|constraint| Constraint::after(mark.as_str(), constraint)))
            }
        }
    }

    /// The unenforceable keywords, if they are left out.
    ///
    /// # Errors
    /// The time of `limits` has run out.
    pub(super) fn left_out(&self, style: &JsonStyle, limits: &Limits) -> burn_dfa::Result<Vec<LeftOut>> {
        let of_request = |request: &ConstraintText| {
            left_out::of(None, limits, style.read(&request.text, Unenforceable::Ignore))
        };
        let of_tools = |tools: &Tools| left_out::of_tools(tools, style, limits);
        match self {
            Self::Request(request) | Self::After(_, request) => of_request(request),
            Self::Tools(tools, _) => of_tools(tools),
            Self::Either { calls, content, may_be_content, .. } => {
                let mut all = of_tools(calls)?;
                if *may_be_content {
                    all.extend(of_request(content)?);
                }
                Ok(all)
            }
        }
    }

    /// Whether an unenforceable keyword is refused.
    pub(super) fn is_strict(&self, left_out: &LeftOut) -> bool {
        match (self, left_out.tool) {
            (Self::Tools(tools, _) | Self::Either { calls: tools, .. }, Some(number)) => {
                tools.tools().get(number).is_some_and(|tool| tool.strict == Some(true))
            }
            (
                Self::Request(request) | Self::After(_, request) | Self::Either { content: request, .. },
                None,
            ) => request.strict,
            _ => false,
        }
    }

    /// The tool whose parameters an error refers to, and the JSON pointer into its parameters.
    pub(super) fn locate<'p>(&self, pointer: &'p str) -> Option<(usize, &'p str)> {
        match self {
            Self::Tools(tools, _) | Self::Either { calls: tools, .. } => tools.locate(pointer),
            Self::Request(_) | Self::After(..) => None,
        }
    }

    fn texts(&self) -> (&str, &str, bool) {
        match self {
            Self::Request(ConstraintText { text, strict }) => (text, "", *strict),
            Self::Tools(_, text) => (text, "", false),
            Self::After(mark, ConstraintText { text, strict }) => (mark, text, *strict),
            Self::Either { said, content: ConstraintText { text, strict }, .. } => (said, text, *strict),
        }
    }
}

/// A text of either constraint.
fn either(constraints: [Constraint; 2]) -> burn_dfa::Result<Constraint> {
    let mut builder = Grammar::builder();
    builder.define("answer", Expression::choice(constraints.map(Expression::constraint)))?;
    Ok(Constraint::from_grammar(builder.finish("answer")?))
}

/// JSON that does not begin like a call. Calls in JSON have a space after a colon: if a text could
/// begin like a call, it is compact.
fn apart(
    read: Constraint,
    style: &JsonStyle,
    content: &ConstraintText,
    unenforceable: Unenforceable,
    calls: &Tools,
    limits: &Limits,
) -> Result<Constraint, Refusal> {
    // Other marks do not begin JSON.
    let is_json = |mark: &String| mark.starts_with('{') || mark.starts_with("[{");
    let marks: Vec<String> = calls.beginnings().unwrap_or_default().into_iter().filter(is_json).collect();
    let may_be_call = |constraint: &Constraint| match marks.is_empty() {
        true => Ok(false),
        false => begins(constraint, &marks, limits).map_err(Refusal::library),
    };
    if !may_be_call(&read)? {
        return Ok(read);
    }
    let compact = style.clone().with_whitespace(Whitespace::Compact);
    match compact.read(&content.compact(), unenforceable).map_err(Refusal::library)? {
        Some(read) if !may_be_call(&read)? => Ok(read),
        _ => Err(Refusal::Refused(
            "its texts may begin as the calls of `tools` do, which nothing would tell apart: leave `whitespace_pattern` or `disable_any_whitespace` out, or start the server with another --tool-format"
                .into(),
        )),
    }
}

/// Whether a text of a constraint may begin with one of the marks.
fn begins(constraint: &Constraint, marks: &[String], limits: &Limits) -> burn_dfa::Result<bool> {
    let Some(automaton) = constraint.to_automaton(limits)? else { return Ok(true) };
    Ok(marks.iter().any(|mark| {
        let mut at = automaton.start();
        mark.bytes().all(|byte| {
            at = automaton.next(&at, byte);
            !at.is_dead()
        })
    }))
}
