//! Streams of chunks, and cancellation, in all three loops.

use burn_dfa::ErrorKind;

use burn::tensor::{DType, Device};
use burn_dfa::generation::speculative::{self, PromptLookup, speculate};
use burn_dfa::generation::{
    Cancel, Chunk, DecodeGraph, FinishReason, GenerationConfig, Output, Request, TokenStream, generate,
    stream,
};
use burn_dfa::{CompiledConstraint, Constraint, Limits, Result, TokenId, Vocabulary};

use crate::common::model::RandomLm;
use burn_dfa_testing::words::vocabulary_of;

const SLOTS: usize = 80;

fn vocabulary() -> Vocabulary {
    vocabulary_of(&[])
}

fn regex(pattern: &str, vocabulary: &Vocabulary) -> CompiledConstraint {
    CompiledConstraint::compile(&Constraint::regex(pattern).unwrap(), vocabulary, &Limits::default()).unwrap()
}

fn config() -> GenerationConfig {
    GenerationConfig::new().with_sync_interval(4)
}

/// Collects chunks, row by row, and calls back after each.
fn collect(pieces: &mut TokenStream, mut after: impl FnMut(&Chunk)) -> Result<Vec<(String, Vec<TokenId>)>> {
    let mut rows = vec![(String::new(), Vec::new()); 2];
    for piece in pieces {
        let piece = piece?;
        rows[piece.row].0.push_str(&piece.text);
        rows[piece.row].1.extend_from_slice(&piece.tokens);
        after(&piece);
    }
    Ok(rows)
}

/// Runs two requests in each of the three loops as an iterator, with their outputs without
/// cancellation.
fn in_every_loop(
    requests: impl Fn(&Cancel) -> [Request; 2],
    check: impl Fn(&str, TokenStream, &Cancel, &[Output]),
) {
    let (vocabulary, device) = (vocabulary(), Device::flex());
    let plain = requests(&Cancel::default());

    let model = RandomLm::new(vocabulary.len(), 1, DType::F32, &device);
    let whole = generate(&model, &vocabulary, &plain, &config()).unwrap();
    let cancel = Cancel::default();
    let pieces = stream(&model, &vocabulary, &requests(&cancel), &config()).unwrap();
    check("eager", pieces, &cancel, &whole);

    let mut graph = DecodeGraph::record(&model, &vocabulary, &plain, &config(), SLOTS).unwrap();
    let cancel = Cancel::default();
    check("graph", graph.stream(&requests(&cancel)).unwrap(), &cancel, &whole);

    let drafter = || PromptLookup::new(3, 2);
    let whole = speculate(&model, &vocabulary, &plain, &config(), drafter()).unwrap();
    let whole: Vec<_> = whole.into_iter().map(|row| row.output).collect();
    let cancel = Cancel::default();
    let pieces = speculative::stream(&model, &vocabulary, &requests(&cancel), &config(), drafter()).unwrap();
    check("speculative steps", pieces, &cancel, &whole);
}

#[test]
fn the_chunks_join_to_the_outputs() {
    let vocabulary = vocabulary();
    let constraint = regex("(ab|é|日本){3,12}", &vocabulary);
    let requests = |_: &Cancel| {
        let prompt = vec![TokenId(97), TokenId(98)];
        [Request::new(prompt, 60).with_constraint(&constraint), Request::new(vec![TokenId(97)], 9)]
    };
    in_every_loop(requests, |name, mut pieces, _, whole| {
        let rows = collect(&mut pieces, |_| ()).unwrap();
        assert!(pieces.next().is_none(), "{name}: it is over");
        let outputs = pieces.stop();
        assert_eq!(outputs, whole, "{name}");
        for ((text, tokens), output) in rows.iter().zip(&outputs) {
            assert_eq!((text, tokens), (&output.text(), &output.tokens), "{name}");
        }
    });
    in_every_loop(requests, |name, pieces, _, whole| assert_eq!(pieces.finish().unwrap(), whole, "{name}"));
}

#[test]
fn a_canceled_row_ends_at_the_next_read_and_other_rows_continue() {
    let vocabulary = vocabulary();
    let constraint = regex("[a-z]{40}", &vocabulary);
    for (row, at_once) in [(0, false), (1, false), (0, true)] {
        let requests = |cancel: &Cancel| {
            [0, 1].map(|index| {
                let request = Request::new(vec![TokenId(97), TokenId(98)], 50).with_constraint(&constraint);
                if index == row { request.with_cancel(cancel) } else { request }
            })
        };
        in_every_loop(requests, |name, mut pieces, cancel, whole| {
            if at_once {
                cancel.cancel();
            }
            let stop = |piece: &Chunk| {
                if piece.row == row {
                    cancel.cancel();
                }
            };
            let rows = collect(&mut pieces, stop).unwrap();
            let outputs = pieces.stop();
            let (ended, other) = (&outputs[row], &outputs[1 - row]);
            assert_eq!(*other, whole[1 - row], "{name}");
            assert_eq!(ended.finish, FinishReason::Canceled, "{name}");
            assert_eq!(ended.text(), rows[row].0, "{name}");
            assert!(whole[row].text().starts_with(&ended.text()), "{name}");
            // Four steps to the first read; each speculative step gives up to four tokens.
            let tokens = ended.tokens.len();
            assert!(
                if at_once { tokens == 0 } else { (4..=16).contains(&tokens) },
                "{name}: {tokens} tokens"
            );
            let error = ended.parse::<String>().unwrap_err();
            assert!(
                error.kind() == ErrorKind::Canceled
                    && !error.kind().is_constraint()
                    && error.kind() != ErrorKind::Budget,
                "{name}"
            );
            assert_eq!(error.tokens_done(), Some(tokens), "{name}");
            assert!(error.to_string().contains(&ended.text()), "{name}: {error}");
        });
    }
}

#[test]
fn a_batch_that_is_canceled_as_a_whole_takes_no_further_step() {
    let vocabulary = vocabulary();
    let constraint = regex("[a-z]{40}", &vocabulary);
    let cancel = Cancel::default();
    let request = || Request::new(vec![TokenId(97)], 50).with_constraint(&constraint).with_cancel(&cancel);
    let model = RandomLm::new(vocabulary.len(), 1, DType::F32, &Device::flex());
    let mut chunks = stream(&model, &vocabulary, &[request(), request()], &config()).unwrap();
    for (index, chunk) in chunks.by_ref().enumerate() {
        if chunk.unwrap().tokens.len() == 4 && index == 2 {
            cancel.cancel();
        }
    }
    let outputs = chunks.stop();
    // All tokens of a read are returned.
    assert_eq!(outputs.iter().map(|output| output.tokens.len()).collect::<Vec<_>>(), [8, 8]);
    assert!(outputs.iter().all(|output| output.finish == FinishReason::Canceled));
}

#[test]
fn a_batch_is_canceled_from_another_thread() {
    let vocabulary = vocabulary();
    let constraint = regex("[a-z]+", &vocabulary);
    let model = RandomLm::new(vocabulary.len(), 1, DType::F32, &Device::flex());
    let cancel = Cancel::default();
    let request = Request::new(vec![TokenId(97)], 200_000).with_constraint(&constraint).with_cancel(&cancel);
    let (first, seen) = std::sync::mpsc::channel();
    let other = std::thread::spawn(move || {
        seen.recv().unwrap();
        cancel.cancel();
    });
    // The end must be unlikely, or the row might end early.
    let config = config().with_min_new_tokens(199_999);
    let mut chunks = stream(&model, &vocabulary, &[request], &config).unwrap();
    for chunk in &mut chunks {
        chunk.unwrap();
        let _ = first.send(());
    }
    let outputs = chunks.stop();
    other.join().unwrap();
    assert_eq!(outputs[0].finish, FinishReason::Canceled);
    assert!(!outputs[0].tokens.is_empty());
}
