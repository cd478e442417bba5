//! The white space allowed by a pattern of a request.

use std::time::Duration;

use super::{Constraint, RegexOptions, Whitespace};
use burn_dfa_automata::ByteStateId;
use burn_dfa_common::{Error, Limits, Result};

/// Most states of the automaton of a pattern.
const MAX_STATES: usize = 1 << 12;

/// Most bytes of a structure while it is compiled.
const MAX_BYTES: usize = 16 << 20;

/// Most time to compile it.
const MAX_TIME: Duration = Duration::from_secs(1);

/// Most characters between two tokens of JSON.
const MAX_LENGTH: usize = 16;

/// The widest style of white space whose every text between two tokens of JSON the pattern matches:
/// any white space, up to the pattern's maximum; else a space after each comma and colon; else
/// none.
///
/// # Errors
/// [`ErrorKind::Request`](crate::ErrorKind::Request): the pattern is malformed, too large, or does
/// not match the empty text, which most tokens in every style have between them.
pub(super) fn of_pattern(pattern: &str) -> Result<Whitespace> {
    let wrong = |reason: String| Error::request(format!("`whitespace_pattern` {reason}"));
    let limits = Limits::new().with_states(MAX_STATES).with_bytes(MAX_BYTES).with_time(MAX_TIME);
    let regex = Constraint::regex_with(pattern, &RegexOptions::new().with_ascii_classes(true));
    let dfa = regex.and_then(|regex| regex.to_byte_dfa(&limits));
    let dfa = match dfa {
        Ok(Some(dfa)) => dfa,
        Ok(None) => return Err(wrong("is no pattern of text".into())),
        Err(error) => return Err(wrong(format!("cannot be read: {error}"))),
    };
    if !dfa.is_accepting(dfa.start()) {
        return Err(wrong(
            "does not match the empty text: there would have to be white space between all tokens; let it be optional, as in `[ ]?`"
                .into(),
        ));
    }
    let mut states: Vec<ByteStateId> = vec![dfa.start()];
    for length in 1..=MAX_LENGTH {
        let mut next: Vec<ByteStateId> =
            states.iter().flat_map(|&state| b" \t\n\r".map(|byte| dfa.next(state, byte))).collect();
        next.sort_unstable_by_key(|state| state.0);
        next.dedup();
        if !next.iter().all(|&state| dfa.is_accepting(state)) {
            let space = dfa.next(dfa.start(), b' ');
            return Ok(match length {
                1 if dfa.is_accepting(space) => Whitespace::Spaced,
                1 => Whitespace::Compact,
                _ => Whitespace::Flexible(length - 1),
            });
        }
        states = next;
    }
    Ok(Whitespace::Flexible(MAX_LENGTH))
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn_dfa_common::ErrorKind;

    #[test]
    fn a_style_is_within_its_pattern() {
        for (pattern, style) in [
            ("", Whitespace::Compact),
            ("\\n?", Whitespace::Compact),
            ("[ ]?", Whitespace::Spaced),
            (" ?", Whitespace::Spaced),
            ("[\\n\\t ]*", Whitespace::Spaced),
            ("[ \\t\\n\\r]?", Whitespace::Flexible(1)),
            (r"\s{0,3}", Whitespace::Flexible(3)),
            (r"\s*", Whitespace::Flexible(16)),
        ] {
            assert_eq!(of_pattern(pattern), Ok(style), "{pattern}");
        }
        for pattern in [" ", r"\s+", "(", "[ ]{0,100000}"] {
            let error = of_pattern(pattern).unwrap_err();
            assert!(
                error.kind() == ErrorKind::Request && error.to_string().contains("`whitespace_pattern`"),
                "{error}"
            );
        }
    }
}
