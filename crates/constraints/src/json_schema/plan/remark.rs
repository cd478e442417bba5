//! Remarks on keywords that plans do not honor exactly.

use std::collections::BTreeMap;

use crate::json_schema::note::{Note, Treatment};
use burn_dfa_common::{Error, Unenforced};

/// How a plan departs from a keyword.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Remark {
    /// No automaton can keep it, and the options allow leaving it out; the reason.
    Unenforceable(&'static str),
    /// Some valid objects are not written.
    Excluded(Excluded),
    /// The names in its scope may occur twice in an object.
    Repeated,
}

/// The reason for omitting objects: a dependency on distinct names, or too many states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Excluded {
    /// The number of properties.
    Count,
    /// A claim violated by a property other than the last.
    Violation,
    /// Open alternatives.
    Alternatives,
}

impl Excluded {
    /// The remark on a keyword that omits some objects.
    fn note(self) -> &'static str {
        match self {
            Self::Count => {
                "of the names outside `properties` only one is counted, since no finite automaton remembers whether they are distinct"
            }
            Self::Alternatives => {
                "in front of the property that tells the alternatives apart, values that exclude some which other values keep are left out where too many sets of alternatives would be open; declare that property first"
            }
            Self::Violation => {
                "a property outside `properties` with a value that violates it is not followed by one that does not where that decides, since no finite automaton remembers whether their names are distinct"
            }
        }
    }

    /// The error of a keyword that omits all objects.
    pub(super) fn refused(self, pointer: String) -> Error {
        match self {
            Self::Count => {
                let keyword =
                    if pointer.ends_with("/maxProperties") { "maxProperties" } else { "minProperties" };
                let what = Unenforced::new(
                    keyword,
                    "the count depends on names outside `properties` being distinct, which no finite automaton remembers",
                    "list the names under `properties`",
                );
                Error::unenforceable(pointer, what)
            }
            Self::Violation => Error::schema(
                pointer,
                "whether values violate it depends on names outside `properties` being distinct, which no finite automaton remembers; list the names under `properties`",
            ),
            Self::Alternatives => Error::schema(
                pointer,
                "too many sets of its alternatives would be open at once; declare the property that tells them apart first",
            ),
        }
    }
}

/// Remarks by the pointer to the keyword; the empty pointer is for all names without a keyword.
#[derive(Default)]
pub(in super::super) struct Remarks(BTreeMap<String, Vec<Remark>>);

impl Remarks {
    pub(super) fn add(&mut self, pointer: &str, remark: Remark) {
        match self.0.get_mut(pointer) {
            Some(known) if known.contains(&remark) => {}
            Some(known) => known.push(remark),
            None => _ = self.0.insert(pointer.to_owned(), vec![remark]),
        }
    }

    /// The error of the first keyword that omits objects, for a schema that no value satisfies.
    pub(in super::super) fn refused(&self) -> Option<Error> {
        self.all().find_map(|(pointer, remark)| match remark {
            Remark::Excluded(reason) => Some(reason.refused(pointer.to_owned())),
            Remark::Unenforceable(_) | Remark::Repeated => None,
        })
    }

    pub(in super::super) fn notes(&self) -> impl Iterator<Item = Note> {
        self.all().map(|(pointer, remark)| Note {
            pointer: pointer.to_owned(),
            treatment: remark.treatment(pointer),
        })
    }

    fn all(&self) -> impl Iterator<Item = (&str, Remark)> {
        self.0.iter().flat_map(|(pointer, remarks)| remarks.iter().map(|&remark| (pointer.as_str(), remark)))
    }
}

impl Remark {
    fn treatment(self, pointer: &str) -> Treatment {
        match self {
            Self::Unenforceable(reason) => Treatment::Unenforceable(reason.to_owned()),
            Self::Excluded(reason) => Treatment::Bounded(reason.note().to_owned()),
            Self::Repeated => {
                let what = match pointer {
                    "" => "a name that `properties` does not list",
                    _ => "a name of these",
                };
                Treatment::Repeated(format!(
                    "{what} may occur twice in the text of an object, of which readers take the last; names under `properties` occur once"
                ))
            }
        }
    }
}
