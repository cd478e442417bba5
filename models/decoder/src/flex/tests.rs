//! Each function against Burn's own operations, in `f32`, on numbers that every float type holds exactly.

use burn::tensor::Device;
use burn::tensor::activation::{silu, softmax};

use super::*;
use crate::config::DecoderConfig;
use crate::rope::RotaryTables;

const DTYPES: [(DType, f32); 2] = [(DType::F32, 1e-4), (DType::BF16, 3e-2)];

/// Multiples of 1/8 between -1 and 1 without a period that shapes could share.
fn numbers<const D: usize>(shape: [usize; D], seed: i64) -> Tensor<D> {
    let count = shape.iter().product::<usize>() as i64;
    let index = Tensor::<1, Int>::arange(0..count, &Device::flex()) + seed;
    ((index * 7919 % 1009 % 17) - 8).float().div_scalar(8.0).reshape(shape)
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
        // Below and above the work that is shared, with and without a rest of the lanes.
        for (outputs, inputs) in [(5, 3), (64, 32), (301, 577)] {
            for rows in [1, 2, 5, FEW] {
                let (x, weight) = (numbers([rows, inputs], 1), numbers([outputs, inputs], 2));
                let expected = x.clone().matmul(weight.clone().transpose());
                let found = product(&x.cast(dtype), &weight.cast(dtype)).unwrap();
                assert_close(found, expected, dtype, tolerance);
            }
        }
    }
    assert!(product(&numbers([FEW + 1, 4], 1), &numbers([3, 4], 1)).is_none());
    assert!(product(&numbers([1, 4], 1).cast(DType::F64), &numbers([3, 4], 1).cast(DType::F64)).is_none());
}

#[test]
fn norms_and_gates() {
    for (dtype, tolerance) in DTYPES {
        let (x, weight) = (numbers([3, 2, 77], 3), numbers([77], 4));
        let rms = (x.clone().square().mean_dim(2) + 0.01).sqrt();
        let expected = x.clone() / rms * weight.clone().unsqueeze();
        let found = rms_norm(&x.clone().cast(dtype), &weight.cast(dtype), 0.01).unwrap();
        assert_close(found, expected, dtype, tolerance);

        let up = numbers([3, 2, 77], 5);
        let found = gated(&x.clone().cast(dtype), &up.clone().cast(dtype)).unwrap();
        assert_close(found, silu(x) * up, dtype, tolerance);
    }
}

#[test]
fn attention_over_a_padded_cache() {
    let device = Device::flex();
    let (batch, kv_heads, group, width) = (2, 2, 3, 10);
    let tables = RotaryTables::new(&DecoderConfig::new(8, 60, 8, 1, 6), &device);
    // Few slots, and enough for the work to be shared.
    for capacity in [9, 700] {
        let (slot, padding) = (capacity as i64 - 2, [0i64, 3]);
        let at = Tensor::<1, Int>::from_ints([slot], &device);
        let hidden: Tensor<4, Bool> = {
            let slots = Tensor::<1, Int>::arange(0..capacity as i64, &device)
                .reshape([1, 1, 1, capacity])
                .expand([batch, 1, 1, capacity]);
            let padding = Tensor::<1, Int>::from_ints(padding, &device).reshape([batch, 1, 1, 1]);
            slots.clone().greater_elem(slot).bool_or(slots.lower(padding.expand([batch, 1, 1, capacity])))
        };
        let positions =
            Tensor::<1, Int>::from_ints(padding, &device).neg().add_scalar(slot).reshape([batch, 1]);
        for (dtype, tolerance) in DTYPES {
            let q = numbers([batch, 1, kv_heads * group * width], 6);
            let [k, v] = [7, 8].map(|seed| numbers([batch, 1, kv_heads * width], seed));
            let [keys, values] = [9, 10].map(|seed| numbers([batch, kv_heads, capacity, width], seed));

            let rotation = tables.at(positions.clone(), DType::F32);
            let heads = |x: Tensor<3>, heads| x.reshape([batch, 1, heads, width]).swap_dims(1, 2);
            let row = [0..batch, 0..kv_heads, slot as usize..slot as usize + 1, 0..width];
            let keys_after =
                keys.clone().slice_assign(row.clone(), rotation.apply(heads(k.clone(), kv_heads)));
            let values_after = values.clone().slice_assign(row, heads(v.clone(), kv_heads));
            let scores = rotation
                .apply(heads(q.clone(), kv_heads * group))
                .reshape([batch, kv_heads, group, width])
                .matmul(keys_after.clone().swap_dims(2, 3))
                .div_scalar((width as f32).sqrt())
                .mask_fill(hidden.clone().expand([batch, kv_heads, group, capacity]), f32::NEG_INFINITY);
            let expected = softmax(scores, 3).matmul(values_after.clone()).reshape(q.dims());

            let [mut keys, mut values] = [keys, values].map(|cache| cache.cast(dtype));
            let rotation = tables.at(positions.clone(), dtype);
            let [q, k, v] = [q, k, v].map(|x| x.cast(dtype));
            let found = attend([&q, &k, &v], &rotation, &at, &hidden, [&mut keys, &mut values]).unwrap();
            assert_close(found, expected, dtype, tolerance);
            assert_close(keys, keys_after, dtype, tolerance);
            assert_close(values, values_after, dtype, tolerance);
        }
    }
}
