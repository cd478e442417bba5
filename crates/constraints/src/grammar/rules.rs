//! Shared syntax of GBNF and EBNF: names, alternatives, sequences, groups and repetitions.

use std::collections::HashMap;
use std::sync::Arc;

use super::builder::GrammarBuilder;
use super::cursor::Cursor;
use super::form::{Expression, Grammar, Node};
use super::literal::{self, Escapes};
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

/// A parsed expression, and its nesting depth.
pub(super) struct ParsedExpr {
    pub(super) expression: Expression,
    height: usize,
}

/// A grammar as far as it was read.
pub(super) struct Reader<'t, S> {
    pub(super) cursor: Cursor<'t>,
    pub(super) syntax: S,
    builder: GrammarBuilder,
    /// By name: the offset of the first reference, and its rule.
    references: HashMap<&'t str, (usize, Option<&'t str>)>,
    /// Number of open groups.
    depth: usize,
}

impl<'t, S: Syntax<'t>> Reader<'t, S> {
    /// # Errors
    /// The text exceeds the size limit of grammars.
    pub(super) fn new(text: &'t str, syntax: S) -> Result<Self> {
        let (builder, references) = (GrammarBuilder::default(), HashMap::new());
        Ok(Self { cursor: Cursor::new(text)?, syntax, builder, references, depth: 0 })
    }

    /// Alternatives, possibly only one.
    pub(super) fn choice(&mut self, nested: bool) -> Result<ParsedExpr> {
        let mut operands = vec![self.sequence(nested)?];
        while self.cursor.eat("|") {
            self.cursor.space(true);
            operands.push(self.sequence(nested)?);
        }
        Ok(one_or(operands, Node::Choice))
    }

    fn sequence(&mut self, nested: bool) -> Result<ParsedExpr> {
        let mut operands = Vec::new();
        while let Some(parsed) = self.item(nested)? {
            operands.push(self.repeated(parsed, nested)?);
        }
        let at = self.cursor.at;
        if matches!(self.cursor.peek(), Some('*' | '+' | '?' | '{')) {
            let reason = if operands.is_empty() {
                "a repetition with nothing to repeat"
            } else {
                "a repetition of a repetition; put the inner one into parentheses"
            };
            return Err(self.cursor.error(at, reason));
        }
        if operands.is_empty() && !S::EMPTY {
            let found = self.cursor.found();
            let reason =
                format!("expected something to match, found {found}; write `\"\"` for the empty text");
            return Err(self.cursor.error(at, reason));
        }
        Ok(one_or(operands, Node::Sequence))
    }

    fn item(&mut self, nested: bool) -> Result<Option<ParsedExpr>> {
        if S::ends(self) {
            return Ok(None);
        }
        let leaf = match self.cursor.peek() {
            Some('"') => Some(Expression::literal(&literal::literal(&mut self.cursor, &S::ESCAPES)?)),
            Some('[') => Some(literal::class(&mut self.cursor, &S::ESCAPES)?),
            Some('(') => {
                let parsed = self.group()?;
                self.cursor.space(nested || S::LINES);
                return Ok(Some(parsed));
            }
            _ => S::item(self)?,
        };
        self.cursor.space(nested || S::LINES);
        Ok(leaf.map(|expression| ParsedExpr { expression, height: 0 }))
    }

    fn group(&mut self) -> Result<ParsedExpr> {
        let start = self.cursor.at;
        self.cursor.expect("(", "before a group")?;
        self.cursor.space(true);
        if !S::EMPTY && self.cursor.eat(")") {
            return Ok(ParsedExpr { expression: Expression::literal(""), height: 0 });
        }
        let mut parsed = self.nested(start, |reader| reader.choice(true))?;
        self.cursor.expect(")", "after the group")?;
        parsed.height = self.higher(start, parsed.height)?;
        Ok(parsed)
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

    /// Reads the repetition count of `parsed`.
    fn repeated(&mut self, mut parsed: ParsedExpr, nested: bool) -> Result<ParsedExpr> {
        loop {
            let start = self.cursor.at;
            let (min, max) = match self.cursor.peek() {
                Some('*') => (0, None),
                Some('+') => (1, None),
                Some('?') => (0, Some(1)),
                Some('{') => self.counts(nested)?,
                _ => return Ok(parsed),
            };
            if !matches!(self.cursor.text().as_bytes()[start], b'{') {
                self.cursor.next();
            }
            self.cursor.space(nested || S::LINES);
            let inner = Arc::new(parsed.expression);
            let height = self.higher(start, parsed.height)?;
            parsed = ParsedExpr { expression: Expression(Node::Repeat { inner, min, max }), height };
            if !S::STACKED {
                return Ok(parsed);
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
    pub(super) fn define(&mut self, name: &str, parsed: ParsedExpr) -> Result<()> {
        self.cursor.rule = None;
        self.builder.define(name, parsed.expression)
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

/// The only operand, or a node of all operands.
fn one_or(mut operands: Vec<ParsedExpr>, all: fn(Vec<Expression>) -> Node) -> ParsedExpr {
    if operands.len() == 1 {
        return operands.remove(0);
    }
    let height = operands.iter().map(|parsed| parsed.height).max().unwrap_or(0);
    ParsedExpr {
        expression: Expression(all(operands.into_iter().map(|parsed| parsed.expression).collect())),
        height,
    }
}
