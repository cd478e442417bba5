//! A server with one model: requests wait for the compilation of their constraint, then for a row
//! and for space in the arena.
//!
//! The simulation follows `burn-dfa-serve`. A thread pool compiles each constraint once. One queue
//! serves requests in order of arrival. Prompts are read in chunks between the steps, a step
//! computes all rows, and the host reads every few steps.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};

use super::costs::Costs;
use super::trace::{Arrival, Trace};

/// States of a page of the arena.
const PAGE: u32 = 32;

/// The configuration of a server.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub rows: u32,
    /// Seconds of a step with `rows` rows.
    pub step: f64,
    /// Steps between two reads of the host.
    pub sync_interval: u32,
    /// Tokens of prompts between two steps.
    pub prompt_chunk: u32,
    pub compile_threads: usize,
    /// Capacity of the arena in states; `None`: unlimited.
    pub arena: Option<u32>,
}

/// The result of a request, in seconds from its arrival.
#[derive(Clone, Copy, Debug)]
pub struct Served {
    /// Its index in the trace.
    pub request: usize,
    pub first_token: f64,
    pub latency: f64,
}

/// The totals of a replica.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    pub served: Vec<Served>,
    /// Seconds of work.
    pub busy: f64,
    /// Seconds of occupied rows.
    pub row_seconds: f64,
    /// Seconds of compiling threads.
    pub compiling: f64,
    /// The maximum number of states in the arena.
    pub arena_peak: u32,
    /// Requests that waited for space in the arena while a row was idle.
    pub arena_waits: usize,
}

/// A replica, simulated up to its own time.
pub struct Replica<'a> {
    trace: &'a Trace,
    costs: &'a Costs,
    shape: Shape,
    /// The time up to which the replica is simulated.
    now: f64,
    /// Requests whose constraints are being compiled, by time of completion and order of arrival.
    preparing: BinaryHeap<Reverse<(Seconds, usize)>>,
    /// Requests waiting for a row.
    waiting: VecDeque<usize>,
    rows: Vec<Row>,
    /// The time of completion of each compilation.
    compiled: HashMap<usize, f64>,
    /// The time at which each thread of the pool becomes free.
    threads: BinaryHeap<Reverse<Seconds>>,
    /// The constraints in the arena, with their numbers of rows.
    loaded: HashMap<usize, u32>,
    /// The number of states in the arena.
    states: u32,
    /// Requests that end at `now`.
    ending: usize,
    totals: Totals,
}

/// A request with a row.
struct Row {
    request: usize,
    /// Unread tokens of its prompt.
    unread: u32,
    /// Tokens of its answer; 0: its prompt is being read.
    written: u32,
    /// The time at which the host read its first token.
    first_seen: Option<f64>,
}

/// Seconds in a heap.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Seconds(f64);

impl Eq for Seconds {}

impl PartialOrd for Seconds {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Seconds {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl<'a> Replica<'a> {
    pub fn new(trace: &'a Trace, costs: &'a Costs, shape: Shape) -> Self {
        Self {
            trace,
            costs,
            shape,
            now: 0.0,
            preparing: BinaryHeap::new(),
            waiting: VecDeque::new(),
            rows: Vec::new(),
            compiled: HashMap::new(),
            threads: (0..shape.compile_threads).map(|_| Reverse(Seconds(0.0))).collect(),
            loaded: HashMap::new(),
            states: 0,
            ending: 0,
            totals: Totals::default(),
        }
    }

    /// The number of its requests at the time `at`, to which it was [advanced](Self::advance).
    pub fn outstanding(&self, at: f64) -> usize {
        let ending = if self.now > at { self.ending } else { 0 };
        self.preparing.len() + self.waiting.len() + self.rows.len() + ending
    }

    /// Accepts a request at its arrival.
    pub fn send(&mut self, request: usize) {
        let Arrival { at, constraint, .. } = self.trace.arrivals[request];
        let ready = match constraint {
            None => at,
            Some(constraint) => match self.compiled.get(&constraint) {
                Some(&compiled) => compiled.max(at),
                None => {
                    let states = f64::from(self.trace.constraints[constraint].states);
                    let seconds = self.costs.compile + self.costs.compile_state * states;
                    let Reverse(Seconds(free)) = self.threads.pop().expect("a thread of the pool");
                    let compiled = free.max(at) + seconds;
                    self.threads.push(Reverse(Seconds(compiled)));
                    self.totals.compiling += seconds;
                    self.compiled.insert(constraint, compiled);
                    compiled
                }
            },
        };
        self.preparing.push(Reverse((Seconds(ready), request)));
    }

    /// Simulates all turns that begin before `until`.
    pub fn advance(&mut self, until: f64) {
        while self.now < until {
            self.ending = 0;
            if self.rows.is_empty() && self.waiting.is_empty() {
                let Some(Reverse((Seconds(ready), _))) = self.preparing.peek() else { return };
                if *ready >= until {
                    return;
                }
                self.now = self.now.max(*ready);
            }
            self.turn();
        }
    }

    /// Simulates the rest after the end of the trace, and returns the totals.
    pub fn finish(mut self) -> Totals {
        self.advance(f64::INFINITY);
        self.totals
    }

    /// Begins requests, takes the steps up to the host's next read, and ends complete requests.
    fn turn(&mut self) {
        let began = self.now;
        self.begin();
        for _ in 0..self.shape.sync_interval {
            self.read_prompts();
            self.now += self.shape.step;
            for row in self.rows.iter_mut().filter(|row| row.written > 0) {
                row.written += 1;
            }
        }
        self.totals.busy += self.now - began;
        self.totals.row_seconds += (self.now - began) * self.rows.len() as f64;
        self.hand_out();
    }

    fn begin(&mut self) {
        while let Some(&Reverse((Seconds(ready), request))) = self.preparing.peek()
            && ready <= self.now
        {
            self.preparing.pop();
            self.waiting.push_back(request);
        }
        while self.rows.len() < self.shape.rows as usize
            && let Some(&request) = self.waiting.front()
        {
            let arrival = &self.trace.arrivals[request];
            if let Some(constraint) = arrival.constraint
                && !self.load(constraint)
            {
                self.totals.arena_waits += 1;
                return;
            }
            self.waiting.pop_front();
            self.now += self.costs.admit;
            self.rows.push(Row { request, unread: arrival.prompt, written: 0, first_seen: None });
        }
    }

    /// Loads a constraint into the arena, or shares it; false if there is no space.
    fn load(&mut self, constraint: usize) -> bool {
        let users = self.loaded.get(&constraint).copied().unwrap_or(0);
        if users == 0 {
            let states = self.states + pages(self.trace, constraint);
            // A constraint that never fits is accepted, because its server would refuse it and the
            // others continue.
            if self.states > 0 && self.shape.arena.is_some_and(|capacity| states > capacity) {
                return false;
            }
            self.states = states;
            self.totals.arena_peak = self.totals.arena_peak.max(states);
        }
        self.loaded.insert(constraint, users + 1);
        true
    }

    /// Reads one chunk of prompts before the next step; if no row is running, reads until a prompt
    /// is complete. A row with a complete prompt has its first token.
    fn read_prompts(&mut self) {
        loop {
            let mut left = self.shape.prompt_chunk;
            for row in self.rows.iter_mut().filter(|row| row.unread > 0) {
                let now = row.unread.min(left);
                row.unread -= now;
                left -= now;
                self.now += self.costs.prompt_token * f64::from(now);
                if row.unread == 0 {
                    row.written = 1;
                }
                if left == 0 {
                    break;
                }
            }
            if self.rows.iter().all(|row| row.unread == 0) || self.rows.iter().any(|row| row.written > 0) {
                return;
            }
        }
    }

    /// The host's read: notes first tokens, and releases the rows of complete answers.
    fn hand_out(&mut self) {
        let (trace, now) = (self.trace, self.now);
        for row in self.rows.iter_mut().filter(|row| row.written > 0) {
            row.first_seen.get_or_insert(now);
        }
        let is_complete = |row: &mut Row| row.written >= trace.arrivals[row.request].output;
        let ended: Vec<Row> = self.rows.extract_if(.., is_complete).collect();
        self.ending = ended.len();
        for Row { request, first_seen, .. } in ended {
            let arrival = &trace.arrivals[request];
            if let Some(constraint) = arrival.constraint {
                self.unload(constraint);
            }
            let first = first_seen.expect("it has a token");
            let served = Served { request, first_token: first - arrival.at, latency: now - arrival.at };
            self.totals.served.push(served);
        }
    }

    /// Releases the share of a constraint.
    fn unload(&mut self, constraint: usize) {
        let users = self.loaded.get_mut(&constraint).expect("its constraint is loaded");
        *users -= 1;
        if *users == 0 {
            self.loaded.remove(&constraint);
            self.states -= pages(self.trace, constraint);
        }
    }
}

/// The states of a constraint in the arena, in whole pages.
fn pages(trace: &Trace, constraint: usize) -> u32 {
    trace.constraints[constraint].states.div_ceil(PAGE).saturating_mul(PAGE)
}
