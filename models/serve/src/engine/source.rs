//! What a constraint is known by: the text in a request that it is made from.

use burn_dfa::Constraint;
use burn_dfa::constraint::{Expression, Grammar, RegexOptions, Tools};
use sha2::{Digest, Sha256};

/// The origin of a constraint.
#[derive(Clone, Debug)]
pub enum Source {
    /// A request of [`Constraint::from_request_str_with`]: an object with `response_format` or `structured_outputs`, as text, so
    /// that numbers keep their digits. The named classes of its regexes are those of ASCII, as other servers have them.
    Request(String),
    /// Tools that may be called, with the text of what the request says of them.
    Tools(Box<Tools>, String),
    /// A call of one of some tools, or else a text of a request.
    Either {
        /// The tools, of which one has to be called.
        calls: Box<Tools>,
        /// What the request says of them.
        said: String,
        /// The request of the text.
        content: String,
        /// Whether there may be a text instead of a call.
        may_be_content: bool,
    },
    /// A request behind free text that ends with this mark.
    After(&'static str, String),
}

/// What tells sources apart.
pub(super) type Key = [u8; 32];

impl Source {
    /// Bytes of the text.
    pub fn len(&self) -> usize {
        let (text, more) = self.texts();
        text.len() + more.len()
    }

    /// Whether there is no text.
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
        let (text, more) = self.texts();
        let length = (text.len() as u64).to_le_bytes();
        Sha256::new()
            .chain_update([kind])
            .chain_update(length)
            .chain_update(text)
            .chain_update(more)
            .finalize()
            .into()
    }

    /// The constraint; `None` for plain text.
    pub(super) fn constraint(&self) -> burn_dfa::Result<Option<Constraint>> {
        match self {
            Self::Request(text) => of_request(text),
            Self::Tools(tools, _) => tools.to_constraint().map(Some),
            Self::Either { calls, content, may_be_content, .. } => {
                // It is read though a call has to come: what is no constraint is refused.
                let (calls, content) = (calls.to_constraint()?, of_request(content)?);
                let Some(content) = content.filter(|_| *may_be_content) else { return Ok(Some(calls)) };
                let mut builder = Grammar::builder();
                builder.define("answer", Expression::choice([calls, content].map(Expression::constraint)))?;
                Ok(Some(Constraint::of_grammar(builder.finish("answer")?)))
            }
            Self::After(mark, text) => {
                Ok(of_request(text)?.map(|constraint| Constraint::after(*mark, constraint)))
            }
        }
    }

    fn texts(&self) -> (&str, &str) {
        match self {
            Self::Request(text) | Self::Tools(_, text) => (text, ""),
            Self::After(mark, text) => (mark, text),
            Self::Either { said, content, .. } => (said, content),
        }
    }
}

fn of_request(text: &str) -> burn_dfa::Result<Option<Constraint>> {
    Constraint::from_request_str_with(text, &RegexOptions::new().with_ascii_classes(true))
}
