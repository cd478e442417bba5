//! The right-hand sides of definitions.

use super::super::super::form::{Node, TokenName};
use super::super::read;
use super::{body, language, refused};
use burn_dfa_vocabulary::TokenId;

#[test]
fn strings_have_escapes_and_a_flag() {
    language(
        "start: \"a\\n\\t\\\"\\\\\\/\\x41\\u00e9\\ud83d\\ude00\\U0001F600\"",
        &["a\n\t\"\\/A\u{e9}\u{1f600}\u{1f600}"],
        &[],
    );
    language("start: \"Ab-c.\"i", &["AB-C.", "ab-c."], &["ab-cx", "ab-"]);
    language("start: \"\" \"a\" \"\"i", &["a"], &["", "aa"]);
    language("start: \"\u{4e2d}\"", &["\u{4e2d}"], &[""]);
    refused("start: \"\\q\"", (1, 9), "escape");
    refused("start: \"\\u12\"", (1, 9), "escape");
    refused("start: \"\\ud83d\"", (1, 9), "escape");
    refused("start: \"a\nb: \"c\"", (1, 8), "not closed");
    refused("start: \"a\tb\"", (1, 10), "control");
}

#[test]
fn ranges_are_of_characters() {
    language("start: \"a\"..\"c\" \"0\" .. \"9\"", &["a0", "c9"], &["d0", "a", "ab"]);
    language("start: \"\u{3b1}\"..\"\u{3b3}\"", &["\u{3b2}"], &["\u{3b4}"]);
    refused("start: \"ab\"..\"c\"", (1, 8), "single character");
    refused("start: \"a\"..\"bc\"", (1, 13), "single character");
    refused("start: \"a\"..b", (1, 13), "last character");
    refused("start: \"b\"..\"a\"", (1, 8), "empty");
    refused("start: \"a\"i..\"b\"", (1, 8), "flag");
}

#[test]
fn flags_and_escapes_of_regexes_are_read() {
    language(r"start: /a\/b./", &["a/bc"], &["a/b\n", "a/b"]);
    language("start: /a.b/s", &["a\nb"], &["ab"]);
    language("start: /hello[0-2]/iu", &["HeLLo1"], &["hello3"]);
    language("start: / a b # c\n /x", &["ab"], &[" a b "]);
    language(r"start: /[\u0041-\x43]+/", &["ABC"], &["abc"]);
    language(
        r"start: /x\cAy\\cB[\cI-\cm]/i",
        &["X\x01y\\cb\t", "x\x01Y\\CB\r"],
        &["xAy\\cB\t", "x\x01y\x02\t"],
    );
    refused(r"start: /\cA\cbx\q/", (1, 16), "escape");
    refused("start: /a/l", (1, 11), "flag `l`");
    refused("start: /[abc/", (1, 9), "unclosed");
    refused("start: /a", (1, 8), "not closed");
    refused("start: /a\n b/", (1, 10), "not closed in its line");
    refused("start: /^a/", (1, 9), "look-around");
    refused(r"start: /a\b/i", (1, 9), "look-around");
    refused("start: /(?=a)/", (1, 9), "look-around");
    refused(r"start: /abc\q/i", (1, 12), "escape");
}

#[test]
fn sequences_choices_groups_and_options() {
    language("start: | \"a\" | \"b\" \"c\"", &["", "a", "bc"], &["b", "abc"]);
    language("start:", &[""], &["a"]);
    language("start: (\"a\" | \"b\") [\"c\" | \"d\"] \"e\"", &["ae", "bce", "ade"], &["abe", "a"]);
    language(
        "start: \"a\" -> first\n  // comment\n\n     | b -> second # comment\nb: \"b\"",
        &["a", "b"],
        &["first"],
    );
    language("start: ( \"a\"\n | \"b\"\n )", &["a", "b"], &["ab"]);
    language("start: a->b\na: \"x\"", &["x"], &[]);
    language("start: \"a\"\r\n | \"b\"\r\n", &["a", "b"], &[]);
    refused("start: (\"a\"", (1, 12), "expected `)`");
    refused("start: [\"a\"", (1, 12), "expected `]`");
    refused("start: \"a\")", (1, 11), "end of the line");
    refused("start: \"a\"}", (1, 11), "closes nothing");
    refused("start: \"a\" ->", (1, 14), "alias");
    refused("start: $", (1, 8), "found `$`");
}

#[test]
fn repetitions_are_counted() {
    language("start: \"a\"? \"b\"* \"c\"+", &["c", "abbcc"], &["", "aac", "ab"]);
    language("start: \"a\"~2 \"b\" ~ 1..2", &["aab", "aabb"], &["ab", "aabbb"]);
    language("start: \"a\"{2} \"b\"{1,2} \"c\"{1,} \"d\"{,1}", &["aabc", "aabbccd"], &["abc", "aabcdd"]);
    language("start: item{2,3}\nitem: \"x\" | \"(\" item \")\"", &["xx", "(x)x((x))"], &["x", "xxxx"]);
    language("start: \"a\"{0} \"b\"{0,0}", &[""], &["a"]);
    refused("start: \"a\"{3,2}", (1, 8), "swap");
    refused("start: \"a\"~3..2", (1, 8), "swap");
    refused("start: \"a\"{-1,}", (1, 12), "number");
    refused("start: \"a\"{1,-1}", (1, 14), "number");
    refused("start: \"a\"{9999999999}", (1, 12), "at most");
    refused("start: \"a\"{1", (1, 13), "expected `}`");
    refused("start: \"a\"*?", (1, 12), "expected");
}

#[test]
fn terminals_are_intersected_and_complemented() {
    language("start: A\nA: /[a-z]+/ & /[abAB]+/ | \"C\"", &["ab", "C"], &["c", "A"]);
    language("start: A\nA: /[ab]+/ & ~/.*bb.*/", &["abab"], &["abba", ""]);
    language("start: A\nA: \"x\" ~\"a\"+", &["xab", "xbb"], &["b"]);
    language("start: A\nA: \"a\" \"b\" & /../", &["ab"], &["a"]);
    language("start: \"x\" ~/a*/", &["xb"], &["x", "xaa"]);
    refused("start: /a/ & /b/", (1, 8), "`&`");
}

#[test]
fn json_schemas_are_read_with_their_guidance() {
    let text = "start: \"x\" %json {\n \"type\": \"object\", \"properties\": {\"a\": {\"type\": \"integer\"}},\n \"required\": [\"a\"], \"additionalProperties\": false} \"y\"";
    language(text, &["x{\"a\":1}y", "x{ \"a\" : 1\n}y"], &["x{\"a\":true}y", "x{}y"]);
    let guided = |guidance: &str| {
        format!(
            "start: %json {{\"type\": \"array\", \"items\": {{\"const\": 1}}, \"x-guidance\": {guidance}}}"
        )
    };
    language(&guided("{\"whitespace_flexible\": false}"), &["[1,1]"], &["[1, 1]"]);
    let spaced = "{\"whitespace_flexible\": false, \"item_separator\": \", \", \"key_separator\": \": \"}";
    language(&guided(spaced), &["[1, 1]"], &["[1,1]"]);
    language(
        &guided(r#"{"whitespace_pattern": "[\\x20\\x0A\\x0D\\x09]{1,2}"}"#),
        &["[1,  1]"],
        &["[1,   1]"],
    );
    let semicolons = r#"{"item_separator": "; ", "key_separator": "_ "}"#;
    language(&guided(semicolons), &["[1; 1]", "[ 1 ;  1 ]"], &["[1,1]", "[1;1]", "[1;1 ]"]);
    let object =
        format!("start: %json {{\"const\": {{\"a\": [1], \"b\": 2}}, \"x-guidance\": {semicolons}}}");
    language(
        &object,
        &[r#"{"a"_ [1]; "b"_ 2}"#, r#"{"a" _  [1 ]; "b"_ 2}"#],
        &[r#"{"a":[1],"b":2}"#, r#"{"a"_[1]; "b"_ 2}"#],
    );
    language(
        &guided(r#"{"whitespace_flexible": false, "item_separator": "\t|"}"#),
        &["[1\t|1]"],
        &["[1\t| 1]", "[1|1]"],
    );
    refused(&guided("{\"item_separator\": \" ,\"}"), (1, 14), "begins with white space");
    refused(&guided("{\"item_separator\": \"0\"}"), (1, 14), "may belong to the value");
    refused(&guided("{\"item_separator\": \"]\"}"), (1, 14), "may belong to the value");
    refused(&guided("{\"key_separator\": \"\"}"), (1, 14), "is empty");
    refused(&guided("{\"json_allowed_escapes\": \"n\"}"), (1, 14), "json_allowed_escapes");
    refused(&guided("{\"nope\": 1}"), (1, 14), "nope");
    let signed = r#"{"whitespace_pattern": "[\\x20\\x0A\\x0D\\x09]{1,+5}"}"#;
    refused(&guided(signed), (1, 14), "`{0,n}` or `{1,n}`");
    refused("start: %json {\"minimum\": \"1\"}", (1, 14), "/minimum");
    refused("start: %json []", (1, 14), "JSON schema");
    refused("start: %json", (1, 13), "expected JSON");
    refused("start: \"a\"\n | %json {\n  foo", (3, 3), "key must be a string");
}

#[test]
fn numbered_escapes_need_strings_restricted_by_length_alone() {
    let guided = |schema: &str| {
        let options = r#""x-guidance": {"json_allow_general_unicode_escapes": true}"#;
        format!("start: %json {{{schema}, {options}}}")
    };
    for schema in
        [r#""type": "string""#, r#""type": "string", "maxLength": 2"#, r#""type": ["string", "null"]"#]
    {
        language(&guided(schema), &[r#""ab""#, r#""\u0061b""#, r#""\ud83d\ude00""#], &[r#""\ud83d""#]);
    }
    for schema in [
        r#""const": "ab""#,
        r#""enum": ["ab", 1]"#,
        r#""enum": ["ab", "cd"]"#,
        r#""type": "string", "pattern": "^ab$""#,
        r#""type": "string", "pattern": "b", "maxLength": 2"#,
        r#""type": "string", "not": {"pattern": "c"}"#,
        r#""anyOf": [{"const": "ab"}, {"const": 1}]"#,
    ] {
        language(&guided(schema), &[r#""ab""#], &[r#""\u0061b""#, r#""a\u0062""#]);
    }
    language(
        &guided(r#""type": "string", "format": "date""#),
        &[r#""2020-01-02""#],
        &[r#""\u0032020-01-02""#],
    );
    let closed = r#""type": "object", "required": ["ab"], "additionalProperties": false"#;
    language(
        &guided(&format!(r#"{closed}, "properties": {{"ab": {{"type": "string"}}}}"#)),
        &[r#"{"ab":"c"}"#, r#"{"ab":"\u0063"}"#],
        &[r#"{"\u0061b":"c"}"#],
    );
    language(
        &guided(
            r#""type": "object", "patternProperties": {"^ab$": {"const": 1}}, "additionalProperties": false"#,
        ),
        &[r#"{"ab":1}"#],
        &[r#"{"\u0061b":1}"#],
    );
    // Another name is not a declared one, however it is written.
    language(
        &guided(
            r#""type": "object", "properties": {"ab": {"const": 1}}, "additionalProperties": {"const": 2}"#,
        ),
        &[r#"{"ab":1}"#, r#"{"ac":2}"#, r#"{"\u0061c":2}"#, r#"{"ab":1,"\u0061":2}"#],
        &[r#"{"\u0061b":1}"#, r#"{"\u0061b":2}"#, r#"{"ab":2}"#],
    );
}

#[test]
fn substrings_are_runs_of_chunks() {
    language(
        "start: \"<\" S \">\"\nS: %regex {\"substring_chunks\": [\"abc\", \"de\", \"fg\"]}",
        &["<>", "<abc>", "<abcde>", "<defg>"],
        &["<ab>", "<abcfg>", "<cde>"],
    );
    language(
        "start: %regex {\"substring_words\": \"foo bar. baz\"}",
        &["", "foo bar", ". baz", " "],
        &["fo", "foo baz"],
    );
    language("start: %regex {\"substring_chars\": \"a\u{1f642}b\"}", &["", "\u{1f642}b"], &["ab"]);
    refused("start: %regex {}", (1, 15), "needs");
    refused(
        "start: %regex {\"substring_words\": \"a\", \"substring_chars\": \"b\"}",
        (1, 15),
        "one of its names",
    );
    refused("start: %regex {\"foobar\": true}", (1, 23), "unknown field");
    refused("start: %regex {\"substring_chunks\": [\"a\", 1]}", (1, 42), "expected a string");
}

#[test]
fn nested_grammars_have_their_own_rules() {
    let text = "start: item %lark {\n  start: item\n  item: \"b\" | \"(\" item \")\" } item\nitem: \"a\"";
    language(text, &["aba", "a(b)a"], &["aaa", "aab"]);
    language(
        "start: ( %lark { start: \"a\" | \"b\" } %lark {\nstart: \"1\"\n%ignore \" \"\n} )",
        &["a1", "b1 "],
        &["a 1", "1"],
    );
    refused("start: %lark { item: \"a\" }", (1, 14), "`start`");
    refused("start: %lark { start: \"a\"", (1, 26), "expected `}`");
    refused("start: %lark { start: b }\nb: \"b\"", (1, 23), "not defined");
    refused("start: @sub", (1, 8), "`@sub`");
    refused("start: @", (1, 8), "name of a grammar");
}

#[test]
fn tokens_are_named_by_text_or_id() {
    let token = |text: &str| match body(&read(text, None).unwrap(), "start") {
        Node::Token { tokens, except } => (tokens.clone(), *except),
        other => panic!("{other:?}"),
    };
    let ids = |ids: &[u32]| ids.iter().map(|&id| TokenName::Id(TokenId(id))).collect::<Vec<_>>();
    assert_eq!(token("start: <|think|>"), (vec![TokenName::Text("<|think|>".into())], false));
    assert_eq!(token("start: <[7]>"), (ids(&[7]), false));
    assert_eq!(token("start: <[1,3-5]>"), (ids(&[1, 3, 4, 5]), false));
    assert_eq!(token("start: <[^1,3-4]>"), (ids(&[1, 3, 4]), true));
    assert_eq!(token("start: <[*]>"), (vec![], true));
    for text in [
        "<a b>",
        "<a",
        "<>",
        "<[*,1]>",
        "<[^*]>",
        "<[2-1]>",
        "<[1-2-3]>",
        "<[ 1]>",
        "<[]>",
        "<[x]>",
        "<[-1]>",
        "<[0-4000000]>",
    ] {
        assert_eq!(read(&format!("start: {text}"), None).unwrap_err().location(), Some((1, 8)), "{text}");
    }
}
