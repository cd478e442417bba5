//! What a graph refuses, before anything is launched, and what it is like afterwards.

use std::ops::ControlFlow;

use burn::tensor::{DType, Device, Int, Tensor};
use burn_dfa::generation::{CausalLm, DecodeGraph, GenerationConfig, Request};
use burn_dfa::{Constraint, Error, Limits, TokenId, TokenTable, Vocabulary};

use crate::alone;
use crate::common::devices;
use crate::common::embedded::Embedded;

#[test]
fn what_does_not_fit_is_refused_and_the_graph_goes_on() {
    let _turn = alone();
    for (name, device) in devices::all() {
        let embedded = Embedded::load(&device);
        let (model, vocabulary) = (embedded.model(), &embedded.vocabulary);
        let table = embedded.regex("[0-9]{4}-[0-9]{2}");
        let good = embedded.requests(&[Some(&table), None], 20, 0);
        let record =
            |capacity| DecodeGraph::record(model, vocabulary, &good, &GenerationConfig::new(), capacity);
        assert!(record(4).unwrap_err().is_input());
        assert!(record(257).unwrap_err().is_input());

        let mut graph = record(64).unwrap();
        let mut refused = |requests: &[Request]| {
            let error = graph.generate(requests, |_| panic!("nothing is generated")).unwrap_err();
            let outputs = graph.generate(&good, |_| ControlFlow::Continue(())).unwrap();
            assert!(table.accepts(&outputs[0].tokens), "{name}: after {error}");
            error
        };
        let with = |change: &dyn Fn(&mut Request)| {
            let mut requests = good.clone();
            change(&mut requests[0]);
            requests
        };
        assert!(refused(&good[..1]).is_input(), "another number of rows");
        assert!(refused(&[]).is_input());
        assert!(refused(&with(&|request| request.prompt.clear())).is_input());
        assert!(refused(&with(&|request| request.prompt.push(TokenId(5000)))).is_input());
        assert!(refused(&with(&|request| request.max_new_tokens = 0)).is_input());
        let error: Error = refused(&with(&|request| request.prompt = vec![TokenId(5); 45]));
        assert!(error.is_input() && error.to_string().contains("64 slots"), "{error}");
        let error = refused(&with(&|request| request.max_new_tokens = 7));
        assert_eq!(error.tokens_needed(), Some(8));

        let bytes = (0..=255u8).map(|byte| Some(vec![byte])).chain([None]);
        let other = Vocabulary::from_bytes(bytes).unwrap().with_eos([TokenId(256)]).unwrap();
        let other =
            TokenTable::compile(&Constraint::regex("a").unwrap(), &other, &Limits::default()).unwrap();
        let mut requests = good.clone();
        requests[0].table = Some(&other);
        assert!(refused(&requests).is_incompatible_vocabulary());
    }
}

/// A model that makes a tensor out of host data in every step.
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

#[test]
fn a_step_that_cannot_be_recorded_is_an_error_where_others_can() {
    let _turn = alone();
    let vocabulary = Vocabulary::from_bytes([Some(b"a".to_vec()), Some(b"b".to_vec()), None]).unwrap();
    let vocabulary = vocabulary.with_eos([TokenId(2)]).unwrap();
    for (name, device) in devices::all() {
        let model = FromTheHost(device);
        let requests = [Request::new(vec![TokenId(2)], 4)];
        let graph = DecodeGraph::record(&model, &vocabulary, &requests, &GenerationConfig::new(), 8);
        if name == "flex" {
            let outputs = graph.unwrap().generate(&requests, |_| ControlFlow::Continue(())).unwrap();
            assert_eq!(outputs[0].tokens, [TokenId(0), TokenId(2)]);
        } else {
            let error = graph.unwrap_err();
            assert!(error.is_model() && error.to_string().contains("recorded"), "{name}: {error}");
        }
    }
}
