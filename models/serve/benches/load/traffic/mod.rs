//! Clients that ask for all kinds of answers at once, check each, and sometimes disconnect.
//!
//! `requests` makes the requests, `judge` checks the answers, `client` sends and receives.

pub mod client;
pub mod judge;
pub mod requests;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::json;

use client::{Client, Disconnect};
use judge::Answer;
use requests::{KINDS, LoadRequest};

/// The endpoint of most requests.
pub const CHAT: &str = "/v1/chat/completions";
/// Number of faults that are printed in full.
const TOLD: usize = 8;

/// The results of the requests.
#[derive(Default)]
pub struct Tally {
    /// Right answers by their kind.
    pub right: BTreeMap<&'static str, u64>,
    /// Requests whose client went away.
    pub left: u64,
    /// Wrong answers, failed requests and broken connections, all of them.
    pub wrong: u64,
    /// The first faults.
    pub faults: Vec<String>,
    /// Tokens of right answers.
    pub tokens: u64,
    /// From the request to the end of its answer.
    pub latency: Times,
    /// To the first text of a stream.
    pub first_token: Times,
    /// Between two events of a stream.
    pub between: Times,
}

impl Tally {
    /// Right answers.
    pub fn answered(&self) -> u64 {
        self.right.values().sum()
    }
}

/// Times, counted in steps of one percent, so that memory stays constant.
#[derive(Default)]
pub struct Times(BTreeMap<u16, u64>);

impl Times {
    fn add(&mut self, time: Duration) {
        let micros = (time.as_secs_f64() * 1e6).max(1.0);
        *self.0.entry((micros.ln() / 1.01f64.ln()) as u16).or_default() += 1;
    }

    /// The quantile at this fraction, in milliseconds.
    pub fn quantile(&self, part: f64) -> f64 {
        let all: u64 = self.0.values().sum();
        let mut below = 0;
        let found = self.0.iter().find(|(_, count)| {
            below += **count;
            below as f64 >= all as f64 * part
        });
        found.map_or(f64::NAN, |(&step, _)| 1.01f64.powf(f64::from(step) + 0.5) / 1e3)
    }
}

/// Asks with several clients at once for a time; one request in ten is abandoned. `watch` is called
/// periodically.
pub fn run(
    address: SocketAddr,
    clients: u64,
    time: Duration,
    seed: u64,
    mut watch: impl FnMut(Duration, &Tally),
) -> Tally {
    let tally = Mutex::new(Tally::default());
    let started = Instant::now();
    std::thread::scope(|scope| {
        for client in 0..clients {
            let tally = &tally;
            scope.spawn(move || {
                let mut random = StdRng::seed_from_u64(seed ^ client << 32);
                let mut client = Client::new(address);
                while started.elapsed() < time {
                    ask(&mut client, &mut random, tally);
                }
            });
        }
        while started.elapsed() < time {
            std::thread::sleep(Duration::from_millis(200));
            watch(started.elapsed(), &tally.lock().expect("nobody panics with it"));
        }
    });
    tally.into_inner().expect("nobody panics with it")
}

/// One request and its check.
fn ask(client: &mut Client, random: &mut StdRng, tally: &Mutex<Tally>) {
    let LoadRequest { kind, mut body, expected } = requests::request(random);
    let streams = random.random_bool(0.5);
    if streams {
        body["stream"] = json!(true);
        body["stream_options"] = json!({"include_usage": true});
    }
    let text = body.to_string();
    let fault = |error: String| format!("{}: {error}\n  of {text}", KINDS[kind]);
    if random.random_bool(0.1) {
        let disconnect = match streams {
            true => Disconnect::Events(random.random_range(1..20)),
            false => Disconnect::After(Duration::from_millis(random.random_range(0..200))),
        };
        let left = client.ask_and_disconnect(CHAT, &text, disconnect);
        let mut tally = tally.lock().expect("nobody panics with it");
        tally.left += 1;
        if let Err(error) = left {
            tally.add_fault(fault(error.to_string()));
        }
        return;
    }
    let reply = client.ask("POST", CHAT, &text).map_err(|error| error.to_string());
    let judged = reply.and_then(|reply| {
        let answer = Answer::of(&reply)?;
        answer.check(&expected)?;
        Ok((reply, answer.tokens))
    });
    let mut tally = tally.lock().expect("nobody panics with it");
    match judged {
        Err(error) => tally.add_fault(fault(error)),
        Ok((reply, tokens)) => {
            *tally.right.entry(KINDS[kind]).or_default() += 1;
            tally.tokens += tokens;
            tally.latency.add(reply.total);
            let times = token_times(&reply);
            if let Some(&first) = times.first() {
                tally.first_token.add(first);
            }
            times.windows(2).for_each(|pair| tally.between.add(pair[1] - pair[0]));
        }
    }
}

impl Tally {
    fn add_fault(&mut self, fault: String) {
        self.wrong += 1;
        if self.faults.len() < TOLD {
            self.faults.push(fault);
        }
    }
}

/// The times of the events of a stream with text.
pub fn token_times(reply: &client::Reply) -> Vec<Duration> {
    // The first event has the role, the last ones have the finish reason and the usage.
    let has_text = |event: &str| {
        let is_text = |name| event.contains(name) && !event.contains("\"role\"");
        is_text("\"content\":\"") || is_text("\"arguments\":\"")
    };
    reply.events.iter().filter(|(_, event)| has_text(event)).map(|(time, _)| *time).collect()
}
