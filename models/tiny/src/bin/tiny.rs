//! Builds, trains and evaluates the embedded model.

use std::path::PathBuf;

use burn::tensor::{Device, FloatDType};
use burn_dfa_decoder::{DecoderConfig, Pretrained};
use burn_dfa_tiny::{
    generator::{Generator, Split},
    training::{
        Checkpoint, END, Error, Schedule, TrainOptions, build_tokenizer, evaluate, evaluate_calls,
        load_tokenizer, train,
    },
};
use clap::{Args, Parser, Subcommand};
use tokenizers::Tokenizer;

/// Builds, trains and evaluates the embedded model.
#[derive(Debug, Parser)]
struct Cli {
    /// Folder of the model files.
    #[arg(long, global = true, default_value = concat!(env!("CARGO_MANIFEST_DIR")))]
    folder: PathBuf,
    /// Folder of the tokenizer, if it is a different folder.
    #[arg(long, global = true)]
    tokenizer: Option<PathBuf>,
    /// Seed of the text and of the initial weights.
    #[arg(long, global = true, default_value_t = 1)]
    seed: u64,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Prints generated examples.
    Sample {
        /// Number of examples.
        #[arg(long, default_value_t = 20)]
        count: u64,
        /// Take examples from the held-out split.
        #[arg(long)]
        held_out: bool,
        /// Print tool calls instead of records.
        #[arg(long)]
        calls: bool,
    },
    /// Builds the tokenizer and writes its files.
    Tokenizer {
        /// Number of tokens.
        #[arg(long, default_value_t = 1536)]
        size: usize,
        /// Examples to learn merges from.
        #[arg(long, default_value_t = 40_000)]
        examples: u64,
    },
    /// Trains the model and, at the end, writes its configuration and weights.
    Train(TrainArgs),
    /// Writes the configuration and the weights of a checkpoint.
    Export(TrainArgs),
    /// Decodes held-out prompts, free and constrained, and prints a markdown table.
    Evaluate {
        /// Number of prompts.
        #[arg(long, default_value_t = 600)]
        count: u64,
        /// Seed of the prompts; different from `--seed`, since the trainer checks itself with its
        /// held-out prompts.
        #[arg(long, default_value_t = 2)]
        evaluation_seed: u64,
    },
    /// Decodes held-out requests for tools, free and constrained, and prints markdown tables.
    EvaluateCalls {
        /// Number of prompts that ask for a tool on offer, and number of other prompts.
        #[arg(long, default_value_t = 500)]
        count: usize,
        /// Seed of the prompts; different from `--seed`, since the trainer checks itself with its
        /// held-out prompts.
        #[arg(long, default_value_t = 2)]
        evaluation_seed: u64,
    },
}

#[derive(Debug, Args)]
struct TrainArgs {
    /// Folder of the checkpoint.
    #[arg(long)]
    checkpoint: PathBuf,
    /// Continue from the checkpoint.
    #[arg(long)]
    resume: bool,
    /// Folder of a model to start from, instead of random weights.
    #[arg(long)]
    from: Option<PathBuf>,
    /// Number of tool calls per 100 examples.
    #[arg(long, default_value_t = 0)]
    calls: usize,
    /// Number of steps.
    #[arg(long, default_value_t = 4000)]
    steps: usize,
    /// Steps at the end over which the learning rate falls to nothing.
    #[arg(long, default_value_t = 1100)]
    decay: usize,
    /// Steps over which the learning rate rises.
    #[arg(long, default_value_t = 200)]
    warmup: usize,
    /// Learning rate.
    #[arg(long, default_value_t = 3e-3)]
    rate: f64,
    /// Examples in a batch.
    #[arg(long, default_value_t = 64)]
    batch: usize,
    /// Width of the model.
    #[arg(long, default_value_t = 128)]
    hidden: usize,
    /// Number of layers.
    #[arg(long, default_value_t = 4)]
    layers: usize,
    /// Number of query heads.
    #[arg(long, default_value_t = 4)]
    heads: usize,
    /// Number of key and value heads.
    #[arg(long, default_value_t = 2)]
    kv_heads: usize,
    /// Steps between checkpoints.
    #[arg(long, default_value_t = 100)]
    save_every: usize,
    /// Steps between held-out checks.
    #[arg(long, default_value_t = 100)]
    check_every: usize,
}

/// Positions of the model.
const POSITIONS: usize = 256;

fn main() -> Result<(), Error> {
    let cli = Cli::parse();
    match &cli.command {
        Command::Sample { count, held_out, calls } => {
            sample(cli.seed, *count, *held_out, *calls);
            Ok(())
        }
        Command::Tokenizer { size, examples } => {
            let tokenizer = build_tokenizer(&cli.folder, *size, cli.seed, *examples, POSITIONS)?;
            println!("{} tokens", tokenizer.get_vocab_size(true));
            for index in 0..8 {
                let example = Generator::new(cli.seed).example(Split::HeldOut, index);
                for text in [example.prompt, example.record] {
                    let tokens = tokenizer.encode(text, false)?;
                    println!("{} {:?}", tokens.len(), tokens.get_tokens());
                }
            }
            Ok(())
        }
        Command::Train(args) => {
            let (options, tokenizer) = prepare(&cli, args)?;
            let (model, progress) = train(&options, &tokenizer)?;
            println!("{progress:?}");
            Ok(model.save(&cli.folder, FloatDType::F16)?)
        }
        Command::Export(args) => {
            let (options, _) = prepare(&cli, args)?;
            let model = options.config.init(&Device::flex());
            let model = Checkpoint::new(&args.checkpoint).load_model(model)?;
            Ok(model.save(&cli.folder, FloatDType::F16)?)
        }
        Command::Evaluate { count, evaluation_seed } => {
            let pretrained = Pretrained::load(&cli.folder, FloatDType::F32, &Device::flex())?;
            println!("{}", evaluate(&pretrained, *evaluation_seed, *count)?);
            Ok(())
        }
        Command::EvaluateCalls { count, evaluation_seed } => {
            let pretrained = Pretrained::load(&cli.folder, FloatDType::F32, &Device::flex())?;
            println!("{}", evaluate_calls(&pretrained, *evaluation_seed, *count)?);
            Ok(())
        }
    }
}

fn sample(seed: u64, count: u64, held_out: bool, calls: bool) {
    let split = if held_out { Split::HeldOut } else { Split::Train };
    let generator = Generator::new(seed);
    for index in 0..count {
        if calls {
            let example = generator.call_example(split, index);
            println!("{}{}\n{}\n", example.catalogue(), example.prompt, example.answer);
        } else {
            let example = generator.example(split, index);
            println!("{}\n{}\n", example.prompt, example.record);
        }
    }
}

/// The options and the tokenizer of a run.
fn prepare(cli: &Cli, args: &TrainArgs) -> Result<(TrainOptions, Tokenizer), Error> {
    let tokenizer = load_tokenizer(cli.tokenizer.as_ref().unwrap_or(&cli.folder))?;
    let end = tokenizer.token_to_id(END).ok_or("no end token")?;
    let config = DecoderConfig {
        num_key_value_heads: args.kv_heads,
        max_position_embeddings: POSITIONS,
        rms_norm_eps: 1e-5,
        tie_word_embeddings: true,
        eos_token_id: vec![end],
        ..DecoderConfig::new(
            tokenizer.get_vocab_size(true),
            args.hidden,
            3 * args.hidden,
            args.layers,
            args.heads,
        )
    };
    let options = TrainOptions {
        config,
        schedule: Schedule { peak: args.rate, warmup: args.warmup, decay: args.decay, steps: args.steps },
        batch: args.batch,
        seed: cli.seed,
        calls: args.calls,
        from: args.from.clone(),
        checkpoint: args.checkpoint.clone(),
        save_every: args.save_every,
        check_every: args.check_every,
        resume: args.resume,
    };
    Ok((options, tokenizer))
}
