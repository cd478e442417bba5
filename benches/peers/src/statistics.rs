//! Medians and quantiles.

/// The quantiles that the tables give.
pub const QUANTILES: [(&str, f64); 5] =
    [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999), ("max", 1.0)];

/// The least of `values` that at least the fraction `quantile` of them do not exceed; `None` where there are so few
/// that a quantile below the maximum would be the maximum.
pub fn quantile(values: &[f64], quantile: f64) -> Option<f64> {
    let above = (values.len() as f64 * (1.0 - quantile) + 1e-9).floor() as usize;
    if values.is_empty() || (quantile < 1.0 && above == 0) {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    Some(sorted[sorted.len() - 1 - above])
}

/// The middle of `values`.
///
/// # Panics
/// Where there are no values.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted[(sorted.len() - 1) / 2]
}

/// The median over the runs of each step, of `[runs][steps]`.
pub fn medians(runs: &[Vec<f64>]) -> Vec<f64> {
    let steps = runs.first().map_or(0, Vec::len);
    (0..steps).map(|step| median(&runs.iter().map(|run| run[step]).collect::<Vec<_>>())).collect()
}
