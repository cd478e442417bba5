//! Top-k and top-p against a sorted reference on the host, on every device of this build.

use crate::common::{devices, ints};
use burn::tensor::{DType, Device, Tensor, TensorData};
use burn_dfa::ErrorKind;
use burn_dfa::processor::{InitContext, LogitsProcessor, MinP, StepContext, Temperature, TopK, TopP};
use burn_dfa_testing::skip::skipped;
use half::f16;
use proptest::prelude::*;
use rand::{Rng, SeedableRng, rngs::StdRng};

/// The bits of the processed `rows`, as f32.
fn bits<P: LogitsProcessor>(
    processor: &P,
    rows: &[Vec<f32>],
    dtype: DType,
    device: &Device,
) -> Vec<Vec<u32>> {
    let (batch, vocab_size) = (rows.len(), rows[0].len());
    let data = TensorData::new(rows.concat(), [batch, vocab_size]).convert_dtype(dtype);
    let logits = Tensor::<2>::from_data(data, (device, dtype));
    bits_of(processor, logits, device)
}

fn bits_of<P: LogitsProcessor>(processor: &P, logits: Tensor<2>, device: &Device) -> Vec<Vec<u32>> {
    let ([batch, vocab_size], dtype) = (logits.dims(), logits.dtype());
    let init = InitContext {
        prompt: ints(vec![0; batch], device).reshape([batch, 1]),
        padding: ints(vec![0; batch], device),
        vocab_size,
    };
    let context =
        StepContext { tokens: ints(vec![vocab_size as i32; batch], device), step: ints(vec![0], device) };
    let (kept, _) = processor.process(processor.init(&init), logits, &context);
    assert_eq!((kept.dims(), kept.dtype()), ([batch, vocab_size], dtype), "shape and dtype are kept");
    let values = kept.into_data().convert_dtype(DType::F32).try_to_vec::<f32>().unwrap();
    values.chunks(vocab_size).map(|row| row.iter().map(|x| x.to_bits()).collect()).collect()
}

/// NaN counts as +∞.
fn rank(x: f32) -> f32 {
    if x.is_nan() { f32::INFINITY } else { x }
}

fn descending(row: &[f32]) -> Vec<f32> {
    let mut sorted: Vec<f32> = row.iter().map(|&x| rank(x)).collect();
    sorted.sort_by(|a, b| b.partial_cmp(a).unwrap());
    sorted
}

/// The row with everything below `least` masked.
fn kept_from(row: &[f32], least: f32) -> Vec<u32> {
    let keep = |&x: &f32| if rank(x) < least { f32::NEG_INFINITY } else { x };
    row.iter().map(|x| keep(x).to_bits()).collect()
}

fn top_k(row: &[f32], k: usize) -> f32 {
    descending(row)[k.min(row.len()) - 1]
}

/// The least logit of the nucleus of probability `p`, from sums in f64.
fn top_p(row: &[f32], p: f64) -> f32 {
    let sorted = descending(row);
    let weigh = |x: f32| if x == sorted[0] { 1.0 } else { (f64::from(x) - f64::from(sorted[0])).exp() };
    let total: f64 = sorted.iter().map(|&x| weigh(x)).sum();
    let mut mass = 0.0;
    let reaches = |&&x: &&f32| {
        mass += weigh(x);
        mass >= p * total
    };
    sorted.iter().find(reaches).copied().unwrap_or(f32::NEG_INFINITY)
}

/// Checks the result of top-p: between the nested sets of the least and the greatest probability
/// within the tolerance of `p`.
fn assert_is_top_p(kept: &[u32], row: &[f32], p: f32, what: &str) {
    let (few, many) =
        (top_p(row, f64::from(p) - TopP::TOLERANCE), top_p(row, f64::from(p) + TopP::TOLERANCE));
    let masked = f32::NEG_INFINITY.to_bits();
    let least = row.iter().zip(kept).filter(|(x, bits)| **bits != masked || **x == f32::NEG_INFINITY);
    let least = least.map(|(&x, _)| rank(x)).filter(|&x| x > f32::NEG_INFINITY).fold(f32::INFINITY, f32::min);
    if row.iter().all(|&x| x == f32::NEG_INFINITY) {
        return assert!(kept.iter().all(|&bits| bits == masked), "{what}: an empty row stays empty");
    }
    assert!(many <= least && least <= few, "{what}: from {least} on, expected {few} to {many}");
    assert_eq!(kept, kept_from(row, least), "{what}: everything from the least on, bit for bit");
}

fn normal(rng: &mut StdRng, scale: f32) -> f32 {
    (0..12).map(|_| rng.random_range(-0.5f32..0.5)).sum::<f32>() * scale
}

/// Rows of every kind, `vocab_size` wide.
fn kinds(vocab_size: usize, seed: u64) -> Vec<(&'static str, Vec<f32>)> {
    let rng = &mut StdRng::seed_from_u64(seed);
    let mut row =
        |make: &mut dyn FnMut(&mut StdRng) -> f32| (0..vocab_size).map(|_| make(rng)).collect::<Vec<_>>();
    let mut only = vec![f32::NEG_INFINITY; vocab_size];
    only[vocab_size / 2] = -3.0;
    vec![
        ("normal", row(&mut |r| normal(r, 3.0))),
        ("peaked", row(&mut |r| normal(r, 12.0))),
        ("flat", row(&mut |r| normal(r, 1e-6))),
        ("ties", row(&mut |r| r.random_range(-4..4) as f32 * 0.5)),
        ("equal", vec![1.25; vocab_size]),
        ("zeros of both signs", row(&mut |r| if r.random() { 0.0 } else { -0.0 })),
        (
            "denormal",
            row(&mut |r| f32::from_bits(r.random_range(0..1000)) * if r.random() { 1.0 } else { -1.0 }),
        ),
        ("constrained", row(&mut |r| if r.random_ratio(1, 50) { normal(r, 3.0) } else { f32::NEG_INFINITY })),
        ("one token", only),
        ("no token", vec![f32::NEG_INFINITY; vocab_size]),
        ("huge", row(&mut |r| normal(r, 1e38))),
        ("any bits", row(&mut |r| f32::from_bits(r.random()))),
        ("infinite", row(&mut |r| if r.random_ratio(1, 9) { f32::INFINITY } else { normal(r, 3.0) })),
        ("NaN", row(&mut |r| if r.random_ratio(1, 9) { f32::NAN } else { normal(r, 3.0) })),
        ("ascending", (0..vocab_size).map(|i| i as f32 / vocab_size as f32 * 20.0).collect()),
        ("far below", (0..vocab_size).map(|i| if i == 0 { 20.0 } else { -1.0 }).collect()),
    ]
}

const VOCAB_SIZES: [usize; 8] = [1, 2, 3, 17, 255, 1000, 4099, 49_152];
const KS: [usize; 6] = [1, 2, 5, 40, 1000, usize::MAX];
const PS: [f32; 7] = [f32::MIN_POSITIVE, 0.1, 0.5, 0.9, 0.95, 0.999, 1.0 - f32::EPSILON / 2.0];

#[test]
fn rows_of_every_kind_match_the_sorted_reference() {
    for (name, device) in devices::all() {
        for vocab_size in VOCAB_SIZES {
            let (kinds, rows): (Vec<_>, Vec<_>) = kinds(vocab_size, 7).into_iter().unzip();
            for k in KS {
                let kept = bits(&TopK::new(k).unwrap(), &rows, DType::F32, &device);
                for ((kind, row), kept) in kinds.iter().zip(&rows).zip(&kept) {
                    let expected = kept_from(row, top_k(row, k));
                    assert!(*kept == expected, "{name}: top-k of {k} in {vocab_size}, {kind}");
                }
            }
            for p in PS {
                let kept = bits(&TopP::new(p).unwrap(), &rows, DType::F32, &device);
                for ((kind, row), kept) in kinds.iter().zip(&rows).zip(&kept) {
                    assert_is_top_p(kept, row, p, &format!("{name}: top-p of {p} in {vocab_size}, {kind}"));
                }
            }
            let all = bits(&TopP::new(1.0).unwrap(), &rows, DType::F32, &device);
            let same: Vec<Vec<u32>> =
                rows.iter().map(|row| row.iter().map(|x| x.to_bits()).collect()).collect();
            assert_eq!(all, same, "{name}: a p of 1 keeps everything");
        }
        eprintln!("filters match the reference on {name}");
    }
}

#[test]
fn every_device_keeps_the_same_tokens_at_every_batch_position() {
    let rng = &mut StdRng::seed_from_u64(5);
    for vocab_size in [50, 3000, 49_152] {
        let rows: Vec<Vec<f32>> = kinds(vocab_size, 11).into_iter().map(|(_, row)| row).collect();
        let p = rng.random_range(0.3..0.99);
        let expected = bits(&TopP::new(p).unwrap(), &rows, DType::F32, &Device::flex());
        let reversed: Vec<_> = rows.iter().rev().cloned().collect();
        for (name, device) in devices::all() {
            let mut kept = bits(&TopP::new(p).unwrap(), &reversed, DType::F32, &device);
            kept.reverse();
            assert!(kept == expected, "{name}: {vocab_size} wide, p of {p}");
        }
    }
}

#[test]
fn half_precision_is_filtered_by_its_exact_values() {
    for (name, device) in devices::all() {
        for dtype in [DType::F16, DType::BF16] {
            if !device.supports_dtype(dtype) {
                skipped(format_args!("{dtype:?} on {name}: the device does not support it"));
                continue;
            }
            let round = |x: f32| match dtype {
                DType::F16 => f16::from_f32(x).to_f32(),
                _ => half::bf16::from_f32(x).to_f32(),
            };
            let rounded = |row: Vec<f32>| row.into_iter().map(round).collect::<Vec<_>>();
            let (kinds, rows): (Vec<_>, Vec<_>) =
                kinds(5000, 3).into_iter().map(|(kind, row)| (kind, rounded(row))).unzip();
            for k in [1, 30, 1000, 5000] {
                let kept = bits(&TopK::new(k).unwrap(), &rows, dtype, &device);
                for ((kind, row), kept) in kinds.iter().zip(&rows).zip(&kept) {
                    assert!(
                        *kept == kept_from(row, top_k(row, k)),
                        "{name}: {dtype:?}, top-k of {k}, {kind}"
                    );
                }
            }
            for p in [0.1, 0.8, 0.999] {
                let kept = bits(&TopP::new(p).unwrap(), &rows, dtype, &device);
                for ((kind, row), kept) in kinds.iter().zip(&rows).zip(&kept) {
                    assert_is_top_p(kept, row, p, &format!("{name}: {dtype:?}, top-p of {p}, {kind}"));
                }
            }
        }
    }
}

#[test]
fn views_are_read_through_their_strides() {
    let rng = &mut StdRng::seed_from_u64(8);
    let (batch, vocab_size) = (6, 300);
    let rows: Vec<Vec<f32>> =
        (0..batch).map(|_| (0..vocab_size).map(|_| normal(rng, 3.0)).collect()).collect();
    let columns: Vec<f32> = (0..vocab_size).flat_map(|v| rows.iter().map(move |row| row[v])).collect();
    for (name, device) in devices::all() {
        let transposed =
            Tensor::<2>::from_data(TensorData::new(columns.clone(), [vocab_size, batch]), &device);
        let transposed = transposed.transpose();
        let stacked = Tensor::<2>::from_data(TensorData::new(rows.concat(), [batch, vocab_size]), &device);
        let slice = |logits: Tensor<2>| logits.slice([1..4, 10..260]);
        let part: Vec<Vec<f32>> = rows[1..4].iter().map(|row| row[10..260].to_vec()).collect();
        for (k, p) in [(7, 0.7), (100, 0.2)] {
            let (by_k, by_p) = (TopK::new(k).unwrap(), TopP::new(p).unwrap());
            for (logits, rows) in [
                (transposed.clone(), &rows),
                (slice(transposed.clone()), &part),
                (slice(stacked.clone()), &part),
            ] {
                let kept = bits_of(&by_k, logits.clone(), &device);
                let nucleus = bits_of(&by_p, logits.clone(), &device);
                for ((row, kept), nucleus) in rows.iter().zip(&kept).zip(&nucleus) {
                    assert_eq!(*kept, kept_from(row, top_k(row, k)), "{name}");
                    assert_is_top_p(nucleus, row, p, name);
                }
            }
        }
        let unchanged = stacked.into_data().try_to_vec::<f32>().unwrap();
        assert_eq!(unchanged, rows.concat(), "{name}: logits that someone else holds are left alone");
    }
}

#[test]
fn filters_combine_with_temperature_and_min_p() {
    let rng = &mut StdRng::seed_from_u64(21);
    for (name, device) in devices::all() {
        // Each width compiles another kernel.
        for _ in 0..if name == "flex" { 10 } else { 4 } {
            let vocab_size = rng.random_range(2..3000);
            let rows: Vec<Vec<f32>> =
                (0..3).map(|_| (0..vocab_size).map(|_| normal(rng, 4.0)).collect()).collect();
            let (k, p, min_p) =
                (rng.random_range(1..80), rng.random_range(0.05..0.99), rng.random_range(0.001..0.3));
            let chain = Temperature::new(0.7)
                .unwrap()
                .then(TopK::new(k).unwrap())
                .then(TopP::new(p).unwrap())
                .then(MinP::new(min_p).unwrap());
            for (row, kept) in rows.iter().zip(bits(&chain, &rows, DType::F32, &device)) {
                let warm: Vec<f32> = row.iter().map(|x| x * 0.7f32.recip()).collect();
                let by_k: Vec<f32> =
                    kept_from(&warm, top_k(&warm, k)).into_iter().map(f32::from_bits).collect();
                let by_min_p = descending(&warm)[0] + min_p.ln();
                let least = |p| top_p(&by_k, p).max(by_min_p);
                let p = f64::from(p);
                let exact = [p, p - TopP::TOLERANCE, p + TopP::TOLERANCE].map(|p| kept_from(&by_k, least(p)));
                assert!(exact.contains(&kept), "{name}: {vocab_size} wide, k {k}, p {p}, min-p {min_p}");
            }
        }
    }
}

/// Logits with many ties, and some NaN.
fn logit() -> impl Strategy<Value = f32> {
    prop_oneof![
        4 => (-6i32..6).prop_map(|x| x as f32 * 0.75),
        4 => -20f32..20.0,
        1 => any::<u32>().prop_map(f32::from_bits),
        1 => Just(f32::NEG_INFINITY),
        1 => (0u32..50).prop_map(f32::from_bits),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn small_rows_match_the_sorted_reference(
        row in prop::collection::vec(logit(), 1..40),
        k in 1usize..45,
        p in 0.001f32..1.0,
    ) {
        let device = Device::flex();
        let rows = [row];
        let kept = bits(&TopK::new(k).unwrap(), &rows, DType::F32, &device);
        prop_assert_eq!(&kept[0], &kept_from(&rows[0], top_k(&rows[0], k)));
        let nucleus = bits(&TopP::new(p).unwrap(), &rows, DType::F32, &device);
        assert_is_top_p(&nucleus[0], &rows[0], p, &format!("{rows:?}, p of {p}"));
    }
}

#[test]
fn probabilities_out_of_range_are_refused() {
    for p in [0.0, -0.1, 1.000_001, f32::NAN, f32::INFINITY] {
        assert_eq!(TopP::new(p).unwrap_err().kind(), ErrorKind::Input, "{p}");
    }
}
