//! The decode loop.

use std::ops::ControlFlow;

use burn::tensor::{DType, Device, Int, Tensor, TensorData};

use super::model::CausalLm;
use super::request::{Options, Output, Piece, Request};
use super::row::Row;
use crate::error::{Error, Result};
use crate::processor::{
    DfaProcessor, InitContext, LogitsProcessor, MinNewTokens, MinP, RepetitionPenalty, StepContext, Suppress,
    Temperature, TopK, TopP,
};
use crate::sampling::{Greedy, GumbelMax, Sampler};
use crate::table::TokenTable;
use crate::tensor::TensorTable;
use crate::vocabulary::{TokenId, Vocabulary};

/// Generates the outputs of a batch of requests, streaming pieces to `on_piece`.
///
/// Every row ends at an end-of-sequence token or after its `max_tokens`; a constrained row always ends
/// complete. Rows may carry different constraints or none. The host reads tokens every
/// [`read_every`](Options::read_every) steps and nothing else; where `on_piece` breaks, the batch is
/// cancelled.
///
/// # Errors
/// All but the last before the first step:
/// - [`Error::is_input`]: no request, an empty prompt, `max_tokens` of 0, a prompt token past the model's
///   vocabulary, more positions than the model has, an option out of range;
/// - [`Error::is_budget`]: a constraint needs more than `max_tokens` tokens, [`Error::tokens_needed`] says
///   how many;
/// - [`Error::is_incompatible_vocabulary`]: a table was compiled for another vocabulary, or the model's
///   logits are narrower than the vocabulary;
/// - [`Error::is_limit`]: a table is larger than [`Options::tensors`] allows;
/// - [`Error::is_model`]: the logits of all tokens that a row might emit were −∞, from the model or through an
///   extreme temperature or penalty.
pub fn generate<M: CausalLm>(
    model: &M,
    vocabulary: &Vocabulary,
    requests: &[Request],
    options: &Options,
    mut on_piece: impl FnMut(Piece) -> ControlFlow<()>,
) -> Result<Vec<Output>> {
    let width = model.vocab_size();
    let steps = check(model, vocabulary, requests, options)?;
    let device = model.device();
    let free = TokenTable::unconstrained(vocabulary);
    let dfa = constraint(&free, requests, options, width, &device)?;
    // Where nothing is filtered, the sampler applies the temperature in its own pass.
    let filtered = options.top_k.is_some() || options.min_p.is_some();
    let (before, within) = if filtered { (options.temperature, None) } else { (None, options.temperature) };
    let chain = dfa
        .then(options.repetition_penalty.map(RepetitionPenalty::new).transpose()?)
        .then((!options.suppress.is_empty()).then(|| Suppress::new(options.suppress.iter().copied())))
        .then((options.min_new_tokens > 0).then(|| MinNewTokens::new(options.min_new_tokens, vocabulary)))
        .then(before.map(Temperature::new).transpose()?)
        .then(options.top_k.map(TopK::new).transpose()?)
        .then(options.top_p.map(TopP::new).transpose()?)
        .then(options.min_p.map(MinP::new).transpose()?);
    let sampler: Box<dyn Sampler> = match options.temperature {
        None => Box::new(Greedy),
        Some(_) => {
            let seeds: Vec<_> = requests.iter().map(|request| request.seed).collect();
            let sampler = GumbelMax::new(&seeds, width, &device)?;
            Box::new(sampler.with_temperature(within.unwrap_or(1.0))?)
        }
    };

    let (prompt, padding) = left_padded(requests, &device);
    let [batch, length] = prompt.dims();
    let mut state = chain.init(&InitContext { prompt: prompt.clone(), padding: padding.clone(), width });
    let (mut logits, mut cache) = model.prefill(prompt, padding, length + steps);
    let mut context = StepContext {
        tokens: Tensor::full([batch], width as i32, (&device, DType::I32)),
        step: Tensor::zeros([1], (&device, DType::I32)),
    };
    let mut rows: Vec<_> = requests.iter().map(|request| Row::new(request, vocabulary, &free)).collect();
    let mut unread = Vec::new();
    for step in 1..=steps {
        chain.choose(&mut state, &mut context, logits, &*sampler);
        context.step = context.step + 1;
        unread.push(context.tokens.clone().reshape([1, batch]));
        if unread.len() == options.read_every || step == steps {
            let goes_on = read(&mut unread, &mut rows, &mut on_piece)?;
            if !goes_on {
                break;
            }
        }
        if step == steps {
            break;
        }
        logits = model.step(context.tokens.clone(), &mut cache);
    }
    Ok(rows.into_iter().map(Row::into_output).collect())
}

/// Checks what can be checked without the device; gives the number of steps.
fn check<M: CausalLm>(
    model: &M,
    vocabulary: &Vocabulary,
    requests: &[Request],
    options: &Options,
) -> Result<usize> {
    options.check()?;
    let width = model.vocab_size();
    if width < vocabulary.len() {
        return Err(Error::incompatible_vocabulary(format!(
            "the model's rows of {width} logits are narrower than the vocabulary of {} tokens",
            vocabulary.len()
        )));
    }
    if requests.is_empty() {
        return Err(Error::input("a batch needs at least one request"));
    }
    for (row, request) in requests.iter().enumerate() {
        if request.prompt.is_empty() {
            return Err(Error::input(format!(
                "row {row}: the prompt has no token; begin with the model's first token"
            )));
        }
        if request.max_tokens == 0 {
            return Err(Error::input(format!("row {row}: max_tokens of 0 leaves nothing to generate")));
        }
        if let Some(token) = request.prompt.iter().find(|token| token.index() >= width) {
            return Err(Error::input(format!(
                "row {row}: prompt token {token} of a model of {width} tokens"
            )));
        }
        if let Some(table) = request.table {
            table.check_vocabulary(vocabulary)?;
        }
    }
    let steps = requests.iter().map(|request| request.max_tokens).max().unwrap_or(0);
    let length = requests.iter().map(|request| request.prompt.len()).max().unwrap_or(0);
    if let Some(most) = model.max_positions()
        && length.saturating_add(steps) > most
    {
        return Err(Error::input(format!(
            "prompts of up to {length} tokens and {steps} new ones exceed the model's {most} positions"
        )));
    }
    Ok(steps)
}

/// The processor of the batch: every distinct table once, rows without one on `free`.
fn constraint(
    free: &TokenTable,
    requests: &[Request],
    options: &Options,
    width: usize,
    device: &Device,
) -> Result<DfaProcessor> {
    let mut tables: Vec<&TokenTable> = Vec::new();
    let mut rows = Vec::with_capacity(requests.len());
    for request in requests {
        let table = request.table.unwrap_or(free);
        let known = tables.iter().position(|other| std::ptr::eq(*other, table));
        rows.push(known.unwrap_or(tables.len()));
        if known.is_none() {
            tables.push(table);
        }
    }
    let budgets: Vec<_> = requests.iter().map(|request| request.max_tokens).collect();
    let table = TensorTable::new(&tables, width, &options.tensors, device)?;
    DfaProcessor::new(table, &rows)?.with_budgets(&budgets)
}

/// The prompts, `[batch, length]`, and the padding of each, `[batch]`.
fn left_padded(requests: &[Request], device: &Device) -> (Tensor<2, Int>, Tensor<1, Int>) {
    let length = requests.iter().map(|request| request.prompt.len()).max().unwrap_or(0);
    let mut tokens: Vec<i32> = Vec::with_capacity(requests.len() * length);
    let mut padding: Vec<i32> = Vec::with_capacity(requests.len());
    for request in requests {
        let pad = length - request.prompt.len();
        padding.push(pad as i32);
        tokens.extend(std::iter::repeat_n(0, pad));
        tokens.extend(request.prompt.iter().map(|token| token.0 as i32));
    }
    let batch = requests.len();
    let tokens = TensorData::new(tokens, [batch, length]);
    let padding = TensorData::new(padding, [batch]);
    (Tensor::from_data(tokens, device), Tensor::from_data(padding, device))
}

/// Reads the unread tokens, hands them to their rows and the caller; false where the loop may end.
fn read(
    unread: &mut Vec<Tensor<2, Int>>,
    rows: &mut [Row],
    on_piece: &mut impl FnMut(Piece) -> ControlFlow<()>,
) -> Result<bool> {
    let tokens = Tensor::cat(std::mem::take(unread), 0).into_data();
    let tokens = tokens.try_to_vec::<i32>().map_err(|error| Error::model(format!("tokens: {error:?}")))?;
    let batch = rows.len();
    for (index, row) in rows.iter_mut().enumerate() {
        if row.is_finished() {
            continue;
        }
        let new: Vec<_> = tokens.iter().skip(index).step_by(batch).map(|&id| TokenId(id as u32)).collect();
        let (text, taken) = row.take(&new)?;
        if on_piece(Piece { row: index, text: &text, tokens: &new[..taken] }).is_break() {
            return Ok(false);
        }
    }
    Ok(!rows.iter().all(Row::is_finished))
}
