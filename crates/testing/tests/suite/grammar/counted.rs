//! Compares parts with token limits with their definition.

use burn_dfa_tokens::{
    CompiledConstraint, Constraint, ErrorKind, Limits, RowPosition, TokenId, Vocabulary,
    constraint::{AnyText, Format, StructuralTag, Syntax},
};

use rand::{Rng, SeedableRng, rngs::StdRng};

use super::offsets;

/// The tokens; the end token follows them.
const TOKENS: [&str; 6] = ["a", "b", "ab", "ba", "aab", "."];

const END: TokenId = TokenId(TOKENS.len() as u32);

/// The number of random grammars.
const GRAMMARS: u64 = 200;

/// The maximum number of tokens in compared texts.
const LENGTH: usize = 5;

fn vocabulary() -> Vocabulary {
    Vocabulary::from_bytes(TOKENS.map(Some).into_iter().chain([None])).unwrap().with_eos([END]).unwrap()
}

/// The maximum number of bytes in compared texts.
const BYTES: usize = 3 * LENGTH;

/// Where tokens begin and end.
#[derive(Default)]
struct Boundaries {
    /// A bit for each offset.
    offsets: u32,
    /// By offset, the token that begins there.
    tokens: [Option<u32>; BYTES + 1],
}

impl Boundaries {
    fn of(tokens: &[u32]) -> Self {
        let (mut boundaries, mut at) = (Self { offsets: 1, ..Self::default() }, 0);
        for &token in tokens {
            boundaries.tokens[at] = Some(token);
            at += TOKENS[token as usize].len();
            boundaries.offsets |= 1 << at;
        }
        boundaries
    }
}

/// An expression, with counted parts.
enum Node {
    Text(&'static str),
    /// This token, independent of its bytes.
    Token(u32),
    Sequence(Vec<Node>),
    Choice(Vec<Node>),
    Star(Box<Node>),
    Counted(Box<Node>, u32),
}

impl Node {
    fn random(random: &mut StdRng, depth: usize, names_tokens: bool) -> Self {
        let inner = |random: &mut StdRng| Self::random(random, depth - 1, names_tokens);
        let several = |random: &mut StdRng| (0..random.random_range(2..4)).map(|_| inner(random)).collect();
        match if depth == 0 { 0 } else { random.random_range(1..9) } {
            1 | 2 => Self::Sequence(several(random)),
            3 => Self::Choice(several(random)),
            4 => Self::Star(inner(random).into()),
            5 | 6 => {
                let part = Self::random(random, depth - 1, false);
                Self::Counted(part.into(), random.random_range(1..4))
            }
            7 if names_tokens => Self::Token(random.random_range(0..TOKENS.len() as u32)),
            _ => Self::Text(["a", "b", "ab", "ba", ".", ""][random.random_range(0..6)]),
        }
    }

    /// The expression in EBNF; counted parts are rules.
    fn ebnf(&self, rules: &mut Vec<String>) -> String {
        let mut all = |nodes: &[Self], between| {
            nodes.iter().map(|node| node.ebnf(rules)).collect::<Vec<_>>().join(between)
        };
        match self {
            Self::Text(text) => format!("\"{text}\""),
            Self::Token(token) => format!("Token({token})"),
            Self::Sequence(nodes) => format!("({})", all(nodes, " ")),
            Self::Choice(nodes) => format!("({})", all(nodes, " | ")),
            Self::Star(node) => format!("({})*", node.ebnf(rules)),
            Self::Counted(node, max) => {
                let body = node.ebnf(rules);
                let name = format!("r{}", rules.len());
                rules.push(format!("{name}[max_tokens={max}] ::= {body}"));
                name
            }
        }
    }

    /// The ends of this expression's texts that begin at `start`, as a bit for each offset. Tokens
    /// begin and end at `boundaries`.
    fn ends(&self, text: &str, start: usize, boundaries: &Boundaries) -> u32 {
        match self {
            Self::Text(own) if text[start..].starts_with(own) => 1 << (start + own.len()),
            Self::Token(token) if boundaries.tokens[start] == Some(*token) => {
                1 << (start + TOKENS[*token as usize].len())
            }
            Self::Text(_) | Self::Token(_) => 0,
            Self::Sequence(nodes) => {
                nodes.iter().fold(1 << start, |starts, node| node.ends_after(text, starts, boundaries))
            }
            Self::Choice(nodes) => {
                nodes.iter().fold(0, |ends, node| ends | node.ends(text, start, boundaries))
            }
            Self::Star(node) => {
                let mut ends = 1 << start;
                let mut rest = ends;
                while rest != 0 {
                    rest = node.ends_after(text, rest, boundaries) & !ends;
                    ends |= rest;
                }
                ends
            }
            Self::Counted(node, max) => {
                let ends = node.ends(text, start, boundaries);
                // The first boundary after the limit at which the part can end.
                let spent = offsets(boundaries.offsets & u32::MAX << start)
                    .skip(*max as usize)
                    .find(|at| ends >> at & 1 == 1);
                spent.map_or(ends, |spent| ends & !(u32::MAX << spent << 1))
            }
        }
    }

    /// The ends of texts that begin at any of some offsets.
    fn ends_after(&self, text: &str, starts: u32, boundaries: &Boundaries) -> u32 {
        offsets(starts).fold(0, |ends, start| ends | self.ends(text, start, boundaries))
    }
}

/// Calls `found` with all token sequences up to a length.
fn each(tokens: &mut Vec<u32>, found: &mut impl FnMut(&[u32])) {
    found(tokens);
    if tokens.len() < LENGTH {
        for token in 0..TOKENS.len() as u32 {
            tokens.push(token);
            each(tokens, found);
            tokens.pop();
        }
    }
}

#[test]
fn random_parts_end_where_no_token_is_left() {
    let vocabulary = vocabulary();
    let (mut compared, mut accepted, mut bound) = (0, 0, 0);
    for seed in 0..GRAMMARS {
        let mut random = StdRng::seed_from_u64(seed);
        let node = Node::random(&mut random, 4, seed % 2 == 1);
        let mut rules = Vec::new();
        let root = node.ebnf(&mut rules);
        let grammar = format!("root ::= {root}\n{}", rules.join("\n"));
        let constraint = Constraint::grammar(Syntax::Ebnf, &grammar).unwrap();
        let compiled = match CompiledConstraint::compile(&constraint, &vocabulary, &Limits::default()) {
            Ok(compiled) => Some(compiled),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Unsatisfiable, "{grammar}\n{error}");
                None
            }
        };
        each(&mut Vec::new(), &mut |tokens| {
            let text: String = tokens.iter().map(|&token| TOKENS[token as usize]).collect();
            let is_text = |boundaries| node.ends(&text, 0, &boundaries) >> text.len() & 1 == 1;
            let right = is_text(Boundaries::of(tokens));
            let ids: Vec<TokenId> = tokens.iter().map(|&token| TokenId(token)).chain([END]).collect();
            let accepts = compiled.as_ref().is_some_and(|compiled| compiled.accepts(&ids));
            assert_eq!(accepts, right, "{grammar}\n{tokens:?}");
            compared += 1;
            accepted += usize::from(right);
            bound += usize::from(!right && is_text(Boundaries::default()));
        });
    }
    assert!(compared > 1_000_000 && accepted > 5_000 && bound > 200, "{compared} {accepted} {bound}");
}

/// The legal tokens after `tokens`, without the end token.
fn allowed(constraint: &CompiledConstraint, tokens: &[u32]) -> Vec<u32> {
    let start = RowPosition::unlimited(constraint.start());
    let at = tokens.iter().fold(start, |at, &token| constraint.after(&at, TokenId(token)));
    let may_come = |&token: &u32| constraint.can_end(&constraint.after(&at, TokenId(token)));
    (0..TOKENS.len() as u32).filter(may_come).collect()
}

fn compile(syntax: Syntax, grammar: &str) -> CompiledConstraint {
    let constraint = Constraint::grammar(syntax, grammar).unwrap();
    CompiledConstraint::compile(&constraint, &vocabulary(), &Limits::default()).unwrap()
}

#[test]
fn rules_of_both_syntaxes_have_attributes() {
    for constraint in [
        compile(Syntax::Ebnf, "root ::= r \".\"\nr[max_tokens=2] ::= [ab]*"),
        compile(Syntax::Lark, "start: r \".\"\nr[max_tokens=2]: /[ab]*/"),
    ] {
        assert!(!constraint.is_byte_level());
        assert_eq!(allowed(&constraint, &[]), [0, 1, 2, 3, 4, 5]);
        assert_eq!(allowed(&constraint, &[4]), [0, 1, 2, 3, 4, 5]);
        assert_eq!(allowed(&constraint, &[4, 4]), [5]);
    }
}

#[test]
fn a_part_that_cannot_end_continues() {
    let constraint = compile(Syntax::Lark, "start: r \".\"\nr[max_tokens=1]: /(a*b)+/");
    assert_eq!(allowed(&constraint, &[0]), [0, 1, 2, 3, 4]);
    assert_eq!(allowed(&constraint, &[0, 0]), [0, 1, 2, 3, 4]);
    assert_eq!(allowed(&constraint, &[0, 0, 1]), [5]);
    assert_eq!(allowed(&constraint, &[0, 3]), [0, 1, 2, 3, 4]);
}

#[test]
fn a_rule_without_tokens_left_may_omit_its_suffix() {
    let constraint = compile(Syntax::Lark, "start: r \"a\"\nr[max_tokens=2, suffix=\".\"]: /b*/");
    assert_eq!(allowed(&constraint, &[]), [1, 5]);
    assert_eq!(allowed(&constraint, &[1]), [1, 5]);
    assert_eq!(allowed(&constraint, &[1, 1]), [0]);
    assert_eq!(allowed(&constraint, &[1, 5]), [0]);
}

#[test]
fn the_text_after_each_end_is_lexed_again() {
    let constraint =
        compile(Syntax::Lark, "start: r \".\" B \".\"\nr[max_tokens=3]: TEXT\nTEXT: /(.|\\n)*/\nB: /b+/");
    let accepts = |tokens: &[u32]| {
        let ids: Vec<TokenId> = tokens.iter().map(|&token| TokenId(token)).chain([END]).collect();
        constraint.accepts(&ids)
    };
    for accepted in
        [&[5, 1, 5][..], &[0, 5, 1, 1, 5], &[5, 5, 5, 5, 1, 5], &[0, 5, 1, 5, 1, 5], &[2, 2, 2, 5, 1, 5]]
    {
        assert!(accepts(accepted), "{accepted:?}");
    }
    for refused in [&[1, 5][..], &[5, 5], &[0, 5, 2, 5], &[0, 0, 0, 0, 5, 1, 5]] {
        assert!(!accepts(refused), "{refused:?}");
    }
    assert_eq!(allowed(&constraint, &[0, 0, 0]), [5]);
    assert_eq!(allowed(&constraint, &[0, 5, 1]), [1, 5]);
    assert_eq!(allowed(&constraint, &[0, 5, 1, 5]), [1]);
}

#[test]
fn ignored_text_after_a_part_does_not_count() {
    let constraint = compile(Syntax::Lark, "start: r \".\"\nr[max_tokens=1]: /a+/\n%ignore /b+/");
    assert_eq!(allowed(&constraint, &[0]), [1, 5]);
    assert_eq!(allowed(&constraint, &[0, 1]), [1, 5]);
}

#[test]
fn a_marker_may_come_before() {
    let counted = Constraint::grammar(Syntax::Ebnf, "root ::= r \".\"\nr[max_tokens=1] ::= [ab]*").unwrap();
    let constraint = Constraint::after(".", counted);
    let compiled = CompiledConstraint::compile(&constraint, &vocabulary(), &Limits::default()).unwrap();
    assert_eq!(allowed(&compiled, &[0, 1]), [0, 1, 2, 3, 4, 5]);
    assert_eq!(allowed(&compiled, &[0, 1, 5]), [0, 1, 2, 3, 4, 5]);
    assert_eq!(allowed(&compiled, &[0, 1, 5, 1]), [5]);
}

#[test]
fn recursion_and_the_byte_level_form_are_refused() {
    for grammar in [
        "root ::= r \".\"\nr[max_tokens=2] ::= \"a\" r \"b\" | \"a\"",
        "root ::= r s\nr[max_tokens=2] ::= [ab]*\ns ::= \"a\" s \"b\" | \".\"",
        "root ::= r \".\"\nr[max_tokens=2] ::= Token(1)",
    ] {
        let constraint = Constraint::grammar(Syntax::Ebnf, grammar).unwrap();
        let error = CompiledConstraint::compile(&constraint, &vocabulary(), &Limits::default()).unwrap_err();
        assert!(error.kind() == ErrorKind::Grammar && error.to_string().contains("`max_tokens`"), "{error}");
    }
    let constraint =
        Constraint::grammar(Syntax::Ebnf, "root ::= r \".\"\nr[max_tokens=2] ::= [ab]*").unwrap();
    assert!(
        CompiledConstraint::compile_byte_level(&constraint, &vocabulary(), &Limits::default())
            .unwrap_err()
            .kind()
            == ErrorKind::Grammar
    );
    assert!(constraint.to_automaton(&Limits::default()).unwrap().is_none());
    let many =
        Constraint::grammar(Syntax::Ebnf, "root ::= r \".\"\nr[max_tokens=1000000] ::= [ab]*").unwrap();
    assert!(
        CompiledConstraint::compile(&many, &vocabulary(), &Limits::default()).unwrap_err().kind()
            == ErrorKind::Limit
    );
}

#[test]
fn a_lazy_rule_of_any_text_may_be_cut_short() {
    let constraint =
        compile(Syntax::Lark, "start: r \"a\"\nr[max_tokens=2, lazy]: TEXT \".\"\nTEXT: /(.|\\n)*/");
    assert_eq!(allowed(&constraint, &[5]), [0]);
    assert_eq!(allowed(&constraint, &[1]), [0, 1, 2, 3, 4, 5]);
    assert_eq!(allowed(&constraint, &[1, 1]), [0]);
    // For other texts, the final string is required.
    let constraint = compile(Syntax::Lark, "start: r \"a\"\nr[max_tokens=2, lazy]: /b*/ \".\"");
    assert_eq!(allowed(&constraint, &[1, 1]), [1, 5]);
}

#[test]
fn a_whole_text_may_be_counted() {
    let constraint = compile(Syntax::Lark, "start[max_tokens=2]: TEXT\nTEXT: /(.|\\n)*/");
    assert_eq!(allowed(&constraint, &[4]), [0, 1, 2, 3, 4, 5]);
    assert!(allowed(&constraint, &[4, 4]).is_empty() && constraint.accepts(&[TokenId(4), TokenId(4), END]));
}

#[test]
fn tokens_of_text_are_counted() {
    // The bytes, the end token, `ab`, `</`.
    let end = TokenId(256);
    let bytes =
        (0..=255u8).map(|byte| Some(vec![byte])).chain([None, Some(b"ab".into()), Some(b"</".into())]);
    let vocabulary = Vocabulary::from_bytes(bytes).unwrap().with_eos([end]).unwrap();
    let text = AnyText::new().with_max_tokens(2);
    let tag = Format::tag("<t>", text.clone(), "</t>");
    let tag = StructuralTag::new(Format::sequence([tag, Format::tag("<u>", text, "</u>")]));
    let constraint = Constraint::structural_tag(&tag).unwrap();
    let compiled = CompiledConstraint::compile(&constraint, &vocabulary, &Limits::default()).unwrap();
    let accepts = |tokens: &[&str]| {
        let id = |token: &&str| match *token {
            "ab" => TokenId(257),
            "</" => TokenId(258),
            byte => TokenId(byte.as_bytes()[0].into()),
        };
        compiled.accepts(&tokens.iter().map(id).chain([end]).collect::<Vec<_>>())
    };
    let begin = ["<", "t", ">"];
    let rest = ["/", "t", ">", "<", "u", ">", "ab", "ab", "</", "u", ">"];
    for (text, right) in [
        (&["<"][..], true),
        (&["ab", "<"], true),
        (&["ab", "x", "<"], true),
        (&["x", "x", "x", "<"], false),
        (&["ab", "ab", "ab", "<"], false),
        // A token that only looks like the end counts.
        (&["</", "x", "<"], true),
        (&["</", "x", "x", "<"], false),
    ] {
        assert_eq!(accepts(&[&begin, text, &rest].concat()), right, "{text:?}");
    }
    let any = serde_json::json!({"type": "json_schema", "json_schema": {}});
    let tag = serde_json::json!({"format": {"type": "sequence", "elements": [{"type": "any_text", "max_tokens": 3}, any]}});
    let constraint = Constraint::structural_tag(&tag).unwrap();
    let error = CompiledConstraint::compile(&constraint, &vocabulary, &Limits::default()).unwrap_err();
    assert!(error.kind() == ErrorKind::Grammar && error.to_string().contains("`max_tokens`"), "{error}");
}
