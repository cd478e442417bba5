use burn_dfa_common::{Error, ErrorKind, Limits};
use std::time::Duration;

use super::read;
use crate::Constraint;
use crate::grammar::form::{Grammar, Node, TokenName};
use crate::grammar::recognize::accepts;
use burn_dfa_automata::ByteAutomaton;
use burn_dfa_vocabulary::TokenId;

fn grammar(text: &str) -> Grammar {
    read(text, None).unwrap_or_else(|error| panic!("{text}\n{error}"))
}

/// A grammar has the first texts and not the second.
fn check(text: &str, accepted: &[&str], rejected: &[&str]) {
    let grammar = grammar(text);
    for word in accepted {
        assert!(accepts(&grammar, word), "{text}\nmust accept {word:?}");
    }
    for word in rejected {
        assert!(!accepts(&grammar, word), "{text}\nmust reject {word:?}");
    }
}

/// Checks that a grammar is rejected at a line and column, for a reason.
fn refused(text: &str, location: (usize, usize), reason: &str) {
    let error = read(text, None).expect_err(text);
    assert_eq!(error.location(), Some(location), "{error}");
    assert!(error.to_string().contains(reason), "{error}");
}

#[test]
fn rules_go_on_over_lines() {
    check(
        "# a list\nroot ::=\n  item # first\n  (\",\" item)*\n\nitem\n::= [a-c]+ | \"\"",
        &["a", ",", "a,bc"],
        &["d", "a,d"],
    );
    check("root ::= root \"a\" | \"a\"", &["a", "aaa"], &["", "b"]);
    check("root ::= my.rule-1_x\nmy.rule-1_x ::= ( ) \"a\"", &["a"], &[""]);
    refused("root ::= \"a\" b ::= \"c\"", (1, 14), "does not begin its line");
    refused("root ::= a\n", (1, 10), "`a` is not defined");
    refused("root ::= \"a\"\nroot ::= \"b\"", (2, 1), "defined twice");
    refused("a ::= \"a\"", (1, 10), "`root`, where texts begin");
    refused("root ::= \"a\" |", (1, 15), "expected something to match");
    refused("root ::= | \"a\"", (1, 10), "expected something to match");
    refused("root ::= \"a\" )", (1, 14), "means nothing");
    refused("root ::= (\"a\"", (1, 14), "expected `)`");
    refused("root ::= true", (1, 10), "truth value");
    refused("root ::= .", (1, 10), "`.` is not defined");
    refused("= \"a\"", (1, 1), "a rule is written");
    assert!(read("start ::= \"a\"", Some("start")).is_ok());
}

#[test]
fn literals_and_classes_have_escapes() {
    check(
        r#"root ::= "\"\\\/\'\?\n\t\0\e" "\x1F600" "\u4f60" "\U0001F600""#,
        &["\"\\/'?\n\t\0\x1b\u{1F600}\u{4f60}\u{1F600}"],
        &[],
    );
    check(r"root ::= [-a-zA-Z+--]+", &["a-+,"], &["1", ".", ""]);
    check(r"root ::= [^\]\-\x00-\x20]+", &["a[é"], &["]", "-", " "]);
    check("root ::= [^] [^a]", &["\n😀"], &["a", "ba"]);
    refused(r#"root ::= "\q""#, (1, 11), "no escape");
    refused(r#"root ::= "\uD800""#, (1, 11), "surrogate");
    refused(r#"root ::= "\x110000""#, (1, 11), "characters end");
    refused("root ::= \"a\nb\"", (1, 12), "ends with its line");
    refused("root ::= \"a", (1, 10), "not closed");
    refused(r"root ::= [\d]", (1, 11), "write ranges");
    refused("root ::= []", (1, 10), "empty class");
    refused("root ::= [b-a]", (1, 11), "out of order");
    refused("root ::= [ab", (1, 10), "not closed");
}

#[test]
fn repetitions_with_counts_are_read() {
    check(
        "root ::= \"a\"{2} \"b\" {1, 3} \"c\"{0} [d]{1,} (\"e\"+)?",
        &["aabd", "aabbbdddee"],
        &["abd", "aabbbbd", "aabcd"],
    );
    check("root ::= \"a\"{2, -1}", &["aa", "aaaa"], &["a"]);
    refused("root ::= \"a\"++", (1, 14), "parentheses");
    refused("root ::= + \"a\"", (1, 10), "nothing to repeat");
    refused("root ::= \"a\"{,2}", (1, 14), "write `{0,`");
    refused("root ::= \"a\"{3,2}", (1, 13), "out of order");
    refused("root ::= \"a\"{3", (1, 15), "expected `}`");
    refused("root ::= \"a\"{99999999999}", (1, 14), "beyond 32 bits");
}

#[test]
fn a_look_ahead_is_checked_and_ignored() {
    check("root ::= a \"b\"\na ::= \"a\" (= \"c\" b)\nb ::= \"b\"", &["ab"], &[]);
    refused("root ::= \"a\" (= b)", (1, 17), "not defined");
    refused("root ::= \"a\" (= \"b\" | \"c\")", (1, 14), "alternatives");
    refused("root ::= \"a\" (= \"\")", (1, 14), "the empty text");
    refused("root ::= \"a\" (=Substring(\"b\"))", (1, 16), "Substring");
    refused("root ::= \"a\" (=\"b\") \"c\"", (1, 21), "means nothing");
}

#[test]
fn regexes_match_as_a_whole() {
    check(r#"root ::= Regex("^[0-9]+$")"#, &["12"], &["", "1a"]);
    check(r#"root ::= Regex("a.b")"#, &["a\nb"], &["ab"]);
    check(r#"root ::= Regex("a.b", flags="")"#, &["acb"], &["a\nb"]);
    check(r#"root ::= Regex("a.b", flags="si")"#, &["A\nb"], &[]);
    check(r#"root ::= Regex("(\?i)[^k]+\\x41")"#, &["xa", "xA", "\u{212a}a"], &["ka", "Ka", "xb"]);
    check(r#"root ::= Regex("Σ", flags="i")"#, &["Σ"], &["σ"]);
    check(r#"root ::= "x" Regex("a(?!b)[\\s\\S]", flags="u") "y""#, &["xacy", "xa\ny"], &["xaby"]);
    check(r#"root ::= Regex("\\u{1F600}[\\u{41}-\\x43]")"#, &["\u{1F600}B"], &["\u{1F600}D"]);
    check(r#"root ::= Regex("(?P<n>a){ 1, 2 }\\e")"#, &["aa\x1b"], &["aaa\x1b"]);
    check(r#"root ::= Regex("\\S+", json_string=true)"#, &["a.b!c", "好"], &["a\"b", "a\\b", "a b", "\x01"]);
    for (pattern, reason) in [
        ("+a", "nothing to repeat"),
        (r"\\x4", "two hex digits"),
        (r"\\u{110000}", "no code point"),
        (r"\\bx", "word boundaries"),
        (r"(a)\\1", "back-references"),
        (r"\\p{L}", "properties"),
        ("(?<=a)b", "look-behind"),
        ("[]", "empty class"),
        ("a]", "without its `[`"),
        ("a{,2}", "begins no count"),
        ("(?m)a", "modifiers"),
        (r"[a-\\d]", "end of a range"),
    ] {
        refused(&format!("root ::= Regex(\"{pattern}\")"), (1, 16), reason);
    }
    refused("root ::= Regex(\"a\", flags=\"m\")", (1, 27), "no flag `m`");
    refused("root ::= Regex(\"a\", mode=1)", (1, 26), "no argument `mode`");
    refused("root ::= Regex()", (1, 15), "one unnamed argument");
}

#[test]
fn substrings_are_runs_of_chunks() {
    check(
        r#"root ::= "<" Substring("foo", " bar", "", " baz") ">""#,
        &["<>", "<foo bar>", "< bar baz>"],
        &["<foo baz>", "<fo>"],
    );
    check(r#"root ::= Substring("a", "b", "a", "b", "b")"#, &["", "babb", "abb"], &["aa", "bbb"]);
    check("root ::= Substring()", &[""], &["a"]);
    refused("root ::= Substring(1)", (1, 20), "a text in quotes");
}

#[test]
fn tags_are_dispatched_at_their_first_occurrence() {
    let rules = "\nr ::= \"1\"+\ns ::= \"2\"";
    check(
        &format!("root ::= TagDispatch((\"<a>\", r), (\"<b>\", s)){rules}"),
        &["", "free <a text", "<a>11 then <b>2.<", "好<b>2"],
        &["<a>", "x<a>2", "<a>1<b>"],
    );
    check(
        &format!("root ::= TagDispatch((\"<a>\", r), loop_after_dispatch=false){rules}"),
        &["free", "x<a>1"],
        &["<a>1 ", "<a>1<a>1"],
    );
    check(
        &format!("root ::= TagDispatch((\"tag\", r), excludes=(\"end\", \"ll\",)) \"end\"{rules}"),
        &["end", "x tag1 end"],
        &["tag1", "ll end", "x end end", "x tag1ll end"],
    );
    check("root ::= TagDispatch(\n  loop_after_dispatch=true\n)", &["", "any 好"], &[]);
    // If triggers end together, any of them counts; else the first.
    let nested = format!("root ::= TagDispatch((\"xa\", r), (\"a\", s), (\"ab\", s)){rules}");
    check(&nested, &["xa1", "xa2", "a2"], &["ab2", "xab2"]);
    refused("root ::= TagDispatch((\"ab\", root), excludes=(\"a\"))", (1, 23), "how this trigger begins");
    refused("root ::= TagDispatch((\"ab\", x))", (1, 29), "not defined");
    refused("root ::= TagDispatch((\"\", root))", (1, 23), "not empty");
    refused("root ::= TagDispatch(\"a\")", (1, 22), "expected a pair");
    refused("root ::= TagDispatch(stop_eos=false)", (1, 31), "stop_eos");
    refused("root ::= TagDispatch(x=false)", (1, 24), "no argument `x`");
}

#[test]
fn tokens_are_read_by_their_numbers() {
    let token = |ids: &[u32], except| {
        let tokens = ids.iter().map(|&id| TokenName::Id(TokenId(id))).collect::<Vec<_>>();
        format!("{:?}", Node::Token { tokens, except })
    };
    let body = |text: &str| format!("{:?}", grammar(text).rules[0].body.0);
    assert_eq!(body("root ::= Token(4, 3, 4)"), token(&[3, 4], false));
    assert_eq!(body("root ::= ExcludeToken(3)"), token(&[3], true));
    let dispatch = body("root ::= TokenTagDispatch((3, root), excludes=(5,), loop_after_dispatch=false)");
    assert!(dispatch.contains(&token(&[3, 5], true)) && dispatch.contains(&token(&[3], false)), "{dispatch}");
    refused("root ::= Token()", (1, 15), "number of a token");
    refused("root ::= Token(a)", (1, 16), "number of a token");
    refused("root ::= Token", (1, 15), "expected `(`");
    refused("root ::= TokenTagDispatch((3, root), excludes=(3,))", (1, 28), "a trigger and excluded");
}

#[test]
fn attributes_restrict_a_rule_or_say_nothing_of_it() {
    check("root ::= \"<\" r \">\"\nr[lazy] ::= [a-z] [a-z]*", &["<a>"], &["<ab>", "<>"]);
    check("root ::= r \"z\"\nr[capture=\"x]\", lazy] ::= s \"!\"+\ns ::= [a-z!]*", &["xy!z"], &["xy!!z"]);
    check("root ::= s \"d\"\ns[max_chars=2] ::= t{0,3}\nt ::= [a-cé]", &["d", "abd", "éad"], &["abcd"]);
    check("root[temperature=0.6, capture, stop_capture=\"m\"] ::= \"a\"", &["a"], &[]);
    check("root ::= a[b] [c]\na ::= \"a\"", &["abc"], &[]);
    refused("root[temperature=-0.1] ::= \"a\"", (1, 18), "from 0 on");
    refused("root[temperature=abc] ::= \"a\"", (1, 18), "from 0 on");
    refused("root[capture=\"\"] ::= \"a\"", (1, 14), "is empty");
    assert!(read("root[max_tokens=3] ::= \"a\"", None).is_ok());
    refused("root[max_tokens=0] ::= \"a\"", (1, 6), "from 1 to");
    refused("root[lazy] ::= x\nx[max_tokens=1] ::= \"a\"", (1, 1), "refers to one with `max_tokens`");
    refused("root[lazy, lazy] ::= \"a\"", (1, 12), "stands twice");
    refused("root[colour=1] ::= \"a\"", (1, 6), "no attribute");
    refused("root[capture_hidden_stop_bytes=0] ::= \"a\"", (1, 6), "from 1 on");
    refused("root[capture_hidden_body_rule_id=0] ::= \"a\"", (1, 1), "together");
    refused("root[lazy] ::= \"a\" root | \"b\"", (1, 1), "refers to itself");
    refused("root[max_chars=1] ::= a\na[lazy] ::= \"b\" root?", (1, 1), "refers to itself");
    refused("root ::= \"a\"\nx[max_chars=1] ::= Token(1)", (2, 1), "contains tokens");
}

#[test]
fn attributes_are_exact_over_recursion_that_is_a_loop() {
    // Each is all of `a*` and then `b`, or of `b` and then `a*`.
    let right = ["\"a\" s | \"b\"", "\"b\" | t", "\"a\"* \"b\" | s", "\"a\" t", "u s | \"b\""];
    let rest = "\nt ::= \"a\" s | \"b\" | t | s\nu ::= \"a\" | \"\"";
    for body in right {
        let least = usize::from(body == "\"a\" t");
        let text = |n: usize| "a".repeat(n) + "b";
        let of = |attribute: &str| format!("root ::= r \".\"\nr[{attribute}] ::= s\ns ::= {body}{rest}");
        for max in 0..5 {
            let grammar = of(&format!("max_chars={max}"));
            for n in least..5 {
                language(&grammar, &format!("{}.", text(n)), n < max);
            }
            language(&grammar, "a.", false);
        }
        for n in least..5 {
            language(&of("lazy"), &format!("{}.", text(n)), true);
        }
    }
    let left = ["s \"a\" | \"b\"", "t \"a\" | \"b\"", "\"b\" | s u"];
    let rest = "\nt ::= s | t\nu ::= \"a\" | \"\"";
    for body in left {
        let of = |attribute: &str| format!("root ::= r \".\"\nr[{attribute}] ::= s\ns ::= {body}{rest}");
        for n in 0..5 {
            let text = format!("b{}.", "a".repeat(n));
            language(&of("lazy"), &text, n == 0);
            language(&of("max_chars=3"), &text, n < 3);
            language(&of("max_chars=3, lazy"), &text, n == 0);
            language(&of("max_chars=0"), &text, false);
        }
    }
    // One within another.
    let nested = "root ::= r \".\"\nr[max_chars=3] ::= q q\nq[lazy] ::= s\ns ::= \"a\" s | \"b\" s | \"c\"";
    for (text, is_text) in [("cc.", true), ("acc.", true), ("cbc.", true), ("ccc.", false), ("abcc.", false)]
    {
        language(nested, text, is_text);
    }
    // A rule with embedded recursion is rejected at compilation; a rule without texts stays empty.
    for attribute in ["lazy", "max_chars=3"] {
        let error = automaton(&format!("root[{attribute}] ::= s\ns ::= \"(\" s \")\" | \"x\"")).unwrap_err();
        assert!(error.kind() == ErrorKind::Grammar && error.to_string().contains("`root`"), "{error}");
        let none = automaton(&format!("root ::= \"a\" | r\nr[{attribute}] ::= s\ns ::= \"b\" s")).unwrap();
        assert!(none.matches(b"a") && !none.matches(b"b"));
    }
}

fn automaton(text: &str) -> Result<ByteAutomaton, Error> {
    Ok(Constraint::from_grammar(grammar(text)).to_automaton(&Limits::default())?.unwrap())
}

/// Checks whether a grammar has a text, by its automaton and by the recognizer.
#[track_caller]
fn language(text: &str, word: &str, is_text: bool) {
    assert_eq!(accepts(&grammar(text), word), is_text, "{text}\n{word}");
    let automaton = automaton(text);
    match automaton {
        Err(error) => assert!(error.kind() == ErrorKind::Unsatisfiable && !is_text, "{text}\n{error}"),
        Ok(automaton) => assert_eq!(automaton.matches(word.as_bytes()), is_text, "{text}\n{word}"),
    }
}

#[test]
fn hostile_grammars_are_rejected_in_time() {
    let open = |depth: usize| format!("root ::= {}\"a\"{}", "(".repeat(depth), ")".repeat(depth));
    assert!(read(&open(200), None).is_ok());
    assert!(read(&open(201), None).unwrap_err().to_string().contains("nested more than"));
    assert!(read(&open(100_000), None).is_err());
    let tuples = format!("root ::= Regex({}", "(".repeat(100_000));
    assert!(read(&tuples, None).is_err());
    // A rule of exponential size after inlining the others.
    let mut doubling = String::from("root[lazy] ::= a0 a0\n");
    for at in 0..60 {
        doubling += &format!("a{at} ::= a{} a{}\n", at + 1, at + 1);
    }
    doubling += "a60 ::= \"a\"";
    let limits = Limits::default().with_time(Duration::from_secs(1));
    let error = Constraint::from_grammar(grammar(&doubling)).to_automaton(&limits).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
}
