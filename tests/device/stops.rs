//! Stop strings end rows, and no part of a stop string is ever returned.

use burn_dfa::ErrorKind;

use burn::tensor::{DType, Device};
use burn_dfa::generation::{
    ContinuousBatch, DecodeGraph, FinishReason, GenerationConfig, Output, Request, generate, stream,
};
use burn_dfa::vocabulary::TokenKind;
use burn_dfa::{Capacity, Constraint, TensorOptions, TokenId, Vocabulary};

use crate::common::model::RandomLm;
use burn_dfa_testing::words::{token_level, vocabulary};

fn config() -> GenerationConfig {
    let capacity = Capacity { constraints: 3, states: 300, classes: 100, ..Capacity::new() };
    let tensors = TensorOptions { capacity, ..TensorOptions::default() };
    GenerationConfig::new().with_temperature(1.0).with_tensors(tensors).with_sync_interval(3)
}

#[test]
fn a_row_ends_before_its_first_stop_string_in_every_loop() {
    let vocabulary = vocabulary();
    let constraint = token_level(&Constraint::regex("([ab]|é|été){40}").unwrap(), &vocabulary);
    let model = RandomLm::new(vocabulary.len(), 8, DType::F32, &Device::flex());
    let stops: [&[&str]; 5] = [&[], &["ab"], &["ba", "éé"], &["aab", "ab", "é"], &["never", "bbbb"]];
    let requests: Vec<Request> = (0..20)
        .map(|index| {
            let request =
                Request::new(vec![TokenId(index)], 90).with_constraint(&constraint).with_seed(index.into());
            request.with_stop(stops[index as usize % 5].iter().copied())
        })
        .collect();
    let whole: Vec<Request> = requests.iter().map(|request| request.clone().with_stop([""; 0])).collect();
    let config = config();
    let whole = generate(&model, &vocabulary, &whole, &config).unwrap();
    let mut stopped = 0;
    let mut check = |index: usize, output: &Output, streamed: &str| {
        let (text, stops) = (whole[index].text(), stops[index % 5]);
        let first = (0..=text.len()).filter(|&end| text.is_char_boundary(end)).find_map(|end| {
            let ends = stops.iter().filter(|stop| text[..end].ends_with(**stop));
            ends.map(|stop| end - stop.len()).min()
        });
        assert_eq!(output.text(), text[..first.unwrap_or(text.len())], "{text}, {stops:?}");
        assert_eq!(output.text(), streamed, "{text}, {stops:?}");
        assert_eq!(
            output.finish,
            if first.is_some() { FinishReason::Stop } else { FinishReason::EndOfSequence }
        );
        assert!(whole[index].tokens.starts_with(&output.tokens));
        stopped += usize::from(first.is_some());
    };
    let mut streamed = vec![String::new(); requests.len()];
    let mut chunks = stream(&model, &vocabulary, &requests, &config).unwrap();
    for chunk in &mut chunks {
        let chunk = chunk.unwrap();
        streamed[chunk.row].push_str(&chunk.text);
    }
    let outputs = chunks.stop();
    outputs.iter().zip(&streamed).enumerate().for_each(|(index, (output, text))| check(index, output, text));
    let mut graph = DecodeGraph::record(&model, &vocabulary, &requests, &config, 100).unwrap();
    let outputs = graph.generate(&requests).unwrap();
    outputs.iter().enumerate().for_each(|(index, output)| check(index, output, &output.text()));
    let mut batch = ContinuousBatch::new(&model, &vocabulary, 1, 100, &config).unwrap();
    for (index, request) in requests.iter().enumerate() {
        let mut text = String::new();
        batch.admit(0, request).unwrap();
        while batch.finished().count() == 0 {
            batch.step(4, |piece| text.push_str(&piece.text)).unwrap();
        }
        check(index, &batch.release(0).unwrap(), &text);
    }
    assert!(stopped > 20, "{stopped} rows were stopped");
}

#[test]
fn an_empty_stop_string_is_refused() {
    let vocabulary = vocabulary();
    let model = RandomLm::new(vocabulary.len(), 8, DType::F32, &Device::flex());
    let requests = [Request::new(vec![TokenId(1)], 9).with_stop(["x", ""])];
    assert_eq!(generate(&model, &vocabulary, &requests, &config()).unwrap_err().kind(), ErrorKind::Input);
}

/// Letters, a special token and the end of the sequence.
fn letters() -> Vocabulary {
    let tokens = ["a", "b", "c", "d"].map(|letter| (TokenKind::Normal, letter));
    let special = [(TokenKind::Special, "<s>"), (TokenKind::Special, "</s>")];
    Vocabulary::from_tokens(tokens.into_iter().chain(special)).unwrap().with_eos([TokenId(5)]).unwrap()
}

/// The text of some tokens, with special tokens if `special`.
fn text(vocabulary: &Vocabulary, tokens: &[TokenId], special: bool) -> String {
    let bytes = |&token| if special { vocabulary.content(token) } else { vocabulary.bytes(token) };
    String::from_utf8(tokens.iter().filter_map(bytes).flatten().copied().collect()).unwrap()
}

#[test]
fn stop_tokens_end_a_row_and_special_tokens_may_be_text() {
    let vocabulary = letters();
    let model = RandomLm::new(vocabulary.len(), 8, DType::F32, &Device::flex());
    let ask = |request: &Request| {
        generate(&model, &vocabulary, std::slice::from_ref(request), &config()).unwrap().remove(0)
    };
    let mut stopped = [0; 2];
    for seed in 0..100 {
        let free = Request::new(vec![TokenId(1)], 30).with_seed(seed);
        let whole = ask(&free);
        for stop in [TokenId(2), TokenId(4)] {
            for special in [false, true] {
                let request = Request { special_tokens: special, ..free.clone().with_stop_tokens([stop]) };
                let first = whole.tokens.iter().position(|&token| token == stop);
                let is_end = whole.finish == FinishReason::EndOfSequence;
                let kept = first.map_or(&whole.tokens[..whole.tokens.len() - usize::from(is_end)], |at| {
                    &whole.tokens[..at]
                });
                let output = ask(&request);
                assert_eq!(output.text(), text(&vocabulary, kept, special));
                assert_eq!(output.tokens, whole.tokens[..first.map_or(whole.tokens.len(), |at| at + 1)]);
                assert_eq!(output.finish, if first.is_some() { FinishReason::Stop } else { whole.finish });
                // With `include_stop`, the text includes the stop.
                let with = ask(&Request { include_stop: true, ..request.clone() });
                assert_eq!(with.text(), text(&vocabulary, &output.tokens, special));
                // With `stop_after`, the row does not end within the first tokens.
                if let Some(at) = first {
                    let later = ask(&Request { stop_after: at + 1, ..request });
                    assert!(later.tokens.len() > at + 1 || at + 1 == whole.tokens.len(), "{later:?}");
                    stopped[usize::from(stop == TokenId(4))] += 1;
                }
            }
        }
    }
    assert!(stopped.iter().all(|&stopped| stopped > 10), "{stopped:?}");
    let wrong = [Request::new(vec![TokenId(1)], 9).with_stop_tokens([TokenId(6)])];
    assert_eq!(generate(&model, &vocabulary, &wrong, &config()).unwrap_err().kind(), ErrorKind::Input);
}

#[test]
fn stop_strings_do_not_count_within_the_first_tokens() {
    let vocabulary = letters();
    let model = RandomLm::new(vocabulary.len(), 8, DType::F32, &Device::flex());
    let ask = |request: &Request| {
        generate(&model, &vocabulary, std::slice::from_ref(request), &config()).unwrap().remove(0)
    };
    let mut stopped = 0;
    for seed in 0..300 {
        let free = Request::new(vec![TokenId(1)], 30).with_seed(seed);
        let whole = ask(&free);
        let request = Request { stop_after: 6, ..free.with_stop(["b"]) };
        let later = whole.tokens.iter().skip(6).position(|&token| token == TokenId(1)).map(|at| at + 6);
        let output = ask(&request);
        assert_eq!(output.finish, if later.is_some() { FinishReason::Stop } else { whole.finish });
        let kept = &whole.tokens[..later.unwrap_or(whole.tokens.len())];
        assert_eq!(output.text(), text(&vocabulary, kept, false));
        let with = ask(&Request { include_stop: true, ..request });
        assert_eq!(with.text(), text(&vocabulary, &output.tokens, false));
        stopped += usize::from(later.is_some());
    }
    assert!(stopped > 5, "{stopped}");
}
