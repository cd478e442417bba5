//! Grammars that name tokens.

use burn_dfa::constraint::Syntax;
use burn_dfa::table::RowPosition;
use burn_dfa::vocabulary::TokenKind;
use burn_dfa::{Constraint, Limits, Result, TokenId, TokenTable, Vocabulary};

/// `a`, `b`, `(`, `)`, `ab`, `<x>`, `<y>` and the end of the sequence.
fn vocabulary() -> Vocabulary {
    let texts = ["a", "b", "(", ")", "ab"].map(|text| (TokenKind::Normal, text));
    let special = ["<x>", "<y>", "<end>"].map(|text| (TokenKind::Special, text));
    let tokens = texts.into_iter().chain(special);
    Vocabulary::from_tokens(tokens).unwrap().with_eos([TokenId(7)]).unwrap()
}

fn table(syntax: Syntax, grammar: &str) -> Result<TokenTable> {
    TokenTable::compile(&Constraint::grammar(syntax, grammar)?, &vocabulary(), &Limits::default())
}

/// Whether a table allows these tokens and then the end.
fn allows(table: &TokenTable, tokens: &[u32]) -> bool {
    let mut at = RowPosition::unlimited(table.start());
    tokens.iter().chain(&[7]).all(|&token| {
        at = table.after(&at, TokenId(token));
        table.can_end(&at)
    })
}

#[test]
fn tokens_are_read_whole() {
    for grammar in ["root ::= \"a\"? (<[5]> \"b\")* | <[6]>", "root ::= \"a\"? (<x> \"b\")* | <y>"] {
        let table = table(Syntax::Gbnf, grammar).unwrap();
        for allowed in [&[0][..], &[], &[5, 1], &[0, 5, 1, 5, 1], &[6]] {
            assert!(allows(&table, allowed), "{grammar}: {allowed:?}");
        }
        for refused in [&[5][..], &[0, 1], &[4], &[6, 6], &[0, 6], &[5, 0]] {
            assert!(!allows(&table, refused), "{grammar}: {refused:?}");
        }
    }
}

#[test]
fn tokens_may_call_and_return() {
    let table = table(Syntax::Gbnf, "root ::= <x> root <y> | \"(\" root \")\" | \"ab\"").unwrap();
    for allowed in [&[4][..], &[5, 4, 6], &[5, 2, 4, 3, 6], &[2, 5, 5, 4, 6, 6, 3], &[5, 0, 1, 6]] {
        assert!(allows(&table, allowed), "{allowed:?}");
    }
    for refused in [&[5, 4][..], &[5, 4, 3], &[2, 5, 4, 3, 6], &[4, 6], &[5, 6]] {
        assert!(!allows(&table, refused), "{refused:?}");
    }
}

#[test]
fn tokens_are_terminals_of_lark() {
    let table = table(Syntax::Lark, "start: <x> A+ <[6]>\nA: /a/\n%ignore /b+/").unwrap();
    assert!(allows(&table, &[5, 0, 6]) && allows(&table, &[5, 1, 0, 1, 0, 6, 1]));
    assert!(!allows(&table, &[5, 6]) && !allows(&table, &[1, 5, 0, 6]));
}

#[test]
fn what_a_vocabulary_lacks_is_refused() {
    let error = table(Syntax::Gbnf, "root ::= <z>").unwrap_err();
    assert!(error.is_incompatible_vocabulary() && error.to_string().contains("<z>"), "{error}");
    assert!(table(Syntax::Gbnf, "root ::= <[99]>").unwrap_err().is_incompatible_vocabulary());
    let nine: Vec<String> = (0..9).map(|id| format!("<[{id}]>")).collect();
    assert!(table(Syntax::Gbnf, &format!("root ::= {}", nine.join(" "))).unwrap_err().is_grammar());
}
