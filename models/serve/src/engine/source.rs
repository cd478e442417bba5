//! What a constraint is known by: the text in a request that it is made from.

use burn_dfa::Constraint;
use burn_dfa::constraint::Tools;
use sha2::{Digest, Sha256};

/// The origin of a constraint.
#[derive(Clone, Debug)]
pub enum Source {
    /// A request of [`Constraint::from_request_str`]: an object with `response_format` or `structured_outputs`, as text, so that
    /// numbers keep their digits.
    Request(String),
    /// Tools that may be called, with the text of what the request says of them.
    Tools(Box<Tools>, String),
    /// A request behind free text that ends with this mark.
    After(&'static str, String),
}

/// What tells sources apart.
pub(super) type Key = [u8; 32];

impl Source {
    /// Bytes of the text.
    pub fn len(&self) -> usize {
        self.text().len()
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
        };
        Sha256::new().chain_update([kind]).chain_update(self.text()).finalize().into()
    }

    /// The constraint; `None` for plain text.
    pub(super) fn constraint(&self) -> burn_dfa::Result<Option<Constraint>> {
        match self {
            Self::Request(text) => Constraint::from_request_str(text),
            Self::Tools(tools, _) => tools.to_constraint().map(Some),
            Self::After(mark, text) => {
                Ok(Constraint::from_request_str(text)?.map(|constraint| Constraint::after(*mark, constraint)))
            }
        }
    }

    fn text(&self) -> &str {
        match self {
            Self::Request(text) | Self::Tools(_, text) | Self::After(_, text) => text,
        }
    }
}
