//! A token automaton before trimming: which token leads from which state to which.

use std::borrow::Cow;
use std::ops::Range;

use super::columns::{ColumnId, Columns};
use super::whole::TokenStates;
use burn_dfa_automata::FastMap;
use burn_dfa_common::{Result, limits::Meter};
use burn_dfa_vocabulary::TokenId;

/// A token automaton before trimming: columns over source states, and the column of each token.
pub(super) struct UntrimmedAutomaton<'a> {
    pub(super) states: usize,
    pub(super) start: u32,
    pub(super) accepting: Vec<bool>,
    pub(super) columns: Columns,
    /// Tokens in any order, each at most once.
    pub(super) tokens: Cow<'a, [TokenId]>,
    /// The columns of runs of tokens; tokens outside of the runs have no transitions.
    pub(super) runs: Vec<TokenRun>,
    /// Whether a token path leads from the start to every state.
    pub(super) all_reached: bool,
    /// States 1 to `free` are free text.
    pub(super) free: u32,
}

/// The tokens in a range of positions share one column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TokenRun {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) column: ColumnId,
}

impl TokenRun {
    /// Appends a run.
    pub(super) fn push(runs: &mut Vec<Self>, range: Range<usize>, column: ColumnId) {
        let (from, to) = (range.start as u32, range.end as u32);
        match runs.last_mut() {
            Some(last) if last.to == from && last.column == column => last.to = to,
            _ if from == to => {}
            _ => runs.push(Self { from, to, column }),
        }
    }
}

impl UntrimmedAutomaton<'_> {
    /// Gives tokens read whole the columns that join their own edges with their bytes.
    pub(super) fn read_whole(&mut self, states: &TokenStates) {
        if states.groups.is_empty() {
            return;
        }
        let mut by_bytes = vec![Columns::NOWHERE; self.tokens.len()];
        for &TokenRun { from, to, column } in &self.runs {
            by_bytes[from as usize..to as usize].fill(column);
        }
        // Markers may be among the tokens of text; other non-text tokens are not.
        let groups = &states.groups.groups;
        let silent = groups.iter().filter(|group| !group.is_text).flat_map(|group| &group.tokens);
        let known: Vec<bool> = {
            let mut known = vec![false; states.groups.token_count()];
            self.tokens.iter().for_each(|token| known[token.index()] = true);
            known
        };
        self.tokens.to_mut().extend(silent.filter(|token| !known[token.index()]));
        by_bytes.resize(self.tokens.len(), Columns::NOWHERE);
        let mut both: FastMap<(ColumnId, usize), ColumnId> = FastMap::default();
        self.runs.clear();
        for (index, (token, bytes)) in self.tokens.iter().zip(by_bytes).enumerate() {
            let column = match states.groups.of(*token) {
                None => bytes,
                Some(group) => {
                    let bytes = if groups[group].is_text { bytes } else { Columns::NOWHERE };
                    *both.entry((bytes, group)).or_insert_with(|| {
                        let pairs = either(self.columns.get(bytes), &groups[group].edges, states);
                        self.columns.intern(&pairs)
                    })
                }
            };
            if column != Columns::NOWHERE {
                TokenRun::push(&mut self.runs, index..index + 1, column);
            }
        }
    }

    /// If tokens are counted, moves each transition past the boundary at the end of the token.
    pub(super) fn pass_boundaries(&mut self, states: &TokenStates, meter: &Meter) -> Result<()> {
        if !states.counts() {
            return Ok(());
        }
        let mut columns = Columns::new();
        let mut passed: Vec<Option<ColumnId>> = vec![None; self.columns.len()];
        let mut pairs = Vec::new();
        for run in &mut self.runs {
            let known = &mut passed[run.column as usize];
            run.column = *known.get_or_insert_with(|| {
                let own = self.columns.get(run.column).iter();
                let past = own.map(|&(state, to)| (state, states.past_boundary(to)));
                pairs.clear();
                pairs.extend(past.filter(|&(_, to)| to != 0));
                columns.intern(&pairs)
            });
            meter.bytes(columns.bytes())?;
        }
        self.runs.retain(|run| run.column != Columns::NOWHERE);
        self.columns = columns;
        Ok(())
    }
}

/// The column of a token with the transitions `bytes` by its bytes, and `whole` if read whole.
fn either(bytes: &[(u32, u32)], whole: &[(u32, u32)], states: &TokenStates) -> Vec<(u32, u32)> {
    let (mut bytes, mut whole) = (bytes.iter().peekable(), whole.iter().peekable());
    let mut pairs = Vec::new();
    loop {
        let next = [bytes.peek(), whole.peek()].into_iter().flatten().map(|pair| pair.0).min();
        let Some(state) = next else { return pairs };
        let [read, led] =
            [&mut bytes, &mut whole].map(|of| of.next_if(|pair| pair.0 == state).map_or(0, |pair| pair.1));
        pairs.push((state, states.join(read, led)));
    }
}
