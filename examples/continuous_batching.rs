//! A small server loop: requests arrive one after the other, each with its own constraint or none,
//! and share a batch of eight rows. A finished request frees its row for the next, and no request
//! waits for another to finish.
//!
//!     cargo run --release --example continuous_batching
//!
//! Every output is checked against its constraint (a regex by the crate regex-automata, a schema by
//! the text of the value under it), and against the output of the request alone.

use burn_dfa::ErrorKind;
use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use burn::tensor::Device;
use burn_dfa::generation::{ContinuousBatch, GenerationConfig, Output, Request, generate};
use burn_dfa::{Capacity, CompiledConstraint, Constraint, Limits, TensorOptions, TokenId};
use burn_dfa_decoder::{Decoder, Pretrained};
use burn_dfa_tiny::generator::{Generator, Split};
use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};
use regex_automata::meta::Regex;

/// Continuous batching of constrained requests.
#[derive(Parser)]
struct Args {
    /// Total number of requests.
    #[arg(long, default_value_t = 200)]
    requests: u64,
    /// Rows of the batch.
    #[arg(long, default_value_t = 8)]
    rows: usize,
    /// Steps between two runs of the scheduler.
    #[arg(long, default_value_t = 4)]
    steps: usize,
    /// Milliseconds between two arrivals.
    #[arg(long, default_value_t = 10.0)]
    every: f64,
}

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Positions of a row, for prompt and output.
const SLOTS: usize = 160;
/// The longest record has about 50 tokens.
const MAX_TOKENS: usize = 96;
/// Space for the constraints of most rows.
const CAPACITY: Capacity = Capacity { constraints: 6, states: 12_000, classes: 320, ..Capacity::new() };

fn main() -> Result<()> {
    let args = Args::parse();
    let pretrained = burn_dfa_tiny::load(&Device::flex())?;
    let vocabulary = pretrained.vocabulary();
    let mut known = HashMap::new();
    let jobs = (0..args.requests).map(|index| Job::new(index, &pretrained, &mut known));
    let jobs = jobs.collect::<Result<Vec<_>>>()?;

    let tensors = TensorOptions { capacity: CAPACITY, ..TensorOptions::default() };
    let config = GenerationConfig::new().with_tensors(tensors);
    let mut batch = ContinuousBatch::new(pretrained.model(), vocabulary, args.rows, SLOTS, &config)?;
    let served = serve(&mut batch, &jobs, &args)?;
    assert_eq!(batch.free_space(), batch.arena_capacity(), "all space is free again");

    report(&served, &args);
    for (job, output) in jobs.iter().zip(&served.outputs) {
        job.check(output)?;
        let request = [job.request()];
        let alone = generate(pretrained.model(), vocabulary, &request, &GenerationConfig::new())?;
        assert_eq!(alone[0].tokens, output.tokens, "{}: {}", job.prompt, output.text());
    }
    println!("All outputs satisfy their constraints, and are what each request writes alone.");
    Ok(())
}

/// A request, and the check of its output.
struct Job {
    prompt: String,
    tokens: Vec<TokenId>,
    compiled: Option<CompiledConstraint>,
    oracle: Oracle,
}

enum Oracle {
    Schema(Constraint),
    Regex(Regex),
    Choice(Vec<String>),
    Anything,
}

impl Job {
    /// Constraints of five kinds in turn. Constraints in `known` are compiled once, and requests
    /// share them.
    fn new(
        index: u64,
        pretrained: &Pretrained,
        known: &mut HashMap<String, CompiledConstraint>,
    ) -> Result<Self> {
        let example = Generator::new(11).example(Split::HeldOut, index);
        let schema = burn_dfa_tiny::schema(example.kind.name()).ok_or("every kind has a schema")?;
        let (name, constraint, oracle) = match index % 5 {
            0 | 1 => {
                let constraint = schema.constraint()?;
                (schema.json.to_owned(), Some(constraint.clone()), Oracle::Schema(constraint))
            }
            2 | 3 if index.is_multiple_of(2) => {
                let code = format!("[A-Z]{{2}}-[0-9]{{{}}}", 3 + index % 7);
                let pattern =
                    if index % 5 == 2 { schema.regex.ok_or("every kind has a regex")? } else { &code };
                let oracle = Oracle::Regex(Regex::new(&format!(r"\A(?:{pattern})\z"))?);
                (pattern.to_owned(), Some(Constraint::regex(pattern)?), oracle)
            }
            2 | 3 => {
                let words = ["yes", "no", "perhaps", "ask again"].map(|word| format!("{word}, {index}"));
                (words.concat(), Some(Constraint::choice(&words)?), Oracle::Choice(words.to_vec()))
            }
            _ => (String::new(), None, Oracle::Anything),
        };
        let compiled = match (constraint, known.get(&name)) {
            (None, _) => None,
            (Some(_), Some(compiled)) => Some(compiled.clone()),
            (Some(constraint), None) => {
                let compiled =
                    CompiledConstraint::compile(&constraint, pretrained.vocabulary(), &Limits::default())?;
                known.insert(name, compiled.clone());
                Some(compiled)
            }
        };
        let tokens = pretrained.prompt(&example.prompt)?;
        Ok(Self { tokens, prompt: example.prompt, compiled, oracle })
    }

    fn request(&self) -> Request {
        Request { constraint: self.compiled.clone(), ..Request::new(self.tokens.clone(), MAX_TOKENS) }
    }

    fn check(&self, output: &Output) -> Result<()> {
        let text = output.text();
        let holds = match &self.oracle {
            Oracle::Schema(constraint) => {
                let written = constraint.json_text(&serde_json::from_str(&text)?, &Limits::default())?;
                written.is_some_and(|(written, is_member)| is_member && written == text)
            }
            Oracle::Regex(regex) => regex.is_match(&text),
            Oracle::Choice(words) => words.contains(&text),
            Oracle::Anything => true,
        };
        let is_whole = self.compiled.is_none() || output.is_complete();
        if holds && is_whole { Ok(()) } else { Err(format!("{}: {text}", self.prompt).into()) }
    }
}

/// The results of the jobs, in order.
struct Served {
    outputs: Vec<Output>,
    /// The times from arrival to end.
    latencies: Vec<Duration>,
    elapsed: Duration,
    /// How often a request waited for space for its constraint, while a row was idle.
    full: usize,
}

/// The scheduler: first come, first served.
fn serve(batch: &mut ContinuousBatch<Decoder>, jobs: &[Job], args: &Args) -> Result<Served> {
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} requests, {msg}")?;
    let bar = ProgressBar::new(jobs.len() as u64).with_style(style);
    let arrival = |job: usize| Duration::from_secs_f64(args.every * job as f64 / 1e3);
    let started = Instant::now();
    let mut queue = VecDeque::new();
    let mut arrived = 0;
    let mut in_row: Vec<usize> = vec![0; batch.rows()];
    let mut done: Vec<Option<(Output, Duration)>> = jobs.iter().map(|_| None).collect();
    let (mut tokens, mut full) = (0, 0);
    while bar.position() < jobs.len() as u64 {
        while arrived < jobs.len() && arrival(arrived) <= started.elapsed() {
            queue.push_back(arrived);
            arrived += 1;
        }
        let idle: Vec<usize> = batch.idle().collect();
        for row in idle {
            let Some(&job) = queue.front() else { break };
            match batch.admit(row, &jobs[job].request()) {
                Ok(()) => {
                    in_row[row] = job;
                    queue.pop_front();
                }
                Err(error) if error.kind() == ErrorKind::Full => {
                    full += 1;
                    break;
                }
                Err(error) => return Err(error.into()),
            }
        }
        if batch.idle().count() == batch.rows() {
            std::thread::sleep(arrival(arrived).saturating_sub(started.elapsed()));
            continue;
        }
        batch.step(args.steps, |piece| tokens += piece.tokens.len())?;
        let finished: Vec<usize> = batch.finished().collect();
        for row in finished {
            let job = in_row[row];
            done[job] = Some((batch.release(row)?, started.elapsed() - arrival(job)));
            bar.inc(1);
        }
        let rate = f64::from(tokens as u32) / started.elapsed().as_secs_f64();
        bar.set_message(format!("{rate:.0} tokens/s, {} waiting", queue.len()));
    }
    bar.finish();
    let (outputs, latencies) = done.into_iter().flatten().unzip();
    Ok(Served { outputs, latencies, elapsed: started.elapsed(), full })
}

fn report(served: &Served, args: &Args) {
    let tokens: usize = served.outputs.iter().map(|output| output.tokens.len()).sum();
    let seconds = served.elapsed.as_secs_f64();
    let mut sorted = served.latencies.clone();
    sorted.sort_unstable();
    let at = |part: f64| sorted[((sorted.len() - 1) as f64 * part).round() as usize].as_secs_f64() * 1e3;
    println!(
        "{} requests, one every {} ms, in {} rows: {tokens} tokens in {seconds:.2} s, {:.0} tokens/s",
        sorted.len(),
        args.every,
        args.rows,
        tokens as f64 / seconds
    );
    println!("latency from arrival: p50 {:.0} ms, p90 {:.0} ms, max {:.0} ms", at(0.5), at(0.9), at(1.0));
    println!("a request waited for space for its constraint {} times", served.full);
}
