//! How long things take on a device, and how long all of it may take.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use burn::tensor::{Device, Graph, capture};

/// Rounds of which the median is taken.
const ROUNDS: usize = 7;
/// Most runs in a round.
const MOST_RUNS: usize = 2000;

/// The time of all measurements.
pub struct Clock {
    began: Instant,
    /// After so many seconds nothing more is begun.
    pub most_seconds: Option<f64>,
    /// Only the smallest case of each kind, for a moment.
    pub is_quick: bool,
}

impl Default for Clock {
    fn default() -> Self {
        Self { began: Instant::now(), most_seconds: None, is_quick: false }
    }
}

impl Clock {
    pub fn is_over(&self) -> bool {
        self.most_seconds.is_some_and(|most| self.began.elapsed().as_secs_f64() >= most)
    }

    /// The cases to measure: all, or the first.
    pub fn cases<T>(&self, mut cases: Vec<T>) -> Vec<T> {
        if self.is_quick {
            cases.truncate(1);
        }
        cases
    }

    /// Measures each of the cases; one that fails leaves a line that says so.
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

    /// A clock for the first of so many parts that are left, which share the time.
    pub fn share(&self, parts: usize) -> Self {
        let spent = self.began.elapsed().as_secs_f64();
        let most_seconds = self.most_seconds.map(|most| spent + (most - spent).max(0.0) / parts as f64);
        Self { most_seconds, ..*self }
    }
}

/// Seconds of some runs, the device synchronised before and after.
pub fn seconds(device: &Device, work: impl FnOnce()) -> f64 {
    device.sync().expect("the device");
    let began = Instant::now();
    work();
    device.sync().expect("the device");
    began.elapsed().as_secs_f64()
}

/// A way to do something: given a number of runs, the seconds that they took.
pub type Way<'a> = Box<dyn FnMut(usize) -> f64 + 'a>;

/// A way that runs `work`.
pub fn way<'a>(device: &Device, mut work: impl FnMut() + 'a) -> Way<'a> {
    let device = device.clone();
    Box::new(move |runs| seconds(&device, || (0..runs).for_each(|_| work())))
}

/// The seconds of a run of each way, in every round.
pub struct Times<const N: usize>([Vec<f64>; N]);

/// Times `ways` in turns, so that all meet the same machine; one takes so many seconds in a round. The first runs warm up.
pub fn in_turns<const N: usize>(clock: &Clock, round: f64, mut ways: [Way<'_>; N]) -> Times<N> {
    let runs = ways.each_mut().map(|way| {
        way(1);
        let one = way(1).max(1e-9);
        if clock.is_quick { 1 } else { ((round / one) as usize).clamp(1, MOST_RUNS) }
    });
    let mut times = Times(std::array::from_fn(|_| Vec::with_capacity(ROUNDS)));
    for round in 0..if clock.is_quick { 1 } else { ROUNDS } {
        for turn in 0..N {
            // Who goes first changes from round to round.
            let index = (turn + round) % N;
            times.0[index].push(ways[index](runs[index]) / runs[index] as f64);
        }
    }
    times
}

impl<const N: usize> Times<N> {
    /// The median of a way, in seconds.
    pub fn median(&self, way: usize) -> f64 {
        median(self.0[way].clone())
    }

    /// The median over the rounds of one way over another, the least and the greatest.
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

/// Work that is recorded once, and replayed; where the device records nothing, it is done again.
pub struct Recorded<'a, T = ()> {
    graph: Graph<T, Box<dyn FnMut() -> T + 'a>>,
}

impl<'a, T> Recorded<'a, T> {
    /// `work` owns, borrows or returns all tensors that it reads and writes, and replaces none of those that it keeps.
    pub fn new(device: &Device, work: impl FnMut() -> T + 'a) -> Self {
        Self { graph: capture(device, Box::new(work)) }
    }

    pub fn is_hardware(&self) -> bool {
        self.graph.is_hardware()
    }

    #[allow(unsafe_code)]
    pub fn replay(&mut self) {
        // SAFETY: the graph owns the closure and its output, which keep what is read and written alive, in the buffers that it
        // was recorded with; it does not leave its thread, which alone uses the device.
        unsafe { self.graph.replay() };
    }
}
