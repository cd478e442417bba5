//! Attributes in brackets after the name of a rule: `[lazy]`, `[suffix="."]`, `[capture="x"]`.

use super::super::builder::MAX_TOKENS;
use super::cursor::{Cursor, Name};
use super::tree::{Attributes, End, Kind};
use burn_dfa_common::Result;

impl<'t> Cursor<'t> {
    /// Reads the attributes of a rule, possibly none.
    pub(super) fn attributes(&mut self) -> Result<Attributes<'t>> {
        let mut attributes = Attributes::default();
        let open = self.at;
        if !self.eat("[") {
            return Ok(attributes);
        }
        self.bracketed(|cursor| {
            loop {
                cursor.blanks();
                if cursor.rest().starts_with(']') {
                    break;
                }
                cursor.attribute(&mut attributes)?;
                if !cursor.eat(",") {
                    break;
                }
            }
            cursor.close("]", open)
        })?;
        if let Some(at) = attributes.offset_of("stop_capture")
            && attributes.end.is_none()
            && !attributes.whole
        {
            return Err(self.error_at(at, "`stop_capture` needs `stop` or `suffix`"));
        }
        Ok(attributes)
    }

    fn attribute(&mut self, attributes: &mut Attributes<'t>) -> Result<()> {
        let Name { text: name, at, .. } = self.name("the name of an attribute")?;
        if attributes.offset_of(name).is_some() {
            return Err(self.error_at(at, format!("`{name}` is given twice")));
        }
        attributes.met.push((name, at));
        match name {
            "lazy" => attributes.lazy = true,
            "suffix" | "stop" => self.end(attributes, name, at)?,
            "max_chars" => {
                self.equals(name)?;
                attributes.max_chars = Some(self.count()?);
            }
            "temperature" => {
                self.equals(name)?;
                attributes.temperature = true;
                self.temperature()?;
            }
            "capture" => {
                if self.eat("=") {
                    self.capture(name)?;
                }
            }
            "stop_capture" => {
                self.equals(name)?;
                self.capture(name)?;
            }
            "max_tokens" => {
                self.equals(name)?;
                let max_tokens = u32::try_from(self.count()?)
                    .ok()
                    .filter(|max_tokens| (1..=MAX_TOKENS).contains(max_tokens));
                attributes.max_tokens = max_tokens;
                if max_tokens.is_none() {
                    let reason = format!("`max_tokens` is a number from 1 to {MAX_TOKENS}");
                    return Err(self.error_at(at, reason));
                }
            }
            _ => {
                let known = "capture, lazy, max_chars, max_tokens, stop, stop_capture, suffix, temperature";
                return Err(self.error_at(at, format!("there is no attribute `{name}`; there are: {known}")));
            }
        }
        Ok(())
    }

    fn equals(&mut self, name: &str) -> Result<()> {
        self.expect("=", &format!("after `{name}`"))
    }

    /// Reads the value of `suffix` or `stop`.
    fn end(&mut self, attributes: &mut Attributes<'t>, name: &str, at: usize) -> Result<()> {
        self.equals(name)?;
        if attributes.end.is_some() || attributes.whole {
            return Err(self.error_at(at, "`stop` and `suffix` do not go together"));
        }
        self.blanks();
        let start = self.at;
        let begins = self.peek().is_some_and(|c| matches!(c, '"' | '/')) || self.rest().starts_with("%regex");
        if !begins && !self.at_name() {
            let reason =
                format!("expected a string, a regex or a terminal after `{name}=`, found {}", self.found());
            return Err(self.error(reason));
        }
        let value = self.atom()?;
        match &value.kind {
            Kind::Name(rule) if !rule.bytes().any(|byte| byte.is_ascii_uppercase()) => {
                Err(self.error_at(start, format!("`{name}=` takes a terminal, and `{rule}` names a rule")))
            }
            text if text.text().is_some_and(<[u8]>::is_empty) => {
                attributes.whole = name == "stop";
                if attributes.whole {
                    return Ok(());
                }
                Err(self.error_at(start, "`suffix=` must not be empty"))
            }
            _ => {
                attributes.end = Some(End { value, stop: name == "stop" });
                Ok(())
            }
        }
    }

    fn temperature(&mut self) -> Result<()> {
        self.blanks();
        let rest = self.rest();
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && !"+-.".contains(c)).unwrap_or(rest.len());
        let text = &rest[..end];
        let number =
            text.bytes().any(|byte| byte.is_ascii_digit()).then(|| text.parse::<f64>().ok()).flatten();
        if !number.is_some_and(|number| number.is_finite() && number >= 0.0) {
            return Err(self.error("a temperature is a number from 0 on"));
        }
        self.at += end;
        Ok(())
    }

    fn capture(&mut self, name: &str) -> Result<()> {
        self.blanks();
        let at = self.at;
        let text = self.plain_string(name)?;
        if text.is_empty() {
            return Err(self.error_at(at, format!("`{name}=` must not be empty")));
        }
        if !text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte)) {
            let reason = format!("`{name}=` may have letters, digits, `_`, `-` and `.` only");
            return Err(self.error_at(at, reason));
        }
        Ok(())
    }
}
