//! How many rows and replicas a trace needs.

use std::ops::RangeInclusive;

use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use super::costs::Costs;
use super::fleet::{Outcome, simulate};
use super::replica::Shape;
use super::trace::Trace;

/// What has to hold, in seconds at the 99th percentile.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    pub first_token: Option<f64>,
    pub latency: Option<f64>,
}

impl Target {
    fn is_met(&self, outcome: &Outcome) -> bool {
        self.first_token.is_none_or(|most| outcome.first_token.p99 <= most)
            && self.latency.is_none_or(|most| outcome.latency.p99 <= most)
    }
}

/// The fewest replicas of so many rows that meet a target.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Plan {
    pub rows: u32,
    /// `None`: the most that are allowed do not meet it.
    pub replicas: Option<usize>,
    /// What they do, or the most that are allowed.
    pub outcome: Outcome,
}

/// Plans for servers of each shape, with a number of replicas between two.
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

/// Doubles the replicas until they suffice, then halves the distance to those that did not.
fn fewest(
    run: impl Fn(usize) -> Outcome,
    target: Target,
    between: &RangeInclusive<usize>,
) -> (Option<usize>, Outcome) {
    let (least, most) = (*between.start(), *between.end());
    let (mut too_few, mut replicas) = (least - 1, least);
    let mut outcome = loop {
        let outcome = run(replicas);
        if target.is_met(&outcome) {
            break outcome;
        }
        if replicas == most {
            return (None, outcome);
        }
        too_few = replicas;
        replicas = (2 * replicas).min(most);
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
