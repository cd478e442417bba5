//! Lowers formats to the intermediate form of grammars.
//!
//! A format becomes an expression. Schemas become rules, so a schema in several tags is lowered
//! once. Free text excludes the end of the innermost enclosing tag.

use std::collections::HashMap;
use std::sync::Arc;

use super::StructuralTag;
use super::format::{
    AnyText, Begin, Dispatch, End, Format, SchemaFormat, Style, Tag, TagsWithSeparator, TokenDispatch,
    TokenRef, TokenTriggeredTags, TriggeredTags,
};
use super::free_text::{self, FreeText, MAX_ENTRIES, Undispatched, automaton, check_size};
use super::location::Location;
use super::read::MAX_NESTING;
use super::style::Schemas;
use crate::grammar::{NO_BOUND, read_regex};
use crate::{Constraint, Expression, Grammar, GrammarBuilder, JsonOptions, RegexOptions, Syntax};
use burn_dfa_common::Result;
use burn_dfa_vocabulary::TokenId;

/// Lowers a structural tag.
///
/// # Errors
/// The tag cannot be honored; the error has the JSON pointer.
pub(super) fn lower(tag: &StructuralTag, options: &JsonOptions) -> Result<Grammar> {
    let builder = Grammar::builder();
    let mut lowerer = Lowerer {
        schemas: Schemas::new(options),
        builder,
        free: HashMap::new(),
        counted: HashMap::new(),
        dispatches: HashMap::new(),
        entries: 0,
        marks: 0,
        shared: 0,
    };
    // The first rule referenced is the first rule shown.
    lowerer.builder.rule(ROOT);
    let body = lowerer.format(&tag.format, &Location::ROOT.name("format"), &Ends::default())?;
    lowerer.builder.define(ROOT, body)?;
    lowerer.builder.finish(ROOT)
}

const ROOT: &str = "root";

/// Most bytes of the triggers and excluded texts of all free text in a structural tag.
const MAX_ALL_MARKS: usize = 1 << 24;

/// The ends of the innermost tag.
#[derive(Clone, Default)]
struct Ends {
    /// Non-empty texts.
    texts: Vec<String>,
    tokens: Vec<TokenRef>,
}

struct Lowerer<'o> {
    builder: GrammarBuilder,
    schemas: Schemas<'o>,
    /// The rules of free text, by its excluded texts.
    free: HashMap<Vec<String>, Expression>,
    /// Free text with counted tokens, by its excluded texts, the most characters and the most
    /// tokens.
    counted: HashMap<(Vec<String>, Option<u32>, u32), Expression>,
    /// Free text with triggers, by the triggers and its excluded texts.
    dispatches: HashMap<(Vec<String>, Vec<String>), Arc<FreeText>>,
    /// Entries of the tables of free text with triggers.
    entries: usize,
    /// Bytes of the triggers and excluded texts of all free text.
    marks: usize,
    /// Number of rules for expressions with several uses.
    shared: usize,
}

impl Lowerer<'_> {
    fn format(&mut self, format: &Format, at: &Location, ends: &Ends) -> Result<Expression> {
        if at.depth() > MAX_NESTING {
            return Err(at.error(format!("formats are nested more than {MAX_NESTING} levels deep")));
        }
        Ok(match format {
            Format::ConstString { value } => Expression::literal(value),
            Format::JsonSchema(schema) => self.schema(schema, at)?,
            Format::QwenXmlParameter { json_schema } => {
                let schema = SchemaFormat::new(json_schema.clone()).with_style(Style::QwenXml);
                self.schema(&schema, at)?
            }
            Format::Grammar { grammar } => {
                text_of(Constraint::grammar(Syntax::Ebnf, grammar), &at.name("grammar"))?
            }
            Format::GrammarText(grammar) => {
                let regexes = RegexOptions::new().with_ascii_classes(true);
                text_of(grammar.read(&regexes), &at.name("definition"))?
            }
            Format::Regex { pattern } => {
                let regex = read_regex(pattern).map_err(|reason| at.name("pattern").error(reason))?;
                Expression::regex(regex)
            }
            Format::AnyText(text) => self.any_text(text, at, ends)?,
            Format::Sequence { elements } => Expression::sequence(self.elements(elements, at, ends)?),
            Format::Or { elements } => Expression::choice(self.elements(elements, at, ends)?),
            Format::Optional { content } => self.content(content, at, ends)?.repeat(0, Some(1)),
            Format::Plus { content } => self.content(content, at, ends)?.repeat(1, None),
            Format::Star { content } => self.content(content, at, ends)?.repeat(0, None),
            Format::Repeat { min, max, content } => {
                let max = match *max {
                    -1 => None,
                    max => {
                        Some(u32::try_from(max).map_err(|_| at.name("max").error("wants a count, or -1"))?)
                    }
                };
                if max.is_some_and(|max| max < *min) {
                    return Err(at.name("max").error("less than `min`"));
                }
                let content = self.content(content, at, ends)?;
                if max == Some(0) {
                    return Ok(Expression::literal(""));
                }
                content.repeat(*min as usize, max.map(|max| max as usize))
            }
            Format::Tag(tag) => self.tag(tag, at)?,
            Format::TriggeredTags(tags) => self.triggered(tags, at, ends)?,
            Format::TagsWithSeparator(tags) => self.separated(tags, at)?,
            Format::Dispatch(dispatch) => self.dispatch(dispatch, at, ends)?,
            Format::Token { token } => any_of([token]),
            Format::ExcludeToken { exclude_tokens } => none_of(exclude_tokens.iter().chain(&ends.tokens)),
            Format::AnyTokens { exclude_tokens, max_tokens } => {
                let max = bound(*max_tokens);
                if max == Some(0) {
                    return Ok(Expression::literal(""));
                }
                none_of(exclude_tokens.iter().chain(&ends.tokens)).repeat(0, max.map(|max| max as usize))
            }
            Format::TokenTriggeredTags(tags) => self.token_triggered(tags, at, ends)?,
            Format::TokenDispatch(dispatch) => self.token_dispatch(dispatch, at, ends)?,
        })
    }

    fn schema(&mut self, schema: &SchemaFormat, at: &Location) -> Result<Expression> {
        self.schemas.lower(schema, at, &mut self.builder)
    }

    fn content(&mut self, content: &Format, at: &Location, ends: &Ends) -> Result<Expression> {
        self.format(content, &at.name("content"), ends)
    }

    fn elements(&mut self, elements: &[Format], at: &Location, ends: &Ends) -> Result<Vec<Expression>> {
        let at = at.name("elements");
        if elements.is_empty() {
            return Err(at.error("wants at least one element"));
        }
        elements.iter().enumerate().map(|(i, element)| self.format(element, &at.index(i), ends)).collect()
    }

    fn any_text(&mut self, text: &AnyText, at: &Location, ends: &Ends) -> Result<Expression> {
        if text.max_tokens == Some(0) {
            return Ok(Expression::literal(""));
        }
        let excludes = joined(&text.excludes, &ends.texts);
        let max = bound(text.max_chars);
        check_marks(&[], &text.excludes, at)?;
        let Some(tokens) = bound(text.max_tokens) else {
            return self.uncounted(excludes, max, at);
        };
        let key = (excludes.clone(), max, tokens);
        if let Some(known) = self.counted.get(&key) {
            return Ok(known.clone());
        }
        let counted = self.uncounted(excludes, max, at)?.counted(at.pointer(), tokens);
        self.counted.insert(key, counted.clone());
        Ok(counted)
    }

    /// Free text without some texts, with at most `max` characters.
    fn uncounted(&mut self, excludes: Vec<String>, max: Option<u32>, at: &Location) -> Result<Expression> {
        let Some(max) = max else { return self.free(excludes, at) };
        self.spend(&[], &excludes, at)?;
        Ok(automaton(free_text::at_most(max, &excludes)))
    }

    /// Free text without some texts.
    fn free(&mut self, excludes: Vec<String>, at: &Location) -> Result<Expression> {
        if let Some(known) = self.free.get(&excludes) {
            return Ok(known.clone());
        }
        self.spend(&[], &excludes, at)?;
        let text = automaton(free_text::without(&excludes));
        let name = format!("text_{}", self.free.len() + 1);
        let rule = self.builder.rule(&name);
        self.builder.define(&name, text)?;
        self.free.insert(excludes, rule.clone());
        Ok(rule)
    }

    /// Rejects free text with too many marks, or too many marks in total: the end of a tag is a
    /// mark of all free text in it.
    fn spend(&mut self, triggers: &[String], excludes: &[String], at: &Location) -> Result<()> {
        check_size(triggers, excludes, at)?;
        self.marks += triggers.iter().chain(excludes).map(String::len).sum::<usize>();
        if self.marks > MAX_ALL_MARKS {
            return Err(at.error(format!(
                "more than {MAX_ALL_MARKS} bytes of triggers and excluded texts, those of each free text counted; what ends a tag is excluded from all text in it"
            )));
        }
        Ok(())
    }

    /// Turns an expression with several uses into a rule, so nested expressions do not grow with
    /// each level.
    fn shared(&mut self, expression: Expression) -> Result<Expression> {
        self.shared += 1;
        let name = format!("tags_{}", self.shared);
        let rule = self.builder.rule(&name);
        self.builder.define(&name, expression)?;
        Ok(rule)
    }

    fn tag(&mut self, tag: &Tag, at: &Location) -> Result<Expression> {
        let begin = match &tag.begin {
            Begin::Text(begin) => Expression::literal(begin),
            Begin::Token(token) => any_of([&token.token]),
        };
        Ok(Expression::sequence([begin, self.inside(tag, at)?]))
    }

    /// The content of a tag, and its end.
    fn inside(&mut self, tag: &Tag, at: &Location) -> Result<Expression> {
        let (ends, end) = match &tag.end {
            End::Text(end) => self.ends(std::slice::from_ref(end)),
            End::Texts(texts) if texts.is_empty() => {
                return Err(at.name("end").error("wants at least one text"));
            }
            End::Texts(texts) => self.ends(texts),
            End::Token(token) => {
                let tokens = vec![token.token.clone()];
                (Ends { texts: Vec::new(), tokens }, any_of([&token.token]))
            }
        };
        if ends.texts.is_empty() && ends.tokens.is_empty() && is_unlimited(&tag.content) {
            return Err(at
                .name("end")
                .error("the content may go on without end; let the tag end with a text that is not empty"));
        }
        Ok(Expression::sequence([self.content(&tag.content, at, &ends)?, end]))
    }

    fn ends(&self, texts: &[String]) -> (Ends, Expression) {
        let end = Expression::choice(texts.iter().map(|text| Expression::literal(text)));
        let texts = texts.iter().filter(|text| !text.is_empty()).cloned().collect();
        (Ends { texts, tokens: Vec::new() }, end)
    }

    fn triggered(&mut self, tags: &TriggeredTags, at: &Location, ends: &Ends) -> Result<Expression> {
        let TriggeredTags { triggers, tags, at_least_one, stop_after_first, excludes } = tags;
        check_marks(triggers, excludes, at)?;
        let (triggers_at, tags_at) = (at.name("triggers"), at.name("tags"));
        if triggers.is_empty() {
            return Err(triggers_at.error("wants at least one trigger"));
        }
        if tags.is_empty() {
            return Err(tags_at.error("wants at least one tag"));
        }
        // The triggers by their text, and their lengths.
        let mut numbers: HashMap<&str, Vec<usize>> = HashMap::new();
        for (i, trigger) in triggers.iter().enumerate() {
            numbers.entry(trigger).or_default().push(i);
        }
        let mut lengths: Vec<usize> = triggers.iter().map(String::len).collect();
        lengths.sort_unstable();
        lengths.dedup();
        check_size(triggers, excludes, at)?;
        // The expressions after each trigger, and whole tags.
        let mut behind: Vec<Vec<Expression>> = vec![Vec::new(); triggers.len()];
        let mut whole = Vec::with_capacity(tags.len());
        for (i, tag) in tags.iter().enumerate() {
            let at = tags_at.index(i);
            let Begin::Text(begin) = &tag.begin else {
                return Err(at.name("begin").error("a trigger is a text; use `token_triggered_tags`"));
            };
            let begins = lengths.iter().filter_map(|&length| begin.get(..length));
            let mut of_tag = begins.filter_map(|begin| numbers.get(begin)).flatten().copied();
            let wrong = |reason| at.name("begin").error(reason);
            let number = of_tag.next().ok_or_else(|| wrong("no trigger is how it begins"))?;
            if of_tag.next().is_some() {
                return Err(wrong("several triggers are how it begins; leave one of them"));
            }
            let mut inside = self.inside(tag, &at)?;
            if *at_least_one && !*stop_after_first {
                inside = self.shared(inside)?;
            }
            let rest = Expression::literal(&begin[triggers[number].len()..]);
            behind[number].push(Expression::sequence([rest, inside.clone()]));
            if *at_least_one {
                whole.push(Expression::sequence([Expression::literal(begin), inside]));
            }
        }
        if *at_least_one && *stop_after_first {
            return Ok(Expression::choice(whole));
        }
        if let Some(i) = behind.iter().position(Vec::is_empty) {
            return Err(triggers_at.index(i).error("no tag begins with this trigger"));
        }
        let calls: Vec<(String, Expression)> =
            triggers.iter().cloned().zip(behind.into_iter().map(Expression::choice)).collect();
        let excludes = joined(excludes, &ends.texts);
        let free = self.dispatched(&calls, excludes, !stop_after_first, &triggers_at)?;
        Ok(if *at_least_one { Expression::sequence([Expression::choice(whole), free]) } else { free })
    }

    fn dispatch(&mut self, dispatch: &Dispatch, at: &Location, _: &Ends) -> Result<Expression> {
        let at_rules = at.name("rules");
        if dispatch.rules.is_empty() {
            return Err(at_rules.error("wants at least one rule"));
        }
        let mut calls: Vec<(String, Vec<Expression>)> = Vec::new();
        let mut numbers: HashMap<&str, usize> = HashMap::new();
        for (i, (pattern, format)) in dispatch.rules.iter().enumerate() {
            let called = self.format(format, &at_rules.index(i).index(1), &Ends::default())?;
            let number = *numbers.entry(pattern).or_insert_with(|| {
                calls.push((pattern.clone(), Vec::new()));
                calls.len() - 1
            });
            calls[number].1.push(called);
        }
        let patterns: Vec<String> = calls.iter().map(|(pattern, _)| pattern.clone()).collect();
        check_marks(&patterns, &dispatch.excludes, at)?;
        let calls: Vec<(String, Expression)> =
            calls.into_iter().map(|(pattern, called)| (pattern, Expression::choice(called))).collect();
        self.dispatched(&calls, dispatch.excludes.clone(), dispatch.again, &at_rules)
    }

    /// Free text with triggers and their calls; `at` is the location of the triggers.
    fn dispatched(
        &mut self,
        calls: &[(String, Expression)],
        excludes: Vec<String>,
        again: bool,
        at: &Location,
    ) -> Result<Expression> {
        let triggers: Vec<String> = calls.iter().map(|(trigger, _)| trigger.clone()).collect();
        let key = (triggers, excludes);
        let free = match self.dispatches.get(&key) {
            Some(known) => Arc::clone(known),
            None => {
                self.spend(&key.0, &key.1, at)?;
                let free = Arc::new(FreeText::new(&key.0, &key.1));
                self.entries = self.entries.saturating_add(free.entries());
                if self.entries > MAX_ENTRIES {
                    return Err(at.error(
                        "all free text in which triggers are found takes too much: let tags share triggers",
                    ));
                }
                self.dispatches.insert(key.clone(), Arc::clone(&free));
                free
            }
        };
        let triggers = key.0;
        let dispatched = free.dispatched(calls).map_err(|error| match error {
            Undispatched::Never(number) => at.error(format!(
                "the trigger {:?} is never found: another trigger, an excluded text or the end of the tag around it is complete before it is",
                triggers[number]
            )),
            Undispatched::TooMany => {
                at.error("triggers overlap one another in too many ways; let them begin with the same text")
            }
        })?;
        let text = free.text();
        Ok(if again {
            Expression::sequence([dispatched.repeat(0, None), text])
        } else {
            Expression::choice([dispatched, text])
        })
    }

    fn separated(&mut self, tags: &TagsWithSeparator, at: &Location) -> Result<Expression> {
        let at = at.name("tags");
        if tags.tags.is_empty() {
            return Err(at.error("wants at least one tag"));
        }
        let each = tags.tags.iter().enumerate().map(|(i, tag)| self.tag(tag, &at.index(i)));
        let one = Expression::choice(each.collect::<Result<Vec<_>>>()?);
        let tagged = if tags.stop_after_first {
            one
        } else {
            let one = self.shared(one)?;
            let more = Expression::sequence([Expression::literal(&tags.separator), one.clone()]);
            Expression::sequence([one, more.repeat(0, None)])
        };
        Ok(if tags.at_least_one { tagged } else { tagged.repeat(0, Some(1)) })
    }

    fn token_triggered(
        &mut self,
        tags: &TokenTriggeredTags,
        at: &Location,
        ends: &Ends,
    ) -> Result<Expression> {
        let TokenTriggeredTags { trigger_tokens, tags, exclude_tokens, at_least_one, stop_after_first } =
            tags;
        let (triggers_at, tags_at) = (at.name("trigger_tokens"), at.name("tags"));
        if trigger_tokens.is_empty() {
            return Err(triggers_at.error("wants at least one trigger"));
        }
        if tags.is_empty() {
            return Err(tags_at.error("wants at least one tag"));
        }
        if let Some(i) = trigger_tokens.iter().position(|token| exclude_tokens.contains(token)) {
            return Err(triggers_at.index(i).error("this token is excluded; leave one of the two out"));
        }
        let mut tagged = Vec::with_capacity(tags.len());
        for (i, tag) in tags.iter().enumerate() {
            let at = tags_at.index(i);
            match &tag.begin {
                Begin::Token(begin) if trigger_tokens.contains(&begin.token) => {}
                Begin::Token(_) => {
                    return Err(at.name("begin").error("this token is no trigger"));
                }
                Begin::Text(_) => {
                    return Err(at.name("begin").error("a trigger is a token; use `triggered_tags`"));
                }
            }
            tagged.push(self.tag(tag, &at)?);
        }
        let tagged = Expression::choice(tagged);
        if *at_least_one && *stop_after_first {
            return Ok(tagged);
        }
        let free = none_of(trigger_tokens.iter().chain(exclude_tokens).chain(&ends.tokens));
        Ok(match (*at_least_one, *stop_after_first) {
            (false, true) => Expression::sequence([free.repeat(0, None), tagged.repeat(0, Some(1))]),
            (true, _) => {
                let tagged = self.shared(tagged)?;
                let more = Expression::choice([free, tagged.clone()]).repeat(0, None);
                Expression::sequence([tagged, more])
            }
            (false, false) => Expression::choice([free, tagged]).repeat(0, None),
        })
    }

    fn token_dispatch(&mut self, dispatch: &TokenDispatch, at: &Location, _: &Ends) -> Result<Expression> {
        let at = at.name("rules");
        if dispatch.rules.is_empty() {
            return Err(at.error("wants at least one rule"));
        }
        let mut called = Vec::with_capacity(dispatch.rules.len());
        for (i, (token, format)) in dispatch.rules.iter().enumerate() {
            let at = at.index(i);
            if dispatch.exclude_tokens.contains(token) {
                return Err(at.error("this token is excluded; leave one of the two out"));
            }
            let format = self.format(format, &at.index(1), &Ends::default())?;
            called.push(Expression::sequence([any_of([token]), format]));
        }
        let patterns = dispatch.rules.iter().map(|(token, _)| token);
        let free = none_of(patterns.chain(&dispatch.exclude_tokens));
        Ok(if dispatch.again {
            called.push(free);
            Expression::choice(called).repeat(0, None)
        } else {
            let called = Expression::choice(called).repeat(0, Some(1));
            Expression::sequence([free.repeat(0, None), called])
        })
    }
}

/// The texts of a grammar.
///
/// # Errors
/// The grammar is rejected, or is on tokens.
fn text_of(grammar: Result<Constraint>, at: &Location) -> Result<Expression> {
    let grammar = grammar.map_err(|error| at.error(error.to_string()))?;
    if grammar.as_grammar().is_some_and(Grammar::names_tokens) {
        return Err(at.error("it names tokens: write them around it, as formats on tokens"));
    }
    Ok(Expression::constraint(grammar))
}

/// A count, unless it stands for no bound.
fn bound(max: Option<u32>) -> Option<u32> {
    max.filter(|&max| max < NO_BOUND)
}

/// Whether a format contains text without an explicit end.
fn is_unlimited(format: &Format) -> bool {
    match format {
        Format::AnyText(text) => {
            text.excludes.is_empty() && bound(text.max_chars).is_none() && bound(text.max_tokens).is_none()
        }
        Format::TriggeredTags(tags) => {
            tags.excludes.is_empty() && !(tags.at_least_one && tags.stop_after_first)
        }
        Format::Dispatch(dispatch) => dispatch.excludes.is_empty(),
        Format::Sequence { elements } | Format::Or { elements } => elements.iter().any(is_unlimited),
        Format::Optional { content }
        | Format::Plus { content }
        | Format::Star { content }
        | Format::Repeat { content, .. } => is_unlimited(content),
        _ => false,
    }
}

/// Rejects empty triggers and excluded texts.
fn check_marks(triggers: &[String], excludes: &[String], at: &Location) -> Result<()> {
    if triggers.iter().any(String::is_empty) {
        return Err(at.error("a trigger is empty; write the text that it waits for"));
    }
    match excludes.iter().position(String::is_empty) {
        Some(i) => Err(at.name("excludes").index(i).error("an excluded text is empty; leave it out")),
        None => Ok(()),
    }
}

/// Texts of both lists, each once and in order.
fn joined(some: &[String], others: &[String]) -> Vec<String> {
    let mut all = [some, others].concat();
    all.sort_unstable();
    all.dedup();
    all
}

fn any_of<'t>(tokens: impl IntoIterator<Item = &'t TokenRef>) -> Expression {
    named(tokens, false)
}

fn none_of<'t>(tokens: impl IntoIterator<Item = &'t TokenRef>) -> Expression {
    named(tokens, true)
}

fn named<'t>(tokens: impl IntoIterator<Item = &'t TokenRef>, except: bool) -> Expression {
    let mut ids = Vec::new();
    let mut names = Vec::new();
    for token in tokens {
        match token {
            TokenRef::Id(id) => ids.push(TokenId(*id)),
            TokenRef::Text(name) => names.push(name.clone()),
        }
    }
    Expression::tokens(ids, names, except)
}
