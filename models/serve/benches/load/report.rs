//! Figures with the bars that they are held against.

use serde_json::{Value, json};

/// What a figure is held against.
#[derive(Clone, Copy)]
pub enum Bar {
    /// Nothing.
    None,
    /// It is to be this at least.
    Least(f64),
    /// It is to be this at most.
    Most(f64),
}

/// Figures, in their order.
#[derive(Default)]
pub struct Report(Vec<(String, f64, Bar)>);

impl Report {
    /// Adds a figure without a bar.
    pub fn add(&mut self, name: impl Into<String>, value: f64) {
        self.hold(name, value, Bar::None);
    }

    /// Adds a figure that is held against a bar.
    pub fn hold(&mut self, name: impl Into<String>, value: f64, bar: Bar) {
        self.0.push((name.into(), value, bar));
    }

    /// The figures as a table.
    pub fn table(&self) -> String {
        let width = self.0.iter().map(|(name, ..)| name.chars().count()).max().unwrap_or(0);
        let line = |(name, value, bar): &(String, f64, Bar)| {
            let told = match bar {
                Bar::None => String::new(),
                Bar::Least(bar) => format!("   at least {bar}: {}", said(value >= bar)),
                Bar::Most(bar) => format!("   at most {bar}: {}", said(value <= bar)),
            };
            let number = if value.fract() == 0.0 { format!("{value:.0}") } else { format!("{value:.3}") };
            format!("{name:width$} {number:>12}{told}\n")
        };
        self.0.iter().map(line).collect()
    }

    /// The figures as an object.
    pub fn json(&self) -> Value {
        self.0.iter().map(|(name, value, _)| (name.clone(), json!(value))).collect()
    }
}

fn said(holds: bool) -> &'static str {
    if holds { "yes" } else { "no" }
}

/// The value that this part of all is below.
pub fn quantile(values: &[f64], part: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        len => sorted[((len - 1) as f64 * part).round() as usize],
    }
}

/// The median.
pub fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}
