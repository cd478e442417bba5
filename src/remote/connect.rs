//! Opening a session with a server.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError};

use burn::backend::tensor::IntTensor;
use burn::backend::{Backend, Dispatch, DispatchDevice, Remote, backend_extension};
use burn::remote::RemoteHost;
use burn::tensor::{DType, Device, Int, Tensor};

use super::address::Address;
use super::call::{VERSION, call, like};
use super::within_deadline;
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
    let address = Address::parse(address)?;
    address.reach()?;
    let hosted = hosted_version(&address)?;
    let device = open(&address)?;
    match hosted {
        None => {}
        Some(VERSION) => _ = hosting().insert(device_number(&device)),
        Some(other) => {
            return Err(Error::connection(format!(
                "{address}: the server hosts version {other} of the operations of burn-dfa, this client has {VERSION}: build both from one release"
            )));
        }
    }
    Ok(device)
}

/// Whether the server of `device` hosts the operations of this crate.
pub(crate) fn hosts_operations(device: &Device) -> bool {
    super::is_remote(device) && hosting().contains(&device_number(device))
}

/// The devices whose servers host the operations of this crate.
fn hosting() -> std::sync::MutexGuard<'static, HashSet<u16>> {
    static HOSTING: LazyLock<Mutex<HashSet<u16>>> = LazyLock::new(Mutex::default);
    // A number is in it or not: no panic leaves it half written.
    HOSTING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The number that Burn gives a remote device in this process.
fn device_number(device: &Device) -> u16 {
    use burn::backend::Device as _;
    match device.as_dispatch() {
        DispatchDevice::Remote(remote) => remote.to_id().index_id,
        _ => u16::MAX,
    }
}

/// Opens a session under a name of its own.
fn open(address: &Address) -> Result<Device> {
    static SESSIONS: AtomicU64 = AtomicU64::new(0);
    let host = RemoteHost::websocket(&address.named(SESSIONS.fetch_add(1, Ordering::Relaxed)));
    let options = Device::remote_options(&host).device_index(address.index);
    within_deadline(move || options.init())?.map_err(|error| Error::connection(format!("{address}: {error}")))
}

/// The version of the operations that a server hosts. A session that asks a server for an operation that it lacks is closed,
/// so this one is for the question alone.
fn hosted_version(address: &Address) -> Result<Option<i32>> {
    let device = open(address)?;
    within_deadline(move || {
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
        let [answer] = call(super::OPERATIONS.version, [question], [answer], Vec::new());
        answer
    }
}
