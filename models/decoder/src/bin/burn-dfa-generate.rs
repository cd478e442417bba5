//! Generates text with a model of a Hugging Face folder or a GGUF file, under a constraint;
//! `burn-dfa generate` runs this program.

use std::process::ExitCode;

use burn_dfa::cli::{parse, report};
use burn_dfa_decoder::cli::GenerateArgs;
use clap::Parser;

/// Generate text with a model of a Hugging Face folder or a GGUF file, under a constraint.
///
/// Exit codes: 0, the output is complete; 1, the constraint is refused, the device fails, or
/// `--max-tokens` cuts the output off (only free text); 2, wrong usage, such as an unreadable file.
#[derive(Parser)]
#[command(name = "burn-dfa generate", bin_name = "burn-dfa generate", version)]
#[command(mut_arg("model", |arg| arg.required(true)))]
#[command(after_help = "Examples:
  burn-dfa generate --model SmolLM2-135M-Instruct --prompt 'Who are you?' --schema person.json
  burn-dfa generate --model SmolLM2-135M-Instruct.Q4_1.gguf --prompt 'Is a whale a fish?' --choice yes --choice no
  burn-dfa generate --model models/tiny --prompt 'Meet Ada, 36.' --regex '\\{\"name\":\"[A-Z][a-z]+\"\\}' --json --seed 3
  burn-dfa generate --model SmolLM2-135M-Instruct --prompt 'Six times seven?' --grammar arithmetic.gbnf --syntax gbnf
  burn-dfa generate --model SmolLM2-135M-Instruct --choice yes --choice no < question.txt")]
struct Cli {
    #[command(flatten)]
    generate: GenerateArgs,
}

fn main() -> ExitCode {
    let Cli { generate } = parse();
    let result =
        generate.load().and_then(|model| generate.run(&model.ok_or("no model is named: give --model")?));
    result.unwrap_or_else(|error| report(&error, generate.json))
}
