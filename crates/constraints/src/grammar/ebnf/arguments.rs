//! The arguments of macros: `("tag", rule), loop_after_dispatch=false, excludes=("end",)`.

use super::{Ebnf, word};
use crate::grammar::literal;
use crate::grammar::rules::{Reader, Syntax};
use burn_dfa_common::{Error, Result};

/// Most arguments with names.
const MAX_NAMED: usize = 8;

/// An argument and its offset.
pub(super) struct Argument<'t> {
    pub(super) at: usize,
    pub(super) value: Value<'t>,
}

pub(super) enum Value<'t> {
    Text(String),
    Number(u32),
    Truth(bool),
    Name(&'t str),
    Tuple(Vec<Argument<'t>>),
}

/// The arguments of a macro.
pub(super) struct Arguments<'t> {
    /// Offset of the arguments.
    pub(super) at: usize,
    pub(super) unnamed: Vec<Argument<'t>>,
    named: Vec<(&'t str, Argument<'t>)>,
}

/// Reads the arguments of the macro `name`, parentheses included.
pub(super) fn read<'t>(reader: &mut Reader<'t, Ebnf<'t>>, name: &str) -> Result<Arguments<'t>> {
    reader.cursor.space(true);
    let at = reader.cursor.at;
    reader.cursor.expect("(", &format!("after `{name}`"))?;
    let mut arguments = Arguments { at, unnamed: Vec::new(), named: Vec::new() };
    reader.cursor.space(true);
    if reader.cursor.eat(")") {
        return Ok(arguments);
    }
    loop {
        let argument = read_one(reader)?;
        if let Value::Name(name) = argument.value
            && reader.cursor.eat("=")
        {
            if arguments.named.iter().any(|(known, _)| *known == name) {
                return Err(reader.cursor.error(argument.at, format!("the argument `{name}` stands twice")));
            }
            if arguments.named.len() == MAX_NAMED {
                return Err(reader.cursor.error(argument.at, "more named arguments than any macro has"));
            }
            reader.cursor.space(true);
            arguments.named.push((name, read_one(reader)?));
        } else {
            arguments.unnamed.push(argument);
        }
        if !reader.cursor.eat(",") {
            break;
        }
        reader.cursor.space(true);
    }
    reader.cursor.expect(")", &format!("after the arguments of `{name}`"))?;
    Ok(arguments)
}

/// An argument, and the white space after it.
fn read_one<'t>(reader: &mut Reader<'t, Ebnf<'t>>) -> Result<Argument<'t>> {
    let at = reader.cursor.at;
    let value = match reader.cursor.peek() {
        Some('"') => Value::Text(literal::literal(&mut reader.cursor, &Ebnf::ESCAPES)?),
        Some('(') => Value::Tuple(reader.nested(at, tuple)?),
        Some(c) if c.is_ascii_digit() => Value::Number(reader.cursor.number()?),
        _ => match word(&mut reader.cursor) {
            "" => {
                let found = reader.cursor.found();
                let reason = format!("expected a text, a number, a name or a tuple, found {found}");
                return Err(reader.cursor.error(at, reason));
            }
            "true" => Value::Truth(true),
            "false" => Value::Truth(false),
            name => Value::Name(name),
        },
    };
    reader.cursor.space(true);
    Ok(Argument { at, value })
}

/// Arguments in parentheses, with a comma after the last one or without.
fn tuple<'t>(reader: &mut Reader<'t, Ebnf<'t>>) -> Result<Vec<Argument<'t>>> {
    reader.cursor.expect("(", "before a tuple")?;
    reader.cursor.space(true);
    let mut elements = Vec::new();
    while !reader.cursor.eat(")") {
        elements.push(read_one(reader)?);
        if !reader.cursor.eat(",") {
            reader.cursor.expect(")", "after a tuple")?;
            break;
        }
        reader.cursor.space(true);
    }
    Ok(elements)
}

impl<'t> Arguments<'t> {
    /// Takes the named argument, if present.
    pub(super) fn take(&mut self, name: &str) -> Option<Argument<'t>> {
        let at = self.named.iter().position(|(known, _)| *known == name)?;
        Some(self.named.swap_remove(at).1)
    }

    /// Rejects unknown named arguments.
    pub(super) fn finish(&self, reader: &Reader<'t, Ebnf<'t>>, of: &str) -> Result<()> {
        match self.named.first() {
            None => Ok(()),
            Some((name, argument)) => {
                Err(reader.cursor.error(argument.at, format!("`{of}` has no argument `{name}`")))
            }
        }
    }
}

impl<'t> Argument<'t> {
    pub(super) fn error(&self, reader: &Reader<'t, Ebnf<'t>>, reason: impl Into<String>) -> Error {
        reader.cursor.error(self.at, reason)
    }

    pub(super) fn truth(&self, reader: &Reader<'t, Ebnf<'t>>) -> Result<bool> {
        match self.value {
            Value::Truth(truth) => Ok(truth),
            _ => Err(self.error(reader, "expected `true` or `false`")),
        }
    }

    pub(super) fn text(&self, reader: &Reader<'t, Ebnf<'t>>) -> Result<&str> {
        match &self.value {
            Value::Text(text) => Ok(text),
            _ => Err(self.error(reader, "expected a text in quotes")),
        }
    }

    pub(super) fn number(&self, reader: &Reader<'t, Ebnf<'t>>) -> Result<u32> {
        match self.value {
            Value::Number(number) => Ok(number),
            _ => Err(self.error(reader, "expected the number of a token")),
        }
    }

    pub(super) fn name(&self, reader: &Reader<'t, Ebnf<'t>>) -> Result<&'t str> {
        match self.value {
            Value::Name(name) => Ok(name),
            _ => Err(self.error(reader, "expected the name of a rule")),
        }
    }
}
