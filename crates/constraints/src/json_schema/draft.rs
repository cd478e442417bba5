//! The versions of the standard.

use std::fmt;

/// A version of the standard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Draft {
    D4,
    D6,
    D7,
    D2019,
    D2020,
}

impl Draft {
    /// The version named by `uri` in `$schema`, if known.
    pub(super) fn of(uri: &str) -> Option<Self> {
        Some(match path(uri)? {
            "draft-04/schema" => Self::D4,
            "draft-06/schema" => Self::D6,
            "draft-07/schema" => Self::D7,
            "draft/2019-09/schema" => Self::D2019,
            "draft/2020-12/schema" => Self::D2020,
            _ => return None,
        })
    }

    /// The version for a schema with an unknown or missing `$schema`: draft 3 is read as its
    /// successor, every other one as the latest.
    pub(super) fn instead_of(uri: Option<&str>) -> Self {
        match uri.and_then(path) {
            Some("draft-03/schema") => Self::D4,
            _ => Self::D2020,
        }
    }
}

/// The path after the host of the standard.
fn path(uri: &str) -> Option<&str> {
    let uri = uri.trim_end_matches('#').trim_end_matches('/');
    Some(uri.split_once("json-schema.org/")?.1)
}

impl fmt::Display for Draft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::D4 => "draft 4",
            Self::D6 => "draft 6",
            Self::D7 => "draft 7",
            Self::D2019 => "draft 2019-09",
            Self::D2020 => "draft 2020-12",
        })
    }
}
