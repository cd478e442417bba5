//! One row on the CPU: mask it, or choose from it.
//!
//! The work is that of the smaller side: where few tokens are legal, only these are touched; where few are
//! illegal, only those.

use burn::tensor::{bf16, f16};

use crate::sampling::Noise;
use crate::table::{RowPosition, Stacks, StateId, TokenReading, TokenTable};
use crate::tensor::HostRow;
use crate::vocabulary::{ClassTokens, Plainness};

/// A logit as it lies in memory.
pub(super) trait Logit: Copy {
    const NEVER: Self;
    fn value(self) -> f32;
    /// Itself where `keep` is all ones, [`NEVER`](Self::NEVER) where it is zero.
    fn or_never(self, keep: u32) -> Self;
}

impl Logit for f32 {
    const NEVER: Self = f32::NEG_INFINITY;
    fn value(self) -> f32 {
        self
    }
    fn or_never(self, keep: u32) -> Self {
        Self::from_bits(self.to_bits() & keep | Self::NEVER.to_bits() & !keep)
    }
}

impl Logit for f16 {
    const NEVER: Self = f16::NEG_INFINITY;
    fn value(self) -> f32 {
        self.to_f32()
    }
    fn or_never(self, keep: u32) -> Self {
        Self::from_bits(self.to_bits() & keep as u16 | Self::NEVER.to_bits() & !keep as u16)
    }
}

impl Logit for bf16 {
    const NEVER: Self = bf16::NEG_INFINITY;
    fn value(self) -> f32 {
        self.to_f32()
    }
    fn or_never(self, keep: u32) -> Self {
        Self::from_bits(self.to_bits() & keep as u16 | Self::NEVER.to_bits() & !keep as u16)
    }
}

/// Buffers that are used again from row to row.
#[derive(Default)]
pub(super) struct Scratch<F> {
    /// Whether each class is legal.
    legal: Vec<bool>,
    /// The legal tokens of walked text.
    text: Vec<u32>,
    /// Logits set aside.
    kept: Vec<F>,
    /// A bit for each token: whether it is legal.
    bits: Vec<u8>,
    /// What was looked up last, and how many tokens are legal there.
    found: Option<(Key, usize)>,
}

/// The address of a table, and a position in it.
type Key = (usize, RowPosition);

impl<F: Logit> Scratch<F> {
    pub(super) fn new() -> Self {
        Self { legal: Vec::new(), text: Vec::new(), kept: Vec::new(), bits: Vec::new(), found: None }
    }

    /// Finds the tokens that may follow in a row; gives their number.
    fn look_up(&mut self, at: &HostRow<'_>) -> usize {
        let parts = at.table.parts();
        let RowPosition { state, remaining, .. } = at.position;
        let stack = parts.calls.as_ref().map(|calls| Stacks::of(calls, &at.position));
        // To the budget of no token only the end of the sequence is left, as to that of one.
        let remaining = match &parts.reading {
            TokenReading::Classes(_) => remaining.max(1),
            // More than the longest way makes no difference.
            TokenReading::Bytes { farthest, .. } if stack.is_none() => {
                remaining.clamp(1, farthest.saturating_add(1))
            }
            TokenReading::Bytes { .. } => remaining.max(1),
        };
        let left = remaining - 1;
        let position = RowPosition { remaining, ..at.position.clone() };
        // Draft tokens in a string are in one state; so are many rows of a batch.
        let key = (std::ptr::from_ref(parts) as usize, position);
        if let Some((_, count)) = self.found.as_ref().filter(|found| found.0 == key) {
            return *count;
        }
        // Of columns that are not text, which leave the stack as it is.
        let can_end = |next: u32| match &stack {
            None => parts.tokens_to_end[next as usize] <= left,
            Some((stacks, top)) => stacks.to_end(StateId(next), *top) <= left,
        };
        let row = at.table.row(state);
        self.legal.clear();
        self.text.clear();
        match &parts.reading {
            TokenReading::Classes(_) => self.legal.extend(row.iter().map(|&next| can_end(next))),
            TokenReading::Bytes { column_of, vocabulary, special, .. } => {
                let reserved = &row[..TokenTable::RESERVED_COLUMNS];
                self.legal.extend(reserved.iter().map(|&next| can_end(next)));
                let is_free = state == StateId::UNCONSTRAINED;
                let stack = stack.as_ref().map(|(stacks, top)| (stacks, *top));
                let all_plain = parts.all_plain(state, stack, left);
                let all = |kind| is_free || all_plain >= Some(kind);
                self.legal.extend([is_free, all(Plainness::Ascii), all(Plainness::Wide)]);
                self.legal.extend(special.of(row).iter().map(|&next| can_end(next)));
                if state.0 >= StateId::RESERVED {
                    let trie = all_plain.map_or(vocabulary.trie(), |kind| vocabulary.less_plain_trie(kind));
                    let text = &mut self.text;
                    parts.each_text(&key.1, trie, column_of, |tokens, _| {
                        text.extend(tokens.iter().map(|id| id.0));
                    });
                }
            }
        }
        let classes = self.legal.iter().enumerate().filter(|&(_, &legal)| legal);
        let count =
            classes.map(|(class, _)| at.class_tokens.of(class).len()).sum::<usize>() + self.text.len();
        self.found = Some((key, count));
        count
    }

    /// The legal tokens found by [`look_up`](Self::look_up).
    fn legal_tokens<'a>(&'a self, class_tokens: &'a ClassTokens) -> impl Iterator<Item = u32> + 'a {
        let classes = self.legal.iter().enumerate().filter(|&(_, &legal)| legal);
        classes.flat_map(|(class, _)| class_tokens.of(class)).chain(&self.text).copied()
    }
}

/// Puts −∞ where a token is illegal.
pub(super) fn mask<F: Logit>(row: &mut [F], at: &HostRow<'_>, scratch: &mut Scratch<F>) {
    let count = scratch.look_up(at);
    mask_found(row, at, count, scratch);
}

fn mask_found<F: Logit>(row: &mut [F], at: &HostRow<'_>, count: usize, scratch: &mut Scratch<F>) {
    if scratch.text.len() > row.len() / MANY {
        return mask_by_bits(row, at, scratch);
    }
    let mut kept = std::mem::take(&mut scratch.kept);
    kept.clear();
    if 2 * count <= row.len() {
        kept.extend(scratch.legal_tokens(at.class_tokens).map(|id| row[id as usize]));
        row.fill(F::NEVER);
        for (id, &logit) in scratch.legal_tokens(at.class_tokens).zip(&kept) {
            row[id as usize] = logit;
        }
    } else {
        kept.extend(scratch.text.iter().map(|&id| row[id as usize]));
        for (class, _) in scratch.legal.iter().enumerate().filter(|&(_, &legal)| !legal) {
            for &id in at.class_tokens.of(class) {
                row[id as usize] = F::NEVER;
            }
        }
        row[at.table.vocabulary_len()..].fill(F::NEVER);
        for (&id, &logit) in scratch.text.iter().zip(&kept) {
            row[id as usize] = logit;
        }
    }
    scratch.kept = kept;
}

/// Where more than one in so many tokens is legal text, the row is masked in order.
const MANY: usize = 16;

/// The same where many tokens are legal that lie anywhere in the row: their bits take less of the processor's caches than
/// their logits, and the row is then passed once.
fn mask_by_bits<F: Logit>(row: &mut [F], at: &HostRow<'_>, scratch: &mut Scratch<F>) {
    let mut bits = std::mem::take(&mut scratch.bits);
    bits.clear();
    bits.resize(row.len().div_ceil(8), 0);
    for id in scratch.legal_tokens(at.class_tokens) {
        bits[id as usize / 8] |= 1 << (id % 8);
    }
    let (chunks, rest) = row.as_chunks_mut::<8>();
    for (logits, &legal) in chunks.iter_mut().zip(&bits) {
        let keep = &KEPT[legal as usize];
        for at in 0..8 {
            logits[at] = logits[at].or_never(keep[at]);
        }
    }
    let legal = bits.last().copied().unwrap_or(0);
    for (logit, &keep) in rest.iter_mut().zip(&KEPT[legal as usize]) {
        *logit = logit.or_never(keep);
    }
    scratch.bits = bits;
}

/// For every byte all ones where a bit is set, the lowest first: what a processor takes eight logits by at once.
static KEPT: [[u32; 8]; 256] = {
    let mut kept = [[0; 8]; 256];
    let mut at = 0;
    while at < 256 * 8 {
        if ((at / 8) >> (at % 8)) & 1 == 1 {
            kept[at / 8][at % 8] = u32::MAX;
        }
        at += 1;
    }
    kept
};

/// The legal token of the greatest logit: the lowest id among equals, the first NaN before all, 0 where all
/// are −∞. What is left in the row is of no use.
pub(super) fn greatest<F: Logit>(row: &mut [F], at: &HostRow<'_>, scratch: &mut Scratch<F>) -> u32 {
    let count = scratch.look_up(at);
    if 8 * count <= row.len() {
        return best(scratch.legal_tokens(at.class_tokens).map(|id| (row[id as usize].value(), id)));
    }
    mask_found(row, at, count, scratch);
    argmax(row)
}

/// The legal token of the greatest logit, times `factor`, plus its noise; ties and NaN as in [`greatest`].
pub(super) fn sampled<F: Logit>(row: &[F], at: &HostRow<'_>, noise: &Noise, scratch: &mut Scratch<F>) -> u32 {
    scratch.look_up(at);
    best(scratch.legal_tokens(at.class_tokens).map(|id| (noise.disturb(row[id as usize].value(), id), id)))
}

fn best(tokens: impl Iterator<Item = (f32, u32)>) -> u32 {
    let mut best = (f32::NEG_INFINITY, 0);
    for (value, id) in tokens {
        let wins = match (value.is_nan(), best.0.is_nan()) {
            (true, false) => true,
            (false, true) => false,
            (true, true) => id < best.1,
            (false, false) => {
                value > best.0 || (value == best.0 && id < best.1 && value != f32::NEG_INFINITY)
            }
        };
        if wins {
            best = (value, id);
        }
    }
    best.1
}

/// The index of the greatest value of a row, as [`greatest`] counts.
fn argmax<F: Logit>(row: &[F]) -> u32 {
    const LANES: usize = 16;
    let mut lanes = [f32::NEG_INFINITY; LANES];
    let mut nan = [false; LANES];
    let chunks = row.chunks_exact(LANES);
    let rest = chunks.remainder();
    for chunk in chunks {
        for (lane, logit) in chunk.iter().enumerate() {
            let value = logit.value();
            lanes[lane] = if value > lanes[lane] { value } else { lanes[lane] };
            nan[lane] |= value.is_nan();
        }
    }
    let greatest = lanes.into_iter().chain(rest.iter().map(|logit| logit.value()));
    let greatest = greatest.fold(f32::NEG_INFINITY, |best, value| if value > best { value } else { best });
    let found = if nan.contains(&true) || rest.iter().any(|logit| logit.value().is_nan()) {
        row.iter().position(|logit| logit.value().is_nan())
    } else {
        row.iter().position(|logit| logit.value() == greatest)
    };
    found.unwrap_or(0) as u32
}
