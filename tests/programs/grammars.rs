//! The command line tool on grammars: check, explain, draw, sample, corpus.

use serde_json::Value;

use burn_dfa_testing::data;

use super::{fails, file, refuses, succeeds, text, tool};

const ARITHMETIC: [&str; 4] = ["--grammar", "examples/grammars/arithmetic.gbnf", "--syntax", "gbnf"];

#[test]
fn a_grammar_has_a_syntax_that_is_not_guessed() {
    let Some(tool) = tool() else { return };
    succeeds(&mut tool(&[&["check", "1+(2*3)"], &ARITHMETIC[..]].concat()));
    succeeds(&mut tool(&[&["check", "12", "--start", "number"], &ARITHMETIC[..]].concat()));
    // The extension of a file also names the syntax.
    succeeds(&mut tool(&[&["check", "1"], &ARITHMETIC[..2]].concat()));
    let unnamed = file("arithmetic.txt", "root ::= \"1\"");
    fails(
        &mut tool(&["check", "1", "--grammar", unnamed.to_str().unwrap()]),
        &["arithmetic.txt", "--syntax", ".gbnf"],
    );
    fails(&mut tool(&[&["check", "1", "--syntax", "bnf"], &ARITHMETIC[..2]].concat()), &["gbnf, ebnf, lark"]);
    fails(&mut tool(&[&["check", "1", "--regex", "1"], &ARITHMETIC[2..]].concat()), &["--syntax", "--regex"]);
    fails(&mut tool(&["check", "1", "--regex", "1", "--start", "a"]), &["--start", "--regex"]);
    fails(&mut tool(&[&["check", "1", "--regex", "1"], &ARITHMETIC[..]].concat()), &["--grammar", "--regex"]);
    refuses(
        &mut tool(&[&["check", "1", "--start", "none"], &ARITHMETIC[..]].concat()),
        &["arithmetic.gbnf", "`none`"],
    );
}

#[test]
fn a_grammar_is_refused_with_its_line() {
    let Some(tool) = tool() else { return };
    let path = file("list.gbnf", "root ::= list\nlist ::= \"(\" item \")\"\n");
    let args = ["--grammar", path.to_str().unwrap(), "--syntax", "gbnf"];
    let message =
        "list.gbnf: grammar, line 2, column 14, in the rule `list`: the rule `item` is not defined\n";
    let snippet = "    list ::= \"(\" item \")\"\n                 ^";
    refuses(&mut tool(&[&["check", "(a)"], &args[..]].concat()), &[message, snippet]);
    refuses(
        &mut tool(&[&["check", "(a)", "--json"], &args[..]].concat()),
        &["{\"error\":\"", "line 2, column 14", "\\n"],
    );
    let output = tool(&[&["explain", "--json"], &args[..]].concat()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let refused: Value = serde_json::from_str(&text(&output.stdout)).unwrap();
    assert_eq!((&refused["line"], &refused["column"]), (&2.into(), &14.into()), "{refused}");
}

#[test]
fn possible_continuations_depend_on_the_stack() {
    let Some(tool) = tool() else { return };
    let args = ["check", "--json", "--tokenizer", "models/tiny", "(1)) + 2", "((1", "1 + 2"];
    let output = tool(&[&args, &ARITHMETIC[..]].concat()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let stdout = text(&output.stdout);
    let rows: Vec<Value> = stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(
        (&rows[0]["byte"], &rows[0]["found"], &rows[0]["may_end"]),
        (&3.into(), &")".into(), &true.into())
    );
    let expected = |row: &Value| row["expected"].as_str().unwrap().to_owned();
    assert!(!expected(&rows[0]).contains(')') && expected(&rows[1]).contains(')'), "{stdout}");
    assert_eq!((&rows[1]["byte"], &rows[1]["may_end"]), (&3.into(), &false.into()));
    let tokens = rows[1]["tokens"].as_array().unwrap();
    assert!(tokens.iter().any(|token| token["text"] == "\")\""), "{stdout}");
    assert_eq!(rows[2]["matches"], true);
}

#[test]
fn grammars_are_explained() {
    let Some(tool) = tool() else { return };
    let said = succeeds(&mut tool(&[&["explain"], &ARITHMETIC[..]].concat()));
    assert!(said.contains("called in operand: behind \"(\", up to \")\"\n"), "{said}");
    assert!(said.contains("stacks 1: ") && said.contains("stack of 64 frames: calls"), "{said}");
    let path = file("uses.gbnf", "root ::= \"a\" | loop\nloop ::= \"b\" loop\nother ::= \"c\"\n");
    let args = ["explain", "--json", "--syntax", "gbnf", "--grammar", path.to_str().unwrap()];
    let said = succeeds(&mut tool(&args));
    for line in [
        r#"{"rule":"root","treatment":"copied"}"#,
        r#"{"rule":"loop","treatment":"textless"}"#,
        r#"{"rule":"other","treatment":"unused"}"#,
    ] {
        assert!(said.contains(line), "{said}");
    }
}

#[test]
fn rules_are_drawn() {
    let Some(tool) = tool() else { return };
    let grammar =
        file("rules.gbnf", "root ::= item (\",\" item)* | \"<&\\x01\"\nitem ::= [a-z]{2,5} \"\" | [^a]?\n");
    let picture = file("rules.svg", "");
    let args = ["draw", "--rules", "--syntax", "gbnf", "--grammar", grammar.to_str().unwrap(), "-o"];
    let args = [&args, &[picture.to_str().unwrap()][..]].concat();
    let said = succeeds(&mut tool(&args));
    assert!(said.ends_with(": 2 rules, 6 boxes\n"), "{said}");
    let svg = std::fs::read_to_string(&picture).unwrap();
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"), "{svg}");
    // The boxes and the background, the two references to `item`, and two loops.
    assert_eq!(svg.matches("<rect ").count(), 7, "{svg}");
    assert_eq!(svg.matches("<a href=\"#rule-1\">").count(), 2, "{svg}");
    assert_eq!(svg.matches("marker-end").count(), 2, "{svg}");
    assert!(svg.contains("&quot;&lt;&amp;\\u{1}&quot;") && svg.contains(">2 to 5 times<"), "{svg}");
    assert!(!svg.contains('\u{1}'));
    fails(&mut tool(&[&args[..], &["--max-nodes", "5"]].concat()), &["6 boxes", "--max-nodes"]);
    fails(&mut tool(&["draw", "--rules", "--regex", "a", "-o", "a.svg"]), &["--rules is for grammars"]);
    fails(&mut tool(&[&["draw", "--rules"], &ARITHMETIC[..], &["-o", "a.dot"]].concat()), &[".svg"]);
}

#[test]
fn random_texts_of_a_grammar_match_it() {
    let Some(tool) = tool() else { return };
    let args = ["sample", "--count", "20", "--max-tokens", "30", "--tokenizer", "models/tiny", "--json"];
    let drawn = succeeds(&mut tool(&[&args, &ARITHMETIC[..]].concat()));
    let texts: Vec<Value> = drawn.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let texts: Vec<&str> = texts.iter().map(|row| row["text"].as_str().unwrap()).collect();
    assert_eq!(texts.len(), 20);
    succeeds(&mut tool(&[&["check"], &ARITHMETIC[..], &["--"], &texts].concat()));
}

#[test]
fn verdicts_on_grammars_are_counted() {
    let Some(tool) = tool() else { return };
    let grammar = r#""kind": "gbnf", "grammar": "root ::= \"(\" root? \")\"""#;
    let lines = [
        format!(r#"{{"id": "right", {grammar}, "accepts": ["()", "(())"], "rejects": ["", "(", "x"], "rejects_incomplete": ["", "("], "prefixes": ["(((", "(()"], "dead": ["x", "()x"]}}"#),
        format!(r#"{{"id": "accepted", {grammar}, "accepts": ["("], "rejects": ["()"]}}"#),
        format!(r#"{{"id": "going on", {grammar}, "accepts": [], "rejects": ["(("], "all_rejects_dead": true}}"#),
        format!(r#"{{"id": "stopped", {grammar}, "accepts": [], "rejects": [], "prefixes": [")"]}}"#),
        format!(r#"{{"id": "compiled", {grammar}, "accepts": [], "rejects": [], "compiles": false}}"#),
        r#"{"id": "refused", "kind": "gbnf", "grammar": "root ::= x", "accepts": ["x"], "rejects": []}"#.to_owned(),
        r#"{"id": "rightly", "kind": "gbnf", "grammar": "root ::= x", "accepts": [], "rejects": [], "compiles": false}"#.to_owned(),
        r#"{"id": "root", "kind": "ebnf", "grammar": "a ::= \"x\" | \"y\"", "options": {"root": "a"}, "accepts": ["y"], "rejects": ["x"], "peer_only_rejects": ["x"]}"#.to_owned(),
        r#"{"id": "dialect", "kind": "lark", "grammar": "start: \"x\"", "accepts": ["y"], "rejects": [], "llguidance_differs": [["accepts", "y", "no"]], "prefixes": ["x"]}"#.to_owned(),
        r#"{"id": "regex", "kind": "regex", "grammar": "x+", "accepts": ["xx"], "rejects": ["y"], "all_rejects_dead": true}"#.to_owned(),
        r#"{"id": "request", "kind": "request", "grammar": {}, "accepts": ["x"], "rejects": []}"#.to_owned(),
        r#"{"id": "tokens", "kind": "ebnf", "grammar": "root ::= Token(1) \"x\"", "vocab": ["x", "y", "<end>"], "stop": [2], "accepts": [[1, 0]], "rejects": [[0, 0]]}"#.to_owned(),
    ];
    let (path, rows) = (file("grammars.jsonl", &lines.join("\n")), file("grammar-rows.jsonl", ""));
    let args =
        ["corpus", "--tokenizer", "models/tiny", path.to_str().unwrap(), "--output", rows.to_str().unwrap()];
    let said = succeeds(&mut tool(&args));
    for line in [
        "passing           6 of 11 (0 more without tests, 1 skipped)",
        "refused           1, over",
        "valid rejected    1 of 6",
        "invalid accepted  1 of 7",
        "wrongly compiled  1 of 2 that",
        "not stopped       1 of 4 beginnings",
        "stopped           1 of 6 beginnings",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
    let written = std::fs::read_to_string(rows).unwrap();
    let class = |line| serde_json::from_str::<Value>(line).unwrap()["class"].as_str().unwrap().to_owned();
    let classes: Vec<String> = written.lines().map(class).collect();
    let expected = [
        "pass",
        "invalid_accepted",
        "not_stopped",
        "stopped",
        "wrongly_compiled",
        "refused",
        "pass",
        "pass",
        "pass",
        "pass",
        "pass",
    ];
    assert_eq!(classes, expected);
}

#[test]
fn the_cases_of_the_grammars_in_the_examples_pass() {
    let Some(tool) = tool() else { return };
    let folder = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/grammars")).unwrap();
    let files = folder.map(|entry| entry.unwrap().path().to_str().unwrap().to_owned());
    let files: Vec<String> = files.filter(|path| path.ends_with(".cases.jsonl")).collect();
    assert!(files.len() > 10);
    let said = succeeds(
        tool(&["corpus", "--jobs", "2", "--max-seconds", "30", "--tokenizer", "models/tiny"]).args(&files),
    );
    let last = said.lines().last().unwrap();
    assert!(last.starts_with(&format!("passing={0}/{0} refused=0 valid_rejected=0/", files.len())), "{said}");
    let alone = file("alone.cases.jsonl", "{\"accepts\": \"\"}");
    fails(&mut tool(&["corpus", "--tokenizer", "models/tiny", alone.to_str().unwrap()]), &["alone.gbnf"]);
}

/// Grammars of other projects, with the verdicts of their tests.
#[test]
fn no_verdict_of_the_peers_on_a_grammar_is_wrong() {
    let Some(tool) = tool() else { return };
    let Some(tokenizer) = data::find("tokenizers/smollm2/tokenizer.json") else { return };
    let names = ["codex-lark", "llguidance-lark", "lark-lark", "xgrammar-ebnf", "xgrammar-lark"];
    let files: Vec<_> = names.iter().filter_map(|name| data::find(&format!("cases/{name}.jsonl"))).collect();
    if files.len() < names.len() {
        return;
    }
    let said = succeeds(
        tool(&["corpus", "--jobs", "2", "--max-seconds", "30", "--tokenizer"]).arg(tokenizer).args(files),
    );
    let last = said.lines().last().unwrap();
    // In Lark's own dialect a text may begin with ignored text, as one of its texts does.
    assert!(last.contains(" valid_rejected=1/") && last.contains(" invalid_accepted=0/"), "{last}");
    for what in ["wrongly compiled  ", "not stopped       ", "stopped           "] {
        assert!(
            said.lines().filter_map(|line| line.trim().strip_prefix(what)).all(|of| of.starts_with("0 of ")),
            "{said}"
        );
    }
}
