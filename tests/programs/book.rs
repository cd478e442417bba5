//! The commands of the README and of the guide, run as they stand there.
//!
//! They run in a folder like a clone in which everything is built. Cargo's part of a command is
//! left out, and the embedded model stands in for models that would have to be downloaded.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use burn_dfa_testing::skip;
use serde_json::Value;

use super::text;

/// Commands that begin so are not run, and why.
const LEFT_OUT: [(&str, &str); 14] = [
    ("cargo add ", "changes another package"),
    ("cargo new ", "begins another package"),
    ("cargo bench ", "takes minutes; its own step of CI runs it once"),
    ("cargo build --release --features cli", "builds what the other commands use"),
    ("cargo run --release --features cli,remote-server ", "waits for clients: tests/remote"),
    ("cargo run --release --features remote ", "needs another machine: tests/remote"),
    ("cargo run --release --bin burn-dfa-serve", "waits for clients: see the requests below"),
    ("cargo run --release --features cuda ", "needs a GPU"),
    ("cargo run --release --features wgpu ", "needs a GPU"),
    ("cargo test", "runs this test"),
    ("BURN_DEVICE=cuda ", "needs a GPU"),
    ("python3 ", "installs packages, or writes a model of gigabytes: models/decoder/tests/random_model.rs"),
    ("scripts/gpu", "needs CUDA's compilers"),
    ("scripts/smollm2", "downloads a model"),
];

/// Commands that end with code 1, because the text does not match.
const MISMATCHES: [&str; 1] = ["2026-1"];

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The README and the pages of the guide.
fn pages() -> Vec<(String, String)> {
    let mut paths: Vec<PathBuf> = vec!["README.md".into()];
    for entry in std::fs::read_dir(repository().join("docs")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if name.ends_with(".md") {
            paths.push(Path::new("docs").join(name));
        }
    }
    paths.sort();
    let read = |path: &PathBuf| std::fs::read_to_string(repository().join(path)).unwrap();
    paths.iter().map(|path| (path.display().to_string(), read(path))).collect()
}

/// The blocks of a language on a page.
fn blocks<'a>(page: &'a str, language: &str) -> Vec<&'a str> {
    let fence = format!("\n```{language}\n");
    page.split(&fence).skip(1).map(|rest| rest.split_once("\n```").unwrap().0).collect()
}

/// The commands of a block: a line each, together with the lines that continue it.
fn commands(block: &str) -> Vec<String> {
    let mut commands: Vec<String> = Vec::new();
    for line in block.lines().filter(|line| !line.starts_with('#')) {
        match commands.last_mut() {
            Some(command) if command.ends_with('\\') => {
                command.pop();
                *command += line.trim_start();
            }
            // Within the quotes of the request of `curl`.
            Some(command) if command.matches('\'').count() % 2 == 1 => {
                *command += "\n";
                *command += line;
            }
            _ => commands.push(line.to_owned()),
        }
    }
    commands
}

/// A command without Cargo: `cargo run --release --example minimal -- --seed 3` is
/// `target/release/examples/minimal --seed 3`.
fn without_cargo(command: &str) -> String {
    let Some(command) = command.strip_prefix("cargo run ") else { return command.to_owned() };
    let (options, arguments) = command.split_once(" -- ").unwrap_or((command, ""));
    let mut options = options.split(' ');
    let mut program = None;
    while let Some(option) = options.next() {
        match option {
            "--example" => program = options.next().map(|name| format!("examples/{name}")),
            "--bin" => program = options.next().map(str::to_owned),
            _ => {}
        }
    }
    format!("target/release/{} {arguments}", program.expect("a program"))
}

/// A folder like a clone in which everything is built, with the files that the pages name.
struct Clone(PathBuf);

impl Clone {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("burn-dfa-book-{name}-{}", std::process::id()));
        let clone = Self(folder);
        let tests = std::env::current_exe().unwrap();
        let profile = tests.parent().and_then(Path::parent).unwrap();
        clone.link("target/release", profile);
        for path in ["models/tiny", "models/decoder", "examples"] {
            clone.link(path, &repository().join(path));
        }
        clone.link("person.json", &repository().join("models/tiny/schemas/person.json"));
        clone.link("tokenizer.json", &repository().join("models/tiny/tokenizer.json"));
        clone.link("SmolLM2-135M-Instruct", &repository().join("models/tiny"));
        let page = std::fs::read_to_string(repository().join("docs/command-line.md")).unwrap();
        let is_grammar = |block: &&&str| block.starts_with("root ::=");
        std::fs::write(clone.0.join("sum.gbnf"), blocks(&page, "text").iter().find(is_grammar).unwrap())
            .unwrap();
        clone
    }

    fn link(&self, path: &str, to: &Path) {
        let link = self.0.join(path);
        std::fs::create_dir_all(link.parent().unwrap()).unwrap();
        symlink(to, link).unwrap();
    }

    fn run(&self, command: &str) -> Output {
        Command::new("sh").args(["-c", command]).current_dir(&self.0).output().unwrap()
    }
}

impl Drop for Clone {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Whether the programs were built: they need the feature `cli`.
fn has_programs() -> bool {
    let built = option_env!("CARGO_BIN_EXE_burn-dfa").is_some();
    if !built {
        skip::skipped("the programs need the feature cli");
    }
    built
}

#[test]
fn commands_of_the_pages_run() {
    if !has_programs() {
        return;
    }
    let clone = Clone::new("commands");
    let mut failures = Vec::new();
    let mut ran = 0;
    for (page, content) in pages() {
        for command in blocks(&content, "sh").into_iter().flat_map(commands) {
            let is_left_out = LEFT_OUT.iter().any(|(start, _)| command.starts_with(start));
            if is_left_out || command.starts_with("curl ") {
                continue;
            }
            let program = without_cargo(&command)
                .replace("models/smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", "models/tiny")
                .replace("/tmp/qwen3", "models/tiny");
            let output = clone.run(&program);
            let is_mismatch = MISMATCHES.iter().any(|text| command.ends_with(text));
            if output.status.code() != Some(i32::from(is_mismatch)) {
                failures.push(format!("{page}: {command}\n{}", text(&output.stderr)));
            }
            ran += 1;
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(ran >= 15, "{ran} commands");
}

/// Blocks that show a command of the command line tool after `$`, and what it prints.
#[test]
fn outputs_on_the_pages_are_those_of_the_commands() {
    if !has_programs() {
        return;
    }
    let clone = Clone::new("outputs");
    std::fs::write(clone.0.join("list.gbnf"), "root ::= \"(\" item \")\"\n").unwrap();
    std::fs::write(clone.0.join("tag.json"), r#"{"format": {"type": "poem"}}"#).unwrap();
    let mut shown = 0;
    for (page, content) in pages() {
        for block in blocks(&content, "text") {
            let Some((command, expected)) =
                block.strip_prefix("$ burn-dfa ").and_then(|block| block.split_once('\n'))
            else {
                continue;
            };
            let output = clone.run(&format!("target/release/burn-dfa {command}"));
            let printed = text(&output.stdout) + &text(&output.stderr);
            assert_eq!(printed.trim_end(), expected, "{page}: {command}");
            shown += 1;
        }
    }
    assert!(shown >= 3, "{shown} outputs");
}

/// Sends the body of a request of `curl` to `address`, and returns the answer.
fn post(address: &str, command: &str) -> Value {
    let (_, body) = command.split_once("-d '").expect("a body");
    let body = body.strip_suffix('\'').expect("the end of a body");
    let (_, path) = command.split_once("127.0.0.1:8000").expect("an address");
    let path = path.split(' ').next().unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    let length = body.len();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
    );
    stream.write_all((head + body).as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{command}: {answer}");
    serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
}

#[test]
fn requests_of_the_pages_are_answered() {
    let server = Path::new("target/release/burn-dfa-serve");
    let clone = Clone::new("requests");
    if !clone.0.join(server).exists() {
        return skip::skipped("the server was not built");
    }
    let mut server = Command::new(clone.0.join(server))
        .args(["--port", "0"])
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut log = BufReader::new(server.stderr.take().unwrap()).lines();
    let line = log.find_map(|line| Some(line.unwrap().split_once("http://")?.1.to_owned())).unwrap();
    // Fields and colors follow.
    let address = line.split(|c: char| !c.is_ascii_digit() && !".:".contains(c)).next().unwrap();
    let mut contents = Vec::new();
    for (_, content) in pages() {
        for command in blocks(&content, "sh").into_iter().flat_map(commands) {
            if command.starts_with("curl ") {
                contents.push(post(address, &command)["choices"][0]["message"]["content"].clone());
            }
        }
    }
    server.kill().unwrap();
    server.wait().unwrap();
    let [Value::String(answer), Value::String(order)] = &contents[..] else { panic!("{contents:?}") };
    assert!(["yes", "no"].contains(&answer.as_str()), "{answer}");
    let order: Value = serde_json::from_str(order).unwrap();
    assert!(order["item"].is_string() && order["quantity"].is_i64(), "{order}");
}
