//! The lines of a grammar: definitions and directives.

use super::attributes::Attributes;
use super::common;
use super::cursor::{Cursor, Name};
use super::tree::{Definition, Document, Kind, Tree};
use crate::error::Result;

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
                document.definitions.push(definition);
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
        // What they say is about trees, and none is built here.
        while self.eat("!") || self.eat("?") {}
        let Name { text: name, at, capital: terminal } =
            self.name("the name of a rule or a terminal, or a directive")?;
        self.rule = Some(name);
        self.blanks();
        let rest = self.rest();
        if rest.starts_with('{') {
            return Err(self.error("templates are not supported: write a rule for each use"));
        }
        if rest.starts_with('.') {
            return Err(self.error("priorities are not supported: a text is in the language or it is not"));
        }
        if rest.starts_with("::") {
            return Err(self.error("parametric rules are not supported: write a rule for each value"));
        }
        if terminal && rest.starts_with('[') {
            return Err(self.error("a terminal has no attributes: give them to a rule that is this terminal"));
        }
        let attributes = self.attributes()?;
        self.expect(":", &format!("after `{name}`"))?;
        let body = self.alternatives()?;
        Ok(Definition { name, at, terminal, attributes, body })
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
            "%extend" | "%override" => {
                Err(self.error_at(at, format!("`{name}` is not supported: write the whole definition")))
            }
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
        let (name, at, attributes) = (alias.text, alias.at, Attributes::default());
        document.definitions.push(Definition { name, at, terminal: true, attributes, body });
        Ok(())
    }
}
