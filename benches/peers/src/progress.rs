//! The progress of the program: a bar on a terminal, else a line on standard error for each step.

use indicatif::{ProgressBar, ProgressStyle};

/// The progress with one vocabulary.
pub struct Progress {
    bar: ProgressBar,
    prefix: String,
}

impl Progress {
    /// Progress that is complete after `length` calls of [`Self::done`].
    pub fn new(prefix: &str, length: usize) -> Self {
        let bar = ProgressBar::new(length as u64);
        let style = ProgressStyle::with_template("{prefix} {elapsed} {bar:30} {percent} % {wide_msg}")
            .expect("a template");
        bar.set_style(style);
        bar.set_prefix(prefix.to_owned());
        Self { bar, prefix: prefix.to_owned() }
    }

    /// Reports the next step.
    pub fn begin(&self, what: &str) {
        if self.bar.is_hidden() {
            eprintln!("{} {:4} s  {what}", self.prefix, self.bar.elapsed().as_secs());
        } else {
            self.bar.set_message(what.to_owned());
        }
    }

    /// Counts one step as done.
    pub fn done(&self) {
        self.bar.inc(1);
    }

    /// Hides the bar while `work` prints lines.
    pub fn suspend<T>(&self, work: impl FnOnce() -> T) -> T {
        self.bar.suspend(work)
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
