//! The engine of this project: answers the questions on standard input.

use std::cell::RefCell;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::Path;
use std::time::Instant;

use burn::tensor::Device;
use burn_dfa::constraint::JsonOptions;
use burn_dfa::generation::speculative::{
    self, DraftToken, Drafter, DrafterContext, ForcedBytes, ForcedTokens, PromptLookup, Sequences,
};
use burn_dfa::generation::{GenerationConfig, Request, stream};
use burn_dfa::processor::{DraftTree, Position};
use burn_dfa::{CompiledConstraint, Constraint, ForcedText, Limits, TokenId, Vocabulary};
use burn_dfa_decoder::{Message, Pretrained};
use serde_json::Value;

use crate::Failure;
use crate::acceptance::DraftCounts;
use crate::engine::{Answer, Drafts, Hello, Prompt, Question, Reply, Row};
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
    let requests = requests(pretrained, question)?;
    let first = requests.first().ok_or("a question has a prompt")?;
    // The host reads every token, so that no step runs after the last one.
    let config = GenerationConfig::new().with_temperature(question.temperature).with_sync_interval(1);
    let drafts = RefCell::new(Vec::new());
    let started = Instant::now();
    // Reads the prompts and chooses the first tokens.
    let mut chunks = match drafter(question.drafts)? {
        None => stream(model, vocabulary, &requests, &config)?,
        Some(drafter) => {
            let drafter = LoggedDrafter { drafter, log: &drafts };
            speculative::stream(model, vocabulary, &requests, &config, drafter)?
        }
    };
    let prompt_seconds = started.elapsed().as_secs_f64();
    let mut calls = 0;
    for chunk in &mut chunks {
        // A chunk of every row after every call.
        calls += usize::from(chunk?.row == 0);
    }
    let outputs = chunks.stop();
    let seconds = started.elapsed().as_secs_f64() - prompt_seconds;
    let drafts = drafts.into_inner().iter().map(|drafts| first_row(drafts)).collect::<Result<Vec<_>, _>>()?;
    let constraint = first.constraint.clone();
    let constraint = constraint.unwrap_or_else(|| CompiledConstraint::unconstrained(vocabulary));
    let drafts = DraftCounts::of(&drafts, &outputs[0].tokens, &constraint, question.max_tokens);
    Ok(Answer {
        rows: outputs.iter().map(|output| Row { text: output.text(), tokens: output.tokens.len() }).collect(),
        calls,
        prompt_tokens: first.prompt.len(),
        prompt_seconds,
        seconds,
        drafts,
        peak: peak_memory(),
    })
}

/// A request for each prompt. Requests with the same schema share its compiled constraint.
fn requests(pretrained: &Pretrained, question: &Question) -> Result<Vec<Request>, Failure> {
    let (mut constraints, mut requests) = (HashMap::new(), Vec::new());
    for Prompt { system, user, schema } in &question.prompts {
        let tokens = pretrained.encode_chat(&[Message::system(system), Message::user(user)])?;
        let mut request = Request::new(tokens, question.max_tokens).with_seed(question.seed);
        if let Some(schema) = schema {
            let constraint = match constraints.entry(schema) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => new.insert(compile(schema, question, pretrained.vocabulary())?),
            };
            request = request.with_constraint(constraint);
        }
        requests.push(request);
    }
    Ok(requests)
}

fn compile(
    schema: &Value,
    question: &Question,
    vocabulary: &Vocabulary,
) -> Result<CompiledConstraint, Failure> {
    let options = JsonOptions::new().with_whitespace(question.whitespace.parse()?);
    let forced = if question.longest { ForcedText::Longest } else { ForcedText::AnyToken };
    let constraint = Constraint::json_schema_with(schema.clone(), &options)?;
    Ok(CompiledConstraint::compile(&constraint, vocabulary, &Limits::new().with_forced_text(forced))?)
}

/// Draft tokens of a lookup in each call.
pub const LOOKUP: usize = 4;

/// The greatest number of forced tokens in each call.
pub const FORCED: usize = 8;

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

/// A drafter that logs its draft tokens.
struct LoggedDrafter<'a> {
    drafter: Box<dyn Drafter>,
    /// The draft tokens of each call.
    log: &'a RefCell<Vec<Vec<DraftToken>>>,
}

impl Drafter for LoggedDrafter<'_> {
    fn tree(&self) -> DraftTree {
        self.drafter.tree()
    }

    fn start(&mut self, context: &DrafterContext) -> burn_dfa::Result<()> {
        self.drafter.start(context)
    }

    fn draft(&mut self, sequences: &Sequences, state: &Position) -> Vec<DraftToken> {
        let drafts = self.drafter.draft(sequences, state);
        self.log.borrow_mut().push(drafts.clone());
        drafts
    }
}

/// The draft tokens of the first row.
fn first_row(drafts: &[DraftToken]) -> Result<Vec<TokenId>, Failure> {
    let id = |draft: &DraftToken| -> Result<TokenId, Failure> {
        let ids = draft.tokens.clone().into_data().try_to_vec::<i32>()?;
        Ok(TokenId(ids[0] as u32))
    };
    drafts.iter().map(id).collect()
}
