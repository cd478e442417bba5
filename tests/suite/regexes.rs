//! Regexes with verdicts that others gave, over bytes and through the token tables of real tokenizers.
//!
//! Every string of the sample, of RE2's and of Rust's regex corpora is cut into tokens in up to three ways: by the
//! tokenizer itself where its tokens spell the string, by the longest token at each place, and byte by byte.
//! Each way has to end in the verdict of the corpus on the whole string, and so has the automaton over bytes.

use std::collections::HashMap;
use std::time::Instant;

use burn_dfa::{ByteDfa, Constraint, Limits, StateId, TokenId, TokenTable, Vocabulary};

use crate::common::data::{self, Corpus};
use cutter::Cutter;

/// The command line tool cuts texts as well.
#[path = "../../src/bin/burn-dfa/cutter.rs"]
mod cutter;

/// A regex with strings and whether each matches as a whole.
struct Case {
    pattern: String,
    verdicts: Vec<(String, bool)>,
}

/// What RE2 has and Rust's syntax has not: any byte, octal numbers, negation within a property.
const OF_RE2: [&str; 6] = [r"\C", r"\141", r"\0", r"\608", r"\p{^", r"\P{^"];

fn cases(corpus: &Corpus) -> Vec<Case> {
    let rows: Vec<serde_json::Value> = serde_json::from_str(&corpus.read()).unwrap();
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
    rows.iter().filter(|row| !foreign(row)).map(case).collect()
}

/// A tokenizer and the ways to cut a string into its tokens.
struct Ways {
    vocabulary: Vocabulary,
    tokenizer: tokenizers::Tokenizer,
    cutter: Cutter,
}

impl Ways {
    fn new(tokenizer: &data::Tokenizer) -> Self {
        let vocabulary = tokenizer.vocabulary();
        let cutter = Cutter::new(&vocabulary);
        Self { vocabulary, tokenizer: tokenizer.json().parse().unwrap(), cutter }
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

/// The automaton and the table of a regex; `None` where it matches nothing.
fn compile(pattern: &str, vocabulary: &Vocabulary) -> burn_dfa::Result<Option<(ByteDfa, TokenTable)>> {
    let (constraint, limits) = (Constraint::regex(pattern)?, Limits::default());
    let compiled = constraint.to_byte_dfa(&limits).and_then(|dfa| {
        Ok((dfa.expect("a regex is over bytes"), TokenTable::compile(&constraint, vocabulary, &limits)?))
    });
    match compiled {
        Err(error) if error.is_unsatisfiable() => Ok(None),
        other => other.map(Some),
    }
}

/// Holds every verdict of the corpora against the automata and the token tables of one tokenizer.
fn check(tokenizer: &data::Tokenizer) {
    let (name, ways) = (tokenizer.name, Ways::new(tokenizer));
    for corpus in data::regexes() {
        let (cases, corpus_name) = (cases(&corpus), &corpus.name);
        let clock = Instant::now();
        let mut compiled = HashMap::new();
        let (mut walks, mut wrong, mut refused) = ([0; 3], Vec::new(), Vec::new());
        for Case { pattern, verdicts } in &cases {
            let result = compiled.entry(pattern).or_insert_with(|| compile(pattern, &ways.vocabulary));
            let compiled = match result {
                Ok(compiled) => compiled,
                Err(error) => {
                    assert!(error.is_pattern() && error.offset().is_some(), "{pattern:?}: {error}");
                    refused.push(format!("{pattern:?}: {error}"));
                    let is_foreign = OF_RE2.iter().any(|own| pattern.contains(own));
                    assert!(is_foreign && !corpus.is_sample(), "{pattern:?}: {error}");
                    continue;
                }
            };
            for (text, verdict) in verdicts {
                let by_bytes = compiled.as_ref().is_some_and(|(dfa, _)| dfa.matches(text.as_bytes()));
                if by_bytes != *verdict {
                    wrong.push(format!("{pattern:?} on {text:?}: should be {verdict}"));
                }
                for (way, tokens) in ways.of(text).iter().enumerate() {
                    let Some(tokens) = tokens else { continue };
                    walks[way] += 1;
                    let by_tokens =
                        compiled.as_ref().is_some_and(|(_, table)| accepts(table, tokens, tokenizer.eos));
                    if by_tokens != *verdict {
                        wrong.push(format!("{pattern:?} on {text:?} as {tokens:?}: should be {verdict}"));
                    }
                }
            }
        }
        let texts: usize = cases.iter().map(|case| case.verdicts.len()).sum();
        println!(
            "{name}, {corpus_name}: {} regexes, {texts} strings, {:.1?}; encoded, longest, bytes: {walks:?}; refused: {refused:#?}",
            compiled.len(),
            clock.elapsed(),
        );
        assert!(wrong.is_empty(), "{name}, {corpus_name}:\n{}", wrong.join("\n"));
        assert!(walks.iter().all(|&walks| walks > 0), "{name}, {corpus_name}: {walks:?}");
        // What RE2's corpus has of its own, row by row; a ratchet.
        let own = if corpus_name.contains("re2") { OWN_OF_RE2 } else { 0 };
        assert!(refused.len() <= own, "{name}, {corpus_name}: {} rows refused", refused.len());
    }
}

/// Rows of RE2's corpus in syntax of its own.
const OWN_OF_RE2: usize = 84;

#[test]
fn every_tokenizer_keeps_every_verdict() {
    for tokenizer in data::tokenizers() {
        check(&tokenizer);
    }
}
