//! A server with one model: requests wait for their constraint to be compiled, then for a row and room in the arena.
//!
//! The model of time is that of `burn-dfa-serve`. Constraints are compiled on a pool of threads, each once. One queue, first
//! come, first served. Prompts are read in pieces between the steps, a step computes all rows, and the host reads every few steps.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};

use super::costs::Costs;
use super::trace::{Arrival, Trace};

/// States of a page of the arena.
const PAGE: u32 = 32;

/// What a server is started with.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub rows: u32,
    /// Seconds of a step with so many rows.
    pub step: f64,
    /// Steps between two reads of the host.
    pub read_every: u32,
    /// Tokens of prompts between two steps.
    pub prompt_chunk: u32,
    pub compile_threads: usize,
    /// States that the arena holds; `None`: as many as are asked for.
    pub arena: Option<u32>,
}

/// What became of a request, in seconds from its arrival.
#[derive(Clone, Copy, Debug)]
pub struct Served {
    /// Its place in the trace.
    pub request: usize,
    pub first_token: f64,
    pub latency: f64,
}

/// What a replica did in all.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    pub served: Vec<Served>,
    /// Seconds in which it worked.
    pub busy: f64,
    /// Seconds of rows that had a request.
    pub row_seconds: f64,
    /// Seconds of threads that compiled.
    pub compiling: f64,
    /// The most states that lay in the arena.
    pub arena_peak: u32,
    /// Begins that waited for room in the arena while a row was idle.
    pub arena_waits: usize,
}

/// A replica at a moment of its own.
pub struct Replica<'a> {
    trace: &'a Trace,
    costs: &'a Costs,
    shape: Shape,
    /// Until when it is known what it does.
    now: f64,
    /// Requests whose constraints are being compiled: when they are ready, in which order they came.
    preparing: BinaryHeap<Reverse<(Seconds, usize)>>,
    /// Requests that wait for a row.
    waiting: VecDeque<usize>,
    rows: Vec<Row>,
    /// When each constraint is compiled.
    compiled: HashMap<usize, f64>,
    /// When each thread of the pool is free.
    threads: BinaryHeap<Reverse<Seconds>>,
    /// The constraints in the arena, with the rows that share them.
    loaded: HashMap<usize, u32>,
    /// States that they take.
    states: u32,
    /// Requests that end at `now`.
    ending: usize,
    totals: Totals,
}

/// A request that has a row.
struct Row {
    request: usize,
    /// Tokens of its prompt that are not read.
    unread: u32,
    /// Tokens of its answer; 0: its prompt is being read.
    written: u32,
    /// When the host read its first token.
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

    /// Requests that it has at the moment `at`, to which it was [advanced](Self::advance).
    pub fn outstanding(&self, at: f64) -> usize {
        let ending = if self.now > at { self.ending } else { 0 };
        self.preparing.len() + self.waiting.len() + self.rows.len() + ending
    }

    /// Takes a request in at its arrival.
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

    /// Does what it begins before the moment `until`.
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

    /// What is left of it at the end of the trace.
    pub fn finish(mut self) -> Totals {
        self.advance(f64::INFINITY);
        self.totals
    }

    /// Begins requests, takes the steps up to the host's next read, and ends those that are complete.
    fn turn(&mut self) {
        let began = self.now;
        self.begin();
        for _ in 0..self.shape.read_every {
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

    /// Takes room for a constraint, or a share of the room that it has; false where there is none.
    fn load(&mut self, constraint: usize) -> bool {
        let users = self.loaded.get(&constraint).copied().unwrap_or(0);
        if users == 0 {
            let states = self.states + pages(self.trace, constraint);
            // One that would not fit alone is let in, since its server would refuse it and the others go on.
            if self.states > 0 && self.shape.arena.is_some_and(|room| states > room) {
                return false;
            }
            self.states = states;
            self.totals.arena_peak = self.totals.arena_peak.max(states);
        }
        self.loaded.insert(constraint, users + 1);
        true
    }

    /// Reads of prompts what may be read before the next step; where no row would be held up, up to the end of one. Whose
    /// prompt is read has its first token.
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

    /// The host's read: first tokens are seen, and complete answers leave their rows.
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

    /// Gives the share of a constraint's room back.
    fn unload(&mut self, constraint: usize) {
        let users = self.loaded.get_mut(&constraint).expect("its constraint is loaded");
        *users -= 1;
        if *users == 0 {
            self.loaded.remove(&constraint);
            self.states -= pages(self.trace, constraint);
        }
    }
}

/// States that a constraint takes in the arena, in whole pages.
fn pages(trace: &Trace, constraint: usize) -> u32 {
    trace.constraints[constraint].states.div_ceil(PAGE).saturating_mul(PAGE)
}
