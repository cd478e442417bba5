//! One row on the CPU: mask it, or choose from it.
//!
//! The work is that of the smaller side: where few tokens are legal, only these are touched; where few are
//! illegal, only those.

use burn::tensor::{bf16, f16};

use super::legal::Legal;
use crate::sampling::Noise;
use crate::tensor::HostRow;

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
pub(super) struct Scratch<F> {
    legal: Legal,
    /// Logits set aside.
    kept: Vec<F>,
    /// A bit for each token: whether it is legal.
    bits: Vec<u8>,
}

impl<F: Logit> Scratch<F> {
    pub(super) fn new() -> Self {
        Self { legal: Legal::default(), kept: Vec::new(), bits: Vec::new() }
    }
}

/// Puts −∞ where a token is illegal.
pub(super) fn mask<F: Logit>(row: &mut [F], at: &HostRow<'_>, scratch: &mut Scratch<F>) {
    let count = scratch.legal.look_up(at);
    mask_found(row, at, count, scratch);
}

fn mask_found<F: Logit>(row: &mut [F], at: &HostRow<'_>, count: usize, scratch: &mut Scratch<F>) {
    let Scratch { legal, kept, .. } = scratch;
    if legal.text.len() > row.len() / MANY {
        return mask_by_bits(row, at, scratch);
    }
    kept.clear();
    if 2 * count <= row.len() && legal.except.is_empty() {
        kept.extend(legal.tokens(at.class_tokens).map(|id| row[id as usize]));
        row.fill(F::NEVER);
        for (id, &logit) in legal.tokens(at.class_tokens).zip(&*kept) {
            row[id as usize] = logit;
        }
    } else {
        kept.extend(legal.text.iter().map(|&id| row[id as usize]));
        let classes = legal.classes.iter().enumerate().filter(|&(_, &legal)| !legal);
        let illegal = classes.flat_map(|(class, _)| at.class_tokens.of(class)).chain(&legal.except);
        illegal.for_each(|&id| row[id as usize] = F::NEVER);
        row[at.table.vocabulary_len()..].fill(F::NEVER);
        for (&id, &logit) in legal.text.iter().zip(&*kept) {
            row[id as usize] = logit;
        }
    }
}

/// Where more than one in so many tokens is legal text, the row is masked in order.
const MANY: usize = 16;

/// The same where many tokens are legal that lie anywhere in the row: their bits take less of the processor's caches than
/// their logits, and the row is then passed once.
fn mask_by_bits<F: Logit>(row: &mut [F], at: &HostRow<'_>, scratch: &mut Scratch<F>) {
    let Scratch { legal, bits, .. } = scratch;
    bits.clear();
    bits.resize(row.len().div_ceil(8), 0);
    let mut set = |id: u32, is_legal: bool| {
        let (byte, bit) = (&mut bits[id as usize / 8], 1 << (id % 8));
        *byte = if is_legal { *byte | bit } else { *byte & !bit };
    };
    legal.of_classes(at.class_tokens).for_each(|id| set(id, true));
    legal.except.iter().for_each(|&id| set(id, false));
    legal.text.iter().for_each(|&id| set(id, true));
    let (chunks, rest) = row.as_chunks_mut::<8>();
    for (logits, &legal) in chunks.iter_mut().zip(&*bits) {
        let keep = &KEPT[legal as usize];
        for at in 0..8 {
            logits[at] = logits[at].or_never(keep[at]);
        }
    }
    let legal = bits.last().copied().unwrap_or(0);
    for (logit, &keep) in rest.iter_mut().zip(&KEPT[legal as usize]) {
        *logit = logit.or_never(keep);
    }
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
    let count = scratch.legal.look_up(at);
    if 8 * count <= row.len() && scratch.legal.except.is_empty() {
        let tokens = scratch.legal.tokens(at.class_tokens);
        return best(tokens.map(|id| (row[id as usize].value(), id)));
    }
    mask_found(row, at, count, scratch);
    argmax(row)
}

/// The legal token of the greatest logit, times `factor`, plus its noise; ties, NaN and the row as in [`greatest`].
pub(super) fn sampled<F: Logit>(
    row: &mut [F],
    at: &HostRow<'_>,
    noise: &Noise,
    scratch: &mut Scratch<F>,
) -> u32 {
    let count = scratch.legal.look_up(at);
    if !scratch.legal.except.is_empty() {
        // Noise leaves −∞ as it is.
        mask_found(row, at, count, scratch);
    }
    let tokens = scratch.legal.tokens(at.class_tokens);
    best(tokens.map(|id| (noise.disturb(row[id as usize].value(), id), id)))
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
