//! Tools: the embedded model calls Rust functions, and answers with what they return.
//!
//!     cargo run --release --example tools
//!     cargo run --release --example tools -- "What is 12 times 12?"
//!
//! Each variant of [`Action`] is a tool. Under the constraint the model writes a text, or calls of
//! these tools with arguments that fit their fields, so every call parses as an [`Action`].

mod action;

use std::io::{Write as _, stdout};

use action::Action;
use burn::tensor::Device;
use burn_dfa::constraint::{Reply, ReplyEvent, ToolFormat, Tools};
use burn_dfa::generation::{GenerationConfig, Request, stream};
use burn_dfa::{CompiledConstraint, Limits};
use burn_dfa_decoder::{Message, Pretrained};
use clap::Parser;
use serde_json::Value;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Token budget of an answer. A constrained answer is complete within it.
const MAX_TOKENS: usize = 96;

/// Maximum number of consecutive calls before an answer.
const MAX_CALLS: usize = 4;

const PROMPTS: [&str; 5] = [
    "Will it rain in Lisbon tomorrow?",
    "What is 17 times 23?",
    "Set a timer of 12 minutes for the soup.",
    "Play the songs of Mira Holt.",
    "Good morning!",
];

/// The embedded model calls Rust functions, and answers with what they return.
#[derive(Parser)]
struct Args {
    /// The prompts. Default: a few examples.
    prompts: Vec<String>,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let agent = Agent::new()?;
    if args.prompts.is_empty() {
        return PROMPTS.iter().try_for_each(|prompt| agent.answer(prompt));
    }
    args.prompts.iter().try_for_each(|prompt| agent.answer(prompt))
}

/// A model with its tools.
struct Agent {
    pretrained: Pretrained,
    tools: Tools,
    /// The tools as the chat template reads them.
    definitions: Vec<Value>,
    /// A text, or calls.
    constraint: CompiledConstraint,
}

impl Agent {
    fn new() -> Result<Self> {
        let pretrained = burn_dfa_tiny::load(&Device::flex())?;
        let tools = Tools::from_type::<Action>()?.with_format(ToolFormat::Hermes).with_parallel(false);
        let definitions =
            tools.tools().iter().map(serde_json::to_value).collect::<serde_json::Result<Vec<_>>>()?;
        // The model was trained on compact arguments.
        let options = tools.json_options().with_whitespace(burn_dfa_tiny::WHITESPACE);
        let constraint = tools.to_constraint_with(&options)?;
        let compiled = CompiledConstraint::compile(&constraint, pretrained.vocabulary(), &Limits::default())?;
        Ok(Self { pretrained, tools, definitions, constraint: compiled })
    }

    /// Lets the model answer a prompt, with calls as needed.
    fn answer(&self, prompt: &str) -> Result<()> {
        println!("user   {prompt}");
        let mut messages = vec![Message::user(prompt)];
        for _ in 0..MAX_CALLS {
            let (text, reply) = self.turn(&messages)?;
            if reply.calls.is_empty() {
                break;
            }
            messages.push(Message::assistant(text));
            for call in &reply.calls {
                let result = call.to_enum::<Action>()?.run();
                println!("tool   {result}");
                messages.push(Message::new("tool", result.to_string()));
            }
        }
        println!();
        Ok(())
    }

    /// The next output of the model, as text and parsed; streamed to the terminal.
    fn turn(&self, messages: &[Message]) -> Result<(String, Reply)> {
        let prompt = self.pretrained.encode_chat_with_tools(messages, &self.definitions)?;
        let positions = self.pretrained.model().config().max_position_embeddings;
        let left = positions.saturating_sub(prompt.len()).min(MAX_TOKENS);
        let request = Request::new(prompt, left).with_constraint(&self.constraint);
        let mut reader = self.tools.reader()?;
        let (model, vocabulary) = (self.pretrained.model(), self.pretrained.vocabulary());
        print!("model  ");
        let mut chunks = stream(model, vocabulary, &[request], &GenerationConfig::new())?;
        for chunk in &mut chunks {
            reader.push(chunk?.text.as_bytes())?.iter().for_each(show);
        }
        reader.finish()?.iter().for_each(show);
        println!();
        Ok((chunks.stop().remove(0).text(), reader.into_reply()))
    }
}

/// Prints a part of an answer.
fn show(event: &ReplyEvent) {
    match event {
        ReplyEvent::Text(delta) | ReplyEvent::Arguments { delta, .. } => print!("{delta}"),
        ReplyEvent::CallBegins { name, .. } => print!("{name} "),
        _ => {}
    }
    stdout().flush().ok();
}
