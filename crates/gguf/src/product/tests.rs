//! Products against those with dequantized weights in `f64`, and machines against each other.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::activations::Activations;
use super::simd::{BLOCK, Baseline, Simd};
use super::{BlockType, is_supported, on_machine, product, products};

/// Random blocks with finite numbers.
fn random_blocks(block: BlockType, count: usize, random: &mut StdRng) -> Vec<u8> {
    let mut numbers = vec![0.0; block.elements()];
    let mut all = Vec::new();
    while all.len() < count * block.bytes() {
        let bytes: Vec<u8> = (0..block.bytes()).map(|_| random.random()).collect();
        block.dequantize(&bytes, &mut numbers).unwrap();
        if numbers.iter().all(|number| number.is_finite()) {
            all.extend(bytes);
        }
    }
    all
}

/// A bound of `d · q` and `m` of a block, whose sum is rounded.
fn magnitude(block: BlockType, bytes: &[u8]) -> f64 {
    let half = |at: usize| f64::from(half::f16::from_le_bytes([bytes[at], bytes[at + 1]]).to_f32().abs());
    match block {
        BlockType::Q8_0 => 128.0 * half(0),
        BlockType::Q4_0 => 16.0 * half(0),
        BlockType::Q5_0 => 32.0 * half(0),
        BlockType::Q4_1 => 16.0 * half(0) + half(2),
        BlockType::Q5_1 => 32.0 * half(0) + half(2),
        BlockType::Q2_K => 16.0 * (4.0 * half(80) + half(82)),
        BlockType::Q3_K => 32.0 * 8.0 * half(108),
        BlockType::Q4_K => 64.0 * (16.0 * half(0) + half(2)),
        BlockType::Q5_K => 64.0 * (32.0 * half(0) + half(2)),
        BlockType::Q6_K => 128.0 * 64.0 * half(208),
        _ => unreachable!("a supported type"),
    }
}

/// Evaluates an expression for each kind of machine that this one is.
macro_rules! on_all_machines {
    (|$simd:ident, $name:ident| $work:expr) => {{
        let ($simd, $name) = (Baseline, "the baseline");
        $work;
        #[cfg(target_arch = "x86_64")]
        {
            if let Some($simd) = pulp::x86::V3::try_new() {
                let $name = "AVX2";
                $work;
            }
            if let Some($simd) = super::simd::Avx512::try_new() {
                let $name = "AVX-512";
                $work;
            }
        }
        #[cfg(target_arch = "aarch64")]
        {
            if let Some($simd) = pulp::aarch64::Neon::try_new() {
                let $name = "NEON";
                $work;
            }
        }
    }};
}

/// Checks all rows of a product, whose activations may be of any size.
fn check(block: BlockType, weights: &[u8], x: &[f32], inputs: usize) {
    let (rows, row) = (x.len() / inputs, block.bytes_of(inputs).unwrap());
    let y = product(block, weights, x, inputs).unwrap();
    assert_eq!(y.len(), weights.len() / row * rows);
    let bits = |y: &[f32]| y.iter().map(|y| y.to_bits()).collect::<Vec<_>>();
    on_all_machines!(|simd, name| {
        let [found] = on_machine(simd, [(block, weights)], x, inputs);
        assert_eq!(bits(&y), bits(&found), "{block:?} on {name}");
    });
    let scales: Vec<f64> =
        Activations::quantize(Baseline, x).blocks.iter().map(|block| f64::from(block.d)).collect();
    for (output, weights) in weights.chunks(row).enumerate() {
        let mut wide = vec![0.0; inputs];
        block.dequantize(weights, &mut wide).unwrap();
        for (index, x) in x.chunks(inputs).enumerate() {
            let (mut exact, mut bound) = (0.0, 1e-30);
            for (at, (x, wide)) in x.chunks(BLOCK).zip(wide.chunks(BLOCK)).enumerate() {
                let stored = at * BLOCK / block.elements() * block.bytes();
                let magnitude = magnitude(block, &weights[stored..stored + block.bytes()]);
                // Smaller activations become zero.
                let scale = scales[index * inputs / BLOCK + at].max(8e-37);
                let rounding = 4.0 * f64::from(f32::EPSILON) * (inputs / 16 + 8) as f64;
                for (x, wide) in x.iter().zip(wide) {
                    let (x, wide) = (f64::from(*x), f64::from(*wide));
                    exact += x * wide;
                    // An activation is off by half a scale; the sums are rounded.
                    bound += 0.5001 * scale * wide.abs() + rounding * magnitude * (x.abs() + scale);
                }
            }
            let found = f64::from(y[output * rows + index]);
            assert!(
                (found - exact).abs() <= bound,
                "{block:?}, output {output}, row {index}: {found} is not within {bound} of {exact}"
            );
        }
    }
}

fn supported() -> impl Iterator<Item = BlockType> {
    BlockType::ALL.into_iter().filter(|block| is_supported(*block))
}

#[test]
fn products_are_near_those_of_dequantized_weights() {
    let mut random = StdRng::seed_from_u64(4);
    for block in supported() {
        for (outputs, blocks, rows) in [(1, 1, 1), (8, 2, 3), (13, 5, 4), (7, 9, 6), (70, 3, 17)] {
            let inputs = blocks * block.elements();
            let weights = random_blocks(block, outputs * blocks, &mut random);
            let x: Vec<f32> = (0..rows * inputs).map(|_| random.random_range(-2.0..2.0)).collect();
            check(block, &weights, &x, inputs);
        }
        // Rows that are decoded in several parts.
        let inputs = 5 * 1024;
        let weights = random_blocks(block, 9 * inputs / block.elements(), &mut random);
        let x: Vec<f32> = (0..5 * inputs).map(|_| random.random_range(-1e-3..1e3)).collect();
        check(block, &weights, &x, inputs);
    }
}

#[test]
fn extremes_do_not_overflow() {
    let mut random = StdRng::seed_from_u64(5);
    for block in supported() {
        let inputs = 2 * block.elements().max(64);
        for byte in [0x00, 0x01, 0x3f, 0x78, 0x7b, 0x80, 0x88, 0xbb, 0xfb] {
            let weights = vec![byte; 3 * block.bytes_of(inputs).unwrap()];
            for x in [0.0, 1.0, -1.0, 1e-38, -1e-40, 1e20] {
                check(block, &weights, &vec![x; 2 * inputs], inputs);
            }
            let signs: Vec<f32> = (0..2 * inputs).map(|i| if i % 2 == 0 { 1.0 } else { -1.0 }).collect();
            check(block, &weights, &signs, inputs);
        }
        // Only the least and the greatest numbers.
        let mut weights = random_blocks(block, 3 * inputs / block.elements(), &mut random);
        for bytes in weights.chunks_mut(block.bytes()) {
            let scales = if block.elements() == 32 { 4 } else { 16 };
            let end = bytes.len() - 4;
            bytes[scales..end].fill_with(|| if random.random() { 0xff } else { 0x80 });
        }
        let x: Vec<f32> = (0..inputs).map(|_| if random.random() { 127.0 } else { -127.0 }).collect();
        check(block, &weights, &x, inputs);
    }
}

#[test]
fn rows_do_not_depend_on_other_rows() {
    let mut random = StdRng::seed_from_u64(6);
    for block in supported() {
        let (rows, inputs) = (11, 3 * block.elements());
        let weights = random_blocks(block, 3 * 12, &mut random);
        let x: Vec<f32> = (0..rows * inputs).map(|_| random.random_range(-1.0..1.0)).collect();
        let together = product(block, &weights, &x, inputs).unwrap();
        for (index, x) in x.chunks(inputs).enumerate() {
            let alone = product(block, &weights, x, inputs).unwrap();
            let column: Vec<f32> = together.iter().skip(index).step_by(rows).copied().collect();
            assert_eq!(alone, column, "{block:?}, row {index}");
        }
    }
}

#[test]
fn several_matrices_are_multiplied_as_each_alone() {
    let mut random = StdRng::seed_from_u64(7);
    // Little work, enough for several threads, and none.
    for (inputs, rows) in [(256, 1), (1024, 5), (256, 0)] {
        let matrices =
            [(BlockType::Q4_1, 96), (BlockType::Q8_0, 33), (BlockType::Q4_0, 0), (BlockType::Q6_K, 64)];
        let matrices = matrices.map(|(block, outputs)| {
            (block, random_blocks(block, outputs * inputs / block.elements(), &mut random))
        });
        let matrices = matrices.each_ref().map(|(block, weights)| (*block, &weights[..]));
        let x: Vec<f32> = (0..rows * inputs).map(|_| random.random_range(-1.0..1.0)).collect();
        let together = products(matrices, &x, inputs);
        let alone = matrices.map(|(block, weights)| product(block, weights, &x, inputs).unwrap());
        assert_eq!(together, Ok(alone));
    }
}

#[test]
fn activations_that_are_not_finite_show_in_the_result() {
    for block in supported() {
        let inputs = block.elements();
        let weights = vec![0x11; block.bytes()];
        for wrong in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut x = vec![1.0; inputs];
            x[inputs / 2] = wrong;
            let y = product(block, &weights, &x, inputs).unwrap();
            assert!(!y[0].is_finite(), "{block:?}: {wrong} gives {}", y[0]);
        }
    }
}

#[test]
fn products_refuse_wrong_sizes() {
    for block in supported() {
        let (inputs, bytes) = (block.elements(), block.bytes());
        assert_eq!(product(block, &[], &vec![0.0; inputs], inputs), Ok(Vec::new()));
        assert_eq!(product(block, &vec![0; bytes], &[], inputs), Ok(Vec::new()));
        assert!(product(block, &vec![0; bytes + 1], &vec![0.0; inputs], inputs).is_err());
        assert!(product(block, &vec![0; bytes], &vec![0.0; inputs / 2], inputs / 2).is_err());
        assert_eq!(product(block, &vec![0; bytes], &[], 0), Ok(Vec::new()));
    }
}

#[test]
fn columns_transpose_alike_on_all_machines() {
    let rows: [[u8; 16]; 8] = std::array::from_fn(|row| std::array::from_fn(|at| (16 * row + at) as u8));
    let rows = rows.each_ref();
    let expected = Baseline.transpose(rows);
    assert_eq!(expected[1][2].to_le_bytes(), [36, 37, 38, 39]);
    on_all_machines!(|simd, name| assert_eq!(simd.run(|| simd.transpose(rows)), expected, "{name}"));
}

#[test]
fn halves_widen_alike_on_all_machines() {
    // All finite ones, the subnormal among them, and infinity.
    for low in (0..=0x7c00).step_by(4) {
        let words: [u32; 8] = std::array::from_fn(|lane| {
            let low = (low + lane as u32 % 4).min(0x7c00);
            if lane < 4 { low | (low | 0x8000) << 16 } else { low | 0x8000 | low << 16 }
        });
        let half = |bits: u32| half::f16::from_bits(bits as u16).to_f32().to_bits();
        let expected = [words.map(|word| half(word & 0xffff)), words.map(|word| half(word >> 16))];
        on_all_machines!(|simd, name| {
            let found = simd.run(|| simd.widen(words)).map(|lanes| lanes.map(f32::to_bits));
            assert_eq!(found, expected, "{name}, from {low:#x}");
        });
    }
}
