//! The text of a vocabulary on the device: byte-level constraints read each token as a string of
//! [symbols](burn_dfa_tokens::symbols). Constraints with the same special tokens share one text.

use super::Sizes;
use crate::vocabulary::{TokenId, Vocabulary};
use burn_dfa_tokens::{CompiledConstraint, TokenReading, symbols::TokenSymbols};

/// Instead of a text number: the constraint reads tokens by class.
pub(crate) const BY_CLASS: i32 = -1;

/// The symbols of all tokens of a vocabulary.
pub(super) struct Text<'a> {
    vocabulary: &'a Vocabulary,
    /// The tokens with their own symbols, and the numbers of the symbols.
    own: &'a [(TokenId, u32)],
    count: usize,
}

/// The distinct texts of `constraints`.
pub(super) fn texts<'a>(constraints: &[&'a CompiledConstraint]) -> Vec<Text<'a>> {
    let mut texts: Vec<Text> = Vec::new();
    for constraint in constraints {
        if let TokenReading::Bytes { vocabulary, special, .. } = &constraint.parts().reading
            && !texts.iter().any(|text| text.reads(constraint))
        {
            texts.push(Text { vocabulary, own: special.tokens(), count: special.columns() });
        }
    }
    texts
}

/// The number of the text of `constraint` among `texts`.
pub(super) fn text_of(texts: &[Text], constraint: &CompiledConstraint) -> i32 {
    texts.iter().position(|text| text.reads(constraint)).map_or(BY_CLASS, |at| at as i32)
}

impl<'a> Text<'a> {
    /// The text of constraints without special tokens.
    pub(super) fn of(vocabulary: &'a Vocabulary) -> Self {
        Self { vocabulary, own: &[], count: 0 }
    }

    fn reads(&self, constraint: &CompiledConstraint) -> bool {
        matches!(&constraint.parts().reading, TokenReading::Bytes { special, .. } if special.tokens() == self.own)
    }

    /// The number of symbols of special tokens.
    pub(super) fn own_symbols(&self) -> usize {
        self.count
    }

    /// The maximum number of symbols of `vocab_size` tokens, for any set of special tokens.
    pub(super) fn symbols(&self, vocab_size: usize) -> usize {
        // The bytes of text tokens, and one symbol for every other id.
        let (tokens, bytes) = self.vocabulary.text_bytes();
        bytes + vocab_size - tokens
    }

    /// The symbols of each token.
    fn tokens(&self) -> TokenSymbols<'a> {
        TokenSymbols::new(self.vocabulary, self.own)
    }
}

/// The symbols of all tokens of all `texts`, one after the other.
pub(super) fn symbols(sizes: &Sizes, texts: &[Text], out: &mut Vec<i32>) {
    let symbols = texts.iter().flat_map(|text| text.tokens().all(sizes.vocab_size));
    out.extend(symbols.map(|symbol| symbol as i32));
}

/// The offsets of the symbols of every token, `vocab_size + 1` numbers for each text.
pub(super) fn offsets(sizes: &Sizes, texts: &[Text], out: &mut Vec<i32>) {
    let mut last = 0;
    for text in texts {
        for offset in text.tokens().offsets(sizes.vocab_size, last) {
            out.push(offset as i32);
            last = offset;
        }
    }
}

/// The maximum number of symbols of a token, without special tokens.
pub(super) fn longest(sizes: &Sizes, texts: &[Text]) -> usize {
    let text = texts.first().map(|text| Text::of(text.vocabulary));
    text.and_then(|text| text.tokens().lengths(sizes.vocab_size).max()).unwrap_or(0)
}
