//! The names of undeclared properties.

use std::rc::Rc;

use super::markup::Kinds;
use super::network::{Emitter, Words};
use crate::Regex;
use crate::json_schema::PlanId;
use burn_dfa_automata::{ByteDfa, ByteStateId, Expr, FastMap, Op, Rows};
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
    let mut states: Vec<(ByteStateId, Vec<u8>)> =
        vec![(ByteStateId::DEAD, Vec::new()), (words.start(), Vec::new())];
    let mut numbers: FastMap<(u32, Vec<u8>), u32> = FastMap::default();
    for (number, (state, read)) in (0..).zip(&states) {
        numbers.insert((state.0, read.clone()), number);
    }
    let mut next = vec![0; 256];
    let mut accepting = vec![false];
    let mut at = 1;
    while let Some((state, read)) = states.get(at).cloned() {
        meter.bytes(next.len().saturating_mul(size_of::<u32>()))?;
        accepting.push(read.is_empty() && words.is_accepting(state));
        for byte in 0..=u8::MAX {
            let read = [&read[..], &[byte]].concat();
            let begins = escapes.iter().find(|(_, text)| text.as_bytes().starts_with(&read));
            let to = match (&read[..], begins) {
                (_, Some((character, text))) if text.len() == read.len() => {
                    (words.next(state, *character), Vec::new())
                }
                (_, Some(_)) => (state, read),
                (&[byte], None) if escapes.iter().all(|(character, _)| *character != byte) => {
                    (words.next(state, byte), Vec::new())
                }
                _ => (ByteStateId::DEAD, Vec::new()),
            };
            next.push(*numbers.entry((to.0.0, to.1.clone())).or_insert_with(|| {
                states.push(to);
                states.len() as u32 - 1
            }));
        }
        at += 1;
    }
    let dfa =
        ByteDfa::from_parts(std::array::from_fn(|byte| byte as u8), 256, next, accepting, ByteStateId::START);
    dfa.product(&dfa, Op::Intersection, meter)
}

fn pattern(pattern: &str, meter: &Meter) -> Result<ByteDfa> {
    let wrong = |(at, reason)| Error::pattern(at, reason);
    Regex::ecma(pattern, false).map_err(wrong)?.lower(meter)
}
