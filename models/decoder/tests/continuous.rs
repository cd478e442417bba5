//! A row that begins while other rows continue has the same logits as its text alone.

use burn::tensor::{DType, Device, Int, Tensor, TensorData};
use burn_dfa::generation::{CausalLm, ContinuousLm, KvCache};
use burn_dfa_decoder::{Decoder, DecoderConfig};

const VOCABULARY: usize = 61;
const CAPACITY: usize = 12;

fn model(device: &Device) -> Decoder {
    device.seed(4);
    let config = DecoderConfig { num_key_value_heads: 2, ..DecoderConfig::new(VOCABULARY, 32, 48, 2, 4) };
    config.init(device)
}

fn prompt(tokens: &[i64], device: &Device) -> Tensor<2, Int> {
    Tensor::from_data(TensorData::new(tokens.to_vec(), [1, tokens.len()]), device)
}

/// The texts of three rows; `None` for an idle row.
struct Rows {
    model: Decoder,
    cache: KvCache,
    texts: [Option<Vec<i64>>; 3],
}

impl Rows {
    fn begin(&mut self, row: usize, tokens: &[i64]) {
        let logits = self.model.begin(row, prompt(tokens, &self.model.device()), &mut self.cache);
        self.texts[row] = Some(tokens.to_vec());
        self.check(row, logits);
    }

    fn step(&mut self, tokens: [i32; 3]) {
        let device = self.model.device();
        let fed = Tensor::from_data(TensorData::new(tokens.to_vec(), [3]), (&device, DType::I32));
        let logits = self.model.step_rows(fed, &mut self.cache);
        for (row, token) in tokens.into_iter().enumerate() {
            if let Some(text) = &mut self.texts[row] {
                text.push(i64::from(token));
                self.check(row, logits.clone().slice([row..row + 1, 0..VOCABULARY]));
            }
        }
    }

    fn check(&self, row: usize, logits: Tensor<2>) {
        let text = self.texts[row].as_deref().unwrap();
        let whole = self.model.forward(prompt(text, &self.model.device()));
        let last = whole.slice([0..1, text.len() - 1..text.len(), 0..VOCABULARY]);
        let off = (logits - last.reshape([1, VOCABULARY])).abs().max().into_scalar::<f32>();
        assert!(off < 1e-4, "row {row} after {text:?}: {off}");
    }
}

#[test]
fn rows_begin_and_begin_again_while_others_go_on() {
    let model = model(&Device::flex());
    let cache = model.rows_cache(3, CAPACITY);
    let mut rows = Rows { model, cache, texts: [None, None, None] };
    rows.begin(0, &[3, 1, 4]);
    rows.step([5, 0, 0]);
    rows.begin(2, &[9, 2]);
    rows.step([6, 0, 7]);
    rows.step([2, 0, 8]);
    // Another text replaces a longer one; row 1 is idle past its capacity.
    rows.begin(0, &[17]);
    for token in 20..28 {
        rows.step([token, 0, token % 5]);
    }
    rows.texts[2] = None;
    rows.begin(1, &[30, 31, 32, 33]);
    rows.step([40, 41, 0]);
    rows.texts[0] = None;
    rows.step([0, 42, 0]);
    let lengths = rows.cache.lengths().into_data().try_to_vec::<i32>().unwrap();
    assert_eq!(lengths, [11, 6, 11], "never past the last slot");
    assert_eq!((rows.cache.rows(), rows.cache.capacity()), (3, CAPACITY));
}

#[test]
fn a_row_goes_on_with_what_another_one_has_read() {
    let model = model(&Device::flex());
    let device = model.device();
    let mut cache = model.rows_cache(3, CAPACITY);
    let own = [3, 1, 4, 1, 5];
    model.begin(0, prompt(&own, &device), &mut cache);
    model.begin(1, prompt(&[7; 9], &device), &mut cache);
    let fed =
        |tokens: [i32; 3]| Tensor::from_data(TensorData::new(tokens.to_vec(), [3]), (&device, DType::I32));
    for token in [9, 2, 6] {
        model.step_rows(fed([token, 8, 0]), &mut cache);
    }
    // Copies six of the eight tokens of row 0, which is idle since; the other rows continue
    // unchanged.
    let mut rows = Rows { model, cache, texts: [Some(vec![3, 1, 4, 1, 5, 9, 2, 6]), None, None] };
    let rest = [11, 12, 13];
    for to in [2, 1, 0] {
        let mut before = rows.cache.clone();
        let expected = rows.model.extend(0, 6, prompt(&rest, &device), &mut before);
        rows.model.copy_prefix(0, to, 6, &mut rows.cache);
        let lengths = rows.cache.lengths().into_data().try_to_vec::<i32>().unwrap();
        assert_eq!(lengths[to], 6);
        let logits = rows.model.extend(to, 6, prompt(&rest, &device), &mut rows.cache);
        assert_eq!(logits.to_data(), expected.into_data(), "to row {to}");
        rows.texts[to] = Some([&[3, 1, 4, 1, 5, 9][..], &rest].concat());
        rows.check(to, logits);
    }
    rows.step([20, 21, 22]);
}
