//! Regexes with verdicts that others gave, through the token tables of real tokenizers.
//!
//! Every string of RE2's and of Rust's regex corpora is cut into tokens in up to three ways: by the
//! tokenizer itself where its tokens spell the string, by the longest token at each place, and byte by byte.
//! Each way has to end in the verdict of the corpus on the whole string.

use crate::common::data;

use std::collections::{BTreeMap, HashMap};
use std::time::Instant;

use burn_dfa::{Constraint, Limits, StateId, TokenId, TokenTable, Vocabulary};
use tokenizers::Tokenizer;

use cutter::Cutter;

/// The command line tool cuts texts as well.
#[path = "../../src/bin/burn-dfa/cutter.rs"]
mod cutter;

const CORPORA: [&str; 2] = ["regex/re2_search_fullmatch.json", "regex/rust_regex_fullmatch.json"];

/// A regex with strings and whether each matches as a whole.
struct Case {
    pattern: String,
    verdicts: Vec<(String, bool)>,
}

/// What RE2 has and Rust's syntax has not: any byte, octal numbers, negation within a property.
const OF_RE2: [&str; 6] = [r"\C", r"\141", r"\0", r"\608", r"\p{^", r"\P{^"];

fn cases(corpus: &str) -> Option<Vec<Case>> {
    let rows: Vec<serde_json::Value> = serde_json::from_str(&data::read(corpus)?).unwrap();
    let foreign =
        |row: &&serde_json::Value| row["source"].as_str().is_some_and(|s| data::OF_REGEX_LITE.contains(&s));
    let case = |row: &serde_json::Value| {
        let verdicts = [("accepts", true), ("rejects", false)].into_iter().flat_map(|(key, verdict)| {
            let texts = row[key].as_array().unwrap().iter();
            texts.map(move |text| (text.as_str().unwrap().to_owned(), verdict))
        });
        // The flags of a row that change its language are in the regex already.
        Case { pattern: row["regex"].as_str().unwrap().to_owned(), verdicts: verdicts.collect() }
    };
    Some(rows.iter().filter(|row| !foreign(row)).map(case).collect())
}

/// A tokenizer and the ways to cut a string into its tokens.
struct Ways {
    vocabulary: Vocabulary,
    tokenizer: Tokenizer,
    cutter: Cutter,
}

impl Ways {
    fn new(name: &str, eos: u32) -> Option<Self> {
        let json = data::read(&format!("tokenizers/{name}/tokenizer.json"))?;
        let vocabulary = Vocabulary::from_tokenizer_json(&json).unwrap().with_eos([TokenId(eos)]).unwrap();
        let cutter = Cutter::new(&vocabulary);
        Some(Self { vocabulary, tokenizer: json.parse().unwrap(), cutter })
    }

    /// By the tokenizer, where that spells `text` and nothing else.
    fn encoded(&self, text: &str) -> Option<Vec<TokenId>> {
        let encoding = self.tokenizer.encode(text, false).unwrap();
        let tokens: Vec<_> = encoding.get_ids().iter().copied().map(TokenId).collect();
        let is_text = tokens.iter().all(|&token| self.vocabulary.bytes(token).is_some());
        (is_text && self.vocabulary.decode(&tokens) == text.as_bytes()).then_some(tokens)
    }

    fn of(&self, text: &str) -> [Option<Vec<TokenId>>; 3] {
        let [longest, bytes] = self.cutter.cuts(text);
        [self.encoded(text), longest, bytes]
    }
}

/// Whether `tokens` and then the end are legal.
fn accepts(table: &TokenTable, tokens: &[TokenId], eos: TokenId) -> bool {
    let mut state = table.start();
    for &token in tokens {
        state = table.next(state, token);
    }
    let ends = table.next(state, eos) == StateId::DONE;
    assert_eq!(ends, table.is_accepting(state), "the end is legal exactly in accepting states");
    ends
}

/// Holds every verdict of the corpora against the token tables of one tokenizer.
fn check(name: &str, eos: u32) {
    let Some(ways) = Ways::new(name, eos) else { return };
    for corpus in CORPORA {
        let Some(cases) = cases(corpus) else { continue };
        let clock = Instant::now();
        let mut tables: HashMap<String, Result<Option<TokenTable>, String>> = HashMap::new();
        let mut refused: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        let (mut walks, mut wrong) = ([0; 3], Vec::new());
        for Case { pattern, verdicts } in &cases {
            let table = tables.entry(pattern.clone()).or_insert_with(|| {
                let constraint = Constraint::regex(pattern).map_err(|error| error.to_string())?;
                match TokenTable::compile(&constraint, &ways.vocabulary, &Limits::default()) {
                    Ok(table) => Ok(Some(table)),
                    Err(error) if error.is_unsatisfiable() => Ok(None),
                    Err(error) => Err(error.to_string()),
                }
            });
            let table = match table {
                Ok(table) => table,
                Err(reason) => {
                    // Alike but for the place: `pattern, at byte 4: …`.
                    let reason = reason.rsplit_once("at byte").map_or(&reason[..], |(_, rest)| rest);
                    let reason =
                        reason.trim_start_matches(|c: char| c == ' ' || c == ':' || c.is_ascii_digit());
                    refused.entry(reason.to_owned()).or_default().push(pattern);
                    continue;
                }
            };
            for (text, verdict) in verdicts {
                for (way, tokens) in ways.of(text).iter().enumerate() {
                    let Some(tokens) = tokens else { continue };
                    walks[way] += 1;
                    let accepted = table.as_ref().is_some_and(|table| accepts(table, tokens, TokenId(eos)));
                    if accepted != *verdict {
                        wrong.push(format!("{pattern:?} on {text:?} as {tokens:?}: should be {verdict}"));
                    }
                }
            }
        }
        let texts: usize = cases.iter().map(|case| case.verdicts.len()).sum();
        println!(
            "{name}, {corpus}: {} regexes, {texts} strings, {:.1?}; encoded, longest, bytes: {walks:?}; {} wrong; {} rows refused",
            tables.len(),
            clock.elapsed(),
            wrong.len(),
            refused.values().map(Vec::len).sum::<usize>(),
        );
        for (reason, patterns) in &refused {
            println!("  refused, {} rows such as {:?}: {reason}", patterns.len(), patterns[0]);
            for pattern in patterns {
                assert!(OF_RE2.iter().any(|own| pattern.contains(own)), "{pattern:?} was refused: {reason}");
            }
        }
        assert!(wrong.is_empty(), "{name}, {corpus}:\n{}", wrong.join("\n"));
        assert!(walks.iter().all(|&walks| walks > 0), "{name}, {corpus}: {walks:?}");
    }
}

#[test]
fn smollm2_byte_level() {
    check("smollm2", 2);
}

#[test]
fn gpt2_byte_level() {
    check("gpt2", 50_256);
}

#[test]
fn mistral_sentencepiece() {
    check("mistral_v1", 2);
}
