//! The server: runs the fused operations of this crate for its clients, on Flex.
//!
//! ```no_run
//! use burn::server::{RemoteServer, WebSocketTransport};
//! use burn::tensor::Device;
//!
//! let server = burn_dfa::remote::server::with_operations(RemoteServer::new([Device::flex()]));
//! server.serve(WebSocketTransport::new(3000))?;
//! # Ok::<(), burn::server::ServeError>(())
//! ```
//!
//! The server refuses an operation if a tensor is missing or has the wrong type or shape, and if
//! the operation panics. A refused operation returns rows without a legal token and dead positions,
//! so the session continues, and the client reports an error for its tokens. The server logs the
//! reason.

mod handles;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use burn::backend::flex::FlexTensor;
use burn::backend::ir::{CustomOpIr, HandleContainer, HandleKind, ScalarIr, TensorError};
use burn::backend::{BackendTypes, ExecutionError, Flex};
use burn::server::RemoteServer;
use burn::tensor::{DType, Shape, TensorData};

use self::handles::{Handles, Refused};
use super::wire::{VERSION, operation};
use crate::kernel::filter::FilterOps;
use crate::kernel::step::{CpuStep, StepConstraints, StepSampler, ints, packed};
use crate::tensor::reads;

/// The tensors of a session.
type Tensors = HandleContainer<HandleKind<Flex>>;

/// The same server, which hosts the operations of this crate for clients of [`remote`](super).
///
/// The operations run on devices of Flex. A server of other devices hosts none, and its clients use
/// Burn's built-in operations.
///
/// The server checks every operation that a client sends. It refuses an invalid one and logs the
/// reason, and the client's rows end with an error.
pub fn with_operations(server: RemoteServer) -> RemoteServer {
    let all: [(&'static str, Operation); 11] = [
        (operation::VERSION, |_, _| Ok(vec![int(FlexTensor::from_data(TensorData::from([VERSION])))])),
        (operation::CONSTRAINTS, |call, handles| {
            Ok(vec![int(handles.read(ints(&call.int(0)?), &call.numbers()?)?)])
        }),
        (operation::PUT, |call, handles| {
            let (handle, bytes) = (call.int(0)?, call.int(1)?);
            Ok(vec![int(handles.put(&handle, ints(&bytes), &call.numbers()?)?)])
        }),
        (operation::TAKE_OUT, |call, handles| {
            Ok(vec![int(handles.take_out(&call.int(0)?, &call.numbers()?)?)])
        }),
        (operation::AFTER, after),
        (operation::MASK, mask),
        (operation::MASK_TREE, mask_tree),
        (operation::GREEDY, greedy),
        (operation::SAMPLED, sampled),
        (operation::TOP_K, |call, _| filter(call, Flex::filter_top_k)),
        (operation::TOP_P, |call, _| filter(call, Flex::filter_top_p)),
    ];
    let handles = Arc::new(Handles::default());
    all.into_iter().fold(server, |server, (name, operation)| host(server, name, operation, handles.clone()))
}

/// An operation on its inputs and the constraints of the server.
type Operation = fn(&mut Call, &Handles) -> Result<Vec<HandleKind<Flex>>, Refused>;

/// Registers an operation, and turns its panics into refusals.
fn host(
    server: RemoteServer,
    name: &'static str,
    operation: Operation,
    handles: Arc<Handles>,
) -> RemoteServer {
    let run = move |tensors: &mut Tensors, wanted: &CustomOpIr, _: &<Flex as BackendTypes>::Device| {
        let (inputs, mut instead) = (take(tensors, wanted), None);
        let outputs = inputs.and_then(|inputs| {
            let mut call = Call { inputs, wanted, instead: None };
            let outputs = catch_unwind(AssertUnwindSafe(|| operation(&mut call, &handles)));
            instead = call.instead.take();
            outputs.unwrap_or_else(|_| Err("it panicked".to_owned()))
        });
        let outputs = outputs.and_then(|outputs| {
            let (own, declared) = (outputs.len(), wanted.outputs.len());
            if own == declared {
                Ok(outputs)
            } else {
                Err(format!("{declared} outputs are declared, of {own}"))
            }
        });
        match outputs {
            Ok(outputs) => give(tensors, wanted, outputs),
            Err(reason) => {
                log::warn!("{name}: refused: {reason}");
                match instead.filter(|instead| instead.len() == wanted.outputs.len()) {
                    Some(instead) => give(tensors, wanted, instead),
                    None => give_nothing(tensors, wanted, &reason),
                }
            }
        }
    };
    server.with_custom_op::<Flex, _>(name, run)
}

/// The inputs of an operation, taken from the tensors of the session.
fn take(tensors: &mut Tensors, wanted: &CustomOpIr) -> Result<Vec<HandleKind<Flex>>, Refused> {
    let missing = wanted.inputs.iter().find(|input| !tensors.has_handle(&input.id));
    if let Some(input) = missing {
        return Err(format!("there is no tensor {:?}", input.id));
    }
    // A duplicate input would be consumed by its first use.
    let mut taken = Vec::new();
    for (at, input) in wanted.inputs.iter().enumerate() {
        if wanted.inputs[..at].iter().any(|other| other.id == input.id) {
            return Err(format!("the tensor {:?} is there twice", input.id));
        }
        taken.push(tensors.get_handle(&input.id, &input.status));
    }
    Ok(taken)
}

/// Registers the outputs of an operation as tensors of the session.
fn give(tensors: &mut Tensors, wanted: &CustomOpIr, outputs: Vec<HandleKind<Flex>>) {
    for (output, ir) in outputs.into_iter().zip(&wanted.outputs) {
        tensors.register_handle(ir.id, output);
    }
}

/// The maximum number of elements of a substitute for the output of a refused operation.
const MAX_INSTEAD: usize = 1 << 24;

/// Registers substitutes for the outputs of an operation with invalid inputs, because using a
/// missing tensor would end the session. A larger declared output does end it.
fn give_nothing(tensors: &mut Tensors, wanted: &CustomOpIr, reason: &str) {
    for ir in &wanted.outputs {
        let elements = ir.shape.iter().try_fold(1usize, |all, &size| all.checked_mul(size));
        let nothing = elements.filter(|&elements| elements <= MAX_INSTEAD).map(|_| match ir.dtype {
            dtype if reads(dtype) => illegal(&FlexTensor::zeros(ir.shape.clone(), dtype)),
            dtype => int(FlexTensor::zeros(ir.shape.clone(), dtype)),
        });
        match nothing {
            Some(nothing) => tensors.register_handle(ir.id, nothing),
            None => tensors.set_error(ir.id, TensorError::new(ExecutionError::with_context(reason))),
        }
    }
}

/// An operation with its inputs.
struct Call<'a> {
    inputs: Vec<HandleKind<Flex>>,
    wanted: &'a CustomOpIr,
    /// The outputs if the operation is refused from here on.
    instead: Option<Vec<HandleKind<Flex>>>,
}

impl Call<'_> {
    /// An `i32` input tensor, whole and contiguous.
    fn int(&self, index: usize) -> Result<FlexTensor, Refused> {
        match self.inputs.get(index) {
            Some(HandleKind::Int(tensor)) if tensor.dtype() == DType::I32 => Ok(packed(tensor.clone())),
            Some(other) => Err(format!("input {index} is {}, not 32-bit integers", other.name())),
            None => Err(format!("input {index} is missing")),
        }
    }

    /// An input tensor of logits or other floats.
    fn float(&self, index: usize) -> Result<FlexTensor, Refused> {
        match self.inputs.get(index) {
            Some(HandleKind::Float(tensor)) if reads(tensor.dtype()) => Ok(packed(tensor.clone())),
            Some(other) => Err(format!("input {index} is {}, not floats of up to 32 bits", other.name())),
            None => Err(format!("input {index} is missing")),
        }
    }

    /// The scalar arguments.
    fn numbers(&self) -> Result<Vec<usize>, Refused> {
        let numbers = self.wanted.scalars.iter().map(|scalar| match scalar {
            ScalarIr::UInt(number) => usize::try_from(*number).ok(),
            _ => None,
        });
        numbers.collect::<Option<_>>().ok_or_else(|| "a scalar is no whole number".to_owned())
    }
}

fn int(tensor: FlexTensor) -> HandleKind<Flex> {
    HandleKind::Int(tensor)
}

fn float(tensor: FlexTensor) -> HandleKind<Flex> {
    HandleKind::Float(tensor)
}

/// The dimensions of a tensor of rank `D`, none of them 0.
fn dims<const D: usize>(name: &str, tensor: &FlexTensor) -> Result<[usize; D], Refused> {
    let shape = tensor.layout().shape().to_vec();
    let dims = <[usize; D]>::try_from(&shape[..]).ok().filter(|dims| !dims.contains(&0));
    dims.ok_or_else(|| format!("{name} of the shape {shape:?}"))
}

/// Refuses different sizes.
fn expect(what: &str, found: usize, expected: usize) -> Result<(), Refused> {
    if found == expected { Ok(()) } else { Err(format!("{what}: {found} instead of {expected}")) }
}

/// A position, `[batch, numbers]`, and a token for each row.
fn position(call: &Call, first: usize) -> Result<(FlexTensor, FlexTensor), Refused> {
    let (position, tokens) = (call.int(first)?, call.int(first + 1)?);
    let [batch, numbers] = dims("positions", &position)?;
    if numbers < 2 {
        return Err("positions of one number".to_owned());
    }
    let [rows, ..] = dims::<1>("tokens", &tokens)?;
    expect("tokens", rows, batch)?;
    Ok((position, tokens))
}

/// Zeros in the shape of a tensor: dead positions, or a valid token.
fn zeros(like: &FlexTensor) -> HandleKind<Flex> {
    int(FlexTensor::zeros(like.layout().shape().clone(), DType::I32))
}

/// Rows without a legal token.
fn illegal(like: &FlexTensor) -> HandleKind<Flex> {
    let shape = like.layout().shape().clone();
    float(match like.dtype() {
        DType::F16 => FlexTensor::filled_typed(shape, like.dtype(), burn::tensor::f16::NEG_INFINITY),
        DType::BF16 => FlexTensor::filled_typed(shape, like.dtype(), burn::tensor::bf16::NEG_INFINITY),
        _ => FlexTensor::filled_typed(shape, like.dtype(), f32::NEG_INFINITY),
    })
}

fn after(call: &mut Call, handles: &Handles) -> Result<Vec<HandleKind<Flex>>, Refused> {
    let (position, tokens) = position(call, 1)?;
    call.instead = Some(vec![zeros(&position)]);
    let sent = handles.get(&call.int(0)?)?;
    let &[vocab_size] = &call.numbers()?[..] else { return Err("no vocab_size".to_owned()) };
    let constraints = StepConstraints::Local(sent.constraints);
    call.inputs.clear();
    Ok(vec![int(Flex::after(constraints, position, tokens, vocab_size))])
}

fn mask(call: &mut Call, handles: &Handles) -> Result<Vec<HandleKind<Flex>>, Refused> {
    let logits = call.float(1)?;
    let (position, tokens) = position(call, 2)?;
    let [rows, vocab_size] = dims("logits", &logits)?;
    expect("logits", rows, dims::<1>("tokens", &tokens)?[0])?;
    call.instead = Some(vec![illegal(&logits), zeros(&position)]);
    let sent = handles.get(&call.int(0)?)?;
    sent.check_vocab_size(vocab_size)?;
    let constraints = StepConstraints::Local(sent.constraints);
    call.inputs.clear();
    let (logits, position) = Flex::mask_after(constraints, logits, position, tokens);
    Ok(vec![float(logits), int(position)])
}

fn mask_tree(call: &mut Call, handles: &Handles) -> Result<Vec<HandleKind<Flex>>, Refused> {
    let (logits, position, tokens) = (call.float(1)?, call.int(2)?, call.int(3)?);
    let [batch, nodes, vocab_size] = dims("logits", &logits)?;
    let [rows, numbers] = dims("positions", &position)?;
    let [lines, columns] = dims("tokens", &tokens)?;
    expect("positions", rows, batch)?;
    expect("tokens", lines, batch)?;
    expect("tokens of a row", columns, nodes)?;
    let parents = call.numbers()?;
    expect("parents", parents.len(), nodes)?;
    if numbers < 2
        || parents[0] != 0
        || parents.iter().enumerate().skip(1).any(|(node, &parent)| parent >= node)
    {
        return Err("no tree of rows".to_owned());
    }
    let count = batch.checked_mul(nodes).and_then(|count| count.checked_mul(numbers));
    let count = count.filter(|&count| count < 1 << 28).ok_or("a tree too large")?;
    let tree = FlexTensor::zeros(Shape::from([batch, nodes, numbers]), DType::I32);
    debug_assert_eq!(tree.layout().num_elements(), count);
    call.instead = Some(vec![illegal(&logits), int(tree)]);
    let sent = handles.get(&call.int(0)?)?;
    sent.check_vocab_size(vocab_size)?;
    let constraints = StepConstraints::Local(sent.constraints);
    call.inputs.clear();
    let (logits, tree) = Flex::mask_tree(constraints, logits, position, tokens, parents.into());
    Ok(vec![float(logits), int(tree)])
}

fn greedy(call: &mut Call, handles: &Handles) -> Result<Vec<HandleKind<Flex>>, Refused> {
    choose(call, handles, StepSampler::Greedy)
}

fn sampled(call: &mut Call, handles: &Handles) -> Result<Vec<HandleKind<Flex>>, Refused> {
    let (step, keys) = (call.int(4)?, call.int(5)?);
    let [batch, ..] = dims::<1>("tokens", &call.int(3)?)?;
    let [steps] = dims("steps", &step)?;
    let [rows, columns] = dims("keys", &keys)?;
    expect("keys", rows, batch)?;
    expect("numbers of a key", columns, 3)?;
    if steps > 1 {
        expect("steps", steps, batch)?;
    }
    choose(call, handles, StepSampler::GumbelMax { step, keys })
}

fn choose(
    call: &mut Call,
    handles: &Handles,
    sampler: StepSampler<Flex>,
) -> Result<Vec<HandleKind<Flex>>, Refused> {
    let logits = call.float(1)?;
    let (position, tokens) = position(call, 2)?;
    let [rows, vocab_size] = dims("logits", &logits)?;
    expect("logits", rows, dims::<1>("tokens", &tokens)?[0])?;
    // −1 is no token, so the client's host detects it.
    let none = FlexTensor::filled_typed(tokens.layout().shape().clone(), DType::I32, -1i32);
    call.instead = Some(vec![int(none), zeros(&position)]);
    let sent = handles.get(&call.int(0)?)?;
    sent.check_vocab_size(vocab_size)?;
    let constraints = StepConstraints::Local(sent.constraints);
    call.inputs.clear();
    let (tokens, position) = Flex::choose_after(constraints, logits, position, tokens, sampler);
    Ok(vec![int(tokens), int(position)])
}

/// Top-k or top-p.
fn filter(
    call: &mut Call,
    keep: fn(FlexTensor, FlexTensor) -> FlexTensor,
) -> Result<Vec<HandleKind<Flex>>, Refused> {
    let (logits, wanted) = (call.float(0)?, call.float(1)?);
    let [batch, _] = dims("logits", &logits)?;
    let [rows] = dims("numbers", &wanted)?;
    if rows > 1 {
        expect("numbers", rows, batch)?;
    }
    if wanted.dtype() != DType::F32 {
        return Err("numbers of another type than 32-bit floats".to_owned());
    }
    call.instead = Some(vec![illegal(&logits)]);
    call.inputs.clear();
    Ok(vec![float(keep(logits, wanted))])
}
