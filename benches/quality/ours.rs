//! The engine of this project: answers the questions on standard input.

use std::path::Path;
use std::time::Instant;

use burn::tensor::Device;
use burn_dfa::constraint::JsonOptions;
use burn_dfa::generation::speculative::{self, Drafter, ForcedBytes, ForcedTokens, PromptLookup};
use burn_dfa::generation::{GenerationConfig, Request, stream};
use burn_dfa::{CompiledConstraint, Constraint, ForcedText, Limits};
use burn_dfa_decoder::{Message, Pretrained};

use crate::Failure;
use crate::engine::{Answer, Drafts, Hello, Question, Reply};
use crate::machine::peak_memory;

/// Answers questions until standard input ends.
///
/// # Errors
/// The model cannot be loaded, or a line is no question.
pub fn serve(model: &Path) -> Result<(), Failure> {
    let pretrained = Pretrained::load(model, None, &Device::flex())?;
    let name = format!("burn-dfa {}, Flex", env!("CARGO_PKG_VERSION"));
    println!("{}", serde_json::to_string(&Hello { name, peak: peak_memory() })?);
    for line in std::io::stdin().lines() {
        let question = serde_json::from_str(&line?)?;
        let reply = match answer(&pretrained, &question) {
            Ok(answer) => Reply::Answer(answer),
            Err(failure) => Reply::Error { error: failure.to_string() },
        };
        println!("{}", serde_json::to_string(&reply)?);
    }
    Ok(())
}

fn answer(pretrained: &Pretrained, question: &Question) -> Result<Answer, Failure> {
    let (model, vocabulary) = (pretrained.model(), pretrained.vocabulary());
    let messages = [Message::system(&question.system), Message::user(&question.user)];
    let prompt = pretrained.encode_chat(&messages)?;
    let prompt_tokens = prompt.len();
    let mut request = Request::new(prompt, question.max_tokens).with_seed(question.seed);
    if let Some(schema) = &question.schema {
        let options = JsonOptions::new().with_whitespace(question.whitespace.parse()?);
        let forced = if question.longest { ForcedText::Longest } else { ForcedText::AnyToken };
        let constraint = Constraint::json_schema_with(schema.clone(), &options)?;
        let limits = Limits::new().with_forced_text(forced);
        request = request.with_constraint(&CompiledConstraint::compile(&constraint, vocabulary, &limits)?);
    }
    // The host reads every token, so that no step runs after the last one.
    let config = GenerationConfig::new().with_temperature(question.temperature).with_sync_interval(1);
    let started = Instant::now();
    let requests = vec![request; question.rows];
    // Reads the prompt and chooses the first token.
    let mut chunks = match drafter(question.drafts)? {
        None => stream(model, vocabulary, &requests, &config)?,
        Some(drafter) => speculative::stream(model, vocabulary, &requests, &config, drafter)?,
    };
    let prompt_seconds = started.elapsed().as_secs_f64();
    let mut calls = 0;
    for chunk in &mut chunks {
        // A chunk of every row after every call.
        calls += usize::from(chunk?.row == 0);
    }
    let outputs = chunks.stop();
    let seconds = started.elapsed().as_secs_f64() - prompt_seconds;
    Ok(Answer {
        text: outputs.first().map(|output| output.text()).unwrap_or_default(),
        tokens: outputs.iter().map(|output| output.tokens.len()).sum(),
        calls,
        prompt_tokens,
        prompt_seconds,
        seconds,
        peak: peak_memory(),
    })
}

/// Draft tokens of a lookup in each call.
const LOOKUP: usize = 4;

/// The greatest number of forced tokens in each call.
const FORCED: usize = 8;

fn drafter(drafts: Drafts) -> Result<Option<Box<dyn Drafter>>, Failure> {
    let lookup = PromptLookup::new(LOOKUP, 3);
    let forced = ForcedTokens::new(FORCED, ForcedBytes::LongestToken);
    Ok(match drafts {
        Drafts::None => None,
        Drafts::Lookup => Some(Box::new(lookup)),
        Drafts::Forced => Some(Box::new(forced)),
        Drafts::ForcedThenLookup => Some(Box::new(forced.before(lookup)?)),
    })
}
