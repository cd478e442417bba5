//! Phrases errors of readers in terms of the API: with JSON types instead of Rust types.

use burn_dfa::{Error, Limit, Limits};

/// Replaces Rust types by JSON types in a message of serde.
pub fn of_json(message: &str) -> String {
    const WORDS: [(&str, &str); 14] = [
        ("expected usize", "expected a whole number from 0 on"),
        ("expected u64", "expected a whole number from 0 on"),
        ("expected u32", "expected a whole number from 0 to 4294967295"),
        ("expected i64", "expected a whole number"),
        ("expected f32", "expected a number"),
        ("expected f64", "expected a number"),
        ("expected a sequence", "expected an array"),
        ("expected a map", "expected an object"),
        ("invalid type: map", "invalid type: an object"),
        ("invalid type: sequence", "invalid type: an array"),
        ("floating point `", "number `"),
        ("integer `", "number `"),
        ("unknown variant", "unknown value"),
        ("expected variant identifier", "expected the name of a type"),
    ];
    WORDS.iter().fold(message.to_owned(), |message, (from, to)| message.replace(from, to))
}

/// Removes function names from a message of the library, since a client cannot call them.
fn without_paths(message: &str) -> String {
    const WORDS: [(&str, &str); 4] = [
        ("intersect two constraints with `ByteDfa::intersection` instead; the `pattern`", "the `pattern`"),
        ("list strings with `Constraint::choice` or `enum`", "list strings as a choice, or with `enum`"),
        (
            "give it a stack, by `Limits::frames` above 0 and a vocabulary with a token for each byte without which its texts cannot go on, or take `to_automaton`",
            "the vocabulary of this model lacks tokens for bytes that its texts need",
        ),
        ("reserve more with `Capacity::with_pushes`", "simplify it, or raise --arena-pushes"),
    ];
    let message = WORDS.iter().fold(message.to_owned(), |message, (from, to)| message.replace(from, to));
    let is_path = |text: &str| {
        text.contains("::") && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_:".contains(&byte))
    };
    let parts: Vec<&str> = message.split('`').collect();
    let last = parts.len() - 1;
    let mut words = String::new();
    for (at, part) in parts.into_iter().enumerate() {
        // Every second part follows a backtick, and all but the last precede one.
        let is_marked = at % 2 == 1;
        if is_marked && at < last && is_path(part) {
            words.push_str("a function of the library");
        } else if is_marked {
            words.push('`');
            words.push_str(part);
            words.push_str(if at < last { "`" } else { "" });
        } else {
            words.push_str(part);
        }
    }
    words
}

/// Replaces types by JSON types in a message of a chat template.
pub fn of_template(message: &str) -> String {
    const TYPES: [(&str, &str); 3] = [("bool", "boolean"), ("map", "object"), ("sequence", "array")];
    let word =
        |word: &str| TYPES.iter().find(|(from, _)| *from == word).map_or(word, |(_, to)| to).to_owned();
    message.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

/// Replaces limits by options of this server in a message of the library.
pub fn of_library(error: &Error) -> String {
    if let Some(what) = error.unenforced() {
        return format!("JSON schema, at {}: {what}", error.pointer().unwrap_or_default());
    }
    let Some(limit) = error.breached() else { return of_json(&without_paths(&error.to_string())) };
    let location = match error.pointer() {
        None => String::new(),
        Some("") => ", most of it at the root of the schema".to_owned(),
        Some(pointer) => format!(", most of it at {pointer} of the schema"),
    };
    let change = match limit {
        Limit::Nesting(_) => "nest the schema less",
        Limit::Frames(max) if max < Limits::MAX_FRAMES => "simplify it, or raise --frames",
        Limit::Time(_) => "simplify it, or raise --compile-deadline",
        Limit::Bytes(_) => "simplify it, or raise --compile-bytes",
        _ => "simplify it",
    };
    format!("the constraint needs more than {limit}{location}: {change}")
}

#[cfg(test)]
mod tests {
    use burn_dfa::Constraint;

    use super::*;

    #[test]
    fn no_function_of_the_library_is_named() {
        assert_eq!(
            without_paths("raise `max_tokens`, or `Limits::time`"),
            "raise `max_tokens`, or a function of the library"
        );
        assert_eq!(
            without_paths("9 frames: reserve more with `Capacity::with_pushes`"),
            "9 frames: simplify it, or raise --arena-pushes"
        );
        assert_eq!(without_paths("a ` alone"), "a ` alone");
        assert_eq!(without_paths("`a b::c` and `x`"), "`a b::c` and `x`");
        let error = Constraint::regex("(?=a)").expect_err("it looks around");
        assert!(error.to_string().contains("::") && !of_library(&error).contains("::"), "{error}");
        let limits = Limits::new().with_states(3);
        let error =
            Constraint::regex("a{9}").and_then(|regex| regex.to_automaton(&limits)).expect_err("it is large");
        assert!(error.to_string().contains("Limits") && !of_library(&error).contains("Limits"), "{error}");
    }

    #[test]
    fn types_are_those_of_json() {
        let of = |text: &str| {
            let error = serde_json::from_str::<Vec<usize>>(text).expect_err("it is of another type");
            of_json(&error.to_string())
        };
        assert!(of("[-1]").starts_with("invalid value: number `-1`, expected a whole number from 0 on"));
        assert!(of("{}").starts_with("invalid type: an object, expected an array"));
        assert_eq!(of_template("bool has no method"), "boolean has no method");
    }
}
