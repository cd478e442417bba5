//! Which texts an engine accepts, and how far it reads them within a time limit.
//!
//! An engine may take seconds for a mask, and only the end of its process stops it. So an extra
//! process reads the texts first, with one time limit for all texts of a grammar. Only the steps
//! within that limit are measured.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use crate::engines::{Compiled, Engine, Grammar};
use crate::first_mask::{catch, compile, say};
use crate::tokens::{Tokens, logits};
use crate::work::Folder;

/// The result of reading a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Accepted,
    Rejected,
    /// The time limit was reached after `steps` steps.
    Late {
        steps: usize,
    },
}

impl Verdict {
    /// The number of measurable steps of a text with `tokens` tokens: one per token, and one after
    /// the last.
    pub fn steps(self, tokens: usize) -> usize {
        match self {
            Self::Accepted => tokens + 1,
            Self::Rejected => 0,
            Self::Late { steps } => steps,
        }
    }

    /// Whether the time limit was reached before a verdict.
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

/// The verdicts on `texts`, which an engine may read for `patience` seconds in total.
pub fn verdicts(
    folder: &Folder,
    engine: usize,
    case: usize,
    texts: &[&[u32]],
    patience: f64,
) -> Vec<Verdict> {
    folder.set_texts(texts);
    let report = folder.run_texts(engine, case, patience);
    // A process that dies accepts no text.
    let verdicts = report.as_ref().ok().and_then(Value::as_array);
    let verdict = |at: usize| match verdicts {
        Some(verdicts) => verdicts.get(at).map_or(Verdict::Late { steps: 0 }, Verdict::of_json),
        None => Verdict::Rejected,
    };
    (0..texts.len()).map(verdict).collect()
}

/// The work of the extra process: prints the verdicts reached within the time limit.
pub fn print(engine: &dyn Engine, tokens: &Tokens, grammar: &Grammar, texts: &[Vec<u32>], patience: f64) {
    let logits = logits(tokens.vocab_size());
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

/// Whether a grammar accepts a text; counts the steps.
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
