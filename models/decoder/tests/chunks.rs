//! A prompt that is read in several chunks has the same logits as its text read at once.

use burn::tensor::{Device, Int, Tensor, TensorData};
use burn_dfa::generation::speculative::TreeLm;
use burn_dfa::generation::{CausalLm, ContinuousLm};
use burn_dfa_decoder::{Decoder, DecoderConfig, Family};

const VOCABULARY: usize = 61;
/// Tokens of the text: two chunks of 256 and a part of a third one.
const LENGTH: usize = 600;
/// Padding of the second row, longer than a chunk.
const PADDING: usize = 300;

/// A layer that sees the whole text, and a layer with a window, which reaches into the chunk
/// before.
fn model(device: &Device) -> Decoder {
    device.seed(4);
    let config = DecoderConfig {
        num_key_value_heads: 2,
        sliding_window: Some(70),
        sliding_layers: vec![1],
        ..DecoderConfig::of(Family::Qwen3, VOCABULARY, 32, 48, 2, 4)
    };
    config.init(device)
}

fn text() -> Vec<i64> {
    (0..LENGTH as i64).map(|index| index * 7919 % 1009 % VOCABULARY as i64).collect()
}

fn tokens(rows: &[&[i64]], device: &Device) -> Tensor<2, Int> {
    Tensor::from_data(TensorData::new(rows.concat(), [rows.len(), rows[0].len()]), device)
}

/// Compares logits `[last, vocabulary]` with the logits after the last tokens of a text.
#[track_caller]
fn check(model: &Decoder, text: &[i64], logits: Tensor<2>) {
    let [last, vocab_size] = logits.dims();
    let whole = model.forward(tokens(&[text], &model.device()));
    let expected = whole.narrow(1, text.len() - last, last).reshape([last, vocab_size]);
    let off = (logits - expected).abs().max().into_scalar::<f32>();
    assert!(off < 1e-4, "off by {off}");
}

#[test]
fn a_batch_with_padding() {
    let device = Device::flex();
    let model = model(&device);
    let mut texts = [text(), text()[PADDING..].to_vec()];
    let padded = [&[7; PADDING], &texts[1][..]].concat();
    let padding = Tensor::from_ints([0, PADDING as i64], &device);
    let prompts = tokens(&[&texts[0], &padded], &device);
    let (logits, mut cache) = model.prefill(prompts, padding, LENGTH + 1);
    for (row, text) in texts.iter().enumerate() {
        check(&model, text, logits.clone().narrow(0, row, 1));
    }
    let logits = model.step(Tensor::from_ints([5, 9], &device), &mut cache);
    for (row, token) in [5, 9].into_iter().enumerate() {
        texts[row].push(token);
        check(&model, &texts[row], logits.clone().narrow(0, row, 1));
    }
}

#[test]
fn draft_tokens_across_two_chunks() {
    let device = Device::flex();
    let model = model(&device);
    let text = &text()[..515];
    let (prompt, drafts) = text.split_at(509);
    let [prompt, drafts] = [prompt, drafts].map(|row| tokens(&[row], &device));
    let (logits, _) = model.prefill_chain(prompt, Tensor::zeros([1], &device), drafts, LENGTH);
    assert_eq!(logits.dims(), [1, 7, VOCABULARY]);
    check(&model, text, logits.reshape([7, VOCABULARY]));
}

#[test]
fn a_row_goes_on_with_several_chunks() {
    let device = Device::flex();
    let model = model(&device);
    let text = text();
    let (first, rest) = text.split_at(10);
    let mut cache = model.rows_cache(2, LENGTH + 1);
    model.begin(1, tokens(&[first], &device), &mut cache);
    let logits = model.extend(1, first.len(), tokens(&[rest], &device), &mut cache);
    check(&model, &text, logits);
}
