//! The network that a schema is emitted to: procedures, texts and white space.
//!
//! A value is emitted before its *exits*: for each outcome of its plan the node that follows.

use std::rc::Rc;
use std::sync::Arc;

use super::Styled;
use super::markup::Markup;
use crate::grammar::max_stacks;
use crate::json_schema::{PlanId, Planned, Types};
use crate::nested::Procedures;
use burn_dfa_automata::{ByteDfa, Failure, FastMap, Rows, SparseAutomaton, TransitionNetwork};
use burn_dfa_common::{Error, Limit, Result, limits::Meter};

pub(super) const DEAD: u32 = TransitionNetwork::DEAD;

/// Deepest nesting of elements that are copied.
const MAX_DEPTH: usize = 128;

/// The arrays or the objects of a plan as a procedure, with the return number of each outcome;
/// `None` if nothing may follow.
type Procedure = (PlanId, Container, Vec<Option<usize>>);

/// Values that are elements again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Container {
    List,
    Object,
}

/// The words of an automaton, and its first state.
pub(super) type Words = Rc<(Rows, u32)>;

/// Some values of a plan: its outcomes, and their types.
pub(super) type Key = (PlanId, Vec<u32>, Types);

/// Emits the plans of a schema in a style.
pub(super) struct Emitter<'s, 'm> {
    pub(super) styled: &'s Styled,
    pub(super) markup: Markup,
    pub(super) planned: &'s Planned<'m>,
    pub(super) meter: &'m Meter<'m>,
    pub(super) network: TransitionNetwork<'m>,
    /// The language of unquoted strings.
    pub(super) plain: Arc<ByteDfa>,
    /// The automata of values as JSON, with their numbers.
    pub(super) json: FastMap<Key, Option<Rc<(usize, SparseAutomaton)>>>,
    pub(super) copies: Procedures,
    /// Unquoted strings, by their plan and outcomes.
    pub(super) strings: FastMap<(PlanId, Vec<u32>), Option<Words>>,
    /// Undeclared names as they are written, by the plan of the object, the plan of the names and
    /// the outcomes of the names.
    pub(super) names: FastMap<(PlanId, PlanId, Vec<u32>), Option<Words>>,
    /// The starts of values, by their exits.
    pub(super) values: FastMap<(PlanId, Vec<u32>), u32>,
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
    pub(super) fn new(
        styled: &'s Styled,
        markup: Markup,
        planned: &'s Planned<'m>,
        meter: &'m Meter<'m>,
    ) -> Result<Self> {
        Ok(Self {
            styled,
            markup,
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
    pub(super) fn texts(mut self) -> Result<SparseAutomaton> {
        let root = self.planned.root();
        let exits = vec![TransitionNetwork::ACCEPT; self.planned.outcome_count(root)];
        let start = self.copy(root, Container::Object, &exits)?;
        while let Some(((id, container, outcomes), enter)) = self.open.pop() {
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
            let body = self.copy(id, container, &exits)?;
            self.network.fill(enter, &[body])?;
        }
        match self.network.determinize(start, max_stacks(self.meter)) {
            Ok(Some((automaton, _))) => Ok(automaton),
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

    /// The arrays or the objects of a plan, with the end of the element before `exits`, which is
    /// `closed`.
    pub(super) fn container(
        &mut self,
        id: PlanId,
        container: Container,
        closed: &[u32],
        exits: &[u32],
    ) -> Result<u32> {
        if !self.planned.is_recursive(id) {
            return self.copy(id, container, closed);
        }
        let plan = self.planned.get(id);
        let is_end = |outcome: u32| match container {
            Container::Object => {
                plan.object.iter().flat_map(|of| &of.states).any(|at| at.end == Some(outcome))
            }
            Container::List => plan.array.iter().flat_map(|of| &of.states).any(|at| at.end == Some(outcome)),
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
        let procedure = (id, container, outcomes);
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
    fn copy(&mut self, id: PlanId, container: Container, exits: &[u32]) -> Result<u32> {
        if self.depth == MAX_DEPTH {
            return Err(Error::limit(Limit::Nesting(MAX_DEPTH)).at(|| self.planned.origin(id)));
        }
        self.depth += 1;
        let origin = self.network.set_origin(id.number());
        let start = self.copied(id, container, exits).map_err(|error| error.at(|| self.planned.origin(id)));
        self.network.set_origin(origin);
        self.depth -= 1;
        start
    }

    fn copied(&mut self, id: PlanId, container: Container, exits: &[u32]) -> Result<u32> {
        self.meter.time()?;
        let mut ends = Vec::with_capacity(exits.len());
        for &exit in exits {
            ends.push(if container == Container::List { self.space(exit)? } else { exit });
        }
        let plan = self.planned.get(id);
        match container {
            Container::Object => match &plan.object {
                Some(object) => self.object(id, object, &ends),
                None => Ok(DEAD),
            },
            Container::List => match &plan.array {
                Some(array) => {
                    let list = self.list(array, &ends)?;
                    self.space(list)
                }
                None => Ok(DEAD),
            },
        }
    }

    /// The text that closes an element, before a node.
    pub(super) fn close(&mut self, next: u32) -> Result<u32> {
        if let Some(&known) = self.closed.get(&next) {
            return Ok(known);
        }
        let closed = self.word(self.markup.close, next)?;
        self.closed.insert(next, closed);
        Ok(closed)
    }

    /// White space before a node.
    pub(super) fn space(&mut self, next: u32) -> Result<u32> {
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
            Some(max) => {
                let mut next = self.union(branches.clone())?;
                for left in (0..max).rev() {
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
