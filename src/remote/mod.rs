//! Devices of a server elsewhere.
//!
//! [`connect`] opens a session with a server of Burn's remote backend and gives a device of it. Tensors live on the server,
//! operations are sent to it and run in their order, and only what is read comes back: in the loops of
//! [`generation`](crate::generation), the chosen tokens every few steps.
//!
//! The [fused operations](crate::Kernels::Fused) of this crate run on the server as well where it hosts them, as
//! `burn-dfa-remote` does for Flex. A server without them, and one that hosts GPUs, runs Burn's built-in ones, with the same
//! results and more messages. `docs/remote.md` holds what both cost.
//!
//! # A lost connection
//! What is read of a server that has gone is an error ([`Error::is_connection`]), never a panic. A server that closes its
//! connections is noticed at once, one that vanished after 30 s, and no read takes longer than [`DEADLINE`]. The device is lost
//! then, with all tensors: [`connect`] again, load the model, and send the request again.

mod address;
mod call;
mod connect;

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use burn::backend::DispatchDevice;
use burn::tensor::Device;

use crate::error::{Error, Result};

#[cfg(all(feature = "remote-server", feature = "flex"))]
pub(crate) use call::VERSION;
pub(crate) use call::{OPERATIONS, call, like};
pub use connect::{connect, connect_within};
pub(crate) use connect::{deadline, hosts_operations};

/// The longest time that a read from a remote device may take, and that a session may take to open; see [`connect_within`].
pub const DEADLINE: Duration = Duration::from_secs(60);

/// Whether `device` is one of a server.
pub(crate) fn is_remote(device: &Device) -> bool {
    matches!(device.as_dispatch(), DispatchDevice::Remote(_))
}

/// Does what waits for a server, on a thread of its own, for at most `deadline`.
///
/// # Errors
/// [`Error::is_connection`]: no answer in time, or the client of the connection panicked.
pub(crate) fn within<T: Send + 'static>(
    deadline: Duration,
    wait: impl FnOnce() -> T + Send + 'static,
) -> Result<T> {
    let (sender, receiver) = mpsc::channel();
    let lost = |what: &str| Error::connection(format!("{what}: connect again"));
    let spawned = thread::Builder::new().name("burn-dfa-remote".to_owned()).spawn(move || {
        // Nobody waits any more where the deadline has passed.
        let _ = sender.send(wait());
    });
    spawned.map_err(|error| lost(&format!("no thread to wait on: {error}")))?;
    receiver.recv_timeout(deadline).map_err(|error| match error {
        mpsc::RecvTimeoutError::Timeout => lost(&format!("the server has not answered in {deadline:?}")),
        mpsc::RecvTimeoutError::Disconnected => lost("the session with the server has broken off"),
    })
}
