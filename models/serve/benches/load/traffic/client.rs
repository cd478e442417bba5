//! A bare socket client, which adds little to the measurements.

use std::io::{BufRead, BufReader, Error, ErrorKind, Read, Result, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// Longest wait for more of an answer.
const PATIENCE: Duration = Duration::from_secs(120);

/// A connection that is kept between requests, and reopened if it was closed.
pub struct Client {
    address: SocketAddr,
    stream: Option<BufReader<TcpStream>>,
}

/// An answer, whole or in events.
pub struct Reply {
    /// The status.
    pub status: u16,
    /// The body of an answer without streaming.
    pub body: String,
    /// The events of a streamed answer, with the time since the request was sent.
    pub events: Vec<(Duration, String)>,
    /// The time to the end of the answer.
    pub total: Duration,
}

/// When a client disconnects before its answer has ended.
#[derive(Clone, Copy)]
pub enum Disconnect {
    /// After some time.
    After(Duration),
    /// After this number of events, or at the end.
    Events(usize),
}

impl Client {
    /// A client of the server at `address`.
    pub fn new(address: SocketAddr) -> Self {
        Self { address, stream: None }
    }

    /// Asks, and reads the answer.
    ///
    /// # Errors
    /// The socket fails, or the answer is not HTTP.
    pub fn ask(&mut self, method: &str, path: &str, body: &str) -> Result<Reply> {
        let sent = Instant::now();
        let mut stream = self.send(method, path, body)?;
        let (status, length) = head(&mut stream)?;
        let (mut text, mut events) = (String::new(), Vec::new());
        match length {
            Some(length) => {
                let mut bytes = vec![0; length];
                stream.read_exact(&mut bytes)?;
                text = String::from_utf8(bytes).map_err(|_| malformed("the body is not UTF-8"))?;
            }
            None => chunks(&mut stream, |data| {
                events.push((sent.elapsed(), data));
                true
            })?,
        }
        self.stream = Some(stream);
        Ok(Reply { status, body: text, events, total: sent.elapsed() })
    }

    /// Asks, and disconnects before the end.
    ///
    /// # Errors
    /// The socket fails, or the answer is not HTTP.
    pub fn ask_and_disconnect(&mut self, path: &str, body: &str, disconnect: Disconnect) -> Result<()> {
        let mut stream = self.send("POST", path, body)?;
        match disconnect {
            Disconnect::After(time) => std::thread::sleep(time),
            Disconnect::Events(mut left) => {
                if head(&mut stream)?.1.is_none() {
                    chunks(&mut stream, |_| {
                        left = left.saturating_sub(1);
                        left > 0
                    })?;
                }
            }
        }
        stream.get_ref().shutdown(Shutdown::Both)
    }

    fn send(&mut self, method: &str, path: &str, body: &str) -> Result<BufReader<TcpStream>> {
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => {
                let stream = TcpStream::connect(self.address)?;
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(PATIENCE))?;
                BufReader::new(stream)
            }
        };
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        stream.get_mut().write_all(request.as_bytes())?;
        Ok(stream)
    }
}

/// The status of an answer and the length of its body, `None` if it comes in chunks.
fn head(stream: &mut impl BufRead) -> Result<(u16, Option<usize>)> {
    let first = line(stream)?;
    let status = first.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.ok_or_else(|| malformed("there is no status"))?;
    let mut length = None;
    loop {
        let line = line(stream)?;
        match line.split_once(':') {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                length = Some(value.trim().parse().map_err(|_| malformed("the length is no number"))?);
            }
            Some(_) => {}
            None => return Ok((status, length)),
        }
    }
}

/// Passes the data of each event on, until the last event, or until `go_on` returns false.
fn chunks(stream: &mut impl BufRead, mut go_on: impl FnMut(String) -> bool) -> Result<()> {
    let mut text = String::new();
    loop {
        let size = line(stream)?;
        let size = usize::from_str_radix(&size, 16).map_err(|_| malformed("a chunk has no size"))?;
        let mut chunk = vec![0; size + 2];
        stream.read_exact(&mut chunk)?;
        if size == 0 {
            return Ok(());
        }
        text.push_str(std::str::from_utf8(&chunk[..size]).map_err(|_| malformed("an event is not UTF-8"))?);
        while let Some(end) = text.find("\n\n") {
            let event: String = text.drain(..end + 2).collect();
            let Some(data) = event.trim_end().strip_prefix("data: ") else { continue };
            if !go_on(data.to_owned()) {
                return Ok(());
            }
        }
    }
}

fn line(stream: &mut impl BufRead) -> Result<String> {
    let mut line = String::new();
    match stream.read_line(&mut line)? {
        0 => Err(Error::new(ErrorKind::UnexpectedEof, "the server closed the connection")),
        _ => Ok(line.trim_end().to_owned()),
    }
}

fn malformed(what: &str) -> Error {
    Error::new(ErrorKind::InvalidData, what)
}
