//! Grammars that refer to tokens.

use burn_dfa_tokens::{
    CompiledConstraint, Constraint, ErrorKind, Limits, Origin, Result, RowPosition, TokenId, Vocabulary,
    constraint::Syntax, vocabulary::TokenKind,
};
use std::collections::BTreeSet;
use std::fmt;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::offsets;

/// `a`, `b`, `(`, `)`, `ab`, `<x>`, `<y>` and the end token.
fn vocabulary() -> Vocabulary {
    let texts = ["a", "b", "(", ")", "ab"].map(|text| (TokenKind::Normal, text));
    let special = ["<x>", "<y>", "<end>"].map(|text| (TokenKind::Special, text));
    let tokens = texts.into_iter().chain(special);
    Vocabulary::from_tokens(tokens).unwrap().with_eos([END]).unwrap()
}

const END: TokenId = TokenId(7);

fn compile(syntax: Syntax, grammar: &str) -> Result<CompiledConstraint> {
    CompiledConstraint::compile(&Constraint::grammar(syntax, grammar)?, &vocabulary(), &Limits::default())
}

/// Whether a compiled constraint allows these tokens followed by the end token.
fn allows(constraint: &CompiledConstraint, tokens: &[u32]) -> bool {
    let mut at = RowPosition::unlimited(constraint.start());
    tokens.iter().chain(&[END.0]).all(|&token| {
        at = constraint.after(&at, TokenId(token));
        constraint.can_end(&at)
    })
}

#[test]
fn tokens_are_read_whole() {
    for grammar in ["root ::= \"a\"? (<[5]> \"b\")* | <[6]>", "root ::= \"a\"? (<x> \"b\")* | <y>"] {
        let constraint = compile(Syntax::Gbnf, grammar).unwrap();
        for allowed in [&[0][..], &[], &[5, 1], &[0, 5, 1, 5, 1], &[6]] {
            assert!(allows(&constraint, allowed), "{grammar}: {allowed:?}");
        }
        for refused in [&[5][..], &[0, 1], &[4], &[6, 6], &[0, 6], &[5, 0]] {
            assert!(!allows(&constraint, refused), "{grammar}: {refused:?}");
        }
    }
}

#[test]
fn tokens_may_call_and_return() {
    let constraint = compile(Syntax::Gbnf, "root ::= <x> root <y> | \"(\" root \")\" | \"ab\"").unwrap();
    for allowed in [&[4][..], &[5, 4, 6], &[5, 2, 4, 3, 6], &[2, 5, 5, 4, 6, 6, 3], &[5, 0, 1, 6]] {
        assert!(allows(&constraint, allowed), "{allowed:?}");
    }
    for refused in [&[5, 4][..], &[5, 4, 3], &[2, 5, 4, 3, 6], &[4, 6], &[5, 6]] {
        assert!(!allows(&constraint, refused), "{refused:?}");
    }
}

#[test]
fn tokens_are_terminals_of_lark() {
    let constraint = compile(Syntax::Lark, "start: <x> A+ <[6]>\nA: /a/\n%ignore /b+/").unwrap();
    assert!(allows(&constraint, &[5, 0, 6]) && allows(&constraint, &[5, 1, 0, 1, 0, 6, 1]));
    assert!(!allows(&constraint, &[5, 6]) && !allows(&constraint, &[1, 5, 0, 6]));
}

#[test]
fn text_that_is_named_is_read_both_ways() {
    let constraint = compile(Syntax::Ebnf, "root ::= Token(4) \"a\" | \"a\" \"b\" \"b\"").unwrap();
    assert!(allows(&constraint, &[4, 0]) && allows(&constraint, &[4, 1]) && allows(&constraint, &[0, 1, 1]));
    assert!(!allows(&constraint, &[0, 1, 0]));
}

#[test]
fn any_token_but_some_is_one_token() {
    for (syntax, grammar) in [
        (Syntax::Ebnf, "root ::= \"(\" ExcludeToken(4, 6) \")\""),
        (Syntax::Lark, "start: \"(\" <[^4,6]> \")\""),
    ] {
        let constraint = compile(syntax, grammar).unwrap();
        for allowed in [0, 1, 2, 3, 5] {
            assert!(allows(&constraint, &[2, allowed, 3]), "{grammar}: {allowed}");
        }
        for refused in [&[2, 4, 3][..], &[2, 6, 3], &[2, 3], &[2, 0, 1, 3], &[2, 7]] {
            assert!(!allows(&constraint, refused), "{grammar}: {refused:?}");
        }
    }
    let constraint = compile(Syntax::Gbnf, "root ::= (!<y>)* <y>").unwrap();
    assert!(allows(&constraint, &[6]) && allows(&constraint, &[0, 5, 4, 6]) && !allows(&constraint, &[6, 6]));
}

#[test]
fn free_tokens_stand_between_special_ones_with_a_stack() {
    let grammar = "root ::= TokenTagDispatch((5, nested), excludes=(4,))\nnested ::= list Token(6)\nlist ::= \"(\" list* \")\"";
    let compiled = compile(Syntax::Ebnf, grammar).unwrap();
    assert!(compiled.frames() > 0);
    for allowed in [&[][..], &[0, 1, 2, 6], &[3, 5, 2, 2, 3, 3, 6, 0], &[5, 2, 3, 6, 5, 2, 3, 6, 0]] {
        assert!(allows(&compiled, allowed), "{allowed:?}");
    }
    for refused in [&[4][..], &[0, 4], &[5, 2, 3], &[5, 0, 6], &[5, 2, 2, 3, 6], &[5, 6]] {
        assert!(!allows(&compiled, refused), "{refused:?}");
    }
    // After the list, the constraint cannot tell whether the text ends or continues.
    let open = "root ::= TokenTagDispatch((5, list))\nlist ::= \"(\" list* \")\"";
    let error = compile(Syntax::Ebnf, open).unwrap_err();
    assert!(error.kind() == ErrorKind::Grammar && error.to_string().contains("any token"), "{error}");
}

#[test]
fn there_may_be_hundreds_of_tokens() {
    let special = (0..400).map(|id| (TokenKind::Special, format!("<{id}>")));
    let texts = ["a", "b"].map(|text| (TokenKind::Normal, text.to_owned()));
    let vocabulary = Vocabulary::from_tokens(special.chain(texts)).unwrap().with_eos([TokenId(399)]).unwrap();
    // One class contains all of these tokens; 150 tokens have separate classes.
    let all: Vec<String> = (0..399).map(|id| id.to_string()).collect();
    let each: Vec<String> =
        (0..150).map(|id| format!("Token({id}) \"{}\"", ["a", "b", "ab"][id % 3])).collect();
    let grammar = format!("root ::= (Token({}) \"b\")* ({})", all.join(","), each.join(" | "));
    let constraint = Constraint::grammar(Syntax::Ebnf, &grammar).unwrap();
    let compiled = CompiledConstraint::compile(&constraint, &vocabulary, &Limits::default()).unwrap();
    let accepts = |tokens: &[u32]| {
        let tokens: Vec<_> = tokens.iter().chain(&[399]).map(|&id| TokenId(id)).collect();
        compiled.accepts(&tokens)
    };
    assert!(accepts(&[0, 400]) && accepts(&[149, 400, 401]) && accepts(&[398, 401, 0, 401, 1, 401]));
    assert!(!accepts(&[0, 401]) && !accepts(&[150, 400]) && !accepts(&[398, 401]));
    let each: Vec<String> = (0..300).map(|id| format!("Token({id}) Token({})", id + 1)).collect();
    let many = Constraint::grammar(Syntax::Ebnf, &format!("root ::= {}", each.join(" | "))).unwrap();
    let error = CompiledConstraint::compile(&many, &vocabulary, &Limits::default()).unwrap_err();
    assert!(error.kind() == ErrorKind::Grammar && error.to_string().contains("kinds of tokens"), "{error}");
}

#[test]
fn missing_tokens_are_refused() {
    let error = compile(Syntax::Gbnf, "root ::= <z>").unwrap_err();
    assert!(
        error.kind() == ErrorKind::IncompatibleVocabulary && error.to_string().contains("<z>"),
        "{error}"
    );
    for grammar in ["root ::= <[99]>", "root ::= !<[99]>", "root ::= <[7]>", "root ::= <end>"] {
        assert!(
            compile(Syntax::Gbnf, grammar).unwrap_err().kind() == ErrorKind::IncompatibleVocabulary,
            "{grammar}"
        );
    }
    // The end token is never legal inside a text, so excluding it changes nothing.
    let constraint = compile(Syntax::Gbnf, "root ::= !<[7]>").unwrap();
    assert!(allows(&constraint, &[5]) && !allows(&constraint, &[7]));
}

#[test]
fn free_text_in_front_of_a_marker_reads_named_text_as_text() {
    let inner = Constraint::grammar(Syntax::Ebnf, "root ::= Token(4) Token(5)*").unwrap();
    for compile in [CompiledConstraint::compile, CompiledConstraint::compile_byte_level] {
        let marked = Constraint::after("b)", inner.clone());
        let constraint = compile(&marked, &vocabulary(), &Limits::default()).unwrap();
        assert!(allows(&constraint, &[4, 3, 4]) && allows(&constraint, &[5, 0, 4, 6, 1, 3, 4, 5]));
        assert!(!allows(&constraint, &[4, 4]) && !allows(&constraint, &[1, 3, 0, 1]));
    }
    let compile = |marker: u32| {
        let marked = Constraint::after(TokenId(marker), inner.clone());
        CompiledConstraint::compile(&marked, &vocabulary(), &Limits::default()).unwrap()
    };
    assert!(allows(&compile(5), &[0, 4, 5, 4, 5, 5]) && !allows(&compile(5), &[4, 5]));
    assert!(allows(&compile(4), &[0, 1, 5, 4, 4]) && !allows(&compile(4), &[0, 1]));
}

/// An EBNF expression over this vocabulary.
enum Expr {
    Text(&'static str),
    Token(Vec<u32>, bool),
    Sequence(Vec<Expr>),
    Choice(Vec<Expr>),
    Repeat(Box<Expr>),
    /// The whole expression between parentheses.
    Again,
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let joined = |exprs: &[Expr], between: &str| {
            exprs.iter().map(Expr::to_string).collect::<Vec<_>>().join(between)
        };
        match self {
            Self::Text(text) => write!(f, "\"{text}\""),
            Self::Token(ids, except) => {
                let ids: Vec<String> = ids.iter().map(u32::to_string).collect();
                write!(f, "{}Token({})", if *except { "Exclude" } else { "" }, ids.join(","))
            }
            Self::Sequence(exprs) => write!(f, "({})", joined(exprs, " ")),
            Self::Choice(exprs) => write!(f, "({})", joined(exprs, " | ")),
            Self::Repeat(expr) => write!(f, "({expr})*"),
            Self::Again => write!(f, "\"(\" root \")\""),
        }
    }
}

impl Expr {
    fn random(random: &mut StdRng, depth: usize, again: bool) -> Self {
        let many = |random: &mut StdRng| {
            (0..random.random_range(2..4)).map(|_| Self::random(random, depth - 1, again)).collect()
        };
        match random.random_range(0..if depth == 0 { 5 } else { 10 }) {
            0 | 1 => Self::Text(["a", "b", "ab", "ba", "()"][random.random_range(0..5)]),
            2 => Self::Again.or_text(again),
            3 | 4 => {
                let first = if random.random_bool(0.5) { 0 } else { 5 };
                let ids: BTreeSet<u32> =
                    (0..random.random_range(1..4)).map(|_| random.random_range(first..7)).collect();
                Self::Token(ids.into_iter().collect(), random.random_bool(0.5))
            }
            5 | 6 => Self::Sequence(many(random)),
            7 | 8 => Self::Choice(many(random)),
            _ => Self::Repeat(Box::new(Self::random(random, depth - 1, again))),
        }
    }

    fn or_text(self, again: bool) -> Self {
        if again { self } else { Self::Text("a") }
    }

    /// The ends of texts that begin at `from`, as a bit for each position. A position is twice the
    /// number of tokens, plus the number of bytes of the next token.
    fn ends(&self, root: &Expr, tokens: &[u32], from: usize) -> u32 {
        let after = |expr: &Expr, positions: u32| {
            offsets(positions).fold(0, |ends, at| ends | expr.ends(root, tokens, at))
        };
        let end = |at: Option<usize>| at.map_or(0, |at| 1 << at);
        match self {
            Self::Text(text) => end(text.bytes().try_fold(from, |at, byte| next(tokens, at, byte))),
            Self::Token(ids, except) => match tokens.get(from / 2) {
                Some(token) if from.is_multiple_of(2) && ids.contains(token) != *except => 1 << (from + 2),
                _ => 0,
            },
            Self::Sequence(exprs) => exprs.iter().fold(1 << from, |positions, expr| after(expr, positions)),
            Self::Choice(exprs) => exprs.iter().fold(0, |ends, expr| ends | expr.ends(root, tokens, from)),
            Self::Repeat(expr) => {
                let mut all = 1 << from;
                let mut new = all;
                while new != 0 {
                    new = after(expr, new) & !all;
                    all |= new;
                }
                all
            }
            Self::Again => {
                let inside = after(root, end(next(tokens, from, b'(')));
                offsets(inside).fold(0, |ends, at| ends | end(next(tokens, at, b')')))
            }
        }
    }

    /// Whether the tokens are a text of the expression.
    fn is_text(&self, tokens: &[u32]) -> bool {
        self.ends(self, tokens, 0) >> (2 * tokens.len()) & 1 == 1
    }
}

/// The position after one more byte. No token here has more than two.
fn next(tokens: &[u32], at: usize, expected: u8) -> Option<usize> {
    let text = ["a", "b", "(", ")", "ab"].get(*tokens.get(at / 2)? as usize)?.as_bytes();
    (text[at % 2] == expected).then(|| if at % 2 + 1 == text.len() { at / 2 * 2 + 2 } else { at + 1 })
}

/// All sequences of up to `max` tokens.
fn sequences(max: u32) -> Vec<Vec<u32>> {
    let mut all = vec![Vec::new()];
    let mut at = 0;
    while at < all.len() && all[at].len() < max as usize {
        for token in 0..7 {
            all.push([all[at].as_slice(), &[token]].concat());
        }
        at += 1;
    }
    all
}

/// Compares every form of the compiled constraints of random grammars with the definition, on short
/// sequences.
#[test]
fn random_grammars_are_read_as_they_are_written() {
    let (vocabulary, all) = (vocabulary(), sequences(4));
    let (mut compared, mut walked, mut called) = (0, 0, 0);
    for seed in 0..600 {
        let mut random = StdRng::seed_from_u64(seed);
        let expr = Expr::random(&mut random, 3, seed % 2 == 0);
        let grammar = format!("root ::= {expr}");
        let constraint = Constraint::grammar(Syntax::Ebnf, &grammar).unwrap();
        let expected: Vec<bool> = all.iter().map(|tokens| expr.is_text(tokens)).collect();
        for make in [
            CompiledConstraint::compile,
            CompiledConstraint::compile_token_level,
            CompiledConstraint::compile_byte_level,
        ] {
            let compiled = match make(&constraint, &vocabulary, &Limits::default()) {
                Ok(compiled) => compiled,
                Err(error) => {
                    assert!(
                        error.kind() == ErrorKind::Grammar || error.kind() == ErrorKind::Unsatisfiable,
                        "{grammar}: {error}"
                    );
                    continue;
                }
            };
            compared += 1;
            walked += usize::from(compiled.is_byte_level());
            called += usize::from(compiled.frames() > 0);
            for (tokens, &expected) in all.iter().zip(&expected) {
                assert_eq!(allows(&compiled, tokens), expected, "{grammar}: {tokens:?}, {compiled:?}");
            }
            if seed % 10 == 0 {
                let origin = Origin::new(&constraint, &Limits::default());
                let saved = compiled.to_bytes(&origin).unwrap();
                let loaded = CompiledConstraint::from_bytes(&saved, &vocabulary, &Limits::default());
                let loaded = loaded.unwrap_or_else(|error| panic!("{grammar}: {error}"));
                assert_eq!(loaded.to_bytes(&origin).unwrap(), saved, "{grammar}");
            }
        }
    }
    assert!(compared > 1000 && walked > 200 && called > 10, "{compared} {walked} {called}");
}
