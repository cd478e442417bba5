//! Writes a value as text under a schema: properties in the schema's order, numbers and strings as
//! the options spell them.

use super::json::Json;
use super::options::JsonOptions;
use super::plan::{Labeled, PlanId, Planner, Step};
use super::text::{self, Punctuation};

/// The text of `value`, and whether it is a word of the schema's language.
///
/// If it is not, the text follows the schema as far as possible, then the order of the value
/// itself.
pub(super) fn write(planner: &Planner, root: PlanId, value: &Json) -> (Vec<u8>, bool) {
    let mut writer = Writer { planner, options: planner.options(), text: Vec::new() };
    let outcome = writer.value(Some(root), value, 0);
    (writer.text, outcome.is_some())
}

struct Writer<'p, 'a> {
    planner: &'p Planner<'a>,
    options: &'a JsonOptions,
    text: Vec<u8>,
}

impl Writer<'_, '_> {
    /// Writes `value`; returns its outcome, if it has one.
    fn value(&mut self, plan: Option<PlanId>, value: &Json, level: usize) -> Option<u32> {
        let plan = plan.map(|plan| self.planner.get(plan));
        if let Some(plan) = plan {
            let mut known = plan.values.iter().filter(|(known, _)| known.is_same(value));
            // An object may be listed several times, with its members in different orders.
            if let Some((known, outcome)) = known.next() {
                self.text.extend(text::write(known, self.options, level));
                return Some(*outcome);
            }
        }
        match value {
            Json::Null | Json::Boolean(_) => {
                self.text.extend(text::write(value, self.options, level));
                None
            }
            Json::Number(number) => {
                let text = number.text().into_bytes();
                self.scalar(plan.and_then(|plan| plan.number.as_ref()), text)
            }
            Json::String(string) => {
                let text = text::quoted(string, self.options);
                if let Some((counted, outcome)) = plan.and_then(|plan| plan.counted.as_ref()) {
                    let outcome = counted.matches(&text).then_some(*outcome);
                    self.text.extend(text);
                    return outcome;
                }
                self.scalar(plan.and_then(|plan| plan.string.as_ref()), text)
            }
            Json::Array(items) => {
                let array = plan.and_then(|plan| plan.array.as_ref());
                let mut state = array.map(|_| 0);
                let punctuation = Punctuation::of(self.options);
                self.text.push(b'[');
                for (at, item) in items.iter().enumerate() {
                    if at == 0 {
                        punctuation.line(level + 1, &mut self.text);
                    } else {
                        punctuation.comma(level + 1, &mut self.text);
                    }
                    let step = state
                        .zip(array)
                        .and_then(|(state, array)| array.states[state as usize].item.as_ref());
                    state = self.step(step, item, level + 1);
                }
                if !items.is_empty() {
                    punctuation.line(level, &mut self.text);
                }
                self.text.push(b']');
                let array = array
                    .filter(|array| array.counts.is_none_or(|counts| counts.contain(items.len() as u64)));
                state.zip(array).and_then(|(state, array)| array.states[state as usize].end)
            }
            Json::Object(_) => self.object(plan.and_then(|plan| plan.object.as_ref()), value, level),
        }
    }

    fn object(&mut self, object: Option<&super::plan::Object>, value: &Json, level: usize) -> Option<u32> {
        let Json::Object(members) = value else { return None };
        let mut state = object.map(|_| 0);
        let mut rest: Vec<(&String, &Json)> = members.iter().collect();
        let punctuation = Punctuation::of(self.options);
        let mut first = true;
        self.text.push(b'{');
        let mut before = |text: &mut Vec<u8>, name: &str, options: &JsonOptions| {
            if std::mem::take(&mut first) {
                punctuation.line(level + 1, text);
            } else {
                punctuation.comma(level + 1, text);
            }
            text.extend(text::quoted(name, options));
            punctuation.colon(text);
        };
        if let Some(object) = object {
            for name in &object.names {
                let at = rest.iter().position(|(of, _)| of.as_str() == &**name);
                let here = state.map(|state: u32| &object.states[state as usize]);
                match at {
                    Some(at) => {
                        let (name, member) = rest.remove(at);
                        before(&mut self.text, name, self.options);
                        let step = here.and_then(|state| state.takes.first()?.as_ref());
                        state = self.step(step, member, level + 1);
                    }
                    None => state = here.and_then(|state| state.skip),
                }
            }
        }
        for (name, member) in rest {
            before(&mut self.text, name, self.options);
            let others =
                state.zip(object).and_then(|(state, object)| object.states[state as usize].others.as_ref());
            let step = others.and_then(|others| {
                let names = self.planner.get(others.names);
                let outcome = names
                    .values
                    .iter()
                    .find(|(value, _)| value.as_str() == Some(name))
                    .map(|(_, outcome)| *outcome);
                let text = text::quoted(name, self.options);
                let outcome = outcome.or_else(|| names.string.as_ref()?.outcome(&text))?;
                others.steps[outcome as usize].as_ref()
            });
            state = self.step(step, member, level + 1);
        }
        if !members.is_empty() {
            punctuation.line(level, &mut self.text);
        }
        self.text.push(b'}');
        state.zip(object).and_then(|(state, object)| object.states[state as usize].end)
    }

    fn step(&mut self, step: Option<&Step>, value: &Json, level: usize) -> Option<u32> {
        let outcome = self.value(step.map(|step| step.child), value, level);
        step.zip(outcome).and_then(|(step, outcome)| step.next[outcome as usize])
    }

    fn scalar(&mut self, scalar: Option<&Labeled>, text: Vec<u8>) -> Option<u32> {
        let outcome = scalar.and_then(|scalar| scalar.outcome(&text));
        self.text.extend(text);
        outcome
    }
}
