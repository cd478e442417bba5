//! The second half of a compilation: trim dead ends by tokens, renumber the remaining states, lay
//! out `D`.

use super::StateId;
use super::columns::Columns;
use super::untrimmed::{TokenRun, UntrimmedAutomaton};
use super::{ClassMap, CompiledConstraint};
use burn_dfa_automata::Csr;
use burn_dfa_common::{Error, Result, limits::Meter};
use burn_dfa_vocabulary::{ClassTokens, TokenId, TokenKind, Vocabulary};

/// A state removed by trimming.
const ABSENT: u32 = u32::MAX;

/// For `DEAD`, `DONE` and `UNCONSTRAINED`.
pub(super) const RESERVED_TOKENS_TO_END: [u32; StateId::RESERVED as usize] = [u32::MAX, 0, 0];

pub(super) fn build(
    source: UntrimmedAutomaton,
    vocabulary: &Vocabulary,
    meter: &Meter,
) -> Result<CompiledConstraint> {
    let to_end = tokens_to_end(&source);
    if to_end.get(source.start as usize).is_none_or(|&tokens| tokens == u32::MAX) {
        return Err(no_token_path());
    }
    meter.time()?;
    let (number, order) = number(&source, &to_end);
    meter.states(order.len())?;
    meter.time()?;

    // The remaining pairs of each column, in the new numbers.
    let mut columns = Columns::new();
    let mut class_of_column = vec![None; source.columns.len()];
    let mut scratch = Vec::new();
    let mut class = reserved_classes(vocabulary);
    for &TokenRun { from, to, column } in &source.runs {
        let class_of_column = class_of_column[column as usize].get_or_insert_with(|| {
            scratch.clear();
            let old = source.columns.get(column).iter();
            let new = old.map(|&(state, next)| (number[state as usize], number[next as usize]));
            scratch.extend(new.filter(|&(state, next)| state != ABSENT && next != ABSENT));
            // Column 0 has no transitions: its tokens are `UNMATCHED`; the other columns follow the
            // reserved classes.
            columns.intern(&scratch) + CompiledConstraint::UNMATCHED
        });
        class.put(&source.tokens[from as usize..to as usize], *class_of_column);
    }

    let states = order.len() + StateId::RESERVED as usize;
    let mut class_count = columns.len() + CompiledConstraint::UNMATCHED as usize;
    if source.free > 0 {
        // Free text allows `UNMATCHED`, so text without transitions has its own class.
        let misfits =
            vocabulary.iter().filter(|&(id, _)| class.of(id) == Some(CompiledConstraint::UNMATCHED));
        let misfits: Vec<TokenId> = misfits.map(|(id, _)| id).collect();
        class.put(&misfits, class_count as u32);
        class_count += usize::from(!misfits.is_empty());
    }
    let cells = states.saturating_mul(class_count);
    meter.bytes(cells.saturating_add(class.len() + states).saturating_mul(4))?;
    let mut next = reserved_rows(states, class_count);
    let row = |state: StateId| state.index() * class_count;
    for (at, &old) in order.iter().enumerate() {
        let from = row(StateId(at as u32 + StateId::RESERVED));
        if source.accepting[old as usize] {
            next[from + CompiledConstraint::EOS as usize] = StateId::DONE.0;
        }
        if (1..=source.free).contains(&old) {
            next[from + CompiledConstraint::UNMATCHED as usize] = number[old as usize];
        }
    }
    for column in 1..columns.len() {
        for &(state, to) in columns.get(column as u32) {
            next[row(StateId(state)) + CompiledConstraint::UNMATCHED as usize + column] = to;
        }
    }
    let tokens_to_end =
        RESERVED_TOKENS_TO_END.into_iter().chain(order.iter().map(|&old| to_end[old as usize])).collect();
    let start = StateId(number[source.start as usize]);
    // Column 0 has no transitions.
    let runs = source.runs.iter().filter_map(|run| {
        let class =
            class_of_column[run.column as usize].filter(|&class| class > CompiledConstraint::UNMATCHED)?;
        Some((class, &source.tokens[run.from as usize..run.to as usize]))
    });
    let eos: Vec<TokenId> = vocabulary.eos().iter().copied().collect();
    let tokens = ClassTokens::by_runs(class_count, runs.chain([(CompiledConstraint::EOS, &*eos)]));
    let fingerprint = vocabulary.fingerprint();
    Ok(CompiledConstraint::token_level(
        next,
        class_count,
        class,
        tokens_to_end,
        start,
        fingerprint,
        tokens.into(),
    ))
}

pub(super) fn no_token_path() -> Error {
    Error::unsatisfiable(
        "no sequence of this vocabulary's tokens spells a complete output: the constraint is contradictory, or the vocabulary lacks its characters",
    )
}

/// The classes of tokens outside of the constraint: end-of-sequence ids, unused ids, and
/// `UNMATCHED`.
fn reserved_classes(vocabulary: &Vocabulary) -> ClassMap {
    let class = |&kind| {
        if kind == TokenKind::Unused { CompiledConstraint::NEVER } else { CompiledConstraint::UNMATCHED }
    };
    let mut classes = ClassMap::Bytes(vocabulary.kinds().iter().map(|kind| class(kind) as u8).collect());
    let eos: Vec<TokenId> = vocabulary.eos().iter().copied().collect();
    classes.put(&eos, CompiledConstraint::EOS);
    classes
}

/// A `D` with only the rows of the reserved states filled.
pub(super) fn reserved_rows(states: usize, class_count: usize) -> Vec<u32> {
    let mut next = vec![StateId::DEAD.0; states * class_count];
    let (done, free) = (StateId::DONE.index() * class_count, StateId::UNCONSTRAINED.index() * class_count);
    let eos = CompiledConstraint::EOS as usize;
    next[done + eos] = StateId::DONE.0;
    next[free + eos] = StateId::DONE.0;
    next[free + eos + 1..free + class_count].fill(StateId::UNCONSTRAINED.0);
    next
}

/// The constraint of the reserved states alone.
pub(super) fn unconstrained(vocabulary: &Vocabulary) -> CompiledConstraint {
    let class_count = CompiledConstraint::RESERVED_COLUMNS;
    let class = reserved_classes(vocabulary);
    let next = reserved_rows(StateId::RESERVED as usize, class_count);
    let to_end = RESERVED_TOKENS_TO_END.to_vec();
    let (start, fingerprint) = (StateId::UNCONSTRAINED, vocabulary.fingerprint());
    CompiledConstraint::token_level(next, class_count, class, to_end, start, fingerprint, Default::default())
}

/// `(from, to)` for every token, nearly without duplicates.
fn edges(source: &UntrimmedAutomaton) -> Vec<(u32, u32)> {
    let mut used = vec![false; source.columns.len()];
    let mut last = vec![ABSENT; source.states];
    let mut edges = Vec::new();
    for run in &source.runs {
        if std::mem::replace(&mut used[run.column as usize], true) {
            continue;
        }
        for &(from, to) in source.columns.get(run.column) {
            if std::mem::replace(&mut last[from as usize], to) != to {
                edges.push((from, to));
            }
        }
    }
    edges
}

/// The least number of tokens to the end, end of sequence included; `u32::MAX` if no path exists.
pub(super) fn tokens_to_end(source: &UntrimmedAutomaton) -> Vec<u32> {
    let backward = Csr::new(source.states, edges(source).iter().map(|&(from, to)| (to, from)));
    let accepting = (0..source.states as u32).filter(|&s| source.accepting[s as usize]);
    with_the_end(backward.distances(accepting))
}

/// Turns steps to an accepting state into steps to `DONE`: the end of sequence is one more.
pub(super) fn with_the_end(mut distances: Vec<u32>) -> Vec<u32> {
    distances.iter_mut().for_each(|steps| *steps = steps.saturating_add(1));
    distances
}

/// Numbers the states on a token path from the start to the end, in their existing order.
fn number(source: &UntrimmedAutomaton, to_end: &[u32]) -> (Vec<u32>, Vec<u32>) {
    let mut reached = vec![source.all_reached; source.states];
    if !source.all_reached {
        let forward = Csr::new(source.states, edges(source).iter().copied());
        let mut stack = vec![source.start];
        reached[source.start as usize] = true;
        while let Some(state) = stack.pop() {
            for &next in forward.of(state) {
                let lives = to_end[next as usize] != u32::MAX;
                if lives && !std::mem::replace(&mut reached[next as usize], true) {
                    stack.push(next);
                }
            }
        }
    }
    let order: Vec<u32> = (0..source.states as u32)
        .filter(|&state| reached[state as usize] && to_end[state as usize] != u32::MAX)
        .collect();
    let mut number = vec![ABSENT; source.states];
    for (at, &state) in order.iter().enumerate() {
        number[state as usize] = at as u32 + StateId::RESERVED;
    }
    (number, order)
}
