//! The tokens of every class of a table, for those who look up classes and need their tokens.

use std::sync::{Arc, OnceLock};

use super::{TableParts, TokenReading, TokenTable};
use crate::vocabulary::ClassTokens;

/// The classes of walked text, which has none of its own: those of the reserved columns, text; then those of special tokens.
const FIRST_SPECIAL: u32 = TokenTable::RESERVED_COLUMNS as u32 + 1;

/// The tokens of every class, once they were asked for.
#[derive(Default)]
pub(crate) struct MadeClassTokens(OnceLock<Arc<ClassTokens>>);

impl From<ClassTokens> for MadeClassTokens {
    fn from(tokens: ClassTokens) -> Self {
        Self(OnceLock::from(Arc::new(tokens)))
    }
}

impl Clone for MadeClassTokens {
    /// They are made anew.
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl PartialEq for MadeClassTokens {
    /// They follow from the table.
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for MadeClassTokens {}

impl TableParts {
    /// The tokens of every class. Made once.
    pub(crate) fn class_tokens(&self) -> &ClassTokens {
        self.class_tokens.0.get_or_init(|| self.make_class_tokens())
    }

    fn make_class_tokens(&self) -> Arc<ClassTokens> {
        match &self.reading {
            TokenReading::Classes(class) => ClassTokens::by_class(class, self.columns).into(),
            TokenReading::Bytes { vocabulary, special, .. } if special.tokens().is_empty() => {
                Arc::clone(vocabulary.class_tokens())
            }
            TokenReading::Bytes { vocabulary, special, .. } => {
                let mut class = vocabulary.class_tokens().classes();
                for &(token, number) in special.tokens() {
                    class[token.index()] = FIRST_SPECIAL + number;
                }
                ClassTokens::by_class(&class, FIRST_SPECIAL as usize + special.columns()).into()
            }
        }
    }
}
