//! Clients that send invalid operations: the server refuses them, and the session continues.

use burn::backend::ir::{CustomOpIr, ScalarIr, TensorIr};
use burn::backend::ops::{FloatTensorOps, IntTensorOps};
use burn::backend::{DispatchDevice, Remote};
use burn::remote::CustomOpClient;
use burn::tensor::{DType, Device, Shape, Tensor, TensorData};
use burn_dfa::{CompiledConstraint, Constraint, DeviceConstraint, Limits, TensorOptions};

use crate::common::ints;
use crate::servers::{device, wait};
use burn_dfa_testing::words::vocabulary;

/// A tensor: its type, its shape, and the value of all elements.
type Given<'a> = (DType, &'a [usize], i32);

/// The declared types and shapes of an operation's outputs.
type Declared<'a> = &'a [(DType, &'a [usize])];

/// An operation, its inputs, its declared outputs, and its scalars.
type Case<'a> = (&'static str, Vec<Given<'a>>, Declared<'a>, Vec<u64>);

const F32: DType = DType::F32;
const I32: DType = DType::I32;

/// Calls an operation with declared outputs; returns the values of the first output, or the error.
fn ask(
    device: &Device,
    operation: &'static str,
    inputs: &[Given],
    outputs: Declared,
    scalars: &[u64],
) -> Result<Vec<f32>, String> {
    let DispatchDevice::Remote(remote) = device.as_dispatch() else { unreachable!("a remote device") };
    let client = CustomOpClient::new(remote);
    let input = |&(dtype, shape, value): &Given| {
        let count = shape.iter().product();
        match dtype {
            DType::I32 => Remote::int_from_data(TensorData::new(vec![value; count], shape.to_vec()), remote),
            _ => Remote::float_from_data(TensorData::new(vec![value as f32; count], shape.to_vec()), remote),
        }
    };
    let inputs: Vec<TensorIr> = inputs.iter().map(|given| input(given).into_ir()).collect();
    let output = |&(dtype, shape): &(DType, &[usize])| {
        TensorIr::uninit(client.create_empty_handle(), Shape::from(shape.to_vec()), dtype)
    };
    let outputs: Vec<TensorIr> = outputs.iter().map(output).collect();
    let scalars = scalars.iter().map(|&scalar| ScalarIr::UInt(scalar)).collect();
    let mut outputs = client.register(CustomOpIr::with_scalars(operation, &inputs, &outputs, scalars));
    let data = wait(Remote::float_into_data(outputs.remove(0))).map_err(|error| error.to_string())?;
    Ok(data.convert::<f32>().try_to_vec().unwrap())
}

#[test]
fn invalid_operations_are_refused_and_the_session_continues() {
    let device = device();
    let (three, rows) = (&[3][..], &[3, 2][..]);
    let none: &[Given] = &[];
    let handle = (I32, &[1][..], 1);
    let step = [handle, (F32, &[3, 5], 0), (I32, rows, 0), (I32, three, 0)];
    let with = |at: usize, given: Given<'static>| {
        let mut step: Vec<Given> = vec![handle, (F32, &[3, 5], 0), (I32, &[3, 2], 0), (I32, &[3], 0)];
        step[at] = given;
        step
    };
    let one: Declared = &[(I32, &[1])];
    let both: Declared = &[(F32, &[3, 5]), (I32, &[3, 2])];
    let tree: Declared = &[(F32, &[3, 2, 5]), (I32, &[3, 2, 2])];
    let nodes = [handle, (F32, &[3, 2, 5][..], 0), (I32, rows, 0), (I32, rows, 0)];
    let keyed = |keys: Given<'static>| [&step[..], &[(I32, &[1], 0), keys]].concat();
    let cases: Vec<Case> = vec![
        ("burn-dfa::constraints", none.to_vec(), one, vec![0, 0, 0]),
        ("burn-dfa::constraints", vec![(F32, three, 0)], one, vec![0, 0, 0]),
        ("burn-dfa::constraints", vec![(I32, three, 0)], one, vec![0, 0, 0]),
        ("burn-dfa::constraints", vec![(I32, three, -1)], one, vec![0, 0, 0]),
        ("burn-dfa::constraints", vec![(I32, three, 4)], one, vec![0, 0, 0]),
        ("burn-dfa::constraints", vec![(I32, three, 0)], one, vec![]),
        ("burn-dfa::constraints", vec![(I32, three, 0)], one, vec![0, u64::MAX, u64::MAX]),
        ("burn-dfa::put", vec![handle, (I32, three, 0)], one, vec![1, 0]),
        ("burn-dfa::take_out", vec![handle], one, vec![1]),
        ("burn-dfa::mask", none.to_vec(), both, vec![]),
        ("burn-dfa::mask", with(1, (I32, &[3, 5], 0)), both, vec![]),
        ("burn-dfa::mask", with(1, (F32, &[2, 5], 0)), both, vec![]),
        ("burn-dfa::mask", with(1, (F32, &[15], 0)), both, vec![]),
        ("burn-dfa::mask", with(2, (I32, &[3], 0)), both, vec![]),
        ("burn-dfa::mask", with(2, (I32, &[3, 1], 0)), both, vec![]),
        ("burn-dfa::mask", with(3, (I32, &[2], 0)), both, vec![]),
        ("burn-dfa::mask", with(3, (F32, &[3], 0)), both, vec![]),
        ("burn-dfa::greedy", with(3, (I32, &[4], 0)), &[(I32, &[3]), (I32, &[3, 2])], vec![]),
        ("burn-dfa::mask_tree", nodes.to_vec(), tree, vec![0]),
        ("burn-dfa::mask_tree", nodes.to_vec(), tree, vec![0, 1]),
        ("burn-dfa::mask_tree", nodes.to_vec(), tree, vec![1, 0]),
        ("burn-dfa::mask_tree", nodes.to_vec(), tree, vec![0, u64::MAX]),
        ("burn-dfa::sampled", keyed((I32, &[2, 3], 0)), &[(I32, &[3])], vec![]),
        ("burn-dfa::sampled", keyed((I32, &[3, 2], 0)), both, vec![]),
        ("burn-dfa::top_k", vec![(F32, &[3, 5], 0), (F32, &[2], 1)], both, vec![]),
        ("burn-dfa::top_p", vec![(F32, &[3, 5], 0), (I32, &[3], 1)], both, vec![]),
    ];
    for (operation, inputs, outputs, scalars) in cases {
        let nothing = match outputs[0].0 {
            F32 => f32::NEG_INFINITY,
            _ => 0.0,
        };
        let given = ask(&device, operation, &inputs, outputs, &scalars).unwrap();
        assert!(given.iter().all(|&x| x == nothing), "{operation} of {inputs:?} and {scalars:?}: {given:?}");
        let sum = Tensor::<1>::from_floats([1.0, 2.0], &device).sum().try_into_data();
        assert_eq!(sum.unwrap().try_to_vec::<f32>().unwrap(), [3.0], "the session goes on after {operation}");
    }
}

/// A tensor with the value of a handle is no handle.
#[test]
fn forged_handles_lead_to_no_constraints() {
    let device = device();
    let step = [(I32, &[1][..], 1), (F32, &[3, 5], 0), (I32, &[3, 2], 2), (I32, &[3], 0)];
    let masked = ask(&device, "burn-dfa::mask", &step, &[(F32, &[3, 5]), (I32, &[3, 2])], &[]);
    assert_eq!(masked.unwrap(), [f32::NEG_INFINITY; 15]);
    let chosen = ask(&device, "burn-dfa::greedy", &step, &[(I32, &[3]), (I32, &[3, 2])], &[]);
    assert_eq!(chosen.unwrap(), [-1.0; 3]);
    let after = [step[0], step[2], step[3]];
    assert_eq!(ask(&device, "burn-dfa::after", &after, &[(I32, &[3, 2])], &[5]).unwrap(), [0.0; 6]);
}

#[test]
fn states_and_tokens_out_of_range_are_dead() {
    let (device, vocabulary) = (device(), vocabulary());
    let constraint = CompiledConstraint::compile_byte_level(
        &Constraint::regex("abc").unwrap(),
        &vocabulary,
        &Limits::default(),
    )
    .unwrap();
    let device_constraint =
        DeviceConstraint::new(&[&constraint], vocabulary.len(), &TensorOptions::default(), &device).unwrap();
    assert!(device_constraint.is_fused());
    let start = device_constraint.start(0).0 as i32;
    let states = ints(vec![start, start, start, i32::MIN, i32::MAX, -1], &device);
    let tokens = ints(vec![i32::from(b'a'), i32::MAX, i32::MIN, 0, 0, i32::from(b'a')], &device);
    let next = device_constraint.next(states, tokens).into_data().try_to_vec::<i32>().unwrap();
    assert!(next[0] > 2 && next[1..].iter().all(|&state| state == 0), "{next:?}");
}
