//! Figures with their bounds.

use serde_json::{Value, json};

/// The bound of a figure.
#[derive(Clone, Copy)]
pub enum Bound {
    /// No bound.
    None,
    /// A lower bound.
    Least(f64),
    /// An upper bound.
    Max(f64),
}

/// Figures, in their order.
#[derive(Default)]
pub struct Report(Vec<(String, f64, Bound)>);

impl Report {
    /// Adds a figure without a bound.
    pub fn add(&mut self, name: impl Into<String>, value: f64) {
        self.hold(name, value, Bound::None);
    }

    /// Adds a figure with a bound.
    pub fn hold(&mut self, name: impl Into<String>, value: f64, bound: Bound) {
        self.0.push((name.into(), value, bound));
    }

    /// The figures as a table.
    pub fn table(&self) -> String {
        let width = self.0.iter().map(|(name, ..)| name.chars().count()).max().unwrap_or(0);
        let line = |(name, value, bound): &(String, f64, Bound)| {
            let told = match bound {
                Bound::None => String::new(),
                Bound::Least(bound) => format!("   at least {bound}: {}", said(value >= bound)),
                Bound::Max(bound) => format!("   at most {bound}: {}", said(value <= bound)),
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

/// The quantile at this fraction.
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
