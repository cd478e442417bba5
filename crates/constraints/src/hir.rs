//! Patterns as automata: the intermediate form of `regex-syntax`, which both pattern syntaxes
//! become, is compiled to an NFA and determinized.
//!
//! `regex-automata` compiles the pattern to its Thompson NFA, which is copied state by state.
//! Counted repetitions are built here. [`Nfa::determinize`] determinizes the result: the full match
//! is built in (acceptance at the end of the text, all alternatives, no priorities), look-around is
//! exact, Unicode word boundaries included, and the time limit is checked. The tests compare the
//! result with `regex-automata`'s own dense automaton.

use std::ptr;

use burn_dfa_automata::{ByteDfa, FastMap, Nfa};
use burn_dfa_common::{Error, Limit, Result, limits::Meter};
use regex_automata::nfa::thompson::{self, WhichCaptures};
use regex_automata::util::primitives::StateID;
use regex_syntax::hir::{Hir, HirKind, Repetition};

/// The language of the strings that `hir` matches as a whole.
pub(super) fn lower(hir: &Hir, meter: &Meter) -> Result<ByteDfa> {
    let mut nfa = Nfa::new(meter);
    let start = copy(hir, &mut nfa, Nfa::ACCEPT, meter)?;
    nfa.determinize(start)
}

/// The language of the strings with a match of `hir` anywhere: `(?s:.*)` before and after.
pub(super) fn lower_search(hir: &Hir, meter: &Meter) -> Result<ByteDfa> {
    let mut nfa = Nfa::new(meter);
    let behind = any_text(&mut nfa, Nfa::ACCEPT)?;
    let found = copy(hir, &mut nfa, behind, meter)?;
    let start = any_text(&mut nfa, found)?;
    nfa.determinize(start)
}

/// Any characters in UTF-8, and then `next`. It is written here, since the compiler of patterns
/// takes longer to begin with classes beyond ASCII than for most patterns.
fn any_text(nfa: &mut Nfa, next: u32) -> Result<u32> {
    // The branch is patched after its target state exists.
    let between = nfa.union([next, next])?;
    let one = nfa.bytes([(0x80, 0xbf, between)])?;
    let two = nfa.bytes([(0x80, 0xbf, one)])?;
    let three = nfa.bytes([(0x80, 0xbf, two)])?;
    // After these bytes, some sequences are not well-formed: table 3-7 of the Unicode Standard.
    let [e0, ed] = [nfa.bytes([(0xa0, 0xbf, one)])?, nfa.bytes([(0x80, 0x9f, one)])?];
    let [f0, f4] = [nfa.bytes([(0x90, 0xbf, two)])?, nfa.bytes([(0x80, 0x8f, two)])?];
    let first = [
        (0x00, 0x7f, between),
        (0xc2, 0xdf, one),
        (0xe0, 0xe0, e0),
        (0xe1, 0xec, two),
        (0xed, 0xed, ed),
        (0xee, 0xef, two),
        (0xf0, 0xf0, f0),
        (0xf1, 0xf3, three),
        (0xf4, 0xf4, f4),
    ];
    let character = nfa.bytes(first)?;
    nfa.patch(between, character);
    Ok(between)
}

/// Copies the automaton of the pattern before state `behind` and returns its start.
fn copy(hir: &Hir, nfa: &mut Nfa, behind: u32, meter: &Meter) -> Result<u32> {
    let hir = simplify(hir);
    let mut counted = FastMap::default();
    has_count(&hir, &mut counted);
    add(&hir, &counted, nfa, behind, meter)
}

/// The addresses of the parts of a pattern that the compiler would copy for a count.
type CountedParts = FastMap<*const Hir, ()>;

/// Adds a pattern before state `behind`. Counted repetitions are built here, so the subset
/// construction knows which states are copies of each other; `regex-automata` compiles everything
/// else.
fn add(hir: &Hir, counted: &CountedParts, nfa: &mut Nfa, behind: u32, meter: &Meter) -> Result<u32> {
    let has_count = |hir: &Hir| counted.contains_key(&ptr::from_ref(hir));
    match hir.kind() {
        _ if !has_count(hir) => compiled(hir, nfa, behind, meter),
        HirKind::Repetition(Repetition { min, max, sub, .. }) => {
            let max = max.map(|max| max as usize);
            nfa.repeat(*min as usize, max, behind, |nfa, next| add(sub, counted, nfa, next, meter))
        }
        HirKind::Concat(subs) => {
            let parts = subs.chunk_by(|a, b| !has_count(a) && !has_count(b));
            parts.rev().try_fold(behind, |behind, part| match part {
                [one] => add(one, counted, nfa, behind, meter),
                many => compiled(&Hir::concat(many.to_vec()), nfa, behind, meter),
            })
        }
        HirKind::Alternation(subs) => {
            let starts: Result<Vec<u32>> =
                subs.iter().map(|sub| add(sub, counted, nfa, behind, meter)).collect();
            nfa.union(starts?)
        }
        HirKind::Capture(capture) => add(&capture.sub, counted, nfa, behind, meter),
        HirKind::Empty | HirKind::Literal(_) | HirKind::Class(_) | HirKind::Look(_) => {
            compiled(hir, nfa, behind, meter)
        }
    }
}

/// Whether the compiler makes several copies of a repeated part of the pattern; adds all such parts
/// to `counted`.
fn has_count(hir: &Hir, counted: &mut CountedParts) -> bool {
    let is_counted = match hir.kind() {
        HirKind::Empty | HirKind::Literal(_) | HirKind::Class(_) | HirKind::Look(_) => false,
        HirKind::Repetition(repetition) => {
            let is_within = has_count(&repetition.sub, counted);
            repetition.min > 1 || repetition.max > Some(1) || is_within
        }
        HirKind::Capture(capture) => has_count(&capture.sub, counted),
        HirKind::Concat(subs) | HirKind::Alternation(subs) => {
            let mut is_within = false;
            for sub in subs {
                is_within |= has_count(sub, counted);
            }
            is_within
        }
    };
    if is_counted {
        counted.insert(ptr::from_ref(hir), ());
    }
    is_counted
}

/// Copies the automaton that `regex-automata` compiles for the pattern before state `behind`, and
/// returns its start.
fn compiled(hir: &Hir, nfa: &mut Nfa, behind: u32, meter: &Meter) -> Result<u32> {
    let bytes = meter.limits().bytes;
    let config = thompson::Config::new()
        .utf8(false)
        .which_captures(WhichCaptures::None)
        .nfa_size_limit(Some(bytes.min(Nfa::MAX_BYTES)));
    let source = thompson::Compiler::new()
        .configure(config)
        .build_from_hir(hir)
        // The pattern has no captures, no reverse search and is only one pattern: the remaining
        // error is size.
        .map_err(|_| Error::limit(Limit::Bytes(bytes)))?;
    let base = nfa.next_state()?;
    let at = |id: StateID| base + id.as_u32();
    for state in source.states() {
        match state {
            thompson::State::ByteRange { trans } => nfa.bytes([(trans.start, trans.end, at(trans.next))])?,
            thompson::State::Sparse(sparse) => {
                nfa.bytes(sparse.transitions.iter().map(|t| (t.start, t.end, at(t.next))))?
            }
            thompson::State::Dense(dense) => {
                let next = |byte| dense.matches_byte(byte).map(|next| (byte, byte, at(next)));
                nfa.bytes((0..=u8::MAX).filter_map(next))?
            }
            thompson::State::Look { look, next } => nfa.look(*look, at(*next))?,
            thompson::State::Union { alternates } => nfa.union(alternates.iter().map(|&id| at(id)))?,
            thompson::State::BinaryUnion { alt1, alt2 } => nfa.union([at(*alt1), at(*alt2)])?,
            thompson::State::Capture { next, .. } => nfa.union([at(*next)])?,
            thompson::State::Fail => nfa.dead()?,
            thompson::State::Match { .. } => nfa.union([behind])?,
        };
    }
    Ok(at(source.start_anchored()))
}

/// The same language without groups, with nested repetitions merged if possible.
///
/// `(x?){1000}` matches the empty string in a thousand ways, and the automaton would try them all
/// after each character; `x{0,1000}` has one.
fn simplify(hir: &Hir) -> Hir {
    match hir.kind() {
        HirKind::Empty | HirKind::Literal(_) | HirKind::Class(_) | HirKind::Look(_) => hir.clone(),
        HirKind::Capture(capture) => simplify(&capture.sub),
        HirKind::Concat(subs) => Hir::concat(subs.iter().map(simplify).collect()),
        HirKind::Alternation(subs) => Hir::alternation(subs.iter().map(simplify).collect()),
        HirKind::Repetition(outer) => {
            let sub = simplify(&outer.sub);
            if let HirKind::Repetition(inner) = sub.kind()
                && let Some((min, max)) = once(inner, outer)
            {
                return Hir::repetition(Repetition { min, max, ..inner.clone() });
            }
            Hir::repetition(outer.with(sub))
        }
    }
}

/// The counts of `inner` repeated by `outer`, if they have no gaps and are in range.
fn once(inner: &Repetition, outer: &Repetition) -> Option<(u32, Option<u32>)> {
    // For k repetitions of a to b, the counts are ka to kb; with a ≤ 1 ≤ b, no gap follows kb.
    if inner.min > 1 || inner.max == Some(0) || outer.max == Some(0) {
        return None;
    }
    let max = match (inner.max, outer.max) {
        (Some(inner), Some(outer)) => Some(inner.checked_mul(outer)?),
        _ => None,
    };
    Some((inner.min * outer.min, max))
}
