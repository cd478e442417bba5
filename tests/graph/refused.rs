//! A graph refuses invalid requests before any launch, and still works afterwards.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use burn::tensor::{DType, Device, Int, Tensor};
use burn_dfa::ErrorKind;
use burn_dfa::constraint::Syntax;
use burn_dfa::generation::{CausalLm, DecodeGraph, GenerationConfig, Recordable, Request, generate};
use burn_dfa::{
    Capacity, CompiledConstraint, Constraint, Error, Kernels, Limits, TensorOptions, TokenId, Vocabulary,
};

use crate::alone;
use crate::common::devices;
use crate::common::embedded::Embedded;

#[test]
fn requests_that_do_not_fit_are_refused_and_the_graph_continues() {
    let _turn = alone();
    for (name, device) in devices::all() {
        let embedded = Embedded::load(&device);
        let (model, vocabulary) = (embedded.model(), &embedded.vocabulary);
        let constraint = embedded.regex("[0-9]{4}-[0-9]{2}");
        let good = embedded.requests(&[Some(&constraint), None], 20, 0);
        let record =
            |capacity| DecodeGraph::record(model, vocabulary, &good, &GenerationConfig::new(), capacity);
        assert_eq!(record(4).unwrap_err().kind(), ErrorKind::Input);
        assert_eq!(record(257).unwrap_err().kind(), ErrorKind::Input);

        let mut graph = record(64).unwrap();
        let mut refused = |requests: &[Request]| {
            let error = graph.stream(requests).unwrap_err();
            let outputs = graph.generate(&good).unwrap();
            assert!(constraint.accepts(&outputs[0].tokens), "{name}: after {error}");
            error
        };
        let with = |change: &dyn Fn(&mut Request)| {
            let mut requests = good.clone();
            change(&mut requests[0]);
            requests
        };
        assert_eq!(refused(&good[..1]).kind(), ErrorKind::Input, "another number of rows");
        assert_eq!(refused(&[]).kind(), ErrorKind::Input);
        assert_eq!(refused(&with(&|request| request.prompt.clear())).kind(), ErrorKind::Input);
        assert_eq!(refused(&with(&|request| request.prompt.push(TokenId(5000)))).kind(), ErrorKind::Input);
        assert_eq!(refused(&with(&|request| request.max_new_tokens = 0)).kind(), ErrorKind::Input);
        let error: Error = refused(&with(&|request| request.prompt = vec![TokenId(5); 45]));
        assert!(error.kind() == ErrorKind::Input && error.to_string().contains("64 slots"), "{error}");
        let error = refused(&with(&|request| request.max_new_tokens = 7));
        assert_eq!(error.tokens_needed(), Some(8));

        let bytes = (0..=255u8).map(|byte| Some(vec![byte])).chain([None]);
        let other = Vocabulary::from_bytes(bytes).unwrap().with_eos([TokenId(256)]).unwrap();
        let other = CompiledConstraint::compile(&Constraint::regex("a").unwrap(), &other, &Limits::default())
            .unwrap();
        let mut requests = good.clone();
        requests[0].constraint = Some(other.clone());
        assert_eq!(refused(&requests).kind(), ErrorKind::IncompatibleVocabulary);
    }
}

/// A model that makes a tensor of host data in every step.
struct FromTheHost(Device);

impl CausalLm for FromTheHost {
    type Cache = ();

    fn device(&self) -> Device {
        self.0.clone()
    }

    fn vocab_size(&self) -> usize {
        3
    }

    fn prefill(&self, tokens: Tensor<2, Int>, _: Tensor<1, Int>, _: usize) -> (Tensor<2>, ()) {
        let [batch, length] = tokens.dims();
        (self.step(tokens.slice([0..batch, length - 1..length]).reshape([batch]), &mut ()), ())
    }

    fn step(&self, tokens: Tensor<1, Int>, (): &mut ()) -> Tensor<2> {
        let bank = Tensor::<2>::from_data([[0.0, 1.0, 2.0], [1.0, 0.0, 2.0], [2.0, 1.0, 0.0]], &self.0);
        bank.select(0, tokens.cast(DType::I32))
    }
}

// SAFETY: The cache has no tensors, and the model keeps none.
#[allow(unsafe_code)]
unsafe impl Recordable for FromTheHost {}

#[test]
fn an_unrecordable_step_is_an_error_on_a_recording_device() {
    let _turn = alone();
    let vocabulary = Vocabulary::from_bytes([Some(b"a".to_vec()), Some(b"b".to_vec()), None]).unwrap();
    let vocabulary = vocabulary.with_eos([TokenId(2)]).unwrap();
    for (name, device) in devices::all() {
        let model = FromTheHost(device);
        let requests = [Request::new(vec![TokenId(2)], 4)];
        let graph = DecodeGraph::record(&model, &vocabulary, &requests, &GenerationConfig::new(), 8);
        if name == "cuda" {
            // CUDA records the upload, and replays it. This model uploads the same at every step.
            drop(graph.unwrap());
        } else if name == "flex" {
            let outputs = graph.unwrap().generate(&requests).unwrap();
            assert_eq!(outputs[0].tokens, [TokenId(0), TokenId(2)]);
        } else {
            let error = graph.unwrap_err();
            assert!(
                error.kind() == ErrorKind::Model && error.to_string().contains("recorded"),
                "{name}: {error}"
            );
        }
    }
}

/// A model that panics in one of its steps, and says how many it began.
struct Panicking {
    /// `[3, 3]`
    bank: Tensor<2>,
    begun: Cell<usize>,
    panics_in: usize,
}

impl CausalLm for Panicking {
    type Cache = ();

    fn device(&self) -> Device {
        self.bank.device()
    }

    fn vocab_size(&self) -> usize {
        3
    }

    fn prefill(&self, tokens: Tensor<2, Int>, _: Tensor<1, Int>, _: usize) -> (Tensor<2>, ()) {
        let [batch, length] = tokens.dims();
        let last = tokens.slice([0..batch, length - 1..length]).reshape([batch]);
        (self.bank.clone().select(0, last.cast(DType::I32)), ())
    }

    fn step(&self, tokens: Tensor<1, Int>, (): &mut ()) -> Tensor<2> {
        self.begun.set(self.begun.get() + 1);
        assert_ne!(self.begun.get(), self.panics_in, "as it was told");
        self.bank.clone().select(0, tokens.cast(DType::I32))
    }
}

// SAFETY: The cache has no tensors, and the model replaces none.
#[allow(unsafe_code)]
unsafe impl Recordable for Panicking {}

/// Three steps warm up, and the fourth one is recorded.
#[test]
fn a_panic_while_recording_goes_on_and_ends_the_recording() {
    let _turn = alone();
    let vocabulary = Vocabulary::from_bytes([Some(b"a".to_vec()), Some(b"b".to_vec()), None]).unwrap();
    let vocabulary = vocabulary.with_eos([TokenId(2)]).unwrap();
    let requests = [Request::new(vec![TokenId(2)], 4)];
    for (name, device) in devices::all() {
        for panics_in in [1, 4, usize::MAX] {
            let bank = Tensor::from_data([[0.0, 1.0, 2.0], [1.0, 0.0, 2.0], [2.0, 1.0, 0.0]], &device);
            device.sync().unwrap();
            let model = Panicking { bank, begun: Cell::new(0), panics_in };
            let record =
                || DecodeGraph::record(&model, &vocabulary, &requests, &GenerationConfig::new(), 8).unwrap();
            if panics_in == usize::MAX {
                let outputs = record().generate(&requests).unwrap();
                assert_eq!(outputs[0].tokens, [TokenId(0), TokenId(2)], "{name}");
            } else {
                let panic = catch_unwind(AssertUnwindSafe(|| drop(record()))).unwrap_err();
                let message = panic.downcast_ref::<String>().unwrap();
                assert!(message.contains("as it was told"), "{name}: {message}");
                assert_eq!(model.begun.get(), panics_in, "{name}: no step follows the panic");
            }
        }
    }
}

#[test]
fn a_recorded_step_refuses_a_constraint_with_a_longer_chain_of_returns() {
    let _turn = alone();
    let of = |embedded: &Embedded, text: &str| {
        embedded.called(&Constraint::grammar(Syntax::Gbnf, text).unwrap(), 4)
    };
    let run = |device: &Device, kernels: Kernels| {
        let embedded = Embedded::load(device);
        let nested = of(&embedded, "root ::= \"x\" | \"(\" root \")\"");
        let prefix = of(&embedded, "root ::= \"b\" | \"a\" root root root");
        let capacity = Capacity { states: 500, classes: 50, ..Capacity::new() };
        let tensors = TensorOptions { capacity, kernels, ..TensorOptions::default() };
        let config = GenerationConfig::new().with_tensors(tensors);
        let (model, vocabulary) = (embedded.model(), &embedded.vocabulary);
        let requests = |constraint| embedded.requests(&[Some(constraint)], 20, 0);
        let mut graph = DecodeGraph::record(model, vocabulary, &requests(&nested), &config, 64).unwrap();
        graph.generate(&requests(&prefix)).map(|outputs| {
            assert_eq!(outputs, generate(model, vocabulary, &requests(&prefix), &config).unwrap());
        })
    };
    // The CPU runs the step again, with the current constraints.
    run(&Device::flex(), Kernels::BuiltIn).unwrap();
    let device = Device::capture();
    let captured = device.capture_scope(|scope| {
        let error = run(&device, Kernels::Fused).unwrap_err();
        assert!(error.kind() == ErrorKind::Input && error.to_string().contains("reserve a stack"), "{error}");
        scope.complete([], [])
    });
    captured.unwrap();
}
