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
/// - [`ErrorKind::Connection`](crate::ErrorKind::Connection): the server or the device does not exist, the server rejects the
///   client, or it has another version of Burn or of the operations of this crate.
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
        let answer = <Dispatch as Versioned>::hosted_version(question.into_dispatch());
        let answer = Tensor::<1, Int>::from_dispatch(answer).try_into_data().ok()?;
        answer.try_to_vec::<i32>().ok()?.first().copied()
    })
}

/// The query for the version of a server's operations.
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
