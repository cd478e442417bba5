//! Servers in this process.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::thread;
use std::time::Duration;

use burn::server::{RemoteServer, WebSocketTransport};
use burn::tensor::Device;
use tokio::runtime::Runtime;

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
});

/// Waits for a future.
pub fn wait<T>(future: impl Future<Output = T>) -> T {
    RUNTIME.block_on(future)
}

/// Serves until the process ends; returns the address.
pub fn serve(server: RemoteServer) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("ws://{}", listener.local_addr().unwrap());
    let serving = server.serve_async(WebSocketTransport::from_listener(listener));
    RUNTIME.spawn(async move { serving.await.unwrap() });
    address
}

/// The address of a server with the operations of this crate.
pub fn hosting() -> String {
    static ADDRESS: LazyLock<String> = LazyLock::new(|| {
        serve(burn_dfa::remote::server::with_operations(RemoteServer::new([Device::flex()])))
    });
    ADDRESS.clone()
}

/// The address of a server without the operations of this crate.
pub fn plain() -> String {
    static ADDRESS: LazyLock<String> = LazyLock::new(|| serve(RemoteServer::new([Device::flex()])));
    ADDRESS.clone()
}

/// A device of a server with the operations of this crate.
pub fn device() -> Device {
    burn_dfa::remote::connect(&hosting()).unwrap()
}

/// Flex, and devices of both servers.
pub fn devices() -> Vec<(&'static str, Device)> {
    vec![
        ("flex", Device::flex()),
        ("hosting", device()),
        ("plain", burn_dfa::remote::connect(&plain()).unwrap()),
    ]
}

/// A proxy between a client and a server that can disconnect or fall silent.
pub struct Line {
    pub address: String,
    streams: Arc<Mutex<Vec<TcpStream>>>,
    frozen: Arc<AtomicBool>,
}

impl Line {
    pub fn to(server: &str) -> Self {
        let server = server.strip_prefix("ws://").unwrap().to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("ws://{}", listener.local_addr().unwrap());
        let streams = Arc::new(Mutex::new(Vec::new()));
        let frozen = Arc::new(AtomicBool::new(false));
        let (kept, silent) = (streams.clone(), frozen.clone());
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Ok(server) = TcpStream::connect(&server) else { return };
                for (from, to) in [(&client, &server), (&server, &client)] {
                    kept.lock().unwrap().push(from.try_clone().unwrap());
                    let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    let silent = silent.clone();
                    thread::spawn(move || {
                        let mut bytes = [0; 1 << 16];
                        while let Ok(count @ 1..) = from.read(&mut bytes) {
                            while silent.load(Ordering::Relaxed) {
                                thread::sleep(Duration::from_millis(20));
                            }
                            if to.write_all(&bytes[..count]).is_err() {
                                break;
                            }
                        }
                        let _ = to.shutdown(Shutdown::Both);
                    });
                }
            }
        });
        Self { address, streams, frozen }
    }

    /// Stops forwarding.
    pub fn freeze(&self) {
        self.frozen.store(true, Ordering::Relaxed);
    }

    /// Closes all connections.
    pub fn cut(&self) {
        for stream in self.streams.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

/// A server that accepts connections and never answers; returns its address.
pub fn silent() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("ws://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for mut client in listener.incoming().map_while(Result::ok) {
            thread::spawn(move || {
                let mut bytes = [0; 1024];
                while client.read(&mut bytes).is_ok_and(|count| count > 0) {}
            });
        }
    });
    address
}
