//! Several clients of one server.

use burn_dfa::ErrorKind;
use std::thread;

use burn::backend::Flex;
use burn::backend::flex::FlexTensor;
use burn::backend::ir::HandleKind;
use burn::remote::RemoteHost;
use burn::server::RemoteServer;
use burn::tensor::{DType, Device, Tensor, TensorData};
use burn_dfa::generation::{GenerationConfig, Request};
use burn_dfa::{CompiledConstraint, Constraint, Limits, TokenId};

use crate::common::model::{RandomLm, run};
use crate::servers::{device, hosting, serve};
use burn_dfa_testing::words::vocabulary;

#[test]
fn two_clients_at_once_write_their_own_tokens() {
    let vocabulary = vocabulary();
    let compile = |pattern: &str| {
        CompiledConstraint::compile_byte_level(
            &Constraint::regex(pattern).unwrap(),
            &vocabulary,
            &Limits::default(),
        )
        .unwrap()
    };
    let constraints = ["[a-f]{9,20}", "[0-9,]{9,20}"].map(compile);
    let write = |client: usize, device: &Device| {
        let model = RandomLm::new(vocabulary.len(), client as u64, DType::F32, device);
        let config = GenerationConfig::new().with_temperature(0.8).with_sync_interval(2);
        let mut texts = Vec::new();
        for seed in 0..4 {
            let request =
                Request::new(vec![TokenId(1)], 24).with_constraint(&constraints[client]).with_seed(seed);
            texts.push(run(&model, &vocabulary, &[request], &config).unwrap()[0].text());
        }
        texts
    };
    let expected = [0, 1].map(|client| write(client, &Device::flex()));
    assert_ne!(expected[0], expected[1]);
    let found = thread::scope(|scope| {
        let clients = [0, 1].map(|client| scope.spawn(move || write(client, &device())));
        clients.map(|client| client.join().unwrap())
    });
    assert_eq!(found, expected);
}

/// Burn keeps one session for each name of a server; here each call opens its own.
#[test]
fn each_connection_is_a_session_of_its_own() {
    let (one, other) = (device(), device());
    assert_ne!(one, other);
    for device in [one, other] {
        let sum = Tensor::<1>::from_floats([1.0, 2.0], &device).sum().into_data();
        assert_eq!(sum.try_to_vec::<f32>().unwrap(), [3.0]);
    }
}

#[test]
fn a_device_that_the_server_lacks_is_refused() {
    let address = serve(RemoteServer::new([Device::flex()]));
    let error = burn_dfa::remote::connect(&format!("{address}/1")).unwrap_err();
    assert!(
        error.kind() == ErrorKind::Connection && error.to_string().contains("hosts only 1 device"),
        "{error}"
    );
}

/// Burn itself compares the version of its protocol when a session opens.
#[test]
fn a_server_that_hosts_another_version_of_the_operations_is_refused() {
    let server = RemoteServer::new([Device::flex()]);
    let address = serve(server.with_custom_op::<Flex, _>("burn-dfa::version", |handles, wanted, _| {
        wanted.inputs.iter().for_each(|input| drop(handles.get_handle(&input.id, &input.status)));
        let version = FlexTensor::from_data(TensorData::from([i32::MAX]));
        handles.register_handle(wanted.outputs[0].id, HandleKind::Int(version));
    }));
    let error = burn_dfa::remote::connect(&address).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Connection, "{error}");
    let error = error.to_string();
    assert!(error.contains(&address) && error.ends_with("build both from one release"), "{error}");
    assert!(error.contains(&format!("hosts version {} of the operations", i32::MAX)), "{error}");
}

/// For a device opened by Burn, it is unknown whether the server hosts the operations.
#[test]
fn a_device_opened_by_other_means_takes_the_built_in_operations() {
    let device = Device::remote_options(&RemoteHost::websocket(&hosting())).init().unwrap();
    let vocabulary = vocabulary();
    let constraint = CompiledConstraint::compile_token_level(
        &Constraint::regex("abc").unwrap(),
        &vocabulary,
        &Limits::default(),
    )
    .unwrap();
    let model = RandomLm::new(vocabulary.len(), 1, DType::F32, &device);
    let request = Request::new(vec![TokenId(1)], 8).with_constraint(&constraint);
    assert_eq!(run(&model, &vocabulary, &[request], &GenerationConfig::new()).unwrap()[0].text(), "abc");
}
