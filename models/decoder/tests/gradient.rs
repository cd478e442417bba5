//! Compares gradients of every parameter with finite differences (feature `autodiff`).
#![cfg(feature = "autodiff")]

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::{Device, Gradients, Int, Tensor};
use burn_dfa::generation::CausalLm;
use burn_dfa_decoder::{Decoder, DecoderConfig};

/// The sum of the logits weighted by arbitrary numbers.
fn loss(model: &Decoder) -> Tensor<1> {
    let device = model.device();
    let tokens = Tensor::<2, Int>::from_ints([[3, 1, 4, 1, 5], [9, 2, 6, 5, 3]], &device);
    let logits = model.forward(tokens);
    let shape = logits.dims();
    let weights = Tensor::<1, Int>::arange(0..shape.iter().product::<usize>() as i64, &device)
        .float()
        .mul_scalar(0.7)
        .sin()
        .reshape(shape);
    (logits.clone() * weights + logits.square()).sum()
}

fn value(model: &Decoder) -> f64 {
    f64::from(loss(model).into_scalar::<f32>())
}

/// One element of the gradient of each parameter.
struct Pick<'a>(&'a Gradients, Vec<f32>);

impl ModuleVisitor for Pick<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let gradient = param.val().grad(self.0).expect("every parameter has a gradient");
        let gradient: Vec<f32> = gradient.try_into_vec_as().unwrap();
        self.1.push(gradient[element(gradient.len())]);
    }
}

/// Adds `by` to one element of the parameter number `target`.
struct Nudge {
    target: usize,
    by: f32,
    seen: usize,
}

impl ModuleMapper for Nudge {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        self.seen += 1;
        if self.seen != self.target + 1 {
            return param;
        }
        param.map(|tensor| {
            let shape = tensor.dims();
            let size = shape.iter().product::<usize>();
            let index = Tensor::<1, Int>::arange(0..size as i64, &tensor.device());
            let one = index.equal_elem(element(size) as i64).float().reshape(shape);
            tensor + one * self.by
        })
    }
}

/// An element that the tokens above use, also in the embedding matrix (row 5 of 16).
fn element(size: usize) -> usize {
    size * 5 / 16 + 1
}

#[test]
fn gradients_are_those_of_finite_differences() {
    for tied in [true, false] {
        let device = Device::flex();
        device.seed(7);
        let config = DecoderConfig {
            num_key_value_heads: 1,
            tie_word_embeddings: tied,
            ..DecoderConfig::new(16, 16, 24, 2, 2)
        };
        // Larger weights than initial ones, so that every layer matters.
        let model = config.init(&device).map(&mut Scale);
        let train = model.clone().train();
        let gradients = loss(&train).backward();
        let mut found = Pick(&gradients, Vec::new());
        train.visit(&mut found);
        assert_eq!(found.1.len(), if tied { 20 } else { 21 });
        for (target, gradient) in found.1.into_iter().enumerate() {
            let at = |by| value(&model.clone().map(&mut Nudge { target, by, seen: 0 }));
            let difference = (at(0.01) - at(-0.01)) / 0.02;
            let error = (difference - f64::from(gradient)).abs();
            assert!(
                error < 0.01 * (1.0 + difference.abs()),
                "tied {tied}, parameter {target}: {gradient} where differences give {difference}"
            );
        }
        // Back to decoding, without a graph.
        let (logits, _) =
            train.valid().prefill(Tensor::from_ints([[3, 1]], &device), Tensor::from_ints([0], &device), 4);
        assert_eq!(logits.dims(), [1, 16]);
    }
}

struct Scale;

impl ModuleMapper for Scale {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        param.map(|tensor| if D == 2 { tensor * 8.0 } else { tensor })
    }
}
