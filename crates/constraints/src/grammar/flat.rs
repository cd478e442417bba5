//! Grammars prepared for emission: hash-consed expressions, and properties of them.
//!
//! A *flat expression* is an expression whose sequences and choices are flat. Expressions that are
//! regular by their kind (a regex, a terminal, an intersection, a complement) are automata already.

use burn_dfa_common::{Error, ErrorKind, Result, limits::Meter, threads};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::counted::Counting;
use super::form::{Counted, Expression, Grammar, Lexing, Node, TokenName};
use super::tokens::{Codes, Sets};
use super::{Lexical, regular};
use crate::{Called, Constraint, Lowered};
use burn_dfa_automata::{ByteDfa, ByteStateId, CountedPart, FastMap, SparseAutomaton, SparseDfa};
use burn_dfa_vocabulary::TokenId;

/// The number of an expression.
pub(super) type ExprId = usize;

/// An expression, flat.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum FlatExpr {
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
    Sequence(Vec<ExprId>),
    Choice(Vec<ExprId>),
    Repeat {
        inner: ExprId,
        min: usize,
        max: Option<usize>,
    },
    /// One of a set of tokens, by number.
    Tokens(usize),
}

impl FlatExpr {
    /// Its memory, roughly.
    fn bytes(&self) -> usize {
        let heap = match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Sequence(exprs) | Self::Choice(exprs) => exprs.len() * size_of::<ExprId>(),
            _ => 0,
        };
        size_of::<Self>() + heap
    }
}

/// The positions of ignored text, in addition to the positions after terminals.
#[derive(Clone, Copy, Debug)]
pub(super) struct Skips {
    /// Also before the first terminal.
    pub(super) leading: bool,
    /// Only once.
    pub(super) once: bool,
}

/// The rules of a grammar as expressions.
pub(super) struct FlatGrammar<'m> {
    pub(super) meter: &'m Meter<'m>,
    exprs: Vec<FlatExpr>,
    known: HashMap<FlatExpr, ExprId>,
    /// Bytes of `exprs` and `known`, roughly.
    pub(super) expr_bytes: usize,
    pub(super) dfas: Vec<Arc<ByteDfa>>,
    classes: HashMap<Vec<(char, char)>, usize>,
    pub(super) nested: Vec<SparseAutomaton>,
    /// The expressions with counted tokens, here or within.
    pub(super) counted: Vec<Arc<CountedPart>>,
    /// The name of the first counted expression.
    pub(super) counted_name: Option<String>,
    /// The index of each counted expression, by address.
    counted_of: FastMap<usize, usize>,
    /// The sets of tokens read whole.
    pub(super) sets: Sets,
    /// The bytes that encode token classes, if there are any.
    pub(super) codes: Option<Codes>,
    /// By rule, in the [normal form](super::normal).
    pub(super) bodies: Vec<ExprId>,
    /// By rule, as given.
    pub(super) given: Vec<ExprId>,
    /// By rule, its representative after merging.
    pub(super) stands: Vec<usize>,
    /// Ignored text between terminals.
    pub(super) ignored: Option<usize>,
    /// If texts are cut into terminals, how it may.
    pub(super) lexing: Option<Skips>,
    /// By expression.
    nullable: Vec<bool>,
    productive: Vec<bool>,
    /// The automata of other constraints lowered so far, by address of the constraint.
    lowered: FastMap<usize, Result<Called>>,
    /// Bytes of all these automata.
    bytes: usize,
    depth: usize,
}

/// The grammar of the expressions.
struct Within<'g> {
    grammar: &'g Grammar,
    counting: &'g mut Counting,
}

/// The name of a counted expression within another constraint.
const WITHIN: &str = "a grammar within it";

/// Most levels of expressions within each other.
const MAX_NESTING: usize = 500;

impl<'m> FlatGrammar<'m> {
    /// # Errors
    /// A limit is exceeded, or a nested constraint is rejected.
    pub(super) fn new(grammar: &Grammar, meter: &'m Meter<'m>, counting: &mut Counting) -> Result<Self> {
        grammar.check(meter)?;
        let mut flat = Self {
            meter,
            exprs: Vec::new(),
            known: HashMap::new(),
            expr_bytes: 0,
            dfas: Vec::new(),
            classes: HashMap::new(),
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
            let body = flat.expr(&rule.body, &mut within)?;
            flat.bodies.push(body);
        }
        if let Lexing::Longest { ignored, leading, once } = &grammar.lexing {
            flat.lexing = Some(Skips { leading: *leading, once: *once });
            if let Some(ignored) = ignored {
                let dfa = regular::lower(ignored, meter)?;
                flat.ignored = Some(flat.dfa(dfa));
            }
        }
        if !flat.sets.is_empty() || flat.counts() {
            flat.codes = Some(flat.codes()?);
        }
        flat.lowered.clear();
        flat.nullable = flat.least(Has::Nothing);
        flat.productive = flat.least(Has::Any);
        flat.given.clone_from(&flat.bodies);
        flat.normalize()?;
        Ok(flat)
    }

    /// Codes for the sets of tokens.
    fn codes(&self) -> Result<Codes> {
        let mut literal = [false; 256];
        for expr in &self.exprs {
            if let FlatExpr::Bytes(bytes) = expr {
                bytes.iter().for_each(|&byte| literal[byte as usize] = true);
            }
        }
        let nested = self.nested.iter().map(|nested| nested.rows().classes());
        let dfas = self.dfas.iter().map(|dfa| dfa.classes());
        let counted = self.counted.iter().map(|expr| expr.rows.rows().classes());
        Codes::new(&self.sets, dfas.chain(nested).chain(counted), &literal, self.counts())
    }

    /// Whether tokens are counted.
    pub(super) fn counts(&self) -> bool {
        !self.counted.is_empty()
    }

    pub(super) fn get(&self, expr: ExprId) -> &FlatExpr {
        &self.exprs[expr]
    }

    /// The class of characters an automaton was made from; `None` for other automata.
    pub(super) fn class_of(&self, dfa: usize) -> Option<&[(char, char)]> {
        // Several lists of ranges may have one automaton.
        self.classes.iter().filter(|&(_, &of)| of == dfa).map(|(class, _)| class.as_slice()).min()
    }

    /// Whether the empty text is one of the texts of an expression.
    pub(super) fn is_nullable(&self, expr: ExprId) -> bool {
        self.nullable[expr]
    }

    /// Whether an expression has a text at all.
    pub(super) fn is_productive(&self, expr: ExprId) -> bool {
        self.productive[expr]
    }

    /// Whether no text of an expression is a prefix of another, as far as known without its rules.
    pub(super) fn closes(&self, expr: ExprId) -> bool {
        match &self.exprs[expr] {
            FlatExpr::Bytes(_) => true,
            FlatExpr::Dfa { terminal: Some(true), .. } => true,
            FlatExpr::Dfa { dfa, .. } => {
                let dfa = &self.dfas[*dfa];
                let ends =
                    |state| !dfa.is_accepting(state) || (0..=u8::MAX).all(|b| dfa.next(state, b).0 == 0);
                (1..dfa.state_count() as u32).map(ByteStateId).all(ends)
            }
            FlatExpr::Choice(exprs) => {
                // Bytes of one length each.
                let mut lengths = exprs.iter().map(|&expr| match &self.exprs[expr] {
                    FlatExpr::Bytes(bytes) => Some(bytes.len()),
                    _ => None,
                });
                let first = lengths.next().flatten();
                first.is_some() && lengths.all(|length| length == first)
            }
            FlatExpr::Tokens(_) => true,
            FlatExpr::Nested(_)
            | FlatExpr::Counted(_)
            | FlatExpr::Rule(_)
            | FlatExpr::Sequence(_)
            | FlatExpr::Repeat { .. } => false,
        }
    }

    /// The rules referenced by an expression.
    pub(super) fn rules_of(&self, expr: ExprId, found: &mut Vec<usize>) {
        match &self.exprs[expr] {
            FlatExpr::Rule(rule) => found.push(*rule),
            FlatExpr::Sequence(exprs) | FlatExpr::Choice(exprs) => {
                exprs.iter().for_each(|&expr| self.rules_of(expr, found));
            }
            FlatExpr::Repeat { inner, max, .. } if *max != Some(0) => self.rules_of(*inner, found),
            _ => {}
        }
    }

    /// The rules at the beginning of an expression, before it reads anything.
    pub(super) fn corners_of(&self, expr: ExprId, found: &mut Vec<usize>) {
        match &self.exprs[expr] {
            FlatExpr::Rule(rule) => found.push(*rule),
            FlatExpr::Choice(exprs) => exprs.iter().for_each(|&expr| self.corners_of(expr, found)),
            FlatExpr::Sequence(exprs) => {
                for &expr in exprs {
                    self.corners_of(expr, found);
                    if !self.nullable[expr] {
                        break;
                    }
                }
            }
            FlatExpr::Repeat { inner, max, .. } if *max != Some(0) => self.corners_of(*inner, found),
            _ => {}
        }
    }

    /// Whether texts of an expression may end in any number of texts of `inner`.
    pub(super) fn ends_in(&self, expr: ExprId, inner: ExprId) -> bool {
        let mut seen = FastMap::default();
        let mut rest = vec![expr];
        while let Some(expr) = rest.pop() {
            match &self.exprs[expr] {
                FlatExpr::Repeat { inner: own, max: None, .. } if *own == inner => return true,
                FlatExpr::Choice(exprs) => rest.extend_from_slice(exprs),
                FlatExpr::Sequence(exprs) => rest.extend(exprs.last()),
                FlatExpr::Rule(rule) if seen.insert(*rule, ()).is_none() => rest.push(self.bodies[*rule]),
                _ => {}
            }
        }
        false
    }

    fn expr(&mut self, expression: &Expression, within: &mut Within<'_>) -> Result<ExprId> {
        self.depth += 1;
        if self.depth > MAX_NESTING {
            return Err(Error::grammar_as_a_whole(format!(
                "expressions lie within each other more than {MAX_NESTING} levels deep: name some of them"
            )));
        }
        let expr = self.kind(expression, within)?;
        self.depth -= 1;
        Ok(self.intern(expr))
    }

    fn kind(&mut self, expression: &Expression, within: &mut Within<'_>) -> Result<FlatExpr> {
        Ok(match &expression.0 {
            Node::Literal(bytes) => FlatExpr::Bytes(bytes.clone()),
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
                FlatExpr::Dfa { dfa, terminal: None }
            }
            Node::Regex(_) | Node::And(_) | Node::Not(_) | Node::Substring(_) => {
                let dfa = regular::lower(expression, self.meter)?;
                FlatExpr::Dfa { dfa: self.dfa(dfa), terminal: None }
            }
            Node::Terminal(terminal) => {
                let dfa = regular::lower(&terminal.body, self.meter)?;
                let dfa = if terminal.lazy { regular::lazy(&dfa, self.meter)? } else { dfa };
                FlatExpr::Dfa { dfa: self.dfa(dfa), terminal: Some(terminal.lazy) }
            }
            Node::Rule(rule) => FlatExpr::Rule(*rule),
            Node::Sequence(exprs) => self.sequence(exprs, within)?,
            Node::Choice(exprs) => {
                let mut flat = Vec::with_capacity(exprs.len());
                for expr in exprs {
                    let expr = self.expr(expr, within)?;
                    match &self.exprs[expr] {
                        FlatExpr::Choice(inner) => flat.extend_from_slice(inner),
                        _ => flat.push(expr),
                    }
                }
                match flat[..] {
                    [one] => self.exprs[one].clone(),
                    _ => FlatExpr::Choice(flat),
                }
            }
            Node::Repeat { inner, min, max } => {
                let inner = self.expr(inner, within)?;
                match (min, max) {
                    (1, Some(1)) => self.exprs[inner].clone(),
                    _ => FlatExpr::Repeat { inner, min: *min, max: *max },
                }
            }
            Node::Constraint(constraint) => self.nested(constraint)?,
            Node::Grammar(grammar) => {
                let Lexical { determinized, tokens } = grammar.lower(self.meter)?;
                if let SparseAutomaton::Finite(rows) = &determinized
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
                self.nested.push(determinized);
                FlatExpr::Nested(self.nested.len() - 1)
            }
            Node::Counted(counted) => match self.counted_part(counted, within)? {
                Some(part) => self.counted(part, &counted.name),
                None => FlatExpr::Choice(Vec::new()),
            },
            Node::Bounded(bounded) => {
                let levels = std::mem::replace(&mut within.counting.levels, self.depth);
                let bounded = within.counting.bounded(bounded, within.grammar, self.meter);
                within.counting.levels = levels;
                match bounded? {
                    Some(dfa) => FlatExpr::Dfa { dfa: self.dfa(dfa), terminal: None },
                    None => FlatExpr::Choice(Vec::new()),
                }
            }
            Node::Token { tokens, except } => {
                let ids = tokens.iter().map(id_of).collect::<Result<_>>()?;
                FlatExpr::Tokens(self.sets.number(ids, *except))
            }
        })
    }

    /// The automaton of a counted expression; `None` if it has no text.
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

    fn counted(&mut self, part: Arc<CountedPart>, name: &str) -> FlatExpr {
        let number = self.counted.len();
        let known = *self.counted_of.entry(Arc::as_ptr(&part) as usize).or_insert(number);
        if known == number {
            self.counted.push(part);
            self.counted_name.get_or_insert_with(|| name.to_owned());
        }
        FlatExpr::Counted(known)
    }

    fn sequence(&mut self, exprs: &[Expression], within: &mut Within<'_>) -> Result<FlatExpr> {
        let exprs: Result<Vec<ExprId>> = exprs.iter().map(|expr| self.expr(expr, within)).collect();
        Ok(self.joined(exprs?))
    }

    /// Expressions one after the other.
    pub(super) fn joined(&mut self, exprs: Vec<ExprId>) -> FlatExpr {
        let mut flat: Vec<ExprId> = Vec::with_capacity(exprs.len());
        // Adjacent literals are merged, unless they are terminals: `literal` is the pending text.
        let mut literal: Vec<u8> = Vec::new();
        let mut push = |own: &mut Self, expr: ExprId| match &own.exprs[expr] {
            FlatExpr::Bytes(bytes) => literal.extend_from_slice(bytes),
            _ => {
                if !literal.is_empty() {
                    flat.push(own.add(FlatExpr::Bytes(std::mem::take(&mut literal))));
                }
                flat.push(expr);
            }
        };
        for expr in exprs {
            match &self.exprs[expr] {
                FlatExpr::Sequence(inner) => inner.clone().into_iter().for_each(|expr| push(self, expr)),
                _ => push(self, expr),
            }
        }
        if !literal.is_empty() {
            flat.push(self.add(FlatExpr::Bytes(literal)));
        }
        match flat[..] {
            [] => FlatExpr::Bytes(Vec::new()),
            [one] => self.exprs[one].clone(),
            _ => FlatExpr::Sequence(flat),
        }
    }

    fn nested(&mut self, constraint: &Arc<Constraint>) -> Result<FlatExpr> {
        let lowered = self.lowered.remove(&(Arc::as_ptr(constraint) as usize));
        let lowered = match lowered.unwrap_or_else(|| constraint.lower_called(self.meter)) {
            Err(error) if error.kind() == ErrorKind::Unsatisfiable && constraint.may_be_empty() => {
                return Ok(FlatExpr::Choice(Vec::new()));
            }
            lowered => lowered?,
        };
        self.bytes = self.bytes.saturating_add(bytes_of(&lowered));
        self.meter.bytes(self.bytes)?;
        let nested = match lowered {
            Called::Yes(text) if text.free.is_empty() => SparseAutomaton::Pushdown(text.automaton),
            Called::No(Lowered::Rows(rows, _)) => SparseAutomaton::Finite(*rows),
            Called::No(Lowered::Bytes(text)) if text.free.is_empty() => {
                SparseAutomaton::Finite(SparseDfa::from(&*text.dfa))
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
        Ok(FlatExpr::Nested(self.nested.len() - 1))
    }

    fn dfa(&mut self, dfa: ByteDfa) -> usize {
        // The number is per language, so equal expressions are one.
        if let Some(known) = self.dfas.iter().rev().take(64).position(|known| **known == dfa) {
            return self.dfas.len() - 1 - known;
        }
        self.dfas.push(Arc::new(dfa));
        self.dfas.len() - 1
    }

    fn intern(&mut self, expr: FlatExpr) -> ExprId {
        if let Some(&known) = self.known.get(&expr) {
            return known;
        }
        self.expr_bytes += 2 * expr.bytes();
        self.exprs.push(expr.clone());
        self.known.insert(expr, self.exprs.len() - 1);
        self.exprs.len() - 1
    }

    /// Adds an expression to a grammar whose existing expressions may be analyzed already.
    pub(super) fn add(&mut self, expr: FlatExpr) -> ExprId {
        let added = self.intern(expr);
        // While the grammar is read nothing is known yet.
        if !self.productive.is_empty() && added == self.productive.len() {
            let nullable = self.has(added, Has::Nothing, &self.nullable);
            let productive = self.has(added, Has::Any, &self.productive);
            self.nullable.push(nullable);
            self.productive.push(productive);
        }
        added
    }

    /// For each expression whether it has a non-empty text.
    pub(super) fn filled(&self) -> Vec<bool> {
        self.least(Has::Something)
    }

    /// For each expression whether it has a text of a kind: the least solution.
    fn least(&self, kind: Has) -> Vec<bool> {
        let mut holds = vec![false; self.exprs.len()];
        // The expressions that refer to an expression, or to the rule with it as body.
        let mut users: Vec<Vec<ExprId>> = vec![Vec::new(); self.exprs.len()];
        for (expr, of) in self.exprs.iter().enumerate() {
            match of {
                FlatExpr::Rule(rule) => users[self.bodies[*rule]].push(expr),
                FlatExpr::Sequence(exprs) | FlatExpr::Choice(exprs) => {
                    exprs.iter().for_each(|&inner| users[inner].push(expr));
                }
                FlatExpr::Repeat { inner, .. } => users[*inner].push(expr),
                _ => {}
            }
        }
        let mut rest: Vec<ExprId> = (0..self.exprs.len()).collect();
        while let Some(expr) = rest.pop() {
            if !holds[expr] && self.has(expr, kind, &holds) {
                holds[expr] = true;
                rest.extend_from_slice(&users[expr]);
            }
        }
        holds
    }

    /// Whether an expression has a text of a kind, given `holds` for its operands.
    fn has(&self, expr: ExprId, kind: Has, holds: &[bool]) -> bool {
        let (nothing, something) = (kind != Has::Something, kind != Has::Nothing);
        let own = |is_nullable: bool| something || (nothing && is_nullable);
        match &self.exprs[expr] {
            FlatExpr::Bytes(bytes) => {
                if bytes.is_empty() {
                    nothing
                } else {
                    something
                }
            }
            FlatExpr::Tokens(set) => something && self.sets.get(*set).has_tokens(),
            FlatExpr::Dfa { dfa, .. } => {
                let dfa = &self.dfas[*dfa];
                let start = dfa.start();
                (nothing && dfa.is_accepting(start))
                    || (something && (0..=u8::MAX).any(|byte| dfa.next(start, byte) != ByteStateId::DEAD))
            }
            FlatExpr::Counted(counted) => own(self.counted[*counted].accepts_nothing_read()),
            FlatExpr::Nested(nested) => own(self.nested[*nested].rows().is_accepting(1)),
            FlatExpr::Rule(rule) => holds[self.bodies[*rule]],
            FlatExpr::Sequence(exprs) if kind == Has::Something => {
                exprs.iter().all(|&inner| self.productive[inner]) && exprs.iter().any(|&inner| holds[inner])
            }
            FlatExpr::Sequence(exprs) => exprs.iter().all(|&inner| holds[inner]),
            FlatExpr::Choice(exprs) => exprs.iter().any(|&inner| holds[inner]),
            FlatExpr::Repeat { inner, max, .. } if kind == Has::Something => *max != Some(0) && holds[*inner],
            FlatExpr::Repeat { inner, min, .. } => *min == 0 || holds[*inner],
        }
    }
}

/// A property of the texts of an expression.
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
    let lower = |&(address, constraint): &(usize, &Arc<Constraint>)| {
        let lowered = (!refused.load(Ordering::Relaxed)).then(|| constraint.lower_called(meter))?;
        let lowered = lowered.and_then(|lowered| {
            let own = bytes_of(&lowered);
            meter.bytes(bytes.fetch_add(own, Ordering::Relaxed).saturating_add(own)).map(|()| lowered)
        });
        let is_refused = lowered.as_ref().is_err_and(|error| error.kind() != ErrorKind::Unsatisfiable);
        refused.fetch_or(is_refused, Ordering::Relaxed);
        Some((address, lowered))
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
            "it names the token {name:?}, whose id a vocabulary has to tell: compile it with one"
        ))),
    }
}
