//! Rules with parameters for parts: `list{item, separator}: item (separator item)*`.

use std::collections::HashSet;

use super::cursor::Cursor;
use super::tree::{Argument, Kind, Tree, Use};
use burn_dfa_common::Result;

/// Most parameters of a template.
const MAX_PARAMETERS: usize = 64;

impl<'t> Cursor<'t> {
    /// Reads the parameters of a template, possibly none.
    pub(super) fn parameters(&mut self) -> Result<Vec<&'t str>> {
        self.blanks();
        let open = self.at;
        if !self.eat("{") {
            return Ok(Vec::new());
        }
        self.bracketed(|cursor| {
            let (mut names, mut met) = (Vec::new(), HashSet::new());
            loop {
                let name = cursor.name("the name of a parameter")?;
                let reason = match name.text {
                    text if name.capital => format!("the parameter `{text}` is written in small letters"),
                    text if !met.insert(text) => format!("the parameter `{text}` is named twice"),
                    _ if names.len() == MAX_PARAMETERS => format!("more than {MAX_PARAMETERS} parameters"),
                    text => {
                        names.push(text);
                        String::new()
                    }
                };
                if !reason.is_empty() {
                    return Err(cursor.error_at(name.at, reason));
                }
                if !cursor.eat(",") {
                    return cursor.close("}", open).map(|()| names);
                }
            }
        })
    }

    /// Reads the text after a name: the arguments of a template, or the value of a parameter.
    pub(super) fn used(&mut self, name: &'t str) -> Result<Kind<'t>> {
        let behind = self.at;
        if self.eat("::") {
            let step = Some(self.step()?);
            return Ok(Kind::Use(Box::new(Use { name, arguments: Vec::new(), step })));
        }
        self.blanks();
        let open = self.at;
        if self.eat("{") {
            self.blanks();
            // Otherwise a number of times.
            if !self.peek().is_some_and(|next| matches!(next, ',' | '+' | '-') || next.is_ascii_digit()) {
                let arguments = self.bracketed(|cursor| cursor.arguments(open))?;
                return Ok(Kind::Use(Box::new(Use { name, arguments, step: None })));
            }
        }
        self.at = behind;
        Ok(Kind::Name(name))
    }

    fn arguments(&mut self, open: usize) -> Result<Vec<Argument<'t>>> {
        let mut arguments = Vec::new();
        loop {
            self.blanks();
            let at = self.at;
            let tree = self.atom()?;
            if !matches!(tree.kind, Kind::Regular(_) | Kind::Name(_) | Kind::Use(_)) {
                let reason =
                    "an argument is a string, a regex, a range or a name: name a rule for what else it is";
                return Err(self.error_at(at, reason));
            }
            arguments.push(self.argument(tree, at));
            if arguments.len() > MAX_PARAMETERS {
                return Err(self.error_at(at, format!("more than {MAX_PARAMETERS} arguments")));
            }
            if !self.eat(",") {
                return self.close("}", open).map(|()| arguments);
            }
        }
    }

    /// The argument from `at` to the current position.
    fn argument(&mut self, tree: Tree<'t>, at: usize) -> Argument<'t> {
        let text = &self.source.text[at..self.at];
        let number = self.arguments.len();
        let number = *self.arguments.entry(text).or_insert(number);
        Argument { tree, text, number }
    }
}
