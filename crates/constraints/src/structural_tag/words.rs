//! Texts with different continuations, as one expression that shares their prefixes.
//!
//! Free text may end in each of its states, so its continuation is read from each state. A choice
//! with one sequence per text makes the work quadratic; a trie of the texts has only one start
//! node.

use crate::Expression;

/// Deepest nesting of branches; deeper texts become a choice.
const MAX_LEVELS: usize = 16;

/// Each text with its continuation.
pub(super) fn followed(mut words: Vec<(&str, Expression)>) -> Expression {
    words.sort_by_key(|&(text, _)| text);
    below(&words, 0, MAX_LEVELS)
}

/// The same for sorted words that share `read` bytes already read.
fn below(words: &[(&str, Expression)], read: usize, levels: usize) -> Expression {
    let whole = |(text, behind): &(&str, Expression)| {
        Expression::sequence([Expression::bytes(&text.as_bytes()[read..]), behind.clone()])
    };
    let [(first, _), .., (last, _)] = words else { return Expression::choice(words.iter().map(whole)) };
    if levels == 0 {
        return Expression::choice(words.iter().map(whole));
    }
    // The common prefix of the first and the last word is shared by all words between.
    let pairs = first.bytes().zip(last.bytes());
    let shared = pairs.take_while(|(one, other)| one == other).count();
    let byte = |word: &(&str, Expression)| word.0.as_bytes().get(shared).copied();
    let branches = words.chunk_by(|one, other| byte(one) == byte(other));
    let branches = branches.map(|words| below(words, shared, levels - 1));
    Expression::sequence([Expression::bytes(&first.as_bytes()[read..shared]), Expression::choice(branches)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Limits;
    use crate::{Constraint, Grammar};

    fn check(texts: &[String]) {
        let words = texts.iter().map(|text| (text.as_str(), Expression::literal(&format!("={text};"))));
        let mut builder = Grammar::builder();
        builder.define("root", followed(words.collect())).unwrap();
        let constraint = Constraint::from_grammar(builder.finish("root").unwrap());
        let automaton = constraint.to_automaton(&Limits::default()).unwrap().unwrap();
        for text in texts {
            assert!(automaton.matches(format!("{text}={text};").as_bytes()), "{text}");
            assert!(!automaton.matches(text.as_bytes()), "{text}");
            for other in texts.iter().filter(|other| *other != text) {
                assert!(!automaton.matches(format!("{text}={other};").as_bytes()), "{text} {other}");
            }
        }
    }

    #[test]
    fn each_text_is_followed_by_its_own_continuation() {
        check(&["a".to_owned()]);
        check(&["<b>", "<a", "<bc", "x", "<ab", "é", "è", "x"].map(str::to_owned));
        let deep: Vec<String> = (0..2 * MAX_LEVELS).map(|len| format!("{}b", "a".repeat(len))).collect();
        check(&deep);
    }
}
