//! Quality and speed with a real model, and of llama.cpp in the same run.
//!
//!     cargo bench --bench quality -- --model FILE.gguf [--bfcl FILE.jsonl] [--llama-cpp PYTHON] [--also FILE.gguf...]
//!
//! Every prompt of three sets is answered without a constraint, in every style of JSON, and by
//! llama.cpp under the same schema. The benchmark counts valid and right answers, measures tokens
//! per second and the acceptance of draft tokens, and writes `benches/results/quality.md` with a
//! picture. `--only PART...` measures some of these parts.

mod acceptance;
mod engine;
mod judge;
mod machine;
mod measure;
mod ours;
mod plot;
mod progress;
mod sets;
mod speculation;
mod speed;
mod table;
mod types;
mod variants;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, ValueEnum};

use measure::Engines;
use progress::Progress;
use sets::Set;
use table::Report;
use variants::Variant;

/// The error of all parts.
type Failure = Box<dyn std::error::Error>;

/// The greatest number of prompts of a set for the measurements of speed and of drafts.
const SPEED_PROMPTS: usize = 12;

/// Measures quality and speed with a real model.
#[derive(Parser)]
struct Args {
    /// The model: a GGUF file, or a Hugging Face folder. scripts/smollm2 downloads one.
    #[arg(long, value_name = "FILE")]
    model: Option<PathBuf>,
    /// Rows of the Berkeley Function-Calling Leaderboard with JSON schemas, as lines of JSON.
    #[arg(long, value_name = "FILE")]
    bfcl: Option<PathBuf>,
    /// More GGUF files, for the comparison of block types: copies of the model in other types, as
    /// quality/requantize.py writes them.
    #[arg(long, value_name = "FILE", num_args = 1..)]
    also: Vec<PathBuf>,
    /// The greatest number of prompts of each set. Default: all.
    #[arg(long, value_name = "N")]
    count: Option<usize>,
    /// A Python with the package xllamacpp, to compare with llama.cpp.
    #[arg(long, value_name = "PYTHON")]
    llama_cpp: Option<PathBuf>,
    /// The number of threads. Default: one for each core.
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// The parts to measure; the page has no others. Default: all.
    #[arg(long, value_name = "PART", num_args = 1..)]
    only: Vec<Part>,
    /// The folder of the page and the picture.
    #[arg(long, value_name = "FOLDER", default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/results"))]
    out: PathBuf,
    /// Answer questions on standard input, as one of the engines.
    #[arg(long, hide = true)]
    engine: bool,
    /// Given by `cargo bench -- --test`, which runs each benchmark briefly.
    #[arg(long, hide = true)]
    test: bool,
    /// Given by `cargo bench`.
    #[arg(long, hide = true)]
    bench: bool,
}

/// A part of the measurement.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// The quality of function calls.
    Calls,
    /// The quality of extracted fields.
    Extraction,
    /// The quality of any JSON objects.
    Objects,
    /// Tokens per second and memory.
    Speed,
    /// The block types of the model and of the files of --also.
    Types,
    /// Speculative decoding, and the acceptance of draft tokens.
    Speculation,
}

impl Args {
    /// Whether a part is to be measured.
    fn measures(&self, part: Part) -> bool {
        self.only.is_empty() || self.only.contains(&part)
    }
}

fn main() -> ExitCode {
    let args = Args::parse();
    let done = match &args.model {
        Some(model) if args.engine => ours::serve(model),
        Some(model) if !args.test => run(&args, model),
        _ => {
            println!(
                "skipped: quality with a real model; name one with --model (scripts/smollm2 downloads one)"
            );
            Ok(())
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args, model: &Path) -> Result<(), Failure> {
    let load = machine::load();
    let threads = args.threads.unwrap_or_else(machine::cores);
    let python = args.llama_cpp.as_deref();
    let count = args.count.unwrap_or(usize::MAX);
    let mut sets = judged_sets(args, count, |part| args.measures(part))?;
    sets.extend(args.measures(Part::Objects).then(|| sets::objects(count)));
    if args.bfcl.is_none() && args.only == [Part::Calls] {
        return Err("function calls need --bfcl".into());
    }
    if args.bfcl.is_none() && (args.measures(Part::Calls) || args.measures(Part::Speculation)) {
        eprintln!("without function calls; name a file of BFCL with --bfcl");
    }

    let few = count.min(SPEED_PROMPTS);
    let (mut speed, mut types, mut speculation) = (Vec::new(), Vec::new(), Vec::new());
    let tasks = sets::extraction(few)?.tasks;
    if args.measures(Part::Speed) {
        for threads in if threads > 1 { vec![1, threads] } else { vec![1] } {
            speed.push(speed::measure(&tasks, model, python, threads)?);
        }
    }
    if args.measures(Part::Types) {
        let also = args.also.iter().map(PathBuf::as_path);
        types = types::measure(&tasks, &std::iter::once(model).chain(also).collect::<Vec<_>>())?;
    }

    let mut engines = Engines::start(model, python, threads)?;
    let mut names = vec![engines.burn_dfa.name.clone()];
    names.extend(engines.llama_cpp.as_ref().map(|engine| engine.name.clone()));
    if args.measures(Part::Speculation) {
        speculation = speculation::measure(&judged_sets(args, few, |_| true)?, &mut engines.burn_dfa)?;
    }
    let mut report = Report {
        arguments: arguments(args),
        model: (file_name(model), std::fs::metadata(model)?.len()),
        machine: machine::machine(),
        threads,
        load,
        engines: names,
        variants: Variant::all(python.is_some()),
        sets: Vec::new(),
        speed,
        types,
        speculation,
    };
    write(&report, &args.out)?;
    let prompts: usize = sets.iter().map(|set| set.tasks.len()).sum();
    let progress = Progress::new(prompts * report.variants.len());
    for set in sets {
        let scores = measure::measure(&set, &report.variants, &mut engines, &progress)?;
        report.sets.push((set, scores));
        // After each set, so that a run that is stopped leaves the results so far.
        write(&report, &args.out)?;
    }
    drop(progress);
    print!("{}", report.markdown());
    Ok(())
}

/// The sets of the parts that `wants` accepts whose answers have right values, with at most `count`
/// prompts each.
fn judged_sets(args: &Args, count: usize, wants: impl Fn(Part) -> bool) -> Result<Vec<Set>, Failure> {
    let mut sets = Vec::new();
    if let Some(file) = args.bfcl.as_ref().filter(|_| wants(Part::Calls)) {
        sets.push(sets::calls(file, count)?);
    }
    if wants(Part::Extraction) {
        sets.push(sets::extraction(count)?);
    }
    Ok(sets)
}

/// Writes the page into a folder, and the picture if it has bars.
fn write(report: &Report, folder: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(folder)?;
    std::fs::write(folder.join("quality.md"), report.markdown())?;
    if report.has_picture() { plot::draw(report, &folder.join("quality.svg")) } else { Ok(()) }
}

/// The arguments of the measurement, with the names of files without folders.
fn arguments(args: &Args) -> String {
    let path = |name: &str, path: &Option<PathBuf>| Some(format!("--{name} {}", file_name(path.as_deref()?)));
    let number = |name: &str, number: Option<usize>| Some(format!("--{name} {}", number?));
    let also: Vec<String> = args.also.iter().map(|path| file_name(path)).collect();
    let only: Vec<_> = args.only.iter().filter_map(ValueEnum::to_possible_value).collect();
    let only: Vec<&str> = only.iter().map(|part| part.get_name()).collect();
    let all = [
        path("model", &args.model),
        path("bfcl", &args.bfcl),
        path("llama-cpp", &args.llama_cpp),
        (!also.is_empty()).then(|| format!("--also {}", also.join(" "))),
        number("count", args.count),
        number("threads", args.threads),
        (!only.is_empty()).then(|| format!("--only {}", only.join(" "))),
    ];
    all.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
