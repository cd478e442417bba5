//! The lines of a grammar: definitions and directives.

use super::common;
use super::cursor::{Cursor, Name};
use super::tree::{Definition, Document, Kind, Tree};
use burn_dfa_common::Result;

/// Reads a whole text.
pub(super) fn read<'t>(cursor: &mut Cursor<'t>) -> Result<Document<'t>> {
    let document = read_nested(cursor)?;
    if cursor.rest().is_empty() {
        return Ok(document);
    }
    Err(cursor.error("this `}` closes nothing"))
}

/// Reads up to the end of the text, or to a `}`.
pub(super) fn read_nested<'t>(cursor: &mut Cursor<'t>) -> Result<Document<'t>> {
    let mut document = Document::default();
    loop {
        cursor.lines();
        match cursor.peek() {
            None | Some('}') => return Ok(document),
            Some('%') => cursor.statement(&mut document)?,
            Some(_) => {
                let definition = cursor.definition()?;
                document.define(definition);
            }
        }
        cursor.blanks();
        if !matches!(cursor.peek(), None | Some('\n' | '\r' | '}')) {
            return Err(cursor.error(format!("expected the end of the line, found {}", cursor.found())));
        }
        cursor.rule = None;
    }
}

impl<'t> Cursor<'t> {
    fn definition(&mut self) -> Result<Definition<'t>> {
        // These prefixes affect parse trees, which are not built here.
        while self.eat("!") || self.eat("?") {}
        let Name { text: name, at, capital: terminal } =
            self.name("the name of a rule or a terminal, or a directive")?;
        self.rule = Some(name);
        let outer = std::mem::take(&mut self.depends);
        let parameters = self.parameters()?;
        let parametric = self.parameter(name, parameters.is_empty())?;
        let priority = self.priority()?;
        if terminal {
            self.check_terminal(&parameters, parametric)?;
        }
        let attributes = self.attributes()?;
        if parametric && attributes.is_whole() {
            let reason =
                "a parametric rule is not matched as a whole: give the attributes to a rule within it";
            return Err(self.error_at(at, reason));
        }
        self.expect(":", &format!("after `{name}`"))?;
        let body = self.alternatives()?;
        let reason = match std::mem::replace(&mut self.depends, outer) {
            true if !parametric => "is not parametric, and its body needs a parameter: define it as",
            false if parametric => {
                "is parametric, and nothing in it depends on the parameter: define it without"
            }
            _ => {
                return Ok(Definition {
                    name,
                    at,
                    terminal,
                    parameters,
                    parametric,
                    priority,
                    attributes,
                    body,
                });
            }
        };
        Err(self.error_at(at, format!("`{name}` {reason} `{name}::_`")))
    }

    /// Skips `::_`, if it comes next.
    fn parameter(&mut self, name: &str, alone: bool) -> Result<bool> {
        let at = self.at;
        if !self.eat("::") {
            return Ok(false);
        }
        if !alone {
            return Err(self.error_at(at, "a template has no parameter of bits beside its parameters"));
        }
        if !self.underscore() {
            return Err(self.error(format!("expected `_` after `{name}::`, found {}", self.found())));
        }
        Ok(true)
    }

    /// Reads `.7`, if it comes next.
    fn priority(&mut self) -> Result<i32> {
        if !self.eat(".") {
            return Ok(0);
        }
        self.blanks();
        let at = self.at;
        let negative = self.peek() == Some('-');
        if negative || self.peek() == Some('+') {
            self.at += 1;
        }
        let count =
            self.count().map_err(|_| self.error_at(at, "a priority is a number such as `2` or `-1`"))?;
        let count = i32::try_from(count).unwrap_or(i32::MAX);
        Ok(if negative { -count } else { count })
    }

    fn check_terminal(&self, parameters: &[&str], parametric: bool) -> Result<()> {
        let reason = if !parameters.is_empty() {
            "a terminal is no template: write a rule, whose name is in small letters"
        } else if parametric {
            "a terminal has no parameter: write a rule, whose name is in small letters"
        } else if self.rest().starts_with('[') {
            "a terminal has no attributes: give them to a rule that is this terminal"
        } else {
            return Ok(());
        };
        Err(self.error(reason))
    }

    /// Reads the definition after `%extend` or `%override`; its name must be defined already.
    fn redefine(&mut self, directive: &str, document: &mut Document<'t>) -> Result<()> {
        self.blanks();
        let given = self.definition()?;
        let Some(number) = document.number(given.name) else {
            let reason = format!(
                "`{}` is not defined before this line, so there is nothing to {}",
                given.name,
                &directive[1..]
            );
            return Err(self.error_at(given.at, reason));
        };
        if directive == "%override" {
            document.replace(number, given);
            return Ok(());
        }
        let known = &mut document.definitions[number];
        if known.parameters != given.parameters || known.parametric != given.parametric {
            return Err(
                self.error_at(given.at, format!("`{}` was defined with other parameters", given.name))
            );
        }
        if !known.attributes.is_empty() || !given.attributes.is_empty() {
            let reason =
                "a rule with attributes cannot be extended: `%override` it with the whole definition";
            return Err(self.error_at(given.at, reason));
        }
        known.extend(given.body);
        Ok(())
    }

    fn statement(&mut self, document: &mut Document<'t>) -> Result<()> {
        let at = self.at;
        let length = self.rest()[1..].chars().take_while(|c| c.is_ascii_alphabetic() || *c == '_').count();
        let name = &self.rest()[..=length];
        self.at += name.len();
        match name {
            "%ignore" => {
                let ignored = self.alternatives()?;
                document.ignored.push(ignored);
                Ok(())
            }
            "%import" => self.import(document),
            "%llguidance" | "%grammar_options" => self.options(name, &mut document.options),
            "%declare" => Err(self.error_at(at, "`%declare` is not supported: say what the terminals match")),
            "%extend" | "%override" => self.redefine(name, document),
            _ => Err(self.error_at(at, format!("`{name}` does not begin a line"))),
        }
    }

    /// Reads `common.A`, `common.A -> B` or `common (A, B)`.
    fn import(&mut self, document: &mut Document<'t>) -> Result<()> {
        self.blanks();
        let at = self.at;
        if self.rest().starts_with('.')
            || self.name("the name of a library after `%import`")?.text != "common"
        {
            return Err(self
                .error_at(at, "only `common` can be imported from: copy the definitions into the grammar"));
        }
        if self.eat(".") {
            let imported = self.name("the name of a terminal")?;
            let alias = if self.eat("->") { self.name("a name after `->`")? } else { imported };
            return self.imported(imported, alias, document);
        }
        self.blanks();
        let open = self.at;
        self.expect("(", "or `.` after `common`")?;
        self.bracketed(|cursor| {
            loop {
                let imported = cursor.name("the name of a terminal")?;
                cursor.imported(imported, imported, document)?;
                if !cursor.eat(",") {
                    return cursor.close(")", open);
                }
            }
        })
    }

    fn imported(&mut self, imported: Name<'t>, alias: Name<'t>, document: &mut Document<'t>) -> Result<()> {
        let Some(pattern) = common::pattern(imported.text) else {
            let reason = format!("`common` has no `{}`; it has {}", imported.text, common::names());
            return Err(self.error_at(imported.at, reason));
        };
        let regex = self.pattern(pattern.to_owned(), |_| imported.at)?;
        let body = Tree { at: imported.at, kind: Kind::Regular(regex) };
        document.define(Definition::of_terminal(alias.text, alias.at, body));
        Ok(())
    }
}
