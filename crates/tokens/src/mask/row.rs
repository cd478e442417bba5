//! One row on the CPU: mask it, or choose from it.
//!
//! Where few tokens are illegal, a mask touches only these; where few are legal, a choice touches
//! only these. Otherwise all logits are passed in order.

use half::{bf16, f16};

use super::TokenMask;
use super::simd::{vectorized, writes_places_slowly};
use burn_dfa_vocabulary::TokenSet;

/// A floating-point logit.
pub trait Logit: Copy + Send {
    /// −∞.
    const NEVER: Self;

    /// The logit as a number.
    fn value(self) -> f32;
}

impl Logit for f32 {
    const NEVER: Self = f32::NEG_INFINITY;
    fn value(self) -> f32 {
        self
    }
}

impl Logit for f16 {
    const NEVER: Self = f16::NEG_INFINITY;
    fn value(self) -> f32 {
        self.to_f32()
    }
}

impl Logit for bf16 {
    const NEVER: Self = bf16::NEG_INFINITY;
    fn value(self) -> f32 {
        self.to_f32()
    }
}

/// Puts −∞ where a token is illegal.
pub(super) fn mask<F: Logit>(row: &mut [F], all: usize, legal: &TokenMask) {
    vectorized(
        #[inline(always)]
        || mask_within(row, all, legal),
    );
}

#[inline(always)]
fn mask_within<F: Logit>(row: &mut [F], vocabulary_len: usize, legal: &TokenMask) {
    let (row, beyond) = row.split_at_mut(vocabulary_len);
    beyond.fill(F::NEVER);
    match legal {
        TokenMask::MaskDelta { base, added, removed } => {
            let kept = logits_of(row, added);
            keep_legal(row, base);
            put_changes(row, [added, removed], &kept);
        }
        legal => keep_legal(row, legal),
    }
}

/// Writes −∞ over illegal tokens, for a mask that refers to no other mask.
#[inline(always)]
fn keep_legal<F: Logit>(row: &mut [F], legal: &TokenMask) {
    match legal {
        TokenMask::Alone(set) => keep(row, set),
        TokenMask::SetDelta { base, added, removed } => {
            let kept = logits_of(row, added);
            keep(row, base);
            put_changes(row, [added, removed], &kept);
        }
        TokenMask::MaskDelta { .. } => unreachable!("the base is a delta itself"),
    }
}

/// Puts −∞ at some tokens, and then gives others the logits back that they had.
#[inline(always)]
fn put_changes<F: Logit>(row: &mut [F], [added, removed]: [&[u32]; 2], kept: &[F]) {
    removed.iter().for_each(|&id| row[id as usize] = F::NEVER);
    put(row, added, kept);
}

/// Puts −∞ where a token is not in a set.
#[inline(always)]
fn keep<F: Logit>(row: &mut [F], set: &TokenSet) {
    match set {
        TokenSet::Few(tokens) => {
            let kept = logits_of(row, tokens);
            fill(row);
            put(row, tokens, &kept);
        }
        TokenSet::Most(illegal) => illegal.iter().for_each(|&id| row[id as usize] = F::NEVER),
        TokenSet::Bits(bits) => {
            let is_copied = size_of::<F>() == size_of::<f32>() && writes_places_slowly();
            mask_in_order(row, bits.words(), is_copied);
        }
    }
}

/// The logits of tokens.
#[inline(always)]
fn logits_of<F: Logit>(row: &[F], tokens: &[u32]) -> Vec<F> {
    tokens.iter().map(|&id| row[id as usize]).collect()
}

/// Gives tokens their logits back.
#[inline(always)]
fn put<F: Logit>(row: &mut [F], tokens: &[u32], logits: &[F]) {
    tokens.iter().zip(logits).for_each(|(&id, &logit)| row[id as usize] = logit);
}

/// Puts −∞ everywhere. A vector that crosses from one line of the cache into the next takes a third
/// longer to write.
#[inline(always)]
fn fill<F: Logit>(row: &mut [F]) {
    const LINE: usize = 64;
    let (head, lines) = row.split_at_mut(row.as_ptr().align_offset(LINE).min(row.len()));
    head.fill(F::NEVER);
    lines.fill(F::NEVER);
}

/// Writes −∞ at each bit that is 0. Most processors take several logits at once, in place or in a
/// copy that is written as a whole.
#[inline(always)]
fn mask_in_order<F: Logit>(row: &mut [F], words: &[u64], is_copied: bool) {
    let (chunks, rest) = row.as_chunks_mut::<64>();
    for (logits, &word) in chunks.iter_mut().zip(words) {
        match word {
            0 => {
                logits.fill(F::NEVER);
                continue;
            }
            u64::MAX => continue,
            _ => {}
        }
        for (logits, word) in
            logits.as_chunks_mut::<32>().0.iter_mut().zip([word as u32, (word >> 32) as u32])
        {
            if is_copied {
                *logits = masked(*logits, word);
                continue;
            }
            for (at, logit) in logits.iter_mut().enumerate() {
                *logit = if word & 1 << at == 0 { F::NEVER } else { *logit };
            }
        }
    }
    let word = words.last().copied().unwrap_or(0);
    for (_, logit) in rest.iter_mut().enumerate().filter(|(at, _)| word >> at & 1 == 0) {
        *logit = F::NEVER;
    }
}

/// The logits, with −∞ at each bit that is 0, as a copy. Compilers turn this loop into writes of
/// whole vectors. They turn the same code with iterators into masked writes, which take seven times
/// as long.
#[inline(always)]
fn masked<F: Logit>(logits: [F; 32], word: u32) -> [F; 32] {
    let mut masked = [F::NEVER; 32];
    for at in 0..32 {
        masked[at] = if word & 1 << at == 0 { F::NEVER } else { logits[at] };
    }
    masked
}

/// The legal token of the greatest logit: the lowest id among equals, the first NaN before all, 0
/// if all are −∞. May overwrite the row.
pub(super) fn greatest<F: Logit>(row: &mut [F], all: usize, legal: &TokenMask) -> u32 {
    if let TokenMask::Alone(TokenSet::Few(tokens)) = legal {
        return best(tokens.iter().map(|&id| (row[id as usize].value(), id)));
    }
    mask(row, all, legal);
    vectorized(
        #[inline(always)]
        || argmax(row),
    )
}

/// The legal token of the greatest score; ties, NaN and the row as in [`greatest`].
pub(super) fn best_by<F: Logit>(
    row: &mut [F],
    all: usize,
    legal: &TokenMask,
    score: impl Fn(f32, u32) -> f32,
) -> u32 {
    let scored = |row: &[F], id: u32| (score(row[id as usize].value(), id), id);
    match legal {
        TokenMask::Alone(TokenSet::Few(tokens)) => best(tokens.iter().map(|&id| scored(row, id))),
        TokenMask::Alone(TokenSet::Most(_)) => {
            // A score leaves −∞ as it is.
            mask(row, all, legal);
            best((0..all as u32).map(|id| scored(row, id)))
        }
        legal => best(legal.to_bits(all).ones().map(|id| scored(row, id))),
    }
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
#[inline(always)]
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use burn_dfa_vocabulary::TokenBits;
    use rand::{Rng, SeedableRng, rngs::StdRng};

    #[test]
    fn a_row_in_order_keeps_the_logits_whose_bits_are_set() {
        for len in [0, 1, 31, 32, 33, 63, 64, 65, 96, 127, 128, 200, 321] {
            // None, all, whole words of both, one alone at each place, and others.
            let words: [&dyn Fn(usize) -> bool; 5] =
                [&|_| false, &|_| true, &|at| at / 64 % 2 == 0, &|at| at % 3 == 1, &|at| at * at % 7 < 3];
            let alone = (0..len).flat_map(|one| [vec![one], (0..len).filter(|&at| at != one).collect()]);
            let chosen = words.iter().map(|word| (0..len).filter(|&at| word(at)).collect::<Vec<_>>());
            for legal in chosen.chain(alone) {
                let mut bits = TokenBits::none(len);
                legal.iter().for_each(|&at| bits.set(at as u32));
                // NaN too, whose bits are kept.
                let given: Vec<f32> = (0..len).map(|at| f32::from_bits(0x7fc0_0000 + at as u32)).collect();
                for is_copied in [false, true] {
                    let (mut row, mut half) = (given.clone(), vec![f16::from_f32(2.5); len]);
                    mask_in_order(&mut row, bits.words(), is_copied);
                    mask_in_order(&mut half, bits.words(), is_copied);
                    for at in 0..len {
                        let is_legal = legal.contains(&at);
                        let expected = if is_legal { given[at] } else { f32::NEG_INFINITY };
                        assert_eq!(row[at].to_bits(), expected.to_bits(), "{at} of {len}: {legal:?}");
                        assert_eq!(half[at] == f16::NEG_INFINITY, !is_legal, "{at} of {len}: {legal:?}");
                    }
                }
            }
        }
    }

    /// One set of tokens in each form, and as a difference from another set.
    #[test]
    fn equal_masks_of_all_forms_have_the_same_result() {
        let mut rng = StdRng::seed_from_u64(5);
        let lengths = [1usize, 40, 64, 200, 321].into_iter();
        for (len, share) in lengths.flat_map(|len| (0..=4u32).map(move |share| (len, share))) {
            let mut random_set =
                |share: u32| -> Vec<bool> { (0..len).map(|_| rng.random_range(0..4u32) < share).collect() };
            let (legal, other) = (random_set(share), random_set(2));
            let ids = |is_in: &dyn Fn(usize) -> bool| -> Vec<u32> {
                (0..len).filter(|&id| is_in(id)).map(|id| id as u32).collect()
            };
            let forms = |set: &[bool]| {
                let mut bits = TokenBits::none(len);
                ids(&|id| set[id]).iter().for_each(|&id| bits.set(id));
                [TokenSet::Few(ids(&|id| set[id])), TokenSet::Most(ids(&|id| !set[id])), TokenSet::Bits(bits)]
            };
            let (added, removed) = (ids(&|id| legal[id] && !other[id]), ids(&|id| other[id] && !legal[id]));
            let mut masks: Vec<TokenMask> = forms(&legal).into_iter().map(TokenMask::Alone).collect();
            for (set, other) in forms(&other).into_iter().zip(forms(&other)) {
                let base = Arc::new(set);
                masks.push(TokenMask::SetDelta { base, added: added.clone(), removed: removed.clone() });
                let base = Arc::new(TokenMask::Alone(other));
                masks.push(TokenMask::MaskDelta { base, added: added.clone(), removed: removed.clone() });
            }
            // Equal logits, NaN, −∞, and logits past the vocabulary.
            let values = [0.0, 1.0, 2.0, f32::NEG_INFINITY, if share == 1 { f32::NAN } else { 3.0 }];
            let mut logits: Vec<f32> = (0..len).map(|_| values[rng.random_range(0..values.len())]).collect();
            logits.extend([9.0; 3]);
            let is_legal = |id: usize| legal.get(id) == Some(&true);
            let at = |id: usize| if is_legal(id) { logits[id] } else { f32::NEG_INFINITY };
            let expected: Vec<f32> = (0..logits.len()).map(at).collect();
            let max = expected.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let first_nan = expected.iter().position(|logit| logit.is_nan());
            let first = first_nan.or_else(|| expected.iter().position(|&logit| logit == max));
            let best = first.unwrap() as u32;
            for form in &masks {
                let mut row = logits.clone();
                mask(&mut row, len, form);
                let same = row.iter().zip(&expected).all(|(a, b)| a.to_bits() == b.to_bits());
                assert!(same, "{row:?} instead of {expected:?}: {form:?}");
                assert_eq!(greatest(&mut logits.clone(), len, form), best, "{logits:?}: {form:?}");
                let by_score = best_by(&mut logits.clone(), len, form, |logit, _| logit);
                assert_eq!(by_score, best, "{logits:?}: {form:?}");
            }
        }
    }
}
