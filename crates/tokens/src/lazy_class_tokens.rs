//! The tokens of every class, for callers that look up classes and need their tokens.

use std::sync::{Arc, OnceLock};

use super::{CompiledConstraint, ConstraintParts, TokenReading};
use burn_dfa_vocabulary::{ClassTokens, TokenBits};

/// The first class of special tokens in a byte-level constraint, after the classes of the reserved
/// columns and of text.
const FIRST_SPECIAL: u32 = CompiledConstraint::RESERVED_COLUMNS as u32 + 1;

/// The tokens of the classes.
#[derive(Default)]
pub(crate) struct LazyClassTokens {
    /// The tokens of some classes, as compilation produced them; the lists of the other classes are
    /// empty. Most tokens of a small constraint are in none of the listed classes.
    known: Option<ClassTokens>,
    /// The tokens of all classes, computed on the first request for another class.
    all: OnceLock<Arc<ClassTokens>>,
}

impl From<ClassTokens> for LazyClassTokens {
    fn from(known: ClassTokens) -> Self {
        Self { known: Some(known), all: OnceLock::new() }
    }
}

impl Clone for LazyClassTokens {
    /// The clone recomputes its lists.
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl PartialEq for LazyClassTokens {
    /// The lists follow from the compiled constraint.
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for LazyClassTokens {}

impl ConstraintParts {
    /// The tokens of a class.
    pub(crate) fn tokens_of(&self, class: usize) -> &[u32] {
        self.listing(class).of(class)
    }

    /// Sets the bits of the tokens of a class.
    #[inline(always)]
    pub(crate) fn add_tokens_of(&self, class: usize, bits: &mut TokenBits) {
        self.listing(class).add(class, bits);
    }

    /// The lists with a given class.
    fn listing(&self, class: usize) -> &ClassTokens {
        let LazyClassTokens { known, all } = &self.class_tokens;
        let known = known.as_ref().filter(|known| !known.of(class).is_empty());
        known.unwrap_or_else(|| all.get_or_init(|| self.find_class_tokens()))
    }

    fn find_class_tokens(&self) -> Arc<ClassTokens> {
        match &self.reading {
            TokenReading::Classes(class) => class.tokens(self.columns()).into(),
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
