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
    /// The version that `$schema` names by `uri`, if it is known; draft 3 is read as its successor.
    pub(super) fn of(uri: &str) -> Option<Self> {
        let uri = uri.trim_end_matches('#').trim_end_matches('/');
        let of_json_schema = uri.split_once("json-schema.org/")?.1;
        Some(match of_json_schema {
            "draft-03/schema" | "draft-04/schema" => Self::D4,
            "draft-06/schema" => Self::D6,
            "draft-07/schema" => Self::D7,
            "draft/2019-09/schema" => Self::D2019,
            "draft/2020-12/schema" => Self::D2020,
            _ => return None,
        })
    }
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
