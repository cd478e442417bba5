//! Locations in a structural tag.

use crate::json_pointer;
use burn_dfa_common::Error;

/// A location in a structural tag: a linked list of names and indices, from the innermost out.
#[derive(Clone, Copy)]
pub(super) struct Location<'a> {
    outer: Option<&'a Location<'a>>,
    token: Token<'a>,
    depth: usize,
}

#[derive(Clone, Copy)]
enum Token<'a> {
    Name(&'a str),
    Index(usize),
}

impl<'a> Location<'a> {
    pub(super) const ROOT: Location<'static> = Location { outer: None, token: Token::Name(""), depth: 0 };

    /// The member of a name.
    pub(super) fn name(&'a self, name: &'a str) -> Self {
        Self { outer: Some(self), token: Token::Name(name), depth: self.depth + 1 }
    }

    /// The item of an index.
    pub(super) fn index(&'a self, index: usize) -> Self {
        Self { outer: Some(self), token: Token::Index(index), depth: self.depth + 1 }
    }

    /// The number of enclosing levels of arrays and objects.
    pub(super) fn depth(&self) -> usize {
        self.depth
    }

    /// The JSON pointer.
    pub(super) fn pointer(&self) -> String {
        let locations: Vec<&Self> = std::iter::successors(Some(self), |location| location.outer).collect();
        let mut pointer = String::new();
        for location in locations.iter().rev().skip(1) {
            match location.token {
                Token::Name(name) => json_pointer::push(&mut pointer, name),
                Token::Index(index) => json_pointer::push(&mut pointer, &index.to_string()),
            }
        }
        pointer
    }

    /// An error at this location.
    pub(super) fn error(&self, reason: impl Into<String>) -> Error {
        Error::structural_tag(self.pointer(), reason)
    }
}
