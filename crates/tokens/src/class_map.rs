//! The class of each token of a token-level constraint.

use burn_dfa_vocabulary::{ClassTokens, TokenId};

/// `[vocabulary]`: the class of each token, in the smallest integer type that holds the greatest
/// class. Most constraints have at most 256 classes, and a vocabulary has up to a quarter of a
/// million tokens.
#[derive(Clone, Debug)]
pub enum ClassMap {
    Bytes(Vec<u8>),
    Halves(Vec<u16>),
    Words(Vec<u32>),
}

impl ClassMap {
    /// Number of tokens.
    pub fn len(&self) -> usize {
        match self {
            Self::Bytes(class) => class.len(),
            Self::Halves(class) => class.len(),
            Self::Words(class) => class.len(),
        }
    }

    /// The class of a token; `None` if the token does not exist.
    #[inline]
    pub fn of(&self, token: TokenId) -> Option<u32> {
        let at = token.index();
        match self {
            Self::Bytes(class) => class.get(at).map(|&class| class.into()),
            Self::Halves(class) => class.get(at).map(|&class| class.into()),
            Self::Words(class) => class.get(at).copied(),
        }
    }

    /// The classes of all tokens.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.len() as u32).filter_map(|token| self.of(TokenId(token)))
    }

    /// Puts tokens into a class.
    ///
    /// # Panics
    /// If a token does not exist.
    pub(super) fn put(&mut self, tokens: &[TokenId], class: u32) {
        if !tokens.is_empty() {
            self.widen(class);
        }
        let indices = tokens.iter().map(|token| token.index());
        match self {
            Self::Bytes(classes) => indices.for_each(|at| classes[at] = class as u8),
            Self::Halves(classes) => indices.for_each(|at| classes[at] = class as u16),
            Self::Words(classes) => indices.for_each(|at| classes[at] = class),
        }
    }

    /// Widens the entries if needed to hold a class.
    fn widen(&mut self, class: u32) {
        let fits = match self {
            Self::Bytes(_) => class <= u8::MAX.into(),
            Self::Halves(_) => class <= u16::MAX.into(),
            Self::Words(_) => true,
        };
        if !fits {
            *self = match class <= u16::MAX.into() {
                true => Self::Halves(self.iter().map(|class| class as u16).collect()),
                false => Self::Words(self.iter().collect()),
            };
        }
    }

    /// The tokens of each of `classes` classes.
    pub(super) fn tokens(&self, classes: usize) -> ClassTokens {
        match self {
            Self::Bytes(class) => ClassTokens::by_class(class, classes),
            Self::Halves(class) => ClassTokens::by_class(class, classes),
            Self::Words(class) => ClassTokens::by_class(class, classes),
        }
    }
}

impl From<Vec<u32>> for ClassMap {
    fn from(class: Vec<u32>) -> Self {
        match class.iter().fold(0, |greatest, &class| greatest.max(class)) {
            0..=0xff => Self::Bytes(class.into_iter().map(|class| class as u8).collect()),
            0x100..=0xffff => Self::Halves(class.into_iter().map(|class| class as u16).collect()),
            _ => Self::Words(class),
        }
    }
}

impl PartialEq for ClassMap {
    /// Whether the classes are equal, regardless of the integer type.
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl Eq for ClassMap {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_take_as_few_bytes_as_the_greatest_does() {
        let form = |classes: &ClassMap| match classes {
            ClassMap::Bytes(_) => 1,
            ClassMap::Halves(_) => 2,
            ClassMap::Words(_) => 4,
        };
        let mut expected = vec![2, 0, 1, 2, 2];
        let mut classes = ClassMap::from(expected.clone());
        assert_eq!(form(&classes), 1);
        for (class, bytes) in [(255, 1), (256, 2), (7, 2), (65_535, 2), (65_536, 4), (3, 4)] {
            classes.put(&[TokenId(1), TokenId(4)], class);
            (expected[1], expected[4]) = (class, class);
            assert_eq!(form(&classes), bytes);
            assert!(classes.iter().eq(expected.iter().copied()) && classes.len() == 5);
            assert_eq!([0, 1, 5].map(|token| classes.of(TokenId(token))), [Some(2), Some(class), None]);
            assert_eq!(classes, ClassMap::from(expected.clone()));
            let tokens = classes.tokens(class as usize + 1);
            assert_eq!(tokens.of(class as usize), [1, 4]);
        }
    }
}
