//! The names of undeclared properties.

use std::rc::Rc;

use super::markup::Kinds;
use super::network::{Emitter, Words};
use crate::Regex;
use crate::json_schema::PlanId;
use burn_dfa_automata::{ByteDfa, ByteStateId, Expr, Op, Rows, Run};
use burn_dfa_common::{Error, Result, limits::Meter};

/// The undeclared names of XML styles: without a pattern or a schema for names; with one, in styles
/// that escape no characters; in styles that escape `&` and `"`; and in styles that escape all
/// special characters.
const USUAL: &str = "[a-zA-Z_][a-zA-Z0-9_]*";
const ALLOWED: &str = "[^\\x00- \"&<>=\\x7f]+";
const QUOTED: &str = "[^\\x00- <>=\\x7f]+";
const ESCAPED: &str = "[^\\x00]+";

impl Emitter<'_, '_> {
    /// The undeclared names of an object with these outcomes of the plan of names, as they are
    /// written, with their first state; `None` if there are none.
    pub(super) fn other_names(
        &mut self,
        object: PlanId,
        names: PlanId,
        outcomes: &[u32],
    ) -> Result<Option<Words>> {
        let key = (object, names, outcomes.to_vec());
        if let Some(known) = self.names.get(&key) {
            return Ok(known.clone());
        }
        let written = self
            .written_names(object, names, outcomes)?
            .map(|names| Rc::new((Rows::from(&names), names.start().0)));
        self.names.insert(key, written.clone());
        Ok(written)
    }

    fn written_names(&mut self, object: PlanId, names: PlanId, outcomes: &[u32]) -> Result<Option<ByteDfa>> {
        let meter = self.meter;
        let Some(all) = self.planned.strings(names, outcomes)? else { return Ok(None) };
        let universe = match self.markup.kinds {
            Kinds::Nested => ESCAPED,
            _ if self.planned.has_all_names(names) => USUAL,
            Kinds::Type => QUOTED,
            _ => ALLOWED,
        };
        let mut written = all.product(&pattern(universe, meter)?, Op::Intersection, meter)?;
        if let Some(object) = &self.planned.get(object).object {
            let declared = object.names.iter().map(|name| name.as_bytes().to_vec()).collect();
            let declared = Expr::Literals(declared).determinize(meter)?;
            written = written.product(&declared, Op::Difference, meter)?;
        }
        let escapes = self.markup.escapes();
        if !escapes.is_empty() {
            written = escaped(&written, escapes, meter)?;
        }
        if let Some(free) = &self.styled.free {
            written = written.product(&*free.lower(meter)?, Op::Intersection, meter)?;
        }
        Ok((!written.is_empty()).then_some(written))
    }
}

/// The words of an automaton with some bytes replaced by texts; each text begins with `&`.
fn escaped(words: &ByteDfa, escapes: &[(u8, &str)], meter: &Meter) -> Result<ByteDfa> {
    // A state is a state of `words` and the part of a text read so far.
    let rows = Rows::explore((words.start(), ""), meter, |(state, read), found, runs| {
        for byte in 0..=u8::MAX {
            let begun = |text: &str| text.starts_with(read) && text.as_bytes().get(read.len()) == Some(&byte);
            let next = match escapes.iter().find(|(_, text)| begun(text)) {
                Some(&(character, text)) if text.len() == read.len() + 1 => {
                    (words.next(state, character), "")
                }
                Some(&(_, text)) => (state, &text[..=read.len()]),
                None if read.is_empty() && escapes.iter().all(|(character, _)| *character != byte) => {
                    (words.next(state, byte), "")
                }
                None => continue,
            };
            if next.0 != ByteStateId::DEAD {
                runs.push(Run { first: byte, last: byte, target: found.state(next) });
            }
        }
        read.is_empty() && words.is_accepting(state)
    })?;
    rows.minimize(1, meter)
}

fn pattern(pattern: &str, meter: &Meter) -> Result<ByteDfa> {
    let wrong = |(at, reason)| Error::pattern(at, reason);
    Regex::ecma(pattern, false).map_err(wrong)?.lower(meter)
}
