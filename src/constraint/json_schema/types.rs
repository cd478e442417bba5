//! Sets of JSON types.

use super::json::Json;

/// A set of JSON types; an integer is a number without a fraction, whatever its spelling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::constraint) struct Types(u8);

impl Types {
    pub(in crate::constraint) const NONE: Self = Self(0);
    pub(in crate::constraint) const NULL: Self = Self(1);
    pub(in crate::constraint) const BOOLEAN: Self = Self(2);
    pub(in crate::constraint) const INTEGER: Self = Self(4);
    /// Numbers that are no integers.
    pub(in crate::constraint) const FRACTION: Self = Self(8);
    pub(in crate::constraint) const NUMBER: Self = Self(4 | 8);
    pub(in crate::constraint) const STRING: Self = Self(16);
    pub(in crate::constraint) const ARRAY: Self = Self(32);
    pub(in crate::constraint) const OBJECT: Self = Self(64);
    pub(in crate::constraint) const ALL: Self = Self(127);

    /// The type that `name` stands for in the keyword `type`.
    pub(in crate::constraint) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "null" => Self::NULL,
            "boolean" => Self::BOOLEAN,
            "integer" => Self::INTEGER,
            "number" => Self::NUMBER,
            "string" => Self::STRING,
            "array" => Self::ARRAY,
            "object" => Self::OBJECT,
            _ => return None,
        })
    }

    /// The type of a value.
    pub(in crate::constraint) fn of(value: &Json) -> Self {
        match value {
            Json::Null => Self::NULL,
            Json::Boolean(_) => Self::BOOLEAN,
            Json::Number(number) if number.is_integer() => Self::INTEGER,
            Json::Number(_) => Self::FRACTION,
            Json::String(_) => Self::STRING,
            Json::Array(_) => Self::ARRAY,
            Json::Object(_) => Self::OBJECT,
        }
    }

    /// Whether the sets have a type in common.
    pub(in crate::constraint) fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// The types of this set that `other` lacks.
    pub(in crate::constraint) const fn except(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    pub(in crate::constraint) const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}
