//! Prepares a request up to the first event of its answers: encodes the prompt, compiles the
//! constraint, and queues the answers.

use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use burn_dfa::constraint::{ToolChoice, ToolFormat, Tools};
use burn_dfa::{CompiledConstraint, TokenId};
use burn_dfa_engine::{
    Client, Event, Failure, Generation, GenerationRequest, Prompt, RequestConstraint, Sampling,
};
use serde_json::Value;

use crate::answer::choice::{AnswerFormat, ChoiceReader};
use crate::answer::failure;
use crate::app::App;
use crate::config::ReasoningMode;
use crate::constraints::{Compilation, ConstraintText, Source};
use crate::error::{ApiError, Result};
use crate::protocol::constraint::ConstraintParam;
use crate::protocol::template::Template;
use crate::protocol::warning::{Warning, Warnings};

/// The text that the model continues.
#[derive(Clone, Debug)]
pub enum Prompts {
    /// A conversation, and options that turn it into a prompt.
    Chat(Vec<Value>, Template),
    /// Texts, and whether the tokenizer adds its special tokens.
    Texts(Vec<String>, bool),
    /// Tokens.
    Tokens(Vec<Vec<u32>>),
}

/// A request of any endpoint.
#[derive(Debug)]
pub struct PreparedRequest {
    /// The prompts.
    pub prompts: Prompts,
    /// The field of the prompts.
    pub prompt_param: &'static str,
    /// Number of answers to each prompt.
    pub n: usize,
    /// Maximum number of tokens of an answer, if the request sets one.
    pub max_tokens: Option<usize>,
    /// Maximum number of tokens of an unconstrained answer, if the request sets none.
    pub usual_tokens: usize,
    /// The field of the maximum.
    pub max_tokens_param: &'static str,
    /// How tokens are chosen.
    pub sampling: Sampling,
    /// Cached prefixes of the prompts are shared only with requests of the same salt.
    pub cache_salt: Option<String>,
    /// How long chunks are held for the next event, if the answers are streamed.
    pub interval: Option<Duration>,
    /// The constraint.
    pub constraint: Option<ConstraintParam>,
    /// Tools that may be called.
    pub tools: Option<Tools>,
    /// Warnings so far.
    pub warnings: Warnings,
}

impl PreparedRequest {
    fn is_chat(&self) -> bool {
        matches!(self.prompts, Prompts::Chat(..))
    }
}

/// Answers that have begun.
#[derive(Debug)]
pub struct StartedGeneration {
    /// The answers.
    pub generation: Generation,
    /// A reader for each answer.
    pub readers: Vec<ChoiceReader>,
    /// Tokens of all prompts.
    pub prompt_tokens: usize,
    /// The field of the constraint.
    pub param: &'static str,
    /// The constraint.
    pub constraint: Option<CompiledConstraint>,
    /// Maximum number of tokens of an answer to the first prompt.
    pub budget: usize,
    /// Warnings of the answer.
    pub warnings: Vec<Warning>,
}

/// Prepares a request, queues it, and waits until its first answer begins.
///
/// # Errors
/// An invalid request, or 503.
pub async fn begin(app: &Arc<App>, client: Client, mut wanted: PreparedRequest) -> Result<StartedGeneration> {
    if !app.is_ready() {
        return Err(ApiError::overloaded("the server is shutting down"));
    }
    let vocab_size = app.text.vocabulary().len();
    let biased = wanted.sampling.options.logit_bias.iter().map(|(token, _)| ("logit_bias", token));
    let stops = wanted.sampling.stop_tokens.iter().map(|token| ("stop_token_ids", token));
    if let Some((param, token)) = biased.chain(stops).find(|(_, token)| token.index() >= vocab_size) {
        return Err(ApiError::invalid(param, format!("{token} is no token, of {vocab_size} that there are")));
    }
    let (own, prompts, param) = (app.clone(), wanted.prompts.clone(), wanted.prompt_param);
    let (tools, warnings) = (wanted.tools.clone(), std::mem::take(&mut wanted.warnings));
    let encoded = app.pool.run(client, move || encode(&own, prompts, tools.as_ref(), param, warnings));
    let (prompts, mut warnings) = encoded.await??;
    let Plan { source, param, format } = plan(app, &wanted)?;
    let compilation = match source {
        Some(source) => app.compiler.compile(client, source, param).await?,
        None => None,
    };
    let constraint = compilation.as_ref().and_then(Compilation::constraint);
    let prompt_tokens = prompts.iter().map(Vec::len).sum();
    let with_budget = |tokens: Vec<TokenId>| {
        let slots = app.engine.config().slots;
        let max_new_tokens = budget(slots, tokens.len(), &wanted, constraint.as_ref())?;
        Ok(Prompt { tokens, max_new_tokens, constraint: constraint.clone() })
    };
    let prompts = prompts.into_iter().map(with_budget).collect::<Result<Vec<_>>>()?;
    let n = wanted.n;
    let budgets: Vec<usize> = prompts.iter().map(|prompt| prompt.max_new_tokens).collect();
    let ask = GenerationRequest {
        prompts,
        sampling: wanted.sampling,
        n,
        interval: wanted.interval,
        cache_salt: wanted.cache_salt,
        client,
    };
    let (answers, max) = (ask.answers(), app.engine.config().max_queue);
    if answers > max {
        let param = if n > max { "n" } else { wanted.prompt_param };
        let message = format!("`{param}` asks for {answers} answers, of {max} that may wait");
        return Err(ApiError::invalid(param, message));
    }
    let reader = |_| ChoiceReader::new(&format);
    let readers = (0..answers).map(reader).collect::<Result<Vec<_>>>()?;
    let mut generation = app.engine.submit(ask)?;
    match generation.next().await {
        Some((index, Event::Failed(reason))) => {
            // The constraint was not compiled yet when the request was queued.
            let refusal = compilation.as_ref().and_then(Compilation::refusal);
            Err(match (&reason, reason.tokens_needed(), refusal) {
                (_, Some(needed), _) => ApiError::budget(wanted.max_tokens_param, needed, budgets[index / n]),
                (Failure::Constraint, _, Some(refusal)) => refusal.api_error(param),
                _ => failure(&reason, param),
            })
        }
        Some(_) => {
            let compiled = compilation.as_ref().and_then(Compilation::ready).flatten();
            for left_out in compiled.iter().flat_map(|compiled| compiled.left_out.iter()) {
                warnings.add(left_out.location(param), left_out.warning());
            }
            let (constraint, budget) = (compiled.map(|compiled| compiled.constraint), budgets[0]);
            let warnings = warnings.tell();
            Ok(StartedGeneration { generation, readers, prompt_tokens, param, constraint, budget, warnings })
        }
        None => Err(ApiError::overloaded("the server is shutting down")),
    }
}

/// The tokens of prompts, and the warnings so far.
fn encode(
    app: &App,
    prompts: Prompts,
    tools: Option<&Tools>,
    param: &str,
    mut warnings: Warnings,
) -> Result<(Vec<Vec<TokenId>>, Warnings)> {
    let text = |text: &String, with_special: bool| {
        app.check_prompt(text, param)?;
        app.text.encode(text, with_special)
    };
    let prompts = match prompts {
        Prompts::Chat(messages, template) => {
            let prompt = app.text.render(&messages, tools, &template, param, &mut warnings)?;
            app.check_prompt(&prompt.text(), param)?;
            vec![app.text.encode_chat(&prompt, param)?]
        }
        Prompts::Texts(texts, with_special) => {
            texts.iter().map(|one| text(one, with_special)).collect::<Result<_>>()?
        }
        Prompts::Tokens(tokens) => {
            let own = |tokens: Vec<u32>| tokens.into_iter().map(TokenId).collect::<Vec<_>>();
            tokens.into_iter().map(own).collect::<Vec<_>>()
        }
    };
    let vocab_size = app.text.vocabulary().len();
    for prompt in &prompts {
        if prompt.is_empty() {
            return Err(ApiError::invalid(param, "the prompt has no token"));
        }
        if let Some(token) = prompt.iter().find(|token| token.index() >= vocab_size) {
            return Err(ApiError::invalid(
                param,
                format!("{token} is no token, of {vocab_size} that there are"),
            ));
        }
    }
    if prompts.is_empty() {
        return Err(ApiError::invalid(param, "there is no prompt"));
    }
    Ok((prompts, warnings))
}

/// The source of an answer's constraint, and the format of the answer.
struct Plan {
    source: Option<Source>,
    /// The field of the constraint.
    param: &'static str,
    format: AnswerFormat,
}

fn plan(app: &App, wanted: &PreparedRequest) -> Result<Plan> {
    let text = &app.text;
    let of_tools = |tools: &Tools, param| {
        let source = Some(Source::Tools(Box::new(tools.clone()), tools_cache_key(tools)));
        Plan { source, param, format: AnswerFormat::Tools(Box::new(tools.clone())) }
    };
    match (&wanted.constraint, &wanted.tools) {
        (Some(given), Some(_)) if text.reasoning().is_some() => Err(ApiError::unsupported(
            given.param,
            format!("`{}` beside `tools` that may be called is offered without reasoning", given.param),
        )),
        (Some(given), Some(tools)) => calls_or_content(given, tools),
        (None, Some(tools)) => Ok(of_tools(tools, "tools")),
        (given, None) if text.reasoning().is_none() || !wanted.is_chat() => {
            let source = given.as_ref().map(|given| given.source.clone());
            let param = given.as_ref().map_or(wanted.prompt_param, |given| given.param);
            Ok(Plan { source, param, format: AnswerFormat::Text })
        }
        (None, None) => {
            let param = wanted.prompt_param;
            let none = Tools::new([]).map_err(|error| ApiError::of_library(&error, param))?;
            Ok(of_tools(&text.tools(none.with_choice(ToolChoice::None)), param))
        }
        (Some(ConstraintParam { source: Source::Request(request), param }), None) => match text.marks() {
            Some((begin, end)) => {
                let source = Some(Source::After(end.clone(), request.clone()));
                Ok(Plan { source, param, format: AnswerFormat::Reasoned(begin.to_owned(), end) })
            }
            // Optional reasoning is left out.
            None if app.config.reasoning == ReasoningMode::Optional => {
                Ok(Plan { source: Some(Source::Request(request.clone())), param, format: AnswerFormat::Text })
            }
            None => Err(ApiError::unsupported(
                param,
                "a constraint is not offered beside the reasoning of this model: use `tools`, or start the server with `--reasoning none`",
            )),
        },
        (Some(given), None) => Err(ApiError::unsupported(given.param, "it is not offered beside reasoning")),
    }
}

/// Distinguishes tools in the cache.
fn tools_cache_key(tools: &Tools) -> String {
    serde_json::json!([tools.tools(), tools.choice(), format!("{tools:?}")]).to_string()
}

/// Calls, or a text of the constraint if no call is required.
///
/// # Errors
/// 400 if the two cannot be distinguished: text may precede calls, or the text is not JSON.
fn calls_or_content(given: &ConstraintParam, tools: &Tools) -> Result<Plan> {
    let param = given.param;
    let unsupported = |reason: String| {
        ApiError::unsupported(
            param,
            format!("`{param}` beside `tools` that may be called is offered {reason}"),
        )
    };
    let format = tools.format();
    let marks = tools.beginnings().ok_or_else(|| {
        unsupported(format!("where answers begin with calls, which they do not in `{format}`"))
    })?;
    let content =
        given.json().ok_or_else(|| unsupported("where it asks for JSON, which is told from calls".into()))?;
    let (choice, may_be_content) = match tools.choice() {
        ToolChoice::Auto => (ToolChoice::Required, true),
        ToolChoice::Allowed { names, required } => {
            (ToolChoice::Allowed { names: names.clone(), required: true }, !required)
        }
        choice => (choice.clone(), false),
    };
    // Text between two separate calls would be unconstrained.
    let are_apart = matches!(format, ToolFormat::Hermes | ToolFormat::QwenXml | ToolFormat::Llama31);
    let mut calls = tools.clone().with_choice(choice);
    if are_apart {
        calls = calls.with_parallel(false);
    }
    let calls = Box::new(calls);
    let said = tools_cache_key(&calls);
    let content: ConstraintText = content.clone();
    let source = Source::Either { said, calls: calls.clone(), content, may_be_content };
    Ok(Plan { source: Some(source), param, format: AnswerFormat::Either(marks.into(), calls) })
}

/// The maximum number of tokens of an answer to a prompt of `prompt` tokens.
fn budget(
    slots: usize,
    prompt: usize,
    wanted: &PreparedRequest,
    constraint: Option<&RequestConstraint>,
) -> Result<usize> {
    let too_long = |message: String, param: &str| {
        let error = ApiError::new(StatusCode::BAD_REQUEST, message);
        Err(error.at(param).code("context_length_exceeded"))
    };
    let left = slots.saturating_sub(prompt);
    if left == 0 {
        let message =
            format!("the prompt has {prompt} tokens, and prompt and answer together have at most {slots}");
        return too_long(message, wanted.prompt_param);
    }
    let param = wanted.max_tokens_param;
    let max = match wanted.max_tokens {
        Some(0) => {
            return Err(ApiError::invalid(param, format!("`{param}` of 0 leaves nothing to generate")));
        }
        Some(max) if max > left => {
            let message = format!(
                "the prompt has {prompt} tokens and the answer at most {max}, which together are more than {slots}: lower `{param}` to {left}"
            );
            return too_long(message, param);
        }
        Some(max) => max,
        None if constraint.is_some() => left,
        None => left.min(wanted.usual_tokens),
    };
    let least = wanted.sampling.min_tokens;
    if least > max {
        let message = format!(
            "an answer has at most {max} tokens, and is to have at least {least}: lower `min_tokens` to {max}"
        );
        return Err(ApiError::invalid("min_tokens", message));
    }
    let needed = constraint.map_or(0, RequestConstraint::tokens_needed);
    if needed > max { Err(ApiError::budget(param, needed, max)) } else { Ok(max) }
}

#[cfg(test)]
mod tests {
    use burn_dfa::Limits;
    use burn_dfa::constraint::Tool;

    use super::*;

    #[test]
    fn calls_begin_as_they_are_told_from_text() {
        for format in ToolFormat::ALL {
            let tools = Tools::new([Tool::new("now"), Tool::new("then")]).expect("names are fine");
            let tools = tools.with_format(format).with_choice(ToolChoice::Required).with_parallel(false);
            let Some(marks) = tools.beginnings() else { continue };
            let automaton = tools.to_constraint().and_then(|calls| calls.to_automaton(&Limits::default()));
            let automaton = automaton.expect("it compiles").expect("it is over text");
            // Every live prefix is the beginning of a mark.
            for mark in &marks {
                let mut at = automaton.start();
                for (read, byte) in mark.bytes().enumerate() {
                    let read = &mark.as_bytes()[..read];
                    let alive = (0..=u8::MAX).filter(|&byte| !automaton.next(&at, byte).is_dead());
                    let begun = marks.iter().filter_map(|mark| mark.as_bytes().strip_prefix(read));
                    let mut next: Vec<u8> = begun.filter_map(|rest| rest.first().copied()).collect();
                    next.sort_unstable();
                    next.dedup();
                    assert_eq!(alive.collect::<Vec<_>>(), next, "{format}: {read:?}");
                    at = automaton.next(&at, byte);
                }
            }
        }
    }
}
