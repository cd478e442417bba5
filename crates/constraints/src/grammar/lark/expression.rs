//! The right-hand side of a definition: alternatives, sequences, repetitions.

use std::sync::Arc;

use super::super::form::{Expression, Node};
use super::cursor::Cursor;
use super::tree::{Kind, Tree};
use super::{START, document, rules};
use burn_dfa_common::Result;

/// The keyword before a condition.
const CONDITION: &str = "%if";

impl<'t> Cursor<'t> {
    /// Reads alternatives: `a | b`, also on lines of their own.
    pub(super) fn alternatives(&mut self) -> Result<Tree<'t>> {
        self.blanks();
        let at = self.at;
        let mut alternatives = vec![self.conjunction()?];
        while self.bar() {
            alternatives.push(self.conjunction()?);
        }
        Ok(one_or(alternatives, at, Kind::Choice))
    }

    /// Skips `|`, if it comes next or begins the next line.
    fn bar(&mut self) -> bool {
        let at = self.at;
        self.lines();
        let found = self.eat("|");
        if !found {
            self.at = at;
        }
        found
    }

    /// Reads `a & b`, and an alias, which names a tree and does not change the language.
    fn conjunction(&mut self) -> Result<Tree<'t>> {
        self.blanks();
        let at = self.at;
        let mut parts = vec![self.sequence()?];
        while self.eat("&") {
            parts.push(self.sequence()?);
        }
        if self.eat("->") {
            self.name("the name of an alias after `->`")?;
        }
        let tree = one_or(parts, at, Kind::And);
        if !self.eat(CONDITION) {
            return Ok(tree);
        }
        Ok(Tree { at, kind: Kind::If(Box::new(tree), self.condition()?) })
    }

    fn sequence(&mut self) -> Result<Tree<'t>> {
        self.blanks();
        let at = self.at;
        let mut parts = Vec::new();
        while !self.ends() {
            parts.push(self.item()?);
            self.blanks();
        }
        Ok(one_or(parts, at, Kind::Sequence))
    }

    fn ends(&self) -> bool {
        let rest = self.rest();
        rest.is_empty()
            || rest.starts_with(['\n', '\r', '|', '&', ')', ']', '}'])
            || rest.starts_with("->")
            || rest.starts_with(CONDITION)
    }

    /// Reads a part and its repetition count.
    fn item(&mut self) -> Result<Tree<'t>> {
        let at = self.at;
        let inner = self.complement()?;
        let Some((min, max)) = self.times()? else { return Ok(inner) };
        if max.is_some_and(|max| max < min) {
            return Err(
                self.error_at(at, format!("it is repeated at least {min} times and less: swap the counts"))
            );
        }
        Ok(Tree { at, kind: Kind::Repeat { inner: Box::new(inner), min, max } })
    }

    fn times(&mut self) -> Result<Option<(usize, Option<usize>)>> {
        let at = self.at;
        self.blanks();
        let open = self.at;
        for (sign, times) in [("?", (0, Some(1))), ("*", (0, None)), ("+", (1, None))] {
            if self.eat(sign) {
                return Ok(Some(times));
            }
        }
        if self.eat("{") {
            let times = if self.eat(",") { (0, Some(self.count()?)) } else { self.bounds()? };
            self.close("}", open)?;
            return Ok(Some(times));
        }
        if self.eat("~") {
            self.blanks();
            // Before a digit, `~` is a repetition; otherwise it starts a complement.
            if self.peek().is_some_and(|next| next.is_ascii_digit()) {
                let min = self.count()?;
                let max = if self.eat("..") { self.count()? } else { min };
                return Ok(Some((min, Some(max))));
            }
        }
        self.at = at;
        Ok(None)
    }

    /// Reads `n`, `n,` or `n,m`.
    fn bounds(&mut self) -> Result<(usize, Option<usize>)> {
        let min = self.count()?;
        if !self.eat(",") {
            return Ok((min, Some(min)));
        }
        self.blanks();
        let max = if self.rest().starts_with('}') { None } else { Some(self.count()?) };
        Ok((min, max))
    }

    fn complement(&mut self) -> Result<Tree<'t>> {
        let at = self.at;
        if !self.eat("~") {
            return self.atom();
        }
        let inner = self.deeper(|cursor| {
            cursor.blanks();
            cursor.complement()
        })?;
        Ok(Tree { at, kind: Kind::Not(Box::new(inner)) })
    }

    /// Reads a part without repetition.
    pub(super) fn atom(&mut self) -> Result<Tree<'t>> {
        self.blanks();
        let at = self.at;
        let kind = match self.peek() {
            Some('(') => return self.group(")"),
            Some('[') => Kind::Repeat { inner: Box::new(self.group("]")?), min: 0, max: Some(1) },
            Some('"') => Kind::Regular(self.string_or_range()?),
            Some('/') => Kind::Regular(self.regex()?),
            Some('<') => Kind::Foreign(self.token()?, "a token"),
            Some('@') => return Err(self.reference()),
            Some('%') => self.directive()?,
            _ if self.at_name() => {
                let name = self.name("a name")?;
                self.used(name.text)?
            }
            _ => {
                let reason = format!("expected a string, a regex, a name or a group, found {}", self.found());
                return Err(self.error(reason));
            }
        };
        Ok(Tree { at, kind })
    }

    fn group(&mut self, close: &str) -> Result<Tree<'t>> {
        let open = self.at;
        self.at += 1;
        self.bracketed(|cursor| {
            let inner = cursor.alternatives()?;
            cursor.close(close, open)?;
            Ok(inner)
        })
    }

    fn reference(&self) -> burn_dfa_common::error::Error {
        let name = self.rest()[1..].chars().take_while(|c| c.is_ascii_alphanumeric() || "_-".contains(*c));
        match name.collect::<String>() {
            name if name.is_empty() => self.error("expected the name of a grammar after `@`"),
            name => {
                self.error(format!("there is no grammar `@{name}`: write it in place, by `%lark` or `%json`"))
            }
        }
    }

    fn directive(&mut self) -> Result<Kind<'t>> {
        let at = self.at;
        let name = self.rest()[1..].chars().take_while(|c| c.is_ascii_alphabetic() || *c == '_').count();
        let name = &self.rest()[..=name];
        self.at += name.len();
        match name {
            "%json" => Ok(Kind::Foreign(self.schema()?, "`%json`")),
            "%regex" => Ok(Kind::Regular(self.structured_regex()?)),
            "%lark" => Ok(Kind::Foreign(self.nested()?, "`%lark`")),
            _ => Err(self.error_at(at, format!("`{name}` does not belong into an expression"))),
        }
    }

    /// Reads a grammar within the grammar.
    fn nested(&mut self) -> Result<Expression> {
        self.blanks();
        let open = self.at;
        self.expect("{", "after `%lark`")?;
        let (rule, brackets) = (self.rule.take(), std::mem::take(&mut self.brackets));
        let document = self.deeper(document::read_nested)?;
        self.lines();
        self.close("}", open)?;
        let grammar = rules::grammar(self.source, &document, START, open)?;
        (self.rule, self.brackets) = (rule, brackets);
        Ok(Expression(Node::Grammar(Arc::new(grammar))))
    }
}

/// The only part, or a node of all parts.
fn one_or<'t>(mut parts: Vec<Tree<'t>>, at: usize, kind: impl FnOnce(Vec<Tree<'t>>) -> Kind<'t>) -> Tree<'t> {
    match (parts.len(), parts.pop()) {
        (1, Some(only)) => only,
        (_, last) => {
            parts.extend(last);
            Tree { at, kind: kind(parts) }
        }
    }
}
