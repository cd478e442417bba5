//! Grammars for display: expressions down to operands without rules, which are text.

use std::collections::HashSet;
use std::fmt::Write;

use super::form::{Expression, Grammar, Lexing, Node, TokenName};

/// An expression of a [`Grammar`]; see [`Grammar::shapes`].
///
/// ```
/// use burn_dfa_tokens::constraint::{Grammar, Shape, Syntax};
///
/// let grammar = Grammar::read(Syntax::Gbnf, "root ::= [a-z] \"\\n\" root?", None)?;
/// let (name, shape) = &grammar.shapes()[0];
/// assert_eq!(name, "root");
/// let Shape::Sequence(parts) = shape else { panic!("{shape:?}") };
/// assert_eq!(parts[0], Shape::Text("[a-z]".into()));
/// assert_eq!(parts[1], Shape::Text(r#""\n""#.into()));
/// assert_eq!(
///     parts[2],
///     Shape::Repeat { inner: Shape::Name("root".into()).into(), min: 0, max: Some(1) }
/// );
/// # Ok::<(), burn_dfa_tokens::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Shape {
    /// An operand without rules, in words: a text in quotes, a class of characters in brackets, a
    /// regex, another constraint.
    Text(String),
    /// The rule or the terminal with this name.
    Name(String),
    /// All operands, in order.
    Sequence(Vec<Self>),
    /// One of the operands.
    Choice(Vec<Self>),
    /// From `min` to `max` repetitions; no upper bound if `max` is `None`.
    Repeat {
        /// The repeated operand.
        inner: Box<Self>,
        /// The least number of times.
        min: usize,
        /// The greatest.
        max: Option<usize>,
    },
}

impl Grammar {
    /// The rules by name: the start rule, then the others in order of first occurrence, then the
    /// named terminals.
    pub fn shapes(&self) -> Vec<(String, Shape)> {
        let mut shapes = Shapes::new(self);
        let rules = self.rules_from_start().map(|rule| &self.rules[rule]);
        let mut all: Vec<(String, Shape)> =
            rules.map(|rule| (rule.name.clone(), shapes.of(&rule.body))).collect();
        // Terminals within terminals were put in for their names when the grammar was read.
        all.append(&mut shapes.terminals);
        all
    }

    /// All rules, the start rule first.
    pub(super) fn rules_from_start(&self) -> impl Iterator<Item = usize> {
        let others = (0..self.rules.len()).filter(|&rule| rule != self.start);
        std::iter::once(self.start).chain(others)
    }

    /// The ignored text between terminals, if texts are cut into terminals and anything is ignored.
    pub fn ignored(&self) -> Option<Shape> {
        let Lexing::Longest { ignored: Some(ignored), .. } = &self.lexing else { return None };
        let mut shapes = Shapes::new(self);
        Some(shapes.of(ignored))
    }
}

struct Shapes<'g> {
    grammar: &'g Grammar,
    terminals: Vec<(String, Shape)>,
    known: HashSet<String>,
    /// The remaining number of expressions to show: terminals within terminals are shared, so the
    /// number of shapes may grow exponentially.
    left: usize,
}

/// Most expressions shown; an ellipsis replaces the rest.
const MAX_SHOWN: usize = 1 << 20;

impl<'g> Shapes<'g> {
    fn new(grammar: &'g Grammar) -> Self {
        Self { grammar, terminals: Vec::new(), known: HashSet::new(), left: MAX_SHOWN }
    }

    fn of(&mut self, expression: &Expression) -> Shape {
        self.left = self.left.saturating_sub(1);
        if self.left == 0 {
            return Shape::Text("…".to_owned());
        }
        match &expression.0 {
            Node::Rule(rule) => Shape::Name(self.grammar.rules[*rule].name.clone()),
            Node::Sequence(parts) => Shape::Sequence(parts.iter().map(|part| self.of(part)).collect()),
            Node::Choice(parts) => Shape::Choice(parts.iter().map(|part| self.of(part)).collect()),
            Node::Repeat { inner, min, max } => {
                Shape::Repeat { inner: self.of(inner).into(), min: *min, max: *max }
            }
            Node::Terminal(terminal) => {
                let Some(name) = &terminal.name else { return self.of(&terminal.body) };
                if self.known.insert(name.clone()) {
                    let shape = self.of(&terminal.body);
                    self.terminals.push((name.clone(), shape));
                }
                Shape::Name(name.clone())
            }
            Node::And(parts) => Shape::Text(self.joined(parts, " & ")),
            Node::Not(inner) => Shape::Text(format!("not {}", self.text(inner))),
            Node::Literal(bytes) => Shape::Text(literal(bytes)),
            Node::Class(ranges) => Shape::Text(class(ranges)),
            Node::Regex(regex) => Shape::Text(format!("/{}/", regex.text().unwrap_or("a pattern".into()))),
            Node::Substring(words) => Shape::Text(format!("a part of {:?}", words.concat())),
            Node::Counted(counted) => self.of(&counted.body),
            Node::Bounded(bounded) => self.of(&bounded.body),
            Node::Constraint(_) => Shape::Text("another constraint".to_owned()),
            Node::Grammar(_) => Shape::Text("another grammar".to_owned()),
            Node::Token { tokens, except } => {
                let names = tokens.iter().map(|token| match token {
                    TokenName::Id(id) => format!("<[{}]>", id.0),
                    TokenName::Text(text) => text.clone(),
                });
                let names = names.collect::<Vec<_>>().join(" | ");
                Shape::Text(if *except { format!("any token but {names}") } else { names })
            }
        }
    }

    /// In one line.
    fn text(&mut self, expression: &Expression) -> String {
        self.left = self.left.saturating_sub(1);
        if self.left == 0 {
            return "…".to_owned();
        }
        match &expression.0 {
            Node::Sequence(parts) => format!("({})", self.joined(parts, " ")),
            Node::Choice(parts) => format!("({})", self.joined(parts, " | ")),
            Node::Repeat { inner, min, max } => self.text(inner) + &times(*min, *max),
            _ => match self.of(expression) {
                Shape::Text(text) | Shape::Name(text) => text,
                // A terminal without a name.
                _ => "a terminal".to_owned(),
            },
        }
    }

    fn joined(&mut self, parts: &[Expression], between: &str) -> String {
        parts.iter().map(|part| self.text(part)).collect::<Vec<_>>().join(between)
    }
}

/// The suffix for a repetition count: `*`, `{2,5}`.
pub(super) fn times(min: usize, max: Option<usize>) -> String {
    match (min, max) {
        (0, None) => "*".to_owned(),
        (1, None) => "+".to_owned(),
        (0, Some(1)) => "?".to_owned(),
        (min, None) => format!("{{{min},}}"),
        (min, Some(max)) if min == max => format!("{{{min}}}"),
        (min, Some(max)) => format!("{{{min},{max}}}"),
    }
}

/// A text in quotes, with bytes outside of UTF-8 as `\xFF`.
pub(super) fn literal(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => format!("{text:?}"),
        Err(_) => format!("\"{}\"", bytes.escape_ascii()),
    }
}

/// A class in brackets, with a circumflex if this makes it shorter.
pub(super) fn class(ranges: &[(char, char)]) -> String {
    let inside = merged(ranges);
    let outside = others(&inside);
    let (negation, runs) = match (inside.last(), outside.len()) {
        (_, 0) => return "any character".to_owned(),
        (Some(&(_, char::MAX)), _) => ("^", outside),
        _ => ("", inside),
    };
    let mut text = format!("[{negation}");
    for (first, last) in runs {
        character(&mut text, first);
        if first != last {
            if u32::from(last) > u32::from(first) + 1 {
                text.push('-');
            }
            character(&mut text, last);
        }
    }
    text + "]"
}

/// Sorted ranges, merged if they touch or overlap.
fn merged(ranges: &[(char, char)]) -> Vec<(char, char)> {
    let mut ranges: Vec<(char, char)> =
        ranges.iter().copied().filter(|(first, last)| first <= last).collect();
    ranges.sort_unstable();
    let mut merged: Vec<(char, char)> = Vec::new();
    for (first, last) in ranges {
        match merged.last_mut() {
            Some(before) if before.1 == char::MAX || first <= after(before.1) => {
                before.1 = before.1.max(last)
            }
            _ => merged.push((first, last)),
        }
    }
    merged
}

/// The complement of sorted ranges.
fn others(ranges: &[(char, char)]) -> Vec<(char, char)> {
    let mut others = Vec::new();
    let mut next = Some(char::MIN);
    for &(first, last) in ranges {
        if let Some(from) = next.filter(|&from| from < first) {
            others.push((from, before(first)));
        }
        next = (last < char::MAX).then(|| after(last));
    }
    others.extend(next.map(|from| (from, char::MAX)));
    others
}

/// The next character, or the last character itself.
fn after(c: char) -> char {
    (c..=char::MAX).nth(1).unwrap_or(char::MAX)
}

/// The previous character, or the first character itself.
fn before(c: char) -> char {
    (char::MIN..=c).nth_back(1).unwrap_or(char::MIN)
}

/// A character within brackets.
fn character(text: &mut String, c: char) {
    let _never = match c {
        '\\' | '[' | ']' | '^' | '-' => write!(text, "\\{c}"),
        ' ' => write!(text, "␣"),
        '\'' | '"' => write!(text, "{c}"),
        // Control characters and other invisible ones, as Rust writes them.
        _ => write!(text, "{}", c.escape_debug()),
    };
}

#[cfg(test)]
mod tests {
    use super::super::Syntax;
    use super::*;

    #[test]
    fn classes_are_written_as_they_are_read() {
        assert_eq!(class(&[('a', 'c'), ('d', 'z'), ('_', '_')]), "[_a-z]");
        assert_eq!(class(&[('\0', '!'), ('#', char::MAX)]), r#"[^"]"#);
        assert_eq!(class(&[('\0', char::MAX)]), "any character");
        assert_eq!(class(&[('\0', '\u{D7FF}'), ('\u{E000}', char::MAX)]), "any character");
        assert_eq!(class(&[(']', ']'), (' ', ' '), ('\n', '\n')]), "[\\n␣\\]]");
        assert_eq!(class(&[]), "[]");
    }

    #[test]
    fn terminals_follow_the_rules() {
        let text = "start: NAME \"=\" NUMBER\nNAME: /[a-z]+/\nNUMBER: \"0\"..\"9\"\n%ignore \" \"";
        let grammar = Grammar::read(Syntax::Lark, text, None).unwrap();
        let shapes = grammar.shapes();
        let names: Vec<&str> = shapes.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["start", "NAME", "NUMBER"]);
        let Shape::Sequence(parts) = &shapes[0].1 else { panic!("{shapes:?}") };
        assert_eq!(parts[0], Shape::Name("NAME".into()));
        assert_eq!(grammar.ignored(), Some(Shape::Text("\" \"".into())));
    }
}
