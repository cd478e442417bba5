//! The server under load: checks all answers, and measures the cost of constraints and of the
//! server.
//!
//!     cargo bench --bench load -- --clients 64 --seconds 600
//!
//! A server of the embedded model runs in this process, and clients ask it over sockets. Compared
//! arms have the same prompts and answers of the same length, and take turns. The benchmark fails
//! if an answer is wrong or lost; it reports figures that miss their bound.

mod alike;
mod arms;
mod direct;
mod host;
mod lazy;
mod report;
mod traffic;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use burn_dfa_serve::Failure;
use clap::{Parser, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};

use alike::{Alike, Shape};
use arms::{Arms, between, drive, first_token, throughput, tokens};
use direct::Direct;
use host::{Host, processor, resident};
use lazy::Lazy;
use report::{Bound, Report, median, quantile};
use traffic::CHAT;
use traffic::requests::KINDS;

/// Puts load on the server, and prints measurements.
#[derive(Parser)]
struct Args {
    /// Number of simultaneous clients.
    #[arg(long, default_value_t = 64)]
    clients: usize,
    /// Seconds of the mixed load.
    #[arg(long, default_value_t = 30)]
    seconds: u64,
    /// Rounds of each comparison.
    #[arg(long, default_value_t = 8)]
    rounds: usize,
    /// Rows of the server.
    #[arg(long, default_value_t = 8)]
    rows: usize,
    /// The seed of the random choices.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The parts to run; may be given more than once. Default: all.
    #[arg(long, value_enum)]
    only: Vec<Measurement>,
    /// Print the figures as JSON.
    #[arg(long)]
    json: bool,
    /// Run everything briefly.
    #[arg(long)]
    test: bool,
    /// Given by `cargo bench`.
    #[arg(long, hide = true)]
    bench: bool,
}

/// Distinct schemas.
const SCHEMAS: u64 = 64;

/// Repetitions of all requests in a round of the server against its batch. More repetitions reduce
/// the weight of the start, when not all requests have arrived yet.
const REPEATED: usize = 4;

/// The measurements.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Measurement {
    /// Answers of all kinds at once.
    Mixed,
    /// Requests per second with constraints and without.
    Throughput,
    /// Time between two tokens with constraints and without.
    Between,
    /// Time to the first token under a new schema.
    First,
    /// Tokens per second of the server and of its batch alone.
    Server,
    /// Requests with a shared prefix, with the prefix cache and without.
    Prefix,
    /// Time to the first token under a large new schema, compiled before the prompt is read and
    /// during the reading.
    Lazy,
}

fn main() -> ExitCode {
    let mut args = Args::parse();
    if args.test {
        args = Args { clients: 8, seconds: 2, rounds: 1, ..args };
    }
    let mut report = Report::default();
    let measured = measure(&args, &mut report);
    match args.json {
        true => println!("{}", report.json()),
        false => print!("{}", report.table()),
    }
    match measured {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn measure(args: &Args, report: &mut Report) -> Result<(), Failure> {
    let wants = |measurement| args.only.is_empty() || args.only.contains(&measurement);
    let host = Host::start(args.rows, &[])?;
    if wants(Measurement::Mixed) {
        mixed(&host, args, report)?;
    }
    let turns = |name: &'static str, rounds: usize| {
        let style = ProgressStyle::with_template("{msg:22} {bar:30} {pos}/{len}").expect("it is one");
        let bar = ProgressBar::new(rounds as u64).with_style(style).with_message(name);
        // Each arm comes first in every other round.
        (0..rounds).map(move |round| {
            bar.inc(1);
            round % 2 == 0
        })
    };
    if wants(Measurement::First) {
        let rounds = turns("time to first token", 10 * args.rounds).enumerate();
        let rounds =
            rounds.map(|(number, is_first)| first_token(&host, args.seed << 16 | number as u64, is_first));
        let rounds: Vec<[f64; 3]> = rounds.collect::<Result<_, _>>()?;
        let names = ["first token of a new schema, ms", "its compilation, ms", "first token without, ms"];
        for (index, name) in names.into_iter().enumerate() {
            report.add(name, median(&rounds.iter().map(|round| round[index]).collect::<Vec<_>>()));
        }
        let beyond: Vec<f64> = rounds.iter().map(|[new, compiled, free]| new - compiled - free).collect();
        report.hold("beyond both, p50, ms", median(&beyond), Bound::Max(1.0));
    }
    if wants(Measurement::Prefix) {
        prefix(args, report, &turns)?;
    }
    if wants(Measurement::Lazy) {
        lazy(args, report, &turns)?;
    }
    if ![Measurement::Throughput, Measurement::Between, Measurement::Server].into_iter().any(wants) {
        return Ok(());
    }
    let each_token = Host::start(args.rows, &["--stream-interval", "0"])?;
    let arms = Arms::new(host.address, if args.test { 8 } else { SCHEMAS })?;
    if wants(Measurement::Throughput) {
        // The first round warms up.
        let rounds = turns("requests per second", args.rounds + 1)
            .map(|is_first| throughput(&host, &arms, args.clients, is_first));
        let rounds: Vec<_> = rounds.skip(1).collect::<Result<_, _>>()?;
        let ratios: Vec<f64> = rounds.iter().map(|[with, without]| with / without).collect();
        report.add("requests/s structured", median(&rounds.iter().map(|pair| pair[0]).collect::<Vec<_>>()));
        report.add("requests/s free", median(&rounds.iter().map(|pair| pair[1]).collect::<Vec<_>>()));
        report.hold("structured ÷ free, median of rounds", median(&ratios), Bound::Least(0.98));
        report.add("  lowest", quantile(&ratios, 0.0));
        report.add("  highest", quantile(&ratios, 1.0));
    }
    if wants(Measurement::Between) {
        let [mut with, mut without] = [Vec::new(), Vec::new()];
        for is_first in turns("time between tokens", args.rounds) {
            let [one, other] = between(&each_token, &arms, is_first)?;
            with.extend(one);
            without.extend(other);
        }
        for (name, part) in [("p50", 0.5), ("p99", 0.99)] {
            let [one, other] = [quantile(&with, part), quantile(&without, part)];
            report.add(format!("{name} between tokens, structured, ms"), one);
            report.add(format!("{name} between tokens, free, ms"), other);
            let bound = if name == "p99" { Bound::Max(1.05) } else { Bound::None };
            report.hold(format!("{name} structured ÷ free"), one / other, bound);
        }
    }
    if wants(Measurement::Server) {
        server([&host, &each_token], &arms, args, report, turns("tokens per second", args.rounds + 1))?;
    }
    Ok(())
}

/// Requests with a shared prefix: the time to read the prefix, and the savings of the prefix cache.
fn prefix<T: Iterator<Item = bool>>(
    args: &Args,
    report: &mut Report,
    turns: &impl Fn(&'static str, usize) -> T,
) -> Result<(), Failure> {
    let shapes: &[Shape] = if args.test { &[Shape::Tiny] } else { &[Shape::Tiny, Shape::Small] };
    for &shape in shapes {
        let mut alike = Alike::start(shape, args.rows, args.seed)?;
        for &length in shape.beginnings() {
            let beginning = alike.tokens(length);
            let [mut first, mut rates] = [Vec::new(), Vec::new()];
            for is_first in turns("requests that begin alike", args.rounds + 1) {
                first.push(alike.first_token(&beginning, is_first)?);
                rates.push(alike.rate(&beginning, 2 * args.rows, is_first)?);
            }
            report.add(format!("{shape}, a beginning of {length} tokens"), length as f64);
            // The first round warms up.
            for (name, rounds) in [("first token, ms", &first[1..]), ("requests/s", &rates[1..])] {
                let of = |arm: usize| median(&rounds.iter().map(|pair| pair[arm]).collect::<Vec<_>>());
                report.add(format!("  {name}, with the cache"), of(0));
                report.add(format!("  {name}, without"), of(1));
            }
        }
    }
    Ok(())
}

/// Large new schemas: the savings of `--lazy`.
fn lazy<T: Iterator<Item = bool>>(
    args: &Args,
    report: &mut Report,
    turns: &impl Fn(&'static str, usize) -> T,
) -> Result<(), Failure> {
    let shapes: &[Shape] = if args.test { &[Shape::Tiny] } else { &[Shape::Tiny, Shape::Small] };
    for &shape in shapes {
        let mut hosts = Lazy::start(shape, args.rows, args.seed)?;
        for properties in [20, 200] {
            let rounds = turns("first token, lazily", args.rounds + 1)
                .map(|is_first| hosts.round(200, properties, is_first));
            let rounds: Vec<_> = rounds.collect::<Result<_, _>>()?;
            // The first round warms up.
            let of = |value: &dyn Fn(&lazy::Times) -> f64| {
                median(&rounds[1..].iter().map(value).collect::<Vec<_>>())
            };
            report.add(format!("{shape}, a schema of {properties} properties"), properties as f64);
            report.add("  its compilation, ms", of(&|times| times.compiled));
            report.add("  first token without, ms", of(&|times| times.free));
            report.add("  first token, compiled first, ms", of(&|times| times.ready));
            report.add("  first token, --lazy, ms", of(&|times| times.lazy));
            report.add("  saved, median of rounds, ms", of(&|times| times.ready - times.lazy));
        }
    }
    Ok(())
}

/// The server against its batch alone: tokens per second, and the processor time of a token. Other
/// programs on the machine affect the processor time less.
fn server(
    [host, each_token]: [&Host; 2],
    arms: &Arms,
    args: &Args,
    report: &mut Report,
    turns: impl Iterator<Item = bool>,
) -> Result<(), Failure> {
    let direct = Direct::new(host, arms)?;
    // The threads that multiply matrices keep the name of the first engine that used them.
    let timed = |work: &dyn Fn() -> Result<f64, Failure>| {
        let taken = |thread| processor(thread).unwrap_or(f64::NAN);
        let taken = || [taken(None) + taken(Some("engine")), taken(Some("tokio-rt-worker"))];
        let before = taken();
        let rate = work()?;
        let (after, tokens) = (taken(), (REPEATED as u64 * arms.tokens) as f64);
        let [model, other] = [0, 1].map(|thread| (after[thread] - before[thread]) / tokens * 1e6);
        Ok::<_, Failure>([rate, model, other])
    };
    // In a separate thread, like the engine: the allocator treats the first thread of a program
    // differently.
    let alone = || {
        let body = || timed(&|| direct.rate(&host.app, REPEATED));
        std::thread::scope(|scope| scope.spawn(body).join().expect("the batch does not panic"))
    };
    let over_http = |host: &Host, streams| {
        timed(&|| {
            let bodies = Arms::bodies(&arms.structured, streams, REPEATED);
            let (elapsed, replies) = drive(host.address, CHAT, args.clients, &bodies)?;
            Ok(tokens(&replies)? as f64 / elapsed.as_secs_f64())
        })
    };
    const ARMS: [&str; 4] =
        ["the batch alone", "served whole", "served as streams", "streams, an event a token"];
    let mut rounds = Vec::new();
    for is_first in turns {
        let before = is_first.then(alone).transpose()?;
        let served = [over_http(host, false)?, over_http(host, true)?, over_http(each_token, true)?];
        let [whole, streams, by_token] = served;
        rounds.push([before.map_or_else(alone, Ok)?, whole, streams, by_token]);
    }
    // The first round warms up.
    let of =
        |value: &dyn Fn(&[[f64; 3]; 4]) -> f64| median(&rounds[1..].iter().map(value).collect::<Vec<_>>());
    for (arm, name) in ARMS.into_iter().enumerate() {
        report.add(format!("tokens/s, {name}"), of(&|round| round[arm][0]));
        report
            .add(format!("  model's thread, µs of a processor a token, {name}"), of(&|round| round[arm][1]));
        if arm > 0 {
            report.add(format!("  the server's threads, {name}"), of(&|round| round[arm][2]));
            let cost = of(&|round| (round[0][0] / round[arm][0] - 1.0) * 100.0);
            report.hold(format!("  cost in tokens/s, %, {name}"), cost, Bound::Max(5.0));
            let cost = of(&|round| (round[arm][1] / round[0][1] - 1.0) * 100.0);
            report.hold(format!("  cost in the model's thread, %, {name}"), cost, Bound::Max(5.0));
        }
    }
    Ok(())
}

/// Answers of all kinds at once, each of them checked.
fn mixed(host: &Host, args: &Args, report: &mut Report) -> Result<(), Failure> {
    const WAITING: &str = "vllm:num_requests_waiting";
    let style = ProgressStyle::with_template("{msg:50} {bar:30} {elapsed}/{len} s").expect("it is one");
    let bar = ProgressBar::new(args.seconds).with_style(style);
    let time = Duration::from_secs(args.seconds);
    let memory = || {
        [resident().unwrap_or(f64::NAN), host.metric("burn_dfa:constraint_cache_bytes") / f64::from(1 << 20)]
    };
    let (mut max_waiting, mut half) = (0.0_f64, None);
    let tally = traffic::run(host.address, args.clients as u64, time, args.seed, |elapsed, tally| {
        max_waiting = max_waiting.max(host.metric(WAITING));
        if elapsed * 2 >= time && half.is_none() {
            half = Some(memory());
        }
        bar.set_position(elapsed.as_secs().min(args.seconds));
        bar.set_message(format!("{} right, {} left, {} wrong", tally.answered(), tally.left, tally.wrong));
    });
    bar.finish();
    let at_end = memory();
    for kind in KINDS {
        report.add(format!("right answers: {kind}"), tally.right.get(kind).copied().unwrap_or(0) as f64);
    }
    report.add("given up by their clients", tally.left as f64);
    report.hold("wrong or lost", tally.wrong as f64, Bound::Max(0.0));
    report.add("tokens/s of right answers", tally.tokens as f64 / time.as_secs_f64());
    for (name, times) in
        [("latency", &tally.latency), ("first token", &tally.first_token), ("between tokens", &tally.between)]
    {
        report.add(format!("{name}, p50, ms"), times.quantile(0.5));
        report.add(format!("{name}, p99, ms"), times.quantile(0.99));
    }
    report.hold("most waiting", max_waiting, Bound::Max(host.app.config.max_queue as f64));
    for (when, [all, constraints]) in
        [("at half time", half.unwrap_or([f64::NAN; 2])), ("at the end", at_end)]
    {
        report.add(format!("resident memory {when}, MiB"), all);
        report.add(format!("  of which compiled constraints, about, {when}"), constraints);
    }
    // The last canceled answers end with the next step.
    let names = ["vllm:num_requests_running", WAITING, "burn_dfa:arena_usage_perc"];
    let since = Instant::now();
    while names.iter().any(|name| host.metric(name) > 0.0) && since.elapsed() < Duration::from_secs(10) {
        std::thread::sleep(Duration::from_millis(20));
    }
    for (name, told) in names.into_iter().zip(["running", "waiting", "part of the arena"]) {
        report.hold(format!("{told} afterwards"), host.metric(name), Bound::Max(0.0));
    }
    report.hold("restarts of the engine", host.metric("burn_dfa:engine_restarts_total"), Bound::Max(0.0));
    match tally.wrong {
        0 => Ok(()),
        wrong => Err(format!("{wrong} answers are wrong or lost:\n{}", tally.faults.join("\n")).into()),
    }
}
