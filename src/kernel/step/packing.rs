//! Logits of 16 bits in words, in a kernel. Imports nothing of Burn.
//!
//! Words become logits by operations on integers: naga 30, which compiles WGSL, cannot reinterpret
//! a word as two `f16`.

use cubecl::ir::{ElemType, FloatKind, UIntKind};
use cubecl::prelude::*;

/// The bit of the sign.
pub(super) const SIGN: u32 = 0x8000_0000;

/// The logits in a number that is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Packing {
    /// One.
    One,
    /// Two of the type `f16`.
    F16Pair,
    /// Two of the type `bf16`.
    Bf16Pair,
}

impl Packing {
    /// The packing of logits of a type in rows that begin at words.
    pub(super) fn of(logits: ElemType) -> Self {
        match logits {
            ElemType::Float(FloatKind::F16) => Self::F16Pair,
            ElemType::Float(FloatKind::BF16) => Self::Bf16Pair,
            _ => Self::One,
        }
    }

    /// The type of the numbers.
    pub(super) fn numbers(self, logits: ElemType) -> ElemType {
        if self == Self::One { logits } else { ElemType::UInt(UIntKind::U32) }
    }

    /// −∞ in each logit of a number.
    pub(super) fn never(self, numbers: ElemType) -> InputScalar {
        let half = (self.infinity() | SIGN) >> 16;
        match self {
            Self::One => InputScalar::new(f32::NEG_INFINITY, numbers),
            _ => InputScalar::new(half << 16 | half, numbers),
        }
    }

    /// The logits in a number.
    pub(super) fn count(self) -> usize {
        if self == Self::One { 1 } else { 2 }
    }

    /// The bits of +∞, as [`bits_of`].
    pub(super) fn infinity(self) -> u32 {
        if self == Self::F16Pair { 0x7c00_0000 } else { 0x7f80_0000 }
    }
}

/// The logits of a load.
#[cube]
pub(super) fn size_of<N: Size>(#[comptime] packing: Packing) -> comptime_type!(usize) {
    let numbers = N::value().comptime();
    comptime!(numbers * packing.count())
}

/// The bits of a logit of a load: of an `f32`, or of a 16-bit float in the upper half. Both have the
/// order of floats.
#[cube]
pub(super) fn bits_of<S: Numeric, N: Size>(
    values: Vector<S, N>,
    #[comptime] lane: usize,
    #[comptime] packing: Packing,
) -> u32 {
    if comptime!(packing == Packing::One) {
        u32::reinterpret(f32::cast_from(values.extract(lane)))
    } else {
        let pair = u32::cast_from(values.extract(comptime!(lane / 2)));
        if comptime!(lane.is_multiple_of(2)) { pair << 16u32 } else { pair & 0xffff_0000u32 }
    }
}

/// The logit with the bits of [`bits_of`].
///
/// An `f16` is not converted by one product, because a GPU may take its subnormal numbers, which
/// are also subnormal as an `f32` before the product, for zeros.
#[cube]
pub(super) fn logit_of(bits: u32, #[comptime] packing: Packing) -> f32 {
    if comptime!(packing == Packing::F16Pair) {
        let size = (bits & 0x7fff_0000u32) >> 3u32;
        // A subnormal number is the fraction of 2⁻¹⁴ and itself, less 2⁻¹⁴.
        let subnormal = u32::reinterpret(f32::reinterpret(size + 0x3880_0000u32) - 6.103_515_6e-5f32);
        let offset = select(size >= 0x0f80_0000u32, 0x7000_0000u32, 0x3800_0000u32);
        let size = select(size < 0x0080_0000u32, subnormal, size + offset);
        f32::reinterpret(size | (bits & 0x8000_0000u32))
    } else {
        f32::reinterpret(bits)
    }
}

/// A vector of logits, with `never` where a bit is 0; for pairs, both halves of `never` are −∞.
#[cube]
pub(super) fn kept<S: Numeric, N: Size>(
    values: Vector<S, N>,
    bits: u32,
    never: S,
    #[comptime] packing: Packing,
) -> Vector<S, N> {
    let mut kept = values;
    #[unroll]
    for number in 0..N::value() {
        let value = values.extract(number);
        if comptime!(packing == Packing::One) {
            let is_legal = (bits >> comptime!(number as u32)) & 1u32 == 1u32;
            kept.insert(number, select(is_legal, value, never));
        } else {
            let pair = bits >> comptime!(2 * number as u32);
            let lower = select(pair & 1u32 == 1u32, 0xffffu32, 0u32);
            let upper = select(pair & 2u32 == 2u32, 0xffff_0000u32, 0u32);
            let never = u32::cast_from(never);
            let word = never ^ ((never ^ u32::cast_from(value)) & (lower | upper));
            kept.insert(number, S::cast_from(word));
        }
    }
    kept
}
