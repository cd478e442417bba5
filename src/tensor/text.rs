//! How the tokens of walked tables are read: as strings of [symbols](crate::table::symbols). Tables that read the same
//! tokens as themselves share one text.

use super::Sizes;
use crate::table::symbols::symbols_of;
use crate::table::{TokenReading, TokenTable};
use crate::vocabulary::{TokenId, Vocabulary};

/// In the place of a text's number: the tokens of this table are read by class.
pub(crate) const BY_CLASS: i32 = -1;

/// In the place of the state that a class of tokens leads to: the token is followed byte by byte.
pub(crate) const FOLLOWED: i32 = -1;

/// A way of reading the tokens of a vocabulary.
pub(super) struct Text<'a> {
    vocabulary: &'a Vocabulary,
    /// A token that is read as itself, and the number of its symbol.
    own: &'a [(TokenId, u32)],
    count: usize,
}

/// The texts of `tables`, each once.
pub(super) fn texts<'a>(tables: &[&'a TokenTable]) -> Vec<Text<'a>> {
    let mut texts: Vec<Text> = Vec::new();
    for table in tables {
        if let TokenReading::Bytes { vocabulary, special, .. } = &table.parts().reading
            && !texts.iter().any(|text| text.reads(table))
        {
            texts.push(Text { vocabulary, own: special.tokens(), count: special.columns() });
        }
    }
    texts
}

/// The number of the text of `table` among `texts`.
pub(super) fn text_of(texts: &[Text], table: &TokenTable) -> i32 {
    texts.iter().position(|text| text.reads(table)).map_or(BY_CLASS, |at| at as i32)
}

impl<'a> Text<'a> {
    /// The text of tables that read no token as itself.
    pub(super) fn of(vocabulary: &'a Vocabulary) -> Self {
        Self { vocabulary, own: &[], count: 0 }
    }

    fn reads(&self, table: &TokenTable) -> bool {
        matches!(&table.parts().reading, TokenReading::Bytes { special, .. } if special.tokens() == self.own)
    }

    /// The number of symbols of tokens that are read as themselves.
    pub(super) fn own_symbols(&self) -> usize {
        self.count
    }

    /// Room for the symbols of `width` tokens, whichever of them are read as themselves.
    pub(super) fn symbols(&self, width: usize) -> usize {
        // Those of text, and one for every other id.
        let (tokens, bytes) = self.vocabulary.text_bytes();
        bytes + width - tokens
    }

    /// Calls `found` with the symbols of every token up to `width`, in order.
    fn each_token(&self, width: usize, mut found: impl FnMut(&mut dyn Iterator<Item = i32>)) {
        for token in (0..width as u32).map(TokenId) {
            found(&mut symbols_of(self.vocabulary, self.own, token).map(|symbol| symbol as i32));
        }
    }
}

/// The symbols of all tokens of all `texts`, one after the other.
pub(super) fn symbols(sizes: &Sizes, texts: &[Text], out: &mut Vec<i32>) {
    texts.iter().for_each(|text| text.each_token(sizes.width, |symbols| out.extend(symbols)));
}

/// Where the symbols of every token begin and end, `width + 1` numbers for each text.
pub(super) fn offsets(sizes: &Sizes, texts: &[Text], out: &mut Vec<i32>) {
    let mut at = 0;
    for text in texts {
        out.push(at);
        text.each_token(sizes.width, |symbols| {
            at += symbols.count() as i32;
            out.push(at);
        });
    }
}

/// The most symbols of a token.
pub(super) fn longest(sizes: &Sizes, texts: &[Text]) -> usize {
    let mut longest = 0;
    texts
        .iter()
        .for_each(|text| text.each_token(sizes.width, |symbols| longest = longest.max(symbols.count())));
    longest
}
