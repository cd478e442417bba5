//! Rows that begin before their tables are compiled.

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::thread;

use burn::tensor::{DType, Device};
use burn_dfa::generation::{
    Cancel, Finish, GenerationConfig, Output, Piece, Request, SamplingKinds, SamplingOptions, SlotLm, Slots,
    generate,
};
use burn_dfa::{
    Capacity, Constraint, Limits, PendingTable, Result, TableSender, TensorOptions, TokenId, TokenTable,
    Vocabulary,
};
use rand::{Rng, SeedableRng, rngs::StdRng};
use serde_json::json;

use super::prefixes::Plain;
use crate::common::altered::{Altered, Call};
use crate::common::words::{vocabulary, vocabulary_of};
use crate::common::{devices, embedded::Embedded, model::RandomLm};

fn config(states: usize) -> GenerationConfig {
    let capacity = Capacity { tables: 4, states, classes: 300, ..Capacity::new() }.with_stack(4, 64);
    let tensors = TensorOptions { capacity, ..TensorOptions::default() };
    GenerationConfig::new().with_tensors(tensors).with_read_every(4).with_row_options(SamplingKinds::ALL)
}

fn regex(pattern: &str, vocabulary: &Vocabulary) -> TokenTable {
    TokenTable::compile(&Constraint::regex(pattern).unwrap(), vocabulary, &Limits::default()).unwrap()
}

fn schema(schema: &serde_json::Value, vocabulary: &Vocabulary) -> TokenTable {
    let constraint = Constraint::json_schema(schema.clone()).unwrap();
    TokenTable::compile(&constraint, vocabulary, &Limits::default()).unwrap()
}

fn alone<M: SlotLm>(model: &M, vocabulary: &Vocabulary, request: &Request) -> Output {
    let go_on = |_: Piece| ControlFlow::Continue(());
    let config = GenerationConfig::new();
    generate(model, vocabulary, std::slice::from_ref(request), &config, go_on).unwrap().remove(0)
}

/// The same request with its table still to come, and what tells of it.
fn pending<'a>(request: &Request<'a>) -> (TableSender, Request<'a>) {
    let (sender, pending) = PendingTable::channel();
    (sender, Request { table: None, ..request.clone() }.with_pending(&pending))
}

/// Serves all requests. The tables of most are compiled at some time after they were admitted, in any order.
fn serve<M: SlotLm>(slots: &mut Slots<M>, requests: &[Request], seed: u64) -> Vec<Output> {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut outputs: Vec<Option<Output>> = vec![None; requests.len()];
    let mut streamed = vec![Vec::new(); requests.len()];
    let (mut waiting, mut in_row) = ((0..requests.len()).rev().collect::<Vec<_>>(), vec![0; slots.rows()]);
    let mut senders: Vec<(usize, TableSender)> = Vec::new();
    while outputs.iter().any(Option::is_none) {
        while rng.random_bool(0.7)
            && let Some(&index) = waiting.last()
            && let Some(row) = slots.idle_for(&requests[index])
        {
            let admitted = if requests[index].table.is_some() && rng.random_bool(0.8) {
                let (sender, request) = pending(&requests[index]);
                senders.push((index, sender));
                slots.admit(row, &request)
            } else {
                slots.admit(row, &requests[index])
            };
            match admitted {
                Ok(()) => in_row[row] = index,
                Err(error) if error.is_full() => break,
                Err(error) => panic!("{error}"),
            }
            waiting.pop();
        }
        if !senders.is_empty() && rng.random_bool(0.4) {
            let (index, sender) = senders.swap_remove(rng.random_range(0..senders.len()));
            assert!(streamed[index].is_empty(), "a token without a table");
            sender.send(Ok(requests[index].table.unwrap().clone()));
        }
        let take = |piece: Piece| streamed[in_row[piece.row]].extend(piece.tokens);
        slots.step(rng.random_range(0..9), take).unwrap();
        for row in slots.finished().collect::<Vec<_>>() {
            outputs[in_row[row]] = Some(slots.release(row).unwrap());
        }
    }
    let outputs: Vec<Output> = outputs.into_iter().flatten().collect();
    assert!(outputs.iter().zip(&streamed).all(|(output, tokens)| output.tokens == *tokens));
    outputs
}

/// Constraints of each kind: a regex, a schema, one with calls.
fn tables(vocabulary: &Vocabulary) -> Vec<TokenTable> {
    let person = json!({
        "type": "object", "properties": {"name": {"type": "string", "maxLength": 4}, "age": {"enum": [12, null]}},
        "required": ["name", "age"], "additionalProperties": false
    });
    let nested = json!({
        "type": "object", "properties": {"name": {"enum": [true, false]}, "age": {"$ref": "#"}},
        "required": ["name"], "additionalProperties": false
    });
    let tables = vec![
        regex("[0-9]{4}-[0-9]{2}", vocabulary),
        schema(&person, vocabulary),
        schema(&nested, vocabulary),
    ];
    assert!(tables[2].outcomes() > 0, "it has calls");
    tables
}

#[test]
fn what_a_row_writes_does_not_depend_on_when_its_table_came() {
    let vocabulary = vocabulary();
    let tables = tables(&vocabulary);
    let mut rng = StdRng::seed_from_u64(1);
    let warm = SamplingOptions::new().with_temperature(0.9);
    let options = [warm.clone(), SamplingOptions::new(), warm.with_top_p(0.8).with_repetition_penalty(1.4)];
    // Some prompts begin as others do.
    let beginning: Vec<TokenId> = (0..20).map(|_| TokenId(rng.random_range(0..256))).collect();
    let requests: Vec<Request> = (0..36)
        .map(|index| {
            let own = rng.random_range(1..20);
            let mut prompt: Vec<_> = (0..own).map(|_| TokenId(rng.random_range(0..256))).collect();
            if rng.random() {
                prompt.splice(0..0, beginning.iter().copied());
            }
            let table = tables.get(index % 4);
            let needed = table.map_or(1, |table| table.tokens_to_end(table.start()) as usize);
            let request = Request::new(prompt, needed + rng.random_range(0..12)).with_seed(index as u64);
            Request { table, ..request }.with_sampling(options[index % 3].clone())
        })
        .collect();
    let flex = RandomLm::new(vocabulary.len() + 5, 9, DType::F32, &Device::flex());
    let expected: Vec<Output> = requests.iter().map(|request| alone(&flex, &vocabulary, request)).collect();
    for (name, device) in devices::all() {
        let model = RandomLm::new(vocabulary.len() + 5, 9, DType::F32, &device);
        // A software Vulkan takes its time.
        let (chunks, requests) = if name == "flex" {
            (&[None, Some(1), Some(7)][..], &requests[..])
        } else {
            (&[None, Some(7)][..], &requests[..16])
        };
        for &chunk in chunks {
            for (make, prefixes) in
                [Slots::new, Slots::record].into_iter().flat_map(|make| [(make, false), (make, true)])
            {
                // Room for the largest, and not for all at once.
                let config = config(320).with_prompt_chunk(chunk).with_prefix_cache(prefixes);
                let mut slots = make(&model, &vocabulary, 3, 96, &config).unwrap();
                let outputs = serve(&mut slots, requests, 2);
                for (index, (output, expected)) in outputs.iter().zip(&expected).enumerate() {
                    assert_eq!(output, expected, "{name}, {chunk:?}, {prefixes}, request {index}");
                }
                let arena = slots.arena().unwrap();
                assert_eq!(arena.room(), arena.capacity(), "{name}");
            }
        }
    }
}

#[test]
fn the_embedded_model_reads_while_tables_are_compiled() {
    for (name, device) in devices::all() {
        let embedded = Embedded::load(&device);
        let tables = [embedded.schema("person"), embedded.regex("[0-9]{3}-[0-9]{4}")];
        let count = if name == "flex" { 9 } else { 4 };
        let rows: Vec<_> = (0..count).map(|index| tables.get(index % 3)).collect();
        let requests = embedded.requests(&rows, 60, 0);
        let (model, vocabulary) = (embedded.model(), &embedded.vocabulary);
        for chunk in [None, Some(5)] {
            let config = config(6000).with_prompt_chunk(chunk);
            let mut slots = Slots::new(model, vocabulary, 3, 256, &config).unwrap();
            for (output, request) in serve(&mut slots, &requests, 5).iter().zip(&requests) {
                assert_eq!(output.text(), alone(model, vocabulary, request).text(), "{name}, {chunk:?}");
            }
        }
    }
}

#[test]
fn a_table_is_compiled_while_a_row_begins() {
    let vocabulary = vocabulary();
    let model = RandomLm::new(vocabulary.len(), 9, DType::F32, &Device::flex());
    let constraint = Constraint::regex("[a-f]{5}").unwrap();
    let compile = |limits: Limits| PendingTable::compile(&constraint, &vocabulary, &limits);
    let request = Request::new(vec![TokenId(65); 9], 8);
    let mut slots = Slots::new(&model, &vocabulary, 2, 64, &config(600)).unwrap();
    slots.admit(0, &request.clone().with_pending(&compile(Limits::default()))).unwrap();
    slots.admit(1, &request.clone().with_pending(&compile(Limits::new().with_states(3)))).unwrap();
    // Without anything else to do it waits.
    while slots.finished().count() < 2 {
        slots.step(8, |_| ()).unwrap();
    }
    let table = regex("[a-f]{5}", &vocabulary);
    assert_eq!(slots.release(0).unwrap(), alone(&model, &vocabulary, &request.with_table(&table)));
    assert!(slots.release(1).unwrap_err().is_limit());
}

#[test]
fn all_but_the_last_token_of_a_prompt_is_read_without_a_table() {
    let vocabulary = vocabulary();
    let table = regex("[a-f]{5}", &vocabulary);
    for (chunk, before, alone) in
        [(None, vec![24, 0, 0, 0], vec![1, 0, 0]), (Some(10), vec![10, 0, 10, 0, 4, 0], vec![1, 0, 0])]
    {
        let calls = RefCell::new(Vec::new());
        let random = RandomLm::new(vocabulary.len(), 9, DType::F32, &Device::flex());
        let model = Altered::new(random, |call, logits| {
            calls.borrow_mut().push(match call {
                Call::Begin(tokens) | Call::Extend(tokens) => tokens.dims()[1],
                _ => 0,
            });
            logits
        });
        let config = config(600).with_prompt_chunk(chunk);
        let mut slots = Slots::new(&model, &vocabulary, 3, 96, &config).unwrap();
        slots.admit(0, &Request::new(vec![TokenId(65)], 60)).unwrap();
        slots.step(1, |_| ()).unwrap();
        calls.take();
        let request = Request::new(vec![TokenId(65); 25], 8).with_table(&table);
        let (sender, later) = pending(&request);
        slots.admit(1, &later).unwrap();
        assert!(calls.take().is_empty());
        let mut pieces = Vec::new();
        slots.step(3, |piece| pieces.push((piece.row, piece.tokens.len()))).unwrap();
        assert_eq!((calls.take(), &pieces[..]), (before, &[(0, 3)][..]), "{chunk:?}");
        // A request behind it does not wait for it.
        slots.admit(2, &Request::new(vec![TokenId(65)], 4)).unwrap();
        slots.step(1, |piece| pieces.push((piece.row, piece.tokens.len()))).unwrap();
        assert_eq!((calls.take(), &pieces[1..]), (vec![1, 0], &[(0, 1), (2, 2)][..]), "{chunk:?}");
        sender.send(Ok(table.clone()));
        slots.step(2, |piece| pieces.push((piece.row, piece.tokens.len()))).unwrap();
        assert_eq!((calls.take(), &pieces[3..]), (alone, &[(0, 2), (1, 3), (2, 2)][..]), "{chunk:?}");
    }
}

#[test]
fn a_model_that_reads_prompts_whole_reads_them_with_the_table() {
    let vocabulary = vocabulary();
    let table = regex("[a-f]{5}", &vocabulary);
    let model = Plain(RandomLm::new(vocabulary.len(), 9, DType::F32, &Device::flex()));
    let request = Request::new(vec![TokenId(65); 9], 8).with_table(&table);
    let mut slots = Slots::new(&model, &vocabulary, 2, 64, &config(600)).unwrap();
    let (sender, later) = pending(&request);
    slots.admit(0, &later).unwrap();
    slots.admit(1, &Request::new(vec![TokenId(65)], 4)).unwrap();
    slots.step(9, |piece| assert_eq!(piece.row, 1)).unwrap();
    sender.send(Ok(table.clone()));
    slots.step(8, |_| ()).unwrap();
    assert_eq!(slots.release(0).unwrap(), alone(&model, &vocabulary, &request));
}

#[test]
fn a_late_refusal_is_of_its_request_alone() {
    let vocabulary = vocabulary();
    let model = RandomLm::new(vocabulary.len(), 9, DType::F32, &Device::flex());
    let table = regex("[a-f]{9}", &vocabulary);
    let compile = |pattern: &str, vocabulary: &Vocabulary, limits: &Limits| {
        TokenTable::compile(&Constraint::regex(pattern).unwrap(), vocabulary, limits)
    };
    let (other, small) = (vocabulary_of(&["other"]), Limits::new().with_states(9));
    let nothing = Constraint::json_schema(json!({"allOf": [{"type": "string"}, {"type": "null"}]})).unwrap();
    type Refused = (&'static str, Option<Result<TokenTable>>, fn(&burn_dfa::Error) -> bool);
    let refused: [Refused; 6] = [
        ("a limit", Some(compile("a{20}", &vocabulary, &small)), |error| error.is_limit()),
        ("a contradiction", Some(TokenTable::compile(&nothing, &vocabulary, &Limits::default())), |error| {
            error.is_unsatisfiable()
        }),
        ("a budget", Some(Ok(regex("a{20}", &vocabulary))), |error| error.tokens_needed() == Some(21)),
        ("no room at all", Some(Ok(regex("(ab?){5}[a-f]{900}|a", &vocabulary))), |error| error.is_input()),
        ("another vocabulary", Some(Ok(regex("a", &other))), |error| error.is_incompatible_vocabulary()),
        ("nothing", None, |error| error.is_table()),
    ];
    for chunk in [None, Some(4)] {
        let config = config(600).with_prompt_chunk(chunk).with_prefix_cache(true);
        let mut slots = Slots::new(&model, &vocabulary, 2, 96, &config).unwrap();
        for (why, outcome, is_it) in &refused {
            let beside = Request::new(vec![TokenId(66); 3], 40).with_table(&table).with_seed(7);
            let request = Request::new(vec![TokenId(65); 9], 12).with_table(&table);
            let (sender, later) = pending(&request);
            slots.admit(0, &beside).unwrap();
            slots.admit(1, &later).unwrap();
            slots.step(2, |piece| assert_eq!(piece.row, 0)).unwrap();
            match outcome.clone() {
                Some(outcome) => sender.send(outcome),
                None => drop(sender),
            }
            slots.step(1, |piece| assert_eq!(piece.row, 0)).unwrap();
            assert_eq!(slots.finished().collect::<Vec<_>>(), [1], "{why}");
            let error = slots.release(1).unwrap_err();
            assert!(is_it(&error), "{why}: {error}");
            // The row is free for the next.
            slots.admit(1, &request).unwrap();
            slots.step(12, |_| ()).unwrap();
            for (row, request) in [(0, &beside), (1, &request)] {
                assert_eq!(slots.release(row).unwrap(), alone(&model, &vocabulary, request), "{why}");
            }
            let arena = slots.arena().unwrap();
            assert_eq!(arena.room(), arena.capacity(), "{why}");
        }
    }
}

#[test]
fn the_host_follows_a_table_that_came_late() {
    let vocabulary = vocabulary();
    let random = RandomLm::new(vocabulary.len(), 9, DType::F32, &Device::flex());
    let model = Altered::new(random, |call, logits| match call {
        Call::StepRows => logits.full_like(f32::NEG_INFINITY),
        _ => logits,
    });
    let mut slots = Slots::new(&model, &vocabulary, 1, 64, &config(600)).unwrap();
    let (sender, table) = PendingTable::channel();
    slots.admit(0, &Request::new(vec![TokenId(65); 4], 8).with_pending(&table)).unwrap();
    sender.send(Ok(regex("[a-f]{5}", &vocabulary)));
    slots.step(8, |_| ()).unwrap();
    assert!(slots.release(0).unwrap_err().is_model());
}

#[test]
fn a_row_that_waits_for_its_table_can_be_cancelled_and_released() {
    let vocabulary = vocabulary();
    let model = RandomLm::new(vocabulary.len(), 9, DType::F32, &Device::flex());
    let table = regex("[a-f]{5}", &vocabulary);
    for chunk in [None, Some(2)] {
        let mut slots =
            Slots::new(&model, &vocabulary, 2, 64, &config(600).with_prompt_chunk(chunk)).unwrap();
        let request = Request::new(vec![TokenId(65); 9], 8).with_table(&table);
        let cancel = Cancel::default();
        let (first, later) = pending(&request);
        slots.admit(0, &later.with_cancel(&cancel)).unwrap();
        let (second, later) = pending(&request);
        slots.admit(1, &later).unwrap();
        slots.step(3, |_| ()).unwrap();
        cancel.cancel();
        slots.step(1, |_| ()).unwrap();
        assert_eq!(slots.finished().collect::<Vec<_>>(), [0]);
        for row in [0, 1] {
            let output = slots.release(row).unwrap();
            assert_eq!((output.finish, output.tokens.len()), (Finish::Cancelled, 0));
        }
        // What comes of the tables is nothing to the rows that follow.
        let (third, later) = pending(&request);
        slots.admit(0, &later).unwrap();
        first.send(Ok(regex("x", &vocabulary)));
        drop(second);
        slots.step(2, |_| ()).unwrap();
        third.send(Ok(table.clone()));
        slots.step(9, |_| ()).unwrap();
        assert_eq!(slots.release(0).unwrap(), alone(&model, &vocabulary, &request));
    }
}

#[test]
fn a_batch_can_be_dropped_while_its_tables_are_compiled() {
    let vocabulary = vocabulary();
    let model = RandomLm::new(vocabulary.len(), 9, DType::F32, &Device::flex());
    let (sender, table) = PendingTable::channel();
    let mut slots = Slots::new(&model, &vocabulary, 1, 64, &config(600)).unwrap();
    slots.admit(0, &Request::new(vec![TokenId(65)], 8).with_pending(&table)).unwrap();
    slots.step(2, |_| ()).unwrap();
    drop(slots);
    assert!(!table.is_ready());
    sender.send(Ok(regex("a", &vocabulary)));
    assert!(table.wait().is_ok());
}

#[test]
fn a_table_without_room_is_the_next_that_has_some() {
    let vocabulary = vocabulary();
    let model = RandomLm::new(vocabulary.len(), 9, DType::F32, &Device::flex());
    // One page of 32 states, one, and two, of three.
    let (small, other, large) =
        (regex("[a-f]{20}", &vocabulary), regex("[0-9]{9}", &vocabulary), regex("x{50}", &vocabulary));
    let third = regex("y{9}", &vocabulary);
    let of = |table| Request::new(vec![TokenId(65); 3], 60).with_table(table);
    let mut slots = Slots::new(&model, &vocabulary, 5, 96, &config(96)).unwrap();
    slots.admit(0, &of(&small)).unwrap();
    slots.admit(1, &of(&other)).unwrap();
    let (first, later) = pending(&of(&large));
    slots.admit(2, &later).unwrap();
    let (second, later) = pending(&of(&third));
    slots.admit(3, &later).unwrap();
    // What waits for its table holds nobody up.
    slots.step(1, |_| ()).unwrap();
    slots.admit(4, &of(&third)).unwrap();
    slots.release(4).unwrap();
    first.send(Ok(large.clone()));
    second.send(Ok(third.clone()));
    // A page is free: it is kept for the one that came first, but for free text there is always room.
    slots.step(1, |piece| assert!(piece.row < 2)).unwrap();
    assert!(slots.admit(4, &of(&third)).is_err_and(|error| error.is_full()));
    slots.admit(4, &Request::new(vec![TokenId(65)], 30)).unwrap();
    let begin = |slots: &mut Slots<_>, row| {
        slots.release(row).unwrap();
        let mut rows = Vec::new();
        slots.step(1, |piece| rows.push(piece.row)).unwrap();
        rows
    };
    assert_eq!(begin(&mut slots, 0), [1, 2, 4]);
    assert_eq!(begin(&mut slots, 1), [2, 3, 4]);
    slots.step(60, |_| ()).unwrap();
    assert_eq!(slots.release(2).unwrap(), alone(&model, &vocabulary, &of(&large)));
    assert_eq!(slots.release(3).unwrap(), alone(&model, &vocabulary, &of(&third)));
}

#[test]
fn what_compiles_a_table_may_panic() {
    let (sender, table) = PendingTable::channel();
    let other = table.clone();
    let thread = thread::spawn(move || {
        let _sender = sender;
        panic!("as it was told");
    });
    assert!(table.wait().unwrap_err().is_table());
    assert!(thread.join().is_err() && other.is_ready());
}

#[test]
fn only_slots_go_on_without_a_table() {
    let vocabulary = vocabulary();
    let model = RandomLm::new(vocabulary.len(), 9, DType::F32, &Device::flex());
    let (_sender, table) = PendingTable::channel();
    let request = Request::new(vec![TokenId(65)], 8).with_pending(&table);
    let go_on = |_: Piece| ControlFlow::Continue(());
    let requests = std::slice::from_ref(&request);
    let error = generate(&model, &vocabulary, requests, &GenerationConfig::new(), go_on).unwrap_err();
    assert!(error.is_input() && error.to_string().contains("PendingTable::wait"), "{error}");
    let own = regex("a", &vocabulary);
    let mut slots = Slots::new(&model, &vocabulary, 1, 64, &config(600)).unwrap();
    assert!(slots.admit(0, &request.with_table(&own)).unwrap_err().is_input());
    assert_eq!(slots.idle().count(), 1);
}
