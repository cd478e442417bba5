//! Rows per second and accuracy, on sentences that the embedded model has not seen.
//!
//!     cargo bench -p burn-dfa-sql --bench rows -- --count 10000
//!
//! - `extract` in a session of this process against the same rows in `ContinuousBatch` alone, in
//!   turns;
//! - clusters of 1, 2 and 4 executors with one thread each, in turns, whose answers must be the
//!   same row for row;
//! - the accuracy of each field.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use burn::tensor::Device;
use burn_dfa::constraint::JsonOptions;
use burn_dfa::generation::{CausalLm, ContinuousBatch, ContinuousLm, GenerationConfig, Request};
use burn_dfa::{TensorOptions, TokenId};
use burn_dfa_sql::{
    Constraints, Engine, Functions, PromptTemplates, Sizes, Source,
    data::{self, FileFormat},
    session,
};
use burn_dfa_tiny::generator::{Generator, Kind, Split};
use clap::Parser;
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::prelude::SessionContext;
use futures_util::StreamExt;
use indicatif::{ProgressBar, ProgressStyle};

/// Measures rows per second and accuracy.
#[derive(Parser)]
struct Args {
    /// Sentences of all four kinds, for the accuracy.
    #[arg(long, default_value_t = 10_000)]
    count: u64,
    /// Orders in a timed round.
    #[arg(long, default_value_t = 1_000)]
    timed: u64,
    /// Number of rounds; the report shows their median.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Rows of an engine.
    #[arg(long, default_value_t = 32)]
    rows: usize,
    /// Threads of the model in this process.
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Executors of the clusters.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2, 4])]
    executors: Vec<usize>,
    /// The seed of the sentences.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Run everything briefly.
    #[arg(long)]
    test: bool,
    /// Given by `cargo bench`.
    #[arg(long, hide = true)]
    bench: bool,
}

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

#[tokio::main]
async fn main() -> Result<()> {
    let mut args = Args::parse();
    if args.test {
        (args.count, args.timed, args.rounds) = (200, 40, 1);
    }
    rayon::ThreadPoolBuilder::new().num_threads(args.threads).build_global()?;
    let folder = tempfile::tempdir()?;
    // Only one kind in four is an order.
    let timed = folder.path().join("timed");
    data::generate(&timed, FileFormat::Json, args.seed, args.timed * 4)?;
    let all = folder.path().join("all");
    data::generate(&all, FileFormat::Parquet, args.seed, args.count)?;

    let tiny = Arc::new(burn_dfa_tiny::load(&Device::flex())?);
    let vocabulary = tiny.vocabulary().clone();
    let sizes = Sizes { rows: args.rows, ..Sizes::default() }.within(tiny.model().max_positions());
    let json = JsonOptions::new().with_whitespace(burn_dfa_tiny::WHITESPACE);
    let constraints = Constraints::with_json(vocabulary.clone(), Default::default(), sizes.capacity, json);
    let constraints = Arc::new(constraints);
    let engine = Engine::start(tiny.model().clone(), vocabulary, sizes.clone())?;
    let functions = Functions::running(constraints.clone(), engine, tiny.clone(), PromptTemplates::plain());
    let context = session::local(&functions, 1024, None);

    alone(&args, &sizes, &constraints, &tiny, &context, &timed.join("orders.json")).await?;
    clusters(&args, &timed.join("orders.json"))?;
    accuracy(&context, &all).await?;
    Ok(())
}

fn schema(kind: Kind) -> &'static str {
    burn_dfa_tiny::schema(kind.name()).expect("every kind has a schema").json
}

fn bar(rounds: usize, what: &'static str) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} {msg}").expect("a template that is right");
    ProgressBar::new(rounds as u64).with_style(style).with_message(what)
}

/// `extract` against `ContinuousBatch` alone.
async fn alone(
    args: &Args,
    sizes: &Sizes,
    constraints: &Constraints,
    tiny: &burn_dfa_decoder::Pretrained,
    context: &SessionContext,
    orders: &Path,
) -> Result<()> {
    let texts = context.sql(&format!("SELECT text FROM '{}'", orders.display())).await?.collect().await?;
    let rows: usize = texts.iter().map(|batch| batch.num_rows()).sum();
    let generator = Generator::new(args.seed);
    let examples = (0..args.timed * 4).map(|index| generator.example(Split::HeldOut, index));
    let orders_alone = examples.filter(|example| example.kind == Kind::Order);
    let mut prompts =
        orders_alone.map(|order| tiny.prompt(&order.prompt)).collect::<std::result::Result<Vec<_>, _>>()?;
    assert_eq!(rows, prompts.len());
    // Sorts like the engine.
    prompts.sort_by_key(Vec::len);
    let query = format!("SELECT extract(text, '{}') FROM '{}'", schema(Kind::Order), orders.display());
    let constraint = constraints.get(&Source::Schema(schema(Kind::Order).into(), None))?.constraint.clone();
    let config = GenerationConfig::new()
        .with_sync_interval(sizes.sync_interval)
        .with_tensors(TensorOptions::new().with_capacity(sizes.capacity).with_max_bytes(i32::MAX as usize));
    let mut batch =
        ContinuousBatch::record(tiny.model(), tiny.vocabulary(), sizes.rows, sizes.slots, &config)?;

    let bar = bar(args.rounds, "extract and ContinuousBatch alone");
    let (mut in_batch, mut in_sql) = (Vec::new(), Vec::new());
    for _ in 0..args.rounds {
        let started = Instant::now();
        let request = |prompt: &Vec<TokenId>| {
            Request::new(prompt.clone(), sizes.budget(prompt.len())).with_constraint(&constraint)
        };
        drain(&mut batch, prompts.iter().map(request).collect())?;
        in_batch.push(rows as f64 / started.elapsed().as_secs_f64());
        let started = Instant::now();
        let mut stream = context.sql(&query).await?.execute_stream().await?;
        let mut answered = 0;
        while let Some(records) = stream.next().await.transpose()? {
            answered += records.num_rows();
        }
        in_sql.push(rows as f64 / started.elapsed().as_secs_f64());
        assert_eq!(answered, rows);
        bar.inc(1);
    }
    bar.finish_and_clear();
    let ratios = in_sql.iter().zip(&in_batch).map(|(sql, batch)| sql / batch);
    println!("{rows} orders, {} rows at a time, {} threads of the model:", sizes.rows, args.threads);
    println!(
        "  ContinuousBatch alone {:.1} rows/s, extract {:.1} rows/s",
        median(&in_batch),
        median(&in_sql)
    );
    println!("  extract ÷ ContinuousBatch {:.3} (bar: at least 0.9)", median(&ratios.collect::<Vec<_>>()));
    Ok(())
}

/// All requests, the last one first.
fn drain<M: ContinuousLm>(batch: &mut ContinuousBatch<M>, mut requests: Vec<Request>) -> Result<()> {
    loop {
        let idle: Vec<usize> = batch.idle().collect();
        let next: Vec<_> = idle.into_iter().map_while(|row| Some((row, requests.pop()?))).collect();
        let next: Vec<_> = next.iter().map(|(row, request)| (*row, request)).collect();
        batch.admit_all(&next).into_iter().collect::<burn_dfa::Result<()>>()?;
        if batch.idle().count() == batch.rows() {
            return Ok(());
        }
        batch.step(1, |_| ())?;
        let finished: Vec<usize> = batch.finished().collect();
        for row in finished {
            assert!(batch.release(row)?.is_complete());
        }
    }
}

/// Rows per second of clusters.
fn clusters(args: &Args, orders: &Path) -> Result<()> {
    let clusters = args.executors.iter().map(|&executors| Cluster::start(executors, args.rows));
    let clusters = clusters.collect::<Result<Vec<_>>>()?;
    let query =
        format!("SELECT text, extract(text, '{}') AS r FROM '{}'", schema(Kind::Order), orders.display());
    let bar = bar(args.rounds * clusters.len(), "clusters");
    let mut rates = vec![Vec::new(); clusters.len()];
    let mut answers: Option<Vec<String>> = None;
    for _ in 0..args.rounds {
        for (cluster, rates) in clusters.iter().zip(&mut rates) {
            let started = Instant::now();
            let rows = cluster.answer(&query)?;
            rates.push(rows.len() as f64 / started.elapsed().as_secs_f64());
            assert_eq!(answers.get_or_insert_with(|| rows.clone()), &rows, "the same row for row");
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    let one = median(&rates[0]);
    println!(
        "\nThe same rows on clusters, one thread for each executor, the start of the program included; all answers are equal:"
    );
    for (cluster, rates) in clusters.iter().zip(&rates) {
        let rate = median(rates);
        println!(
            "  {} executors {rate:.1} rows/s, ÷ the first {:.2}",
            cluster.processes.len() - 1,
            rate / one
        );
    }
    Ok(())
}

/// A scheduler and its executors.
struct Cluster {
    address: String,
    processes: Vec<Child>,
}

impl Cluster {
    fn start(executors: usize, rows: usize) -> Result<Self> {
        let mut scheduler = program(&["scheduler", "--port", "0", "--executors", &executors.to_string()])
            .stderr(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        BufReader::new(scheduler.stderr.take().ok_or("a pipe")?).read_line(&mut line)?;
        let address = line.trim().strip_prefix("listening on http://").ok_or("no address")?.to_owned();
        let mut cluster = Self { address, processes: vec![scheduler] };
        let rows = rows.to_string();
        for _ in 0..executors {
            let options = ["executor", "--scheduler", &cluster.address, "--threads", "1", "--rows", &rows];
            cluster.processes.push(program(&options).spawn()?);
        }
        while !cluster.is_ready() {
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(cluster)
    }

    /// Whether all executors are connected.
    fn is_ready(&self) -> bool {
        let Ok(mut stream) = TcpStream::connect(&self.address) else { return false };
        let mut line = String::new();
        let asked =
            write!(stream, "GET /readyz HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.address);
        asked.and_then(|()| BufReader::new(stream).read_line(&mut line)).is_ok() && line.contains(" 200 ")
    }

    /// The rows of a result in order.
    fn answer(&self, query: &str) -> Result<Vec<String>> {
        let scheduler = format!("http://{}", self.address);
        let output = program(&["--scheduler", &scheduler, "--format", "json", query]).output()?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into());
        }
        let mut rows: Vec<String> = String::from_utf8(output.stdout)?.lines().map(str::to_owned).collect();
        rows.sort_unstable();
        Ok(rows)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for process in &mut self.processes {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

fn program(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_burn-dfa-sql"));
    command.args(args);
    command
}

/// The accuracy of each field, and of whole records.
async fn accuracy(context: &SessionContext, folder: &Path) -> Result<()> {
    println!("\nOf the sentences of each kind, the percentage with each field right, and with all:");
    let started = Instant::now();
    let mut rows = 0;
    for kind in Kind::ALL {
        let file: PathBuf = folder.join(format!("{}.parquet", data::table_of(kind)));
        let properties: serde_json::Value = serde_json::from_str(schema(kind))?;
        let names: Vec<&String> = properties["properties"].as_object().ok_or("properties")?.keys().collect();
        let is_right = |name: &&String| format!("(r['{name}'] IS NOT DISTINCT FROM \"{name}\")");
        let percentage = |condition: &str, name: &str| {
            format!("round(100.0 * count(*) FILTER (WHERE {condition}) / count(*), 2) AS \"{name}\"")
        };
        let mut columns: Vec<String> = names.iter().map(|name| percentage(&is_right(name), name)).collect();
        let whole: Vec<String> = names.iter().map(is_right).collect();
        columns.push(percentage(&whole.join(" AND "), "all fields"));
        let query = format!(
            "SELECT count(*) AS \"{}\", {} FROM (SELECT *, extract(text, '{}') AS r FROM '{}')",
            data::table_of(kind),
            columns.join(", "),
            schema(kind),
            file.display()
        );
        let result = context.sql(&query).await?.collect().await?;
        use datafusion::arrow::array::AsArray;
        let counts = result[0].column(0).as_primitive::<datafusion::arrow::datatypes::Int64Type>();
        rows += counts.value(0);
        println!("{}", pretty_format_batches(&result)?);
    }
    let seconds = started.elapsed().as_secs_f64();
    println!("{rows} rows in {seconds:.1} s, {:.1} rows/s", rows as f64 / seconds);
    Ok(())
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}
