//! Computes the rows, the space for constraints and the replicas that a stream of requests needs.
//!
//! A trace lists the arrivals and sizes of requests, and the costs give the time of a model. The
//! example plays the arrivals against simulated servers, and finds the fewest that answer in time:
//!
//!     cargo run --release --example capacity -- trace --rate 20 > trace.csv
//!     cargo run --release --example capacity -- measure > costs.json
//!     cargo run --release --example capacity -- plan trace.csv --costs costs.json \
//!       --first-token 0.5 --latency 5
//!
//! Without `--costs` it uses the embedded model, as measured on two cores of a CPU.

mod costs;
mod estimate;
mod fleet;
mod measure;
mod plan;
mod replay;
mod replica;
mod trace;

use std::fmt;
use std::fs::File;
use std::io::{BufReader, BufWriter, stdout};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use burn::tensor::FloatDType;
use burn_dfa::cli::Backend;
use burn_dfa_decoder::Pretrained;
use clap::{Args, Parser, Subcommand};

use costs::Costs;
use estimate::Estimate;
use fleet::simulate;
use measure::Measured;
use plan::{Plan, Target, plan};
use replay::replay;
use replica::Shape;
use trace::{Synthetic, Trace};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Rows, space for constraints and replicas that a stream of requests needs.
#[derive(Parser)]
#[command(name = "capacity")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Generate a synthetic trace: CSV on standard output.
    Trace(Synthetic),
    /// Measure the costs of a model on a local device: JSON on standard output.
    Measure {
        #[command(flatten)]
        model: ModelArgs,
        #[command(flatten)]
        measured: Measured,
    },
    /// Estimate the costs of a model on an unavailable device: JSON on standard output.
    Estimate {
        /// The costs of the host: JSON as written by `measure`. Default: as measured with the
        /// embedded model.
        #[arg(long, value_name = "FILE")]
        host: Option<PathBuf>,
        #[command(flatten)]
        estimate: Estimate,
    },
    /// Play a trace against a model in real time, and compare its latencies with the simulation.
    /// Every answer is free text.
    Replay {
        #[command(flatten)]
        trace: TraceArgs,
        #[command(flatten)]
        model: ModelArgs,
        #[command(flatten)]
        server: ServerArgs,
        /// Rows of the batch; the costs must include this number.
        #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=4096))]
        rows: u32,
        /// Tokens of a row, prompt and answer.
        #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..))]
        slots: u32,
    },
    /// Find the fewest replicas that answer a trace in time, for each number of rows. The exit code
    /// is 1 if there are none.
    Plan(PlanArgs),
}

/// A model on a device.
#[derive(Args)]
struct ModelArgs {
    /// A Hugging Face folder or a GGUF file; without it, the embedded model.
    #[arg(long, value_name = "PATH")]
    model: Option<PathBuf>,
    /// The device of the model, as in the generation program.
    #[arg(long, value_name = "DEVICE", default_value = "flex")]
    device: Backend,
}

/// The trace and the costs.
#[derive(Args)]
struct TraceArgs {
    /// CSV with the header `arrival,prompt,output,constraint,states`: seconds, tokens, tokens, a
    /// name or nothing, states of the compiled constraint. The last two columns are optional.
    trace: PathBuf,
    /// States of constraints without a number of states in the trace.
    #[arg(long, default_value_t = 400)]
    states: u32,
    /// The costs of a replica: JSON as written by `measure`.
    #[arg(long, value_name = "FILE")]
    costs: Option<PathBuf>,
}

/// The configuration of each server.
#[derive(Args)]
struct ServerArgs {
    /// Capacity of a replica's arena in states. Default: unlimited; the plan reports the peak.
    #[arg(long)]
    arena_states: Option<u32>,
    /// Steps between two reads of the host.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=4096))]
    sync_interval: u32,
    /// Tokens of prompts between two steps.
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..))]
    prompt_chunk: u32,
    /// Compiler threads of each replica.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=1024))]
    compile_threads: u32,
}

#[derive(Args)]
struct PlanArgs {
    #[command(flatten)]
    trace: TraceArgs,
    #[command(flatten)]
    server: ServerArgs,
    /// Maximum seconds to the first token for 99 of 100 requests.
    #[arg(long, value_parser = positive)]
    first_token: Option<f64>,
    /// Maximum seconds to the last token for 99 of 100 requests.
    #[arg(long, value_parser = positive, required_unless_present = "first_token")]
    latency: Option<f64>,
    /// Minimum number of replicas, the start of the search.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=65_536))]
    min_replicas: u64,
    /// Maximum number of replicas.
    #[arg(long, default_value_t = 1024, value_parser = clap::value_parser!(u64).range(1..=65_536))]
    max_replicas: u64,
    /// Plan only for batches of this number of rows. Default: all numbers in the costs.
    #[arg(long)]
    rows: Option<u32>,
    /// Print one line of JSON per number of rows instead of a table.
    #[arg(long)]
    json: bool,
}

fn positive(text: &str) -> std::result::Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if value.is_finite() && value > 0.0 { Ok(value) } else { Err("a number above 0".to_owned()) }
}

fn main() -> ExitCode {
    run(&Cli::parse()).unwrap_or_else(|error| {
        eprintln!("error: {error}");
        ExitCode::from(2)
    })
}

fn run(cli: &Cli) -> Result<ExitCode> {
    match &cli.command {
        Command::Trace(synthetic) => synthetic.trace()?.write(BufWriter::new(stdout().lock()))?,
        Command::Measure { model, measured } => {
            let costs = measured.costs(&model.load()?, model.device == Backend::Flex, model.to_string())?;
            println!("{}", serde_json::to_string_pretty(&costs)?);
        }
        Command::Estimate { host, estimate } => {
            println!("{}", serde_json::to_string_pretty(&estimate.costs(&known(host.as_deref())?)?)?);
        }
        Command::Replay { trace, model, server, rows, slots } => {
            let (trace, costs) = trace.read()?;
            let shape = server.shape(&costs, *rows)?;
            let [first_token, latency] = replay(&model.load()?, &trace, shape, *slots as usize)?;
            let simulated = simulate(&trace.free(), &costs, shape, 1);
            println!("{:>12} {:>17} {:>17}", "seconds", "first token p50/99", "latency p50/99");
            for (name, first, last) in
                [("measured", first_token, latency), ("simulated", simulated.first_token, simulated.latency)]
            {
                println!(
                    "{name:>12} {:>9.3} {:>8.3} {:>8.3} {:>8.3}",
                    first.p50, first.p99, last.p50, last.p99
                );
            }
        }
        Command::Plan(args) => return args.run(),
    }
    Ok(ExitCode::SUCCESS)
}

/// Costs of a file, else of the embedded model.
fn known(file: Option<&Path>) -> Result<Costs> {
    file.map_or_else(|| Ok(Costs::embedded()), Costs::read)
}

impl ModelArgs {
    fn load(&self) -> Result<Pretrained> {
        let device = self.device.open()?;
        match &self.model {
            Some(folder) => Ok(Pretrained::load(folder, FloatDType::F32, &device)?),
            None => Ok(burn_dfa_tiny::load(&device)?),
        }
    }
}

impl fmt::Display for ModelArgs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.model {
            Some(folder) => write!(f, "{} on {}", folder.display(), self.device),
            None => write!(f, "the embedded model on {}", self.device),
        }
    }
}

impl TraceArgs {
    fn read(&self) -> Result<(Trace, Costs)> {
        let named = |error| format!("{}: {error}", self.trace.display());
        let file = File::open(&self.trace).map_err(|error| named(error.into()))?;
        let trace = Trace::read(BufReader::new(file), self.states).map_err(named)?;
        Ok((trace, known(self.costs.as_deref())?))
    }
}

impl ServerArgs {
    /// A server of `rows` rows; the costs must include this number.
    fn shape(&self, costs: &Costs, rows: u32) -> Result<Shape> {
        let step = costs.step.iter().find(|step| step.0 == rows);
        let (_, step) = *step.ok_or_else(|| {
            let known: Vec<String> = costs.step.iter().map(|(rows, _)| rows.to_string()).collect();
            format!(
                "the costs are of batches of {} rows, not of {rows}: take one of these, or measure",
                known.join(", ")
            )
        })?;
        Ok(Shape {
            rows,
            step,
            sync_interval: self.sync_interval,
            prompt_chunk: self.prompt_chunk,
            compile_threads: self.compile_threads as usize,
            arena: self.arena_states,
        })
    }
}

impl PlanArgs {
    fn run(&self) -> Result<ExitCode> {
        let (trace, costs) = self.trace.read()?;
        let rows =
            self.rows.map_or_else(|| costs.step.iter().map(|step| step.0).collect(), |rows| vec![rows]);
        let shapes =
            rows.into_iter().map(|rows| self.server.shape(&costs, rows)).collect::<Result<Vec<_>>>()?;
        let target = Target { first_token: self.first_token, latency: self.latency };
        if self.min_replicas > self.max_replicas {
            return Err(format!(
                "--min-replicas {} above --max-replicas {}",
                self.min_replicas, self.max_replicas
            )
            .into());
        }
        let replicas = self.min_replicas as usize..=self.max_replicas as usize;
        let plans = plan(&trace, &costs, &shapes, target, &replicas);
        if self.json {
            for plan in &plans {
                println!("{}", serde_json::to_string(plan)?);
            }
        } else {
            report(&trace, &costs, &plans);
        }
        let least = plans.iter().filter(|plan| plan.replicas.is_some()).min_by_key(|plan| plan.replicas);
        let Some(Plan { rows, replicas: Some(replicas), outcome }) = least else {
            eprintln!("no number of rows answers in time on {} replicas", self.max_replicas);
            return Ok(ExitCode::from(1));
        };
        if self.json {
            return Ok(ExitCode::SUCCESS);
        }
        println!(
            "\n{replicas} {} of {rows} rows, each with space for {} states ({} MB on the device).",
            if *replicas == 1 { "replica" } else { "replicas" },
            outcome.arena_peak,
            megabytes(costs.state * f64::from(outcome.arena_peak))
        );
        Ok(ExitCode::SUCCESS)
    }
}

fn report(trace: &Trace, costs: &Costs, plans: &[Plan]) {
    let requests = trace.arrivals.len();
    let tokens: f64 = trace.arrivals.iter().map(|arrival| f64::from(arrival.output)).sum();
    let longest = trace.arrivals.iter().map(|arrival| u64::from(arrival.prompt) + u64::from(arrival.output));
    let longest = longest.max().unwrap_or(0) as f64;
    // A trace without duration has no rate.
    let seconds = trace.seconds().max(1.0);
    println!(
        "{requests} requests in {seconds:.0} s, at most {} within a second, {tokens} tokens",
        trace.peak()
    );
    println!("costs: {}", costs.of);
    println!(
        "gateway and servers: {:.2} processors for {:.0} tokens/s",
        costs.host_token * tokens / seconds,
        tokens / seconds
    );
    println!(
        "\n{:>5} {:>9} {:>17} {:>17} {:>6} {:>7} {:>9} {:>9} {:>9}",
        "rows",
        "replicas",
        "first token p50/99",
        "latency p50/99",
        "busy",
        "taken",
        "compiling",
        "states",
        "cache MB"
    );
    for Plan { rows, replicas, outcome } in plans {
        println!(
            "{rows:>5} {:>9} {:>9.3} {:>8.3} {:>8.3} {:>8.3} {:>5.0}% {:>6.0}% {:>8.1}% {:>9} {:>9}",
            replicas.map_or("–".to_owned(), |replicas| replicas.to_string()),
            outcome.first_token.p50,
            outcome.first_token.p99,
            outcome.latency.p50,
            outcome.latency.p99,
            100.0 * outcome.busy,
            100.0 * outcome.occupancy,
            100.0 * outcome.compiling,
            outcome.arena_peak,
            megabytes(costs.cache_token * longest * f64::from(*rows)),
        );
        if outcome.arena_waits > 0 {
            println!(
                "      {} requests waited for space in the arena while a row was idle",
                outcome.arena_waits
            );
        }
    }
}

fn megabytes(bytes: f64) -> String {
    format!("{:.1}", bytes / 1e6)
}
