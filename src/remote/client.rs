//! The client: opens a session with a server, and calls its operations.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use burn::backend::ir::{CustomOpIr, ScalarIr, TensorIr};
use burn::backend::tensor::{FloatTensor, IntTensor};
use burn::backend::{
    Backend, Device as _, Dispatch, DispatchDevice, Remote, TensorMetadata, backend_extension,
};
use burn::remote::{CustomOpClient, RemoteHost};
use burn::tensor::{DType, Device, Int, Shape, Tensor};

use super::address::Address;
use super::wire::{VERSION, operation};
use super::{DEADLINE, within};
use burn_dfa_tokens::{Error, Result};

/// Opens a session with the server at `address`, `ws://host:port`, and returns its first device;
/// `ws://host:port/1` is the second.
///
/// Each call opens a new session, which ends with the process. The connection is not encrypted.
///
/// ```
/// use burn_dfa::ErrorKind;
/// let error = burn_dfa::remote::connect("gpu:3000").unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Input);
/// assert!(error.to_string().ends_with("write it as ws://host:port or ws://host:port/index"));
/// ```
///
/// # Errors
/// - [`ErrorKind::Input`](crate::ErrorKind::Input): a malformed address;
/// - [`ErrorKind::Connection`](crate::ErrorKind::Connection): the server or the device does not
///   exist, the server rejects the client, or it has another version of Burn or of the operations
///   of this crate.
pub fn connect(address: &str) -> Result<Device> {
    connect_within(address, DEADLINE)
}

/// As [`connect`], with another deadline than [`DEADLINE`]. The deadline applies to opening the
/// session and to each read of the tokens of a batch, which may include processing a long prompt.
///
/// # Errors
/// As [`connect`].
pub fn connect_within(address: &str, deadline: Duration) -> Result<Device> {
    let address = Address::parse(address)?;
    address.reach()?;
    let hosts_operations = match hosted_version(&address, deadline)? {
        None => false,
        Some(VERSION) => true,
        Some(other) => {
            return Err(Error::connection(format!(
                "{address}: the server hosts version {other} of the operations of burn-dfa, this client has {VERSION}: build both from one release"
            )));
        }
    };
    let device = open(&address, deadline)?;
    sessions().insert(number(&device), Session { hosts_operations, deadline });
    Ok(device)
}

/// The session of a device.
#[derive(Clone, Copy)]
struct Session {
    hosts_operations: bool,
    deadline: Duration,
}

/// Whether the server of `device` hosts the operations of this crate.
pub(crate) fn hosts_operations(device: &Device) -> bool {
    sessions().get(&number(device)).is_some_and(|session| session.hosts_operations)
}

/// The maximum duration of a read from `device`.
pub(crate) fn deadline(device: &Device) -> Duration {
    sessions().get(&number(device)).map_or(DEADLINE, |session| session.deadline)
}

/// The open sessions, by Burn's number of the remote device in this process.
fn sessions() -> MutexGuard<'static, HashMap<Option<u16>, Session>> {
    static SESSIONS: LazyLock<Mutex<HashMap<Option<u16>, Session>>> = LazyLock::new(Mutex::default);
    // An insertion is never half done, so a poisoned lock is consistent.
    SESSIONS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn number(device: &Device) -> Option<u16> {
    match device.as_dispatch() {
        DispatchDevice::Remote(remote) => Some(remote.to_id().index_id),
        _ => None,
    }
}

/// Opens a session under a new name.
fn open(address: &Address, deadline: Duration) -> Result<Device> {
    static OPENED: AtomicU64 = AtomicU64::new(0);
    let host = RemoteHost::websocket(&address.named(OPENED.fetch_add(1, Ordering::Relaxed)));
    let options = Device::remote_options(&host).device_index(address.index);
    within(deadline, move || options.init())?
        .map_err(|error| Error::connection(format!("{address}: {error}")))
}

/// The version of the operations of a server. A server closes a session that calls an unknown
/// operation, so this function uses a separate session.
fn hosted_version(address: &Address, deadline: Duration) -> Result<Option<i32>> {
    let device = open(address, deadline)?;
    within(deadline, move || {
        let question = Tensor::<1, Int>::from_data([VERSION], (&device, DType::I32));
        let answer = call_ints(operation::VERSION, question, None, Vec::new()).try_into_data().ok()?;
        answer.try_to_vec::<i32>().ok()?.first().copied()
    })
}

/// Calls an operation on the server of the inputs, at least one. `outputs` are the shapes and types
/// of the results, `numbers` are the scalar arguments.
pub(crate) fn call<const I: usize, const O: usize>(
    operation: &'static str,
    inputs: [FloatTensor<Remote>; I],
    outputs: [(Shape, DType); O],
    numbers: &[usize],
) -> [FloatTensor<Remote>; O] {
    let client = CustomOpClient::new(&inputs[0].device());
    let inputs = inputs.map(|input| input.into_ir());
    let outputs = outputs.map(|(shape, dtype)| TensorIr::uninit(client.create_empty_handle(), shape, dtype));
    let scalars = numbers.iter().map(|&number| ScalarIr::UInt(number as u64)).collect();
    let outputs = client.register(CustomOpIr::with_scalars(operation, &inputs, &outputs, scalars));
    outputs.try_into().unwrap_or_else(|_| unreachable!("an operation gives as many tensors as it declares"))
}

/// Shape and type of a tensor.
pub(crate) fn like(tensor: &FloatTensor<Remote>) -> (Shape, DType) {
    (tensor.shape(), tensor.dtype())
}

/// Calls an operation on one or two tensors of integers that returns one integer, `[1]`.
pub(super) fn call_ints(
    operation: &'static str,
    first: Tensor<1, Int>,
    second: Option<Tensor<1, Int>>,
    numbers: Vec<usize>,
) -> Tensor<1, Int> {
    let first = first.into_dispatch();
    Tensor::from_dispatch(match second.map(Tensor::into_dispatch) {
        None => <Dispatch as IntCalls>::int_call_of_one(operation, first, numbers),
        Some(second) => <Dispatch as IntCalls>::int_call_of_two(operation, first, second, numbers),
    })
}

/// The calls of operations on integers alone.
#[backend_extension(Remote)]
trait IntCalls: Backend {
    fn int_call_of_one(
        operation: &'static str,
        input: IntTensor<Self>,
        numbers: Vec<usize>,
    ) -> IntTensor<Self>;

    fn int_call_of_two(
        operation: &'static str,
        first: IntTensor<Self>,
        second: IntTensor<Self>,
        numbers: Vec<usize>,
    ) -> IntTensor<Self>;
}

impl IntCalls for Remote {
    fn int_call_of_one(
        operation: &'static str,
        input: IntTensor<Self>,
        numbers: Vec<usize>,
    ) -> IntTensor<Self> {
        let [answer] = call(operation, [input], [(Shape::from([1]), DType::I32)], &numbers);
        answer
    }

    fn int_call_of_two(
        operation: &'static str,
        first: IntTensor<Self>,
        second: IntTensor<Self>,
        numbers: Vec<usize>,
    ) -> IntTensor<Self> {
        let [answer] = call(operation, [first, second], [(Shape::from([1]), DType::I32)], &numbers);
        answer
    }
}
