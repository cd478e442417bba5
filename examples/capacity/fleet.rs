//! Several replicas behind a gateway.

use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::index::sample;
use serde::Serialize;

use super::costs::Costs;
use super::replica::{Replica, Served, Shape, Totals};
use super::trace::Trace;

/// The number of replicas that the gateway compares for a request, to choose the replica with the
/// fewest requests. Comparing all of a thousand would hardly be better (Mitzenmacher, *The power of
/// two choices in randomized load balancing*, 2001).
const CHOICES: usize = 8;

/// The results of a fleet on a trace.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Outcome {
    pub first_token: Quantiles,
    pub latency: Quantiles,
    /// The average fraction of the time until the last answer in which a replica worked.
    pub busy: f64,
    /// The fraction of occupied rows while their replica worked.
    pub occupancy: f64,
    /// The fraction of the time in which a thread of the pools compiled.
    pub compiling: f64,
    /// The maximum number of states in the arena of a replica.
    pub arena_peak: u32,
    /// Requests that waited for space in an arena while a row was idle.
    pub arena_waits: usize,
}

/// Seconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Quantiles {
    pub p50: f64,
    pub p99: f64,
}

impl Quantiles {
    /// The quantiles of at least one value.
    pub fn of(values: impl Iterator<Item = f64>) -> Self {
        let mut sorted: Vec<f64> = values.collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let at = |part: f64| sorted[((sorted.len() - 1) as f64 * part).round() as usize];
        Self { p50: at(0.5), p99: at(0.99) }
    }
}

/// Runs a trace on `replicas` replicas.
pub fn simulate(trace: &Trace, costs: &Costs, shape: Shape, replicas: usize) -> Outcome {
    let served = serve(trace, costs, shape, replicas);
    let end = |served: &Served| trace.arrivals[served.request].at + served.latency;
    let ends = served.iter().flat_map(|totals| totals.served.iter().map(end));
    let seconds = ends.fold(0.0, f64::max) - trace.arrivals.first().map_or(0.0, |first| first.at);
    let sum = |of: fn(&Totals) -> f64| served.iter().map(of).sum::<f64>();
    let answers = || served.iter().flat_map(|totals| &totals.served);
    let (busy, replicas) = (sum(|totals| totals.busy), replicas as f64);
    Outcome {
        first_token: Quantiles::of(answers().map(|served| served.first_token)),
        latency: Quantiles::of(answers().map(|served| served.latency)),
        busy: busy / (replicas * seconds),
        occupancy: sum(|totals| totals.row_seconds) / (busy * f64::from(shape.rows)),
        compiling: sum(|totals| totals.compiling) / (replicas * seconds * shape.compile_threads as f64),
        arena_peak: served.iter().map(|totals| totals.arena_peak).max().unwrap_or(0),
        arena_waits: served.iter().map(|totals| totals.arena_waits).sum(),
    }
}

/// Sends each request of a trace to one of the replicas; returns the totals of each.
pub fn serve(trace: &Trace, costs: &Costs, shape: Shape, replicas: usize) -> Vec<Totals> {
    let mut random = StdRng::seed_from_u64(1);
    let mut fleet: Vec<_> = (0..replicas).map(|_| Replica::new(trace, costs, shape)).collect();
    for (request, arrival) in trace.arrivals.iter().enumerate() {
        let chosen = sample(&mut random, replicas, CHOICES.min(replicas));
        let fewest = chosen.into_iter().min_by_key(|&replica| {
            fleet[replica].advance(arrival.at);
            fleet[replica].outstanding(arrival.at)
        });
        fleet[fewest.expect("a replica")].send(request);
    }
    fleet.into_iter().map(Replica::finish).collect()
}
