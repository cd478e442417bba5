//! The content of quoted strings.

use burn_dfa_automata::{ByteDfa, ByteStateId, Cuts, Rows, Run};
use burn_dfa_common::{Result, limits::Meter};

/// The content of the strings in an automaton of JSON strings. Of each character the automaton has
/// at least the shortest spelling.
pub(in super::super) fn unquoted(quoted: &ByteDfa, meter: &Meter) -> Result<ByteDfa> {
    let mut cuts = Cuts::new();
    quoted.intervals().iter().for_each(|&(first, last, _)| cuts.add(first, last));
    (0..=u8::MAX).filter(|&byte| escape(byte).is_some()).for_each(|byte| cuts.add(byte, byte));
    // The bytes of each interval with the spelling of its first byte.
    let spelled: Vec<(u8, u8, Vec<u8>)> = cuts
        .intervals()
        .map(|(first, last)| (first, last, escape(first).unwrap_or_else(|| vec![first])))
        .collect();
    let start = quoted.next(quoted.start(), b'"');
    let rows = Rows::explore(start, meter, |state, found, runs| {
        for (first, last, spelling) in &spelled {
            let next = spelling.iter().fold(state, |state, &byte| quoted.next(state, byte));
            if next != ByteStateId::DEAD {
                runs.push(Run { first: *first, last: *last, target: found.state(next) });
            }
        }
        quoted.is_accepting(quoted.next(state, b'"'))
    })?;
    rows.minimize(1, meter)
}

/// How a byte is written in a JSON string, if not as it is.
fn escape(byte: u8) -> Option<Vec<u8>> {
    let short = |letter| Some(vec![b'\\', letter]);
    match byte {
        b'"' | b'\\' => short(byte),
        0x08 => short(b'b'),
        0x09 => short(b't'),
        0x0A => short(b'n'),
        0x0C => short(b'f'),
        0x0D => short(b'r'),
        0..0x20 => Some(format!("\\u{byte:04x}").into_bytes()),
        _ => None,
    }
}
