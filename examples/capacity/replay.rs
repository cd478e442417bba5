//! Plays a trace against a model in real time.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use burn_dfa::TensorOptions;
use burn_dfa::generation::{ContinuousBatch, GenerationConfig, Request, SamplingFeatures, SamplingOptions};
use burn_dfa_decoder::Pretrained;
use indicatif::ProgressBar;

use super::Result;
use super::fleet::Quantiles;
use super::measure::CAPACITY;
use super::replica::Shape;
use super::trace::Trace;

/// Serves a trace with one batch, as in the simulation; returns the times to the first and to the
/// last token. Answers are free text of the lengths in the trace.
pub fn replay(pretrained: &Pretrained, trace: &Trace, shape: Shape, slots: usize) -> Result<[Quantiles; 2]> {
    let (model, vocabulary) = (pretrained.model(), pretrained.vocabulary());
    let config = GenerationConfig::new()
        .with_tensors(TensorOptions { capacity: CAPACITY, ..TensorOptions::default() })
        .with_sync_interval(shape.sync_interval as usize)
        .with_prompt_chunk(shape.prompt_chunk as usize)
        .with_row_features(SamplingFeatures::ALL);
    let mut batch = ContinuousBatch::record(model, vocabulary, shape.rows as usize, slots, &config)?;
    let text = pretrained.prompt("Please send 12 brass lamps to Oscar Lund.")?;
    let bar = ProgressBar::new(trace.arrivals.len() as u64);
    let mut arrivals = trace.arrivals.iter().enumerate().peekable();
    let mut waiting = VecDeque::new();
    let mut in_row = vec![0; batch.rows()];
    let mut first: Vec<Option<Duration>> = vec![None; trace.arrivals.len()];
    let mut last = first.clone();
    let began = Instant::now();
    let due = |at: f64| Duration::from_secs_f64(at);
    while bar.position() < trace.arrivals.len() as u64 {
        while let Some((index, arrival)) = arrivals.next_if(|(_, arrival)| due(arrival.at) <= began.elapsed())
        {
            waiting.push_back((index, arrival));
        }
        for row in batch.idle().collect::<Vec<_>>() {
            let Some((index, arrival)) = waiting.pop_front() else { break };
            let prompt = text.iter().copied().cycle().take(arrival.prompt as usize).collect();
            let output = arrival.output as usize;
            let sampling = SamplingOptions { min_new_tokens: output, ..SamplingOptions::default() };
            batch.admit(row, &Request::new(prompt, output).with_sampling(sampling))?;
            in_row[row] = index;
        }
        if batch.idle().count() == batch.rows() {
            let Some((_, arrival)) = arrivals.peek() else { break };
            std::thread::sleep(due(arrival.at).saturating_sub(began.elapsed()));
            continue;
        }
        let mut seen = Vec::new();
        batch.step(shape.sync_interval as usize, |piece| seen.push(piece.row))?;
        let now = began.elapsed();
        for row in seen {
            first[in_row[row]].get_or_insert(now);
        }
        for row in batch.finished().collect::<Vec<_>>() {
            batch.release(row)?;
            last[in_row[row]] = Some(now);
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    Ok([first, last].map(|times| {
        let times = times.into_iter().zip(&trace.arrivals);
        Quantiles::of(times.filter_map(|(time, arrival)| Some(time?.as_secs_f64() - arrival.at)))
    }))
}
