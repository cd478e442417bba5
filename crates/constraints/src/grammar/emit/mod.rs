//! Emits grammars as transition networks.
//!
//! Rules are copied before the state that follows each reference. Three techniques keep the copies
//! finite:
//! - **Right recursion** refers to a rule before the state that already follows the rule: the same
//!   copy serves, so it is a loop.
//! - **Left recursion** refers to a rule before the rule has read anything. The continuation of the
//!   reference may follow the rule: all such continuations become branches of a node after the
//!   rule, so it is a loop too. This also works through other rules and after expressions that may
//!   be empty.
//! - **Embedded recursion**, with something to read before and after the reference, is a call. It
//!   extends from after the last required expression before the reference to the last required,
//!   non-recursive expression after it. In `"[" (value ("," value)*)? "]" space?` the caller reads
//!   the bracket, then calls `(value ("," value)*)? "]"`, then reads the space. So most procedures
//!   end with their closing byte. If no such expression follows, as in `"a" s s`, and the copies
//!   would not end, the rule alone is called.
//!
//! Reference: J. Aycock and N. Horspool, *Faster Generalised LR Parsing*, CC 1999, and E. Scott and
//! A. Johnstone, *Generalised Bottom Up Parsers With Reduced Stack Activity*, The Computer Journal
//! 48(5), 2005: only embedded recursion needs a stack.

mod rule;

use super::brackets::{Brackets, Position, sccs};
use super::flat::{ExprId, FlatExpr, FlatGrammar};
use crate::nested::Procedures;
use burn_dfa_automata::{FastMap, Rows, TransitionNetwork};
use burn_dfa_common::{Error, Result, limits::Meter};

/// Deepest nesting of copied rules and groups.
const MAX_NESTING: usize = 256;

/// A called procedure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum ProcedureKey {
    /// The expressions of an expanded sequence from one to another, both included, in a rule of a
    /// component.
    Slice {
        sequence: ExprId,
        from: usize,
        to: usize,
        scc: u32,
        knot: u32,
    },
    Rule(usize),
}

/// A called procedure, for a report.
pub(super) enum CalledProcedure {
    Rule(usize),
    /// The expressions of an expanded sequence from one to another, both included.
    Slice {
        sequence: ExprId,
        exprs: Vec<ExprId>,
        from: usize,
        to: usize,
    },
}

/// The context of an emitted expression.
#[derive(Clone, Copy, Debug)]
struct Context {
    /// The open left-recursive rules that have read nothing; 0 for none.
    chain: u32,
    position: Position,
}

impl Context {
    /// The context after another expression of the same rule.
    fn rest(self, outermost: bool) -> Self {
        Self { chain: 0, position: Position { behind: true, outermost, ..self.position } }
    }

    /// The context if nothing was read before.
    fn first(self, outermost: bool) -> Self {
        Self { position: Position { outermost, ..self.position }, ..self }
    }

    /// The same, repeated.
    fn again(self) -> Self {
        Self { chain: 0, position: Position { behind: false, ..self.position } }
    }
}

/// An open left-recursive rule.
struct Link {
    before: u32,
    rule: usize,
    /// The continuations of the rule.
    branches: Vec<u32>,
}

pub(super) struct Emitter<'p, 'm> {
    flat: &'p FlatGrammar<'m>,
    /// The rows of the automata of the expressions.
    rows: Vec<Rows>,
    pub(super) network: TransitionNetwork<'m>,
    brackets: Brackets<'p, 'm>,
    /// The strongly connected component of each rule, counting only references at the beginning of
    /// rules; 0 if the rule does not begin with itself.
    left_scc_of: Vec<u32>,
    corners: Vec<Vec<usize>>,
    /// The start of an expression outside of left recursion, by the next node and the rest of its
    /// context.
    begins: FastMap<(ExprId, u32, Position), u32>,
    /// The start of a copy of a rule, by rule, next node, chain, and whether it is outermost.
    starts: FastMap<(usize, u32, u32, bool), u32>,
    chains: Vec<Link>,
    procedure_starts: FastMap<ProcedureKey, u32>,
    open: Vec<(ProcedureKey, u32)>,
    /// The rules being copied, with the next node, and whether they are outermost.
    active: Vec<(usize, u32, bool)>,
    returning: u32,
    /// Loops by the expression and the next node: the start node, and the node that can also skip
    /// the loop. `loop_of` maps back from the latter.
    loops: FastMap<(ExprId, u32), (u32, u32)>,
    loop_of: FastMap<u32, (ExprId, u32)>,
    depth: usize,
    skips: FastMap<u32, u32>,
    /// The procedures of nested automata.
    procedures: Procedures,
    /// For each rule whether it is called rather than copied.
    pub(super) called: Vec<bool>,
}

impl<'p, 'm> Emitter<'p, 'm> {
    pub(super) fn new(flat: &'p FlatGrammar<'m>, meter: &'m Meter<'m>) -> Result<Self> {
        let count = flat.bodies.len();
        let mut network = TransitionNetwork::new(meter);
        let returning = network.returning(0)?;
        let corners: Vec<Vec<usize>> = flat
            .bodies
            .iter()
            .map(|&body| {
                let mut found = Vec::new();
                flat.corners_of(body, &mut found);
                sorted(found)
            })
            .collect();
        Ok(Self {
            flat,
            rows: flat.dfas.iter().map(|dfa| Rows::from(&**dfa)).collect(),
            network,
            brackets: Brackets::new(flat),
            left_scc_of: sccs(count, &corners),
            corners,
            begins: FastMap::default(),
            starts: FastMap::default(),
            chains: vec![Link { before: 0, rule: usize::MAX, branches: Vec::new() }],
            procedure_starts: FastMap::default(),
            open: Vec::new(),
            active: Vec::new(),
            returning,
            loops: FastMap::default(),
            loop_of: FastMap::default(),
            depth: 0,
            skips: FastMap::default(),
            procedures: Procedures::default(),
            called: vec![false; count],
        })
    }

    /// Emits the texts of a rule and returns their start. Expressions that end with the whole text
    /// are called, or copied if `copies_outermost`.
    ///
    /// # Errors
    /// A limit is exceeded.
    pub(super) fn emit(&mut self, start: usize, copies_outermost: bool) -> Result<u32> {
        let mut first = vec![self.rule(start, TransitionNetwork::ACCEPT, 0, copies_outermost)?];
        if self.flat.is_nullable(self.flat.bodies[start]) {
            first.push(TransitionNetwork::ACCEPT);
        }
        while let Some((procedure, enter)) = self.open.pop() {
            debug_assert!(self.active.is_empty());
            let body = match procedure {
                ProcedureKey::Rule(rule) => self.rule(rule, self.returning, 0, false)?,
                ProcedureKey::Slice { sequence, from, to, scc, knot } => {
                    let exprs = self.brackets.expanded(sequence, scc);
                    let context = Context {
                        chain: 0,
                        position: Position { scc, knot, behind: false, outermost: false },
                    };
                    let body = self.row_of(&exprs[from..=to], self.returning, context, None)?.1;
                    // Ignored text after the opening bracket is read within the procedure.
                    self.behind_procedure(body)?
                }
            };
            self.network.fill(enter, &[body])?;
        }
        let first = self.network.union(&first)?;
        match self.flat.lexing {
            Some(skips) if skips.leading => self.behind_procedure(first),
            _ => Ok(first),
        }
    }

    /// The called rules and the called slices of sequences.
    pub(super) fn calls(&mut self) -> Vec<CalledProcedure> {
        let mut procedures: Vec<(u32, ProcedureKey)> =
            self.procedure_starts.iter().map(|(&key, &enter)| (enter, key)).collect();
        procedures.sort_unstable_by_key(|&(enter, _)| enter);
        let called = |(_, key)| match key {
            ProcedureKey::Rule(rule) => CalledProcedure::Rule(rule),
            ProcedureKey::Slice { sequence, from, to, scc, .. } => {
                CalledProcedure::Slice { sequence, exprs: self.brackets.expanded(sequence, scc), from, to }
            }
        };
        procedures.into_iter().map(called).collect()
    }

    /// The start of the non-empty texts of `expr` before `next`.
    fn some(&mut self, expr: ExprId, next: u32, context: Context) -> Result<u32> {
        if !self.flat.is_productive(expr) || next == TransitionNetwork::DEAD {
            return Ok(TransitionNetwork::DEAD);
        }
        if self.depth >= MAX_NESTING {
            return Err(Error::grammar_as_a_whole(format!(
                "rules refer to each other more than {MAX_NESTING} deep, groups within them counted: put some of them together"
            )));
        }
        let key = (expr, next, context.position);
        if context.chain == 0
            && let Some(&known) = self.begins.get(&key)
        {
            return Ok(known);
        }
        self.depth += 1;
        let begins = self.some_of(expr, next, context)?;
        self.depth -= 1;
        if context.chain == 0 {
            self.begins.insert(key, begins);
        }
        Ok(begins)
    }

    fn some_of(&mut self, expr: ExprId, next: u32, context: Context) -> Result<u32> {
        match self.flat.get(expr).clone() {
            FlatExpr::Bytes(bytes) if self.flat.lexing.is_some() => {
                let after = self.behind_terminal(next, false)?;
                self.word(&bytes, after)
            }
            FlatExpr::Bytes(bytes) => self.word(&bytes, next),
            FlatExpr::Tokens(set) => {
                let lexed = self.flat.lexing.is_some();
                let next = if lexed { self.behind_terminal(next, false)? } else { next };
                let codes = self.flat.codes.as_ref().map_or(&[][..], |codes| codes.of(set));
                self.network.outside(codes, next)
            }
            FlatExpr::Dfa { dfa, terminal } => {
                let next = match terminal {
                    Some(lazy) => self.behind_terminal(next, lazy)?,
                    None => next,
                };
                self.dfa(dfa, next)
            }
            FlatExpr::Nested(nested) => {
                let next = if self.flat.lexing.is_some() { self.behind_terminal(next, false)? } else { next };
                self.procedures.copy(&mut self.network, nested, &self.flat.nested[nested], next)
            }
            FlatExpr::Counted(counted) => {
                let next = self.behind_procedure(next)?;
                let part = &self.flat.counted[counted];
                self.network.copy_counted(part, next, self.flat.lexing.is_some())
            }
            FlatExpr::Rule(rule) => self.rule(rule, next, context.chain, context.position.outermost),
            FlatExpr::Choice(exprs) => {
                let starts: Result<Vec<u32>> =
                    exprs.into_iter().map(|expr| self.some(expr, next, context)).collect();
                self.union(starts?)
            }
            FlatExpr::Sequence(_) => {
                let exprs = self.brackets.expanded(expr, context.position.scc);
                Ok(self.row_of(&exprs, next, context, Some(expr))?.0)
            }
            FlatExpr::Repeat { inner, min, max } => self.repeat(inner, min, max, next, context),
        }
    }

    /// The starts of `expr` before `next`: of its non-empty texts, and of all texts.
    fn both(&mut self, expr: ExprId, next: u32, context: Context) -> Result<(u32, u32)> {
        if let FlatExpr::Repeat { inner, min: 0, max: None } = *self.flat.get(expr)
            && context.chain == 0
            && next != TransitionNetwork::DEAD
        {
            return self.looped(inner, next, context);
        }
        let some = self.some(expr, next, context)?;
        let any = if self.flat.is_nullable(expr) { self.union(vec![some, next])? } else { some };
        Ok((some, any))
    }

    fn word(&mut self, bytes: &[u8], next: u32) -> Result<u32> {
        if bytes.is_empty() {
            return Ok(TransitionNetwork::DEAD);
        }
        bytes.iter().rev().try_fold(next, |next, &byte| self.network.bytes([(byte, byte, next)]))
    }

    /// The starts of a sequence before `next`: of its non-empty texts, and of all texts. If
    /// `sequence` is known, its embedded recursion is called.
    fn row_of(
        &mut self,
        exprs: &[ExprId],
        next: u32,
        context: Context,
        sequence: Option<ExprId>,
    ) -> Result<(u32, u32)> {
        let called =
            sequence.and_then(|sequence| Some((sequence, self.brackets.called(exprs, context.position)?)));
        // An outermost sequence is copied; the expressions it would call are not outermost.
        let copied = called.filter(|_| context.position.outermost).map(|(_, exprs)| exprs);
        let called = called.filter(|_| !context.position.outermost);
        let outermost =
            |at| context.position.outermost && copied.is_none_or(|(from, to)| at < from || at > to);
        // The node after each expression, and the start of its non-empty texts, from the last
        // expression to the first.
        let mut follows = vec![next; exprs.len() + 1];
        let mut begins = vec![TransitionNetwork::DEAD; exprs.len()];
        let last_nullable = exprs.iter().take_while(|&&expr| self.flat.is_nullable(expr)).count();
        let is_chained = context.chain != 0;
        let mut at = exprs.len();
        while at > usize::from(is_chained) {
            at -= 1;
            if let Some((sequence, (from, to))) = called
                && at == to
            {
                let Position { scc, knot, .. } = context.position;
                let enter = self.procedure(ProcedureKey::Slice { sequence, from, to, scc, knot })?;
                let after = self.behind_procedure(follows[to + 1])?;
                let call = self.network.call(enter, &[after])?;
                self.skips.insert(call, call);
                (begins[from], follows[from]) = (call, call);
                at = from;
                continue;
            }
            let context = if at == 0 { context.first(outermost(0)) } else { context.rest(outermost(at)) };
            (begins[at], follows[at]) = self.both(exprs[at], follows[at + 1], context)?;
        }
        // Expressions after nullable expressions are starts of the sequence, too.
        let mut first = Vec::new();
        for (at, &expr) in exprs.iter().enumerate().take(last_nullable + 1) {
            // If nothing was read yet, the expression may be left-recursive.
            let chained = context.first(outermost(at));
            let begin = if is_chained { self.some(expr, follows[at + 1], chained)? } else { begins[at] };
            first.push(begin);
        }
        let first = self.union(first)?;
        let all_nullable = last_nullable == exprs.len();
        let any = if is_chained && all_nullable { self.union(vec![first, next])? } else { follows[0] };
        Ok((first, if is_chained && !all_nullable { first } else { any }))
    }

    fn repeat(
        &mut self,
        inner: ExprId,
        min: usize,
        max: Option<usize>,
        next: u32,
        context: Context,
    ) -> Result<u32> {
        let rest = context.again();
        let Some(max) = max else {
            let (again, mut follows) = self.looped(inner, next, rest)?;
            for _ in 1..min {
                follows = self.both(inner, follows, rest)?.1;
            }
            return if min <= 1 && context.chain == 0 {
                Ok(again)
            } else {
                self.some(inner, follows, context)
            };
        };
        if max == 0 || max < min {
            return Ok(TransitionNetwork::DEAD);
        }
        let mut follows = next;
        for left in 1..max {
            // `left` repetitions after this one are optional.
            let begin = self.both(inner, follows, rest)?.1;
            follows = if left <= max - min { self.union(vec![begin, next])? } else { begin };
        }
        self.some(inner, follows, context)
    }

    /// The starts of any number of repetitions of an expression before `next`: of non-empty texts,
    /// and of all texts.
    fn looped(&mut self, inner: ExprId, next: u32, context: Context) -> Result<(u32, u32)> {
        // A loop before the same loop is one loop.
        if let Some(&(known, again)) = self.loop_of.get(&next)
            && known == inner
        {
            return Ok((again, next));
        }
        if let Some(&known) = self.loops.get(&(inner, next)) {
            return Ok(known);
        }
        let (node, again) = (self.network.reserve()?, self.network.reserve()?);
        self.loops.insert((inner, next), (again, node));
        self.loop_of.insert(node, (inner, again));
        let begins = self.some(inner, node, context.again())?;
        self.network.fill(again, &[begins])?;
        self.network.fill(node, &[next, again])?;
        Ok((again, node))
    }

    /// The start of a procedure.
    fn procedure(&mut self, key: ProcedureKey) -> Result<u32> {
        if let Some(&known) = self.procedure_starts.get(&key) {
            return Ok(known);
        }
        if let ProcedureKey::Rule(rule) = key {
            self.called[rule] = true;
        }
        let enter = self.network.reserve()?;
        self.procedure_starts.insert(key, enter);
        self.open.push((key, enter));
        Ok(enter)
    }

    /// The node between a terminal and `next`.
    fn behind_terminal(&mut self, next: u32, lazy: bool) -> Result<u32> {
        let next = if next == self.returning { next } else { self.behind_procedure(next)? };
        self.network.close(next, lazy)
    }

    /// The node between a procedure and `next`: it reads ignored text, which a procedure does not
    /// end with.
    fn behind_procedure(&mut self, next: u32) -> Result<u32> {
        let Some(ignored) = self.flat.ignored else { return Ok(next) };
        if let Some(&known) = self.skips.get(&next) {
            return Ok(known);
        }
        let node = self.network.reserve()?;
        self.skips.insert(next, node);
        self.skips.insert(node, node);
        let once = self.flat.lexing.is_some_and(|skips| skips.once);
        let closed = self.network.close(if once { next } else { node }, false)?;
        let skipped = self.dfa(ignored, closed)?;
        self.network.fill(node, &[next, skipped])?;
        Ok(node)
    }

    /// The start of the non-empty texts of an automaton before `next`.
    fn dfa(&mut self, dfa: usize, next: u32) -> Result<u32> {
        self.network.copy(&self.rows[dfa], self.flat.dfas[dfa].start().0, next)
    }

    fn union(&mut self, mut nodes: Vec<u32>) -> Result<u32> {
        nodes.retain(|&node| node != TransitionNetwork::DEAD);
        self.network.union(&sorted(nodes))
    }
}

fn sorted<T: Ord>(mut list: Vec<T>) -> Vec<T> {
    list.sort_unstable();
    list.dedup();
    list
}
