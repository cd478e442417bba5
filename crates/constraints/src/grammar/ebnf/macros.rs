//! Macros: items in the form of a function with arguments.

use std::sync::Arc;

use super::Ebnf;
use super::arguments::{self, Argument, Arguments};
use super::{dispatch, pattern};
use crate::grammar::form::{Expression, Node, TokenName};
use crate::grammar::rules::Reader;
use burn_dfa_common::Result;
use burn_dfa_vocabulary::TokenId;

/// Most triggers and excluded texts of a `TagDispatch`.
const MAX_TEXTS: usize = 1024;

/// Reads the arguments of the macro `name` at `at`; `None` if no macro has this name.
pub(super) fn read<'t>(
    reader: &mut Reader<'t, Ebnf<'t>>,
    name: &'t str,
    at: usize,
) -> Result<Option<Expression>> {
    let build = match name {
        "Token" => token,
        "ExcludeToken" => exclude_token,
        "TokenTagDispatch" => token_tag_dispatch,
        "Regex" => regex,
        "Substring" => substring,
        "TagDispatch" => tag_dispatch,
        _ => return Ok(None),
    };
    if reader.syntax.in_lookahead && matches!(name, "Regex" | "Substring" | "TagDispatch") {
        let reason = format!("XGrammar does not take `{name}` in a look-ahead; leave the look-ahead out");
        return Err(reader.cursor.error(at, reason));
    }
    let mut arguments = arguments::read(reader, name)?;
    let expression = build(reader, &mut arguments)?;
    arguments.finish(reader, name)?;
    Ok(Some(expression))
}

fn token<'t>(reader: &mut Reader<'t, Ebnf<'t>>, arguments: &mut Arguments<'t>) -> Result<Expression> {
    Ok(any_token(&ids(reader, arguments)?))
}

fn exclude_token<'t>(reader: &mut Reader<'t, Ebnf<'t>>, arguments: &mut Arguments<'t>) -> Result<Expression> {
    Ok(other_token(&ids(reader, arguments)?))
}

fn ids<'t>(reader: &Reader<'t, Ebnf<'t>>, arguments: &Arguments<'t>) -> Result<Vec<u32>> {
    if arguments.unnamed.is_empty() {
        return Err(reader.cursor.error(arguments.at, "expected the number of a token, or several"));
    }
    arguments.unnamed.iter().map(|argument| argument.number(reader)).collect()
}

fn any_token(ids: &[u32]) -> Expression {
    Expression(Node::Token { tokens: names(ids), except: false })
}

fn other_token(ids: &[u32]) -> Expression {
    Expression(Node::Token { tokens: names(ids), except: true })
}

fn names(ids: &[u32]) -> Vec<TokenName> {
    let mut ids = ids.to_vec();
    ids.sort_unstable();
    ids.dedup();
    ids.into_iter().map(|id| TokenName::Id(TokenId(id))).collect()
}

/// Any tokens but the excluded ones; each trigger token is followed by its rule.
fn token_tag_dispatch<'t>(
    reader: &mut Reader<'t, Ebnf<'t>>,
    arguments: &mut Arguments<'t>,
) -> Result<Expression> {
    let excludes = excludes(reader, arguments)?;
    let mut excludes: Vec<u32> =
        excludes.iter().map(|argument| argument.number(reader)).collect::<Result<_>>()?;
    excludes.sort_unstable();
    let mut triggers = Vec::new();
    let mut calls = Vec::new();
    for (trigger, rule, at) in pairs(reader, arguments)? {
        let id = trigger.number(reader)?;
        if excludes.binary_search(&id).is_ok() {
            let reason = format!("the token {id} is a trigger and excluded; leave one of the two out");
            return Err(trigger.error(reader, reason));
        }
        triggers.push(id);
        calls.push(Expression::sequence([any_token(&[id]), reader.reference(rule, at)]));
    }
    let free = other_token(&[triggers, excludes].concat());
    Ok(if loops(reader, arguments)? {
        calls.push(free);
        Expression::choice(calls).repeat(0, None)
    } else {
        calls.push(Expression::literal(""));
        Expression::sequence([free.repeat(0, None), Expression::choice(calls)])
    })
}

fn tag_dispatch<'t>(reader: &mut Reader<'t, Ebnf<'t>>, arguments: &mut Arguments<'t>) -> Result<Expression> {
    let text = |argument: &Argument<'t>, reader: &Reader<'t, Ebnf<'t>>| match argument.text(reader)? {
        "" => Err(argument.error(reader, "a trigger or excluded text is not empty")),
        text => Ok(text.to_owned()),
    };
    let excludes = excludes(reader, arguments)?;
    let excludes: Vec<String> =
        excludes.iter().map(|argument| text(argument, reader)).collect::<Result<_>>()?;
    if excludes.len() + arguments.unnamed.len() > MAX_TEXTS {
        let reason =
            format!("more than {MAX_TEXTS} triggers and excluded texts; join those that begin alike");
        return Err(reader.cursor.error(arguments.at, reason));
    }
    let mut calls = Vec::new();
    for (trigger, rule, at) in pairs(reader, arguments)? {
        let tag = text(&trigger, reader)?;
        if let Some(exclude) = excludes.iter().find(|exclude| tag.starts_with(*exclude)) {
            let reason = format!(
                "the excluded text \"{}\" is how this trigger begins; leave one of the two out",
                exclude.escape_debug()
            );
            return Err(trigger.error(reader, reason));
        }
        calls.push((tag, reader.reference(rule, at)));
    }
    for name in ["stop_eos", "stop_str"] {
        if let Some(argument) = arguments.take(name) {
            let reason = format!(
                "XGrammar has no `{name}` any more; write what ends the text behind `TagDispatch`, and exclude it"
            );
            return Err(argument.error(reader, reason));
        }
    }
    Ok(dispatch::free_text(&calls, &excludes, loops(reader, arguments)?))
}

/// The unnamed arguments, each a trigger and the name of a rule with its offset.
fn pairs<'t>(
    reader: &Reader<'t, Ebnf<'t>>,
    arguments: &mut Arguments<'t>,
) -> Result<Vec<(Argument<'t>, &'t str, usize)>> {
    let unnamed = std::mem::take(&mut arguments.unnamed);
    unnamed
        .into_iter()
        .map(|argument| {
            let (at, reason) = (argument.at, "expected a pair of a trigger and a rule, `(trigger, rule)`");
            let arguments::Value::Tuple(elements) = argument.value else {
                return Err(reader.cursor.error(at, reason));
            };
            let Ok([trigger, rule]) = <[_; 2]>::try_from(elements) else {
                return Err(reader.cursor.error(at, reason));
            };
            Ok((trigger, rule.name(reader)?, rule.at))
        })
        .collect()
}

fn excludes<'t>(reader: &Reader<'t, Ebnf<'t>>, arguments: &mut Arguments<'t>) -> Result<Vec<Argument<'t>>> {
    match arguments.take("excludes") {
        None => Ok(Vec::new()),
        Some(Argument { value: arguments::Value::Tuple(elements), .. }) => Ok(elements),
        Some(argument) => Err(argument.error(reader, "expected a tuple in parentheses")),
    }
}

fn loops<'t>(reader: &Reader<'t, Ebnf<'t>>, arguments: &mut Arguments<'t>) -> Result<bool> {
    arguments.take("loop_after_dispatch").map_or(Ok(true), |argument| argument.truth(reader))
}

fn regex<'t>(reader: &mut Reader<'t, Ebnf<'t>>, arguments: &mut Arguments<'t>) -> Result<Expression> {
    let [argument] = &arguments.unnamed[..] else {
        return Err(reader.cursor.error(arguments.at, "`Regex` has one unnamed argument, the pattern"));
    };
    let text = argument.text(reader)?.to_owned();
    let at = argument.at;
    let flags = match arguments.take("flags") {
        None => pattern::Flags::default(),
        Some(argument) => {
            pattern::Flags::read(argument.text(reader)?).map_err(|reason| argument.error(reader, reason))?
        }
    };
    let regex = pattern::read(&text, flags).map_err(|reason| reader.cursor.error(at, reason))?;
    let regex = Expression(Node::Regex(Arc::new(regex)));
    let within_json = arguments.take("json_string").map_or(Ok(false), |argument| argument.truth(reader))?;
    if !within_json {
        return Ok(regex);
    }
    // Characters of a JSON string without an escape.
    let plain = [(' ', '!'), ('#', '['), (']', char::MAX)];
    let plain = Expression(Node::Class(plain.to_vec())).repeat(0, None);
    Ok(Expression(Node::And(vec![regex, plain])))
}

fn substring<'t>(reader: &mut Reader<'t, Ebnf<'t>>, arguments: &mut Arguments<'t>) -> Result<Expression> {
    let chunks = arguments.unnamed.iter().map(|argument| argument.text(reader).map(str::to_owned));
    let chunks: Vec<String> = chunks.collect::<Result<_>>()?;
    Ok(Expression(Node::Substring(chunks.into())))
}
