//! Times on a device, and a time limit for the whole program.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use burn::tensor::{Device, Graph, capture};

/// Rounds per measurement; the median counts.
const ROUNDS: usize = 7;
/// The maximum number of runs in a round.
const MAX_RUNS: usize = 2000;

/// The time limit of all measurements.
pub struct Clock {
    began: Instant,
    /// After this number of seconds, no further measurement begins.
    pub max_seconds: Option<f64>,
    /// Runs only the smallest case of each kind, once.
    pub is_quick: bool,
}

impl Default for Clock {
    fn default() -> Self {
        Self { began: Instant::now(), max_seconds: None, is_quick: false }
    }
}

impl Clock {
    pub fn is_over(&self) -> bool {
        self.max_seconds.is_some_and(|max| self.began.elapsed().as_secs_f64() >= max)
    }

    /// The cases to measure: all, or only the first.
    pub fn cases<T>(&self, mut cases: Vec<T>) -> Vec<T> {
        if self.is_quick {
            cases.truncate(1);
        }
        cases
    }

    /// Measures each case. A case that panics prints a line and does not stop the others.
    pub fn each<T>(&self, cases: Vec<T>, name: impl Fn(&T) -> String, measure: impl Fn(&T)) {
        let count = cases.len();
        for (index, case) in cases.iter().enumerate() {
            if self.is_over() {
                return println!("\nOut of time: {} of {count} cases left out.", count - index);
            }
            if catch_unwind(AssertUnwindSafe(|| measure(case))).is_err() {
                println!("| {} | failed, see the log |", name(case));
            }
        }
    }

    /// A clock for the first of the `parts` remaining parts, which share the remaining time.
    pub fn share(&self, parts: usize) -> Self {
        let spent = self.began.elapsed().as_secs_f64();
        let max_seconds = self.max_seconds.map(|max| spent + (max - spent).max(0.0) / parts as f64);
        Self { max_seconds, ..*self }
    }
}

/// The seconds of `work`; the device is synchronized before and after.
pub fn seconds(device: &Device, work: impl FnOnce()) -> f64 {
    device.sync().expect("the device");
    let began = Instant::now();
    work();
    device.sync().expect("the device");
    began.elapsed().as_secs_f64()
}

/// A timed variant: takes a number of runs and returns their seconds.
pub type Variant<'a> = Box<dyn FnMut(usize) -> f64 + 'a>;

/// A variant that runs `work`.
pub fn variant<'a>(device: &Device, mut work: impl FnMut() + 'a) -> Variant<'a> {
    let device = device.clone();
    Box::new(move |runs| seconds(&device, || (0..runs).for_each(|_| work())))
}

/// The seconds per run of each variant, in every round.
pub struct Times<const N: usize>([Vec<f64>; N]);

/// Times `variants` in turns, so that load on the machine affects all alike. Each takes about
/// `round` seconds in a round. The first runs warm up.
pub fn in_turns<const N: usize>(clock: &Clock, round: f64, mut variants: [Variant<'_>; N]) -> Times<N> {
    let runs = variants.each_mut().map(|variant| {
        variant(1);
        let one = variant(1).max(1e-9);
        if clock.is_quick { 1 } else { ((round / one) as usize).clamp(1, MAX_RUNS) }
    });
    let mut times = Times(std::array::from_fn(|_| Vec::with_capacity(ROUNDS)));
    for round in 0..if clock.is_quick { 1 } else { ROUNDS } {
        for turn in 0..N {
            // The order rotates from round to round.
            let index = (turn + round) % N;
            times.0[index].push(variants[index](runs[index]) / runs[index] as f64);
        }
    }
    times
}

impl<const N: usize> Times<N> {
    /// The median of a variant, in seconds.
    pub fn median(&self, variant: usize) -> f64 {
        median(self.0[variant].clone())
    }

    /// The ratio of one variant to another over the rounds: median, minimum and maximum.
    pub fn ratio(&self, over: usize, under: usize) -> [f64; 3] {
        let mut ratios: Vec<f64> = self.0[over].iter().zip(&self.0[under]).map(|(a, b)| a / b).collect();
        ratios.sort_by(f64::total_cmp);
        [median(ratios.clone()), ratios[0], ratios[ratios.len() - 1]]
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    if values.len() % 2 == 1 { values[half] } else { (values[half - 1] + values[half]) / 2.0 }
}

/// Work that is recorded once and replayed; if the device cannot record, each replay runs the work
/// again.
pub struct Recorded<'a, T = ()> {
    graph: Graph<T, Box<dyn FnMut() -> T + 'a>>,
}

impl<'a, T> Recorded<'a, T> {
    /// `work` owns, borrows or returns all tensors that it reads and writes, and replaces none of
    /// the tensors that it keeps.
    pub fn new(device: &Device, work: impl FnMut() -> T + 'a) -> Self {
        Self { graph: capture(device, Box::new(work)) }
    }

    pub fn is_hardware(&self) -> bool {
        self.graph.is_hardware()
    }

    #[allow(unsafe_code)]
    pub fn replay(&mut self) {
        // SAFETY: the graph owns the closure and its output. They keep all recorded buffers alive.
        // The graph stays on its thread, which alone uses the device.
        unsafe { self.graph.replay() };
    }
}
