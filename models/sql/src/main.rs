//! The program: runs a query, or is a process of a cluster.

use std::io::{BufWriter, IsTerminal};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use burn_dfa_sql::{
    Functions, Progress,
    cluster::{self, Executor, Scheduler},
    data::{self, FileFormat},
    options::{EngineArgs, Failure, PlanArgs},
    output::{Format, Writer, is_closed},
    session,
};
use clap::{CommandFactory, Parser, Subcommand};
use datafusion::error::DataFusionError;
use datafusion::physical_plan::execute_stream;
use futures_util::StreamExt;
use indicatif::{ProgressBar, ProgressStyle};
use tracing_subscriber::EnvFilter;

/// Run a query of SQL over files of Parquet, CSV or JSON lines that it names in FROM, with
/// functions that a language model answers: extract(text, schema), classify(text, label, …),
/// matches(text, pattern, instruction).
///
/// burn-dfa-sql "SELECT extract(text, '{\"type\": \"object\", …}') FROM 'people.csv' LIMIT 20"
#[derive(Parser)]
#[command(name = "burn-dfa-sql", version, args_conflicts_with_subcommands = true)]
struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    query: QueryArgs,
}

#[derive(clap::Args)]
struct QueryArgs {
    /// The query.
    #[arg(value_name = "QUERY")]
    text: Option<String>,
    /// Run it on the cluster of this scheduler, such as http://127.0.0.1:50050. Its executors read
    /// the files. Of a model folder this process reads only the tokenizer; the executors have their
    /// own engine options.
    #[arg(long, value_name = "URL")]
    scheduler: Option<String>,
    /// The form of the result, on the standard output.
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
    /// Maximum number of rows of a table; the query ends after them.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    max_rows: usize,
    /// Number of rows of a batch, which the engine gets together.
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = at_least_one())]
    batch: usize,
    /// Number of partitions that are read at the same time. Default: one for each core, 16 on a
    /// cluster.
    #[arg(long, value_name = "N", value_parser = at_least_one())]
    partitions: Option<usize>,
    #[command(flatten)]
    engine: EngineArgs,
}

#[derive(Subcommand)]
enum Command {
    /// Start the scheduler of a cluster, which plans queries and gives their tasks to executors.
    Scheduler {
        /// The address to listen on.
        #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
        host: IpAddr,
        /// The port to listen on; 0 takes any free port.
        #[arg(long, default_value_t = 50050)]
        port: u16,
        /// How long an executor may be silent before its tasks go to other executors, in seconds.
        #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..))]
        executor_timeout: u64,
        /// The number of connected executors for which /readyz answers 200.
        #[arg(long, value_name = "N", default_value_t = 1)]
        executors: usize,
        #[command(flatten)]
        plan: PlanArgs,
    },
    /// Start an executor of a cluster, which has a model and runs tasks.
    Executor {
        /// The host and port of the scheduler.
        #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:50050", value_parser = host_and_port)]
        scheduler: (String, u16),
        /// The address to listen on, to which scheduler and clients connect.
        #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
        host: IpAddr,
        /// The port for fetching results; 0 takes any free port.
        #[arg(long, default_value_t = 0)]
        port: u16,
        /// The port for tasks; 0 takes any free port.
        #[arg(long, default_value_t = 0)]
        task_port: u16,
        /// Number of simultaneous tasks, which share the model.
        #[arg(long, value_name = "N", default_value_t = 2, value_parser = at_least_one())]
        tasks: usize,
        /// Interval of the heartbeats to the scheduler, in seconds.
        #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
        heartbeat: u64,
        /// The folder of results until they are fetched. Default: a folder of temporary files.
        #[arg(long, value_name = "DIR")]
        folder: Option<PathBuf>,
        #[command(flatten)]
        engine: Box<EngineArgs>,
    },
    /// Write example data: sentences that the embedded model has not seen, with their true
    /// records.
    Generate {
        /// The folder of the files people, orders, events and teams.
        #[arg(value_name = "DIR")]
        folder: PathBuf,
        /// The form of the files.
        #[arg(long, value_enum, default_value = "csv")]
        form: FileFormat,
        /// Number of sentences of all kinds.
        #[arg(long, value_name = "N", default_value_t = 10_000)]
        count: u64,
        /// Other seeds give other sentences.
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
}

/// The exit code of an interrupted process.
const INTERRUPTED: u8 = 130;

fn main() -> ExitCode {
    let args = Args::parse();
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("error"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let ended = runtime.map_err(Failure::from).and_then(|runtime| {
        let ended = runtime.block_on(run(args));
        // A canceled task may still encode texts.
        runtime.shutdown_background();
        ended
    });
    ended.unwrap_or_else(|failure| {
        let said =
            failure.downcast_ref().map_or_else(|| failure.to_string(), DataFusionError::strip_backtrace);
        burn_dfa::cli::report(&said.into(), false)
    })
}

async fn run(args: Args) -> Result<ExitCode, Failure> {
    match args.command {
        None => return query(args.query).await,
        Some(Command::Scheduler { host, port, executor_timeout, executors, plan }) => {
            let scheduler = Scheduler {
                address: SocketAddr::new(host, port),
                executor_timeout: Duration::from_secs(executor_timeout),
                executors,
            };
            scheduler.serve(plan.functions()?, |address| eprintln!("listening on http://{address}")).await?;
        }
        Some(Command::Executor { scheduler, host, port, task_port, tasks, heartbeat, folder, engine }) => {
            let temporary = tempfile::tempdir()?;
            let executor = Executor {
                scheduler,
                host,
                ports: [port, task_port],
                tasks,
                heartbeat: Duration::from_secs(heartbeat),
                folder: folder.unwrap_or_else(|| temporary.path().to_owned()),
            };
            executor.serve(engine.functions()?).await?;
        }
        Some(Command::Generate { folder, form, count, seed }) => {
            for (path, rows) in data::generate(&folder, form, seed, count)? {
                println!("{}: {rows} rows", path.display());
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn query(args: QueryArgs) -> Result<ExitCode, Failure> {
    let Some(text) = &args.text else {
        Args::command().error(clap::error::ErrorKind::MissingRequiredArgument, "a query is missing").exit()
    };
    let functions = match &args.scheduler {
        Some(_) => args.engine.plan.functions()?,
        None => args.engine.functions()?,
    };
    let context = match &args.scheduler {
        Some(scheduler) => {
            cluster::reach(scheduler).await?;
            session::remote(scheduler, &functions, args.batch, args.partitions).await?
        }
        None => session::local(&functions, args.batch, args.partitions),
    };
    let plan = context.sql(text).await?.create_physical_plan().await?;
    let mut rows = execute_stream(plan, context.task_ctx())?;

    let bar = ProgressLine::new(&functions);
    let stdout = BufWriter::new(std::io::stdout());
    let mut writer = Writer::new(stdout, args.format, rows.schema(), args.max_rows);
    let mut interrupt = std::pin::pin!(tokio::signal::ctrl_c());
    let end = loop {
        let batch = tokio::select! {
            batch = rows.next() => batch,
            _ = &mut interrupt => break EndReason::Interrupted,
        };
        let Some(batch) = batch.transpose()? else { break EndReason::Complete };
        match bar.suspend(|| writer.write(&batch)) {
            Ok(true) => {}
            Ok(false) => break EndReason::Enough,
            Err(error) if is_closed(&error) => break EndReason::Closed,
            Err(error) => return Err(error.into()),
        }
    };
    // Cancels rows that are no longer needed.
    drop(rows);
    bar.end();
    if end != EndReason::Closed {
        match writer.finish() {
            Err(error) if !is_closed(&error) => return Err(error.into()),
            _ => {}
        }
    }
    if end == EndReason::Enough {
        eprintln!(
            "note: the query ended after {} rows: raise --max-rows, or give --format csv for all rows",
            args.max_rows
        );
    }
    Ok(if end == EndReason::Interrupted { ExitCode::from(INTERRUPTED) } else { ExitCode::SUCCESS })
}

/// The reason for the end of the output.
#[derive(Clone, Copy, PartialEq, Eq)]
enum EndReason {
    Complete,
    /// The table is full.
    Enough,
    /// The reader closed the pipe.
    Closed,
    Interrupted,
}

/// The work of the engine so far, on a terminal.
struct ProgressLine {
    bar: ProgressBar,
    task: tokio::task::JoinHandle<()>,
}

impl ProgressLine {
    fn new(functions: &Functions) -> Self {
        let style =
            ProgressStyle::with_template("{spinner} {elapsed} {msg}").expect("a template that is right");
        let bar =
            if std::io::stderr().is_terminal() { ProgressBar::new_spinner() } else { ProgressBar::hidden() };
        let bar = bar.with_style(style);
        bar.enable_steady_tick(Duration::from_millis(200));
        let progress = functions.engine().map(|engine| engine.progress().clone());
        let task = tokio::spawn(tell(bar.clone(), progress));
        Self { bar, task }
    }

    fn suspend<T>(&self, write: impl FnOnce() -> T) -> T {
        self.bar.suspend(write)
    }

    fn end(&self) {
        self.task.abort();
        self.bar.finish_and_clear();
    }
}

async fn tell(bar: ProgressBar, progress: Option<Arc<Progress>>) {
    let Some(progress) = progress else { return bar.set_message("the cluster works") };
    loop {
        let seconds = bar.elapsed().as_secs_f64().max(1e-3);
        let (rows, tokens) = (progress.rows(), progress.tokens());
        bar.set_message(format!(
            "{rows} rows, {:.1} rows/s, {:.0} tokens/s",
            rows as f64 / seconds,
            tokens as f64 / seconds
        ));
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

fn at_least_one() -> clap::builder::RangedU64ValueParser<usize> {
    clap::builder::RangedU64ValueParser::new().range(1..=1 << 20)
}

fn host_and_port(text: &str) -> Result<(String, u16), String> {
    let text = text.strip_prefix("http://").unwrap_or(text);
    let parts = text.rsplit_once(':').and_then(|(host, port)| Some((host.to_owned(), port.parse().ok()?)));
    parts.ok_or_else(|| "this has to be a host and a port, such as 127.0.0.1:50050".to_owned())
}
