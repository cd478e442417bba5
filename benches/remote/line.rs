//! A proxy between client and server that delays messages and counts them.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

/// Bytes and messages in each direction: to the server and back.
#[derive(Default)]
pub struct Counts {
    bytes: [AtomicU64; 2],
    messages: [AtomicU64; 2],
}

impl Counts {
    /// The bytes and messages so far, each to the server and back.
    pub fn now(&self) -> [[u64; 2]; 2] {
        [&self.bytes, &self.messages]
            .map(|counts| [0, 1].map(|direction| counts[direction].load(Ordering::Relaxed)))
    }
}

/// A proxy of one server.
pub struct Line {
    /// The address for clients.
    pub address: String,
    /// The traffic so far.
    pub counts: Arc<Counts>,
}

impl Line {
    /// Starts a proxy that delays each direction by `delay`.
    pub fn to(server: SocketAddr, delay: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = format!("ws://{}", listener.local_addr().expect("an address"));
        let counts = Arc::new(Counts::default());
        let counted = counts.clone();
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Ok(server) = TcpStream::connect(server) else { return };
                for (direction, from, to) in [(0, &client, &server), (1, &server, &client)] {
                    let (Ok(from), Ok(to)) = (from.try_clone(), to.try_clone()) else { return };
                    pass(direction, from, to, delay, counted.clone());
                }
            }
        });
        Self { address, counts }
    }
}

/// Forwards the bytes of one direction, `delay` later.
fn pass(direction: usize, mut from: TcpStream, mut to: TcpStream, delay: Duration, counts: Arc<Counts>) {
    let _ = to.set_nodelay(true);
    let (sender, receiver) = mpsc::channel::<(Instant, Vec<u8>)>();
    thread::spawn(move || {
        let (mut bytes, mut frames) = (vec![0; 1 << 16], Frames::default());
        while let Ok(count @ 1..) = from.read(&mut bytes) {
            counts.bytes[direction].fetch_add(count as u64, Ordering::Relaxed);
            counts.messages[direction].fetch_add(frames.count(&bytes[..count]), Ordering::Relaxed);
            if sender.send((Instant::now() + delay, bytes[..count].to_vec())).is_err() {
                return;
            }
        }
    });
    thread::spawn(move || {
        for (due, bytes) in receiver {
            if !delay.is_zero() {
                thread::sleep(due.saturating_duration_since(Instant::now()));
            }
            if to.write_all(&bytes).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
    });
}

/// Finds the frames of a websocket (RFC 6455) in the bytes of one direction.
#[derive(Default)]
struct Frames {
    /// The line breaks at the end of the HTTP request that have arrived so far.
    opened: usize,
    header: Vec<u8>,
    /// Bytes of the current frame that have not arrived yet.
    rest: u64,
}

impl Frames {
    /// Counts the frames that begin in `bytes`.
    fn count(&mut self, bytes: &[u8]) -> u64 {
        let (mut frames, mut at) = (0, 0);
        while at < bytes.len() {
            if self.rest > 0 {
                let skipped = self.rest.min((bytes.len() - at) as u64);
                (self.rest, at) = (self.rest - skipped, at + skipped as usize);
                continue;
            }
            let byte = bytes[at];
            at += 1;
            if self.opened < 4 {
                let expected = b"\r\n\r\n"[self.opened];
                self.opened = if byte == expected { self.opened + 1 } else { usize::from(byte == b'\r') };
                continue;
            }
            self.header.push(byte);
            if let Some(rest) = length(&self.header) {
                (self.rest, frames) = (rest, frames + 1);
                self.header.clear();
            }
        }
        frames
    }
}

/// The length of the payload of a frame, if the header is complete.
fn length(header: &[u8]) -> Option<u64> {
    let [_, second, more @ ..] = header else { return None };
    let mask = if second & 0x80 == 0 { 0 } else { 4 };
    let extended = match second & 0x7f {
        126 => 2,
        127 => 8,
        _ => 0,
    };
    if more.len() < extended {
        return None;
    }
    let short = u64::from(second & 0x7f);
    let length = more[..extended].iter().fold(0, |length, &byte| length << 8 | u64::from(byte));
    Some(mask + if extended == 0 { short } else { length })
}
