//! From a request to the first event of its answers: encode the prompt, compile the constraint, queue.

use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use burn_dfa::constraint::{ToolChoice, ToolFormat, Tools};
use burn_dfa::{TokenId, TokenTable};
use serde_json::Value;

use crate::answer::choice::{ChoiceReader, Form};
use crate::answer::failure;
use crate::app::App;
use crate::config::ReasoningMode;
use crate::engine::{Ask, Event, Generation, Sampling, Source, Table};
use crate::error::{ApiError, Result};
use crate::protocol::constraint::Given;

/// What the model goes on with.
#[derive(Clone, Debug)]
pub enum Prompts {
    /// A conversation, with the definitions of tools.
    Chat(Vec<Value>, Vec<Value>),
    /// Texts.
    Texts(Vec<String>),
    /// Tokens.
    Tokens(Vec<Vec<u32>>),
}

/// A request, whatever its endpoint.
#[derive(Debug)]
pub struct Wanted {
    /// The prompts.
    pub prompts: Prompts,
    /// The field that holds them.
    pub prompt_param: &'static str,
    /// Answers to each.
    pub n: usize,
    /// Most tokens of an answer, where the request says so.
    pub max_tokens: Option<usize>,
    /// Most tokens of an answer without a constraint, where it does not.
    pub usual_tokens: usize,
    /// The field that says so.
    pub max_tokens_param: &'static str,
    /// How tokens are chosen.
    pub sampling: Sampling,
    /// What was read of the prompts is shared with requests of the same salt alone.
    pub cache_salt: Option<String>,
    /// How long pieces are kept for the next event, where the answers come as events.
    pub interval: Option<Duration>,
    /// The constraint.
    pub constraint: Option<Given>,
    /// Tools that may be called.
    pub tools: Option<Tools>,
}

impl Wanted {
    fn is_chat(&self) -> bool {
        matches!(self.prompts, Prompts::Chat(..))
    }
}

/// Answers that have begun.
#[derive(Debug)]
pub struct Begun {
    /// The answers.
    pub generation: Generation,
    /// A reader for each.
    pub readers: Vec<ChoiceReader>,
    /// Tokens of all prompts.
    pub prompt_tokens: usize,
    /// The field that holds the constraint.
    pub param: &'static str,
    /// The constraint.
    pub table: Option<TokenTable>,
    /// Most tokens of an answer to the first prompt.
    pub budget: usize,
}

/// Makes a request ready, queues it, and waits until its first answer begins.
///
/// # Errors
/// What is wrong with it, or 503.
pub async fn begin(app: &Arc<App>, wanted: Wanted) -> Result<Begun> {
    if !app.is_ready() {
        return Err(ApiError::overloaded("the server is shutting down"));
    }
    let width = app.text.vocabulary().len();
    if let Some((token, _)) =
        wanted.sampling.options.logit_bias.iter().find(|(token, _)| token.index() >= width)
    {
        let message = format!("{token} is no token, of {width} that there are");
        return Err(ApiError::invalid("logit_bias", message));
    }
    let (own, prompts, param) = (app.clone(), wanted.prompts.clone(), wanted.prompt_param);
    let prompts = app.pool.run(move || encode(&own, prompts, param)).await??;
    let Plan { source, param, form } = plan(app, &wanted)?;
    let table = match source {
        Some(source) => app.compiler.table(source, param).await?,
        None => None,
    };
    let prompt_tokens = prompts.iter().map(Vec::len).sum();
    let with_budget = |prompt: Vec<TokenId>| {
        let budget = budget(app.engine.slots(), prompt.len(), &wanted, table.as_ref())?;
        Ok((prompt, budget))
    };
    let prompts = prompts.into_iter().map(with_budget).collect::<Result<Vec<_>>>()?;
    let (own_table, n) = (table.clone(), wanted.n);
    let budgets: Vec<usize> = prompts.iter().map(|(_, budget)| *budget).collect();
    let ask = Ask {
        prompts,
        table,
        sampling: wanted.sampling,
        n,
        interval: wanted.interval,
        cache_salt: wanted.cache_salt,
    };
    if ask.answers() > app.engine.max_queue() {
        let most = app.engine.max_queue();
        let message = format!("{} answers are more than the {most} that may wait", ask.answers());
        return Err(ApiError::invalid("n", message));
    }
    let reader = |_| ChoiceReader::new(&form);
    let readers = (0..ask.answers()).map(reader).collect::<Result<Vec<_>>>()?;
    let mut generation = app.engine.submit(ask)?;
    match generation.next().await {
        Some((index, Event::Failed(reason))) => Err(match reason.tokens_needed() {
            // The constraint was not compiled when the budget was looked at.
            Some(needed) => ApiError::budget(wanted.max_tokens_param, needed, budgets[index / n]),
            None => failure(&reason, param),
        }),
        Some(_) => {
            let (table, budget) = (own_table.and_then(Table::ready), budgets[0]);
            Ok(Begun { generation, readers, prompt_tokens, param, table, budget })
        }
        None => Err(ApiError::overloaded("the server is shutting down")),
    }
}

fn encode(app: &App, prompts: Prompts, param: &str) -> Result<Vec<Vec<TokenId>>> {
    let text = |text: &String, with_special| {
        app.check_prompt(text, param)?;
        app.text.encode(text, with_special).map_err(|error| error.at(param))
    };
    let prompts = match prompts {
        Prompts::Chat(messages, tools) => vec![text(&app.text.render(&messages, &tools)?, false)?],
        Prompts::Texts(texts) => texts.iter().map(|one| text(one, true)).collect::<Result<_>>()?,
        Prompts::Tokens(tokens) => {
            let own = |tokens: Vec<u32>| tokens.into_iter().map(TokenId).collect::<Vec<_>>();
            tokens.into_iter().map(own).collect::<Vec<_>>()
        }
    };
    let width = app.text.vocabulary().len();
    for prompt in &prompts {
        if prompt.is_empty() {
            return Err(ApiError::invalid(param, "the prompt has no token"));
        }
        if let Some(token) = prompt.iter().find(|token| token.index() >= width) {
            return Err(ApiError::invalid(param, format!("{token} is no token, of {width} that there are")));
        }
    }
    if prompts.is_empty() {
        return Err(ApiError::invalid(param, "there is no prompt"));
    }
    Ok(prompts)
}

/// What an answer is made from, and how it is read.
struct Plan {
    source: Option<Source>,
    /// The field that holds the constraint.
    param: &'static str,
    form: Form,
}

fn plan(app: &App, wanted: &Wanted) -> Result<Plan> {
    let text = &app.text;
    let of_tools = |tools: &Tools, param| {
        let source = Some(Source::Tools(Box::new(tools.clone()), said_of(tools)));
        Plan { source, param, form: Form::Tools(Box::new(tools.clone())) }
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
            let param = given.as_ref().map_or("response_format", |given| given.param);
            Ok(Plan { source, param, form: Form::Text })
        }
        (None, None) => {
            let none = Tools::new([]).map_err(|error| ApiError::of_library(&error, "messages"))?;
            Ok(of_tools(&text.tools(none.with_choice(ToolChoice::None)), "messages"))
        }
        (Some(Given { source: Source::Request(said), param }), None) => match text.marks() {
            Some((begin, end)) => {
                let source = Some(Source::After(end, said.clone()));
                Ok(Plan { source, param, form: Form::Reasoned(begin, end) })
            }
            // Reasoning that may be left out is left out.
            None if app.config.reasoning == ReasoningMode::Optional => {
                Ok(Plan { source: Some(Source::Request(said.clone())), param, form: Form::Text })
            }
            None => Err(ApiError::unsupported(
                param,
                "a constraint is not offered beside the reasoning of this model: use `tools`, or start the server with `--reasoning none`",
            )),
        },
        (Some(given), None) => Err(ApiError::unsupported(given.param, "it is not offered beside reasoning")),
    }
}

/// What tells tools from others.
fn said_of(tools: &Tools) -> String {
    serde_json::json!([tools.tools(), tools.choice(), format!("{tools:?}")]).to_string()
}

/// One call, or where none has to come a text of the constraint.
///
/// # Errors
/// 400 where it would not be known which of them an answer is: where calls have no mark in front, or the text might begin with it.
fn calls_or_content(given: &Given, tools: &Tools) -> Result<Plan> {
    let param = given.param;
    let unsupported = |reason: String| {
        ApiError::unsupported(
            param,
            format!("`{param}` beside `tools` that may be called is offered {reason}"),
        )
    };
    let format = tools.format();
    let mark = call_mark(format).ok_or_else(|| {
        unsupported(format!("where a mark stands in front of calls, which `{format}` does not write"))
    })?;
    let content = given
        .json()
        .ok_or_else(|| unsupported("where it asks for JSON, which does not begin as calls do".into()))?;
    let (choice, may_be_content) = match tools.choice() {
        ToolChoice::Auto => (ToolChoice::Required, true),
        ToolChoice::Allowed { names, required } => {
            (ToolChoice::Allowed { names: names.clone(), required: true }, !required)
        }
        choice => (choice.clone(), false),
    };
    // Between two calls there may be text, which would be free.
    let calls = Box::new(tools.clone().with_choice(choice).with_parallel(false));
    let source = Source::Either {
        said: said_of(&calls),
        calls: calls.clone(),
        content: content.to_owned(),
        may_be_content,
    };
    Ok(Plan { source: Some(source), param, form: Form::Either(mark, calls) })
}

/// What calls of a format begin with, and JSON does not.
fn call_mark(format: ToolFormat) -> Option<&'static str> {
    match format {
        ToolFormat::Hermes | ToolFormat::QwenXml => Some("<tool_call>"),
        ToolFormat::Mistral => Some("[TOOL_CALLS]"),
        ToolFormat::DeepSeek | ToolFormat::DeepSeekV31 => Some("<｜tool▁calls▁begin｜>"),
        // JSON, or messages with a text of their own.
        _ => None,
    }
}

/// The most tokens of an answer to a prompt of so many tokens.
fn budget(slots: usize, prompt: usize, wanted: &Wanted, table: Option<&Table>) -> Result<usize> {
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
    let most = match wanted.max_tokens {
        Some(0) => {
            return Err(ApiError::invalid(param, format!("`{param}` of 0 leaves nothing to generate")));
        }
        Some(most) if most > left => {
            let message = format!(
                "the prompt has {prompt} tokens and the answer at most {most}, which together are more than {slots}: lower `{param}` to {left}"
            );
            return too_long(message, param);
        }
        Some(most) => most,
        None if table.is_some() => left,
        None => left.min(wanted.usual_tokens),
    };
    let needed = table.map_or(0, Table::tokens_needed);
    if needed > most { Err(ApiError::budget(param, needed, most)) } else { Ok(most) }
}

#[cfg(test)]
mod tests {
    use burn_dfa::Limits;
    use burn_dfa::constraint::Tool;

    use super::*;

    #[test]
    fn calls_begin_with_their_mark() {
        for format in ToolFormat::ALL {
            let Some(mark) = call_mark(format) else { continue };
            let tools = Tools::new([Tool::new("now"), Tool::new("then")]).expect("names are fine");
            let tools = tools.with_format(format).with_choice(ToolChoice::Required).with_parallel(false);
            let automaton = tools.to_constraint().and_then(|calls| calls.to_automaton(&Limits::default()));
            let automaton = automaton.expect("it compiles").expect("it is over text");
            let mut at = automaton.start();
            for byte in mark.bytes() {
                let alive = (0..=u8::MAX).filter(|&byte| !automaton.next(&at, byte).is_dead());
                assert_eq!(alive.collect::<Vec<_>>(), [byte], "{format}");
                at = automaton.next(&at, byte);
            }
        }
    }
}
