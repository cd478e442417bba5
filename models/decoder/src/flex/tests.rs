//! Compares each function with Burn's operations, in `f32`, on numbers that every float type holds
//! exactly.

use burn::tensor::Device;
use burn::tensor::activation::{gelu_approximate, silu, softmax};
use burn::tensor::kind::Basic;

use super::*;
use crate::config::DecoderConfig;
use crate::rotary::Rotary;

const DTYPES: [(DType, f32); 3] = [(DType::F32, 1e-4), (DType::BF16, 3e-2), (DType::F16, 4e-3)];

/// Multiples of 1/8 between -1 and 1, without a period that would match the shapes.
fn numbers<const D: usize>(shape: [usize; D], seed: i64) -> Tensor<D> {
    let count = shape.iter().product::<usize>() as i64;
    let index = Tensor::<1, Int>::arange(0..count, &Device::flex()) + seed;
    ((index * 7919 % 1009 % 17) - 8).float().div_scalar(8.0).reshape(shape)
}

/// The same elements, as a view that begins after other elements.
fn as_view<const D: usize, K: Basic>(x: Tensor<D, K>) -> Tensor<D, K> {
    let rows = x.dims()[0];
    Tensor::cat(vec![x.clone().narrow(0, 0, 1), x], 0).narrow(0, 1, rows)
}

#[track_caller]
fn assert_close<const D: usize>(found: Tensor<D>, expected: Tensor<D>, dtype: DType, tolerance: f32) {
    assert_eq!((found.dtype(), found.dims()), (dtype, expected.dims()));
    let scale = expected.clone().abs().max().into_scalar::<f32>().max(1.0);
    let error = (found.cast(DType::F32) - expected).abs().max().into_scalar::<f32>();
    assert!(error <= tolerance * scale, "{dtype:?}: off by {error} of {scale}");
}

#[test]
fn products_of_few_rows() {
    for (dtype, tolerance) in DTYPES {
        // Below and above the threshold for shared work, with and without a remainder after the
        // lanes.
        for (outputs, inputs) in [(5, 3), (64, 32), (301, 577)] {
            for rows in [1, 2, 5, FEW] {
                let (x, weight) = (numbers([rows, inputs], 1), numbers([outputs, inputs], 2));
                let expected = x.clone().matmul(weight.clone().transpose());
                let (x, weight) = (x.cast(dtype), weight.cast(dtype));
                let found = product(&x, &weight).unwrap();
                for row in 0..rows {
                    let alone = product(&x.clone().narrow(0, row, 1), &weight).unwrap();
                    alone.into_data().assert_eq(&found.clone().narrow(0, row, 1).into_data(), true);
                }
                assert_close(found, expected, dtype, tolerance);
            }
        }
    }
    // Burn multiplies many rows of `f16`, and many rows with few outputs.
    let (many, few) = (numbers([FEW + 1, 4], 1), numbers([FEW, 4], 1));
    assert!(product(&many.clone().cast(DType::F16), &many.clone().cast(DType::F16)).is_none());
    assert!(product(&many, &few).is_none());
    assert!(product(&numbers([1, 4], 1).cast(DType::F64), &numbers([3, 4], 1).cast(DType::F64)).is_none());
}

/// On a processor with the instructions; others leave such products to Burn.
#[test]
#[cfg(target_arch = "x86_64")]
fn products_of_many_rows() {
    for (dtype, is_supported) in
        [(DType::F32, pulp::x86::V4::is_available()), (DType::BF16, is_x86_feature_detected!("avx512bf16"))]
    {
        // Whole tiles, panels and words, and incomplete ones. The last panel has one to four vectors.
        for (outputs, inputs) in [(17, 1), (17, 3), (48, 64), (301, 577)] {
            for rows in [FEW + 1, 32, 64, 77, 111] {
                // Views: all rows but the first, and columns.
                let view = |x: Tensor<2>| x.narrow(0, 1, rows);
                let (x, weight) = (numbers([rows + 1, inputs], 1), numbers([outputs, inputs], 2));
                // Sums in `f32` hold such numbers exactly.
                let expected = view(x.clone()).matmul(weight.clone().transpose());
                let expected = expected.cast(dtype).cast(DType::F32);
                let found = product(&view(x.cast(dtype)), &weight.cast(dtype));
                assert_eq!(found.is_some(), is_supported);
                if let Some(found) = found {
                    assert_close(found, expected, dtype, 0.0);
                }

                let (a, b) = (numbers([2, 3, outputs, inputs], 3), numbers([2, 3, inputs, rows], 4));
                let expected = a.clone().matmul(b.clone()).cast(dtype).cast(DType::F32);
                if let Some(found) = product_of_heads(&a.cast(dtype), &b.cast(dtype).swap_dims(2, 3)) {
                    assert_close(found, expected, dtype, 0.0);
                }
            }
        }
    }
}

#[test]
fn norms_and_gates_equal_those_of_burn() {
    for (dtype, tolerance) in DTYPES {
        let (x, weight) = (numbers([3, 2, 77], 3), numbers([77], 4));
        let rms = (x.clone().square().mean_dim(2) + 0.01).sqrt();
        for plus_one in [false, true] {
            let expected = x.clone() / rms.clone() * (weight.clone() + f32::from(plus_one)).unsqueeze();
            let (x, weight) = (x.clone().cast(dtype), weight.clone().cast(dtype));
            assert_close(rms_norm(&x, &weight, 0.01, plus_one).unwrap(), expected, dtype, tolerance);
        }

        let up = numbers([3, 2, 77], 5);
        for (activation, expected) in
            [(Activation::Silu, silu(x.clone())), (Activation::GeluTanh, gelu_approximate(x.clone()))]
        {
            let found = gated(activation, &x.clone().cast(dtype), &up.clone().cast(dtype)).unwrap();
            assert_close(found, expected * up.clone(), dtype, tolerance);
        }
    }
}

#[test]
fn rotated_heads_equal_those_of_burn() {
    let tables = Rotary::new(&DecoderConfig::new(8, 60, 8, 1, 6), &Device::flex());
    for (batch, heads, length) in [(1, 3, 5), (2, 4, 900)] {
        let positions = Tensor::<1, Int>::arange(0..(batch * length) as i64, &Device::flex()) % 50;
        let positions = positions.reshape([batch, length]);
        let shared = positions.clone().narrow(0, 0, 1);
        for positions in [positions, shared] {
            for (dtype, tolerance) in DTYPES {
                let x = numbers([batch, length, heads, 10], 3).swap_dims(1, 2);
                let expected = tables.at(positions.clone(), DType::F32).full.apply_by_operations(x.clone());
                let rotations = tables.at(positions.clone(), dtype);
                let found = rotate_heads(&x.cast(dtype), &rotations.full).unwrap();
                assert_close(found, expected, dtype, tolerance);
            }
        }
    }
}

#[test]
fn masked_softmax_equals_the_softmax_of_visible_positions() {
    // Few rows, and enough rows for shared work; one mask for all rows of the batch, and one for
    // each.
    for ([batch, heads, length, seen], masks) in [([2, 3, 4, 9], 1), ([2, 2, 5, 40], 2), ([2, 2, 150, 77], 2)]
    {
        let indices = Tensor::<1, Int>::arange(0..(masks * length * seen) as i64, &Device::flex());
        let hidden = (indices * 7919 % 1009 % 3).equal_elem(0).reshape([masks, 1, length, seen]);
        // A row without visible positions.
        let nothing = Tensor::<4, Bool>::full([1, 1, 1, seen], true, &Device::flex());
        let hidden = hidden.slice_assign([0..1, 0..1, 2..3, 0..seen], nothing);
        let scores = numbers([batch, heads, length, seen], 11) * 9.0;
        let finite = scores.clone().mask_fill(hidden.clone().expand(scores.dims()), -1e30);
        let expected = softmax(finite, 3);
        for (dtype, tolerance) in DTYPES {
            let found = masked_softmax(as_view(scores.clone().cast(dtype)), &as_view(hidden.clone()));
            assert_close(found, expected.clone(), dtype, tolerance);
        }
    }
}

#[test]
fn attention_over_a_padded_cache() {
    let device = Device::flex();
    let (batch, kv_heads, group, width) = (2, 2, 3, 10);
    let tables = Rotary::new(&DecoderConfig::new(8, 60, 8, 1, 6), &device);
    // Few slots, and enough slots for shared work; with a rotation and all earlier slots visible,
    // and without.
    for (capacity, scale, rotates, window) in
        [(9, 0.3, true, None), (700, 0.2, true, None), (9, 0.4, false, Some(4)), (9, 0.4, true, Some(1))]
    {
        let (slot, padding) = (capacity as i64 - 2, [0i64, 3]);
        let at = Tensor::<1, Int>::from_ints([slot], &device);
        let hidden: Tensor<4, Bool> = {
            let slots = Tensor::<1, Int>::arange(0..capacity as i64, &device)
                .reshape([1, 1, 1, capacity])
                .expand([batch, 1, 1, capacity]);
            let padding = Tensor::<1, Int>::from_ints(padding, &device).reshape([batch, 1, 1, 1]);
            let first = window.map_or(0, |window| slot + 1 - window);
            let outside = slots.clone().greater_elem(slot).bool_or(slots.clone().lower_elem(first));
            outside.bool_or(slots.lower(padding.expand([batch, 1, 1, capacity])))
        };
        let positions =
            Tensor::<1, Int>::from_ints(padding, &device).neg().add_scalar(slot).reshape([batch, 1]);
        for (dtype, tolerance) in DTYPES {
            let q = numbers([batch, 1, kv_heads * group * width], 6);
            let [k, v] = [7, 8].map(|seed| numbers([batch, 1, kv_heads * width], seed));
            let [keys, values] = [9, 10].map(|seed| numbers([batch, kv_heads, capacity, width], seed));

            let rotations = tables.at(positions.clone(), DType::F32);
            let rotate = |x: Tensor<4>| if rotates { rotations.full.apply_by_operations(x) } else { x };
            let heads = |x: Tensor<3>, heads| x.reshape([batch, 1, heads, width]).swap_dims(1, 2);
            let row = [0..batch, 0..kv_heads, slot as usize..slot as usize + 1, 0..width];
            let keys_after = keys.clone().slice_assign(row.clone(), rotate(heads(k.clone(), kv_heads)));
            let values_after = values.clone().slice_assign(row, heads(v.clone(), kv_heads));
            let scores = rotate(heads(q.clone(), kv_heads * group))
                .reshape([batch, kv_heads, group, width])
                .matmul(keys_after.clone().swap_dims(2, 3))
                .mul_scalar(scale)
                .mask_fill(hidden.clone().expand([batch, kv_heads, group, capacity]), f32::NEG_INFINITY);
            let expected = softmax(scores, 3).matmul(values_after.clone()).reshape(q.dims());

            let rotations = tables.at(positions.clone(), dtype);
            let rotation = rotates.then_some(&rotations.full);
            let qkv = [q, k, v].map(|x| x.cast(dtype));
            let [mut keys, mut values] = [keys, values].map(|cache| as_view(cache.cast(dtype)));
            let (lengths, padding) = (at.clone().expand([batch]), Tensor::from_ints(padding, &device));
            let window = window.map(|window| window as usize);
            let cache = [&mut keys, &mut values];
            let found = attend(qkv.each_ref(), scale, window, rotation, &lengths, &padding, cache);
            assert_close(found, expected, dtype, tolerance);
            assert_close(keys, keys_after, dtype, tolerance);
            assert_close(values, values_after, dtype, tolerance);
        }
    }
}

#[test]
fn every_half_is_widened_to_its_value() {
    for bits in 0..=u16::MAX {
        let half = f16::from_bits(bits);
        let found = half.widen();
        assert!(
            found.to_bits() == half.to_f32().to_bits() || half.is_nan() && found.is_nan(),
            "{bits:#x}: {found}"
        );
    }
}
