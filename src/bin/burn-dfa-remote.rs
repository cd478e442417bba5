//! `burn-dfa-remote`: lends the devices of this machine to clients elsewhere, with the operations of burn-dfa.

use std::net::{IpAddr, TcpListener};
use std::process::ExitCode;

use burn::server::{RemoteServer, WebSocketTransport};
use burn_dfa::cli::{Backend, Failure, parse, report};
use clap::Parser;

/// Lends devices of this machine to programs elsewhere, which take them with `--device remote:ws://HOST:PORT`.
///
/// Whoever reaches the port may use the devices, and the connection is not encrypted: listen on a trusted network only.
#[derive(Debug, Parser)]
#[command(name = "burn-dfa-remote", version)]
struct Args {
    /// The address to listen on.
    #[arg(long, default_value = "127.0.0.1")]
    host: IpAddr,
    /// The port to listen on; 0: any that is free.
    #[arg(long, default_value_t = 3000)]
    port: u16,
    /// What to lend: flex, vulkan, wgpu or cuda. On flex, clients have the fused operations of burn-dfa, elsewhere Burn's own.
    #[arg(long, value_name = "DEVICE", default_value = "flex")]
    device: Backend,
}

fn main() -> ExitCode {
    match serve(&parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => report(&failure, false),
    }
}

/// Serves until the process is asked to end.
fn serve(args: &Args) -> Result<(), Failure> {
    if let Backend::Remote(_) = args.device {
        return Err("a device of another server cannot be lent: name the server itself to the clients".into());
    }
    let server = burn_dfa::server::with_operations(RemoteServer::new([args.device.open()?]));
    let listener = TcpListener::bind((args.host, args.port));
    let listener =
        listener.map_err(|error| format!("cannot listen on {}, port {}: {error}", args.host, args.port))?;
    println!("{} at ws://{}", args.device, listener.local_addr()?);
    Ok(server.serve(WebSocketTransport::from_listener(listener))?)
}
