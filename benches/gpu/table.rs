//! Markdown tables.

use std::io::Write;

use burn::tensor::{DType, Device};

/// A Markdown table, printed row by row.
pub struct Table {
    columns: usize,
}

impl Table {
    /// Prints the title and the header.
    pub fn begin(title: &str, columns: &[&str]) -> Self {
        println!("\n### {title}\n");
        println!("| {} |", columns.join(" | "));
        println!("|{}", "---|".repeat(columns.len()));
        flush();
        Self { columns: columns.len() }
    }

    pub fn row(&self, values: &[String]) {
        assert_eq!(values.len(), self.columns, "a value for each column");
        println!("| {} |", values.join(" | "));
        flush();
    }
}

fn flush() {
    std::io::stdout().flush().expect("standard output");
}

pub fn microseconds(seconds: f64) -> String {
    format!("{:.1}", 1e6 * seconds)
}

/// A median with minimum and maximum.
pub fn ratio([median, least, greatest]: [f64; 3]) -> String {
    format!("**{median:.3}** ({least:.3}–{greatest:.3})")
}

pub fn dtype(dtype: DType) -> String {
    format!("{dtype:?}").to_lowercase()
}

/// The device's name, if a backend of this build reports it.
pub fn name_of(device: &Device) -> String {
    #[cfg(feature = "cube")]
    if let Some(identity) = device.identity() {
        return format!(": {}, kernels for `{}`", identity.name, identity.fingerprint);
    }
    let _ = device;
    String::new()
}
