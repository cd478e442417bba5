//! Grammars prepared for emission: hash-consed expressions, and properties of them.
//!
//! A *part* is an expression whose sequences and choices are flat. Parts that are regular by their
//! kind (a regex, a terminal, an intersection, a complement) are automata already.

use burn_dfa_common::{Error, ErrorKind, Result, limits::Meter, threads};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::counted::Counting;
use super::form::{Counted, Expression, Grammar, Lexing, Node, TokenName};
use super::tokens::{Codes, Sets};
use super::{Lexical, regular};
use crate::nested::Nested;
use crate::{Called, Constraint, Lowered};
use burn_dfa_automata::{ByteDfa, ByteStateId, CountedPart, Determinized, FastMap, SparseDfa};
use burn_dfa_vocabulary::TokenId;

/// The number of a part.
pub(super) type PartId = usize;

/// An expression, flat.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Part {
    Bytes(Vec<u8>),
    /// An automaton, by number; for a terminal, whether it is lazy.
    Dfa {
        dfa: usize,
        terminal: Option<bool>,
    },
    Nested(usize),
    /// By number.
    Counted(usize),
    Rule(usize),
    Sequence(Vec<PartId>),
    Choice(Vec<PartId>),
    Repeat {
        inner: PartId,
        min: usize,
        max: Option<usize>,
    },
    /// One of a set of tokens, by number.
    Tokens(usize),
}

/// The positions of ignored text, in addition to the positions after terminals.
#[derive(Clone, Copy, Debug)]
pub(super) struct Skips {
    /// Also before the first terminal.
    pub(super) leading: bool,
    /// Only once.
    pub(super) once: bool,
}

/// The rules of a grammar as parts.
pub(super) struct Parts<'m> {
    pub(super) meter: &'m Meter<'m>,
    parts: Vec<Part>,
    known: FastMap<Part, PartId>,
    pub(super) dfas: Vec<Arc<ByteDfa>>,
    classes: FastMap<Vec<(char, char)>, usize>,
    pub(super) nested: Vec<Nested>,
    /// The parts with counted tokens, here or within.
    pub(super) counted: Vec<Arc<CountedPart>>,
    /// The name of the first counted part.
    pub(super) counted_name: Option<String>,
    /// The index of each counted part, by address.
    counted_of: FastMap<usize, usize>,
    /// The sets of tokens read whole.
    pub(super) sets: Sets,
    /// The bytes that encode token classes, if there are any.
    pub(super) codes: Option<Codes>,
    /// By rule, in the [normal form](super::normal).
    pub(super) bodies: Vec<PartId>,
    /// By rule, as given.
    pub(super) given: Vec<PartId>,
    /// By rule, its representative after merging.
    pub(super) stands: Vec<usize>,
    /// Ignored text between terminals.
    pub(super) ignored: Option<usize>,
    /// If texts are cut into terminals, how it may.
    pub(super) lexing: Option<Skips>,
    /// By part.
    nullable: Vec<bool>,
    productive: Vec<bool>,
    /// The automata of other constraints lowered so far, by address of the constraint.
    lowered: FastMap<usize, Result<Called>>,
    /// Bytes of all these automata.
    bytes: usize,
    depth: usize,
}

/// The grammar of the parts.
struct Within<'g> {
    grammar: &'g Grammar,
    counting: &'g mut Counting,
}

/// The name of a counted part within another constraint.
const WITHIN: &str = "a grammar within it";

/// Most levels of expressions within each other.
const MAX_NESTING: usize = 500;

impl<'m> Parts<'m> {
    /// # Errors
    /// A limit is exceeded, or a nested constraint is rejected.
    pub(super) fn new(grammar: &Grammar, meter: &'m Meter<'m>, counting: &mut Counting) -> Result<Self> {
        grammar.check(meter)?;
        let mut parts = Self {
            meter,
            parts: Vec::new(),
            known: FastMap::default(),
            dfas: Vec::new(),
            classes: FastMap::default(),
            nested: Vec::new(),
            counted: Vec::new(),
            counted_name: None,
            counted_of: FastMap::default(),
            sets: Sets::default(),
            codes: None,
            bodies: Vec::new(),
            given: Vec::new(),
            stands: (0..grammar.rules.len()).collect(),
            ignored: None,
            lexing: None,
            nullable: Vec::new(),
            productive: Vec::new(),
            lowered: lowered(grammar, meter),
            bytes: 0,
            depth: counting.levels,
        };
        let mut within = Within { grammar, counting };
        for rule in &grammar.rules {
            let body = parts.part(&rule.body, &mut within)?;
            parts.bodies.push(body);
        }
        if let Lexing::Longest { ignored, leading, once } = &grammar.lexing {
            parts.lexing = Some(Skips { leading: *leading, once: *once });
            if let Some(ignored) = ignored {
                let dfa = regular::lower(ignored, meter)?;
                parts.ignored = Some(parts.dfa(dfa));
            }
        }
        if !parts.sets.is_empty() || parts.counts() {
            parts.codes = Some(parts.codes()?);
        }
        parts.lowered.clear();
        parts.nullable = parts.least(Has::Nothing);
        parts.productive = parts.least(Has::Any);
        parts.given.clone_from(&parts.bodies);
        parts.normalize();
        Ok(parts)
    }

    /// Codes for the sets of tokens.
    fn codes(&self) -> Result<Codes> {
        let mut literal = [false; 256];
        for part in &self.parts {
            if let Part::Bytes(bytes) = part {
                bytes.iter().for_each(|&byte| literal[byte as usize] = true);
            }
        }
        let nested = self.nested.iter().map(|nested| match nested {
            Nested::Finite(rows) => rows.rows().classes(),
            Nested::Called(automaton) => automaton.rows().classes(),
        });
        let dfas = self.dfas.iter().map(|dfa| dfa.classes());
        let counted = self.counted.iter().map(|part| part.rows.rows().classes());
        Codes::new(&self.sets, dfas.chain(nested).chain(counted), &literal, self.counts())
    }

    /// Whether tokens are counted.
    pub(super) fn counts(&self) -> bool {
        !self.counted.is_empty()
    }

    pub(super) fn get(&self, part: PartId) -> &Part {
        &self.parts[part]
    }

    /// The class of characters an automaton was made from; `None` for other automata.
    pub(super) fn class_of(&self, dfa: usize) -> Option<&[(char, char)]> {
        self.classes.iter().find(|&(_, &of)| of == dfa).map(|(class, _)| class.as_slice())
    }

    /// Whether the empty text is one of a part's.
    pub(super) fn is_nullable(&self, part: PartId) -> bool {
        self.nullable[part]
    }

    /// Whether a part has a text at all.
    pub(super) fn is_productive(&self, part: PartId) -> bool {
        self.productive[part]
    }

    /// Whether no text of a part is a prefix of another, as far as known without its rules.
    pub(super) fn closes(&self, part: PartId) -> bool {
        match &self.parts[part] {
            Part::Bytes(_) => true,
            Part::Dfa { terminal: Some(true), .. } => true,
            Part::Dfa { dfa, .. } => {
                let dfa = &self.dfas[*dfa];
                let ends =
                    |state| !dfa.is_accepting(state) || (0..=u8::MAX).all(|b| dfa.next(state, b).0 == 0);
                (1..dfa.state_count() as u32).map(ByteStateId).all(ends)
            }
            Part::Choice(parts) => {
                // Bytes of one length each.
                let mut lengths = parts.iter().map(|&part| match &self.parts[part] {
                    Part::Bytes(bytes) => Some(bytes.len()),
                    _ => None,
                });
                let first = lengths.next().flatten();
                first.is_some() && lengths.all(|length| length == first)
            }
            Part::Tokens(_) => true,
            Part::Nested(_) | Part::Counted(_) | Part::Rule(_) | Part::Sequence(_) | Part::Repeat { .. } => {
                false
            }
        }
    }

    /// The rules referenced by a part.
    pub(super) fn rules_of(&self, part: PartId, found: &mut Vec<usize>) {
        match &self.parts[part] {
            Part::Rule(rule) => found.push(*rule),
            Part::Sequence(parts) | Part::Choice(parts) => {
                parts.iter().for_each(|&part| self.rules_of(part, found));
            }
            Part::Repeat { inner, max, .. } if *max != Some(0) => self.rules_of(*inner, found),
            _ => {}
        }
    }

    /// The rules at the beginning of a part, before it reads anything.
    pub(super) fn corners_of(&self, part: PartId, found: &mut Vec<usize>) {
        match &self.parts[part] {
            Part::Rule(rule) => found.push(*rule),
            Part::Choice(parts) => parts.iter().for_each(|&part| self.corners_of(part, found)),
            Part::Sequence(parts) => {
                for &part in parts {
                    self.corners_of(part, found);
                    if !self.nullable[part] {
                        break;
                    }
                }
            }
            Part::Repeat { inner, max, .. } if *max != Some(0) => self.corners_of(*inner, found),
            _ => {}
        }
    }

    /// Whether texts of a part may end in any number of texts of `inner`.
    pub(super) fn ends_in(&self, part: PartId, inner: PartId) -> bool {
        let mut seen = FastMap::default();
        let mut rest = vec![part];
        while let Some(part) = rest.pop() {
            match &self.parts[part] {
                Part::Repeat { inner: own, max: None, .. } if *own == inner => return true,
                Part::Choice(parts) => rest.extend_from_slice(parts),
                Part::Sequence(parts) => rest.extend(parts.last()),
                Part::Rule(rule) if seen.insert(*rule, ()).is_none() => rest.push(self.bodies[*rule]),
                _ => {}
            }
        }
        false
    }

    fn part(&mut self, expression: &Expression, within: &mut Within<'_>) -> Result<PartId> {
        self.depth += 1;
        if self.depth > MAX_NESTING {
            return Err(Error::grammar_as_a_whole(format!(
                "expressions lie within each other more than {MAX_NESTING} levels deep: name some of them"
            )));
        }
        let part = self.kind(expression, within)?;
        self.depth -= 1;
        Ok(self.intern(part))
    }

    fn kind(&mut self, expression: &Expression, within: &mut Within<'_>) -> Result<Part> {
        Ok(match &expression.0 {
            Node::Literal(bytes) => Part::Bytes(bytes.clone()),
            Node::Class(ranges) => {
                let dfa = match self.classes.get(ranges) {
                    Some(&dfa) => dfa,
                    None => {
                        let lowered = regular::lower(expression, self.meter)?;
                        let dfa = self.dfa(lowered);
                        self.classes.insert(ranges.clone(), dfa);
                        dfa
                    }
                };
                Part::Dfa { dfa, terminal: None }
            }
            Node::Regex(_) | Node::And(_) | Node::Not(_) | Node::Substring(_) => {
                let dfa = regular::lower(expression, self.meter)?;
                Part::Dfa { dfa: self.dfa(dfa), terminal: None }
            }
            Node::Terminal(terminal) => {
                let dfa = regular::lower(&terminal.body, self.meter)?;
                let dfa = if terminal.lazy { regular::lazy(&dfa, self.meter)? } else { dfa };
                Part::Dfa { dfa: self.dfa(dfa), terminal: Some(terminal.lazy) }
            }
            Node::Rule(rule) => Part::Rule(*rule),
            Node::Sequence(parts) => self.sequence(parts, within)?,
            Node::Choice(parts) => {
                let mut flat = Vec::with_capacity(parts.len());
                for part in parts {
                    let part = self.part(part, within)?;
                    match &self.parts[part] {
                        Part::Choice(inner) => flat.extend_from_slice(inner),
                        _ => flat.push(part),
                    }
                }
                match flat[..] {
                    [one] => self.parts[one].clone(),
                    _ => Part::Choice(flat),
                }
            }
            Node::Repeat { inner, min, max } => {
                let inner = self.part(inner, within)?;
                match (min, max) {
                    (1, Some(1)) => self.parts[inner].clone(),
                    _ => Part::Repeat { inner, min: *min, max: *max },
                }
            }
            Node::Constraint(constraint) => self.nested(constraint)?,
            Node::Grammar(grammar) => {
                let Lexical { determinized, tokens } = grammar.lower(self.meter)?;
                if let Determinized::Finite(rows) = &determinized
                    && tokens.edges.is_empty()
                    && !tokens.boundaries.is_empty()
                {
                    return Ok(
                        self.counted(CountedPart::new(rows.clone(), tokens.boundaries, None).into(), WITHIN)
                    );
                }
                if !tokens.edges.is_empty() {
                    return Err(Error::grammar_as_a_whole(
                        "a grammar within another one names tokens: write them around it",
                    ));
                }
                let nested = match determinized {
                    Determinized::Finite(rows) => Nested::Finite(Box::new(rows)),
                    Determinized::Called(automaton) => Nested::Called(Box::new(automaton)),
                };
                self.nested.push(nested);
                Part::Nested(self.nested.len() - 1)
            }
            Node::Counted(counted) => match self.counted_part(counted, within)? {
                Some(part) => self.counted(part, &counted.name),
                None => Part::Choice(Vec::new()),
            },
            Node::Bounded(bounded) => {
                let levels = std::mem::replace(&mut within.counting.levels, self.depth);
                let bounded = within.counting.bounded(bounded, within.grammar, self.meter);
                within.counting.levels = levels;
                match bounded? {
                    Some(dfa) => Part::Dfa { dfa: self.dfa(dfa), terminal: None },
                    None => Part::Choice(Vec::new()),
                }
            }
            Node::Token { tokens, except } => {
                let ids = tokens.iter().map(id_of).collect::<Result<_>>()?;
                Part::Tokens(self.sets.number(ids, *except))
            }
        })
    }

    /// The automaton of a counted part; `None` if it has no text.
    fn counted_part(
        &self,
        counted: &Arc<Counted>,
        within: &mut Within<'_>,
    ) -> Result<Option<Arc<CountedPart>>> {
        let levels = std::mem::replace(&mut within.counting.levels, self.depth);
        let part = within.counting.part(counted, within.grammar, self.meter);
        within.counting.levels = levels;
        part
    }

    fn counted(&mut self, part: Arc<CountedPart>, name: &str) -> Part {
        let number = self.counted.len();
        let known = *self.counted_of.entry(Arc::as_ptr(&part) as usize).or_insert(number);
        if known == number {
            self.counted.push(part);
            self.counted_name.get_or_insert_with(|| name.to_owned());
        }
        Part::Counted(known)
    }

    fn sequence(&mut self, parts: &[Expression], within: &mut Within<'_>) -> Result<Part> {
        let parts: Result<Vec<PartId>> = parts.iter().map(|part| self.part(part, within)).collect();
        Ok(self.joined(parts?))
    }

    /// Parts one after the other.
    pub(super) fn joined(&mut self, parts: Vec<PartId>) -> Part {
        let mut flat: Vec<PartId> = Vec::with_capacity(parts.len());
        // Adjacent literals are merged, unless they are terminals: `literal` is the pending text.
        let mut literal: Vec<u8> = Vec::new();
        let mut push = |own: &mut Self, part: PartId| match &own.parts[part] {
            Part::Bytes(bytes) => literal.extend_from_slice(bytes),
            _ => {
                if !literal.is_empty() {
                    flat.push(own.add(Part::Bytes(std::mem::take(&mut literal))));
                }
                flat.push(part);
            }
        };
        for part in parts {
            match &self.parts[part] {
                Part::Sequence(inner) => inner.clone().into_iter().for_each(|part| push(self, part)),
                _ => push(self, part),
            }
        }
        if !literal.is_empty() {
            flat.push(self.add(Part::Bytes(literal)));
        }
        match flat[..] {
            [] => Part::Bytes(Vec::new()),
            [one] => self.parts[one].clone(),
            _ => Part::Sequence(flat),
        }
    }

    fn nested(&mut self, constraint: &Arc<Constraint>) -> Result<Part> {
        let lowered = self.lowered.remove(&(Arc::as_ptr(constraint) as usize));
        let lowered = match lowered.unwrap_or_else(|| constraint.lower_called(self.meter)) {
            Err(error) if error.kind() == ErrorKind::Unsatisfiable && constraint.may_be_empty() => {
                return Ok(Part::Choice(Vec::new()));
            }
            lowered => lowered?,
        };
        self.bytes = self.bytes.saturating_add(bytes_of(&lowered));
        self.meter.bytes(self.bytes)?;
        let nested = match lowered {
            Called::Yes(text) if text.free.is_empty() => Nested::Called(Box::new(text.automaton)),
            Called::No(Lowered::Rows(rows, _)) => Nested::Finite(rows),
            Called::No(Lowered::Bytes(text)) if text.free.is_empty() => {
                Nested::Finite(Box::new(SparseDfa::from(&*text.dfa)))
            }
            Called::No(Lowered::Bytes(text)) if text.free.is_counted_alone() => {
                let rows = SparseDfa::from(&*text.dfa);
                return Ok(
                    self.counted(CountedPart::new(rows, text.free.tokens.boundaries, None).into(), WITHIN)
                );
            }
            _ => {
                return Err(Error::grammar_as_a_whole(
                    "a constraint on tokens, or one behind a marker, cannot be part of a grammar",
                ));
            }
        };
        self.nested.push(nested);
        Ok(Part::Nested(self.nested.len() - 1))
    }

    fn dfa(&mut self, dfa: ByteDfa) -> usize {
        // The number is per language, so equal parts are one.
        if let Some(known) = self.dfas.iter().rev().take(64).position(|known| **known == dfa) {
            return self.dfas.len() - 1 - known;
        }
        self.dfas.push(Arc::new(dfa));
        self.dfas.len() - 1
    }

    fn intern(&mut self, part: Part) -> PartId {
        if let Some(&known) = self.known.get(&part) {
            return known;
        }
        self.parts.push(part.clone());
        self.known.insert(part, self.parts.len() - 1);
        self.parts.len() - 1
    }

    /// Adds a part to a grammar whose existing parts may be analyzed already.
    pub(super) fn add(&mut self, part: Part) -> PartId {
        let added = self.intern(part);
        // While the grammar is read nothing is known yet.
        if !self.productive.is_empty() && added == self.productive.len() {
            let nullable = self.has(added, Has::Nothing, &self.nullable);
            let productive = self.has(added, Has::Any, &self.productive);
            self.nullable.push(nullable);
            self.productive.push(productive);
        }
        added
    }

    /// For each part whether it has a non-empty text.
    pub(super) fn filled(&self) -> Vec<bool> {
        self.least(Has::Something)
    }

    /// For each part whether it has a text of a kind: the least solution.
    fn least(&self, kind: Has) -> Vec<bool> {
        let mut holds = vec![false; self.parts.len()];
        // The parts that refer to a part, or to the rule with it as body.
        let mut users: Vec<Vec<PartId>> = vec![Vec::new(); self.parts.len()];
        for (part, of) in self.parts.iter().enumerate() {
            match of {
                Part::Rule(rule) => users[self.bodies[*rule]].push(part),
                Part::Sequence(parts) | Part::Choice(parts) => {
                    parts.iter().for_each(|&inner| users[inner].push(part));
                }
                Part::Repeat { inner, .. } => users[*inner].push(part),
                _ => {}
            }
        }
        let mut rest: Vec<PartId> = (0..self.parts.len()).collect();
        while let Some(part) = rest.pop() {
            if !holds[part] && self.has(part, kind, &holds) {
                holds[part] = true;
                rest.extend_from_slice(&users[part]);
            }
        }
        holds
    }

    /// Whether a part has a text of a kind, given `holds` for its operands.
    fn has(&self, part: PartId, kind: Has, holds: &[bool]) -> bool {
        let (nothing, something) = (kind != Has::Something, kind != Has::Nothing);
        let own = |is_nullable: bool| something || (nothing && is_nullable);
        match &self.parts[part] {
            Part::Bytes(bytes) => {
                if bytes.is_empty() {
                    nothing
                } else {
                    something
                }
            }
            Part::Tokens(set) => something && self.sets.get(*set).has_tokens(),
            Part::Dfa { dfa, .. } => {
                let dfa = &self.dfas[*dfa];
                let start = dfa.start();
                (nothing && dfa.is_accepting(start))
                    || (something && (0..=u8::MAX).any(|byte| dfa.next(start, byte) != ByteStateId::DEAD))
            }
            Part::Counted(counted) => own(self.counted[*counted].accepts_nothing_read()),
            Part::Nested(nested) => own(self.nested[*nested].accepts_nothing_read()),
            Part::Rule(rule) => holds[self.bodies[*rule]],
            Part::Sequence(parts) if kind == Has::Something => {
                parts.iter().all(|&inner| self.productive[inner]) && parts.iter().any(|&inner| holds[inner])
            }
            Part::Sequence(parts) => parts.iter().all(|&inner| holds[inner]),
            Part::Choice(parts) => parts.iter().any(|&inner| holds[inner]),
            Part::Repeat { inner, max, .. } if kind == Has::Something => *max != Some(0) && holds[*inner],
            Part::Repeat { inner, min, .. } => *min == 0 || holds[*inner],
        }
    }
}

/// A property of the texts of a part.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Has {
    /// Whether the empty text is one of its.
    Nothing,
    /// Whether another one is.
    Something,
    /// Whether any text exists.
    Any,
}

/// The automata of the other constraints of a grammar, by address of the constraint, if several
/// threads build them in parallel. Missing ones are built on first use.
fn lowered(grammar: &Grammar, meter: &Meter) -> FastMap<usize, Result<Called>> {
    let mut found: FastMap<usize, &Arc<Constraint>> = FastMap::default();
    let mut rest: Vec<&Expression> = grammar.rules.iter().map(|rule| &rule.body).collect();
    while let Some(expression) = rest.pop() {
        match &expression.0 {
            Node::Sequence(inner) | Node::Choice(inner) => rest.extend(inner),
            Node::Repeat { inner, .. } => rest.push(inner),
            Node::Constraint(constraint) => {
                found.insert(Arc::as_ptr(constraint) as usize, constraint);
            }
            _ => {}
        }
    }
    let threads = meter.limits().threads;
    if threads <= 1 || found.len() <= 1 {
        return FastMap::default();
    }
    let found: Vec<(usize, &Arc<Constraint>)> = found.into_iter().collect();
    // After one failure, the others may not be needed.
    let refused = AtomicBool::new(false);
    let bytes = AtomicUsize::new(0);
    let lower = |&(place, constraint): &(usize, &Arc<Constraint>)| {
        let lowered = (!refused.load(Ordering::Relaxed)).then(|| constraint.lower_called(meter))?;
        let lowered = lowered.and_then(|lowered| {
            let own = bytes_of(&lowered);
            meter.bytes(bytes.fetch_add(own, Ordering::Relaxed).saturating_add(own)).map(|()| lowered)
        });
        let is_refused = lowered.as_ref().is_err_and(|error| error.kind() != ErrorKind::Unsatisfiable);
        refused.fetch_or(is_refused, Ordering::Relaxed);
        Some((place, lowered))
    };
    threads::each(&found, threads, lower).into_iter().flatten().collect()
}

/// Memory of an automaton, roughly.
fn bytes_of(lowered: &Called) -> usize {
    match lowered {
        Called::Yes(text) => text.automaton.rows().bytes(),
        Called::No(Lowered::Rows(rows, _)) => rows.rows().bytes(),
        Called::No(Lowered::Bytes(text)) => {
            text.dfa.state_count() * text.dfa.class_count() * size_of::<u32>()
        }
        Called::No(Lowered::Tokens(..)) => 0,
    }
}

/// The id of a token.
fn id_of(token: &TokenName) -> Result<TokenId> {
    match token {
        TokenName::Id(id) => Ok(*id),
        TokenName::Text(name) => Err(Error::grammar_as_a_whole(format!(
            "it names the token {name:?}, whose id a vocabulary has to tell: compile a table of it"
        ))),
    }
}
