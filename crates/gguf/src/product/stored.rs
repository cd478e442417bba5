//! Stored blocks of eight rows as one tile: columns of four bytes, and scales.
//!
//! A weight of a tile is `d · q + m`. A signed type has no `m`. A word holds the `q` of four
//! consecutive inputs. The words of the eight rows are neighbors, so that one instruction
//! multiplies four activations with all rows.
//!
//! Example: a block of Q4_1 has 16 bytes of nibbles. The low nibble of byte `i` is weight `i`, and
//! the high one is weight `16 + i`. The first four bytes of the eight rows are one column of eight
//! words. Its low nibbles are the weights 0 to 3 of the eight rows, and its high nibbles the
//! weights 16 to 19.

#![allow(non_camel_case_types)]

use super::simd::{Lanes, Range, Simd};

/// A type of stored blocks of `B` bytes. One scale covers a *unit* of `K` columns.
pub(crate) trait Stored<const B: usize, const K: usize> {
    /// Units in a block.
    const UNITS: usize;
    /// The range of `q`.
    const RANGE: Range;

    /// Decodes one block of each row into `columns` `[UNITS][K]`, `d` and `m` `[UNITS]`.
    fn decode<S: Simd>(
        simd: S,
        blocks: Lanes<&[u8; B]>,
        columns: &mut [[Lanes<u32>; K]],
        d: &mut [Lanes<f32>],
        m: &mut [Lanes<f32>],
    );
}

/// `N` bytes at `AT` of every block.
#[inline(always)]
fn part<const N: usize, const B: usize>(blocks: Lanes<&[u8; B]>, at: usize) -> Lanes<&[u8; N]> {
    blocks.map(|block| block[at..].first_chunk().expect("a part of a block"))
}

/// The `f16` at an offset.
#[inline(always)]
fn halves<S: Simd, const B: usize>(simd: S, blocks: Lanes<&[u8; B]>, at: usize) -> Lanes<f32> {
    let [halves, _] = simd.widen(part(blocks, at).map(|bytes| u32::from(u16::from_le_bytes(*bytes))));
    halves
}

/// The two `f16` at the start of each block. The transposition loads 16 bytes of a block at once;
/// the words alone would be loaded one by one.
#[inline(always)]
fn first_halves<S: Simd, const B: usize>(simd: S, blocks: Lanes<&[u8; B]>) -> [Lanes<f32>; 2] {
    let [first, ..] = simd.transpose(part(blocks, 0));
    simd.widen(first)
}

/// `4 * N` bytes at an offset, as columns.
#[inline(always)]
fn columns<S: Simd, const B: usize, const N: usize>(
    simd: S,
    blocks: Lanes<&[u8; B]>,
    at: usize,
) -> [Lanes<u32>; N] {
    let mut columns = [[0; 8]; N];
    for (index, four) in columns.as_chunks_mut::<4>().0.iter_mut().enumerate() {
        *four = simd.transpose(part(blocks, at + 16 * index));
    }
    columns
}

/// Bits of the bytes of a word, shifted down.
#[inline(always)]
fn bits(word: u32, shift: usize, mask: u8) -> u32 {
    word >> shift & u32::from_le_bytes([mask; 4])
}

#[inline(always)]
fn times(a: Lanes<f32>, factor: impl Fn(usize) -> f32) -> Lanes<f32> {
    std::array::from_fn(|lane| a[lane] * factor(lane))
}

/// 32 nibbles in 16 bytes, the low ones first.
#[inline(always)]
fn nibbles<S: Simd, const B: usize>(simd: S, blocks: Lanes<&[u8; B]>, at: usize) -> [Lanes<u32>; 8] {
    let packed: [Lanes<u32>; 4] = columns(simd, blocks, at);
    std::array::from_fn(|column| packed[column % 4].map(|word| bits(word, column / 4 * 4, 15)))
}

/// 32 numbers of 5 bits: nibbles after 4 bytes with their fifth bits.
#[inline(always)]
fn five_bits<S: Simd, const B: usize>(simd: S, blocks: Lanes<&[u8; B]>, at: usize) -> [Lanes<u32>; 8] {
    let ([fifth, ..], low) = (simd.transpose(part(blocks, at)), nibbles(simd, blocks, at + 4));
    std::array::from_fn(|column| {
        let spread = fifth.map(|word| {
            let four = word >> (4 * column) & 15;
            // Bit `i` moves to byte `i`.
            ((four | four << 7 | four << 14 | four << 21) & 0x0101_0101) << 4
        });
        simd.or(low[column], spread)
    })
}

pub(crate) struct Q8_0;

impl Stored<34, 8> for Q8_0 {
    const UNITS: usize = 1;
    const RANGE: Range = Range::Signed;

    #[inline(always)]
    fn decode<S: Simd>(
        simd: S,
        blocks: Lanes<&[u8; 34]>,
        q: &mut [[Lanes<u32>; 8]],
        d: &mut [Lanes<f32>],
        _m: &mut [Lanes<f32>],
    ) {
        [d[0], _] = first_halves(simd, blocks);
        q[0] = columns(simd, blocks, 2);
    }
}

/// Types of 32 numbers and one scale.
macro_rules! of_32 {
    ($name:ident, $bytes:literal, $range:ident, $scales:expr, $numbers:ident, $at:literal) => {
        pub(crate) struct $name;

        impl Stored<$bytes, 8> for $name {
            const UNITS: usize = 1;
            const RANGE: Range = Range::$range;

            #[inline(always)]
            fn decode<S: Simd>(
                simd: S,
                blocks: Lanes<&[u8; $bytes]>,
                q: &mut [[Lanes<u32>; 8]],
                d: &mut [Lanes<f32>],
                m: &mut [Lanes<f32>],
            ) {
                [d[0], m[0]] = $scales(first_halves(simd, blocks));
                q[0] = $numbers(simd, blocks, $at);
            }
        }
    };
}

/// The scale, and the minimum that makes the middle of the numbers zero.
#[inline(always)]
fn centered([d, _]: [Lanes<f32>; 2], middle: f32) -> [Lanes<f32>; 2] {
    [d, d.map(|d| d * -middle)]
}

of_32!(Q4_0, 18, Four, |scales| centered(scales, 8.0), nibbles, 2);
of_32!(Q4_1, 20, Four, |scales| scales, nibbles, 4);
of_32!(Q5_0, 22, Five, |scales| centered(scales, 16.0), five_bits, 2);
of_32!(Q5_1, 24, Five, |scales| scales, five_bits, 4);

pub(crate) struct Q2_K;

impl Stored<84, 4> for Q2_K {
    const UNITS: usize = 16;
    const RANGE: Range = Range::Four;

    #[inline(always)]
    fn decode<S: Simd>(
        simd: S,
        blocks: Lanes<&[u8; 84]>,
        q: &mut [[Lanes<u32>; 4]],
        d: &mut [Lanes<f32>],
        m: &mut [Lanes<f32>],
    ) {
        let packed: [Lanes<u32>; 16] = columns(simd, blocks, 16);
        let scales = simd.transpose(part(blocks, 0));
        let [.., last] = simd.transpose(part(blocks, 68));
        let [scale, minimum] = simd.widen(last);
        for unit in 0..16 {
            let first = unit / 8 * 8 + unit % 2 * 4;
            q[unit] = std::array::from_fn(|column| {
                packed[first + column].map(|word| bits(word, unit / 2 % 4 * 2, 3))
            });
            let byte = |lane: usize| scales[unit / 4][lane] >> (unit % 4 * 8);
            d[unit] = times(scale, |lane| (byte(lane) & 15) as f32);
            m[unit] = times(minimum, |lane| -((byte(lane) >> 4 & 15) as f32));
        }
    }
}

pub(crate) struct Q3_K;

impl Stored<110, 4> for Q3_K {
    const UNITS: usize = 16;
    const RANGE: Range = Range::Four;

    #[inline(always)]
    fn decode<S: Simd>(
        simd: S,
        blocks: Lanes<&[u8; 110]>,
        q: &mut [[Lanes<u32>; 4]],
        d: &mut [Lanes<f32>],
        m: &mut [Lanes<f32>],
    ) {
        let third: [Lanes<u32>; 8] = columns(simd, blocks, 0);
        let packed: [Lanes<u32>; 16] = columns(simd, blocks, 32);
        let scale = halves(simd, blocks, 108);
        let [_, scales @ ..] = simd.transpose(part(blocks, 92));
        for unit in 0..16 {
            let column = unit % 2 * 4;
            q[unit] = std::array::from_fn(|next| {
                let (low, high) = (packed[unit / 8 * 8 + column + next], third[column + next]);
                std::array::from_fn(|lane| {
                    bits(low[lane], unit / 2 % 4 * 2, 3) | bits(high[lane], unit / 2, 1) << 2
                })
            });
            // The low nibbles of the scales, and their upper two bits less 32.
            let factor = |lane: usize| {
                let low = scales[unit / 4 % 2][lane] >> (unit % 4 * 8 + unit / 8 * 4) & 15;
                let high = scales[2][lane] >> (unit % 4 * 8 + unit / 4 * 2) & 3;
                (low | high << 4) as f32 - 32.0
            };
            d[unit] = times(scale, factor);
            m[unit] = d[unit].map(|d| d * -4.0);
        }
    }
}

/// The scales and minima of a block of type Q4_K or Q5_K.
#[inline(always)]
fn scales_and_minima<S: Simd, const B: usize>(
    simd: S,
    blocks: Lanes<&[u8; B]>,
    d: &mut [Lanes<f32>],
    m: &mut [Lanes<f32>],
) {
    let [first, scales, minima, rest] = simd.transpose(part(blocks, 0));
    let [scale, minimum] = simd.widen(first);
    for unit in 0..4 {
        let shift = 8 * unit;
        let upper = |word: u32| (word >> (shift + 6) & 3) << 4;
        d[unit] = times(scale, |lane| (scales[lane] >> shift & 63) as f32);
        m[unit] = times(minimum, |lane| -((minima[lane] >> shift & 63) as f32));
        d[unit + 4] = times(scale, |lane| (rest[lane] >> shift & 15 | upper(scales[lane])) as f32);
        m[unit + 4] = times(minimum, |lane| -((rest[lane] >> (shift + 4) & 15 | upper(minima[lane])) as f32));
    }
}

pub(crate) struct Q4_K;

impl Stored<144, 8> for Q4_K {
    const UNITS: usize = 8;
    const RANGE: Range = Range::Four;

    #[inline(always)]
    fn decode<S: Simd>(
        simd: S,
        blocks: Lanes<&[u8; 144]>,
        q: &mut [[Lanes<u32>; 8]],
        d: &mut [Lanes<f32>],
        m: &mut [Lanes<f32>],
    ) {
        scales_and_minima(simd, blocks, d, m);
        for pair in 0..4 {
            let packed: [Lanes<u32>; 8] = columns(simd, blocks, 16 + 32 * pair);
            for half in 0..2 {
                q[2 * pair + half] = packed.map(|words| words.map(|word| bits(word, 4 * half, 15)));
            }
        }
    }
}

pub(crate) struct Q5_K;

impl Stored<176, 8> for Q5_K {
    const UNITS: usize = 8;
    const RANGE: Range = Range::Five;

    #[inline(always)]
    fn decode<S: Simd>(
        simd: S,
        blocks: Lanes<&[u8; 176]>,
        q: &mut [[Lanes<u32>; 8]],
        d: &mut [Lanes<f32>],
        m: &mut [Lanes<f32>],
    ) {
        scales_and_minima(simd, blocks, d, m);
        let fifth: [Lanes<u32>; 8] = columns(simd, blocks, 16);
        for pair in 0..4 {
            let packed: [Lanes<u32>; 8] = columns(simd, blocks, 48 + 32 * pair);
            for half in 0..2 {
                let unit = 2 * pair + half;
                q[unit] = std::array::from_fn(|column| {
                    std::array::from_fn(|lane| {
                        bits(packed[column][lane], 4 * half, 15) | bits(fifth[column][lane], unit, 1) << 4
                    })
                });
            }
        }
    }
}

pub(crate) struct Q6_K;

impl Stored<210, 4> for Q6_K {
    const UNITS: usize = 16;
    const RANGE: Range = Range::Six;

    #[inline(always)]
    fn decode<S: Simd>(
        simd: S,
        blocks: Lanes<&[u8; 210]>,
        q: &mut [[Lanes<u32>; 4]],
        d: &mut [Lanes<f32>],
        m: &mut [Lanes<f32>],
    ) {
        let scale = halves(simd, blocks, 208);
        let scales = simd.transpose(part(blocks, 192));
        for half in 0..2 {
            let low: [Lanes<u32>; 16] = columns(simd, blocks, 64 * half);
            let high: [Lanes<u32>; 8] = columns(simd, blocks, 128 + 32 * half);
            for within in 0..8 {
                let unit = 8 * half + within;
                let column = within % 4 * 4;
                q[unit] = std::array::from_fn(|next| {
                    let (low, high) = (low[column + next], high[column % 8 + next]);
                    std::array::from_fn(|lane| {
                        bits(low[lane], within / 4 * 4, 15) | bits(high[lane], within / 2 * 2, 3) << 4
                    })
                });
                d[unit] = times(scale, |lane| f32::from((scales[unit / 4][lane] >> (unit % 4 * 8)) as i8));
                m[unit] = d[unit].map(|d| d * -32.0);
            }
        }
    }
}
