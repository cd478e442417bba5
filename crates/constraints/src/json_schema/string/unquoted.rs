//! The content of quoted strings.

use burn_dfa_automata::{ByteDfa, ByteStateId, FastMap, Op};
use burn_dfa_common::{Result, limits::Meter};

/// The content of the strings in an automaton of JSON strings. Of each character the automaton has
/// at least the shortest spelling.
pub(in super::super) fn unquoted(quoted: &ByteDfa, meter: &Meter) -> Result<ByteDfa> {
    let mut known = FastMap::default();
    let mut samples: Vec<u8> = Vec::new();
    let classes = std::array::from_fn(|byte| {
        let byte = byte as u8;
        let key = (quoted.classes()[byte as usize], escape(byte).map(|_| byte));
        *known.entry(key).or_insert_with(|| {
            samples.push(byte);
            (samples.len() - 1) as u8
        })
    });
    let width = samples.len();
    let mut states = vec![ByteStateId::DEAD, quoted.next(quoted.start(), b'"')];
    let mut numbers: FastMap<u32, u32> = FastMap::default();
    numbers.insert(0, 0);
    numbers.insert(states[1].0, 1);
    let mut next = vec![0; width];
    let mut accepting = vec![false];
    let mut at = 1;
    while at < states.len() {
        meter.bytes(next.len().saturating_mul(size_of::<u32>()))?;
        let state = states[at];
        accepting.push(quoted.is_accepting(quoted.next(state, b'"')));
        for &byte in &samples {
            let to = match escape(byte) {
                Some(escape) => escape.iter().fold(state, |state, &byte| quoted.next(state, byte)),
                None => quoted.next(state, byte),
            };
            next.push(*numbers.entry(to.0).or_insert_with(|| {
                states.push(to);
                states.len() as u32 - 1
            }));
        }
        at += 1;
    }
    let dfa = ByteDfa::from_parts(classes, width, next, accepting, ByteStateId::START);
    dfa.product(&dfa, Op::Intersection, meter)
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
