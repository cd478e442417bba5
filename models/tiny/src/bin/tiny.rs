//! Builds, trains and evaluates the embedded model.

use std::path::PathBuf;

use burn_dfa_llama::LlamaConfig;
use burn_dfa_tiny::generator::{Generator, Split};
use burn_dfa_tiny::training::{
    END, Error, Schedule, TrainOptions, build_tokenizer, load_tokenizer, train,
};
use clap::{Args, Parser, Subcommand};

/// Builds, trains and evaluates the embedded model.
#[derive(Debug, Parser)]
struct Cli {
    /// Folder of the model files.
    #[arg(long, global = true, default_value = concat!(env!("CARGO_MANIFEST_DIR")))]
    folder: PathBuf,
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
        /// How many.
        #[arg(long, default_value_t = 20)]
        count: u64,
        /// From the held-out split.
        #[arg(long)]
        held_out: bool,
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
    /// Trains the model.
    Train(TrainArgs),
}

#[derive(Debug, Args)]
struct TrainArgs {
    /// Folder of the checkpoint.
    #[arg(long)]
    checkpoint: PathBuf,
    /// Go on from the checkpoint.
    #[arg(long)]
    resume: bool,
    /// Number of steps.
    #[arg(long, default_value_t = 3000)]
    steps: usize,
    /// Steps at the end over which the learning rate falls to nothing.
    #[arg(long, default_value_t = 800)]
    decay: usize,
    /// Steps over which the learning rate rises.
    #[arg(long, default_value_t = 150)]
    warmup: usize,
    /// Learning rate.
    #[arg(long, default_value_t = 2.5e-3)]
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
        Command::Sample { count, held_out } => {
            sample(cli.seed, *count, *held_out);
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
        Command::Train(args) => run_train(&cli, args),
    }
}

fn sample(seed: u64, count: u64, held_out: bool) {
    let split = if held_out {
        Split::HeldOut
    } else {
        Split::Train
    };
    for index in 0..count {
        let example = Generator::new(seed).example(split, index);
        println!("{}\n{}\n", example.prompt, example.record);
    }
}

fn run_train(cli: &Cli, args: &TrainArgs) -> Result<(), Error> {
    let tokenizer = load_tokenizer(&cli.folder)?;
    let end = tokenizer.token_to_id(END).ok_or("no end token")?;
    let config = LlamaConfig {
        num_key_value_heads: args.kv_heads,
        max_position_embeddings: POSITIONS,
        tie_word_embeddings: true,
        eos_token_id: vec![end],
        ..LlamaConfig::new(
            tokenizer.get_vocab_size(true),
            args.hidden,
            3 * args.hidden,
            args.layers,
            args.heads,
        )
    };
    let options = TrainOptions {
        config,
        schedule: Schedule {
            peak: args.rate,
            warmup: args.warmup,
            decay: args.decay,
            steps: args.steps,
        },
        batch: args.batch,
        seed: cli.seed,
        checkpoint: args.checkpoint.clone(),
        save_every: args.save_every,
        check_every: args.check_every,
        resume: args.resume,
    };
    let (_, progress) = train(&options, &tokenizer)?;
    println!("{progress:?}");
    Ok(())
}
