//! Stop strings end rows, and no part of one is ever handed out.

use std::ops::ControlFlow;

use burn::tensor::{DType, Device};
use burn_dfa::generation::{DecodeGraph, Finish, GenerationConfig, Output, Piece, Request, Slots, generate};
use burn_dfa::{Capacity, Constraint, TensorOptions, TokenId};

use crate::common::model::RandomLm;
use crate::common::words::{tabulated, vocabulary};

fn go_on(_: Piece) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn config() -> GenerationConfig {
    let capacity = Capacity { tables: 3, states: 300, classes: 100, ..Capacity::new() };
    let tensors = TensorOptions { capacity, ..TensorOptions::default() };
    GenerationConfig::new().with_temperature(1.0).with_tensors(tensors).with_read_every(3)
}

#[test]
fn a_row_ends_before_its_first_stop_string_in_every_loop() {
    let vocabulary = vocabulary();
    let table = tabulated(&Constraint::regex("([ab]|é|été){40}").unwrap(), &vocabulary);
    let model = RandomLm::new(vocabulary.len(), 8, DType::F32, &Device::flex());
    let stops: [&[&str]; 5] = [&[], &["ab"], &["ba", "éé"], &["aab", "ab", "é"], &["never", "bbbb"]];
    let requests: Vec<Request> = (0..20)
        .map(|index| {
            let request = Request::new(vec![TokenId(index)], 90).with_table(&table).with_seed(index.into());
            request.with_stop(stops[index as usize % 5].iter().copied())
        })
        .collect();
    let whole: Vec<Request> = requests.iter().map(|request| request.clone().with_stop([""; 0])).collect();
    let config = config();
    let whole = generate(&model, &vocabulary, &whole, &config, go_on).unwrap();
    let mut stopped = 0;
    let mut check = |index: usize, output: &Output, streamed: &str| {
        let (text, stops) = (whole[index].text(), stops[index % 5]);
        let first = (0..=text.len()).filter(|&end| text.is_char_boundary(end)).find_map(|end| {
            let ends = stops.iter().filter(|stop| text[..end].ends_with(**stop));
            ends.map(|stop| end - stop.len()).min()
        });
        assert_eq!(output.text(), text[..first.unwrap_or(text.len())], "{text}, {stops:?}");
        assert_eq!(output.text(), streamed, "{text}, {stops:?}");
        assert_eq!(output.finish, if first.is_some() { Finish::Stop } else { Finish::EndOfSequence });
        assert!(whole[index].tokens.starts_with(&output.tokens));
        stopped += usize::from(first.is_some());
    };
    let mut streamed = vec![String::new(); requests.len()];
    let outputs = generate(&model, &vocabulary, &requests, &config, |piece| {
        streamed[piece.row].push_str(&piece.text);
        ControlFlow::Continue(())
    })
    .unwrap();
    outputs.iter().zip(&streamed).enumerate().for_each(|(index, (output, text))| check(index, output, text));
    let mut graph = DecodeGraph::record(&model, &vocabulary, &requests, &config, 100).unwrap();
    let outputs = graph.generate(&requests, go_on).unwrap();
    outputs.iter().enumerate().for_each(|(index, output)| check(index, output, &output.text()));
    let mut slots = Slots::new(&model, &vocabulary, 1, 100, &config).unwrap();
    for (index, request) in requests.iter().enumerate() {
        let mut text = String::new();
        slots.admit(0, request).unwrap();
        while slots.finished().count() == 0 {
            slots.step(4, |piece| text.push_str(&piece.text)).unwrap();
        }
        check(index, &slots.release(0).unwrap(), &text);
    }
    assert!(stopped > 20, "{stopped} rows were stopped");
}

#[test]
fn an_empty_stop_string_is_refused() {
    let vocabulary = vocabulary();
    let model = RandomLm::new(vocabulary.len(), 8, DType::F32, &Device::flex());
    let requests = [Request::new(vec![TokenId(1)], 9).with_stop(["x", ""])];
    assert!(generate(&model, &vocabulary, &requests, &config(), go_on).unwrap_err().is_input());
}
