//! The progress of a measurement: a bar on a terminal, else a line on standard error for each part.

use std::fmt::Write;
use std::time::Duration;

use indicatif::{HumanDuration, ProgressBar, ProgressState, ProgressStyle};

/// The progress of some steps.
pub struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// Progress that is complete after a number of steps.
    pub fn new(steps: usize) -> Self {
        let style = ProgressStyle::with_template("{bar:30} {pos} of {len}, {left}: {msg}")
            .expect("a template")
            .with_key("left", |state: &ProgressState, text: &mut dyn Write| {
                let _ = text.write_str(&left(state.elapsed(), state.pos(), state.len()));
            });
        Self { bar: ProgressBar::new(steps as u64).with_style(style) }
    }

    /// Names the part that runs next.
    pub fn begin(&self, part: &str) {
        if self.bar.is_hidden() {
            let (done, all) = (self.bar.position(), self.bar.length());
            eprintln!("{done} of {}, {}: {part}", all.unwrap_or(0), left(self.bar.elapsed(), done, all));
        } else {
            self.bar.set_message(part.to_owned());
        }
    }

    /// Counts steps as done.
    pub fn advance(&self, steps: usize) {
        self.bar.inc(steps as u64);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// The time left in words, if the steps left take as long as the steps done.
fn left(elapsed: Duration, done: u64, all: Option<u64>) -> String {
    match all.unwrap_or(0).checked_sub(done) {
        Some(steps) if done > 0 => {
            format!("{} left", HumanDuration(elapsed.mul_f64(steps as f64 / done as f64)))
        }
        _ => "time left unknown".to_owned(),
    }
}
