//! Opening a session with a server.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use burn::backend::tensor::IntTensor;
use burn::backend::{Backend, Device as _, Dispatch, DispatchDevice, Remote, backend_extension};
use burn::remote::RemoteHost;
use burn::tensor::{DType, Device, Int, Tensor};

use super::address::Address;
use super::call::{OPERATIONS, VERSION, call, like};
use super::{DEADLINE, within};
use crate::error::{Error, Result};

/// Opens a session with the server at `address`, `ws://host:port`, and gives the first device that it hosts;
/// `ws://host:port/1` is the second.
///
/// Each call opens a session of its own, which ends with the process. The connection is not encrypted.
///
/// ```
/// let error = burn_dfa::remote::connect("gpu:3000").unwrap_err();
/// assert!(error.is_input());
/// assert!(error.to_string().ends_with("write it as ws://host:port or ws://host:port/index"));
/// ```
///
/// # Errors
/// - [`Error::is_input`]: a malformed address;
/// - [`Error::is_connection`]: there is no such server, it has no such device, it does not let this client in, or it speaks
///   another version, of Burn or of the operations of this crate.
pub fn connect(address: &str) -> Result<Device> {
    connect_within(address, DEADLINE)
}

/// As [`connect`], with another deadline than [`DEADLINE`]. It holds for opening the session and for each read of the tokens of a
/// batch, in which a long prompt may have to be read first.
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

/// What is known of a device.
#[derive(Clone, Copy)]
struct Session {
    hosts_operations: bool,
    deadline: Duration,
}

/// Whether the server of `device` hosts the operations of this crate.
pub(crate) fn hosts_operations(device: &Device) -> bool {
    sessions().get(&number(device)).is_some_and(|session| session.hosts_operations)
}

/// The longest time that a read from `device` may take.
pub(crate) fn deadline(device: &Device) -> Duration {
    sessions().get(&number(device)).map_or(DEADLINE, |session| session.deadline)
}

/// The sessions that were opened here, by the number that Burn gives a remote device in this process.
fn sessions() -> MutexGuard<'static, HashMap<Option<u16>, Session>> {
    static SESSIONS: LazyLock<Mutex<HashMap<Option<u16>, Session>>> = LazyLock::new(Mutex::default);
    // Entries are put in whole.
    SESSIONS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn number(device: &Device) -> Option<u16> {
    match device.as_dispatch() {
        DispatchDevice::Remote(remote) => Some(remote.to_id().index_id),
        _ => None,
    }
}

/// Opens a session under a name of its own.
fn open(address: &Address, deadline: Duration) -> Result<Device> {
    static OPENED: AtomicU64 = AtomicU64::new(0);
    let host = RemoteHost::websocket(&address.named(OPENED.fetch_add(1, Ordering::Relaxed)));
    let options = Device::remote_options(&host).device_index(address.index);
    within(deadline, move || options.init())?
        .map_err(|error| Error::connection(format!("{address}: {error}")))
}

/// The version of the operations that a server hosts. A session that asks a server for an operation that it lacks is closed,
/// so this one is for the question alone.
fn hosted_version(address: &Address, deadline: Duration) -> Result<Option<i32>> {
    let device = open(address, deadline)?;
    within(deadline, move || {
        let question = Tensor::<1, Int>::from_data([VERSION], (&device, DType::I32));
        let answer = <Dispatch as Versioned>::hosted_version(question.into_dispatch());
        let answer = Tensor::<1, Int>::from_dispatch(answer).try_into_data().ok()?;
        answer.try_to_vec::<i32>().ok()?.first().copied()
    })
}

/// What a server says of its operations.
#[backend_extension(Remote)]
trait Versioned: Backend {
    /// The version of the operations, `[1]`.
    fn hosted_version(question: IntTensor<Self>) -> IntTensor<Self>;
}

impl Versioned for Remote {
    fn hosted_version(question: IntTensor<Self>) -> IntTensor<Self> {
        let answer = like(&question);
        let [answer] = call(OPERATIONS.version, [question], [answer], Vec::new());
        answer
    }
}
