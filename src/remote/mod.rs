//! Devices of a remote server.
//!
//! [`connect`] opens a session with a server of Burn's remote backend and returns one of its
//! devices. Tensors stay on the server. The client sends operations, which run in order, and
//! receives only explicit reads: in the loops of [`generation`](crate::generation), the chosen
//! tokens every few steps.
//!
//! The [fused operations](crate::Kernels::Fused) of this crate also run on the server if the server
//! hosts them, as `burn-dfa-remote` does for Flex. Other servers, and servers with GPUs, run Burn's
//! built-in operations, with the same results and more messages. `docs/remote.md` lists the costs
//! of both.
//!
//! # A lost connection
//! A read from a lost server returns an error
//! ([`ErrorKind::Connection`](crate::ErrorKind::Connection)) and never panics. The client detects a
//! closed connection at once and a vanished server after 30 s; no read takes longer than
//! [`DEADLINE`]. The device is then lost with all tensors: [`connect`] again, load the model, and
//! send the request again.

mod address;
mod client;
mod constraints;
#[cfg(feature = "remote-server")]
pub mod server;
mod wire;

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use burn::backend::DispatchDevice;
use burn::tensor::Device;

use burn_dfa_tokens::{Error, Result};

pub(crate) use client::{call, deadline, hosts_operations, like};
pub use client::{connect, connect_within};
pub(crate) use constraints::RemoteConstraints;
pub(crate) use wire::operation;

/// The maximum duration of a read from a remote device and of opening a session; see
/// [`connect_within`].
pub const DEADLINE: Duration = Duration::from_secs(60);

/// Whether `device` is a remote device.
pub(crate) fn is_remote(device: &Device) -> bool {
    matches!(device.as_dispatch(), DispatchDevice::Remote(_))
}

/// Runs `wait`, which waits for a server, on a separate thread for at most `deadline`.
///
/// # Errors
/// [`ErrorKind::Connection`](crate::ErrorKind::Connection): no answer in time, or the client of the
/// connection panicked.
pub(crate) fn within<T: Send + 'static>(
    deadline: Duration,
    wait: impl FnOnce() -> T + Send + 'static,
) -> Result<T> {
    let (sender, receiver) = mpsc::channel();
    let lost = |what: &str| Error::connection(format!("{what}: connect again"));
    let spawned = thread::Builder::new().name("burn-dfa-remote".to_owned()).spawn(move || {
        // After the deadline, the receiver is gone.
        let _ = sender.send(wait());
    });
    spawned.map_err(|error| lost(&format!("no thread to wait on: {error}")))?;
    receiver.recv_timeout(deadline).map_err(|error| match error {
        mpsc::RecvTimeoutError::Timeout => lost(&format!("the server has not answered in {deadline:?}")),
        mpsc::RecvTimeoutError::Disconnected => lost("the session with the server has broken off"),
    })
}
