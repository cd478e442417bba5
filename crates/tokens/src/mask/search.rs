//! The mask search: the legal tokens of one row on the CPU.
//!
//! A search first asks the cache, then a position near this one ([`delta`]), then the token slices
//! ([`token_slices`](crate::token_slices)), and reads the remaining tokens from tries.
//!
//! Example: a position inside a JSON string, with the slice of the example in that module:
//!
//! | token | decided by |
//! |---|---|
//! | `cat`, ` cat` | the slice: first `c`, rest `at` within the slice, so legal |
//! | a line feed | the slice: its first character is dead, so illegal |
//! | `a"`, `a",` | the trie of tokens with `"` in their rests (`beyond`) |
//! | `a\n` (`a`, a backslash, `n`) | the trie of tokens with `\` in their rests (`beyond`) |
//! | `"`, `\n` | the trie of all tokens (`begun`): few tokens have such a first character |
//! | a token that begins within a character | the trie of such tokens (`cut`) |

use std::ops::Range;
use std::sync::Arc;

use super::cache::{MaskCache, PositionKey, key_of};
use super::simd::vectorized;
use super::{Thresholds, TokenMask};
use crate::{BudgetInterval, CompiledConstraint, RowPosition, StateId, TokenReading, TokenSlices, Unread};
use burn_dfa_vocabulary::{LONGEST, Spelled, TokenBits, TokenId, TokenSet, Vocabulary};

/// A position with the caches and thresholds of its masker.
#[derive(Clone, Copy)]
pub(super) struct Row<'a> {
    pub(super) constraint: &'a CompiledConstraint,
    pub(super) position: &'a RowPosition,
    pub(super) cache: &'a MaskCache,
    pub(super) thresholds: &'a Thresholds,
}

impl Row<'_> {
    /// The budget after the next token. A budget of 0 tokens counts as 1: under a constraint, only
    /// the end of sequence is legal in both.
    fn left(&self) -> u32 {
        self.position.remaining.max(1) - 1
    }
}

/// The mask of a row, and the budgets after the next token that have the same mask.
pub(super) fn legal(at: &Row<'_>) -> (Arc<TokenMask>, Range<u32>) {
    let (key, left) = (key_of(at.position), at.left());
    let found = || match delta(at, left) {
        Some(found) => keep(at, &key, found),
        None => looked_up(at, &key, left),
    };
    at.cache.find(&key, left).unwrap_or_else(found)
}

/// The same without the cache and without other positions.
fn looked_up(at: &Row<'_>, key: &PositionKey, left: u32) -> (Arc<TokenMask>, Range<u32>) {
    let (mut found, mut left) = (Found::default(), BudgetInterval::new(left));
    found.look_up(at, &mut left);
    keep(at, key, (found.legal(at), left.alike()))
}

/// Caches a mask.
fn keep(at: &Row<'_>, key: &PositionKey, found: (TokenMask, Range<u32>)) -> (Arc<TokenMask>, Range<u32>) {
    let (legal, alike) = (Arc::new(found.0), found.1);
    at.cache.keep(Arc::clone(key), alike.clone(), Arc::clone(&legal));
    (legal, alike)
}

/// The mask as a difference from the mask of a near position, with the budgets that have the same
/// mask; `None` if no position is near, the difference is long or takes long to read, or the other
/// mask is a short list or a difference itself.
fn delta(at: &Row<'_>, tokens: u32) -> Option<(TokenMask, Range<u32>)> {
    let parts = at.constraint.parts();
    let TokenReading::Bytes { vocabulary, .. } = &parts.reading else { return None };
    let mut left = BudgetInterval::new(tokens);
    let self_loop = parts.near_state(at.position, &mut left, at.thresholds)?;
    if [at.position.state, self_loop.state].into_iter().any(|state| parts.shortest(state) > 1) {
        return None;
    }
    let mut position = at.position.clone();
    position.state = self_loop.state;
    let there = Row { position: &position, ..*at };
    if classes(at, &mut left) != classes(&there, &mut left) {
        return None;
    }
    let mut found = Found::default();
    let is_read = found.read(at, &mut left, [Unread::all(vocabulary.trie()).differing_from(self_loop)]);
    let Found { text: mut added, mut removed, .. } = found;
    if !is_read || added.len() + removed.len() > TokenSet::longest_list(at.constraint.vocabulary_len()) {
        return None;
    }
    // Two positions may be near one another: the other mask is found without `delta`.
    let key = key_of(there.position);
    let cached = at.cache.find(&key, tokens);
    let (base, alike) = cached.unwrap_or_else(|| looked_up(&there, &key, tokens));
    if matches!(&*base, TokenMask::Alone(TokenSet::Few(_)) | TokenMask::MaskDelta { .. }) {
        return None;
    }
    added.shrink_to_fit();
    removed.shrink_to_fit();
    let own = left.alike();
    let alike = own.start.max(alike.start)..own.end.min(alike.end);
    Some((TokenMask::MaskDelta { base, added, removed }, alike))
}

/// The legal tokens of a row: whole classes, tokens of slices, and tokens that were read.
#[derive(Default)]
struct Found {
    /// `[classes]`: whether the class is legal.
    classes: Vec<bool>,
    /// The text tokens of slices, if there are slices.
    known: Option<Known>,
    /// Tokens of slices that are decided otherwise: they are read, or are not read as text.
    removed: Vec<u32>,
    /// The legal text tokens that were read, some of them more than once.
    text: Vec<u32>,
}

/// A set shared by the vocabulary, or bits of this search alone.
type Known = Result<Arc<TokenSet>, TokenBits>;

impl Found {
    fn look_up(&mut self, at: &Row<'_>, left: &mut BudgetInterval) {
        let (parts, state) = (at.constraint.parts(), at.position.state);
        self.classes = classes(at, left);
        let TokenReading::Bytes { vocabulary, special, .. } = &parts.reading else {
            return;
        };
        if state.0 < StateId::RESERVED {
            return;
        }
        let trie = vocabulary.trie();
        let shortest = parts.shortest(state);
        if shortest > 1 {
            self.read(at, left, [Unread::all(trie)]);
            let fits =
                |&token: &u32| vocabulary.bytes(TokenId(token)).is_some_and(|bytes| bytes.len() >= shortest);
            return self.text.retain(fits);
        }
        let Some(slices) = parts.token_slices(at.position, left, at.thresholds) else {
            self.read(at, left, [Unread::all(trie)]);
            return;
        };
        let characters = vocabulary.characters();
        self.known = Some(known_by(vocabulary, &slices, at.thresholds.max_shared));
        self.removed = special.tokens().iter().map(|(token, _)| token.0).collect();
        let begun = Unread::begun(trie, slices.read);
        let exceptions = slices.slices.iter().filter_map(|slice| Some((slice, slice.self_loop?)));
        let exceptions = exceptions.flat_map(|(slice, self_loop)| {
            Unread::begun(trie, slice.exceptions).map(|all| all.differing_from(self_loop))
        });
        let beyond = slices.slices.iter().flat_map(|slice| {
            slice.open.bytes().flat_map(move |byte| {
                let begun = Unread::begun(characters.with(byte, vocabulary), slice.spelled.first);
                begun.map(|all| all.beyond(slice.spelled.within, byte))
            })
        });
        // Tokens with more than `LONGEST` characters in their rests are decided one by one.
        let longer = || slices.slices.iter().filter(|slice| slice.spelled.max_rest == LONGEST);
        for (slice, reach) in longer().filter_map(|slice| Some((slice, slice.reach?))) {
            let Spelled { first, within, .. } = slice.spelled;
            let long = characters.long_up_to(reach, first, within);
            self.text.extend(long.filter(|&token| special.column(token).is_none()).map(|token| token.0));
        }
        let long = longer().filter(|slice| slice.reach.is_none());
        let long = long.flat_map(|slice| Unread::begun(characters.long(), slice.spelled.first));
        let cut = [Unread::all(characters.cut())];
        self.read(at, left, cut.into_iter().chain(long).chain(begun).chain(exceptions).chain(beyond));
    }

    /// Reads tokens from tries; returns whether all were read.
    fn read<'a>(
        &mut self,
        at: &Row<'_>,
        left: &mut BudgetInterval,
        unread: impl IntoIterator<Item = Unread<'a>>,
    ) -> bool {
        let (text, removed) = (&mut self.text, &mut self.removed);
        let found = |tokens: &[TokenId], state| {
            let found = if state == StateId::DEAD { &mut *removed } else { &mut *text };
            found.extend(tokens.iter().map(|id| id.0));
        };
        let parts = at.constraint.parts();
        parts.each_text_with(at.thresholds, at.position, left, unread, found)
    }

    /// The mask.
    fn legal(self, at: &Row<'_>) -> TokenMask {
        let Self { classes, known, removed, mut text } = self;
        let all = at.constraint.vocabulary_len();
        let few = TokenSet::longest_list(all);
        let parts = at.constraint.parts();
        let classes_that = |taken: bool| {
            classes.iter().enumerate().filter(move |&(_, &legal)| legal == taken).map(|(class, _)| class)
        };
        let of_classes = |taken: bool| classes_that(taken).flat_map(|class| parts.tokens_of(class)).copied();
        if let Some(known) = known {
            text.extend(of_classes(true));
            return with(known, text, removed, all);
        }
        // Without a constraint, few tokens are illegal.
        if at.position.state == StateId::UNCONSTRAINED {
            let missing: Vec<u32> = of_classes(false).collect();
            if missing.len() <= few {
                return TokenMask::Alone(TokenSet::Most(missing));
            }
        }
        let count = text.len() + classes_that(true).map(|class| parts.tokens_of(class).len()).sum::<usize>();
        if count <= few {
            text.extend(of_classes(true));
            return TokenMask::Alone(TokenSet::Few(text));
        }
        let bits = vectorized(
            #[inline(always)]
            || {
                let mut bits = TokenBits::none(all);
                for class in classes_that(true) {
                    parts.add_tokens_of(class, &mut bits);
                }
                text.iter().for_each(|&token| bits.set(token));
                bits
            },
        );
        alone(bits)
    }
}

/// `[classes]`: whether each class is legal. The classes of a byte-level constraint are the
/// reserved columns, text, and the special tokens.
fn classes(at: &Row<'_>, left: &mut BudgetInterval) -> Vec<bool> {
    let (parts, state) = (at.constraint.parts(), at.position.state);
    // The distances of the next states include the calls and returns after these tokens.
    let mut can_end = |next: u32| parts.reach(StateId(next), &at.position.frames, left);
    let TokenReading::Bytes { special, .. } = &parts.reading else {
        return at.constraint.row(state).iter().map(|&next| can_end(next)).collect();
    };
    let mut classes = Vec::with_capacity(CompiledConstraint::RESERVED_COLUMNS + 1 + special.columns());
    classes.extend(parts.next.reserved(state).map(&mut can_end));
    classes.push(state == StateId::UNCONSTRAINED);
    classes.extend(special.of(&parts.next, state).iter().map(|&next| can_end(next)));
    classes
}

/// The tokens of the slices. The vocabulary shares the set of at most `max_shared` slices.
fn known_by(vocabulary: &Vocabulary, slices: &TokenSlices, max_shared: usize) -> Known {
    let characters = vocabulary.characters();
    let spelled: Vec<Spelled> = slices.slices.iter().map(|slice| slice.spelled).collect();
    let find = || {
        let mut bits = TokenBits::none(vocabulary.len());
        vectorized(
            #[inline(always)]
            || spelled.iter().for_each(|spelled| characters.add(&mut bits, spelled)),
        );
        bits
    };
    if spelled.len() > max_shared { Err(find()) } else { characters.spelled(&spelled, find) }
}

/// The mask of `known` without `removed` and with `added`; a token in both is legal.
fn with(known: Known, mut added: Vec<u32>, mut removed: Vec<u32>, all: usize) -> TokenMask {
    let longest = TokenSet::longest_list(all);
    let mut bits = match known {
        Ok(set) => match &*set {
            TokenSet::Few(few) if few.len() + added.len() <= longest && removed.is_empty() => {
                added.extend(few);
                added.shrink_to_fit();
                return TokenMask::Alone(TokenSet::Few(added));
            }
            TokenSet::Most(_) | TokenSet::Bits(..) if added.len() + removed.len() <= longest => {
                added.shrink_to_fit();
                removed.shrink_to_fit();
                return TokenMask::SetDelta { base: set, added, removed };
            }
            set => set.to_bits(all).into_owned(),
        },
        Err(bits) => bits,
    };
    removed.iter().for_each(|&token| bits.clear(token));
    added.iter().for_each(|&token| bits.set(token));
    alone(bits)
}

/// The mask of the set bits.
fn alone(bits: TokenBits) -> TokenMask {
    vectorized(
        #[inline(always)]
        || {
            let count = bits.count();
            TokenMask::Alone(TokenSet::of(bits, count))
        },
    )
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::BTreeSet;

    use super::super::reference;
    use super::*;
    use crate::{Constraint, ForcedText, Limits, Masker, Vocabulary};
    use burn_dfa_common::threads;
    use burn_dfa_constraints::{JsonOptions, StructuralTag, Syntax, Whitespace};
    use rand::{Rng, SeedableRng, rngs::StdRng};
    use serde_json::{Value, json};

    fn tokens(legal: &TokenMask, all: usize) -> Vec<u32> {
        legal.to_bits(all).ones().collect()
    }

    /// Cached masks hold for their range of budgets only.
    #[test]
    fn cached_masks_equal_new_masks() {
        let pairs = (b' '..=b'~').flat_map(|a| {
            [b"ab", b"1)", b"(a", b"))", b"b)", b"((", b"1b", b"aa"].map(|rest| [&[a][..], rest].concat())
        });
        let bytes = (0..=u8::MAX).map(|byte| vec![byte]);
        let words = bytes.chain(pairs).map(Some).chain([None]);
        let vocabulary = Vocabulary::from_bytes(words).unwrap();
        let end = TokenId(vocabulary.len() as u32 - 1);
        let vocabulary = vocabulary.with_eos([end]).unwrap();
        let limits = Limits { frames: 4, ..Limits::default() };
        let nested = r#"root ::= [ -'*-~]* | "(" root ")" [a-z]{3,9}"#;
        let counted =
            Constraint::json_schema(serde_json::json!({"type": "string", "maxLength": 700})).unwrap();
        let (nested, text) = (
            Constraint::grammar(Syntax::Gbnf, nested).unwrap(),
            Constraint::regex("([^)]|[)]{3})*").unwrap(),
        );
        let constraints = [(&nested, "((a1 +)abc)b"), (&counted, "\"a(b)\""), (&text, "a)))b))")].map(
            |(constraint, text)| {
                (CompiledConstraint::compile_byte_level(constraint, &vocabulary, &limits).unwrap(), text)
            },
        );
        let mut met = [0; 2];
        for (compiled, text) in &constraints {
            let masker = Masker::new(compiled);
            let mut position = RowPosition::unlimited(compiled.start());
            for byte in text.bytes() {
                let budgets = (0..2).flat_map(|_| (1..40).map(|at| at * 17 % 40)).chain([720, 690, 1 << 20]);
                for budget in budgets {
                    let position = RowPosition { remaining: budget, ..position.clone() };
                    let cached = masker.cache.find(&key_of(&position), budget.max(1) - 1).is_some();
                    met[usize::from(cached)] += 1;
                    let mut found = tokens(&masker.legal(&position).0, vocabulary.len());
                    found.sort_unstable();
                    assert_eq!(
                        found,
                        reference::tokens(compiled, &vocabulary, &position),
                        "{text:?} at {:?}, budget {budget}, cached: {cached}",
                        byte as char
                    );
                }
                position = compiled.after(&position, TokenId(byte.into()));
            }
        }
        assert!(met.iter().all(|&met| met > 50), "{met:?}");
    }

    /// Bytes, words with and without a space and with other characters after them, long tokens of
    /// one character, and parts of characters; enough of each kind that no state reads all tokens.
    pub(in crate::mask) fn words() -> Vocabulary {
        const LETTERS: &str = "abcdefghijklmnopqrstuvwxyz";
        let mut rng = StdRng::seed_from_u64(11);
        let mut pick = |from: &str, length: usize| -> String {
            let characters: Vec<char> = from.chars().collect();
            (0..length).map(|_| characters[rng.random_range(0..characters.len())]).collect()
        };
        let mut words = BTreeSet::new();
        // Few tokens have a quotation mark or a backslash, as in the vocabularies of models.
        let kinds = [LETTERS, "ABCDEFxyz0123456789", "éüßЖ漢字🙂𝒳\u{85}\u{3000}", "ab \n\t\"\\"];
        for (kind, count) in kinds.into_iter().zip([700, 700, 700, 40]) {
            for length in (1..9).cycle().take(count) {
                words.extend([pick(kind, length), format!(" {}", pick(kind, length))]);
            }
        }
        for other in
            ["\"", "\",", "\\", "-", "/", ".", ", ", "<", "<f", "(", ")", "\n", "@", "_", "7", "é", "  "]
        {
            for length in (0..6).cycle().take(60) {
                let word = pick(LETTERS, length);
                words.extend([
                    format!("{word}{other}"),
                    format!(" {word}{other}"),
                    format!("{word}{other}{word}"),
                ]);
            }
        }
        words.extend((2..70).chain([127, 128, 129, 130, 200]).map(|length| " ".repeat(length)));
        words.extend((2..140).map(|length| "a".repeat(length)));
        words.extend(["@(", "@(a", "@(ab", "@(.", "@x", "@xa", "@a"].map(str::to_owned));
        words.extend(["q-", " q-", "q-ab", " q-ab", "qa-b", "b\",", "b\"ab"].map(str::to_owned));
        let parts =
            [&b"ab\xc3"[..], b"ab\xe6", b"\xa9ab", b" \xe6\xbc", b"\"\xf0\x9f", b"a\xff"].map(<[u8]>::to_vec);
        let words = words.into_iter().map(String::into_bytes).filter(|word| word.len() > 1);
        let bytes = (0..=u8::MAX).map(|byte| vec![byte]);
        let words: Vec<_> = bytes.chain(words).chain(parts).map(Some).chain([None]).collect();
        let end = TokenId(words.len() as u32 - 1);
        Vocabulary::from_bytes(words).unwrap().with_eos([end]).unwrap()
    }

    /// Constraints with different token slices, each with the beginning of a legal text.
    pub(in crate::mask) fn cases() -> Vec<(Constraint, &'static str)> {
        let compact = JsonOptions::new().with_whitespace(Whitespace::Compact);
        let schema = |schema| Constraint::json_schema_with(schema, &compact).unwrap();
        let string = |key: &str, value: Value| schema(json!({"type": "string", key: value}));
        let regex = |pattern: &str| Constraint::regex(pattern).unwrap();
        let gbnf = |text: &str| Constraint::grammar(Syntax::Gbnf, text).unwrap();
        let call = json!({"type": "json_schema", "json_schema": {"type": "string"}});
        let call = json!({"begin": "<f=a>", "content": call, "end": "</f>"});
        let tag = json!({"type": "triggered_tags", "triggers": ["<f"], "tags": [call], "excludes": ["stop"]});
        let tag = StructuralTag::try_from(&json!({"type": "structural_tag", "format": tag})).unwrap();
        let nested = r#"root ::= "(" ( [a-z0-9]{20} | root )* ")""#;
        let names = r#"root ::= ws (name | number | "\"" [^"\\]* "\"") (ws [-+*/] root)? "\n"
name ::= [a-zA-Z_] [a-zA-Z0-9_]*
number ::= [0-9]+ ("." [0-9]+)?
ws ::= " "*"#;
        let object =
            json!({"type": "object", "properties": {"name": {"type": "string"}, "nap": {"type": "integer"}}});
        let tree =
            json!({"type": "object", "additionalProperties": {"$ref": "#"}, "properties": {"nab": {}}});
        let nested_names = json!({"type": "object", "properties": {
            "name": {"type": "string"}, "child": {"$ref": "#"}, "charm": {"type": "integer"}}});
        let counted = json!({"type": "object", "required": ["a", "b"], "properties": {
            "a": {"type": "string", "maxLength": 70}, "b": {"type": "string", "maxLength": 140}}});
        let texts = concat!(
            "{\"a\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\",\"b\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
            "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
        );
        let long = "\"aaaaaaaaaaaaaaaa bbbbbbbbbbbbbbbé bbbbbbbbbb ccccccccc漢ccccccc dd";
        vec![
            (schema(json!({"type": "string"})), "\"ab \\\\ é漢🙂 c"),
            (string("maxLength", json!(300)), "\"abc é漢 dddddddddddddddddddddddddddddddddddd🙂 x"),
            (schema(json!({"type": "string", "minLength": 40, "maxLength": 80})), long),
            // The legal tokens after a quotation mark depend on the number of characters before it,
            // up to four.
            (string("minLength", json!(4)), "\"ab c\\n d"),
            (string("pattern", json!("^[A-Z][a-z]+( [A-Z][a-z]+)*$")), "\"Ab Cd Efg"),
            (string("pattern", json!("^[0-9A-F]{8}-[0-9A-F]{4}$")), "\"0123ABCD-01"),
            (string("pattern", json!("^[a-z0-9_-]{1,63}$")), "\"ab-c_012-abcdefghijklmnopqrstuvwxyz"),
            (
                schema(json!({"type": "string", "maxLength": 300, "pattern": r"^(?:\S+\s+){0,29}\S+$"})),
                "\"ab c\u{3000}é ddd ",
            ),
            (string("format", json!("email")), "\"ab.c@xyz.ab"),
            (schema(object), "{\"name\":\"ab\",\"nap\":1,\"nax\":{\"na\":[1,\"b"),
            (schema(tree), "{\"nab\":1,\"b\":{\"nab\":[2],\"na\":{}}}"),
            (
                schema(nested_names),
                "{\"name\":\"a\",\"child\":{\"name\":\"b\",\"chi\":1,\"nam\":2},\"cha\":3",
            ),
            (regex("[^,]*,(ab|a[^b]*b)"), "ab é x\n,a漢b"),
            (
                regex("(?s).{3,90}"),
                "ab é漢 <f\n\"\\ 0123456789 abcdefghijklmnop 0123456789 abcdefghijklmnop 0123456789",
            ),
            // Dead and live non-ASCII characters with the same first byte.
            (regex(r"[^\s@]+@?[^\s@]*"), "ab漢é@x🙂漢"),
            (regex(r"[^\s]{1,70}"), "ab漢é@x🙂漢"),
            (regex(r"([a-z]{2})*-[^\x00-\x1f]{8}\n?"), "abcdef-ab é漢"),
            // Tokens with equal characters: some end within an illegal character.
            (regex("[a-z](?s:.)*"), "ab"),
            // Few tokens begin with a character that others may follow.
            (regex("(q-?|[a-pr-z ])[a-z]*"), "q-ab"),
            // One character may not follow another one; all others may.
            (regex("(q([a-tv-z][a-z]*)?|[a-pr-z][a-z]*)"), "qa"),
            // A quotation mark leads to another state after one name than after all others.
            (regex("([ac-z][a-z]*|b[a-z]+)\",|b\"[a-z]*"), "b\"a"),
            // After one character another one makes a call, or the end is far; after all others it
            // is an ordinary character.
            (gbnf("root ::= item* \".....\"\nitem ::= [a-z(] | \"@\" ([a-z] | \"(\" root)"), "ab@(c@a"),
            (regex("([a-z]|@[a-wyz]|@x-{5})*"), "ab@ab"),
            // The live characters change from character to character, in ASCII and beyond.
            (
                regex("[^漢\"]{5}[^漣\"]{5}([[:ascii:]--[\"]]{4}|[^[:ascii:]]{6})[^b\"]{40}"),
                "abcdé漢g漢éa0123ac漢éx",
            ),
            // The distance to the end changes from character to character.
            (regex("([ -~]{2})*"), "ab c, and so on"),
            // Counted blocks that return to different states.
            (schema(counted), texts),
            (gbnf(nested), "((0123456789abcdefghij(0123456789abcdefghij))0123"),
            (gbnf(names), "  ab_1 + 12 * \"é\" / x"),
            (Constraint::structural_tag(&tag).unwrap(), "ab < <g sto\n é<f=a>\"b c\"</f> b"),
        ]
    }

    /// Neither position is looked up from the other without end.
    #[test]
    fn two_positions_may_be_near_one_another() {
        let bytes = (0..=u8::MAX).map(|byte| vec![byte]);
        let first = (b'a'..=b'z').filter(|byte| !b"gm".contains(byte)).chain(b'A'..=b'R');
        let words = first
            .flat_map(|a| (0..676u32).map(move |at| vec![a, b'A' + (at / 26) as u8, b'a' + (at % 26) as u8]));
        let words: Vec<_> = bytes.chain(words).map(Some).chain([None]).collect();
        let end = TokenId(words.len() as u32 - 1);
        let vocabulary = Vocabulary::from_bytes(words).unwrap().with_eos([end]).unwrap();
        let text = "([A-Z]|[a-z][a-fh-ln-z]*([A-Z]|[gm][0-9]))*([a-z][a-fh-ln-z]*)?";
        let constraint = CompiledConstraint::compile_byte_level(
            &Constraint::regex(text).unwrap(),
            &vocabulary,
            &Limits::default(),
        )
        .unwrap();
        let masker = Masker::new(&constraint);
        let start = RowPosition::unlimited(constraint.start());
        let positions = [start.clone(), constraint.after(&start, TokenId(b'a'.into()))];
        let near = |at: &RowPosition| {
            constraint
                .parts()
                .near_state(at, &mut BudgetInterval::new(100), &Thresholds::default())
                .unwrap()
                .state
        };
        assert_eq!(positions.each_ref().map(near), [positions[1].state, positions[0].state]);
        for position in positions {
            let mut found = tokens(&masker.legal(&position).0, vocabulary.len());
            found.sort_unstable();
            assert_eq!(found, reference::tokens(&constraint, &vocabulary, &position));
        }
    }

    /// How masks were found: by slices, without slices, by slices minus some tokens, and as the
    /// difference from the mask of a near position.
    #[derive(Clone, Copy, Debug, Default)]
    struct Counts {
        by_slices: usize,
        read: usize,
        with_less: usize,
        near: usize,
    }

    impl Counts {
        fn plus(self, other: Self) -> Self {
            Self {
                by_slices: self.by_slices + other.by_slices,
                read: self.read + other.read,
                with_less: self.with_less + other.with_less,
                near: self.near + other.near,
            }
        }
    }

    /// Compares the masks before each byte of a text with the reference search.
    fn compare(vocabulary: &Vocabulary, constraint: &Constraint, text: &str, limits: &Limits) -> Counts {
        let ids = || (0..vocabulary.len() as u32).map(TokenId);
        let frames = limits.frames;
        let mut counts = Counts::default();
        // It has the states of `compiled`, and every byte is legal.
        let any = limits.clone().with_forced_text(ForcedText::AnyToken);
        let Ok(followed) = CompiledConstraint::compile_byte_level(constraint, vocabulary, &any) else {
            return counts;
        };
        let Ok(compiled) = CompiledConstraint::compile_byte_level(constraint, vocabulary, limits) else {
            return counts;
        };
        let masker = Masker::new(&compiled);
        let mut position = RowPosition::unlimited(compiled.start());
        for (at, byte) in std::iter::once(None).chain(text.bytes().map(Some)).enumerate() {
            position = byte.map_or(position.clone(), |byte| followed.after(&position, TokenId(byte.into())));
            if frames == 64 {
                assert!(compiled.can_end(&position), "{text:?}, byte {at}: {constraint:?}");
            }
            let with = |remaining| RowPosition { remaining, ..position.clone() };
            let Some(least) = (1..1000).find(|&remaining| compiled.can_end(&with(remaining))) else {
                break;
            };
            let budgets = [RowPosition::UNLIMITED, least, least + 1, least + 4, least + 60];
            let expected = reference::tokens_within(&compiled, vocabulary, &position, budgets);
            for (remaining, expected) in budgets.into_iter().zip(expected) {
                let position = with(remaining);
                let row = masker.row(&position);
                let (mut found, mut left) = (Found::default(), BudgetInterval::new(remaining - 1));
                found.look_up(&row, &mut left);
                *(if found.known.is_some() { &mut counts.by_slices } else { &mut counts.read }) += 1;
                let legal = Arc::new(found.legal(&row));
                counts.with_less += usize::from(
                    matches!(&*legal, TokenMask::SetDelta { removed, .. } if !removed.is_empty()),
                );
                // The cache has masks of earlier positions and of other budgets.
                let (cached, _) = masker.legal(&position);
                counts.near += usize::from(matches!(&*cached, TokenMask::MaskDelta { .. }));
                let mut masks = vec![legal];
                masks.extend(Some(cached).filter(|cached| *cached != masks[0]));
                for legal in masks {
                    let mut masked = vec![1.0f32; vocabulary.len()];
                    masker.apply(&legal, &mut masked);
                    let masked = masked.iter().enumerate().filter(|(_, logit)| logit.is_finite());
                    let mut found = tokens(&legal, vocabulary.len());
                    found.sort_unstable();
                    assert!(masked.map(|(id, _)| id as u32).eq(found.iter().copied()), "{legal:?}");
                    let are_in = |tokens: &[u32], id: u32| tokens.binary_search(&id).is_ok();
                    let wrong = ids().filter(|id| are_in(&found, id.0) != are_in(&expected, id.0));
                    let wrong = if found == expected { Vec::new() } else { wrong.take(4).collect() };
                    let texts: Vec<_> =
                        wrong.iter().map(|&id| (are_in(&found, id.0), vocabulary.bytes(id))).collect();
                    assert!(
                        wrong.is_empty(),
                        "{text:?}, byte {at}, {remaining} left, {frames} frames: {texts:?} of {constraint:?}"
                    );
                }
            }
        }
        counts
    }

    /// Masks equal the result of the reference search, with and without a budget.
    #[test]
    fn masks_equal_the_reference_search() {
        let vocabulary = words();
        let cases = cases();
        let settings = [64, 3, 0].into_iter().flat_map(|frames| {
            [ForcedText::AnyToken, ForcedText::Longest]
                .map(|forced| Limits::new().with_frames(frames).with_forced_text(forced))
        });
        let all: Vec<_> =
            cases.iter().flat_map(|case| settings.clone().map(move |limits| (case, limits))).collect();
        let counts = threads::each(&all, threads::available(), |((constraint, text), limits)| {
            compare(&vocabulary, constraint, text, limits)
        });
        let counts = counts.into_iter().fold(Counts::default(), Counts::plus);
        assert!(counts.by_slices > 1000 && counts.read > 500, "{counts:?}");
        assert!(counts.with_less > 10, "{counts:?}");
        assert!(counts.near > 300, "{counts:?}");
    }
}
