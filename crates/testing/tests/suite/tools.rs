//! Compiled constraints of tools.

use burn_dfa_tokens::{
    CompiledConstraint, Limits, TokenId, Vocabulary,
    constraint::{Tool, ToolFormat, Tools},
    vocabulary::TokenKind,
};

#[test]
fn special_tokens_of_a_format_are_text() {
    let special =
        ["<|start|>", "<|channel|>", "<|message|>", "<|constrain|>", "<|call|>", "<|end|>", "<|return|>"];
    let normal = ["assistant", "commentary to=functions.now ", "analysis", "final", "json", "{}", "Hm"];
    let kinds = [TokenKind::Special; 7].into_iter().chain([TokenKind::Normal; 7]);
    let named = kinds.zip(special.into_iter().chain(normal).map(|text| text.as_bytes().to_vec()));
    let bytes = (0..=u8::MAX).map(|byte| (TokenKind::Normal, vec![byte]));
    let vocabulary = Vocabulary::from_tokens(named.chain(bytes)).unwrap();
    let vocabulary = vocabulary.with_eos([4, 6].map(TokenId)).unwrap();
    let tools = Tools::new([Tool::new("now")])
        .unwrap()
        .with_format(ToolFormat::Harmony)
        .with_reasoning(ToolFormat::Harmony.reasoning().unwrap());
    let vocabulary = tools.vocabulary(&vocabulary).unwrap();
    let constraint =
        CompiledConstraint::compile(&tools.to_constraint().unwrap(), &vocabulary, &Limits::default())
            .unwrap();
    let ids = |ids: &[u32]| ids.iter().copied().map(TokenId).collect::<Vec<_>>();
    let called = [1, 9, 2, 13, 5, 0, 7, 1, 8, 3, 11, 2, 12, 4];
    assert!(constraint.accepts(&ids(&called)));
    assert!(constraint.accepts(&ids(&[1, 10, 2, 13, 6])));
    assert!(!constraint.accepts(&ids(&[1, 9, 2, 13, 6])));
    let reply = tools.read(&String::from_utf8(vocabulary.decode(&ids(&called))).unwrap()).unwrap();
    assert_eq!((reply.reasoning.as_str(), reply.calls.len()), ("Hm", 1));
    assert_eq!((reply.calls[0].name.as_str(), reply.calls[0].arguments.as_str()), ("now", "{}"));
}
