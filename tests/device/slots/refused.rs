//! What a batch of slots refuses, and that it goes on.

use burn::tensor::{DType, Device};
use burn_dfa::generation::{Finish, GenerationConfig, Request, Slots};
use burn_dfa::processor::DfaProcessor;
use burn_dfa::{Capacity, Constraint, Limits, TensorOptions, TensorTable, TokenId, TokenTable, Vocabulary};

use crate::common::altered::{Altered, Call};
use crate::common::model::RandomLm;

const EOS: TokenId = TokenId(256);

fn vocabulary() -> Vocabulary {
    let bytes = (0..=255u8).map(|byte| Some(vec![byte])).chain([None]);
    Vocabulary::from_bytes(bytes).unwrap().with_eos([EOS]).unwrap()
}

fn regex(pattern: &str, vocabulary: &Vocabulary) -> TokenTable {
    TokenTable::compile(&Constraint::regex(pattern).unwrap(), vocabulary, &Limits::default()).unwrap()
}

fn config() -> GenerationConfig {
    let capacity = Capacity { tables: 2, states: 64, classes: 32, ..Capacity::new() };
    let tensors = TensorOptions { capacity, ..TensorOptions::default() };
    GenerationConfig::new().with_tensors(tensors).with_read_every(4)
}

fn prompt(text: &str) -> Vec<TokenId> {
    text.bytes().map(|byte| TokenId(u32::from(byte))).collect()
}

#[test]
fn a_full_arena_refuses_until_a_row_is_released() {
    let vocabulary = vocabulary();
    let model = RandomLm::new(vocabulary.len(), 3, DType::F32, &Device::flex());
    let tables = ["[a-f]{20}", "[0-9]{12}", "x{9}"].map(|pattern| regex(pattern, &vocabulary));
    let mut slots = Slots::new(&model, &vocabulary, 3, 64, &config()).unwrap();
    let request = |index: usize| Request::new(prompt("go"), 40).with_table(&tables[index]);
    slots.admit(0, &request(0)).unwrap();
    slots.admit(1, &request(1)).unwrap();
    let error = slots.admit(2, &request(2)).unwrap_err();
    assert!(error.is_full(), "{error}");
    assert_eq!(slots.idle().collect::<Vec<_>>(), [2]);
    // A constraint that is there already has its room, and free text needs none.
    slots.admit(2, &request(1)).unwrap();
    slots.step(3, |_| ()).unwrap();
    let cut = slots.release(2).unwrap();
    assert_eq!((cut.finish, cut.tokens.len()), (Finish::Cancelled, 4));
    slots.admit(2, &Request::new(prompt("free"), 5)).unwrap();
    assert!(slots.release(0).unwrap().tokens.len() < 21);
    slots.admit(0, &request(2)).unwrap();
    slots.step(64, |_| ()).unwrap();
    assert_eq!(slots.finished().collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!(slots.release(0).unwrap().text(), "xxxxxxxxx");
    let digits = slots.release(1).unwrap();
    assert!(digits.is_complete() && tables[1].accepts(&digits.tokens));
    assert_eq!(slots.release(2).unwrap().tokens.len(), 5);
    let arena = slots.arena().unwrap();
    assert_eq!(arena.room(), arena.capacity());
}

#[test]
fn what_makes_no_sense_is_refused_and_changes_nothing() {
    let vocabulary = vocabulary();
    let model = RandomLm::new(vocabulary.len(), 3, DType::F32, &Device::flex());
    let table = regex("[a-f]{5}", &vocabulary);
    let new =
        |rows, capacity, config: &GenerationConfig| Slots::new(&model, &vocabulary, rows, capacity, config);
    assert!(new(0, 9, &config()).unwrap_err().is_input());
    assert!(new(2, 0, &config()).unwrap_err().is_input());
    assert!(new(2, 9, &GenerationConfig::new()).unwrap_err().is_input(), "no room for constraints");
    assert!(new(2, 9, &config().with_read_every(0)).unwrap_err().is_input());
    let mut slots = new(2, 32, &config()).unwrap();
    slots.admit(0, &Request::new(prompt("a"), 8).with_table(&table)).unwrap();
    let mut refused = |row, request: &Request| {
        let error = slots.admit(row, request).unwrap_err();
        assert_eq!(slots.idle().collect::<Vec<_>>(), [1], "{error}");
        error
    };
    let good = Request::new(prompt("b"), 8).with_table(&table);
    assert!(refused(0, &good).is_input(), "taken");
    assert!(refused(2, &good).is_input(), "no such row");
    assert!(refused(1, &Request::new(Vec::new(), 8)).is_input());
    assert!(refused(1, &Request::new(prompt("b"), 0)).is_input());
    assert!(refused(1, &Request::new(vec![TokenId(999)], 8)).is_input());
    assert!(refused(1, &Request::new(prompt("b"), 32)).is_input(), "33 tokens");
    let error = refused(1, &Request { max_new_tokens: 5, ..good.clone() });
    assert_eq!(error.tokens_needed(), Some(6));
    let large = regex("[a-f]{90}", &vocabulary);
    assert!(refused(1, &Request { table: Some(&large), ..good.clone() }).is_budget());
    let words: Vec<String> = (0..40).map(|word| format!("{:06}", word * 7919 * 31 % 999_983)).collect();
    let wide = regex(&words.join("|"), &vocabulary);
    let error = refused(1, &Request { table: Some(&wide), ..good.clone() });
    assert!(error.is_input() && error.to_string().contains("capacity"), "{error}");
    let other = Vocabulary::from_bytes([Some(b"a".to_vec()), None]).unwrap().with_eos([TokenId(1)]).unwrap();
    let other = regex("a", &other);
    assert!(refused(1, &Request { table: Some(&other), ..good.clone() }).is_incompatible_vocabulary());
    assert!(slots.release(1).unwrap_err().is_input());
    assert!(slots.release(7).unwrap_err().is_input());
    slots.admit(1, &good).unwrap();
    slots.step(8, |_| ()).unwrap();
    for row in 0..2 {
        assert!(table.accepts(&slots.release(row).unwrap().tokens));
    }
}

#[test]
fn rows_of_fixed_tables_do_not_come_and_go() {
    let vocabulary = vocabulary();
    let table = regex("[a-f]{5}", &vocabulary);
    let device = Device::flex();
    let fixed = TensorTable::new(&[&table], vocabulary.len(), &TensorOptions::default(), &device).unwrap();
    let mut fixed = DfaProcessor::new(fixed, &[0, 0]).unwrap();
    let mut state = fixed.start();
    assert!(fixed.arena().is_none());
    assert!(fixed.admit(&mut state, 0, Some(&table), 9).unwrap_err().is_input());
    assert!(fixed.vacate(&mut state, 0).unwrap_err().is_input());
    let arena = burn_dfa::Arena::new(&vocabulary, vocabulary.len(), &config().tensors, &device).unwrap();
    assert!(DfaProcessor::slots(arena.clone(), 0).unwrap_err().is_input());
    let mut slots = DfaProcessor::slots(arena, 2).unwrap();
    let mut state = slots.start();
    assert!(slots.vacate(&mut state, 0).unwrap_err().is_input(), "idle");
    assert!(slots.replace(&[&table], &[0, 0], &[9, 9]).unwrap_err().is_input());
    slots.admit(&mut state, 1, Some(&table), 9).unwrap();
    assert!(slots.admit(&mut state, 1, Some(&table), 9).unwrap_err().is_input(), "taken");
}

/// Rows that began with this token get −∞ only.
const POISON: i32 = 7;

#[test]
fn the_error_of_a_row_is_its_own() {
    let vocabulary = vocabulary();
    let random = RandomLm::new(vocabulary.len(), 3, DType::F32, &Device::flex());
    let model = Altered::new(random, |call, logits| match call {
        Call::Begin(prompt) => {
            let first = prompt.slice([0..1, 0..1]).cast(DType::I32);
            let sick = first.equal_elem(POISON).expand(logits.dims());
            logits.mask_fill(sick, f32::NEG_INFINITY)
        }
        _ => logits,
    });
    let table = regex("[a-f]{5}", &vocabulary);
    let mut slots = Slots::new(&model, &vocabulary, 2, 32, &config()).unwrap();
    slots.admit(0, &Request::new(vec![TokenId(POISON as u32)], 8).with_table(&table)).unwrap();
    slots.admit(1, &Request::new(prompt("b"), 8).with_table(&table)).unwrap();
    slots.step(8, |piece| assert_eq!(piece.row, 1)).unwrap();
    assert_eq!(slots.finished().collect::<Vec<_>>(), [0, 1]);
    assert!(slots.release(0).unwrap_err().is_model());
    assert!(table.accepts(&slots.release(1).unwrap().tokens));
    slots.admit(0, &Request::new(prompt("c"), 8).with_table(&table)).unwrap();
    slots.step(8, |_| ()).unwrap();
    assert!(table.accepts(&slots.release(0).unwrap().tokens));
}
