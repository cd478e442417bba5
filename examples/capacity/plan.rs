//! Finds the rows and replicas that a trace needs.

use std::ops::RangeInclusive;

use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use super::costs::Costs;
use super::fleet::{Outcome, simulate};
use super::replica::Shape;
use super::trace::Trace;

/// The target, in seconds at the 99th percentile.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    pub first_token: Option<f64>,
    pub latency: Option<f64>,
}

impl Target {
    fn is_met(&self, outcome: &Outcome) -> bool {
        self.first_token.is_none_or(|max| outcome.first_token.p99 <= max)
            && self.latency.is_none_or(|max| outcome.latency.p99 <= max)
    }
}

/// The fewest replicas of `rows` rows that meet a target.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Plan {
    pub rows: u32,
    /// `None`: even the allowed maximum does not meet the target.
    pub replicas: Option<usize>,
    /// Their results, or the results of the allowed maximum.
    pub outcome: Outcome,
}

/// Plans for servers of each shape, with a number of replicas within a range.
pub fn plan(
    trace: &Trace,
    costs: &Costs,
    shapes: &[Shape],
    target: Target,
    replicas: &RangeInclusive<usize>,
) -> Vec<Plan> {
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} numbers of rows, {msg}");
    let bar = ProgressBar::new(shapes.len() as u64).with_style(style.expect("a template"));
    let plans = shapes.iter().map(|&shape| {
        let run = |replicas| {
            bar.set_message(format!("{} rows on {replicas} replicas", shape.rows));
            simulate(trace, costs, shape, replicas)
        };
        let (replicas, outcome) = fewest(run, target, replicas);
        bar.inc(1);
        Plan { rows: shape.rows, replicas, outcome }
    });
    let plans = plans.collect();
    bar.finish_and_clear();
    plans
}

/// Doubles the number of replicas until it suffices, then bisects down to the fewest.
fn fewest(
    run: impl Fn(usize) -> Outcome,
    target: Target,
    between: &RangeInclusive<usize>,
) -> (Option<usize>, Outcome) {
    let (least, max) = (*between.start(), *between.end());
    let (mut too_few, mut replicas) = (least - 1, least);
    let mut outcome = loop {
        let outcome = run(replicas);
        if target.is_met(&outcome) {
            break outcome;
        }
        if replicas == max {
            return (None, outcome);
        }
        too_few = replicas;
        replicas = (2 * replicas).min(max);
    };
    while replicas - too_few > 1 {
        let middle = (too_few + replicas) / 2;
        let between = run(middle);
        if target.is_met(&between) {
            (replicas, outcome) = (middle, between);
        } else {
            too_few = middle;
        }
    }
    (Some(replicas), outcome)
}
