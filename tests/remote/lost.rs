//! Servers that are missing, fall silent, or disconnect: errors within a deadline, and recovery.

use burn_dfa::ErrorKind;
use std::net::TcpListener;
use std::slice;
use std::time::{Duration, Instant};

use burn::tensor::{DType, Device};
use burn_dfa::generation::{ContinuousBatch, GenerationConfig, Request, stream};
use burn_dfa::remote::{connect, connect_within};
use burn_dfa::{
    Capacity, CompiledConstraint, Constraint, Limits, Result, TensorOptions, TokenId, Vocabulary,
};

use crate::common::model::{RandomLm, run};
use crate::servers::{Line, hosting, plain, silent};
use burn_dfa_testing::words::vocabulary;

const TEXT: &str = "abcdefghijklmnopqrstuvwxyz";

fn constraint(vocabulary: &Vocabulary) -> CompiledConstraint {
    CompiledConstraint::compile_byte_level(&Constraint::regex(TEXT).unwrap(), vocabulary, &Limits::default())
        .unwrap()
}

fn model(vocabulary: &Vocabulary, device: &Device) -> RandomLm {
    RandomLm::new(vocabulary.len(), 1, DType::F32, device)
}

/// Generates an output, and calls `after` after each chunk.
fn each_chunk(
    device: &Device,
    vocabulary: &Vocabulary,
    request: &Request,
    config: &GenerationConfig,
    mut after: impl FnMut(),
) -> Result<()> {
    let model = model(vocabulary, device);
    for chunk in stream(&model, vocabulary, slice::from_ref(request), config)? {
        chunk?;
        after();
    }
    Ok(())
}

/// Simulates a killed server: its sockets are closed.
#[test]
fn a_server_lost_during_a_batch_is_an_error_and_the_request_can_be_sent_again() {
    let vocabulary = vocabulary();
    let constraint = constraint(&vocabulary);
    let request = Request::new(vec![TokenId(1)], 40).with_constraint(&constraint);
    let config = GenerationConfig::new().with_sync_interval(2);
    for server in [hosting(), plain()] {
        let line = Line::to(&server);
        let device = connect(&line.address).unwrap();
        let began = Instant::now();
        let error = each_chunk(&device, &vocabulary, &request, &config, || line.cut()).unwrap_err();
        assert!(
            error.kind() == ErrorKind::Connection && error.to_string().contains("connect again"),
            "{error}"
        );
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
        // The device stays lost, without a panic.
        let error =
            run(&model(&vocabulary, &device), &vocabulary, slice::from_ref(&request), &config).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Connection, "{error}");
        let device = connect(&line.address).unwrap();
        let outputs =
            run(&model(&vocabulary, &device), &vocabulary, slice::from_ref(&request), &config).unwrap();
        assert_eq!(outputs[0].text(), TEXT);
    }
}

#[test]
fn a_server_lost_during_a_continuous_batch_is_an_error() {
    let vocabulary = vocabulary();
    let constraint = constraint(&vocabulary);
    let capacity = Capacity { constraints: 2, states: 600, classes: 300, ..Capacity::new() };
    let config = GenerationConfig::new().with_tensors(TensorOptions { capacity, ..TensorOptions::default() });
    let line = Line::to(&hosting());
    let serve = |device: &Device, cut: bool| {
        let model = model(&vocabulary, device);
        let mut batch = ContinuousBatch::new(&model, &vocabulary, 2, 60, &config)?;
        batch.admit(1, &Request::new(vec![TokenId(1)], 40).with_constraint(&constraint))?;
        batch.step(4, |_| {})?;
        if cut {
            line.cut();
        }
        batch.step(24, |_| {})?;
        batch.release(1)
    };
    let error = serve(&connect(&line.address).unwrap(), true).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Connection, "{error}");
    assert_eq!(serve(&connect(&line.address).unwrap(), false).unwrap().text(), TEXT);
}

/// Simulates a vanished or hanging server: its sockets stay open.
#[test]
fn a_server_that_falls_silent_is_an_error_at_the_deadline() {
    let vocabulary = vocabulary();
    let constraint = constraint(&vocabulary);
    let request = Request::new(vec![TokenId(1)], 40).with_constraint(&constraint);
    let line = Line::to(&hosting());
    let device = connect_within(&line.address, Duration::from_secs(2)).unwrap();
    let mut began = Instant::now();
    let config = GenerationConfig::new().with_sync_interval(2);
    let lost = each_chunk(&device, &vocabulary, &request, &config, || {
        line.freeze();
        began = Instant::now();
    });
    let error = lost.unwrap_err();
    assert!(
        error.kind() == ErrorKind::Connection && error.to_string().contains("has not answered in 2s"),
        "{error}"
    );
    assert!((2..6).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
}

#[test]
fn a_server_that_never_answers_is_an_error_at_the_deadline() {
    let began = Instant::now();
    let error = connect_within(&silent(), Duration::from_secs(1)).unwrap_err();
    assert!(
        error.kind() == ErrorKind::Connection && error.to_string().contains("has not answered in 1s"),
        "{error}"
    );
    assert!(began.elapsed() < Duration::from_secs(5));
}

#[test]
fn a_missing_server_is_an_error_at_once() {
    // A port that was free a moment ago.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let began = Instant::now();
    let error = connect(&format!("ws://127.0.0.1:{port}")).unwrap_err();
    assert!(
        error.kind() == ErrorKind::Connection && error.to_string().contains("nothing listens there"),
        "{error}"
    );
    assert!(began.elapsed() < Duration::from_secs(5));
    assert_eq!(connect("ws://no-such-host.invalid:3000").unwrap_err().kind(), ErrorKind::Connection);
}
