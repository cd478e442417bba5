//! The names of undeclared properties.

use std::sync::Arc;

use super::markup::Kinds;
use super::schema::SchemaCursor;
use super::value::{Writer, part_at};
use crate::json_schema::{Part, Types, quoted};
use crate::{Deferred, Regex};
use burn_dfa_automata::{ByteDfa, ByteStateId, Expr, FastMap, Op};
use burn_dfa_common::{Error, Result, limits::Meter};

/// The undeclared names of XML styles: without a pattern or a schema for names; with one, in styles
/// that escape no characters; in styles that escape `&` and `"`; and in styles that escape all
/// special characters.
const USUAL: &str = "[a-zA-Z_][a-zA-Z0-9_]*";
const ALLOWED: &str = "[^\\x00- \"&<>=\\x7f]+";
const QUOTED: &str = "[^\\x00- <>=\\x7f]+";
const ESCAPED: &str = "[^\\x00]+";

impl<'s> Writer<'_, 's> {
    /// All allowed names of undeclared properties: escaped as JSON strings if `json`, unescaped
    /// otherwise.
    pub(super) fn names(&self, spot: &SchemaCursor<'s>, json: bool) -> Deferred {
        let told = spot.get("propertyNames");
        let told = told.as_ref().and_then(|told| part_at(told));
        if json {
            let names = Part::new(&self.shared, told, Types::STRING, self.free.as_ref(), &self.options);
            return Deferred::new(move |meter| names.lower(meter));
        }
        let patterns = spot.get("patternProperties").is_some();
        let universe = match self.markup.kinds {
            Kinds::Nested => ESCAPED,
            _ if told.is_none() && !patterns => USUAL,
            Kinds::Type => QUOTED,
            _ => ALLOWED,
        };
        let any = Deferred::new(|meter| pattern("[^]*", meter));
        let told = told.map(|told| Part::plain(&self.shared, Some(told), &any, &self.options));
        Deferred::new(move |meter| {
            let mut names = pattern(universe, meter)?;
            if let Some(told) = &told {
                names = names.product(&told.lower(meter)?, Op::Intersection, meter)?;
            }
            Ok(names)
        })
    }

    /// The names with a match of a pattern.
    pub(super) fn matched(&self, spot: &SchemaCursor<'s>, text: &str) -> Result<Deferred> {
        let searched = Regex::ecma(&format!("[^]*(?:{text})[^]*"), false);
        let regex = searched.map_err(|(_, reason)| spot.error(reason))?;
        Ok(Deferred::new(move |meter| regex.lower(meter)))
    }

    /// A name as [`names`](Self::names) have it.
    pub(super) fn named(&self, name: &str, json: bool) -> Vec<u8> {
        if json { quoted(name) } else { name.as_bytes().to_vec() }
    }

    /// The same names in their written form.
    pub(super) fn written(&self, names: Deferred, json: bool) -> Deferred {
        if json {
            return names;
        }
        let (escapes, free) = (self.markup.escapes(), self.free.clone());
        Deferred::new(move |meter| {
            let names = names.lower(meter)?;
            let names = match escapes {
                [] => names,
                escapes => escaped(&names, escapes, meter)?.into(),
            };
            match &free {
                Some(free) => names.product(&*free.lower(meter)?, Op::Intersection, meter),
                None => Ok(Arc::unwrap_or_clone(names)),
            }
        })
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

/// `names` without some others.
pub(super) fn without(names: &Deferred, others: Arc<[Deferred]>) -> Deferred {
    let names = names.clone();
    Deferred::new(move |meter| {
        let mut rest = (*names.lower(meter)?).clone();
        for other in &*others {
            rest = rest.product(&*other.lower(meter)?, Op::Difference, meter)?;
        }
        Ok(rest)
    })
}

/// The listed names.
pub(super) fn listed(names: Vec<Vec<u8>>) -> Deferred {
    Deferred::new(move |meter| Expr::Literals(names.clone()).determinize(meter))
}

/// The words in both `names` and the set `number`. Lowering fails with `wrong` if a later set has
/// one of these words too.
pub(super) fn only(names: &Deferred, sets: &Arc<[Deferred]>, number: usize, wrong: Error) -> Deferred {
    let (names, sets) = (names.clone(), Arc::clone(sets));
    Deferred::new(move |meter| {
        let own = names.lower(meter)?.product(&*sets[number].lower(meter)?, Op::Intersection, meter)?;
        for other in &sets[number + 1..] {
            if !own.product(&*other.lower(meter)?, Op::Intersection, meter)?.is_empty() {
                return Err(wrong.clone());
            }
        }
        Ok(own)
    })
}

/// The text `written` of the declared name `name`; `own` is the form of the name in the automata.
/// Lowering fails with `wrong` if `allowed` lacks the name, or one of `matched` has it.
pub(super) fn declared(
    (name, own, written): (&str, Vec<u8>, Vec<u8>),
    allowed: Option<Deferred>,
    matched: Arc<[Deferred]>,
    wrong: Error,
) -> Deferred {
    let name = name.to_owned();
    Deferred::new(move |meter| {
        let mut is_wrong = match &allowed {
            Some(allowed) => !allowed.lower(meter)?.matches(&own),
            None => false,
        };
        for matched in &*matched {
            is_wrong = is_wrong || matched.lower(meter)?.matches(name.as_bytes());
        }
        match is_wrong {
            true => Err(wrong.clone()),
            false => Expr::Literals(vec![written.clone()]).determinize(meter),
        }
    })
}

fn pattern(pattern: &str, meter: &Meter) -> Result<ByteDfa> {
    let wrong = |(at, reason)| Error::pattern(at, reason);
    Regex::ecma(pattern, false).map_err(wrong)?.lower(meter)
}
