//! Small texts and patterns.

use arbitrary::{Result, Unstructured};

/// A text of up to six characters.
pub fn text(choices: &mut Unstructured) -> Result<String> {
    let length = choices.int_in_range(0..=6)?;
    let chars =
        ['a', 'b', 'c', '0', '1', ' ', '"', '\\', '/', '~', '\n', '\0', 'é', '中', '\u{1F600}', '\u{7F}'];
    (0..length).map(|_| choices.choose(&chars).copied()).collect()
}

/// A pattern from meaningful parts, well-formed or not.
pub fn pattern(choices: &mut Unstructured) -> Result<String> {
    const PIECES: &[&str] = &[
        "a",
        "b",
        "0",
        ".",
        "|",
        "(",
        ")",
        "(?:",
        "(?=",
        "(?!",
        "(?<=",
        "(?<!",
        "(?i)",
        "(?i:",
        "(?s:",
        "(?m)",
        "(?-u:",
        "(?<n>",
        "*",
        "+",
        "?",
        "*?",
        "{2}",
        "{0}",
        "{0,3}",
        "{2,}",
        "{1000}",
        "{99999}",
        "^",
        "$",
        r"\A",
        r"\z",
        r"\b",
        r"\B",
        r"\d",
        r"\D",
        r"\w",
        r"\W",
        r"\s",
        r"\S",
        r"\pL",
        r"\P{Lu}",
        r"\p{Greek}",
        r"\x41",
        r"\u0041",
        r"\u{1F600}",
        r"\n",
        r"\\",
        "[a-z]",
        "[^a-z]",
        "[",
        "]",
        "[^",
        "-",
        "&&",
        r"\xFF",
        r"[\d\D]",
        "é",
        "中",
        r"\1",
        r"\k<n>",
        r"\/",
        "\"",
        r"\cJ",
        r"\0",
    ];
    let count = choices.int_in_range(0..=10)?;
    (0..count).map(|_| choices.choose(PIECES).copied()).collect()
}
