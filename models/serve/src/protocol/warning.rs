//! Warnings of an answer about parts of its request without effect.

use serde::Serialize;
use utoipa::ToSchema;

/// A part of the request that has no effect, or another effect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct Warning {
    /// The field of the request, or several fields, separated by commas.
    pub param: String,
    /// The actual effect.
    pub message: String,
}

/// Greatest number of ignored fields that a warning names, and of characters of each name.
const MAX_NAMED: (usize, usize) = (8, 64);

/// The warnings of a request, collected while it is read.
#[derive(Clone, Debug, Default)]
pub struct Warnings {
    /// Fields without effect, which form one warning together.
    ignored: Vec<String>,
    others: Vec<Warning>,
}

impl Warnings {
    /// A field has no effect.
    pub fn ignore(&mut self, field: impl Into<String>) {
        self.ignored.push(field.into());
    }

    /// A field has another effect.
    pub fn add(&mut self, param: impl Into<String>, message: impl Into<String>) {
        self.others.push(Warning { param: param.into(), message: message.into() });
    }

    /// The warnings for the answer. They are also logged in one line.
    pub fn tell(self) -> Vec<Warning> {
        let (max, longest) = MAX_NAMED;
        let mut told = self.others;
        if !self.ignored.is_empty() {
            let short = |name: &String| name.chars().take(longest).collect::<String>();
            let named = self.ignored.iter().take(max).map(short).collect::<Vec<_>>().join(", ");
            let more = match self.ignored.len().saturating_sub(max) {
                0 => String::new(),
                more => format!(", and {more} more"),
            };
            let message = format!("ignored, as this server does nothing with them: {named}{more}");
            told.insert(0, Warning { param: named, message });
        }
        if !told.is_empty() {
            let messages: Vec<_> = told.iter().map(|warning| warning.message.as_str()).collect();
            tracing::warn!(ignored = self.ignored.len(), "{}", messages.join("; "));
        }
        told
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_fields_are_one_warning() {
        let mut warnings = Warnings::default();
        assert!(warnings.clone().tell().is_empty());
        for number in 0..10 {
            warnings.ignore(format!("field{number}{}", "x".repeat(100)));
        }
        warnings.add("other", "it is rounded");
        let told = warnings.tell();
        assert_eq!((told.len(), told[1].param.as_str()), (2, "other"));
        assert!(told[0].message.ends_with("and 2 more") && told[0].message.contains("field7"), "{told:?}");
        assert!(told[0].message.len() < 700, "{told:?}");
    }
}
