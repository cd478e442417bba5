//! Shared syntax of GBNF and EBNF: names, alternatives, sequences, groups and repetitions.

use std::sync::Arc;

use super::builder::GrammarBuilder;
use super::cursor::Cursor;
use super::form::{Expression, Grammar, Node};
use super::literal::{self, Escapes};
use burn_dfa_automata::FastMap;
use burn_dfa_common::Result;

/// Deepest nesting of groups, and of repetitions of repetitions.
const MAX_DEPTH: usize = 200;

/// The differences between the two syntaxes.
pub(super) trait Syntax<'t>: Sized {
    /// Whether line ends are white space outside of groups too.
    const LINES: bool;
    /// Whether nothing at all may denote the empty text.
    const EMPTY: bool;
    /// Whether a repetition may be repeated without parentheses.
    const STACKED: bool;
    const ESCAPES: Escapes;

    /// Reads an item other than a literal, a class or a group; `None` if no such item begins here.
    fn item(reader: &mut Reader<'t, Self>) -> Result<Option<Expression>>;

    /// Whether a sequence ends here although an item could follow.
    fn ends(reader: &Reader<'t, Self>) -> bool;

    /// Skips an explicit notation for a missing upper bound of a repetition.
    fn unbounded(_: &mut Cursor<'t>) -> bool {
        false
    }
}

/// A part of a rule, and its nesting depth.
pub(super) struct Part {
    pub(super) expression: Expression,
    height: usize,
}

/// A grammar as far as it was read.
pub(super) struct Reader<'t, S> {
    pub(super) cursor: Cursor<'t>,
    pub(super) syntax: S,
    builder: GrammarBuilder,
    /// By name: the offset of the first reference, and its rule.
    references: FastMap<&'t str, (usize, Option<&'t str>)>,
    /// Number of open groups.
    depth: usize,
}

impl<'t, S: Syntax<'t>> Reader<'t, S> {
    /// # Errors
    /// The text exceeds the size limit of grammars.
    pub(super) fn new(text: &'t str, syntax: S) -> Result<Self> {
        let (builder, references) = (GrammarBuilder::default(), FastMap::default());
        Ok(Self { cursor: Cursor::new(text)?, syntax, builder, references, depth: 0 })
    }

    /// Alternatives, possibly only one.
    pub(super) fn choice(&mut self, nested: bool) -> Result<Part> {
        let mut parts = vec![self.sequence(nested)?];
        while self.cursor.eat("|") {
            self.cursor.space(true);
            parts.push(self.sequence(nested)?);
        }
        Ok(one_or(parts, Node::Choice))
    }

    fn sequence(&mut self, nested: bool) -> Result<Part> {
        let mut parts = Vec::new();
        while let Some(part) = self.item(nested)? {
            parts.push(self.repeated(part, nested)?);
        }
        let at = self.cursor.at;
        if matches!(self.cursor.peek(), Some('*' | '+' | '?' | '{')) {
            let reason = if parts.is_empty() {
                "a repetition with nothing to repeat"
            } else {
                "a repetition of a repetition; put the inner one into parentheses"
            };
            return Err(self.cursor.error(at, reason));
        }
        if parts.is_empty() && !S::EMPTY {
            let found = self.cursor.found();
            let reason =
                format!("expected something to match, found {found}; write `\"\"` for the empty text");
            return Err(self.cursor.error(at, reason));
        }
        Ok(one_or(parts, Node::Sequence))
    }

    fn item(&mut self, nested: bool) -> Result<Option<Part>> {
        if S::ends(self) {
            return Ok(None);
        }
        let leaf = match self.cursor.peek() {
            Some('"') => Some(Expression::literal(&literal::literal(&mut self.cursor, &S::ESCAPES)?)),
            Some('[') => Some(literal::class(&mut self.cursor, &S::ESCAPES)?),
            Some('(') => {
                let part = self.group()?;
                self.cursor.space(nested || S::LINES);
                return Ok(Some(part));
            }
            _ => S::item(self)?,
        };
        self.cursor.space(nested || S::LINES);
        Ok(leaf.map(|expression| Part { expression, height: 0 }))
    }

    fn group(&mut self) -> Result<Part> {
        let start = self.cursor.at;
        self.cursor.expect("(", "before a group")?;
        self.cursor.space(true);
        if !S::EMPTY && self.cursor.eat(")") {
            return Ok(Part { expression: Expression::literal(""), height: 0 });
        }
        let mut part = self.nested(start, |reader| reader.choice(true))?;
        self.cursor.expect(")", "after the group")?;
        part.height = self.higher(start, part.height)?;
        Ok(part)
    }

    /// Reads the text in parentheses that open at `start`.
    pub(super) fn nested<T>(&mut self, start: usize, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.depth = self.higher(start, self.depth)?;
        let inner = read(self)?;
        self.depth -= 1;
        Ok(inner)
    }

    fn higher(&self, start: usize, height: usize) -> Result<usize> {
        if height == MAX_DEPTH {
            let reason = format!("nested more than {MAX_DEPTH} deep; give the inner part a rule of its own");
            return Err(self.cursor.error(start, reason));
        }
        Ok(height + 1)
    }

    /// Reads the repetition count of `part`.
    fn repeated(&mut self, mut part: Part, nested: bool) -> Result<Part> {
        loop {
            let start = self.cursor.at;
            let (min, max) = match self.cursor.peek() {
                Some('*') => (0, None),
                Some('+') => (1, None),
                Some('?') => (0, Some(1)),
                Some('{') => self.counts(nested)?,
                _ => return Ok(part),
            };
            if !matches!(self.cursor.text().as_bytes()[start], b'{') {
                self.cursor.next();
            }
            self.cursor.space(nested || S::LINES);
            let inner = Arc::new(part.expression);
            let height = self.higher(start, part.height)?;
            part = Part { expression: Expression(Node::Repeat { inner, min, max }), height };
            if !S::STACKED {
                return Ok(part);
            }
        }
    }

    /// `{m}`, `{m,}` or `{m,n}`.
    fn counts(&mut self, nested: bool) -> Result<(usize, Option<usize>)> {
        let start = self.cursor.at;
        let lines = nested || S::LINES;
        self.cursor.expect("{", "before a count")?;
        self.cursor.space(lines);
        if self.cursor.peek() == Some(',') {
            return Err(self.cursor.error(self.cursor.at, "the lower count is missing; write `{0,`"));
        }
        let min = self.cursor.number()? as usize;
        self.cursor.space(lines);
        let mut max = Some(min);
        if self.cursor.eat(",") {
            self.cursor.space(lines);
            max = match self.cursor.peek() {
                Some('}') => None,
                _ if S::unbounded(&mut self.cursor) => None,
                _ => Some(self.cursor.number()? as usize),
            };
            self.cursor.space(lines);
        }
        self.cursor.expect("}", "after the counts")?;
        if max.is_some_and(|max| max < min) {
            return Err(self.cursor.error(start, "counts that are out of order"));
        }
        Ok((min, max))
    }

    /// The rule with the name at `offset`.
    pub(super) fn reference(&mut self, name: &'t str, offset: usize) -> Expression {
        self.references.entry(name).or_insert((offset, self.cursor.rule));
        self.builder.rule(name)
    }

    /// Checks that the rule with its name at `offset` is new.
    pub(super) fn begin(&mut self, name: &'t str, offset: usize) -> Result<()> {
        self.cursor.rule = Some(name);
        if self.builder.is_defined(name) {
            let reason = format!("the rule `{name}` is defined twice; join the two with `|`");
            return Err(self.cursor.error(offset, reason));
        }
        self.builder.meet(name);
        Ok(())
    }

    /// Defines the current rule.
    pub(super) fn define(&mut self, name: &str, part: Part) -> Result<()> {
        self.cursor.rule = None;
        self.builder.define(name, part.expression)
    }

    /// The grammar of all rules read.
    ///
    /// # Errors
    /// A referenced rule, or the rule `start`, is not defined.
    pub(super) fn finish(mut self, start: &str) -> Result<(Grammar, Cursor<'t>, S)> {
        if let Some(name) = self.builder.undefined() {
            let (offset, rule) = self.references.get(name).copied().unwrap_or_default();
            self.cursor.rule = rule;
            return Err(self.cursor.error(offset, format!("the rule `{name}` is not defined")));
        }
        if !self.builder.is_defined(start) {
            let reason = format!("the rule `{start}`, where texts begin, is not defined");
            return Err(self.cursor.error(self.cursor.at, reason));
        }
        Ok((self.builder.finish(start)?, self.cursor, self.syntax))
    }
}

/// The only part, or a node of all parts.
fn one_or(mut parts: Vec<Part>, all: fn(Vec<Expression>) -> Node) -> Part {
    if parts.len() == 1 {
        return parts.remove(0);
    }
    let height = parts.iter().map(|part| part.height).max().unwrap_or(0);
    Part { expression: Expression(all(parts.into_iter().map(|part| part.expression).collect())), height }
}
