//! Vocabularies from lists: sizes, end tokens, fingerprints.

use super::*;
use burn_dfa_tokens::ErrorKind;

#[test]
fn characters_may_be_repeated() {
    let vocabulary = Vocabulary::from_chars("aé▁aĠ".chars()).unwrap();
    let expected = ["a", "é", "▁", "a", "Ġ"].map(|text| Some(text.to_owned()));
    assert_eq!(texts(&vocabulary), expected);
    assert_eq!(vocabulary.decode(&ids(&[3, 1, 0, 9])), "aéa".as_bytes());
}

#[test]
fn empty_tokens_and_ends_are_never_text() {
    let tokens = [(TokenKind::Normal, ""), (TokenKind::Added, "x"), (TokenKind::Normal, "y")];
    let vocabulary = Vocabulary::from_tokens(tokens).unwrap();
    let text = |vocabulary: &Vocabulary| vocabulary.iter().map(|(id, _)| id.0).collect::<Vec<_>>();
    assert_eq!(text(&vocabulary), [1, 2]);
    let ended = vocabulary.clone().with_eos(ids(&[1])).unwrap();
    assert_eq!(text(&ended), [2]);
    assert_eq!(ended.kind(TokenId(1)), TokenKind::Added);
    assert_eq!(ended.content(TokenId(1)), Some(&b"x"[..]));
    assert_eq!(ended.with_eos([]).unwrap(), vocabulary);
}

#[test]
fn vocabularies_are_padded_and_cut() {
    let vocabulary = Vocabulary::from_chars("abc".chars()).unwrap();
    let refused = vocabulary.clone().with_eos(ids(&[3])).unwrap_err();
    assert!(refused.kind() == ErrorKind::Vocabulary && refused.to_string().contains("pad_to"), "{refused}");

    let wide = vocabulary.clone().pad_to(5).unwrap().with_eos(ids(&[0, 4])).unwrap();
    assert_eq!((wide.len(), wide.kind(TokenId(3))), (5, TokenKind::Unused));
    assert_eq!((wide.bytes(TokenId(3)), wide.content(TokenId(4))), (None, None));
    assert_eq!(wide.clone().pad_to(2).unwrap(), wide);

    let narrow = wide.clone().with_len(2).unwrap();
    assert!(narrow.eos().iter().eq(&[TokenId(0)]));
    assert_eq!(narrow, Vocabulary::from_chars("ab".chars()).unwrap().with_eos(ids(&[0])).unwrap());
    assert_eq!(wide.with_eos([]).unwrap().with_len(3).unwrap(), vocabulary);

    let last = vocabulary.clone().with_eos(ids(&[2])).unwrap();
    assert_eq!(last.with_len(2).unwrap_err().kind(), ErrorKind::Vocabulary);
    assert_eq!(vocabulary.clone().with_len(usize::MAX).unwrap_err().kind(), ErrorKind::Vocabulary);
    assert_eq!(vocabulary.pad_to(Vocabulary::MAX_LEN + 1).unwrap_err().kind(), ErrorKind::Vocabulary);
}

#[test]
fn fingerprints_tell_all_apart() {
    use TokenKind::{Added, Normal, Special, Unused};
    let base = [(Normal, "a"), (Normal, "bc"), (Special, "s")];
    let with = |at: usize, token| {
        let mut tokens = base.to_vec();
        tokens[at] = token;
        Vocabulary::from_tokens(tokens).unwrap()
    };
    let same = || with(0, (Normal, "a"));
    let all = [
        same(),
        with(0, (Normal, "A")),
        with(0, (Added, "a")),
        with(0, (Special, "a")),
        with(0, (Unused, "a")),
        with(0, (Normal, "")),
        with(0, (Normal, "ab")),
        with(2, (Special, "t")),
        Vocabulary::from_tokens([base[1], base[0], base[2]]).unwrap(),
        Vocabulary::from_tokens([(Normal, "ab"), (Normal, "c"), base[2]]).unwrap(),
        same().pad_to(4).unwrap(),
        same().with_len(2).unwrap(),
        same().with_eos(ids(&[2])).unwrap(),
        same().with_eos(ids(&[1])).unwrap(),
        same().with_eos(ids(&[1, 2])).unwrap(),
    ];
    for (at, one) in all.iter().enumerate() {
        for (other_at, other) in all.iter().enumerate() {
            assert_eq!(one == other, at == other_at, "{at} {other_at}");
            assert_eq!(one.fingerprint() == other.fingerprint(), at == other_at, "{at} {other_at}");
        }
    }
    let empty = Vocabulary::default().fingerprint().to_string();
    assert_eq!((empty.len(), Vocabulary::default().fingerprint().to_string()), (64, empty));
}

#[test]
fn a_changed_vocabulary_has_a_new_fingerprint() {
    let vocabulary = Vocabulary::from_chars("ab".chars()).unwrap();
    let before = vocabulary.fingerprint();
    assert_eq!(vocabulary.clone().fingerprint(), before);
    assert_ne!(vocabulary.clone().pad_to(3).unwrap().fingerprint(), before);
    assert_ne!(vocabulary.with_eos(ids(&[0])).unwrap().fingerprint(), before);
}
