//! [`product`] and [`products`]: rows of activations times matrices that stay in stored blocks.
//!
//! A product of one row reads every weight once and is bound by memory, so the blocks are decoded
//! on the way. Eight rows of the matrix make a tile (`stored`). Its words are multiplied in
//! integers with activations of 8 bits (`activations`) by a few instructions (`simd`). A tile is
//! decoded once for all rows of activations.
//!
//! Only integers are summed in an order that depends on the machine, which is exact. So a row of
//! the result depends neither on the machine nor on the other rows.
//!
//! The library candle-core 0.11 multiplies such blocks too. It decodes a block again for every row
//! of activations, or copies the matrix into tiles, and depends on 127 other packages; this crate
//! depends on 33.

mod activations;
mod simd;
mod stored;
#[cfg(test)]
mod tests;

use rayon::prelude::*;

use crate::block::{BlockError, BlockType};
use activations::{Activations, Block};
use simd::{BLOCK, Baseline, Lanes, Range, Simd};
use stored::Stored;

/// Outputs of a tile.
const TILE: usize = 8;
/// Units of a tile that are decoded at a time, so that they stay in the fastest cache.
const UNITS: usize = 64;
/// Units that are decoded at a time for one row of activations. To multiply them takes less time
/// than to read a line from memory, so that the machine never stops to read.
const FEW_UNITS: usize = 8;
/// Bytes of a cache line.
const LINE: usize = 64;
/// Work of at least this many multiplications is divided among threads.
const SHARED: usize = 1 << 16;

/// Whether [`product`] multiplies blocks of a type; floats are left to other products.
pub fn is_supported(block: BlockType) -> bool {
    block.elements() > 1
}

/// Multiplies rows of activations by the transpose of a matrix in blocks.
///
/// Activations are quantized to 8 bits in blocks of 32: an activation is off by at most 1/254 of
/// the greatest magnitude of its block. Apart from that the result is the product with the
/// dequantized matrix, up to rounding in `f32`. Infinite and NaN activations give NaN.
///
/// # Shapes
/// - `x`: `[rows, inputs]`
/// - `weights`: `[outputs, inputs]`, in blocks
/// - returns `[outputs, rows]`
///
/// # Errors
/// `inputs` is no whole number of blocks, or the bytes are no whole number of rows.
///
/// # Panics
/// If the type is not [supported](is_supported), or `x` is no whole number of rows.
///
/// # Example
///
/// ```
/// use burn_dfa_gguf::block::BlockType;
/// use burn_dfa_gguf::product::product;
///
/// // One row of the matrix: a scale of 0.5 as `f16`, and 32 times 3.
/// let mut weights = vec![0x00, 0x38];
/// weights.extend([3; 32]);
/// assert_eq!(product(BlockType::Q8_0, &weights, &[127.0; 32], 32)?, [32.0 * 127.0 * 1.5]);
/// # Ok::<(), burn_dfa_gguf::block::BlockError>(())
/// ```
pub fn product(block: BlockType, weights: &[u8], x: &[f32], inputs: usize) -> Result<Vec<f32>, BlockError> {
    let [y] = products([(block, weights)], x, inputs)?;
    Ok(y)
}

/// Multiplies the same rows of activations by the transposes of several matrices. The results equal
/// calls of [`product`], but the activations are quantized once, and the threads divide the work of
/// all matrices at once.
///
/// # Shapes
/// - `x`: `[rows, inputs]`
/// - `matrices`: each `[outputs, inputs]`, with its type and its blocks
/// - returns `[outputs, rows]` for each matrix
///
/// # Errors
/// As [`product`], for any of the matrices.
///
/// # Panics
/// As [`product`].
pub fn products<const N: usize>(
    matrices: [(BlockType, &[u8]); N],
    x: &[f32],
    inputs: usize,
) -> Result<[Vec<f32>; N], BlockError> {
    assert!(x.len().is_multiple_of(inputs.max(1)), "whole rows of {inputs} activations");
    for (block, weights) in matrices {
        assert!(is_supported(block), "blocks, not {block:?}");
        check(block, weights, inputs)?;
    }
    if inputs == 0 {
        return Ok(matrices.map(|_| Vec::new()));
    }
    #[cfg(target_arch = "x86_64")]
    {
        if let Some(simd) = simd::Avx512::try_new() {
            return Ok(on_machine(simd, matrices, x, inputs));
        }
        if let Some(simd) = pulp::x86::V3::try_new() {
            return Ok(on_machine(simd, matrices, x, inputs));
        }
    }
    #[cfg(target_arch = "aarch64")]
    {
        if let Some(simd) = pulp::aarch64::Neon::try_new() {
            return Ok(on_machine(simd, matrices, x, inputs));
        }
    }
    Ok(on_machine(Baseline, matrices, x, inputs))
}

/// Checks that the bytes are whole rows of a matrix.
fn check(block: BlockType, weights: &[u8], inputs: usize) -> Result<(), BlockError> {
    let row = block.bytes_of(inputs)?;
    if row == 0 || weights.len().is_multiple_of(row) {
        return Ok(());
    }
    let outputs = weights.len() / row;
    let (elements, expected) = (outputs * inputs, outputs * row);
    Err(BlockError::Bytes { block, elements, bytes: weights.len(), expected })
}

/// The products with matrices that were checked, by the instructions of a machine.
fn on_machine<S: Simd + Sync, const N: usize>(
    simd: S,
    matrices: [(BlockType, &[u8]); N],
    x: &[f32],
    inputs: usize,
) -> [Vec<f32>; N] {
    let rows = x.len() / inputs;
    let row_bytes = |block: BlockType| inputs / block.elements() * block.bytes();
    let mut products = matrices.map(|(block, weights)| vec![0.0; weights.len() / row_bytes(block) * rows]);
    let total: usize = products.iter().map(Vec::len).sum();
    if total == 0 {
        return products;
    }
    let x = simd.run(
        #[inline(always)]
        || Activations::quantize(simd, x),
    );
    let is_shared = total * inputs >= SHARED;
    // Two shares for each thread, since a thread may be delayed.
    let count = if is_shared { 2 * rayon::current_num_threads() } else { 1 };
    let share = (total / rows).div_ceil(count).next_multiple_of(TILE);
    let shares = products.iter_mut().zip(matrices).flat_map(|(y, (block, weights))| {
        let weights = weights.chunks(share * row_bytes(block));
        y.chunks_mut(share * rows).zip(weights).map(move |(y, weights)| (block, weights, y))
    });
    let multiply = |(block, weights, y): (BlockType, &[u8], &mut [f32])| {
        fill(simd, block, weights, &x.blocks, inputs, y);
    };
    if is_shared {
        shares.collect::<Vec<_>>().into_par_iter().for_each(multiply);
    } else {
        shares.for_each(multiply);
    }
    products
}

/// Fills `y` `[outputs, rows]` with the products of rows of activations and rows of a matrix.
fn fill<S: Simd>(simd: S, block: BlockType, weights: &[u8], x: &[Block], inputs: usize, y: &mut [f32]) {
    match block {
        BlockType::F32 | BlockType::F16 | BlockType::BF16 => unreachable!("a supported type"),
        BlockType::Q8_0 => fill_stored::<S, stored::Q8_0, _, _>(simd, weights, x, inputs, y),
        BlockType::Q4_0 => fill_stored::<S, stored::Q4_0, _, _>(simd, weights, x, inputs, y),
        BlockType::Q4_1 => fill_stored::<S, stored::Q4_1, _, _>(simd, weights, x, inputs, y),
        BlockType::Q5_0 => fill_stored::<S, stored::Q5_0, _, _>(simd, weights, x, inputs, y),
        BlockType::Q5_1 => fill_stored::<S, stored::Q5_1, _, _>(simd, weights, x, inputs, y),
        BlockType::Q2_K => fill_stored::<S, stored::Q2_K, _, _>(simd, weights, x, inputs, y),
        BlockType::Q3_K => fill_stored::<S, stored::Q3_K, _, _>(simd, weights, x, inputs, y),
        BlockType::Q4_K => fill_stored::<S, stored::Q4_K, _, _>(simd, weights, x, inputs, y),
        BlockType::Q5_K => fill_stored::<S, stored::Q5_K, _, _>(simd, weights, x, inputs, y),
        BlockType::Q6_K => fill_stored::<S, stored::Q6_K, _, _>(simd, weights, x, inputs, y),
    }
}

fn fill_stored<S: Simd, T: Stored<B, K>, const B: usize, const K: usize>(
    simd: S,
    weights: &[u8],
    x: &[Block],
    inputs: usize,
    y: &mut [f32],
) {
    let (blocks, _) = weights.as_chunks::<B>();
    let per_row = inputs / (4 * K * T::UNITS);
    let rows = x.len() / (inputs / BLOCK);
    simd.run(
        #[inline(always)]
        || {
            let mut tile = Tile::<K>::ZERO;
            let mut sums = vec![[0.0; TILE]; rows];
            for (y, blocks) in y.chunks_mut(TILE * rows).zip(blocks.chunks(TILE * per_row)) {
                sums.fill([0.0; TILE]);
                tile.multiply::<S, T, B>(simd, blocks, per_row, x, &mut sums);
                for (row, sums) in sums.iter().enumerate() {
                    y.iter_mut().skip(row).step_by(rows).zip(sums).for_each(|(y, sum)| *y = *sum);
                }
            }
        },
    );
}

/// Decoded units of eight rows. No vector of a tile lies in two cache lines.
#[repr(align(64))]
struct Tile<const K: usize> {
    columns: [[Lanes<u32>; K]; UNITS],
    d: [Lanes<f32>; UNITS],
    m: [Lanes<f32>; UNITS],
}

impl<const K: usize> Tile<K> {
    const ZERO: Self = Self { columns: [[[0; 8]; K]; UNITS], d: [[0.0; 8]; UNITS], m: [[0.0; 8]; UNITS] };

    /// Adds the products of at most eight rows of blocks with all rows of activations to `sums`.
    #[inline(always)]
    fn multiply<S: Simd, T: Stored<B, K>, const B: usize>(
        &mut self,
        simd: S,
        blocks: &[[u8; B]],
        per_row: usize,
        x: &[Block],
        sums: &mut [Lanes<f32>],
    ) {
        // Missing rows repeat the last one; their results are not used.
        let last = blocks.len() / per_row - 1;
        let rows: Lanes<&[[u8; B]]> =
            std::array::from_fn(|lane| &blocks[lane.min(last) * per_row..][..per_row]);
        let x_row = per_row * T::UNITS * K / 8;
        let units = if sums.len() == 1 { FEW_UNITS } else { UNITS };
        let at_once = (units / T::UNITS).max(1);
        let mut next = blocks.as_flattened().as_ptr().wrapping_add(blocks.len() * B);
        for from in (0..per_row).step_by(at_once) {
            let count = at_once.min(per_row - from);
            let rows = rows.map(|row| &row[from..from + count]);
            for index in 0..count {
                let units = index * T::UNITS..(index + 1) * T::UNITS;
                let blocks = rows.map(|row| &row[index]);
                let (columns, d) = (&mut self.columns[units.clone()], &mut self.d[units.clone()]);
                T::decode(simd, blocks, columns, d, &mut self.m[units]);
                // Eight streams at once are too many for the machine to foresee the next tile.
                for line in 0..(TILE * B).div_ceil(LINE) {
                    simd.prefetch(next.wrapping_add(line * LINE));
                }
                next = next.wrapping_add(TILE * B);
            }
            let (units, x_from) = (count * T::UNITS, from * T::UNITS * K / 8);
            let x = |row: usize| &x[row * x_row + x_from..][..units * K / 8];
            let (fours, rest) = sums.as_chunks_mut::<4>();
            let in_fours = 4 * fours.len();
            for (index, sums) in fours.iter_mut().enumerate() {
                self.add(simd, T::RANGE, units, std::array::from_fn(|row| x(4 * index + row)), sums);
            }
            for (index, sums) in rest.iter_mut().enumerate() {
                self.add(simd, T::RANGE, units, [x(in_fours + index)], std::array::from_mut(sums));
            }
        }
    }

    /// Adds the products of the first units with `R` rows of activations.
    #[inline(always)]
    fn add<S: Simd, const R: usize>(
        &self,
        simd: S,
        range: Range,
        units: usize,
        x: [&[Block]; R],
        sums: &mut [Lanes<f32>; R],
    ) {
        let mut total = *sums;
        let tile = self.columns[..units].iter().zip(&self.d[..units]).zip(&self.m[..units]);
        for (unit, ((columns, d), m)) in tile.enumerate() {
            // A unit is a block of activations, or one half of it.
            let (block, half) = (unit * K / 8, unit % (8 / K));
            let blocks = x.map(|x| &x[block]);
            let products = simd.dot(range, columns, blocks.map(|block| &block.q.as_chunks::<K>().0[half]));
            for row in 0..R {
                total[row] = simd.add_integers(total[row], *d, blocks[row].d, products[row]);
                if !matches!(range, Range::Signed) {
                    let sum = blocks[row].sums[if K == 8 { 2 } else { half }];
                    total[row] = simd.add_floats(total[row], *m, sum);
                }
            }
        }
        *sums = total;
    }
}
