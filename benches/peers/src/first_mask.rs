//! First masks: from the text of a grammar to a row of masked logits.
//!
//! Each first mask runs in a new process, which has compiled only the regex `a` and four small
//! grammars so far. They make the engine prepare all data that depends on the vocabulary alone. So
//! no cache of an engine contains this grammar, another grammar, or the strings, numbers and
//! formats of JSON.

use std::any::Any;
use std::hint::black_box;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use burn_dfa::constraint::Syntax;
use serde_json::{Value, json};

use crate::engines::{Compiled, Engine, Grammar};
use crate::statistics::median;
use crate::tokens::{Tokens, logits};
use crate::work::Folder;

/// The result of compiling a grammar and masking one row.
#[derive(Clone, Debug, Default)]
pub struct FirstMask {
    /// The median over the runs, in microseconds; `None` if the engine refuses the grammar.
    pub time: Option<f64>,
    /// The reason for a missing time.
    pub refusal: Option<String>,
    /// Bytes of the compiled grammar, as the engine reports them.
    pub bytes: Option<usize>,
    /// The states of its automaton, if it has one.
    pub states: Option<usize>,
}

/// The beginning of a refusal by time limit.
pub const TOO_LONG: &str = "no mask within";

/// The first mask of a case. Each run is a new process; a run longer than 0.2 s is not repeated.
pub fn measure(folder: &Folder, engine: usize, case: usize, runs: usize, patience: f64) -> FirstMask {
    let mut result = FirstMask::default();
    let mut times: Vec<f64> = Vec::new();
    for _ in 0..runs {
        let report =
            folder.run(engine, Some(case), patience).unwrap_or_else(|error| json!({"refusal": error}));
        if let Some(refusal) = report["refusal"].as_str() {
            return FirstMask { refusal: Some(refusal.to_owned()), ..FirstMask::default() };
        }
        let number = |name: &str| report[name].as_u64().map(|number| number as usize);
        (result.bytes, result.states) = (number("bytes"), number("states"));
        times.extend(report["time"].as_f64());
        if times.last().is_none_or(|&time| time > 2e5) {
            break;
        }
    }
    result.time = (!times.is_empty()).then(|| median(&times));
    result
}

/// The work of the process: prints the time, or the reason for a missing time.
pub fn print(engine: &dyn Engine, tokens: &Tokens, grammar: &Grammar, patience: f64) {
    prepare(engine, tokens);
    let logits = logits(tokens.vocab_size());
    give_up_after(patience);
    evict();
    let report = match first_mask(engine, grammar, &logits) {
        Ok((compiled, time)) => {
            json!({"time": time, "bytes": compiled.bytes(), "states": compiled.states()})
        }
        Err(refusal) => json!({ "refusal": refusal }),
    };
    say(&report);
}

/// Makes an engine prepare all data that depends on the vocabulary alone.
pub fn prepare(engine: &dyn Engine, tokens: &Tokens) {
    let logits = logits(tokens.vocab_size());
    for small in small() {
        let Ok(small) = compile(engine, &small) else { continue };
        let mut row = small.start(1, false);
        row.prepare(&logits, None);
        let _ = row.step();
    }
    engine.forget();
}

/// A regex, and context-free grammars of nested parentheses around a text: any text, printable
/// text, ASCII text, or words.
fn small() -> [Grammar; 5] {
    let nested = |text: &str| Grammar::ContextFree {
        syntax: Syntax::Gbnf,
        text: format!(r#"root ::= {text} | "\"(" root ")\"""#),
        lark: Some(format!(r#"start: /{text}/ | "\"(" start ")\"""#)),
    };
    let texts = [r#"[^"]+"#, r#"[^"\x00-\x1f]+"#, "[ !#-~]+", "[0-9A-Za-z]+"];
    let [any, printable, ascii, words] = texts.map(nested);
    [Grammar::Regex("a".to_owned()), any, printable, ascii, words]
}

/// Prints a report and ends the process, even if other threads still run.
pub fn say(report: &Value) -> ! {
    println!("{report}");
    std::process::exit(0)
}

/// Reports a timeout after `patience` seconds.
fn give_up_after(patience: f64) {
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_secs_f64(patience));
        say(&json!({"refusal": format!("{TOO_LONG} {patience} s")}))
    });
}

fn first_mask(
    engine: &dyn Engine,
    grammar: &Grammar,
    logits: &[f32],
) -> Result<(Box<dyn Compiled>, f64), String> {
    let began = Instant::now();
    let compiled = compile(engine, grammar)?;
    let compiling = began.elapsed();
    let mut row = compiled.start(1, false);
    row.prepare(logits, None);
    let began = Instant::now();
    row.step()?;
    let time = compiling + began.elapsed();
    black_box(row);
    Ok((compiled, time.as_secs_f64() * 1e6))
}

/// Compiles a grammar. A panic of the engine counts as a refusal.
pub fn compile(engine: &dyn Engine, grammar: &Grammar) -> Result<Box<dyn Compiled>, String> {
    catch(|| engine.compile(grammar))
}

/// The result of `work`. A panic of an engine becomes an error.
pub fn catch<T>(work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|panic| Err(format!("it panics: {}", message(panic.as_ref()))))
}

/// The message of a panic.
fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("nothing")
}

/// Evicts the processor's caches, as a model does between two requests.
fn evict() {
    black_box(vec![1_u8; 64 << 20]);
}
