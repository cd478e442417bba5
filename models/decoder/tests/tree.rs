//! Reading a tree gives the same logits as reading each of its paths as a separate text.

use burn::tensor::{DType, Device, Int, Tensor, TensorData};
use burn_dfa::generation::CausalLm;
use burn_dfa::generation::speculative::TreeLm;
use burn_dfa::processor::DraftTree;
use burn_dfa_decoder::{Decoder, DecoderConfig};

const VOCABULARY: i64 = 61;

fn model(device: &Device) -> Decoder {
    device.seed(4);
    let config =
        DecoderConfig { num_key_value_heads: 2, ..DecoderConfig::new(VOCABULARY as usize, 32, 48, 2, 4) };
    config.init(device)
}

fn tokens(rows: &[&[i64]], device: &Device) -> Tensor<2, Int> {
    let flat = rows.concat();
    Tensor::from_data(TensorData::new(flat, [rows.len(), rows[0].len()]), device)
}

fn row(values: &[i32], device: &Device) -> Tensor<1, Int> {
    Tensor::from_data(TensorData::new(values.to_vec(), [values.len()]), (device, DType::I32))
}

/// Checks the logits of every node of every row against the whole text read at once.
fn check(model: &Decoder, texts: &[Vec<i64>], drafts: &[&[i64]], tree: &DraftTree, logits: Tensor<3>) {
    let device = model.device();
    for (index, (text, drafts)) in texts.iter().zip(drafts).enumerate() {
        for node in 0..tree.len() {
            let mut whole = text.clone();
            whole.extend(tree.path(node).iter().map(|&node| drafts[node]));
            let length = whole.len();
            let vocab_size = VOCABULARY as usize;
            let expected = model.forward(tokens(&[&whole], &device));
            let expected = expected.slice([0..1, length - 1..length, 0..vocab_size]);
            let found = logits.clone().slice([index..index + 1, node..node + 1, 0..vocab_size]);
            let off = (found - expected).abs().max().into_scalar::<f32>();
            assert!(off < 1e-4, "row {index}, node {node}: {off}");
        }
    }
}

#[test]
fn nodes_see_their_own_path() {
    let device = Device::flex();
    let model = model(&device);
    // The second prompt has two tokens of padding.
    let prompts: [&[i64]; 2] = [&[3, 1, 4, 1, 5], &[0, 0, 9, 2, 6]];
    let mut texts = vec![prompts[0].to_vec(), prompts[1][2..].to_vec()];
    let (_, cache) = model.prefill(tokens(&prompts, &device), row(&[0, 2], &device), 24);
    let mut cache = model.branch(cache);

    let tree = DraftTree::new(&[0, 0, 2, 2, 3]).unwrap();
    let drafts: [&[i64]; 2] = [&[10, 11, 12, 13, 14, 15], &[20, 21, 22, 23, 24, 25]];
    let logits = model.read(tokens(&drafts, &device), &tree, &mut cache);
    check(&model, &texts, &drafts, &tree, logits);

    // Row 0 keeps nodes 0, 2, 3, 5; row 1 keeps 0 and 2.
    model.compact(tokens(&[&[0, 2, 3, 5], &[0, 2, 2, 2]], &device), tree.len(), &mut cache);
    model.truncate(row(&[9, 7], &device), &mut cache);
    texts[0].extend([10, 12, 13, 15]);
    texts[1].extend([20, 22]);

    let chain = DraftTree::chain(2);
    let drafts: [&[i64]; 2] = [&[30, 31, 32], &[40, 41, 42]];
    let logits = model.read(tokens(&drafts, &device), &chain, &mut cache);
    check(&model, &texts, &drafts, &chain, logits);
    model.truncate(row(&[10, 10], &device), &mut cache);
    texts[0].push(30);
    texts[1].extend([40, 41, 42]);

    let drafts: [&[i64]; 2] = [&[50], &[51]];
    let none = DraftTree::chain(0);
    let logits = model.read(tokens(&drafts, &device), &none, &mut cache);
    check(&model, &texts, &drafts, &none, logits);
    assert_eq!(cache.lengths().into_data().try_to_vec::<i32>().unwrap(), [11, 11]);
}
