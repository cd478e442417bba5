//! More rows than a grid has cubes in one dimension.

use burn::tensor::{DType, Device, Tensor, TensorData};
use burn_dfa::processor::{ConstraintProcessor, InitContext, LogitsProcessor, StepContext, TopK};
use burn_dfa::sampling::Greedy;
use burn_dfa::{
    CompiledConstraint, Constraint, DeviceConstraint, Limits, TensorOptions, TokenId, Vocabulary,
};

use crate::common::{devices, ints};

/// WebGPU allows 65,535 cubes in a dimension, and CUDA in the second and the third one. The second
/// kernel of a step and the filters have a cube for each row.
const ROWS: usize = 65_600;
/// The vocabulary, and one more logit.
const VOCAB_SIZE: usize = 4;

/// The results of a step.
#[derive(PartialEq)]
struct Results {
    /// The logits masked before the first token, in a copy.
    first: Vec<f32>,
    /// The greatest of these logits.
    tokens: Vec<i32>,
    states: Vec<i32>,
    /// The logits masked after these tokens, in place.
    second: Vec<f32>,
    filtered: Vec<f32>,
}

fn results(constraints: &[&CompiledConstraint], device: &Device) -> Results {
    let tensors = DeviceConstraint::new(constraints, VOCAB_SIZE, &TensorOptions::new(), device).unwrap();
    // Every other row has the other constraint.
    let rows: Vec<usize> = (0..ROWS).map(|row| row % constraints.len()).collect();
    let processor = ConstraintProcessor::new(tensors, &rows).unwrap();
    let values: Vec<f32> = (0..ROWS * VOCAB_SIZE).map(|at| ((at * 7_919) % 1_009) as f32).collect();
    let data = TensorData::new(values, [ROWS, VOCAB_SIZE]);
    let logits = || Tensor::<2>::from_data(data.clone(), (device, DType::F32));
    let floats = |tensor: Tensor<2>| tensor.into_data().try_to_vec::<f32>().unwrap();
    let other_handle = logits();
    let position = processor.start();
    let first = floats(processor.mask(&position, other_handle.clone()));
    drop(other_handle);
    let none =
        StepContext { tokens: ints(vec![VOCAB_SIZE as i32; ROWS], device), step: ints(vec![0], device) };
    let mut context = none.clone();
    processor.sample_step(&mut position.clone(), &mut context, logits(), &Greedy);
    let tokens = context.tokens.clone().into_data().try_to_vec::<i32>().unwrap();
    let (second, next) = processor.process(position, logits() + 0.0, &context);
    let states = next.states().into_data().try_to_vec::<i32>().unwrap();
    let top = TopK::new(2).unwrap();
    let init = InitContext {
        prompt: ints(vec![0; ROWS], device).reshape([ROWS, 1]),
        padding: ints(vec![0; ROWS], device),
        vocab_size: VOCAB_SIZE,
    };
    let (filtered, _) = top.process(top.init(&init), logits(), &none);
    Results { first, tokens, states, second: floats(second), filtered: floats(filtered) }
}

#[test]
fn more_rows_than_a_grid_has_match_the_host() {
    let vocabulary = Vocabulary::from_chars("ab.".chars()).unwrap().with_eos([TokenId(2)]).unwrap();
    let constraints = ["ab*", "(a|b)a"].map(|pattern| {
        let constraint = Constraint::regex(pattern).unwrap();
        CompiledConstraint::compile_byte_level(&constraint, &vocabulary, &Limits::default()).unwrap()
    });
    let constraints: Vec<&CompiledConstraint> = constraints.iter().collect();
    let expected = results(&constraints, &Device::flex());
    // Rows of the second grid differ from one another.
    let last = &expected.tokens[ROWS - 64..];
    assert!(last.contains(&0) && last.contains(&1), "{last:?}");
    for (name, device) in devices::all() {
        let found = results(&constraints, &device);
        // Without the message of `assert_eq!`, which would be all logits.
        assert!(found == expected, "{name}");
    }
}
