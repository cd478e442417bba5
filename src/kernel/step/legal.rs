//! The tokens that may follow in a row, on the CPU.

use std::ops::Range;
use std::sync::Arc;

use super::vectorized::vectorized;
use crate::table::{CharacterRun, CharacterRuns, Left, StateId, TokenReading, TokenTable, Unread};
use crate::tensor::{HostRow, Legal, Place, place};
use crate::vocabulary::{CharacterSet, LONGEST, Spelled, TokenBits, TokenId, TokenSet, Vocabulary};

/// What took so much work to find, counted in tokens and nodes of the trie, is kept.
const WORTH_KEEPING: usize = 8;

/// So many tokens that are taken out of a list are looked for one after the other.
const FEW_LESS: usize = 16;

/// Two places are near where no more nodes of the trie lead elsewhere from one than from the other.
const MOST_BESIDE: usize = 128;

/// The tokens that may follow in a row, and with how many tokens left behind the next one they are the same.
pub(super) fn legal(at: &HostRow<'_>) -> (Arc<Legal>, Range<u32>) {
    let (place, left) = (place(&at.position), at.left());
    let found = || match near(at, left) {
        Some(found) => keep(at, &place, found),
        None => looked_up(at, &place, left),
    };
    at.kept.find(&place, left).unwrap_or_else(found)
}

/// The same where it is not kept, without a look at other places.
fn looked_up(at: &HostRow<'_>, place: &Place, left: u32) -> (Arc<Legal>, Range<u32>) {
    let (mut found, mut left) = (Found::default(), Left::new(left));
    found.look_up(at, &mut left);
    let (legal, work) = found.legal(at);
    keep(at, place, (legal, work, left.alike()))
}

/// Keeps what was found at a place, if it took so much work.
fn keep(at: &HostRow<'_>, place: &Place, found: (Legal, usize, Range<u32>)) -> (Arc<Legal>, Range<u32>) {
    let (legal, work, alike) = found;
    let legal = Arc::new(legal);
    if work >= WORTH_KEEPING {
        at.kept.keep(Arc::clone(place), alike.clone(), Arc::clone(&legal));
    }
    (legal, alike)
}

/// The tokens that may follow, what it took to find them, and with how many tokens left they are the same, from what is known of a
/// place that is near, if there is one.
fn near(at: &HostRow<'_>, tokens: u32) -> Option<(Legal, usize, Range<u32>)> {
    let parts = at.table.parts();
    let TokenReading::Bytes { vocabulary, .. } = &parts.reading else { return None };
    let mut left = Left::new(tokens);
    let near = parts.near(&at.position, &mut left)?;
    let mut there = at.clone();
    there.position.state = near.stays;
    if classes(at, &mut left) != classes(&there, &mut left) {
        return None;
    }
    let (mut more, mut less) = (Vec::new(), Vec::new());
    let unread = [Unread::all(vocabulary.trie()).beside(near)];
    let work = parts.each_text_up_to(MOST_BESIDE, &at.position, &mut left, unread, |tokens, state| {
        let found = if state == StateId::DEAD { &mut less } else { &mut more };
        found.extend(tokens.iter().map(|id| id.0));
    });
    if work > MOST_BESIDE || more.len() + less.len() > TokenSet::longest_list(at.table.vocabulary_len()) {
        return None;
    }
    // Places may be near one another.
    let place = place(&there.position);
    let kept = at.kept.find(&place, tokens);
    let (place, alike) = kept.unwrap_or_else(|| looked_up(&there, &place, tokens));
    if matches!(&*place, Legal::Alone(TokenSet::Few(_)) | Legal::Near { .. }) {
        return None;
    }
    more.shrink_to_fit();
    less.shrink_to_fit();
    let own = left.alike();
    let alike = own.start.max(alike.start)..own.end.min(alike.end);
    Some((Legal::Near { place, more, less }, WORTH_KEEPING + work, alike))
}

/// The tokens that may follow in a row: all of some classes, those that are known by their characters, and those that were read.
#[derive(Default)]
struct Found {
    /// Whether each class is taken.
    classes: Vec<bool>,
    /// Tokens of text that are known by their characters, if any are.
    known: Option<Known>,
    /// Those of them that are not: they are read to be known, or not as text.
    less: Vec<u32>,
    /// The tokens of text that were read and may follow, some of them more than once.
    text: Vec<u32>,
    /// What it took to find them.
    work: usize,
}

/// Tokens held by the vocabulary, or by nobody.
type Known = Result<Arc<TokenSet>, TokenBits>;

impl Found {
    fn look_up(&mut self, at: &HostRow<'_>, left: &mut Left) {
        let (parts, state) = (at.table.parts(), at.position.state);
        self.classes = classes(at, left);
        let TokenReading::Bytes { vocabulary, special, .. } = &parts.reading else {
            self.work += self.classes.len();
            return;
        };
        if state.0 < StateId::RESERVED {
            return;
        }
        let trie = vocabulary.trie();
        let Some(runs) = parts.character_runs(&at.position, left) else {
            return self.read(at, left, [Unread::all(trie)]);
        };
        let characters = vocabulary.characters();
        self.known = Some(known_by(vocabulary, &runs));
        self.less = special.tokens().iter().map(|(token, _)| token.0).collect();
        self.work += WORTH_KEEPING;
        let spaces = [(0, &b""[..]), (1, b" ")];
        let begun = spaces.map(|(is_spaced, prefix)| Unread::behind(trie, prefix, runs.read[is_spaced]));
        let beside = runs.runs.iter().filter_map(|run| Some((run, run.near()?))).flat_map(|(run, near)| {
            spaces.map(|(is_spaced, prefix)| Unread::behind(trie, prefix, run.beside[is_spaced]).beside(near))
        });
        let lacking = runs.runs.iter().flat_map(|run| {
            spaces.map(|(is_spaced, prefix)| Unread::behind(trie, prefix, run.lacking[is_spaced]).lacking())
        });
        // Where it does not matter what comes before an open character.
        let tails = |run: &CharacterRun, byte| Some((run.begun(byte)?, characters.tails(byte)?));
        let behind = runs.runs.iter().flat_map(|run| {
            let found = run.open.bytes().filter_map(move |byte| tails(run, byte));
            found.map(|(begun, tails)| Unread::tails(tails, begun, run))
        });
        let beyond = runs.runs.iter().flat_map(|run| {
            run.open.bytes().flat_map(move |byte| {
                let known = tails(run, byte).map_or([CharacterSet::default(); 2], |_| run.own);
                let first =
                    [0, 1].map(|is_spaced: usize| run.spelled.first[is_spaced].without(known[is_spaced]));
                let begun = spaces.into_iter().filter(move |&(is_spaced, _)| !first[is_spaced].is_empty());
                begun.map(move |(is_spaced, prefix)| {
                    let few = characters.with(byte, vocabulary);
                    Unread::behind(few, prefix, first[is_spaced]).beyond(run.spelled.within, byte)
                })
            })
        });
        // Of rests that are longer than what is told apart.
        let longer = || runs.runs.iter().filter(|run| run.spelled.most == LONGEST);
        for (run, most) in longer().filter_map(|run| Some((run, run.reach?))) {
            let Spelled { first, within, .. } = run.spelled;
            let first = [0, 1].map(|is_spaced: usize| first[is_spaced].without(run.lacking[is_spaced]));
            let long = characters.long_up_to(most, first, within);
            self.text.extend(long.filter(|&token| special.column(token).is_none()).map(|token| token.0));
        }
        let long = longer().flat_map(|run| {
            let first = if run.reach.is_none() { run.spelled.first } else { run.lacking };
            spaces.map(|(is_spaced, prefix)| Unread::behind(characters.long(), prefix, first[is_spaced]))
        });
        let cut = [Unread::all(characters.cut())];
        self.read(
            at,
            left,
            cut.into_iter().chain(long).chain(begun).chain(lacking).chain(beside).chain(behind).chain(beyond),
        );
    }

    /// Reads tokens.
    fn read<'a>(&mut self, at: &HostRow<'_>, left: &mut Left, unread: impl IntoIterator<Item = Unread<'a>>) {
        let (text, less) = (&mut self.text, &mut self.less);
        let found = |tokens: &[TokenId], state| {
            let found = if state == StateId::DEAD { &mut *less } else { &mut *text };
            found.extend(tokens.iter().map(|id| id.0));
        };
        self.work += at.table.parts().each_text(&at.position, left, unread, found);
    }

    /// The same in the form in which a row is masked, and what it took to find it.
    fn legal(self, at: &HostRow<'_>) -> (Legal, usize) {
        let Self { classes, known, less, mut text, work } = self;
        let all = at.table.vocabulary_len();
        let few = TokenSet::longest_list(all);
        let parts = at.table.parts();
        let classes_that = |taken: bool| {
            classes.iter().enumerate().filter(move |&(_, &legal)| legal == taken).map(|(class, _)| class)
        };
        let of_classes = |taken: bool| classes_that(taken).flat_map(|class| parts.tokens_of(class)).copied();
        if let Some(known) = known {
            text.extend(of_classes(true));
            return (with(known, text, less, all), work);
        }
        // Without a constraint few tokens may not follow, if any.
        if at.position.state == StateId::UNCONSTRAINED {
            let missing: Vec<u32> = of_classes(false).collect();
            if missing.len() <= few {
                return (Legal::Alone(TokenSet::Most(missing)), work);
            }
        }
        let count = text.len() + classes_that(true).map(|class| parts.tokens_of(class).len()).sum::<usize>();
        if count <= few {
            text.extend(of_classes(true));
            return (Legal::Alone(TokenSet::Few(text)), work + count);
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
        let (legal, count) = alone(bits);
        (legal, work + count)
    }
}

/// Whether each class of a row is taken: what each column leads to, or each that is not of bytes.
fn classes(at: &HostRow<'_>, left: &mut Left) -> Vec<bool> {
    let (parts, state) = (at.table.parts(), at.position.state);
    // Of what leaves the stack as it is.
    let mut can_end = |next: u32| left.reach(parts.to_end(StateId(next), &at.position.frames));
    let TokenReading::Bytes { special, .. } = &parts.reading else {
        return at.table.row(state).iter().map(|&next| can_end(next)).collect();
    };
    let mut classes = Vec::with_capacity(TokenTable::RESERVED_COLUMNS + 1 + special.columns());
    classes.extend(parts.next.reserved(state).map(&mut can_end));
    classes.push(state == StateId::UNCONSTRAINED);
    classes.extend(special.of(&parts.next, state).iter().map(|&next| can_end(next)));
    classes
}

/// The tokens that are known by their characters.
fn known_by(vocabulary: &Vocabulary, runs: &CharacterRuns) -> Known {
    let characters = vocabulary.characters();
    let spelled: Vec<Spelled> = runs.runs.iter().map(|run| run.spelled).collect();
    characters.spelled(&spelled, || {
        let mut bits = TokenBits::none(vocabulary.len());
        vectorized(
            #[inline(always)]
            || spelled.iter().for_each(|spelled| characters.add(&mut bits, spelled)),
        );
        bits
    })
}

/// The `known` ones of `all` tokens without those in `less`, and `more` of which some may be in either.
fn with(known: Known, mut more: Vec<u32>, mut less: Vec<u32>, all: usize) -> Legal {
    let longest = TokenSet::longest_list(all);
    let mut bits = match known {
        Ok(set) => match &*set {
            TokenSet::Few(few) if few.len() + more.len() <= longest && less.len() <= FEW_LESS => {
                more.extend(few.iter().filter(|token| !less.contains(token)));
                more.shrink_to_fit();
                return Legal::Alone(TokenSet::Few(more));
            }
            TokenSet::Most(_) | TokenSet::Bits(..) if more.len() + less.len() <= longest => {
                more.shrink_to_fit();
                less.shrink_to_fit();
                return Legal::Beside { set, more, less };
            }
            set => set.to_bits(all).into_owned(),
        },
        Err(bits) => bits,
    };
    less.iter().for_each(|&token| bits.clear(token));
    more.iter().for_each(|&token| bits.set(token));
    alone(bits).0
}

/// The tokens whose bits are set, and how many they are.
fn alone(bits: TokenBits) -> (Legal, usize) {
    vectorized(
        #[inline(always)]
        || {
            let count = bits.count();
            (Legal::Alone(TokenSet::of(bits, count)), count)
        },
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::row::mask;
    use super::*;
    use crate::constraint::{StructuralTag, Syntax};
    use crate::table::RowPosition;
    use crate::tensor::{Store, TensorTable};
    use crate::{Constraint, Limits, TensorOptions, TokenTable, Vocabulary};
    use burn::tensor::Device;
    use rand::{Rng, SeedableRng, rngs::StdRng};
    use serde_json::{Value, json};

    fn tokens(legal: &Legal, all: usize) -> Vec<u32> {
        legal.to_bits(all).ones().collect()
    }

    /// Budgets may tell tokens apart, and do not where a place is known already for other budgets.
    #[test]
    fn what_is_kept_is_what_would_be_found() {
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
        let tables = [(&nested, "((a1 +)abc)b"), (&counted, "\"a(b)\""), (&text, "a)))b))")]
            .map(|(constraint, text)| (TokenTable::walk(constraint, &vocabulary, &limits).unwrap(), text));
        let mut met = [0; 2];
        for (table, text) in &tables {
            let on_device =
                TensorTable::new(&[table], vocabulary.len(), &TensorOptions::default(), &Device::flex());
            let on_device = on_device.unwrap();
            let Store::Host(host) = on_device.store() else { panic!("a table on the host") };
            let mut position = RowPosition::unlimited(table.start());
            for byte in text.bytes() {
                let budgets = (0..2).flat_map(|_| (1..40).map(|at| at * 17 % 40)).chain([720, 690, 1 << 20]);
                for budget in budgets {
                    let position = RowPosition { remaining: budget, ..position.clone() };
                    let mut row = host.row(&[0, 0]);
                    row.position = position.clone();
                    let kept = row.kept.find(&place(&position), budget.max(1) - 1).is_some();
                    met[usize::from(kept)] += 1;
                    let mut found = tokens(&legal(&row).0, vocabulary.len());
                    found.sort_unstable();
                    let may_follow = |&id: &u32| table.can_end(&table.after(&position, TokenId(id)));
                    let expected: Vec<u32> = (0..vocabulary.len() as u32).filter(may_follow).collect();
                    assert_eq!(
                        found, expected,
                        "{text:?} at {:?}, budget {budget}, kept: {kept}",
                        byte as char
                    );
                }
                position = table.after(&position, TokenId(byte.into()));
            }
        }
        assert!(met.iter().all(|&met| met > 50), "{met:?}");
    }

    /// Bytes, words with and without a space before them and with other characters behind them, runs of many characters, and
    /// parts of characters; enough of each kind that no state reads all of them.
    fn words() -> Vocabulary {
        const LETTERS: &str = "abcdefghijklmnopqrstuvwxyz";
        let mut rng = StdRng::seed_from_u64(11);
        let mut pick = |from: &str, length: usize| -> String {
            let characters: Vec<char> = from.chars().collect();
            (0..length).map(|_| characters[rng.random_range(0..characters.len())]).collect()
        };
        let mut words = BTreeSet::new();
        // Few have a quotation mark or a backslash, as is so in vocabularies of models.
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

    /// Constraints whose places differ in what they know of characters, and beginnings of texts that they take.
    fn cases() -> Vec<(Constraint, &'static str)> {
        let schema = |schema| Constraint::json_schema(schema).unwrap();
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
            // What may follow behind a quotation mark depends on how many characters are before it, and then no more.
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
            // Some characters beyond ASCII lead nowhere that begin with the same byte as others.
            (regex(r"[^\s@]+@?[^\s@]*"), "ab漢é@x🙂漢"),
            (regex(r"[^\s]{1,70}"), "ab漢é@x🙂漢"),
            (regex(r"([a-z]{2})*-[^\x00-\x1f]{8}\n?"), "abcdef-ab é漢"),
            // Tokens of the same characters that may end, and those without the last bytes of one that may not.
            (regex("[a-z](?s:.)*"), "ab"),
            // Few tokens begin with a character behind which more may follow.
            (regex("(q-?|[a-pr-z ])[a-z]*"), "q-ab"),
            // One character may not follow another, and else all may.
            (regex("(q([a-tv-z][a-z]*)?|[a-pr-z][a-z]*)"), "qa"),
            // A quotation mark behind one name leads elsewhere than behind all others.
            (regex("([ac-z][a-z]*|b[a-z]+)\",|b\"[a-z]*"), "b\"a"),
            // Behind one character another makes a call, or leads to where the end is far, and else it may follow as any other.
            (gbnf("root ::= item* \".....\"\nitem ::= [a-z(] | \"@\" ([a-z] | \"(\" root)"), "ab@(c@a"),
            (regex("([a-z]|@[a-wyz]|@x-{5})*"), "ab@ab"),
            // Which characters lead on changes from character to character, of ASCII and beyond it.
            (
                regex("[^漢\"]{5}[^漣\"]{5}([[:ascii:]--[\"]]{4}|[^[:ascii:]]{6})[^b\"]{40}"),
                "abcdé漢g漢éa0123ac漢éx",
            ),
            // How far the end is changes from character to character.
            (regex("([ -~]{2})*"), "ab c, and so on"),
            // Blocks of characters that return to different places.
            (schema(counted), texts),
            (gbnf(nested), "((0123456789abcdefghij(0123456789abcdefghij))0123"),
            (gbnf(names), "  ab_1 + 12 * \"é\" / x"),
            (Constraint::structural_tag(&tag).unwrap(), "ab < <g sto\n é<f=a>\"b c\"</f> b"),
        ]
    }

    /// None is looked up from the other without end.
    #[test]
    fn places_may_be_near_one_another() {
        let bytes = (0..=u8::MAX).map(|byte| vec![byte]);
        let first = (b'a'..=b'z').filter(|byte| !b"gm".contains(byte)).chain(b'A'..=b'R');
        let words = first
            .flat_map(|a| (0..676u32).map(move |at| vec![a, b'A' + (at / 26) as u8, b'a' + (at % 26) as u8]));
        let words: Vec<_> = bytes.chain(words).map(Some).chain([None]).collect();
        let end = TokenId(words.len() as u32 - 1);
        let vocabulary = Vocabulary::from_bytes(words).unwrap().with_eos([end]).unwrap();
        let text = "([A-Z]|[a-z][a-fh-ln-z]*([A-Z]|[gm][0-9]))*([a-z][a-fh-ln-z]*)?";
        let table =
            TokenTable::walk(&Constraint::regex(text).unwrap(), &vocabulary, &Limits::default()).unwrap();
        let options = TensorOptions::default();
        let on_device = TensorTable::new(&[&table], vocabulary.len(), &options, &Device::flex()).unwrap();
        let Store::Host(host) = on_device.store() else { panic!("a table on the host") };
        let start = RowPosition::unlimited(table.start());
        let places = [start.clone(), table.after(&start, TokenId(b'a'.into()))];
        let near = |at: &RowPosition| table.parts().near(at, &mut Left::new(100)).unwrap().stays;
        assert_eq!(places.each_ref().map(near), [places[1].state, places[0].state]);
        for position in places {
            let mut row = host.row(&[0, 0]);
            row.position = position;
            let mut found = tokens(&legal(&row).0, vocabulary.len());
            found.sort_unstable();
            let may_follow = |&id: &u32| table.can_end(&table.after(&row.position, TokenId(id)));
            assert!(found.into_iter().eq((0..vocabulary.len() as u32).filter(may_follow)));
        }
    }

    /// What may follow at every place of texts is what the host's table says of each token, with a budget and without one.
    #[test]
    fn what_may_follow_is_what_the_table_says_of_each_token() {
        let vocabulary = words();
        let ids = || (0..vocabulary.len() as u32).map(TokenId);
        let (mut by_runs, mut read, mut with_less, mut near, mut lacking) = (0, 0, 0, 0, 0);
        for ((constraint, text), frames) in
            cases().iter().flat_map(|case| [64, 3, 0].map(|frames| (case, frames)))
        {
            let limits = Limits { frames, ..Limits::default() };
            let Ok(table) = TokenTable::walk(constraint, &vocabulary, &limits) else { continue };
            let on_device =
                TensorTable::new(&[&table], vocabulary.len(), &TensorOptions::default(), &Device::flex());
            let on_device = on_device.unwrap();
            let Store::Host(host) = on_device.store() else { panic!("a table on the host") };
            let mut position = RowPosition::unlimited(table.start());
            for (at, byte) in std::iter::once(None).chain(text.bytes().map(Some)).enumerate() {
                position = byte.map_or(position.clone(), |byte| table.after(&position, TokenId(byte.into())));
                if frames == 64 {
                    assert!(table.can_end(&position), "{text:?}, byte {at}: {constraint:?}");
                }
                let with = |remaining| RowPosition { remaining, ..position.clone() };
                let Some(least) = (1..1000).find(|&remaining| table.can_end(&with(remaining))) else { break };
                for remaining in [RowPosition::UNLIMITED, least, least + 1, least + 4, least + 60] {
                    let mut row = host.row(&[0, 0]);
                    row.position = with(remaining);
                    let (mut found, mut left) = (Found::default(), Left::new(remaining - 1));
                    found.look_up(&row, &mut left);
                    let runs = table.parts().character_runs(&row.position, &mut Left::new(remaining - 1));
                    let are_lacking = |run: &CharacterRun| run.lacking.iter().any(|set| !set.is_empty());
                    lacking += usize::from(runs.is_some_and(|runs| runs.runs.iter().any(are_lacking)));
                    *(if found.known.is_some() { &mut by_runs } else { &mut read }) += 1;
                    let legal = Arc::new(found.legal(&row).0);
                    with_less +=
                        usize::from(matches!(&*legal, Legal::Beside { less, .. } if !less.is_empty()));
                    // The places before it are kept, for other budgets too.
                    let (kept, _) = super::legal(&row);
                    near += usize::from(matches!(&*kept, Legal::Near { .. }));
                    let mut ways = vec![legal];
                    ways.extend(Some(kept).filter(|kept| *kept != ways[0]));
                    for legal in ways {
                        let mut masked = vec![1.0f32; vocabulary.len()];
                        mask(&mut masked, &row, &legal);
                        let masked = masked.iter().enumerate().filter(|(_, logit)| logit.is_finite());
                        let mut found = tokens(&legal, vocabulary.len());
                        found.sort_unstable();
                        assert!(masked.map(|(id, _)| id as u32).eq(found.iter().copied()), "{legal:?}");
                        let is_found = |id: &TokenId| found.binary_search(&id.0).is_ok();
                        let may_follow = |id: &TokenId| table.can_end(&table.after(&row.position, *id));
                        let wrong: Vec<_> = ids().filter(|id| is_found(id) != may_follow(id)).collect();
                        let texts: Vec<_> =
                            wrong.iter().take(4).map(|&id| (is_found(&id), vocabulary.bytes(id))).collect();
                        assert!(
                            wrong.is_empty(),
                            "{text:?}, byte {at}, {remaining} left, {frames} frames: {texts:?} of {constraint:?}"
                        );
                    }
                }
            }
        }
        assert!(by_runs > 1000 && read > 500, "{by_runs} by runs, {read} without");
        assert!(with_less > 10, "{with_less} sets of which tokens are taken away");
        assert!(lacking > 20, "{lacking} places with first bytes of which some characters lead nowhere");
        assert!(near > 300, "{near} places near others");
    }
}
