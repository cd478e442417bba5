//! Regexes with verdicts from other projects, over bytes and through the compiled constraints of
//! real tokenizers.
//!
//! Every string of the sample and of RE2's and Rust's regex corpora has up to three tokenizations:
//! by the tokenizer, if its tokens spell the string, by the longest token at each position, and
//! byte by byte. Each tokenization and the byte automaton must give the corpus's verdict on the
//! whole string.

use burn_dfa_tokens::{
    ByteDfa, Cancel, CompiledConstraint, Constraint, ErrorKind, Limits, StateId, TokenId, Vocabulary,
    threads, vocabulary::cutter::Cutter,
};
use std::collections::HashMap;
use std::time::{Duration, Instant};

use burn_dfa_testing::data::{self, Corpus};

/// A regex with strings, and whether each matches as a whole.
struct Case {
    pattern: String,
    verdicts: Vec<(String, bool)>,
}

/// RE2 syntax that Rust lacks: any byte, octal numbers, negation within a property.
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
        // The regex already contains the flags of a row that change its language.
        Case { pattern: row["regex"].as_str().unwrap().to_owned(), verdicts: verdicts.collect() }
    };
    rows.iter().filter(|row| !foreign(row)).map(case).collect()
}

/// A tokenizer and the tokenizations of a string.
struct Tokenizations {
    vocabulary: Vocabulary,
    tokenizer: tokenizers::Tokenizer,
    cutter: Cutter,
}

impl Tokenizations {
    fn new(tokenizer: &data::Tokenizer) -> Self {
        let vocabulary = tokenizer.vocabulary();
        let cutter = Cutter::new(&vocabulary);
        Self { vocabulary, tokenizer: tokenizer.json().parse().unwrap(), cutter }
    }

    /// The tokenizer's tokens, if they spell `text`.
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

/// Whether `tokens` followed by the end token are legal.
fn accepts(compiled: &CompiledConstraint, tokens: &[TokenId], eos: TokenId) -> bool {
    let mut state = compiled.start();
    for &token in tokens {
        state = compiled.next(state, token);
    }
    let ends = compiled.next(state, eos) == StateId::DONE;
    assert_eq!(ends, compiled.is_accepting(state), "the end is legal exactly in accepting states");
    ends
}

/// The automaton of a regex; `None` if it matches nothing.
fn automaton(pattern: &str) -> burn_dfa_tokens::Result<Option<ByteDfa>> {
    match Constraint::regex(pattern)?.to_byte_dfa(&Limits::default()) {
        Err(error) if error.kind() == ErrorKind::Unsatisfiable => Ok(None),
        dfa => Ok(Some(dfa?.expect("a regex is over bytes"))),
    }
}

/// The compiled constraint of a regex; `None` if it matches nothing.
fn compile(pattern: &str, vocabulary: &Vocabulary) -> Option<CompiledConstraint> {
    let constraint = Constraint::regex(pattern).unwrap();
    match CompiledConstraint::compile(&constraint, vocabulary, &Limits::default()) {
        Err(error) if error.kind() == ErrorKind::Unsatisfiable => None,
        compiled => Some(compiled.unwrap_or_else(|error| panic!("{pattern:?}: {error}"))),
    }
}

/// Rows of RE2's corpus in syntax of RE2 alone.
const OWN_OF_RE2: usize = 84;

/// Compares every verdict of a corpus with the automata. Returns the rows with regexes that are read.
fn rows_that_are_read(corpus: &Corpus) -> Vec<Case> {
    let corpus_name = &corpus.name;
    let (mut automata, mut wrong, mut refused) = (HashMap::new(), Vec::new(), Vec::new());
    let mut cases = cases(corpus);
    cases.retain(|Case { pattern, verdicts }| {
        let dfa = match automata.entry(pattern.clone()).or_insert_with(|| automaton(pattern)) {
            Ok(dfa) => dfa,
            Err(error) => {
                assert!(
                    error.kind() == ErrorKind::Pattern && error.offset().is_some(),
                    "{pattern:?}: {error}"
                );
                refused.push(format!("{pattern:?}: {error}"));
                let is_foreign = OF_RE2.iter().any(|own| pattern.contains(own));
                assert!(is_foreign && !corpus.is_sample(), "{pattern:?}: {error}");
                return false;
            }
        };
        for (text, verdict) in verdicts {
            if dfa.as_ref().is_some_and(|dfa| dfa.matches(text.as_bytes())) != *verdict {
                wrong.push(format!("{pattern:?} on {text:?}: should be {verdict}"));
            }
        }
        true
    });
    println!("{corpus_name}: {} regexes; refused: {refused:#?}", automata.len());
    assert!(wrong.is_empty(), "{corpus_name}:\n{}", wrong.join("\n"));
    // The number of rows in syntax of RE2 alone may not grow.
    let own = if corpus_name.contains("re2") { OWN_OF_RE2 } else { 0 };
    assert!(refused.len() <= own, "{corpus_name}: {} rows refused", refused.len());
    cases
}

/// Compares every verdict of the corpora with the compiled constraints of one tokenizer.
fn check(tokenizer: &data::Tokenizer, corpora: &[(String, Vec<Case>)]) {
    let (name, tokenizations) = (tokenizer.name, Tokenizations::new(tokenizer));
    for (corpus_name, cases) in corpora {
        let clock = Instant::now();
        let mut compiled = HashMap::new();
        let (mut walks, mut wrong) = ([0; 3], Vec::new());
        for Case { pattern, verdicts } in cases {
            let constraint =
                compiled.entry(pattern).or_insert_with(|| compile(pattern, &tokenizations.vocabulary));
            for (text, verdict) in verdicts {
                for (kind, tokens) in tokenizations.of(text).iter().enumerate() {
                    let Some(tokens) = tokens else { continue };
                    walks[kind] += 1;
                    let by_tokens = constraint
                        .as_ref()
                        .is_some_and(|constraint| accepts(constraint, tokens, tokenizer.eos));
                    if by_tokens != *verdict {
                        wrong.push(format!("{pattern:?} on {text:?} as {tokens:?}: should be {verdict}"));
                    }
                }
            }
        }
        let texts: usize = cases.iter().map(|case| case.verdicts.len()).sum();
        println!(
            "{name}, {corpus_name}: {} regexes, {texts} strings, {:.1?}; encoded, longest, bytes: {walks:?}",
            compiled.len(),
            clock.elapsed(),
        );
        assert!(wrong.is_empty(), "{name}, {corpus_name}:\n{}", wrong.join("\n"));
        assert!(walks.iter().all(|&walks| walks > 0), "{name}, {corpus_name}: {walks:?}");
    }
}

#[test]
fn every_tokenizer_keeps_every_verdict() {
    let corpora = data::regexes().into_iter().map(|corpus| {
        let cases = rows_that_are_read(&corpus);
        (corpus.name, cases)
    });
    let corpora: Vec<(String, Vec<Case>)> = corpora.collect();
    threads::each(&data::tokenizers(), threads::available(), |tokenizer| check(tokenizer, &corpora));
}

#[test]
fn a_canceled_compilation_ends() {
    let cancel = Cancel::default();
    let limits = Limits::new().with_cancel(&cancel).with_time(Duration::from_secs(60));
    // Without the flag, this ends after a minute or at a million states.
    let slow = Constraint::regex("(a|b)*a(a|b){60}").expect("it is a regex");
    let other = cancel.clone();
    let ends = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(30));
        other.cancel();
    });
    let error = slow.to_byte_dfa(&Limits { states: usize::MAX, bytes: usize::MAX, ..limits }).unwrap_err();
    assert!(
        error.kind() == ErrorKind::Canceled && !error.kind().is_constraint() && error.tokens_done().is_none(),
        "{error}"
    );
    ends.join().expect("it ends");
}
