use super::{Groups, TokenStates};
use crate::{CompiledConstraint, Constraint, Limits, TokenId, Vocabulary};
use burn_dfa_common::{ErrorKind, limits::Meter};
use burn_dfa_constraints::{FreeText, NamedToken, TextAutomaton, TokenClasses, TokenEdges};
use burn_dfa_vocabulary::TokenKind;

const SPECIAL: TokenId = TokenId(3);

/// `a`, `b`, `ab`, `<x>` and the end.
fn vocabulary() -> Vocabulary {
    let texts = ["a", "b", "ab"].map(|text| (TokenKind::Normal, text));
    let special = ["<x>", "<end>"].map(|text| (TokenKind::Special, text));
    Vocabulary::from_tokens(texts.into_iter().chain(special)).unwrap().with_eos([TokenId(4)]).unwrap()
}

/// All tokens except `excluded` are class 0, and follow `edges`.
fn any_but(excluded: u32, edges: &[(u32, u32)]) -> FreeText {
    let named = vec![NamedToken { token: TokenId(excluded), class: None, wanted: false }];
    let edges = edges.iter().map(|&(state, next)| (state, 0, next)).collect();
    let classes = TokenClasses { named, others: Some(0) };
    let tokens = TokenEdges { classes, edges, boundaries: Vec::new() };
    FreeText { tokens, ..FreeText::default() }
}

#[test]
fn tokens_are_grouped_by_what_they_do() {
    let groups = Groups::new(&any_but(1, &[(1, 2)]), &vocabulary()).unwrap();
    let of = |token| groups.of(TokenId(token)).map(|group| &groups.groups[group]);
    assert!(groups.of(TokenId(0)) == groups.of(TokenId(2)) && of(0).unwrap().is_text);
    let special = of(SPECIAL.0).unwrap();
    assert!(!special.is_text && special.edges == [(1, 2)]);
    // An excluded token is only text, and the end of sequence is never a legal token.
    assert!(of(1).unwrap().edges.is_empty() && of(4).is_none());
}

#[test]
fn a_token_that_is_read_both_ways_leads_to_a_joined_state() {
    // `ab` leads from 1 to 3 by its bytes, and to 1 as a whole.
    let dfa = Constraint::regex("ab").unwrap().to_byte_dfa(&Limits::default()).unwrap().unwrap();
    let free = any_but(0, &[(1, 1)]);
    let text = TextAutomaton { free, ..std::sync::Arc::new(dfa).into() };
    let (vocabulary, limits) = (vocabulary(), Limits::default());
    let states = TokenStates::new(&text, &vocabulary, &Meter::start(&limits)).unwrap();
    let joined = states.join(3, 1);
    assert!(joined >= 4 && states.join(3, 0) == 3 && states.join(0, 1) == 1 && states.join(3, 3) == 3);
    assert!(states.dfa.is_accepting(burn_dfa_automata::ByteStateId(joined)));
    // From the joined state, the same tokens have transitions as from 1.
    let group = &states.groups.groups[states.groups.of(SPECIAL).unwrap()];
    assert!(group.edges.contains(&(joined, 1)), "{:?}", group.edges);
}

#[test]
fn a_joined_state_passes_boundaries_as_its_states_do() {
    // `ab` leads from 1 to 3 by its bytes, and to 1 as a whole; a boundary leads from 3 to 2.
    let dfa = Constraint::regex("ab").unwrap().to_byte_dfa(&Limits::default()).unwrap().unwrap();
    let mut free = any_but(0, &[(1, 1)]);
    free.tokens.boundaries = vec![0, 1, 2, 2];
    let text = TextAutomaton { free, ..std::sync::Arc::new(dfa).into() };
    let (vocabulary, limits) = (vocabulary(), Limits::default());
    let states = TokenStates::new(&text, &vocabulary, &Meter::start(&limits)).unwrap();
    let [joined, behind] = [states.join(3, 1), states.past_boundary(states.join(3, 1))];
    assert!(states.counts() && behind != joined && behind >= 4 && states.past_boundary(3) == 2);
    let next = |byte| states.dfa.next(burn_dfa_automata::ByteStateId(behind), byte).0;
    assert_eq!([next(b'a'), next(b'b')], [2, 3]);
}

#[test]
fn a_token_that_the_stack_cannot_follow_is_refused() {
    let vocabulary =
        Vocabulary::from_bytes((0..=255u8).map(|byte| Some(vec![byte])).chain([Some(b"a))".to_vec()), None]))
            .unwrap()
            .with_eos([TokenId(257)])
            .unwrap();
    let compile = |grammar: &str| {
        let constraint = Constraint::grammar(burn_dfa_constraints::Syntax::Ebnf, grammar)?;
        CompiledConstraint::compile(&constraint, &vocabulary, &Limits::default())
    };
    let error = compile("root ::= list | Token(256)\nlist ::= \"(\" list* \")\" | \"a\"").unwrap_err();
    assert!(error.kind() == ErrorKind::Grammar && error.to_string().contains("the token 256"), "{error}");
    let apart = compile("root ::= list | Token(255)\nlist ::= \"(\" list* \")\" | \"a\"").unwrap();
    assert!(apart.accepts(&[255, 257].map(TokenId)) && apart.accepts(&[40, 97, 41, 257].map(TokenId)));
    let counted = "root ::= list | \"a\" ExcludeToken(1)\nlist ::= \"(\" list* \")\"";
    assert!(compile(counted).unwrap_err().to_string().contains("any token"));
}
