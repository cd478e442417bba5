//! Numbers and strings: automata over their texts.
//!
//! A conjunction becomes one automaton. Any other formula, and any question, is answered by running the automata
//! of its leaves side by side; one that is dead has decided its leaf, and one on which nothing depends
//! any more is dropped. A string that is undecided under a `format` is written only where nothing depends on that.

use std::sync::{Arc, OnceLock};

use super::live::live;
use super::{Plan, Planner};
use crate::automaton::{ByteDfa, ByteStateId, Expr, FastMap, Interner, Op};
use crate::constraint::json_schema::format::{Certainty, Exactness, Format};
use crate::constraint::json_schema::formula::{Formula, Leaf, Term};
use crate::constraint::json_schema::number::{self, Form};
use crate::constraint::json_schema::options::{Escapes, Numbers};
use crate::constraint::json_schema::string::{self, Spelling};
use crate::error::Result;

/// The texts of scalars: an automaton whose ends have outcomes. State 0 is dead.
#[derive(Debug)]
pub(in super::super) enum Labelled {
    /// All ends have one outcome. The bytes are in runs of one class.
    Alike { dfa: Arc<ByteDfa>, intervals: Vec<(u8, u8, usize)>, outcome: u32 },
    /// Rows, and by state the outcome of a text that ends there.
    Apart { start: u32, rows: Vec<Vec<(u8, u8, u32)>>, ends: Vec<Option<u32>> },
}

impl Planner<'_> {
    pub(super) fn number(
        &mut self,
        must: Formula,
        asks: &[Formula],
        plan: &mut Plan,
    ) -> Result<Option<Labelled>> {
        let form = match self.options().numbers {
            Numbers::Plain => Form::Plain,
            Numbers::Any => Form::Any,
        };
        let digits = self.options().max_digits;
        let free = must == Formula::TRUE && asks.iter().all(|ask| ask.decided().is_some());
        let universe = if free {
            number::exponential(form, digits, self.meter)?
        } else {
            number::universe(form, digits, self.meter)?
        };
        self.side_by_side(universe.into(), must, asks, plan)
    }

    pub(super) fn string(
        &mut self,
        must: Formula,
        asks: &[Formula],
        plan: &mut Plan,
    ) -> Result<Option<Labelled>> {
        if asks.iter().all(|ask| ask.decided().is_some())
            && let Some(dfa) = self.conjunction(must)?
        {
            if dfa.is_empty() {
                return Ok(None);
            }
            let answers: Vec<bool> = asks.iter().map(|ask| *ask == Formula::TRUE).collect();
            return Ok(Some(Labelled::alike(dfa, plan.outcome(&answers))));
        }
        let universe = match self.conjunction(Formula::TRUE)? {
            Some(universe) => universe,
            None => return Ok(None),
        };
        self.side_by_side(universe, must, asks, plan)
    }

    /// The strings of a conjunction of leaves; `None` where it is no such thing.
    fn conjunction(&mut self, must: Formula) -> Result<Option<Arc<ByteDfa>>> {
        let key = (must, Certainty::Surely);
        if let Some(known) = self.texts.get(&key) {
            return Ok(Some(Arc::clone(known)));
        }
        if let Some(text) = self.common_text(must)? {
            self.texts.insert(key, Arc::clone(&text));
            return Ok(Some(text));
        }
        let parts = match must {
            Formula::TRUE => Arc::new([]),
            _ => self.formulas.conjuncts(must),
        };
        let (mut least, mut most) = (0, None::<u64>);
        let mut contents = Vec::new();
        for &part in parts.iter() {
            match self.formulas.term(part) {
                Term::Leaf(Leaf::Length { min, max }) => {
                    least = least.max(*min);
                    most = most.into_iter().chain(*max).min();
                }
                Term::Leaf(_) => contents.push(part),
                _ => return Ok(None),
            }
        }
        let mut content: Option<Arc<ByteDfa>> = None;
        for leaf in contents {
            let next = self.content(leaf, Certainty::Surely)?;
            content = Some(match content {
                None => next,
                Some(content) => content.product(&next, Op::Intersection, self.meter)?.into(),
            });
        }
        let content = match content {
            Some(content) => content,
            None => any_string(self.meter)?,
        };
        let most = most.or(self.options().max_string);
        let text: Arc<ByteDfa> = if most.is_some_and(|most| most < least) {
            Expr::Literals(vec![]).determinize(self.meter)?.into()
        } else {
            self.quoted(&content, least, most)?.into()
        };
        self.texts.insert(key, Arc::clone(&text));
        Ok(Some(text))
    }

    /// The texts of any string, or of a format alone, which are made once for all schemas.
    fn common_text(&self, must: Formula) -> Result<Option<Arc<ByteDfa>>> {
        const SPELLINGS: usize = 4;
        static COMMON: [OnceLock<Arc<ByteDfa>>; (1 + Format::COUNT) * SPELLINGS] =
            [const { OnceLock::new() }; (1 + Format::COUNT) * SPELLINGS];
        let format = match self.formulas.as_leaf(must) {
            _ if self.options().max_string.is_some() => return Ok(None),
            None if must == Formula::TRUE => None,
            Some(Leaf::Format(format)) => Some(*format),
            _ => return Ok(None),
        };
        let Spelling { ascii, escapes } = self.options().spelling();
        let spelling = usize::from(ascii) * 2 + usize::from(escapes == Escapes::Any);
        let place = &COMMON[format.map_or(0, |format| 1 + format as usize) * SPELLINGS + spelling];
        let text = match place.get() {
            Some(text) => text,
            None => {
                let content = match format {
                    Some(format) => format.lower(Certainty::Surely, self.meter)?.into(),
                    None => any_string(self.meter)?,
                };
                let text = self.quoted(&content, 0, None)?;
                place.get_or_init(|| text.into())
            }
        };
        self.meter.states(text.state_count())?;
        Ok(Some(Arc::clone(text)))
    }

    /// The strings, without quotes, of which a leaf surely, or possibly, holds.
    pub(super) fn content(&mut self, leaf: Formula, certainty: Certainty) -> Result<Arc<ByteDfa>> {
        let key = (leaf, certainty);
        if let Some(known) = self.contents.get(&key) {
            return Ok(Arc::clone(known));
        }
        let dfa: Arc<ByteDfa> = match self.formulas.as_leaf(leaf) {
            Some(Leaf::Pattern(pattern)) => pattern.lower(self.meter)?.into(),
            Some(Leaf::Format(format)) => format.lower(certainty, self.meter)?.into(),
            Some(Leaf::Values(values)) => {
                let words = values.iter().filter_map(|value| value.value().as_str());
                Expr::Literals(words.map(|word| word.as_bytes().to_vec()).collect())
                    .determinize(self.meter)?
                    .into()
            }
            _ => any_string(self.meter)?,
        };
        self.contents.insert(key, Arc::clone(&dfa));
        Ok(dfa)
    }

    /// The texts of which a leaf surely, or possibly, holds.
    fn text(&mut self, leaf: Formula, certainty: Certainty) -> Result<Arc<ByteDfa>> {
        let key = (leaf, certainty);
        if let Some(known) = self.texts.get(&key) {
            return Ok(Arc::clone(known));
        }
        let meter = self.meter;
        let dfa = match self.formulas.as_leaf(leaf).cloned() {
            Some(Leaf::Integer) => number::integers(meter)?,
            Some(Leaf::AtLeast { bound, exclusive }) => number::at_least(&bound, exclusive, meter)?,
            Some(Leaf::AtMost { bound, exclusive }) => number::at_most(&bound, exclusive, meter)?,
            Some(Leaf::MultipleOf(step)) => number::multiple_of(&step, meter)?,
            Some(Leaf::Values(values)) if values.iter().all(|value| value.value().is_number()) => {
                let mut all = Expr::Literals(vec![]).determinize(meter)?;
                for value in values.iter() {
                    if let serde_json::Value::Number(number) = value.value() {
                        let one = number::equal_to(&number::Decimal::new(number), meter)?;
                        all = all.product(&one, Op::Union, meter)?;
                    }
                }
                all
            }
            Some(Leaf::Length { min, max }) => self.quoted(&any_string(meter)?, min, max)?,
            _ => {
                let content = self.content(leaf, certainty)?;
                self.quoted(&content, 0, None)?
            }
        };
        let dfa = Arc::new(dfa);
        self.texts.insert(key, Arc::clone(&dfa));
        Ok(dfa)
    }

    fn quoted(&self, content: &Arc<ByteDfa>, min: u64, max: Option<u64>) -> Result<ByteDfa> {
        string::quote(content, min, max, self.options().spelling(), self.meter)
    }

    /// The texts of `universe` that satisfy `must`, by their answers.
    fn side_by_side(
        &mut self,
        universe: Arc<ByteDfa>,
        must: Formula,
        asks: &[Formula],
        plan: &mut Plan,
    ) -> Result<Option<Labelled>> {
        let residues: Vec<Formula> = std::iter::once(must).chain(asks.iter().copied()).collect();
        let leaves = self.leaves_of(&residues);
        if leaves.is_empty() {
            return Ok(match self.outcome(&residues, plan) {
                Some(outcome) if !universe.is_empty() => Some(Labelled::alike(universe, outcome)),
                _ => None,
            });
        }
        let mut automata = vec![universe];
        let mut judged = Vec::with_capacity(leaves.len());
        for leaf in leaves {
            let surely = automata.len();
            automata.push(self.text(leaf, Certainty::Surely)?);
            if let Some(Leaf::Format(format)) = self.formulas.as_leaf(leaf)
                && format.is_exact() == Exactness::Bounded
            {
                automata.push(self.text(leaf, Certainty::Possibly)?);
            }
            judged.push(Judged { leaf, surely, possibly: automata.len() - 1 });
        }
        Product { planner: self, automata: &automata, leaves: &judged, residues, live: FastMap::default() }
            .run(plan)
    }
}

/// All strings.
fn any_string(meter: &crate::limits::Meter) -> Result<Arc<ByteDfa>> {
    static ANY: OnceLock<Arc<ByteDfa>> = OnceLock::new();
    if let Some(dfa) = ANY.get() {
        return Ok(Arc::clone(dfa));
    }
    let any = Expr::Chars(vec![(char::MIN, char::MAX)]);
    let dfa = Expr::Repeat { expr: any.into(), min: 0, max: None }.determinize(meter)?;
    Ok(Arc::clone(ANY.get_or_init(|| dfa.into())))
}

/// A leaf with the numbers of the automata of the texts of which it surely and possibly holds; mostly they are one.
struct Judged {
    leaf: Formula,
    surely: usize,
    possibly: usize,
}

/// Automata running side by side.
struct Product<'p, 'a, 'b> {
    planner: &'p mut Planner<'a>,
    /// That of all texts, and those of the leaves.
    automata: &'b [Arc<ByteDfa>],
    leaves: &'b [Judged],
    residues: Vec<Formula>,
    /// By which automata are dead: what of the others counts, or `None` where nothing can be accepted.
    live: FastMap<Vec<bool>, Option<Vec<bool>>>,
}

impl Product<'_, '_, '_> {
    fn run(mut self, plan: &mut Plan) -> Result<Option<Labelled>> {
        let (symbols, columns) = joint_symbols(self.automata);
        // Runs of bytes of one symbol.
        let mut intervals: Vec<(u8, u8, usize)> = Vec::new();
        for byte in 0..=u8::MAX {
            match intervals.last_mut() {
                Some((_, last, symbol)) if *symbol == symbols[byte as usize] => *last = byte,
                _ => intervals.push((byte, byte, symbols[byte as usize])),
            }
        }
        let mut vectors: Interner<u32> = Interner::new();
        vectors.intern(&vec![0; self.automata.len()]);
        let mut start: Vec<u32> = self.automata.iter().map(|dfa| dfa.start().0).collect();
        self.settle(&mut start);
        let start = vectors.intern(&start).0;
        let mut found: Vec<Option<Vec<bool>>> = vec![None];
        let mut rows = vec![Vec::new()];
        let mut at = 1;
        while at < vectors.len() {
            let vector = vectors.get(at as u32).to_vec();
            let mut targets = vec![0; columns.len()];
            for (target, classes) in targets.iter_mut().zip(&columns) {
                let mut next: Vec<u32> = vector
                    .iter()
                    .zip(self.automata)
                    .zip(classes)
                    .map(|((&state, dfa), &class)| dfa.next_by_class(ByteStateId(state), class).0)
                    .collect();
                self.settle(&mut next);
                *target = vectors.intern(&next).0;
            }
            let mut row: Vec<(u8, u8, u32)> = Vec::new();
            for &(first, last, symbol) in &intervals {
                match row.last_mut() {
                    _ if targets[symbol] == 0 => {}
                    Some(run) if run.2 == targets[symbol] && run.1 + 1 == first => run.1 = last,
                    _ => row.push((first, last, targets[symbol])),
                }
            }
            rows.push(row);
            found.push(self.ends(&vector)?);
            if at % 256 == 0 {
                self.planner.meter.states(vectors.len())?;
                self.planner.meter.bytes(vectors.bytes())?;
                self.planner.meter.time()?;
            }
            at += 1;
        }
        // Transitions into states that lead to no end are removed.
        let nexts = rows.iter().map(|row| row.iter().map(|&(_, _, to)| to).collect());
        let live = live(found.iter().map(Option::is_some), nexts);
        if !live[start as usize] {
            return Ok(None);
        }
        for row in &mut rows {
            row.retain(|&(_, _, to)| live[to as usize]);
        }
        let ends = found.iter().map(|found| found.as_ref().map(|answers| plan.outcome(answers))).collect();
        Ok(Some(Labelled::Apart { start, rows, ends }))
    }

    /// Makes states that decide nothing any more one: dead.
    fn settle(&mut self, vector: &mut [u32]) {
        let dead: Vec<bool> = vector.iter().map(|&state| state == 0).collect();
        if !self.live.contains_key(&dead) {
            let live = self.live_beside(&dead);
            self.live.insert(dead.clone(), live);
        }
        match &self.live[&dead] {
            None => vector.fill(0),
            Some(live) => {
                for (state, live) in vector.iter_mut().zip(live) {
                    if !live {
                        *state = 0;
                    }
                }
            }
        }
    }

    fn live_beside(&mut self, dead: &[bool]) -> Option<Vec<bool>> {
        if dead[0] {
            return None;
        }
        let decided = self.leaves.iter().filter(|judged| dead[judged.possibly]);
        let values = decided.map(|judged| (judged.leaf, Formula::FALSE)).collect();
        let residues = self.planner.assign(&self.residues, &values);
        if residues[0] == Formula::FALSE {
            return None;
        }
        let left = self.planner.leaves_of(&residues);
        let mut live = vec![true; dead.len()];
        for judged in self.leaves {
            live[judged.surely..=judged.possibly].fill(left.contains(&judged.leaf));
        }
        Some(live)
    }

    /// The answers of a text that ends here.
    fn ends(&mut self, vector: &[u32]) -> Result<Option<Vec<bool>>> {
        let accepts = |at: usize| self.automata[at].is_accepting(ByteStateId(vector[at]));
        if !accepts(0) {
            return Ok(None);
        }
        // Leaves that are undecided stay as they are: nothing may depend on them.
        let truth = |judged: &Judged| match (accepts(judged.surely), accepts(judged.possibly)) {
            (true, _) => Some((judged.leaf, Formula::TRUE)),
            (_, false) => Some((judged.leaf, Formula::FALSE)),
            _ => None,
        };
        let values = self.leaves.iter().filter_map(truth).collect();
        let residues = self.planner.assign(&self.residues, &values);
        if residues[0] != Formula::TRUE {
            return Ok(None);
        }
        Ok(residues[1..].iter().map(|residue| residue.decided()).collect())
    }
}

impl Labelled {
    fn alike(dfa: Arc<ByteDfa>, outcome: u32) -> Self {
        Self::Alike { intervals: dfa.intervals(), dfa, outcome }
    }

    pub(in super::super) fn start(&self) -> u32 {
        match self {
            Self::Alike { dfa, .. } => dfa.start().0,
            Self::Apart { start, .. } => *start,
        }
    }

    pub(in super::super) fn state_count(&self) -> usize {
        match self {
            Self::Alike { dfa, .. } => dfa.state_count(),
            Self::Apart { rows, .. } => rows.len(),
        }
    }

    /// Puts the transitions of a state in the place of those in `row`, in order.
    pub(in super::super) fn row(&self, state: u32, row: &mut Vec<(u8, u8, u32)>) {
        row.clear();
        let (dfa, intervals) = match self {
            Self::Alike { dfa, intervals, .. } => (dfa, intervals),
            Self::Apart { rows, .. } => return row.extend_from_slice(&rows[state as usize]),
        };
        for &(first, last, class) in intervals {
            let to = dfa.next_by_class(ByteStateId(state), class).0;
            match row.last_mut() {
                _ if to == 0 => {}
                Some(run) if run.2 == to && run.1 + 1 == first => run.1 = last,
                _ => row.push((first, last, to)),
            }
        }
    }

    /// Whether a text goes on from a state.
    pub(in super::super) fn goes_on(&self, state: u32) -> bool {
        match self {
            Self::Alike { dfa, .. } => (0..dfa.class_count())
                .any(|class| dfa.next_by_class(ByteStateId(state), class) != ByteStateId::DEAD),
            Self::Apart { rows, .. } => !rows[state as usize].is_empty(),
        }
    }

    /// The outcome of a text that ends in a state.
    pub(in super::super) fn end(&self, state: u32) -> Option<u32> {
        match self {
            Self::Alike { dfa, outcome, .. } => dfa.is_accepting(ByteStateId(state)).then_some(*outcome),
            Self::Apart { ends, .. } => ends[state as usize],
        }
    }

    /// The outcome of a text.
    pub(in super::super) fn outcome(&self, text: &[u8]) -> Option<u32> {
        let mut row = Vec::new();
        let mut state = self.start();
        for byte in text {
            self.row(state, &mut row);
            state = row.iter().find(|run| run.0 <= *byte && *byte <= run.1)?.2;
        }
        self.end(state)
    }
}

/// The coarsest symbols that all automata can be read by, and each symbol's class in each.
fn joint_symbols(automata: &[Arc<ByteDfa>]) -> ([usize; 256], Vec<Vec<usize>>) {
    let mut columns: Vec<Vec<usize>> = Vec::new();
    let mut known: FastMap<Vec<usize>, usize> = FastMap::default();
    let symbols = std::array::from_fn(|byte| {
        let column: Vec<usize> = automata.iter().map(|dfa| dfa.classes()[byte] as usize).collect();
        *known.entry(column).or_insert_with_key(|column| {
            columns.push(column.clone());
            columns.len() - 1
        })
    });
    (symbols, columns)
}
