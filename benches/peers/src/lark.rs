//! Converts GBNF and EBNF to Lark, for an engine that reads only Lark.
//!
//! All three syntaxes have rules, groups, alternatives and repetitions. Lark also has *terminals*,
//! with names in capitals: a lexer splits the text into terminals, each as long as possible. The
//! choice of terminals (words, numbers, white space) determines the engine's speed and, if a
//! terminal consumes text that another rule needs, also the accepted texts. So the caller names the
//! terminals; the rules that they use become terminals too. Literals and brackets of other rules
//! are terminals already.

use std::collections::BTreeSet;

/// A token of a grammar's source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Piece<'a> {
    Name(&'a str),
    /// `::=`
    Is,
    /// A literal with its quotes.
    Literal(&'a str),
    /// The text between brackets.
    Class(&'a str),
    /// A parenthesis, a bar or a repetition.
    Sign(&'a str),
}

/// The rules of `grammar` in Lark, with `root` as `start`; `terminals` names rules that become
/// terminals.
///
/// # Errors
/// Fails at a character that begins no token, and for a terminal that is no rule.
pub fn from_gbnf(grammar: &str, terminals: &[&str]) -> Result<String, String> {
    let pieces = pieces(grammar)?;
    let rules = rules(&pieces);
    let terminals = with_what_they_use(terminals, &rules)?;
    let lines = rules.iter().map(|(name, body)| {
        let body: Vec<String> = body.iter().map(|piece| written(piece, &terminals)).collect();
        format!("{}: {}\n", renamed(name, &terminals), body.join(" "))
    });
    Ok(lines.collect())
}

/// Splits a grammar into tokens, without comments and white space.
fn pieces(grammar: &str) -> Result<Vec<Piece<'_>>, String> {
    let mut pieces = Vec::new();
    let mut rest = grammar.trim_start();
    while let Some(first) = rest.chars().next() {
        let name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let (piece, length) = match first {
            '#' => (None, rest.find('\n').unwrap_or(rest.len())),
            ':' if rest.starts_with("::=") => (Some(Piece::Is), 3),
            '"' => {
                let end = closing(rest, '"')?;
                (Some(Piece::Literal(&rest[..=end])), end + 1)
            }
            '[' => {
                let end = closing(rest, ']')?;
                (Some(Piece::Class(&rest[1..end])), end + 1)
            }
            '{' => {
                let end = closing(rest, '}')?;
                (Some(Piece::Sign(&rest[..=end])), end + 1)
            }
            '(' | ')' | '|' | '*' | '+' | '?' => (Some(Piece::Sign(&rest[..1])), 1),
            c if name(c) => {
                let end = rest.find(|c| !name(c)).unwrap_or(rest.len());
                (Some(Piece::Name(&rest[..end])), end)
            }
            c => return Err(format!("a grammar with {c:?}")),
        };
        pieces.extend(piece);
        rest = rest[length..].trim_start();
    }
    Ok(pieces)
}

/// The byte position at which `mark` closes the first character of `text`; a backslash escapes the
/// next character.
fn closing(text: &str, mark: char) -> Result<usize, String> {
    let mut characters = text.char_indices().skip(1);
    while let Some((at, c)) = characters.next() {
        match c {
            '\\' => {
                characters.next();
            }
            c if c == mark => return Ok(at),
            _ => {}
        }
    }
    Err(format!("a grammar without a closing {mark:?}"))
}

/// Each rule with its body: a rule begins at a name before `::=`.
fn rules<'a>(pieces: &[Piece<'a>]) -> Vec<(&'a str, Vec<Piece<'a>>)> {
    let mut rules: Vec<(&str, Vec<Piece<'_>>)> = Vec::new();
    for (at, &piece) in pieces.iter().enumerate() {
        match (piece, pieces.get(at + 1), rules.last_mut()) {
            (Piece::Name(name), Some(Piece::Is), _) => rules.push((name, Vec::new())),
            (Piece::Is, _, _) | (_, _, None) => {}
            (piece, _, Some((_, body))) => body.push(piece),
        }
    }
    rules
}

/// The terminals and all rules reachable from them.
fn with_what_they_use<'a>(
    terminals: &[&'a str],
    rules: &[(&'a str, Vec<Piece<'a>>)],
) -> Result<BTreeSet<&'a str>, String> {
    let mut found = BTreeSet::new();
    let mut open = terminals.to_vec();
    while let Some(name) = open.pop() {
        let rule = rules.iter().find(|(other, _)| *other == name);
        let (_, body) = rule.ok_or_else(|| format!("a grammar without the rule {name}"))?;
        if found.insert(name) {
            open.extend(body.iter().filter_map(|piece| match piece {
                Piece::Name(name) => Some(*name),
                _ => None,
            }));
        }
    }
    Ok(found)
}

/// A name in Lark: lowercase for a rule, uppercase for a terminal, no dashes.
fn renamed(name: &str, terminals: &BTreeSet<&str>) -> String {
    let plain = name.replace('-', "_");
    match name {
        "root" => "start".to_owned(),
        _ if terminals.contains(name) => plain.to_uppercase(),
        _ => plain.to_lowercase(),
    }
}

/// A token of a rule body in Lark.
fn written(piece: &Piece<'_>, terminals: &BTreeSet<&str>) -> String {
    match piece {
        Piece::Name(name) => renamed(name, terminals),
        Piece::Class(class) => format!("/[{}]/", regex_class(class)),
        Piece::Literal(text) | Piece::Sign(text) => (*text).to_owned(),
        Piece::Is => String::new(),
    }
}

/// Escapes the inside of brackets for a regex between slashes, in which more characters are
/// special.
fn regex_class(class: &str) -> String {
    let mut escaped = String::new();
    let mut behind_a_backslash = false;
    for c in class.chars() {
        if !behind_a_backslash && matches!(c, '/' | '[' | '&' | '~') {
            escaped.push('\\');
        }
        behind_a_backslash = c == '\\' && !behind_a_backslash;
        escaped.push(c);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::from_gbnf;

    #[test]
    fn rules_and_terminals_are_renamed() {
        let grammar = "root ::= my-word (\" \" my-word){0,2} # words\nmy-word ::= let-ter+\n  | \"/\\\"\"\nlet-ter ::= [a-z/]";
        assert_eq!(
            from_gbnf(grammar, &["my-word"]).unwrap(),
            "start: MY_WORD ( \" \" MY_WORD ) {0,2}\nMY_WORD: LET_TER + | \"/\\\"\"\nLET_TER: /[a-z\\/]/\n"
        );
        assert!(from_gbnf(grammar, &[]).unwrap().contains("my_word: let_ter +"));
    }

    #[test]
    fn brackets_keep_their_escapes() {
        assert_eq!(from_gbnf(r"root ::= [^\]\\[&]", &[]).unwrap(), "start: /[^\\]\\\\\\[\\&]/\n");
    }

    #[test]
    fn what_cannot_be_read_is_an_error() {
        for grammar in ["root ::= \"a", "root ::= [a", "root ::= a; b"] {
            assert!(from_gbnf(grammar, &[]).is_err(), "{grammar}");
        }
        assert!(from_gbnf("root ::= \"a\"", &["b"]).is_err());
    }
}
