//! The values of elements, and the network that they are emitted to.
//!
//! A value is emitted before its *exits*: for each outcome of its plan the node that follows.

use std::rc::Rc;

use super::Styled;
use super::markup::{Kinds, Markup, TYPES};
use crate::grammar::most_stacks;
use crate::json_schema::{PlanId, Planned, Selection, Texts, Types};
use crate::nested::{Nested, Procedures};
use burn_dfa_automata::{ByteDfa, Determinized, Failure, FastMap, Op, Rows, TransitionNetwork};
use burn_dfa_common::{Error, Limit, Result, limits::Meter};

const DEAD: u32 = TransitionNetwork::DEAD;

/// Deepest nesting of elements that are copied.
const MAX_DEPTH: usize = 128;

/// Types other than arrays and objects.
const SCALARS: Types = Types::ALL.except(Types::ARRAY).except(Types::OBJECT);

/// The arrays or the objects of a plan as a procedure, with the return number of each outcome;
/// `None` if nothing may follow.
type Procedure = (PlanId, Part, Vec<Option<usize>>);

/// Values that are elements again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Part {
    List,
    Object,
}

/// Some values of a plan: its outcomes, and their types.
type Key = (PlanId, Vec<u32>, Types);

/// Emits the plans of a schema in a style.
pub(super) struct Emitter<'s, 'm> {
    pub(super) styled: &'s Styled,
    pub(super) planned: &'s Planned<'m>,
    pub(super) meter: &'m Meter<'m>,
    pub(super) network: TransitionNetwork<'m>,
    /// The language of unquoted strings.
    plain: std::sync::Arc<ByteDfa>,
    /// The automata of values as JSON, with their numbers.
    json: FastMap<Key, Option<Rc<(usize, Nested)>>>,
    copies: Procedures,
    /// Unquoted strings, with their first state.
    strings: FastMap<(PlanId, Vec<u32>), Option<Rc<(Rows, u32)>>>,
    /// Undeclared names as they are written, by the plan of the object, the plan of the names and
    /// the outcomes of the names.
    pub(super) names: FastMap<(PlanId, PlanId, Vec<u32>), Option<Rc<(Rows, u32)>>>,
    /// The starts of values, by their exits.
    values: FastMap<(PlanId, Vec<u32>), u32>,
    /// White space before nodes.
    spaced: FastMap<u32, u32>,
    /// The end of an element before nodes.
    closed: FastMap<u32, u32>,
    /// The starts of procedures.
    procedures: FastMap<Procedure, u32>,
    /// Procedures not emitted yet, and their starts.
    open: Vec<(Procedure, u32)>,
    depth: usize,
}

impl<'s, 'm> Emitter<'s, 'm> {
    pub(super) fn new(styled: &'s Styled, planned: &'s Planned<'m>, meter: &'m Meter<'m>) -> Result<Self> {
        Ok(Self {
            styled,
            planned,
            meter,
            network: TransitionNetwork::new(meter),
            plain: styled.plain.lower(meter)?,
            json: FastMap::default(),
            copies: Procedures::default(),
            strings: FastMap::default(),
            names: FastMap::default(),
            values: FastMap::default(),
            spaced: FastMap::default(),
            closed: FastMap::default(),
            procedures: FastMap::default(),
            open: Vec::new(),
            depth: 0,
        })
    }

    /// The automaton of the whole text.
    pub(super) fn texts(mut self) -> Result<Texts> {
        let root = self.planned.root();
        let exits = vec![TransitionNetwork::ACCEPT; self.planned.outcome_count(root)];
        let start = self.copy(root, Part::Object, &exits)?;
        while let Some(((id, part, outcomes), enter)) = self.open.pop() {
            let mut exits = Vec::with_capacity(outcomes.len());
            for number in outcomes {
                exits.push(match number {
                    Some(number) => {
                        let returning = self.network.returning(number as u32)?;
                        self.close(returning)?
                    }
                    None => DEAD,
                });
            }
            let body = self.copy(id, part, &exits)?;
            self.network.fill(enter, &[body])?;
        }
        match self.network.determinize(start, most_stacks(self.meter)) {
            Ok(Some((Determinized::Finite(rows), _))) => Ok(Texts::Copied(rows)),
            Ok(Some((Determinized::Called(automaton), _))) => Ok(Texts::Called(automaton)),
            Ok(None) => Err(Error::unsatisfiable("no value of the schema can be written in this style")),
            Err(Failure::Error(error)) => Err(error),
            Err(Failure::Conflict(conflict)) => {
                let text = String::from_utf8_lossy(&conflict.text);
                Err(Error::schema(
                    self.planned.origin_of(conflict.origins[0]),
                    format!(
                        "after {text:?} it is open in this style which arrays and objects are open; use the style `json`"
                    ),
                ))
            }
        }
    }

    /// A value after the name of its element, through the end of the element.
    pub(super) fn value(&mut self, id: PlanId, exits: &[u32]) -> Result<u32> {
        let key = (id, exits.to_vec());
        if let Some(&known) = self.values.get(&key) {
            return Ok(known);
        }
        let Markup { named, value, .. } = self.styled.markup;
        let mut cases = self.cases(id, exits)?;
        if let Some(value) = value {
            let begun = self.word(value, cases)?;
            cases = self.space(begun)?;
        }
        let start = self.word(named, cases)?;
        self.values.insert(key, start);
        Ok(start)
    }

    /// An element without a name.
    pub(super) fn element(&mut self, id: PlanId, exits: &[u32]) -> Result<u32> {
        let cases = self.cases(id, exits)?;
        self.word("<cofl:value type=\"", cases)
    }

    /// The cases of a value: each begins with its type information.
    fn cases(&mut self, id: PlanId, exits: &[u32]) -> Result<u32> {
        let mut cases = Vec::new();
        // The outcomes before the same exit.
        let mut groups: Vec<(u32, Vec<u32>)> = Vec::new();
        for (outcome, &exit) in (0..).zip(exits) {
            match groups.iter_mut().find(|(known, _)| *known == exit) {
                _ if exit == DEAD => {}
                Some((_, outcomes)) => outcomes.push(outcome),
                None => groups.push((exit, vec![outcome])),
            }
        }
        for (exit, outcomes) in groups {
            self.scalars(id, &outcomes, exit, &mut cases)?;
        }
        if self.styled.markup.kinds == Kinds::Nested {
            let mut closed = Vec::with_capacity(exits.len());
            for &exit in exits {
                closed.push(self.close(exit)?);
            }
            for (part, kind) in [(Part::Object, "dict\">"), (Part::List, "list\">")] {
                let body = self.part(id, part, &closed, exits)?;
                cases.push(self.word(kind, body)?);
            }
        }
        self.union(cases)
    }

    /// The cases of values with these outcomes, except lists and objects that are elements again.
    fn scalars(&mut self, id: PlanId, outcomes: &[u32], exit: u32, cases: &mut Vec<u32>) -> Result<()> {
        let values = Selection { plan: id, outcomes: Some(outcomes), types: Types::ALL };
        let types = self.planned.types(values);
        let others = types.except(Types::STRING);
        let kinds = self.styled.markup.kinds;
        let close = self.close(exit)?;
        let end = self.space(close)?;
        if types.meets(Types::STRING) {
            let (kind, is_spaced) = match kinds {
                Kinds::String => ("true\">", false),
                Kinds::Type => ("string\"<|sep|>", true),
                Kinds::Nested => ("raw\">", true),
                Kinds::None | Kinds::Json => ("", true),
            };
            let strings = self.strings(id, outcomes, if is_spaced { end } else { close })?;
            let strings = if is_spaced { self.space(strings)? } else { strings };
            cases.push(self.word(kind, strings)?);
        }
        match kinds {
            // No value contains the text that closes it, and all JSON without this text is a string
            // too.
            Kinds::None if self.planned.has_all_strings(id, outcomes) => {}
            Kinds::None | Kinds::Json => cases.push(self.json_of(id, outcomes, others, end)?),
            Kinds::String => {
                let json = self.json_of(id, outcomes, others, end)?;
                cases.push(self.word("false\">", json)?);
            }
            Kinds::Type => {
                // An integer counts as a number if all values are numbers.
                let is_number = self.planned.types(id.into()).except(Types::NUMBER) == Types::NONE;
                for (name, of) in TYPES.into_iter().skip(1) {
                    if name != "integer" || !is_number {
                        let json = self.json_of(id, outcomes, types.and(of), end)?;
                        cases.push(self.word(&format!("{name}\"<|sep|>"), json)?);
                    }
                }
            }
            Kinds::Nested => {
                let json = self.json_of(id, outcomes, others.and(SCALARS), end)?;
                cases.push(self.word("json\">", json)?);
            }
        }
        Ok(())
    }

    /// The unquoted strings of a plan with these outcomes.
    fn strings(&mut self, id: PlanId, outcomes: &[u32], next: u32) -> Result<u32> {
        let key = (id, outcomes.to_vec());
        let known = match self.strings.get(&key) {
            Some(known) => known.clone(),
            None => {
                let mut found = None;
                if let Some(strings) = self.planned.strings(id, outcomes)? {
                    let plain = strings.product(&self.plain, Op::Intersection, self.meter)?;
                    if !plain.is_empty() {
                        found = Some(Rc::new((Rows::from(&plain), plain.start().0)));
                    }
                }
                self.strings.insert(key, found.clone());
                found
            }
        };
        let Some(strings) = known else { return Ok(DEAD) };
        let (rows, start) = &*strings;
        let read = self.network.copy(rows, *start, next)?;
        if rows.is_accepting(*start) { self.union(vec![read, next]) } else { Ok(read) }
    }

    /// The values of some types with these outcomes as JSON, after white space.
    fn json_of(&mut self, id: PlanId, outcomes: &[u32], types: Types, next: u32) -> Result<u32> {
        if types == Types::NONE {
            return Ok(DEAD);
        }
        let key = (id, outcomes.to_vec(), types);
        let known = match self.json.get(&key) {
            Some(known) => known.clone(),
            None => {
                let values = Selection { plan: id, outcomes: Some(outcomes), types };
                let number = self.json.len();
                let nested = self.planned.json(values)?.map(|texts| match texts {
                    Texts::Copied(rows) => Rc::new((number, Nested::Finite(Box::new(rows)))),
                    Texts::Called(automaton) => Rc::new((number, Nested::Called(Box::new(automaton)))),
                });
                self.json.insert(key, nested.clone());
                nested
            }
        };
        let Some(json) = known else { return Ok(DEAD) };
        let read = self.copies.copy(&mut self.network, json.0, &json.1, next)?;
        self.space(read)
    }

    /// The arrays or the objects of a plan, with the end of the element before `exits`, which is
    /// `closed`.
    fn part(&mut self, id: PlanId, part: Part, closed: &[u32], exits: &[u32]) -> Result<u32> {
        if !self.planned.is_recursive(id) {
            return self.copy(id, part, closed);
        }
        let plan = self.planned.get(id);
        let is_end = |outcome: u32| match part {
            Part::Object => plan.object.iter().flat_map(|of| &of.states).any(|at| at.end == Some(outcome)),
            Part::List => plan.array.iter().flat_map(|of| &of.states).any(|at| at.end == Some(outcome)),
        };
        let mut returns: Vec<u32> = Vec::new();
        let mut outcomes = Vec::with_capacity(exits.len());
        for (outcome, &exit) in (0..).zip(exits) {
            let exit = if is_end(outcome) { exit } else { DEAD };
            let number = returns.iter().position(|known| *known == exit).unwrap_or(returns.len());
            if exit != DEAD && number == returns.len() {
                returns.push(exit);
            }
            outcomes.push((exit != DEAD).then_some(number));
        }
        if returns.is_empty() {
            return Ok(DEAD);
        }
        let procedure = (id, part, outcomes);
        let enter = match self.procedures.get(&procedure) {
            Some(&enter) => enter,
            None => {
                let enter = self.network.reserve()?;
                self.procedures.insert(procedure.clone(), enter);
                self.open.push((procedure, enter));
                enter
            }
        };
        self.network.call(enter, &returns)
    }

    /// A copy of the arrays or the objects of a plan.
    fn copy(&mut self, id: PlanId, part: Part, exits: &[u32]) -> Result<u32> {
        if self.depth == MAX_DEPTH {
            return Err(Error::limit(Limit::Nesting(MAX_DEPTH)).at(|| self.planned.origin(id)));
        }
        self.depth += 1;
        let origin = self.network.set_origin(id.number());
        let start = self.copied(id, part, exits).map_err(|error| error.at(|| self.planned.origin(id)));
        self.network.set_origin(origin);
        self.depth -= 1;
        start
    }

    fn copied(&mut self, id: PlanId, part: Part, exits: &[u32]) -> Result<u32> {
        self.meter.time()?;
        let mut ends = Vec::with_capacity(exits.len());
        for &exit in exits {
            ends.push(if part == Part::List { self.space(exit)? } else { exit });
        }
        let plan = self.planned.get(id);
        match part {
            Part::Object => match &plan.object {
                Some(object) => self.object(id, object, &ends),
                None => Ok(DEAD),
            },
            Part::List => match &plan.array {
                Some(array) => {
                    let list = self.list(array, &ends)?;
                    self.space(list)
                }
                None => Ok(DEAD),
            },
        }
    }

    /// The text that closes an element, before a node.
    fn close(&mut self, next: u32) -> Result<u32> {
        if let Some(&known) = self.closed.get(&next) {
            return Ok(known);
        }
        let closed = self.word(self.styled.markup.close, next)?;
        self.closed.insert(next, closed);
        Ok(closed)
    }

    /// White space before a node.
    fn space(&mut self, next: u32) -> Result<u32> {
        if next == DEAD {
            return Ok(DEAD);
        }
        if let Some(&known) = self.spaced.get(&next) {
            return Ok(known);
        }
        let spaced = self.network.reserve()?;
        self.fill_spaced(spaced, &[next])?;
        self.spaced.insert(next, spaced);
        Ok(spaced)
    }

    /// Makes a reserved node read white space, and then continue to one of `branches`.
    pub(super) fn fill_spaced(&mut self, node: u32, branches: &[u32]) -> Result<()> {
        let mut branches: Vec<u32> = branches.iter().copied().filter(|&branch| branch != DEAD).collect();
        if branches.is_empty() {
            return Ok(());
        }
        let space = |next: u32| [(b'\t', b'\n', next), (b'\r', b'\r', next), (b' ', b' ', next)];
        match self.styled.spaces {
            None => {
                let more = self.network.bytes(space(node))?;
                branches.push(more);
            }
            Some(most) => {
                let mut next = self.union(branches.clone())?;
                for left in (0..most).rev() {
                    let more = self.network.bytes(space(next))?;
                    if left == 0 {
                        branches.push(more);
                    } else {
                        next = self.union([&branches[..], &[more]].concat())?;
                    }
                }
            }
        }
        self.network.fill(node, &branches)
    }

    /// A text before a node.
    pub(super) fn word(&mut self, text: &str, next: u32) -> Result<u32> {
        self.bytes(text.as_bytes(), next)
    }

    pub(super) fn bytes(&mut self, bytes: &[u8], next: u32) -> Result<u32> {
        if next == DEAD {
            return Ok(DEAD);
        }
        bytes.iter().rev().try_fold(next, |next, &byte| self.network.bytes([(byte, byte, next)]))
    }

    pub(super) fn union(&mut self, mut nodes: Vec<u32>) -> Result<u32> {
        nodes.retain(|&node| node != DEAD);
        nodes.sort_unstable();
        nodes.dedup();
        self.network.union(&nodes)
    }
}
