//! Rows in which most of the vocabulary is legal text.

use burn::tensor::{DType, Device, Tensor, TensorData};
use burn_dfa::processor::{ConstraintProcessor, LogitsProcessor, StepContext};
use burn_dfa::tokens::RowPosition;
use burn_dfa::{
    CompiledConstraint, Constraint, DeviceConstraint, Limits, TensorOptions, TokenId, Vocabulary,
};

/// Rows keep the logits of legal tokens and lose all others, in every dtype, also past the
/// vocabulary.
#[test]
fn rows_with_much_legal_text_are_masked() {
    let letters = || ('a'..='h').flat_map(|a| ('a'..='h').map(move |b| format!("{a}{b}")));
    let words = letters().flat_map(|word| [word.clone(), format!("{word}-"), format!("{word}1")]);
    let mut words: Vec<Option<String>> = words.map(Some).collect();
    words.push(None);
    let end = words.len() as u32 - 1;
    let vocabulary = Vocabulary::from_bytes(words).unwrap().with_eos([TokenId(end)]).unwrap();
    let constraint = Constraint::regex("[a-g][a-h]*1?").unwrap();
    let compiled =
        CompiledConstraint::compile_byte_level(&constraint, &vocabulary, &Limits::default()).unwrap();
    let (device, vocab_size) = (Device::flex(), vocabulary.len() + 5);
    let on_device =
        DeviceConstraint::new(&[&compiled], vocab_size, &TensorOptions::default(), &device).unwrap();
    let processor = ConstraintProcessor::new(on_device, &[0]).unwrap();
    let values: Vec<f32> = (0..vocab_size).map(|id| id as f32 / 4.0 - 8.0).collect();
    for dtype in [DType::F32, DType::F16, DType::BF16] {
        let logits = TensorData::new(values.clone(), [1, vocab_size]);
        let logits = Tensor::<2>::from_data(logits, (&device, dtype));
        let given: Vec<f32> = logits.clone().into_data().convert::<f32>().try_to_vec().unwrap();
        let context = StepContext {
            tokens: Tensor::full([1], vocab_size as i32, (&device, DType::I32)),
            step: Tensor::zeros([1], (&device, DType::I32)),
        };
        let (masked, _) = processor.process(processor.start(), logits, &context);
        let masked: Vec<f32> = masked.into_data().convert::<f32>().try_to_vec().unwrap();
        let start = RowPosition::unlimited(compiled.start());
        let mut legal = 0;
        for (id, (&masked, &given)) in masked.iter().zip(&given).enumerate() {
            let is_legal =
                id < vocabulary.len() && compiled.can_end(&compiled.after(&start, TokenId(id as u32)));
            legal += usize::from(is_legal);
            assert_eq!(masked, if is_legal { given } else { f32::NEG_INFINITY }, "{dtype:?}, token {id}");
        }
        assert_eq!(legal, 7 * 8 * 2);
    }
}
