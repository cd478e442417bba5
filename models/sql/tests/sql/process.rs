//! Processes of the program.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// A time limit for everything, even on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(240);

/// A command of the program.
pub fn program(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_burn-dfa-sql"));
    command.args(args).env_remove("RUST_LOG");
    command
}

/// Runs the program to its end.
pub fn run(args: &[&str]) -> Output {
    Process::start(program(args).stdout(Stdio::piped())).output()
}

/// The standard output of a successful run.
pub fn answer(args: &[&str]) -> String {
    let output = run(args);
    let (told, error) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{args:?}: {error}");
    told
}

/// The standard error of a run that fails like the project's programs.
pub fn failure(args: &[&str]) -> String {
    let output = run(args);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{args:?}: {error}");
    assert!(error.starts_with("error: "), "{error}");
    error
}

/// The lines of a text in order.
pub fn sorted(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort_unstable();
    lines
}

/// A process that ends with its owner.
pub struct Process {
    child: Child,
    lines: mpsc::Receiver<String>,
}

impl Process {
    /// Starts the process, and reads its standard error.
    pub fn start(command: &mut Command) -> Self {
        let mut child =
            command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the program starts");
        let (sender, lines) = mpsc::channel();
        let errors = BufReader::new(child.stderr.take().unwrap());
        std::thread::spawn(move || {
            errors.lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        Self { child, lines }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The rest of the first line of standard error that contains `with`, after this text.
    pub fn line(&self, with: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        let mut told = Vec::new();
        loop {
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => match line.split_once(with) {
                    Some((_, rest)) => return rest.to_owned(),
                    None => told.push(line),
                },
                Err(_) => panic!("no line with {with:?}: {told:#?}"),
            }
        }
    }

    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Ends the process immediately, without a clean shutdown.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits for its end.
    pub fn output(mut self) -> Output {
        let mut stdout = Vec::new();
        let (done, is_done) = mpsc::channel();
        let pipe = self.child.stdout.take();
        let reader = std::thread::spawn(move || {
            if let Some(mut pipe) = pipe {
                pipe.read_to_end(&mut stdout).unwrap();
            }
            let _ = done.send(());
            stdout
        });
        is_done.recv_timeout(PATIENCE).expect("the program ends in time");
        let deadline = Instant::now() + PATIENCE;
        while self.is_running() {
            assert!(Instant::now() < deadline, "the program does not end");
            std::thread::sleep(Duration::from_millis(10));
        }
        let status = self.child.wait().unwrap();
        let stderr = self.lines.iter().flat_map(|line| (line + "\n").into_bytes()).collect();
        Output { status, stdout: reader.join().unwrap(), stderr }
    }

    /// Processor time of the process.
    pub fn used(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.id())).unwrap();
        let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
        // In hundredths of a second: user and system time.
        let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
        Duration::from_millis(ticks * 10)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The status code of a page.
pub fn status(address: &str, page: &str) -> Option<u16> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
    write!(stream, "GET {page} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").ok()?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).ok()?;
    line.split(' ').nth(1)?.parse().ok()
}

/// Waits for a condition.
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
