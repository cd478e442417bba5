//! Speculative decoding under a constraint: the embedded model, with draft tokens of a draft model,
//! of the prompt, and of the constraint.
//!
//!     cargo run --release --example speculative
//!     cargo run --release --example speculative -- --table
//!
//! The first command shows the tokens that each call of the model added to an output. The second
//! measures all drafters on held-out prompts, and asserts that every output is valid and complete
//! and, if greedy, equal to plain constrained decoding.

mod table;

use std::collections::HashMap;

use burn::tensor::{Device, FloatDType};
use burn_dfa::generation::speculative::{
    DraftModel, Drafter, ForcedBytes, ForcedTokens, MergedDrafters, PromptLookup, stream,
};
use burn_dfa::generation::{GenerationConfig, Request};
use burn_dfa::{CompiledConstraint, Limits, Vocabulary};
use burn_dfa_decoder::{Decoder, Pretrained};
use burn_dfa_tiny::draft;
use burn_dfa_tiny::generator::{Example, Generator, Kind, Split};
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
    /// Draft tokens per call.
    #[arg(long, default_value_t = 4)]
    drafts: usize,
    /// Forced tokens per call, which cost a lookup each.
    #[arg(long, default_value_t = 8)]
    run: usize,
}

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// The longest record has about 50 tokens.
const MAX_TOKENS: usize = 96;

fn main() -> Result<()> {
    let args = Args::parse();
    let pair = Pair::load()?;
    if args.table { table::measure(&pair, &args) } else { pair.show(&args) }
}

/// The model, its draft model, and their shared data.
struct Pair {
    pretrained: Pretrained,
    draft: Decoder,
    vocabulary: Vocabulary,
    constraints: HashMap<Kind, CompiledConstraint>,
}

impl Pair {
    fn load() -> Result<Self> {
        let device = Device::flex();
        let pretrained = burn_dfa_tiny::load(&device)?;
        let draft =
            Decoder::from_bytes(str::from_utf8(draft::CONFIG)?, draft::WEIGHTS, FloatDType::F32, &device)?;
        let vocabulary = pretrained.vocabulary().clone();
        let mut constraints = HashMap::new();
        for kind in Kind::ALL {
            let schema = burn_dfa_tiny::schema(kind.name()).ok_or("every kind has a schema")?;
            constraints.insert(
                kind,
                CompiledConstraint::compile(&schema.constraint()?, &vocabulary, &Limits::default())?,
            );
        }
        Ok(Self { draft, pretrained, vocabulary, constraints })
    }

    /// The prompt of an example under the schema of a kind.
    fn request(&self, example: &Example, kind: Kind) -> Result<Request> {
        Ok(Request::new(self.pretrained.prompt(&example.prompt)?, MAX_TOKENS)
            .with_constraint(&self.constraints[&kind]))
    }

    /// The draft model as a drafter.
    fn draft_model(&self, drafts: usize) -> DraftModel<'_, Decoder> {
        DraftModel::new(&self.draft, drafts)
    }

    /// The drafters, by name.
    fn drafters(&self, args: &Args) -> Result<Vec<(&'static str, Box<dyn Drafter + '_>)>> {
        let model = || self.draft_model(args.drafts);
        let lookup = || PromptLookup::new(args.drafts, 3);
        let forced = |bytes| ForcedTokens::new(args.run, bytes);
        let longest = || forced(ForcedBytes::LongestToken);
        Ok(vec![
            ("draft model, masked", Box::new(model())),
            ("draft model, unmasked", Box::new(model().unmasked())),
            ("prompt lookup", Box::new(lookup())),
            ("automaton, longest token", Box::new(longest())),
            ("automaton, the model's choice", Box::new(forced(ForcedBytes::ModelsChoice))),
            ("automaton, then draft model", Box::new(longest().before(model())?)),
            ("automaton, then prompt lookup", Box::new(longest().before(lookup())?)),
            ("tree: draft model beside prompt lookup", Box::new(MergedDrafters::new(model(), lookup())?)),
        ])
    }

    /// Prints the tokens added by each call, for a prompt of every kind.
    fn show(&self, args: &Args) -> Result<()> {
        // A chunk for each call.
        let config = GenerationConfig::new().with_sync_interval(1);
        for kind in Kind::ALL {
            let example = Generator::new(3).example_of(kind, Split::HeldOut, 1);
            println!("{}", example.prompt);
            let request = [self.request(&example, kind)?];
            for (name, drafter) in self.drafters(args)? {
                let chunks = stream(self.pretrained.model(), &self.vocabulary, &request, &config, drafter)?;
                let texts = chunks.map(|chunk| chunk.map(|chunk| chunk.text));
                let texts = texts.collect::<burn_dfa::Result<Vec<_>>>()?;
                println!("  {name}: {} calls", texts.len());
                println!("    {}", texts.join("|"));
            }
            println!();
        }
        Ok(())
    }
}
