//! A server of remote devices, on which the fused operations of this crate run.
//!
//! ```no_run
//! use burn::server::{RemoteServer, WebSocketTransport};
//! use burn::tensor::Device;
//!
//! let server = burn_dfa::server::with_operations(RemoteServer::new([Device::flex()]));
//! server.serve(WebSocketTransport::new(3000))?;
//! # Ok::<(), burn::server::ServeError>(())
//! ```

use burn::server::RemoteServer;

/// The same server, which hosts the operations of this crate for clients of
/// [`remote`](crate::remote).
///
/// The operations run on devices of Flex. A server of other devices hosts none, and its clients use
/// Burn's built-in operations.
///
/// The server checks every operation that a client sends. It refuses an invalid one and logs the
/// reason, and the client's rows end with an error.
pub fn with_operations(server: RemoteServer) -> RemoteServer {
    #[cfg(feature = "flex")]
    let server = crate::kernel::hosting::with_operations(server);
    server
}
