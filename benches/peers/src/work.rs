//! The data that the processes of this program share: a folder with a vocabulary and cases.
//!
//! First masks and memory growth are measured in separate processes, so that one grammar cannot
//! affect the next. Such a process is this program with the arguments [`Part`]; it prints one line
//! of JSON.

use std::path::{Path, PathBuf};
use std::process::Command;

use burn_dfa::Vocabulary;
use clap::Args;
use serde_json::{Value, json};

use crate::cases::Case;
use crate::engines::Grammar;
use crate::tokens::Tokens;

/// The arguments of a process that another process of this program starts.
#[derive(Args)]
pub struct Part {
    /// The shared folder
    #[arg(long, hide = true)]
    pub folder: Option<PathBuf>,

    /// The engine
    #[arg(long, hide = true, default_value_t = 0)]
    pub engine: usize,

    /// The case of the first mask; without one, the process measures the growth of memory over all
    /// cases
    #[arg(long, hide = true)]
    pub case: Option<usize>,

    /// Whether to read texts of the case instead
    #[arg(long, hide = true)]
    pub texts: bool,

    /// The time limit in seconds
    #[arg(long, hide = true, default_value_t = 10.0)]
    pub patience: f64,
}

/// The shared folder, removed on drop.
pub struct Folder(PathBuf);

impl Folder {
    /// Writes the vocabulary and the grammars.
    pub fn new(tokens: &Tokens, cases: &[&Case]) -> Self {
        Self::of_grammars(tokens, &cases.iter().map(|case| &case.grammar).collect::<Vec<_>>())
    }

    /// Writes the vocabulary and grammars alone.
    pub fn of_grammars(tokens: &Tokens, grammars: &[&Grammar]) -> Self {
        let folder =
            std::env::temp_dir().join(format!("peers-{}-{}vocabulary", std::process::id(), tokens.prefix));
        std::fs::create_dir_all(&folder).expect("a folder for temporary files");
        tokens.vocabulary.save(folder.join("vocabulary")).expect("a vocabulary that can be written");
        let grammars = grammars.iter().map(|grammar| match grammar {
            Grammar::Regex(regex) => json!({ "regex": regex }),
            Grammar::Schema(schema) => json!({ "schema": schema }),
            Grammar::Tools { tag, lark } => json!({"tag": tag, "lark": lark}),
            Grammar::ContextFree { syntax, text, lark } => {
                json!({"syntax": syntax.name(), "text": text, "lark": lark})
            }
        });
        write(&folder.join("grammars.json"), &grammars.collect());
        write(&folder.join("eos.json"), &json!(tokens.eos));
        Self(folder)
    }

    /// Writes the cases of the memory measurement, each with texts.
    pub fn set_walks(&self, walks: &[(usize, &[Vec<u32>])]) {
        write(&self.0.join("walks.json"), &json!(walks));
    }

    /// Writes the texts to read.
    pub fn set_texts(&self, texts: &[&[u32]]) {
        write(&self.0.join("texts.json"), &json!(texts));
    }

    /// The line that a new process prints, for the engine and, for a first mask, the case.
    pub fn run(&self, engine: usize, case: Option<usize>, patience: f64) -> Result<Value, String> {
        self.output(self.command(engine, case, patience)?)
    }

    /// The line that a process prints after its engine has read texts of a case.
    pub fn run_texts(&self, engine: usize, case: usize, patience: f64) -> Result<Value, String> {
        let mut command = self.command(engine, Some(case), patience)?;
        command.arg("--texts");
        self.output(command)
    }

    fn command(&self, engine: usize, case: Option<usize>, patience: f64) -> Result<Command, String> {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut command = Command::new(program);
        command.arg("--folder").arg(&self.0).args(["--engine", &engine.to_string()]);
        command.args(["--patience", &patience.to_string()]);
        if let Some(case) = case {
            command.args(["--case", &case.to_string()]);
        }
        Ok(command)
    }

    fn output(&self, mut command: Command) -> Result<Value, String> {
        let output = command.output().map_err(|error| error.to_string())?;
        let line = output.stdout.rsplit(|&byte| byte == b'\n').find(|line| !line.is_empty());
        let value = line.and_then(|line| serde_json::from_slice(line).ok());
        value
            .filter(|_| output.status.success())
            .ok_or_else(|| format!("its process ends: {}", output.status))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn write(path: &Path, value: &Value) {
    std::fs::write(path, value.to_string()).expect("a folder for temporary files");
}

fn read(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).expect("a file of the folder");
    serde_json::from_str(&text).expect("JSON")
}

/// The vocabulary of a folder, without its tokenizer.
pub fn vocabulary(folder: &Path) -> Tokens {
    let vocabulary = Vocabulary::load(folder.join("vocabulary")).expect("a vocabulary");
    let eos = read(&folder.join("eos.json")).as_u64().expect("an id") as u32;
    Tokens::new("", "", vocabulary, eos, None).expect("an id of the vocabulary")
}

/// The grammars of a folder.
pub fn grammars(folder: &Path) -> Vec<Grammar> {
    let grammars = read(&folder.join("grammars.json"));
    let text = |grammar: &Value, kind: &str| grammar[kind].as_str().map(str::to_owned);
    let context_free = |grammar: &Value| {
        let syntax = text(grammar, "syntax")?.parse().expect("the name of a syntax");
        Some(Grammar::ContextFree { syntax, text: text(grammar, "text")?, lark: text(grammar, "lark") })
    };
    let grammar = |grammar: &Value| {
        let regex = text(grammar, "regex").map(Grammar::Regex);
        let schema = || text(grammar, "schema").map(Grammar::Schema);
        let tools = || Some(Grammar::Tools { tag: text(grammar, "tag")?, lark: text(grammar, "lark") });
        regex
            .or_else(schema)
            .or_else(tools)
            .or_else(|| context_free(grammar))
            .expect("a grammar of one of these kinds")
    };
    grammars.as_array().into_iter().flatten().map(grammar).collect()
}

/// The cases and texts of the memory measurement.
pub fn walks(folder: &Path) -> Vec<(usize, Vec<Vec<u32>>)> {
    let walk = |walk: &Value| (walk[0].as_u64().expect("a case") as usize, lists_of_ids(&walk[1]));
    read(&folder.join("walks.json")).as_array().into_iter().flatten().map(walk).collect()
}

/// The texts to read.
pub fn texts(folder: &Path) -> Vec<Vec<u32>> {
    lists_of_ids(&read(&folder.join("texts.json")))
}

fn lists_of_ids(lists: &Value) -> Vec<Vec<u32>> {
    let ids = |text: &Value| -> Vec<u32> {
        text.as_array().into_iter().flatten().filter_map(|id| Some(id.as_u64()? as u32)).collect()
    };
    lists.as_array().into_iter().flatten().map(ids).collect()
}
