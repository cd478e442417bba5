//! Peers in Python, if an interpreter has them: PyTorch, the original XGrammar, and glrmask.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A Python interpreter.
pub struct Python {
    program: PathBuf,
}

impl Python {
    pub fn new(program: &Path) -> Self {
        Self { program: program.to_owned() }
    }

    /// Whether `script` finds its prerequisites, as it reports for these arguments. Prints the
    /// findings, or that `what` is skipped.
    pub fn offers(&self, script: &str, arguments: &[&str], what: &str) -> bool {
        match self.run(script, arguments) {
            Ok(found) => {
                println!("{what}: {}", found.trim());
                true
            }
            Err(error) => {
                println!("skipped: {what} ({error}); name a Python that has it with --python");
                false
            }
        }
    }

    /// The output of a script in this crate's folder.
    ///
    /// # Errors
    /// The last line of the error output.
    pub fn run(&self, script: &str, arguments: &[&str]) -> Result<String, String> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join(script);
        let output = Command::new(&self.program).arg(script).args(arguments).output();
        let output = output.map_err(|error| format!("{}: {error}", self.program.display()))?;
        if output.status.success() {
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        } else {
            let errors = String::from_utf8_lossy(&output.stderr);
            Err(errors.lines().last().unwrap_or("it failed").to_owned())
        }
    }
}

impl Python {
    /// Starts a script that answers each line with a number.
    ///
    /// # Errors
    /// If Python does not start.
    pub fn serve(&self, script: &str, arguments: &[&str]) -> std::io::Result<Server> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join(script);
        let mut command = Command::new(&self.program);
        command
            .arg(script)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = command.spawn()?;
        let (stdin, stdout) = child.stdin.take().zip(child.stdout.take()).expect("both are piped");
        Ok(Server { child, stdin, stdout: BufReader::new(stdout) })
    }
}

/// See [`Python::serve`].
pub struct Server {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Server {
    /// The answer to `task`; `None` if the script has ended.
    pub fn ask(&mut self, task: &str) -> Option<f64> {
        writeln!(self.stdin, "{task}").ok()?;
        let mut answer = String::new();
        self.stdout.read_line(&mut answer).ok()?;
        answer.trim().parse().ok()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
