//! Compares small random checkpoints with the logits and tokens of Hugging Face transformers.
//!
//! `golden/export.py` wrote the folders next to it. The same checks run on every device: on Flex
//! always, on WGPU with the feature `wgpu` if there is a device for it.

use std::path::{Path, PathBuf};

use burn::tensor::{DType, Device, FloatDType, Int, Tensor, TensorData};
use burn_dfa::generation::speculative::TreeLm;
use burn_dfa::generation::{CausalLm, ContinuousLm};
use burn_dfa::processor::DraftTree;
use burn_dfa_decoder::Decoder;
use serde::Deserialize;

const MODELS: [&str; 11] = [
    "tied_mha",
    "untied_gqa",
    "llama3_rope",
    "linear_rope",
    "mistral",
    "qwen2",
    "qwen3",
    "qwen3_yarn",
    "smollm3",
    "smollm3_window",
    "gemma3",
];

/// Results of `export.py`.
#[derive(Deserialize)]
struct Expected {
    batch: Vec<Vec<i64>>,
    logits: Vec<Vec<Vec<f32>>>,
    prompts: Vec<Vec<i64>>,
    last: Vec<Vec<f32>>,
    greedy: Vec<Vec<i64>>,
}

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

fn expected(name: &str) -> Expected {
    let text = std::fs::read_to_string(folder(name).join("expected.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn ints(rows: &[Vec<i64>], device: &Device) -> Tensor<2, Int> {
    let shape = [rows.len(), rows[0].len()];
    Tensor::from_data(TensorData::new(rows.concat(), shape), device)
}

fn column(values: Vec<i64>, device: &Device) -> Tensor<1, Int> {
    let shape = [values.len()];
    Tensor::from_data(TensorData::new(values, shape), device)
}

/// Prompts padded on the left with a conspicuous token, and the padding of each.
fn left_pad(prompts: &[Vec<i64>]) -> (Vec<Vec<i64>>, Vec<i64>) {
    let length = prompts.iter().map(Vec::len).max().unwrap();
    prompts
        .iter()
        .map(|prompt| {
            let padding = length - prompt.len();
            let mut row = vec![7; padding];
            row.extend(prompt);
            (row, padding as i64)
        })
        .unzip()
}

#[track_caller]
fn assert_close<const D: usize>(what: &str, found: Tensor<D>, expected: &[f32], tolerance: f32) {
    let found: Vec<f32> = found.try_into_vec_as().unwrap();
    assert_eq!(found.len(), expected.len(), "{what}");
    let worst = found
        .iter()
        .zip(expected)
        .map(|(a, b)| if a.is_finite() { (a - b).abs() } else { f32::INFINITY })
        .fold(0.0, f32::max);
    assert!(worst <= tolerance, "{what}: off by {worst}");
}

/// Prefills `prompts` together and takes greedy steps.
fn greedy(model: &Decoder, prompts: &[Vec<i64>], steps: usize) -> (Tensor<2>, Vec<Vec<i64>>) {
    let device = model.device();
    let (rows, padding) = left_pad(prompts);
    let capacity = rows[0].len() + steps;
    let (first, mut cache) = model.prefill(ints(&rows, &device), column(padding, &device), capacity);
    let mut output = vec![Vec::new(); prompts.len()];
    let mut logits = first.clone();
    for step in 0..steps {
        let tokens = logits.argmax(1).reshape([prompts.len()]);
        let host: Vec<i64> = tokens.clone().try_into_vec_as().unwrap();
        for (row, token) in output.iter_mut().zip(host) {
            row.push(token);
        }
        if step + 1 == steps {
            break;
        }
        logits = model.step(tokens, &mut cache);
    }
    (first, output)
}

/// Checks everything that a device must compute correctly.
fn check(device: &Device, dtype: FloatDType, tolerance: f32, exact: bool) {
    for name in MODELS {
        let model = Decoder::load(folder(name), dtype, device).unwrap();
        let expected = expected(name);

        let logits = model.forward(ints(&expected.batch, device));
        let flat: Vec<f32> = expected.logits.iter().flatten().flatten().copied().collect();
        assert_close(&format!("{name}: forward"), logits, &flat, tolerance);

        // A prefill of four tokens, then the rest one at a time.
        let head: Vec<Vec<i64>> = expected.batch.iter().map(|row| row[..4].to_vec()).collect();
        let length = expected.batch[0].len();
        let (mut logits, mut cache) = model.prefill(ints(&head, device), column(vec![0; 2], device), length);
        for position in 3..length {
            let want: Vec<f32> = (0..2).flat_map(|row| expected.logits[row][position].clone()).collect();
            assert_close(&format!("{name}: position {position}"), logits, &want, tolerance);
            if position + 1 == length {
                break;
            }
            let next = expected.batch.iter().map(|row| row[position + 1]).collect();
            logits = model.step(column(next, device), &mut cache);
        }

        // Alone, in pairs and all together: the padding must not matter. A software Vulkan is slow.
        let sets = [vec![0, 1, 2], vec![0], vec![1], vec![2], vec![0, 1], vec![2, 1]];
        let few = if *device == Device::flex() { sets.len() } else { 2 };
        for rows in &sets[..few] {
            let pick = |all: &[Vec<i64>]| rows.iter().map(|row| all[*row].clone()).collect();
            let prompts: Vec<Vec<i64>> = pick(&expected.prompts);
            let want: Vec<Vec<i64>> = pick(&expected.greedy);
            let steps = if exact { want[0].len() } else { 4 };
            let (first, tokens) = greedy(&model, &prompts, steps);
            let last: Vec<f32> = rows.iter().flat_map(|row| expected.last[*row].clone()).collect();
            assert_close(&format!("{name}: prompts {rows:?}"), first, &last, tolerance);
            if exact {
                assert_eq!(tokens, want, "{name}: greedy {rows:?}");
            }
        }
        check_rows(name, &model, &expected, tolerance);
        check_trees(name, &model, &expected, tolerance);
    }
}

/// Rows that begin at different times, in chunks, and with a prefix of another row.
fn check_rows(name: &str, model: &Decoder, expected: &Expected, tolerance: f32) {
    let (device, texts) = (model.device(), &expected.batch);
    let length = texts[0].len();
    let mut cache = model.rows_cache(3, length + 2);
    let begin = |row: usize, count: usize, cache: &mut _| {
        model.begin(row, ints(&[texts[row][..count].to_vec()], &device), cache)
    };
    // Row 0, one position longer than a window, is four positions ahead of row 1; row 2 is idle.
    let first = begin(0, 6, &mut cache);
    assert_close(&format!("{name}: row 0"), first, &expected.logits[0][5], tolerance);
    let second = begin(1, 2, &mut cache);
    assert_close(&format!("{name}: row 1"), second, &expected.logits[1][1], tolerance);
    for (ahead, behind) in (6..length).zip(2..) {
        let fed = column(vec![texts[0][ahead], texts[1][behind], 7], &device);
        let logits = model.step_rows(fed, &mut cache);
        let vocabulary = logits.dims()[1];
        for (row, position) in [(0, ahead), (1, behind)] {
            let found = logits.clone().slice([row..row + 1, 0..vocabulary]);
            let what = format!("{name}: row {row}, position {position}");
            assert_close(&what, found, &expected.logits[row][position], tolerance);
        }
    }
    // Row 2 continues with seven tokens of row 0, in two chunks.
    model.copy_prefix(0, 2, 7, &mut cache);
    for at in [7, 8] {
        let rest = ints(&[texts[0][at..at + 1].to_vec()], &device);
        let logits = model.extend(2, at, rest, &mut cache);
        assert_close(&format!("{name}: piece at {at}"), logits, &expected.logits[0][at], tolerance);
    }
    // Two rows begin together; the shorter one is padded.
    let both = [(0, 3), (2, 8)].map(|(row, count)| (row, ints(&[texts[1][..count].to_vec()], &device)));
    for (logits, count) in model.begin_all(both.to_vec(), &mut cache).into_iter().zip([3, 8]) {
        let what = format!("{name}: {count} tokens, begun with others");
        assert_close(&what, logits, &expected.logits[1][count - 1], tolerance);
    }
}

/// Drafts whose good branch is the text, after prompts with different padding.
fn check_trees(name: &str, model: &Decoder, expected: &Expected, tolerance: f32) {
    let (device, texts) = (model.device(), &expected.batch);
    // Row 1 has read one token less.
    let prompts = [texts[0][..2].to_vec(), [&[7], &texts[1][..1]].concat()];
    let (_, cache) = model.prefill(ints(&prompts, &device), column(vec![0, 1], &device), 16);
    let mut cache = model.branch(cache);
    let begins = [2, 1];
    // Node 1 is a wrong guess, and the node after it is another. The good branch is longer than a
    // window.
    let tree = DraftTree::new(&[0, 1, 0, 3, 4, 5, 6, 7]).unwrap();
    let good = [0, 3, 4, 5, 6, 7, 8];
    let drafts: Vec<Vec<i64>> = (0..2)
        .map(|row| {
            let text = &texts[row][begins[row]..];
            [&[text[0], 9, 11], &text[1..7]].concat()
        })
        .collect();
    let logits = model.read(ints(&drafts, &device), &tree, &mut cache);
    let vocabulary = logits.dims()[2];
    let check = |logits: &Tensor<3>, row: usize, node: usize, position: usize| {
        let found = logits.clone().slice([row..row + 1, node..node + 1, 0..vocabulary]);
        let what = format!("{name}: row {row}, node {node}");
        assert_close(&what, found, &expected.logits[row][position], tolerance);
    };
    for (row, begin) in begins.into_iter().enumerate() {
        for (depth, node) in good.into_iter().enumerate() {
            check(&logits, row, node, begin + depth);
        }
    }
    // Keeps four nodes of the good branch, and continues with a chain.
    let path = ints(&vec![good.map(|node| node as i64).to_vec(); 2], &device);
    model.compact(path.cast(DType::I32), tree.len(), &mut cache);
    model.truncate(column(vec![6, 6], &device).cast(DType::I32), &mut cache);
    let begins = [6, 5];
    let drafts: Vec<Vec<i64>> = (0..2).map(|row| texts[row][begins[row]..begins[row] + 3].to_vec()).collect();
    let logits = model.read(ints(&drafts, &device), &DraftTree::chain(2), &mut cache);
    for (row, begin) in begins.into_iter().enumerate() {
        for node in 0..3 {
            check(&logits, row, node, begin + node);
        }
    }
}

#[test]
fn outputs_on_flex_in_f32_are_those_of_transformers() {
    check(&Device::flex(), FloatDType::F32, 1e-4, true);
}

#[test]
fn outputs_on_flex_in_f16_are_those_of_transformers() {
    check(&Device::flex(), FloatDType::F16, 0.15, false);
}

#[test]
fn outputs_on_flex_in_bf16_are_those_of_transformers() {
    check(&Device::flex(), FloatDType::BF16, 0.8, false);
}

#[test]
fn a_truncated_cache_decodes_again() {
    let device = Device::flex();
    let model = Decoder::load(folder("untied_gqa"), FloatDType::F32, &device).unwrap();
    let expected = expected("untied_gqa");
    let prompt = &expected.prompts[..1];
    let length = prompt[0].len();
    let (_, mut cache) = model.prefill(ints(prompt, &device), column(vec![0], &device), length + 4);
    let tokens = &expected.greedy[0][..3];
    let mut run = || -> Vec<f32> {
        let mut logits = None;
        for token in tokens {
            logits = Some(model.step(column(vec![*token], &device), &mut cache));
        }
        model.truncate(column(vec![length as i64], &device).cast(DType::I32), &mut cache);
        logits.unwrap().try_into_vec_as().unwrap()
    };
    let first = run();
    assert_eq!(run(), first);
}

#[test]
fn a_cache_that_was_truncated_into_the_padding_decodes_finite_logits() {
    let device = Device::flex();
    let model = Decoder::load(folder("tied_mha"), FloatDType::F32, &device).unwrap();
    let prompts = ints(&[vec![4, 5, 6], vec![7, 7, 6]], &device);
    let (_, mut cache) = model.prefill(prompts, column(vec![0, 2], &device), 4);
    model.truncate(column(vec![1, 1], &device).cast(DType::I32), &mut cache);
    let logits: Vec<f32> = model.step(column(vec![6, 6], &device), &mut cache).try_into_vec_as().unwrap();
    assert!(logits.iter().all(|logit| logit.is_finite()));
}

#[test]
fn steps_beyond_the_capacity_stay_in_the_cache() {
    let device = Device::flex();
    let model = Decoder::load(folder("tied_mha"), FloatDType::F32, &device).unwrap();
    let (_, mut cache) = model.prefill(ints(&[vec![4, 5]], &device), column(vec![0], &device), 3);
    assert_eq!((cache.capacity(), cache.rows()), (3, 1));
    for _ in 0..3 {
        model.step(column(vec![6], &device), &mut cache);
    }
}

/// WGSL on the API that WGPU finds; SPIR-V with the feature `vulkan`.
#[cfg(any(feature = "wgpu", feature = "vulkan"))]
#[test]
fn outputs_on_wgpu_in_f32_are_those_of_transformers() {
    use burn::tensor::DeviceKind;
    use burn_dfa_testing::skip::skipped;
    // Without an adapter the device panics at its first use.
    let found = std::panic::catch_unwind(|| {
        let device = Device::wgpu(DeviceKind::DefaultDevice);
        (Tensor::<1>::ones([1], &device) + 1.0).into_data();
        device
    });
    let is_software = |device: &Device| device.identity().is_some_and(|identity| identity.physical.is_none());
    match found {
        // CubeCL 0.11's SPIR-V for shared memory makes Mesa's compiler crash.
        Ok(device) if cfg!(feature = "vulkan") && is_software(&device) => {
            skipped("Mesa's software Vulkan does not take SPIR-V; leave the feature vulkan out")
        }
        Ok(device) => check(&device, FloatDType::F32, 1e-4, true),
        Err(_) if std::env::var_os("BURN_DFA_REQUIRE_VULKAN").is_some() => {
            panic!("BURN_DFA_REQUIRE_VULKAN is set and there is no Vulkan device")
        }
        Err(_) => skipped("there is no Vulkan device"),
    }
}
