//! EBNF, as XGrammar reads it.
//!
//! White space and line ends have no meaning, except that the name of a rule is the first word of
//! its line. Names consist of letters, digits, `_`, `-` and `.`. A look-ahead `(= …)` may follow
//! the body of a rule. It is a hint for XGrammar's caches, not a condition, so it is parsed,
//! checked and ignored.
//!
//! - `attributes` reads the attributes in brackets after the name of a rule, `rule[lazy] ::= …`;
//! - `arguments` and `macros` read `Regex(…)`, `TagDispatch(…)` and similar; `pattern` translates
//!   regexes, and `dispatch` builds the free text between triggers;
//! - `regular` applies attributes that need set operations to rules.
//!
//! Reference: XGrammar's guide and parser, `docs/defining_structures/ebnf_grammar.md` and
//! `cpp/grammar_parser.cc`.

mod arguments;
mod attributes;
mod dispatch;
mod macros;
mod pattern;
mod regular;
#[cfg(test)]
mod tests;

use self::attributes::Attributes;
use super::cursor::Cursor;
use super::form::{Expression, Grammar, Node};
use super::literal::Escapes;
use super::rules::{Reader, Syntax};
use crate::Regex;
use burn_dfa_common::Result;

/// Reads a regular expression as XGrammar does.
///
/// # Errors
/// The reason why the pattern is rejected.
pub(crate) fn regex(pattern: &str) -> std::result::Result<Regex, String> {
    pattern::read(pattern, pattern::Flags::default())
}

/// Reads a grammar with the start rule `start`, or `root`.
///
/// # Errors
/// The text is malformed or has no exact meaning here; the error has the location.
pub(super) fn read(text: &str, start: Option<&str>) -> Result<Grammar> {
    let mut reader = Reader::new(text, Ebnf::default())?;
    reader.cursor.space(true);
    while reader.cursor.peek().is_some() {
        rule(&mut reader)?;
    }
    let (mut grammar, cursor, syntax) = reader.finish(start.unwrap_or("root"))?;
    regular::restrict(&mut grammar, cursor, &syntax.restricted)?;
    Ok(grammar)
}

/// Other properties of the grammar than its rules.
#[derive(Default)]
struct Ebnf<'t> {
    /// Rules with attributes that change their language.
    restricted: Vec<Restricted<'t>>,
    /// Whether a look-ahead is being read.
    in_lookahead: bool,
}

/// A rule with attributes that change its language.
struct Restricted<'t> {
    name: &'t str,
    offset: usize,
    attributes: Attributes,
}

impl<'t> Syntax<'t> for Ebnf<'t> {
    const LINES: bool = true;
    const EMPTY: bool = false;
    const STACKED: bool = false;
    const ESCAPES: Escapes = Escapes {
        characters: &[
            ('"', '"'),
            ('\'', '\''),
            ('?', '?'),
            ('\\', '\\'),
            ('/', '/'),
            ('a', '\x07'),
            ('b', '\x08'),
            ('e', '\x1b'),
            ('f', '\x0c'),
            ('n', '\n'),
            ('r', '\r'),
            ('t', '\t'),
            ('v', '\x0b'),
            ('0', '\0'),
        ],
        in_class: "^$\\.*+?()[]{}|/-",
        long_hex: true,
        lines: false,
        any: true,
    };

    fn item(reader: &mut Reader<'t, Self>) -> Result<Option<Expression>> {
        let at = reader.cursor.at;
        let name = word(&mut reader.cursor);
        match name {
            "" => Ok(None),
            "true" | "false" => {
                Err(reader.cursor.error(at, format!("`{name}` is a truth value and no name of a rule")))
            }
            _ => match macros::read(reader, name, at)? {
                Some(expression) => Ok(Some(expression)),
                None => Ok(Some(reader.reference(name, at))),
            },
        }
    }

    fn ends(reader: &Reader<'t, Self>) -> bool {
        reader.cursor.rest().starts_with("(=") || is_definition(reader.cursor.rest())
    }

    fn unbounded(cursor: &mut Cursor<'t>) -> bool {
        cursor.eat("-1")
    }
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')
}

/// A name; empty if no name comes next.
fn word<'t>(cursor: &mut Cursor<'t>) -> &'t str {
    if cursor.peek().is_some_and(|c| c.is_ascii_digit()) { "" } else { cursor.eat_while(is_name) }
}

/// Whether a definition comes next: a name, attributes in brackets or none, and `::=`.
fn is_definition(text: &str) -> bool {
    let after = text.trim_start_matches(is_name);
    if after.len() == text.len() || text.starts_with(|c: char| c.is_ascii_digit()) {
        return false;
    }
    if let Some(after) = after.strip_prefix('[').and_then(attributes::after) {
        return after.trim_start_matches([' ', '\t']).starts_with("::=");
    }
    let mut rest = after.trim_start_matches([' ', '\t', '\r', '\n']);
    while rest.starts_with('#') {
        let end = rest.find(['\r', '\n']).unwrap_or(rest.len());
        rest = rest[end..].trim_start_matches([' ', '\t', '\r', '\n']);
    }
    rest.starts_with("::=")
}

/// A rule, and the white space after it.
fn rule<'t>(reader: &mut Reader<'t, Ebnf<'t>>) -> Result<()> {
    let at = reader.cursor.at;
    if !is_definition(reader.cursor.rest()) {
        let reason = format!("{} means nothing here; a rule is written `name ::= …`", reader.cursor.found());
        return Err(reader.cursor.error(at, reason));
    }
    let name = word(&mut reader.cursor);
    reader.begin(name, at)?;
    let before = reader.cursor.text()[..at].trim_end_matches([' ', '\t']);
    if !before.is_empty() && !before.ends_with(['\r', '\n']) {
        let reason = format!("the rule `{name}` does not begin its line; put it onto a line of its own");
        return Err(reader.cursor.error(at, reason));
    }
    if matches!(name, "true" | "false") {
        return Err(reader.cursor.error(at, format!("`{name}` is a truth value and no name of a rule")));
    }
    let attributes = attributes::read(&mut reader.cursor, at)?;
    reader.cursor.space(true);
    reader.cursor.expect("::=", "after the name of a rule")?;
    reader.cursor.space(true);
    let body = reader.choice(false)?;
    if reader.cursor.rest().starts_with("(=") {
        lookahead(reader)?;
    }
    if reader.cursor.peek().is_some() && !is_definition(reader.cursor.rest()) {
        let reason = format!("{} means nothing here", reader.cursor.found());
        return Err(reader.cursor.error(reader.cursor.at, reason));
    }
    if attributes != Attributes::default() {
        reader.syntax.restricted.push(Restricted { name, offset: at, attributes });
    }
    reader.define(name, body)
}

/// Reads a look-ahead, restricted to XGrammar's syntax for it.
fn lookahead<'t>(reader: &mut Reader<'t, Ebnf<'t>>) -> Result<()> {
    let start = reader.cursor.at;
    reader.cursor.expect("(=", "before a look-ahead")?;
    reader.cursor.space(true);
    reader.syntax.in_lookahead = true;
    let ahead = reader.nested(start, |reader| reader.choice(true))?;
    reader.syntax.in_lookahead = false;
    reader.cursor.expect(")", "after the look-ahead")?;
    reader.cursor.space(true);
    let refused = match ahead.expression.0 {
        Node::Choice(_) => "alternatives",
        Node::Literal(bytes) if bytes.is_empty() => "the empty text",
        _ => return Ok(()),
    };
    Err(reader
        .cursor
        .error(start, format!("a look-ahead for {refused}, which XGrammar does not take; leave it out")))
}
