//! Context-free grammars with texts: grammars of other projects from the data folder, then examples
//! of this project.
//!
//! The texts of an example come from its `cases.jsonl`; one long text joins all of them. Other
//! texts are existing files, or files written for a grammar (`texts/`). Rejected and incomplete
//! texts of a case are invalid.

use std::path::Path;

use burn_dfa::constraint::Syntax;
use serde_json::Value;

use crate::cases::{Case, Kind};
use crate::data;
use crate::engines::Grammar;
use crate::lark;

/// The number of texts of an example to use unchanged, longest first.
const LONGEST: usize = 6;

/// The conversion of a GBNF grammar to Lark: [`lark::from_gbnf`].
struct AsLark {
    /// Replacements that keep the language. Without them, single-character terminals would make
    /// Lark engines several times slower.
    changed: &'static [[&'static str; 2]],
    /// The rules that are terminals.
    terminals: &'static [&'static str],
}

/// A grammar in Lark, or one whose conversion to Lark needs only these terminals.
const fn with(terminals: &'static [&'static str]) -> AsLark {
    AsLark { changed: &[], terminals }
}

/// A grammar of the data folder.
struct Found {
    path: &'static str,
    lark: AsLark,
    texts: fn() -> Vec<String>,
}

/// The grammars of llama.cpp, and one from llguidance's tests.
const FOUND: [Found; 9] = [
    Found { path: "llama.cpp/json.gbnf", lark: with(&["string", "number", "ws"]), texts: objects },
    Found {
        path: "llama.cpp/c.gbnf",
        lark: with(&["identifier", "number", "singleLineComment", "multiLineComment", "ws"]),
        texts: || vec![include_str!("../texts/llama.c").trim_end().to_owned()],
    },
    Found { path: "llama.cpp/json_arr.gbnf", lark: with(&["string", "number", "ws"]), texts: arrays },
    Found {
        path: "llama.cpp/arithmetic.gbnf",
        // `ws` cannot be a terminal: it would consume the line break that has to follow.
        lark: AsLark {
            changed: &[
                ["[a-z] [a-z0-9_]* ws", "name ws\nname ::= [a-z] [a-z0-9_]*"],
                ["[0-9]+ ws", "digits ws\ndigits ::= [0-9]+"],
            ],
            terminals: &["name", "digits"],
        },
        texts: equations,
    },
    Found { path: "llama.cpp/chess.gbnf", lark: with(&["move"]), texts: games },
    Found {
        path: "llama.cpp/english.gbnf",
        lark: AsLark {
            changed: &[["en-char+ ([ \\t\\n] en-char+)*", "word ([ \\t\\n] word)*\nword ::= en-char+"]],
            terminals: &["word"],
        },
        texts: || {
            vec!["It was late, and nobody (not even she) knew: 3 of 7 doors were open.\nWell".to_owned()]
        },
    },
    Found {
        path: "llama.cpp/japanese.gbnf",
        lark: AsLark {
            changed: &[["jp-char+ ([ \\t\\n] jp-char+)*", "word ([ \\t\\n] word)*\nword ::= jp-char+"]],
            terminals: &["word"],
        },
        texts: || vec!["吾輩は猫である。名前はまだ無い。\nどこで生れたか、カイモク見当がつかぬ。".to_owned()],
    },
    Found {
        path: "llama.cpp/list.gbnf",
        lark: with(&["item"]),
        texts: || {
            vec!["- flour, 500 g\n- water\n- \"old\" yeast – half a cube\n- salt & patience\n".to_owned()]
        },
    },
    Found {
        path: "llguidance/from-llama.cpp/vllm-sql.gbnf",
        lark: with(&[]),
        texts: || vec!["SELECTcol_1fromtable_2wherecol_1=1".to_owned()],
    },
];

/// An example of this project.
struct Example {
    name: &'static str,
    lark: AsLark,
    /// The text before, between and after the joined texts.
    around: [&'static str; 3],
    /// The part of each text to join.
    part: fn(&str) -> &str,
    more: fn() -> Vec<String>,
}

const EXAMPLES: [Example; 6] = [
    Example {
        name: "json.gbnf",
        lark: with(&["string", "number", "ws"]),
        around: ["[", ",\n", "]"],
        part: |text| text,
        more: documents,
    },
    Example {
        name: "c-like.gbnf",
        // `ws` cannot be a terminal: it includes comments, so it would consume the division sign
        // after white space.
        lark: AsLark {
            changed: &[["space       ::= [ \\t\\n\\r]", "space ::= [ \\t\\n\\r]+"]],
            terminals: &["number", "character", "string", "name", "space", "comment"],
        },
        around: ["", "\n", ""],
        part: |text| text,
        more: || vec![include_str!("../texts/words.c").to_owned()],
    },
    Example {
        name: "sql-select.ebnf",
        lark: with(&["name", "string", "number", "ws", "sp"]),
        around: ["SELECT a FROM t WHERE b IN (", ") OR c NOT IN (", ")"],
        part: |text| text.trim_end_matches([' ', '\n', ';']),
        more: Vec::new,
    },
    Example {
        name: "arithmetic.gbnf",
        lark: with(&["number", "name", "ws"]),
        around: ["(", ") + (", ")"],
        part: |text| text,
        more: Vec::new,
    },
    Example {
        name: "python-expression.lark",
        lark: with(&[]),
        around: ["[", ", ", "]"],
        part: |text| text,
        more: Vec::new,
    },
    Example {
        name: "apply-patch.lark",
        lark: with(&[]),
        around: [BEGIN, "", END],
        part: |text| {
            let end = text.rfind(END.trim_end()).unwrap_or(text.len());
            text[..end].trim_start_matches(BEGIN)
        },
        more: Vec::new,
    },
];

const BEGIN: &str = "*** Begin Patch\n";
const END: &str = "*** End Patch\n";

/// All grammars, without missing files of the data folder.
pub fn all() -> Vec<Case> {
    FOUND.iter().filter_map(found).chain(EXAMPLES.iter().map(example)).collect()
}

fn found(found: &Found) -> Option<Case> {
    let text = data::read(&format!("grammars/{}", found.path), &format!("the grammar {}", found.path))?;
    // The vLLM grammar has names that GBNF does not allow.
    let syntax = if found.path.contains("vllm") { Syntax::Ebnf } else { Syntax::Gbnf };
    let grammar = grammar(syntax, text, &found.lark);
    let name = found.path.replace("from-llama.cpp/", "");
    Some(Case::new(Kind::Grammar, &name, grammar, (found.texts)()))
}

fn example(example: &Example) -> Case {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/grammars");
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).expect("a file of the examples");
    let stem = example.name.split('.').next().unwrap_or_default();
    let lines = read(&format!("{stem}.cases.jsonl"));
    let rows: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let texts = |kind: &str| -> Vec<String> {
        rows.iter().filter_map(|row| Some(row[kind].as_str()?.to_owned())).collect()
    };
    let mut valid = texts("accepts");
    let [before, between, behind] = example.around;
    let joined: Vec<&str> = valid.iter().map(|text| (example.part)(text)).collect();
    let joined = format!("{before}{}{behind}", joined.join(between));
    // The sort is stable: texts of equal length keep the order of the file.
    valid.sort_by_key(|text| std::cmp::Reverse(text.len()));
    valid.truncate(LONGEST);
    valid.push(joined);
    valid.extend((example.more)());

    let syntax = example.name.rsplit('.').next().and_then(|ending| ending.parse().ok());
    let syntax = syntax.expect("a file that ends in the name of a syntax");
    let grammar = grammar(syntax, read(example.name), &example.lark);
    let invalid = texts("rejects").into_iter().chain(texts("incomplete"));
    Case {
        invalid: invalid.map(|text| vec![text]).collect(),
        ..Case::new(Kind::Grammar, example.name, grammar, valid)
    }
}

/// A grammar with its Lark conversion.
fn grammar(syntax: Syntax, text: String, as_lark: &AsLark) -> Grammar {
    let lark = match syntax {
        Syntax::Lark => text.clone(),
        _ => {
            let changed = as_lark.changed.iter().fold(text.clone(), |text, [old, new]| {
                assert!(text.contains(old), "a grammar without `{old}`");
                text.replace(old, new)
            });
            lark::from_gbnf(&changed, as_lark.terminals).expect("a grammar with these rules")
        }
    };
    Grammar::ContextFree { syntax, text, lark: Some(lark) }
}

/// The documents from Outlines' tests of its JSON grammar.
fn documents() -> Vec<String> {
    let names = [
        "outlines.generate.samplers.mypy.json.test",
        "simple_fruit.json.test",
        "simple_fruit_no_indent.json.test",
    ];
    let read = |name: &str| {
        let path = format!("grammars/outlines_cfg_samples/tests/cfg_samples/json/{name}");
        data::read(&path, &format!("the JSON of {name}"))
    };
    names.into_iter().filter_map(read).collect()
}

fn values() -> impl Iterator<Item = Value> {
    documents().into_iter().map(|text| serde_json::from_str(&text).expect("JSON"))
}

/// The documents that are objects, with the indentation that the grammar expects.
fn objects() -> Vec<String> {
    values().filter(Value::is_object).map(|value| format!("{value:#}")).collect()
}

/// The documents that are arrays, with the line breaks that the grammar expects.
fn arrays() -> Vec<String> {
    let written = |items: &Vec<Value>| {
        let items: Vec<String> = items.iter().map(|item| format!("{item:#}")).collect();
        format!("[\n{}]", items.join(",\n"))
    };
    values().filter_map(|value| value.as_array().map(written)).collect()
}

/// Twelve lines, each nested one level deeper than the previous one.
fn equations() -> Vec<String> {
    let sides = (1..=12).scan("x_1".to_owned(), |side, line| {
        *side = format!("({side} +{line}) *b{line} -7");
        Some(format!("{side} = ({line} /total)\n"))
    });
    vec![sides.collect()]
}

/// The opening moves of a game.
fn games() -> Vec<String> {
    let moves = "e4 e5 Nf3 Nc6 Bb5 a6 Bxc6 dxc6 O-O f6 d4 exd4 Nxd4 c5 Nb3 Qxd1 Rxd1 Bg4 f3 Be6 Nc3 Bd6 Be3 b6 a4 O-O-O";
    let moves: Vec<&str> = moves.split(' ').collect();
    let lines = moves.chunks(2).zip(1..).map(|(pair, number)| format!("{number}. {}\n", pair.join(" ")));
    vec![lines.collect()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_grammar_has_lark_and_texts() {
        for case in all() {
            let Grammar::ContextFree { lark: Some(lark), .. } = &case.grammar else {
                panic!("{}", case.name)
            };
            assert!(lark.lines().any(|line| line.starts_with("start:")), "{}", case.name);
            assert!(case.valid.iter().all(|texts| texts.len() == 1), "{}", case.name);
        }
    }

    #[test]
    fn examples_are_joined() {
        let patch = EXAMPLES.iter().find(|example| example.name == "apply-patch.lark").unwrap();
        assert_eq!(
            (patch.part)("*** Begin Patch\n*** Delete File: a\n*** End Patch"),
            "*** Delete File: a\n"
        );
        let case = example(patch);
        assert_eq!(case.valid.len(), LONGEST + 1);
        assert_eq!(case.valid[LONGEST][0].matches(BEGIN).count(), 1);
        assert!(!case.invalid.is_empty());
    }
}
