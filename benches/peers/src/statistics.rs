//! Medians and quantiles.

/// The quantiles in the tables.
pub const QUANTILES: [(&str, f64); 5] =
    [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999), ("max", 1.0)];

/// The smallest of `values` that is at least as large as the fraction `quantile` of them; `None` if
/// there are so few values that a quantile below the maximum equals the maximum.
pub fn quantile(values: &[f64], quantile: f64) -> Option<f64> {
    let above = (values.len() as f64 * (1.0 - quantile) + 1e-9).floor() as usize;
    if values.is_empty() || (quantile < 1.0 && above == 0) {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    Some(sorted[sorted.len() - 1 - above])
}

/// The median of `values`; the lower one of two.
///
/// # Panics
/// If `values` is empty.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted[(sorted.len() - 1) / 2]
}

/// The median of each step over the runs, for `[runs][steps]`.
pub fn medians(runs: &[Vec<f64>]) -> Vec<f64> {
    let steps = runs.first().map_or(0, Vec::len);
    (0..steps).map(|step| median(&runs.iter().map(|run| run[step]).collect::<Vec<_>>())).collect()
}
