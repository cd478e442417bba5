//! An engine: a process that holds the model and answers questions, one line of JSON each.
//!
//! burn-dfa is this program itself, and llama.cpp a Python script. Each has its own process, so
//! that the number of threads and the peak memory are its own.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Failure;
use crate::acceptance::DraftCounts;

/// The prompts of a batch, and how to answer them.
#[derive(Clone, Serialize, Deserialize)]
pub struct Question {
    /// A prompt for each row; llama.cpp answers one.
    pub prompts: Vec<Prompt>,
    /// The white space of the JSON, by its name on the command line.
    pub whitespace: String,
    /// Whether forced text takes the longest token.
    pub longest: bool,
    /// The temperature of sampling; 0: greedy.
    pub temperature: f32,
    /// The seed of sampling, of every row.
    pub seed: u64,
    /// The greatest number of tokens of a row.
    pub max_tokens: usize,
    /// The draft tokens; llama.cpp takes none.
    pub drafts: Drafts,
}

/// A prompt with the schema of its answer.
#[derive(Clone, Serialize, Deserialize)]
pub struct Prompt {
    /// The system message.
    pub system: String,
    /// The user's message.
    pub user: String,
    /// The schema of the answer; `None`: free text.
    pub schema: Option<Value>,
}

/// The draft tokens of speculative decoding.
#[derive(Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Drafts {
    /// None.
    None,
    /// The continuation of the same tokens earlier in the text.
    Lookup,
    /// The tokens that the constraint forces.
    Forced,
    /// The tokens that the constraint forces, and the continuation of the same tokens.
    ForcedThenLookup,
}

/// The answers of a batch, and their cost.
#[derive(Serialize, Deserialize)]
pub struct Answer {
    /// A row for each prompt.
    pub rows: Vec<Row>,
    /// The calls of the model for the first row; the prompt counts as one.
    pub calls: usize,
    /// The tokens of the first prompt.
    pub prompt_tokens: usize,
    /// The seconds up to the first token.
    pub prompt_seconds: f64,
    /// The seconds from the first token to the last.
    pub seconds: f64,
    /// The draft tokens of the first row; llama.cpp has none.
    #[serde(default)]
    pub drafts: DraftCounts,
    /// The peak of resident memory of the process so far, in bytes.
    pub peak: u64,
}

impl Answer {
    /// The tokens of all rows, ends of sequences included.
    pub fn tokens(&self) -> usize {
        self.rows.iter().map(|row| row.tokens).sum()
    }

    /// The tokens after the first of each row, which the seconds are about.
    pub fn steps(&self) -> usize {
        self.rows.iter().map(|row| row.tokens.saturating_sub(1)).sum()
    }
}

/// The answer to a prompt.
#[derive(Serialize, Deserialize)]
pub struct Row {
    /// The text.
    pub text: String,
    /// The number of tokens, the end of the sequence included.
    pub tokens: usize,
}

/// The line of an engine about a question.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
pub enum Reply {
    /// The answer.
    Answer(Answer),
    /// The engine cannot answer.
    Error {
        /// The reason.
        error: String,
    },
}

/// The first line of an engine, after it has loaded the model.
#[derive(Serialize, Deserialize)]
pub struct Hello {
    /// Its name, its version and how it was compiled.
    pub name: String,
    /// The peak of resident memory of the process so far, in bytes.
    pub peak: u64,
}

/// A running engine.
pub struct Engine {
    /// Its name, its version and how it was compiled.
    pub name: String,
    /// The peak of resident memory of the process while it loaded the model, in bytes.
    pub loaded: u64,
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Engine {
    /// burn-dfa with the model of a file.
    ///
    /// # Errors
    /// The model cannot be loaded.
    pub fn burn_dfa(model: &Path, threads: usize) -> Result<Self, Failure> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("--engine").arg("--model").arg(model).env("RAYON_NUM_THREADS", threads.to_string());
        Self::start(command)
    }

    /// llama.cpp with the model of a file, in a Python that has xllamacpp.
    ///
    /// # Errors
    /// Python lacks the package, or the model cannot be loaded.
    pub fn llama_cpp(python: &Path, model: &Path, threads: usize) -> Result<Self, Failure> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("quality/llama_cpp.py");
        let mut command = Command::new(python);
        command.arg(script).arg(model).arg(threads.to_string());
        Self::start(command)
    }

    fn start(mut command: Command) -> Result<Self, Failure> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (stdin, stdout) = child.stdin.take().zip(child.stdout.take()).ok_or("both are piped")?;
        let stdout = BufReader::new(stdout);
        let mut engine = Self { name: String::new(), loaded: 0, child, stdin, stdout };
        let Hello { name, peak } = serde_json::from_str(&engine.line()?)?;
        (engine.name, engine.loaded) = (name, peak);
        Ok(engine)
    }

    /// Answers a question. The inner error is the engine's own.
    ///
    /// # Errors
    /// The process has ended.
    pub fn ask(&mut self, question: &Question) -> Result<Result<Answer, String>, Failure> {
        writeln!(self.stdin, "{}", serde_json::to_string(question)?)?;
        Ok(match serde_json::from_str(&self.line()?)? {
            Reply::Answer(answer) => Ok(answer),
            Reply::Error { error } => Err(error),
        })
    }

    fn line(&mut self) -> Result<String, Failure> {
        let mut line = String::new();
        match self.stdout.read_line(&mut line)? {
            0 => Err("an engine ended; its messages are above".into()),
            _ => Ok(line),
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
