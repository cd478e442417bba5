//! `burn-dfa-remote`: serves the devices of this machine to remote clients, with the operations of
//! burn-dfa.

use std::net::{IpAddr, TcpListener};
use std::process::ExitCode;

use burn::server::{RemoteServer, WebSocketTransport};
use burn_dfa::cli::{Backend, Failure, parse, report};
use clap::Parser;

/// Serves devices of this machine to remote programs, which use them with
/// `--device remote:ws://HOST:PORT`.
///
/// All clients that reach the port may use the devices, and the connection is not encrypted: listen
/// only on a trusted network.
#[derive(Debug, Parser)]
#[command(name = "burn-dfa-remote", version)]
struct Args {
    /// The address to listen on.
    #[arg(long, default_value = "127.0.0.1")]
    host: IpAddr,
    /// The port to listen on; 0: any free port.
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
        return Err("a device of another server cannot be lent: name the server itself to the clients".into());
    }
    let server = burn_dfa::remote::server::with_operations(RemoteServer::new([args.device.open()?]));
    let listener = TcpListener::bind((args.host, args.port));
    let listener =
        listener.map_err(|error| format!("cannot listen on {}, port {}: {error}", args.host, args.port))?;
    println!("{} at ws://{}", args.device, listener.local_addr()?);
    Ok(server.serve(WebSocketTransport::from_listener(listener))?)
}
