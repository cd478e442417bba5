//! `burn-dfa-remote`: serves the devices of this machine to remote clients, with the operations of
//! burn-dfa.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::process::ExitCode;

use burn::server::{RemoteServer, WebSocketTransport};
use burn_dfa::cli::{Backend, Failure, parse, report};
use clap::Parser;

/// Serve a device of this machine to remote programs, which use it with
/// `--device remote:ws://HOST:PORT`.
///
/// All clients that reach the port may use the device, and the connection is not encrypted: listen
/// only on a trusted network. Exit codes: 0, the server was stopped; 1, the server failed; 2, wrong
/// usage, such as a port in use.
#[derive(Debug, Parser)]
#[command(name = "burn-dfa-remote", version)]
#[command(after_help = "Examples:
  burn-dfa-remote
  burn-dfa-remote --host 10.0.0.5 --port 3000 --device cuda")]
struct Args {
    /// The address to listen on.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    host: IpAddr,
    /// The port to listen on; 0 takes any free port.
    #[arg(long, default_value_t = 3000)]
    port: u16,
    /// The device to serve: flex, vulkan, wgpu or cuda. On flex, clients use the fused operations
    /// of burn-dfa, on other devices Burn's built-in operations.
    #[arg(long, value_name = "DEVICE", default_value = "flex")]
    device: Backend,
}

fn main() -> ExitCode {
    match serve(&parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => report(&failure, false),
    }
}

/// Serves until the process ends.
fn serve(args: &Args) -> Result<(), Failure> {
    if let Backend::Remote(_) = args.device {
        return Err("a device of another server cannot be served: give its address to the clients".into());
    }
    let server = burn_dfa::remote::server::with_operations(RemoteServer::new([args.device.open()?]));
    let address = SocketAddr::new(args.host, args.port);
    let listener = TcpListener::bind(address)
        .map_err(|error| format!("cannot listen on {address}: {error}: give another --host or --port"))?;
    eprintln!("listening on ws://{}, device {}", listener.local_addr()?, args.device);
    // An `io::Error` is reported as a failure of the work.
    Ok(server.serve(WebSocketTransport::from_listener(listener)).map_err(io::Error::other)?)
}
