//! Medians and quantiles.

/// The quantiles that the tables give.
pub const QUANTILES: [(&str, f64); 5] =
    [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999), ("max", 1.0)];

/// The least of `values` that at least the fraction `quantile` of them do not exceed.
///
/// # Panics
/// Where there are no values.
pub fn quantile(values: &[f64], quantile: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let rank = (quantile * sorted.len() as f64).ceil() as usize;
    sorted[rank.clamp(1, sorted.len()) - 1]
}

/// The middle of `values`.
pub fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

/// The median over the runs of each step, of `[runs][steps]`.
pub fn medians(runs: &[Vec<f64>]) -> Vec<f64> {
    let steps = runs.first().map_or(0, Vec::len);
    (0..steps).map(|step| median(&runs.iter().map(|run| run[step]).collect::<Vec<_>>())).collect()
}
