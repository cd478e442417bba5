//! The grammars of these tests, and their GBNF form.

use std::fmt;

/// The body of a rule, or a part of it.
#[derive(Clone, Debug)]
pub enum Node {
    Text(String),
    /// One character from inclusive ranges.
    Class(Vec<(char, char)>),
    /// The rule with this index.
    Rule(usize),
    Sequence(Vec<Node>),
    Choice(Vec<Node>),
    /// At least and at most this number of times; `None` has no maximum.
    Repeat(Box<Node>, usize, Option<usize>),
}

/// A list of rules; the first one describes the whole text. Its [`Display`](fmt::Display) is GBNF.
#[derive(Clone, Debug)]
pub struct Grammar {
    pub rules: Vec<Node>,
}

pub fn text(text: impl Into<String>) -> Node {
    Node::Text(text.into())
}

pub fn class(ranges: &[(char, char)]) -> Node {
    Node::Class(ranges.to_vec())
}

pub fn rule(number: usize) -> Node {
    Node::Rule(number)
}

pub fn all(parts: impl Into<Vec<Node>>) -> Node {
    Node::Sequence(parts.into())
}

pub fn one(parts: impl Into<Vec<Node>>) -> Node {
    Node::Choice(parts.into())
}

impl Node {
    pub fn repeat(self, min: usize, max: Option<usize>) -> Self {
        Self::Repeat(Box::new(self), min, max)
    }

    pub fn optional(self) -> Self {
        self.repeat(0, Some(1))
    }
}

/// The precedence of an operand in an expression; operands with lower precedence need brackets.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Precedence {
    Choice,
    Sequence,
    Repeat,
}

impl fmt::Display for Grammar {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        for (number, body) in self.rules.iter().enumerate() {
            write_name(f, number)?;
            f.write_str(" ::= ")?;
            write(f, body, Precedence::Choice)?;
            f.write_str("\n")?;
        }
        Ok(())
    }
}

fn write_name(f: &mut fmt::Formatter, number: usize) -> fmt::Result {
    match number {
        0 => f.write_str("root"),
        _ => write!(f, "rule-{number}"),
    }
}

fn write(f: &mut fmt::Formatter, node: &Node, precedence: Precedence) -> fmt::Result {
    match node {
        Node::Text(text) => {
            f.write_str("\"")?;
            text.chars().try_for_each(|character| write_character(f, character, "\"\\"))?;
            f.write_str("\"")
        }
        Node::Class(ranges) => {
            f.write_str("[")?;
            for &(first, last) in ranges {
                write_character(f, first, "[]\\^-")?;
                if first < last {
                    f.write_str("-")?;
                    write_character(f, last, "[]\\^-")?;
                }
            }
            f.write_str("]")
        }
        Node::Rule(number) => write_name(f, *number),
        Node::Sequence(parts) if parts.is_empty() => f.write_str("\"\""),
        Node::Sequence(parts) => write_parts(f, parts, " ", Precedence::Sequence, precedence),
        Node::Choice(parts) => write_parts(f, parts, " | ", Precedence::Choice, precedence),
        Node::Repeat(inner, min, max) => {
            if precedence == Precedence::Repeat {
                f.write_str("(")?;
            }
            write(f, inner, Precedence::Repeat)?;
            match (min, max) {
                (0, None) => f.write_str("*"),
                (1, None) => f.write_str("+"),
                (0, Some(1)) => f.write_str("?"),
                (min, None) => write!(f, "{{{min},}}"),
                (min, Some(max)) if min == max => write!(f, "{{{min}}}"),
                (min, Some(max)) => write!(f, "{{{min},{max}}}"),
            }?;
            if precedence == Precedence::Repeat {
                f.write_str(")")?;
            }
            Ok(())
        }
    }
}

fn write_parts(
    f: &mut fmt::Formatter,
    parts: &[Node],
    between: &str,
    inside: Precedence,
    precedence: Precedence,
) -> fmt::Result {
    let brackets = precedence > inside;
    if brackets {
        f.write_str("(")?;
    }
    for (number, part) in parts.iter().enumerate() {
        if number > 0 {
            f.write_str(between)?;
        }
        write(f, part, inside)?;
    }
    if brackets {
        f.write_str(")")?;
    }
    Ok(())
}

fn write_character(f: &mut fmt::Formatter, character: char, special: &str) -> fmt::Result {
    match character {
        // All readers accept these escapes.
        '"' | '[' | ']' if special.contains(character) => write!(f, "\\{character}"),
        ' '..='~' if !special.contains(character) => write!(f, "{character}"),
        '\0'..='\x7f' => write!(f, "\\x{:02X}", character as u32),
        '\u{80}'..='\u{ffff}' => write!(f, "\\u{:04X}", character as u32),
        _ => write!(f, "\\U{:08X}", character as u32),
    }
}

#[test]
fn grammars_are_written_in_gbnf() {
    let grammar = Grammar {
        rules: vec![
            one([all([text("a\"\\\n"), rule(1).repeat(2, None)]), all([])]),
            all([
                one([text("a"), rule(0)]),
                class(&[('a', 'z'), ('^', '^'), (']', ']'), ('é', '\u{10ffff}')]),
            ]),
            text("ab").optional().repeat(1, Some(3)),
        ],
    };
    let written = "root ::= \"a\\\"\\x5C\\x0A\" rule-1{2,} | \"\"\n\
        rule-1 ::= (\"a\" | root) [a-z\\x5E\\]\\u00E9-\\U0010FFFF]\n\
        rule-2 ::= (\"ab\"?){1,3}\n";
    assert_eq!(grammar.to_string(), written);
}
