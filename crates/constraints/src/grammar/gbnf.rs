//! GBNF, as llama.cpp reads it.
//!
//! A rule ends with its line, except within parentheses, and after `|` and `::=`. Characters are
//! code points: `.` is any character, line ends included. llama.cpp's own items are tokens:
//! `<[1000]>` by number and `<think>` by text, and `!<think>` for any other token.
//!
//! Some constructs are rejected because llama.cpp reads them differently from their text: rules
//! defined twice (it keeps the last), empty classes (it matches the empty text), ranges and counts
//! that are out of order. Sizes that llama.cpp rejects or changes, such as `{3000}`, are subject to
//! the limits of the compiler instead.
//!
//! Reference: the guide and the parser of llama.cpp, `grammars/README.md` and
//! `src/llama-grammar.cpp`.

use super::form::{Expression, Grammar, Node, TokenName};
use super::literal::{self, Escapes};
use super::rules::{Reader, Syntax};
use burn_dfa_common::Result;
use burn_dfa_vocabulary::TokenId;

/// Reads a grammar with the start rule `start`, or `root`.
///
/// # Errors
/// The text is not a grammar; the error has the location.
pub(super) fn read(text: &str, start: Option<&str>) -> Result<Grammar> {
    let mut reader = Reader::new(text, Gbnf)?;
    reader.cursor.space(true);
    while reader.cursor.peek().is_some() {
        rule(&mut reader)?;
    }
    Ok(reader.finish(start.unwrap_or("root"))?.0)
}

struct Gbnf;

impl<'t> Syntax<'t> for Gbnf {
    const LINES: bool = false;
    const EMPTY: bool = true;
    const STACKED: bool = true;
    const ESCAPES: Escapes = Escapes {
        characters: &[
            ('t', '\t'),
            ('r', '\r'),
            ('n', '\n'),
            ('\\', '\\'),
            ('"', '"'),
            ('[', '['),
            (']', ']'),
            ('-', '-'),
        ],
        in_class: "",
        long_hex: false,
        lines: true,
        any: false,
    };

    fn item(reader: &mut Reader<'t, Self>) -> Result<Option<Expression>> {
        let at = reader.cursor.at;
        Ok(match reader.cursor.peek() {
            Some('.') => {
                reader.cursor.next();
                Some(literal::any())
            }
            Some('<' | '!') => Some(token(reader)?),
            Some(c) if is_word(c) => {
                let name = reader.cursor.eat_while(is_word);
                Some(reader.reference(name, at))
            }
            _ => None,
        })
    }

    fn ends(_: &Reader<'t, Self>) -> bool {
        false
    }
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '-'
}

/// A rule, and the white space after it.
fn rule(reader: &mut Reader<Gbnf>) -> Result<()> {
    let at = reader.cursor.at;
    let name = reader.cursor.eat_while(is_word);
    if name.is_empty() {
        let reason = format!("expected the name of a rule, found {}", reader.cursor.found());
        return Err(reader.cursor.error(at, reason));
    }
    reader.begin(name, at)?;
    reader.cursor.space(false);
    reader.cursor.expect("::=", "after the name of a rule")?;
    reader.cursor.space(true);
    let body = reader.choice(false)?;
    if !matches!(reader.cursor.peek(), None | Some('\r' | '\n')) {
        let reason = format!("{} means nothing here", reader.cursor.found());
        return Err(reader.cursor.error(reader.cursor.at, reason));
    }
    reader.define(name, body)?;
    reader.cursor.space(true);
    Ok(())
}

/// A token, from its `<` or `!` on.
fn token(reader: &mut Reader<Gbnf>) -> Result<Expression> {
    let cursor = &mut reader.cursor;
    let except = cursor.eat("!");
    let start = cursor.at;
    cursor.expect("<", "before a token")?;
    let token = if cursor.eat("[") {
        let id = cursor.number()?;
        cursor.expect("]>", "after the number of a token")?;
        TokenName::Id(TokenId(id))
    } else {
        cursor.eat_while(|c| !matches!(c, '>' | '\r' | '\n'));
        cursor.expect(">", "after a token")?;
        TokenName::Text(cursor.text()[start..cursor.at].to_owned())
    };
    Ok(Expression(Node::Token { tokens: vec![token], except }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar::recognize::accepts;

    fn check(text: &str, accepted: &[&str], rejected: &[&str]) {
        let grammar = read(text, None).unwrap_or_else(|error| panic!("{text}\n{error}"));
        for word in accepted {
            assert!(accepts(&grammar, word), "{text}\nmust accept {word:?}");
        }
        for word in rejected {
            assert!(!accepts(&grammar, word), "{text}\nmust reject {word:?}");
        }
    }

    fn refused(text: &str, location: (usize, usize), reason: &str) {
        let error = read(text, None).expect_err(text);
        assert_eq!(error.location(), Some(location), "{error}");
        assert!(error.to_string().contains(reason), "{error}");
    }

    #[test]
    fn a_rule_ends_with_its_line() {
        check(
            "# x\nroot ::= # y\n a |\n  # z\n b\na ::= \"a\"\r\n\r\nb ::= (\n\"b\"\n)+\n",
            &["a", "bb"],
            &["", "ab"],
        );
        check("root ::= | \"a\" | ( | \"b\") \"c\"", &["", "a", "c", "bc"], &["b"]);
        check("root ::= root \"a\" | \"b\"", &["b", "baa"], &["a"]);
        check("root ::= 1-a A\n1-a ::= \"\"\nA ::= \"x\"", &["x"], &[]);
        refused("root ::= \"a\"\n  \"b\"", (2, 3), "the name of a rule");
        refused("root ::= \"a\" ) \"b\"", (1, 14), "means nothing");
        refused("root ::= (\"a\"", (1, 14), "expected `)`");
        refused("root ::= a_b", (1, 11), "means nothing");
        refused("root \"a\"", (1, 6), "expected `::=`");
        refused("root ::= x\n", (1, 10), "`x` is not defined");
        refused("root ::= \"a\"\nroot ::= \"b\"", (2, 1), "defined twice");
        refused("", (1, 1), "`root`, where texts begin");
        assert!(read("start ::= \"a\"", Some("start")).is_ok());
    }

    #[test]
    fn characters_are_code_points() {
        check(
            r#"root ::= "\x41\u00e9\U0001F600\"\\\[\]\-\n" [\]a-c\x30-\x32^-]"#,
            &["Aé😀\"\\[]-\n]", "Aé😀\"\\[]-\n-"],
            &[],
        );
        check("root ::= ... \"abc\"", &["\né😀abc"], &["ababc"]);
        check("root ::= [^a]+ \"\n\"", &["bé\n"], &["ba\n"]);
        refused(r#"root ::= "\x4""#, (1, 11), "2 hex digits");
        refused(r#"root ::= "\a""#, (1, 11), "no escape");
        refused(r#"root ::= "\uDC00""#, (1, 11), "surrogate");
        refused(r#"root ::= "\U00110000""#, (1, 11), "characters end");
        refused("root ::= []", (1, 10), "empty class");
        refused("root ::= [^]", (1, 10), "empty class");
        refused(r"root ::= [^\x00-\U0010FFFF]", (1, 10), "no character");
        refused("root ::= [z-a]", (1, 11), "out of order");
        refused("root ::= \"a", (1, 10), "not closed");
        refused("root ::= [a", (1, 10), "not closed");
    }

    #[test]
    fn repetitions_may_be_repeated() {
        check(
            "root ::= ( [x]* )* \"a\"? \"b\"+ \"c\"{2} \"d\"{1,} \"e\"{0,2}",
            &["bccd", "xxabbccdddee"],
            &["bcd", "bccdeee"],
        );
        check("root ::= \"a\"{2}{2}", &["aaaa"], &["aa", "aaa"]);
        check("root ::= \"a\" * \"b\"{ 1 , 2 }", &["aab", "bb"], &["a"]);
        refused("root ::= *", (1, 10), "nothing to repeat");
        refused("root ::= \"a\"{,2}", (1, 14), "write `{0,`");
        refused("root ::= \"a\"{2,1}", (1, 13), "out of order");
        refused("root ::= \"a\"{-1}", (1, 14), "expected a number");
        refused("root ::= \"a\"{4294967296}", (1, 14), "beyond 32 bits");
        let stacked = format!("root ::= \"a\"{}", "*".repeat(100_000));
        assert!(read(&stacked, None).unwrap_err().to_string().contains("nested more than"));
    }

    #[test]
    fn tokens_have_a_number_or_a_text() {
        let body = |text: &str| format!("{:?}", read(text, None).unwrap().rules[0].body.0);
        let token = |token, except| format!("{:?}", Node::Token { tokens: vec![token], except });
        assert_eq!(body("root ::= <[1000]>"), token(TokenName::Id(TokenId(1000)), false));
        assert_eq!(body("root ::= !</think>"), token(TokenName::Text("</think>".into()), true));
        assert!(read("root ::= <think> (!</think>)* </think> .*", None).is_ok());
        refused("root ::= <think", (1, 16), "expected `>`");
        refused("root ::= !think", (1, 11), "expected `<`");
        refused("root ::= <[x]>", (1, 12), "expected a number");
    }
}
