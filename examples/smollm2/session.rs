//! One prompt, generated as the command line says.

use std::io::Write;
use std::ops::ControlFlow;
use std::time::Instant;

use anstream::{eprintln, print, println};
use anstyle::{AnsiColor, Style};
use burn_dfa::generation::{CausalLm, DecodeGraph, Piece, Request, generate};
use burn_dfa::{Limits, TokenTable};
use serde_json::json;

use crate::args::{Args, Result, encode, vocabulary};

const DIM: Style = AnsiColor::BrightBlack.on_default();

/// Generates `--batch` rows from `--prompt`.
pub fn run(args: &Args) -> Result<()> {
    let prompt = args.prompt.as_deref().ok_or("what is the model asked? give a --prompt")?;
    let constraint = args.constraint()?;
    let pretrained = args.load()?;
    let vocabulary = vocabulary(args, &pretrained)?;
    let compiling = Instant::now();
    let table = constraint
        .as_ref()
        .map(|(_, constraint)| TokenTable::compile(constraint, &vocabulary, &Limits::default()))
        .transpose()?;
    if let Some(table) = table.as_ref().filter(|_| !args.json) {
        eprintln!(
            "{DIM}{} states, {} {}, compiled in {:.1} ms{DIM:#}",
            table.state_count(),
            table.class_count(),
            if table.is_walked() { "byte classes, walked" } else { "token classes" },
            compiling.elapsed().as_secs_f64() * 1e3
        );
    }

    let tokens = encode(&pretrained, prompt)?;
    let requests: Vec<_> = (0..args.batch)
        .map(|row| {
            let request =
                Request::new(tokens.clone(), args.max_tokens).with_seed(args.seed().wrapping_add(row));
            Request { table: table.as_ref(), ..request }
        })
        .collect();
    // Text of one row can be shown as it comes; of several rows it would be mixed.
    let streams = !args.json && args.batch == 1;
    let started = Instant::now();
    let on_piece = |piece: Piece| {
        if streams {
            print!("{}", piece.text);
            let _ = std::io::stdout().flush();
        }
        ControlFlow::Continue(())
    };
    let (model, options) = (pretrained.model(), args.options());
    let outputs = if args.graph {
        let slots = tokens.len() + args.max_tokens;
        DecodeGraph::record(model, &vocabulary, &requests, &options, slots)?.generate(&requests, on_piece)?
    } else {
        generate(model, &vocabulary, &requests, &options, on_piece)?
    };
    pretrained.model().device().sync().map_err(|error| format!("{error:?}"))?;
    let seconds = started.elapsed().as_secs_f64();

    if streams {
        println!();
    }
    let generated: usize = outputs.iter().map(|output| output.tokens.len()).sum();
    for output in &outputs {
        if args.json {
            let ids: Vec<_> = output.tokens.iter().map(|token| token.0).collect();
            let row = json!({
                "text": output.text(),
                "token_ids": ids,
                "complete": output.is_complete(),
                "constraint": constraint.as_ref().map(|(name, _)| name),
                "seconds": seconds,
            });
            println!("{row}");
        } else if !streams {
            println!("{}", output.text());
        }
    }
    if !args.json {
        let rate = generated as f64 / seconds;
        eprintln!("{DIM}{generated} tokens in {seconds:.2} s, {rate:.0} tokens/s{DIM:#}");
    }
    Ok(())
}
