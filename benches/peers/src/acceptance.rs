//! Which texts an engine takes, and how far it comes with them in the time that it has.
//!
//! A mask may take an engine seconds, and nothing can stop it but the end of its process. So texts are read in a process
//! of its own first, which has a time limit over all texts of a grammar. What it did within that limit is measured.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use crate::engines::{Compiled, Engine, Grammar};
use crate::first_mask::{catch, compile, say};
use crate::tokens::{Tokens, logits};
use crate::work::Folder;

/// What became of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Accepted,
    Rejected,
    /// The time was over after so many steps of it.
    Late {
        steps: usize,
    },
}

impl Verdict {
    /// How many steps of a text of so many tokens can be measured: one for each token, and one after the last.
    pub fn steps(self, tokens: usize) -> usize {
        match self {
            Self::Accepted => tokens + 1,
            Self::Rejected => 0,
            Self::Late { steps } => steps,
        }
    }

    /// Whether it is open what would have become of the text.
    pub fn is_late(self) -> bool {
        matches!(self, Self::Late { .. })
    }

    fn to_json(self) -> Value {
        match self {
            Self::Accepted => json!(true),
            Self::Rejected => json!(false),
            Self::Late { steps } => json!(steps),
        }
    }

    fn of_json(value: &Value) -> Self {
        match value {
            Value::Bool(true) => Self::Accepted,
            Value::Number(steps) => Self::Late { steps: steps.as_u64().unwrap_or(0) as usize },
            _ => Self::Rejected,
        }
    }
}

/// What becomes of each of `texts`, which an engine may read for `patience` seconds in all.
pub fn verdicts(
    folder: &Folder,
    engine: usize,
    case: usize,
    texts: &[&[u32]],
    patience: f64,
) -> Vec<Verdict> {
    folder.set_texts(texts);
    let report = folder.run_texts(engine, case, patience);
    // A process that dies took none.
    let verdicts = report.as_ref().ok().and_then(Value::as_array);
    let verdict = |at: usize| match verdicts {
        Some(verdicts) => verdicts.get(at).map_or(Verdict::Late { steps: 0 }, Verdict::of_json),
        None => Verdict::Rejected,
    };
    (0..texts.len()).map(verdict).collect()
}

/// The part of the process of its own: prints what became of the texts until the time was over.
pub fn print(engine: &dyn Engine, tokens: &Tokens, grammar: &Grammar, texts: &[Vec<u32>], patience: f64) {
    let logits = logits(tokens.width());
    let Ok(grammar) = compile(engine, grammar) else { say(&json!(vec![false; texts.len()])) };
    let done = Arc::new(Mutex::new(Vec::new()));
    let steps = Arc::new(AtomicUsize::new(0));
    let shared = (done.clone(), steps.clone());
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_secs_f64(patience));
        let (done, steps) = shared;
        let mut report = done.lock().expect("no thread panics with the lock").clone();
        report.push(Verdict::Late { steps: steps.load(Ordering::Relaxed) }.to_json());
        say(&json!(report))
    });
    for text in texts {
        steps.store(0, Ordering::Relaxed);
        let accepted = catch(|| accepts(grammar.as_ref(), text, tokens.eos, &logits, &steps)) == Ok(true);
        let verdict = if accepted { Verdict::Accepted } else { Verdict::Rejected };
        done.lock().expect("no thread panics with the lock").push(verdict.to_json());
    }
    let report = done.lock().expect("no thread panics with the lock");
    say(&json!(*report))
}

/// Whether a grammar takes a text; counts its steps.
fn accepts(
    grammar: &dyn Compiled,
    text: &[u32],
    eos: u32,
    logits: &[f32],
    steps: &AtomicUsize,
) -> Result<bool, String> {
    let mut row = grammar.start(1, false);
    Ok((0..=text.len()).all(|step| {
        let chosen = step.checked_sub(1).map(|before| [text[before]]);
        row.prepare(logits, chosen.as_ref().map(<[u32; 1]>::as_slice));
        let allows = row.step().is_ok() && row.allows(text.get(step).copied().unwrap_or(eos));
        steps.store(step + 1, Ordering::Relaxed);
        allows
    }))
}
