//! A server in this process, and a bare socket client.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::thread::JoinHandle;
use std::time::Duration;

use burn_dfa_serve::{App, Config, Server};
use burn_dfa_tiny::{CONFIG, GENERATION_CONFIG, TOKENIZER, WEIGHTS};
use clap::Parser;
use serde_json::Value;
use tokio::sync::oneshot;

/// A server that ends with the test.
pub struct Running {
    pub address: SocketAddr,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// A server of the embedded model with these options. The last value of a repeated option counts.
pub fn start(options: &[&str]) -> Running {
    start_app(App::load(config(options)).expect("the embedded model loads"))
}

pub fn config(options: &[&str]) -> Config {
    Config::parse_from(["burn-dfa-serve", "--port", "0", "--rows", "2", "--grace", "5"].iter().chain(options))
}

/// A folder of the embedded model with another chat template. Dropping it removes the folder.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new(name: &str, chat_template: &str) -> Self {
        let path = std::env::temp_dir().join(format!("burn-dfa-serve-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder");
        let files: [(&str, &[u8]); 5] = [
            ("config.json", CONFIG),
            ("generation_config.json", GENERATION_CONFIG),
            ("tokenizer.json", TOKENIZER),
            ("model.safetensors", WEIGHTS),
            ("chat_template.jinja", chat_template.as_bytes()),
        ];
        let folder = Self(path);
        for (name, content) in files {
            folder.write(name, content);
        }
        folder
    }

    /// Writes or replaces a file.
    pub fn write(&self, name: &str, content: &[u8]) {
        std::fs::write(self.0.join(name), content).expect("a file");
    }

    /// A server of the folder, with these options.
    pub fn start(&self, options: &[&str]) -> Running {
        let folder = ["--model", self.0.to_str().expect("a path"), "--served-model-name", "tiny"];
        start(&[&folder[..], options].concat())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub fn start_app(app: App) -> Running {
    let (end, is_ended) = oneshot::channel();
    let (ready, is_ready) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let server = Server::bind(app).await.expect("a port is free");
            ready.send(server.address().expect("it has one")).expect("the test waits");
            server.run(async { _ = is_ended.await }).await;
        });
    });
    let address = is_ready.recv().expect("the server starts");
    Running { address, end: Some(end), thread: Some(thread) }
}

impl Running {
    /// Asks the server to end, and waits for its end.
    pub fn end(&mut self) {
        if let Some(end) = self.end.take() {
            let _ = end.send(());
        }
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the server ends well");
        }
    }

    /// Asks the server to end.
    pub fn ask_to_end(&mut self) {
        if let Some(end) = self.end.take() {
            let _ = end.send(());
        }
    }

    pub fn get(&self, path: &str) -> Answer {
        self.request("GET", path, &[], b"")
    }

    pub fn post(&self, path: &str, body: &Value) -> Answer {
        self.request("POST", path, &[("content-type", "application/json")], body.to_string().as_bytes())
    }

    pub fn request(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        self.send(method, path, headers, body).read()
    }

    /// Sends a request, whose answer may be read later.
    pub fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Pending {
        let mut stream = TcpStream::connect(self.address).expect("the server listens");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a time");
        let mut head = format!("{method} {path} HTTP/1.1\r\nconnection: close\r\n");
        if !headers.iter().any(|(name, _)| *name == "host") {
            head.push_str(&format!("host: {}\r\n", self.address));
        }
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str(&format!("content-length: {}\r\n\r\n", body.len()));
        // A server that has already refused the request may have closed the connection.
        let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body));
        Pending { stream: BufReader::new(stream) }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.ask_to_end();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A pending request; dropping it closes the connection.
pub struct Pending {
    pub stream: BufReader<TcpStream>,
}

impl Pending {
    pub fn read(mut self) -> Answer {
        let mut line = String::new();
        self.stream.read_line(&mut line).expect("a status line");
        let status = line.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        let mut headers = Vec::new();
        loop {
            line.clear();
            self.stream.read_line(&mut line).expect("a header");
            match line.trim_end().split_once(": ") {
                Some((name, value)) => headers.push((name.to_lowercase(), value.to_owned())),
                None => break,
            }
        }
        let is_chunked =
            headers.iter().any(|(name, value)| name == "transfer-encoding" && value == "chunked");
        let mut bytes = Vec::new();
        if is_chunked {
            loop {
                line.clear();
                self.stream.read_line(&mut line).expect("the size of a chunk");
                let size = usize::from_str_radix(line.trim(), 16).expect("a size");
                let mut chunk = vec![0; size + 2];
                self.stream.read_exact(&mut chunk).expect("a chunk");
                if size == 0 {
                    break;
                }
                bytes.extend_from_slice(&chunk[..size]);
            }
        } else {
            self.stream.read_to_end(&mut bytes).expect("a body");
        }
        Answer { status, headers, text: String::from_utf8(bytes).expect("text") }
    }
}

/// The answer of the server.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub text: String,
}

impl Answer {
    /// The body, with a check of the status.
    #[track_caller]
    pub fn json(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.text);
        serde_json::from_str(&self.text).expect("it is JSON")
    }

    /// The message of an error, with checks of its `param` and `code`.
    #[track_caller]
    pub fn error(&self, status: u16, param: Option<&str>, code: &str) -> String {
        let body = self.json(status);
        let error = &body["error"];
        assert_eq!((error["param"].as_str(), error["code"].as_str()), (param, Some(code)), "{body}");
        error["message"].as_str().expect("a message").to_owned()
    }

    /// The warnings of a whole answer.
    #[track_caller]
    pub fn warnings(&self) -> Vec<Value> {
        self.json(200)["warnings"].as_array().cloned().unwrap_or_default()
    }

    /// The events of a stream, except for the last, which is `[DONE]`.
    #[track_caller]
    pub fn events(&self) -> Vec<Value> {
        assert_eq!(self.status, 200, "{}", self.text);
        let mut data: Vec<&str> = self.text.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
        assert_eq!(data.pop(), Some("[DONE]"));
        data.into_iter().map(|data| serde_json::from_str(data).expect("it is JSON")).collect()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }
}
