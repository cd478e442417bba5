//! Traces: the arrivals of requests, and their sizes.

use std::collections::HashMap;
use std::io::{BufRead, Write};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::Result;

/// Requests in the order of their arrival.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    pub arrivals: Vec<Arrival>,
    /// The constraints of the requests.
    pub constraints: Vec<Constraint>,
}

/// One request.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// Seconds from the beginning.
    pub at: f64,
    /// Tokens of its prompt.
    pub prompt: u32,
    /// Tokens of its answer, end of sequence included.
    pub output: u32,
    /// Index in [`Trace::constraints`]; `None`: free text.
    pub constraint: Option<usize>,
}

/// A constraint, which many requests may share.
#[derive(Clone, Debug)]
pub struct Constraint {
    pub name: String,
    /// States of the compiled constraint.
    pub states: u32,
}

const HEADER: &str = "arrival,prompt,output,constraint,states";

impl Trace {
    /// Reads lines of `arrival,prompt,output[,constraint[,states]]` under a header: seconds,
    /// tokens, tokens, a name or nothing, and the states of the compiled constraint, `states` by
    /// default.
    pub fn read(lines: impl BufRead, states: u32) -> Result<Self> {
        let mut trace = Self::default();
        let mut names = HashMap::new();
        let mut last = 0.0;
        for (index, line) in lines.lines().enumerate() {
            let line = line?;
            if index == 0 {
                if line.trim() != HEADER && !HEADER.starts_with(line.trim()) {
                    return Err(format!("line 1: {line:?} is not the header {HEADER}").into());
                }
                continue;
            }
            let arrival = trace.parse(&line, &mut names, states);
            let arrival = arrival.map_err(|error| format!("line {}: {error}", index + 1))?;
            if arrival.at < last {
                return Err(format!("line {}: it arrives before the line above: sort them", index + 1).into());
            }
            last = arrival.at;
            trace.arrivals.push(arrival);
        }
        if trace.arrivals.is_empty() {
            return Err("no requests".into());
        }
        Ok(trace)
    }

    fn parse(&mut self, line: &str, names: &mut HashMap<String, usize>, states: u32) -> Result<Arrival> {
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        let [at, prompt, output, rest @ ..] = &fields[..] else {
            return Err(format!("{line:?} has fewer than three fields").into());
        };
        if rest.len() > 2 {
            return Err(format!("{line:?} has more than five fields").into());
        }
        let at: f64 = at.parse().map_err(|_| format!("{at:?} is not a number of seconds"))?;
        if !at.is_finite() || at < 0.0 {
            return Err(format!("an arrival at {at} s").into());
        }
        let tokens = |field: &str| match field.parse() {
            Ok(0) | Err(_) => Err(format!("{field:?} is not a number of tokens from 1")),
            Ok(count) => Ok(count),
        };
        let constraint = match rest {
            [] | [""] | ["", ""] => None,
            [name] => Some(self.constraint(names, name, states)?),
            [name, ""] => Some(self.constraint(names, name, states)?),
            [name, states] => {
                let states = states.parse().map_err(|_| format!("{states:?} is not a number of states"))?;
                Some(self.constraint(names, name, states)?)
            }
            _ => unreachable!("at most two fields"),
        };
        Ok(Arrival { at, prompt: tokens(prompt)?, output: tokens(output)?, constraint })
    }

    fn constraint(&mut self, names: &mut HashMap<String, usize>, name: &str, states: u32) -> Result<usize> {
        if name.is_empty() {
            return Err("states of a constraint without a name".into());
        }
        let index = *names.entry(name.to_owned()).or_insert(self.constraints.len());
        match self.constraints.get(index) {
            Some(known) if known.states != states => {
                Err(format!("{name:?} has {states} states here and {} above", known.states).into())
            }
            Some(_) => Ok(index),
            None => {
                self.constraints.push(Constraint { name: name.to_owned(), states });
                Ok(index)
            }
        }
    }

    /// Writes the format of [`read`](Self::read).
    pub fn write(&self, mut out: impl Write) -> Result<()> {
        writeln!(out, "{HEADER}")?;
        for arrival in &self.arrivals {
            write!(out, "{:.6},{},{},", arrival.at, arrival.prompt, arrival.output)?;
            match arrival.constraint.map(|index| &self.constraints[index]) {
                Some(constraint) => writeln!(out, "{},{}", constraint.name, constraint.states)?,
                None => writeln!(out, ",")?,
            }
        }
        Ok(())
    }

    /// The same requests without constraints.
    pub fn free(&self) -> Self {
        let arrivals = self.arrivals.iter().map(|arrival| Arrival { constraint: None, ..*arrival });
        Self { arrivals: arrivals.collect(), constraints: Vec::new() }
    }

    /// Seconds from the first arrival to the last.
    pub fn seconds(&self) -> f64 {
        match (self.arrivals.first(), self.arrivals.last()) {
            (Some(first), Some(last)) => last.at - first.at,
            _ => 0.0,
        }
    }

    /// The maximum number of arrivals within one second.
    pub fn peak(&self) -> usize {
        let mut first = 0;
        let within = self.arrivals.iter().enumerate().map(|(last, arrival)| {
            while arrival.at - self.arrivals[first].at >= 1.0 {
                first += 1;
            }
            last + 1 - first
        });
        within.max().unwrap_or(0)
    }
}

/// The parameters of a synthetic trace: arrivals as a Poisson process, log-normal lengths, and
/// constraints by Zipf's law, with few very frequent constraints.
#[derive(clap::Args, Clone, Debug)]
pub struct Synthetic {
    /// Requests per second.
    #[arg(long, default_value_t = 10.0, value_parser = super::positive)]
    rate: f64,
    /// Seconds.
    #[arg(long, default_value_t = 600.0, value_parser = super::positive)]
    seconds: f64,
    /// Median of the tokens of a prompt.
    #[arg(long, default_value_t = 200.0, value_parser = super::positive)]
    prompt: f64,
    /// Median of the tokens of an answer.
    #[arg(long, default_value_t = 100.0, value_parser = super::positive)]
    output: f64,
    /// Maximum number of tokens of a prompt, and of an answer.
    #[arg(long, default_value_t = 2048, value_parser = clap::value_parser!(u32).range(1..))]
    max_tokens: u32,
    /// The fraction of constrained requests.
    #[arg(long, default_value_t = 0.5)]
    constrained: f64,
    /// Distinct constraints.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    constraints: u32,
    /// Median of the states of a compiled constraint.
    #[arg(long, default_value_t = 400.0, value_parser = super::positive)]
    states: f64,
    /// The seed of the random choices.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// The standard deviation of the logarithm of a length.
const SPREAD: f64 = 0.8;
/// Maximum number of requests of a synthetic trace.
const MAX_REQUESTS: f64 = 1e7;

impl Synthetic {
    pub fn trace(&self) -> Result<Trace> {
        if !(0.0..=1.0).contains(&self.constrained) {
            return Err(format!("--constrained {}: a part of all is from 0 to 1", self.constrained).into());
        }
        if self.rate * self.seconds > MAX_REQUESTS {
            return Err(
                format!("more than {MAX_REQUESTS} requests: a lower --rate or fewer --seconds").into()
            );
        }
        let mut random = StdRng::seed_from_u64(self.seed);
        let constraints: Vec<_> = (0..self.constraints)
            .map(|index| Constraint {
                name: format!("constraint-{index}"),
                states: log_normal(&mut random, self.states, 1e6),
            })
            .collect();
        // The k-th constraint is 1/k times as frequent as the first.
        let mut shares: Vec<f64> = (1..=self.constraints).map(|rank| 1.0 / f64::from(rank)).collect();
        for index in 1..shares.len() {
            shares[index] += shares[index - 1];
        }
        let all = shares[shares.len() - 1];
        let mut arrivals = Vec::new();
        let mut at = 0.0;
        loop {
            at -= (1.0 - random.random::<f64>()).ln() / self.rate;
            if at > self.seconds && !arrivals.is_empty() {
                return Ok(Trace { arrivals, constraints });
            }
            let max_tokens = f64::from(self.max_tokens);
            let constraint = (random.random::<f64>() < self.constrained).then(|| {
                let drawn = random.random::<f64>() * all;
                shares.partition_point(|&share| share <= drawn).min(shares.len() - 1)
            });
            let prompt = log_normal(&mut random, self.prompt, max_tokens);
            let output = log_normal(&mut random, self.output, max_tokens);
            arrivals.push(Arrival { at, prompt, output, constraint });
        }
    }
}

/// A length of at least 1, by the method of Box and Muller.
fn log_normal(random: &mut StdRng, median: f64, max: f64) -> u32 {
    let radius = (-2.0 * (1.0 - random.random::<f64>()).ln()).sqrt();
    let normal = radius * (std::f64::consts::TAU * random.random::<f64>()).cos();
    (median * (SPREAD * normal).exp()).clamp(1.0, max) as u32
}
