//! Compares the automata and compiled constraints of structural tags with a reader that follows the
//! formats without an automaton.

mod leaves;
mod masks;
mod random;
mod reading;
mod tools;

use burn_dfa_tokens::{
    Constraint, Error, ErrorKind, Limits,
    automaton::ByteAutomaton,
    constraint::{Format, StructuralTag},
};
use std::collections::BTreeMap;
use std::time::Duration;

use rand::{Rng, SeedableRng, rngs::StdRng};

use self::leaves::Leaves;
use self::random::{InputItem, Writer};
use self::reading::{Charts, Input, Names, Reader};

/// Limits with a stack that no text here fills.
fn limits() -> Limits {
    Limits::new().with_frames(Limits::MAX_FRAMES).with_states(100_000).with_time(Duration::from_secs(5))
}

/// Refusals, counted by kind. Any other error fails the test.
#[derive(Debug, Default)]
struct Refused(BTreeMap<&'static str, usize>);

impl Refused {
    /// Permitted reasons for refusing a format.
    const REASONS: [&'static str; 3] = ["is never found", "may go on without end", "several triggers"];

    fn add(&mut self, error: &Error, format: &Format) {
        let text = error.to_string();
        let reason = match Self::REASONS.iter().find(|reason| text.contains(**reason)) {
            Some(&"is never found") if !random::has_hidden_trigger(format) => panic!("{error}\n{format:?}"),
            Some(reason) if error.kind() == ErrorKind::StructuralTag => *reason,
            Some(_) => panic!("{error}\n{format:?}"),
            None if error.kind() == ErrorKind::Limit => "a limit",
            None if is_any_token(error) => "any token",
            // With a stack, not every choice can be deferred.
            _ if error.kind() == ErrorKind::Grammar && leaves::has_stack(format) => "a stack",
            _ => panic!("{error}\n{format:?}"),
        };
        *self.0.entry(reason).or_default() += 1;
    }

    /// The total. Formats as small as these should almost never reach a limit.
    fn total(&self) -> usize {
        let all = self.0.values().sum();
        assert!(self.0.get("a limit").is_none_or(|&limits| 100 * limits <= all), "{self:?}");
        all
    }
}

/// Whether the error refuses arbitrary tokens next to text, which only constraints without calls
/// and with few states support.
fn is_any_token(error: &Error) -> bool {
    error.kind() == ErrorKind::Grammar
        && error.to_string().contains("any token may come where text is read too")
}

/// Whether only one form refuses the constraint.
fn is_of_a_form(error: &Error) -> bool {
    error.kind() == ErrorKind::Limit
        || is_any_token(error)
        || error.to_string().contains("no finite automaton has its texts")
}

/// Reads a text byte by byte while it is a prefix of a text; returns whether it is a text.
fn read(automaton: &ByteAutomaton, format: &Format, leaves: &Leaves, text: &[u8]) -> bool {
    let mut at = automaton.start();
    let (names, charts) = (Names::new(), Charts::default());
    for len in 0..=text.len() {
        let input = Input::text(&text[..len]);
        let (whole, open) = Reader::new(&input, leaves, &names, &charts).read(format);
        let shown = || String::from_utf8_lossy(&text[..len]).into_owned();
        assert_eq!(!at.is_dead(), open, "the beginning {:?} of\n{format:?}", shown());
        assert_eq!(automaton.is_accepting(&at), whole, "the text {:?} of\n{format:?}", shown());
        if !open {
            return false;
        }
        match text.get(len) {
            Some(&byte) => at = automaton.next(&at, byte),
            None => return whole,
        }
    }
    unreachable!()
}

#[test]
fn automata_match_the_formats() {
    const FORMATS: u64 = 1_200;
    let leaves = Leaves::new();
    let writer = Writer { leaves: &leaves, tokens: &[] };
    let mut refused = Refused::default();
    let (mut stacks, mut texts, mut others) = (0, 0, 0);
    for seed in 0..FORMATS {
        let mut rng = StdRng::seed_from_u64(seed);
        let format = writer.whole(&mut rng);
        let compiled = Constraint::structural_tag(&StructuralTag::new(format.clone()))
            .and_then(|constraint| constraint.to_automaton(&limits()));
        let automaton = match compiled {
            Ok(automaton) => automaton.expect("text"),
            Err(error) => {
                refused.add(&error, &format);
                continue;
            }
        };
        stacks += usize::from(matches!(automaton, ByteAutomaton::Pushdown(_)));
        for _ in 0..12 {
            let mut items = Vec::new();
            writer.draw(&format, &mut rng, &mut items);
            let text: String = items
                .iter()
                .map(|item| match item {
                    InputItem::Text(text) => text.as_str(),
                    InputItem::Token(_) => unreachable!("a format without tokens"),
                })
                .collect();
            let near = random::changed(&mut rng, &text);
            for text in [text, near, random::word(&mut rng, 0, 9)] {
                match read(&automaton, &format, &leaves, text.as_bytes()) {
                    true => texts += 1,
                    false => others += 1,
                }
            }
            // Bytes that are not UTF-8.
            let bytes: Vec<u8> = (0..4).map(|_| [b'a', b'<', 0xC3, 0xA9][rng.random_range(0..4)]).collect();
            read(&automaton, &format, &leaves, &bytes);
        }
    }
    println!("{texts} texts, {others} others, {stacks} with a stack, refused {refused:?}");
    assert!(refused.total() <= FORMATS as usize / 5, "{refused:?}");
    assert!(texts > 10_000 && others > 10_000 && stacks > 50, "{texts} {others} {stacks}");
}
