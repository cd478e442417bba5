//! Speculative decoding under a constraint: the embedded model, and guesses of a draft model, of the prompt, and of
//! the constraint itself.
//!
//!     cargo run --release --example speculative
//!     cargo run --release --example speculative -- --table
//!
//! The first shows what each call of the model added to an output; the second measures all drafters on held-out
//! prompts, one row at a time, and asserts that every output is that of plain constrained decoding.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use burn::tensor::{Device, FloatDType};
use burn_dfa::generation::speculative::{
    DraftModel, Drafter, Forced, ForcedBytes, Fork, PromptLookup, Speculated, speculate,
};
use burn_dfa::generation::{Options, Request, generate};
use burn_dfa::{Constraint, Limits, TokenId, TokenTable, Vocabulary};
use burn_dfa_llama::{ChatTemplate, Llama, Message, Pretrained};
use burn_dfa_tiny::generator::{Example, Generator, Kind, Split};
use burn_dfa_tiny::{CONFIG, TOKENIZER, TOKENIZER_CONFIG, WEIGHTS, draft};
use clap::Parser;

/// Speculative decoding under a constraint.
#[derive(Parser)]
struct Args {
    /// Measure every drafter.
    #[arg(long)]
    table: bool,
    /// Prompts of the table.
    #[arg(long, default_value_t = 300)]
    prompts: u64,
    /// Guesses a call.
    #[arg(long, default_value_t = 4)]
    drafts: usize,
}

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// The longest record has about 50 tokens.
const MAX_TOKENS: usize = 96;

fn main() -> Result<()> {
    let args = Args::parse();
    let pair = Pair::load()?;
    if args.table { pair.measure(&args) } else { pair.show(&args) }
}

/// The model, its draft model, and what both know.
struct Pair {
    pretrained: Pretrained,
    draft: Llama,
    vocabulary: Vocabulary,
    tables: HashMap<Kind, TokenTable>,
}

impl Pair {
    fn load() -> Result<Self> {
        let device = Device::flex();
        let llama = |config, weights| {
            Llama::from_bytes(str::from_utf8(config)?, weights, FloatDType::F32, &device)
                .map_err(Box::<dyn std::error::Error>::from)
        };
        let template = ChatTemplate::from_files(Some(str::from_utf8(TOKENIZER_CONFIG)?), None)?;
        let pretrained = Pretrained::new(llama(CONFIG, WEIGHTS)?, TOKENIZER, template)?;
        let ends = pretrained.eos().iter().map(|&id| TokenId(id));
        let vocabulary = Vocabulary::from_tokenizer_json(TOKENIZER)?.with_eos(ends)?;
        let mut tables = HashMap::new();
        for kind in Kind::ALL {
            let schema = burn_dfa_tiny::schema(kind.name()).ok_or("every kind has a schema")?;
            let constraint = Constraint::json_schema(serde_json::from_str(schema.json)?)?;
            tables.insert(kind, TokenTable::compile(&constraint, &vocabulary, &Limits::default())?);
        }
        Ok(Self { draft: llama(draft::CONFIG, draft::WEIGHTS)?, pretrained, vocabulary, tables })
    }

    fn request(&self, example: &Example) -> Result<Request<'_>> {
        let prompt = self.pretrained.encode_chat(&[Message::user(example.prompt.as_str())])?;
        let prompt = prompt.into_iter().map(TokenId).collect();
        Ok(Request::new(prompt, MAX_TOKENS).with_table(&self.tables[&example.kind]))
    }

    /// The drafters, by name.
    fn drafters(&self, drafts: usize) -> Result<Vec<(&'static str, Box<dyn Drafter + '_>)>> {
        let model = || DraftModel::new(&self.draft, drafts);
        let lookup = || PromptLookup::new(drafts, 3);
        let forced = || Forced::new(drafts, ForcedBytes::LongestToken);
        Ok(vec![
            ("draft model, masked", Box::new(model())),
            ("draft model, unmasked", Box::new(model().unmasked())),
            ("prompt lookup", Box::new(lookup())),
            ("automaton", Box::new(forced())),
            ("automaton, then draft model", Box::new(forced().before(model())?)),
            ("automaton, then prompt lookup", Box::new(forced().before(lookup())?)),
            ("tree: draft model beside prompt lookup", Box::new(Fork::new(model(), lookup())?)),
        ])
    }

    /// Prints what each call added, for a prompt of every kind.
    fn show(&self, args: &Args) -> Result<()> {
        let options = Options { read_every: 1, ..Options::default() };
        for kind in Kind::ALL {
            let example = Generator::new(3).example_of(kind, Split::HeldOut, 1);
            println!("{}", example.prompt);
            let request = [self.request(&example)?];
            for (name, drafter) in self.drafters(args.drafts)? {
                let mut pieces = Vec::new();
                let rows = speculate(
                    self.pretrained.model(),
                    &self.vocabulary,
                    &request,
                    &options,
                    drafter,
                    |piece| {
                        pieces.push(piece.text.to_owned());
                        ControlFlow::Continue(())
                    },
                )?;
                println!("  {name}: {} calls", rows[0].calls);
                println!("    {}", pieces.join("|"));
            }
            println!();
        }
        Ok(())
    }

    /// Prints a markdown table of all drafters.
    fn measure(&self, args: &Args) -> Result<()> {
        let generator = Generator::new(2);
        let examples: Vec<_> =
            (0..args.prompts).map(|index| generator.example(Split::HeldOut, index)).collect();
        let requests = examples.iter().map(|example| self.request(example)).collect::<Result<Vec<_>>>()?;
        let (model, options) = (self.pretrained.model(), Options::default());
        println!("{} prompts, one at a time, {} guesses a call, greedy\n", requests.len(), args.drafts);
        println!("| drafter | tokens a call | calls a token | tokens/s |\n|---|---:|---:|---:|");

        let mut plain = Vec::with_capacity(requests.len());
        let started = Instant::now();
        for request in &requests {
            let one = std::slice::from_ref(request);
            let outputs = generate(model, &self.vocabulary, one, &options, |_| ControlFlow::Continue(()))?;
            plain.extend(outputs);
        }
        let tokens = plain.iter().map(|output| output.tokens.len()).sum();
        row("none: `generate`", tokens, tokens, started.elapsed());

        for (name, mut drafter) in self.drafters(args.drafts)? {
            let mut rows: Vec<Speculated> = Vec::with_capacity(requests.len());
            let started = Instant::now();
            for request in &requests {
                let one = std::slice::from_ref(request);
                rows.extend(speculate(model, &self.vocabulary, one, &options, &mut drafter, |_| {
                    ControlFlow::Continue(())
                })?);
            }
            let elapsed = started.elapsed();
            for ((row, plain), request) in rows.iter().zip(&plain).zip(&requests) {
                assert_eq!(row.output.tokens, plain.tokens, "{name}: {}", plain.text());
                assert!(row.output.is_complete() && row.output.tokens.len() <= request.max_tokens, "{name}");
                assert!(request.table.is_some_and(|table| table.accepts(&row.output.tokens)), "{name}");
            }
            row(name, tokens, rows.iter().map(|row| row.calls).sum(), elapsed);
        }
        println!("\nAll outputs were those of `generate`, token for token, valid and complete.");
        Ok(())
    }
}

fn row(name: &str, tokens: usize, calls: usize, elapsed: Duration) {
    let (tokens, calls) = (tokens as f64, calls as f64);
    println!(
        "| {name} | {:.2} | {:.3} | {:.0} |",
        tokens / calls,
        calls / tokens,
        tokens / elapsed.as_secs_f64()
    );
}
