//! Reads texts by the meaning of each format, without an automaton.
//!
//! A format is followed from a position of the input, by backtracking over the sets of positions at
//! which its texts may end. It is *open* if the rest of the input is a prefix of one of its texts.
//! Every format here has a text, so a prefix of a part's text is a prefix of the whole text: an
//! input is a prefix of a text if and only if its format is open.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};

use burn_dfa_tokens::constraint::{Begin, End, Format, Tag, TokenRef};

use super::leaves::Leaves;
use crate::grammar::earley::{Chart, Recognizer};

/// Positions of an input.
pub type Positions = BTreeSet<usize>;

/// Bytes, and the tokens that they belong to.
#[derive(Clone, Debug, Default)]
pub struct Input {
    /// `None` stands for a token without a text.
    bytes: Vec<Option<u8>>,
    /// By position, the token that begins there, and its end.
    tokens: HashMap<usize, (u32, usize)>,
}

impl Input {
    /// A text without tokens.
    pub fn text(text: &[u8]) -> Self {
        Self { bytes: text.iter().copied().map(Some).collect(), tokens: HashMap::new() }
    }

    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Adds a token, which has a text or is special.
    pub fn push(&mut self, token: u32, text: Option<&[u8]>) {
        let start = self.len();
        match text {
            Some(text) => self.bytes.extend(text.iter().copied().map(Some)),
            None => self.bytes.push(None),
        }
        self.tokens.insert(start, (token, self.len()));
    }

    /// Removes the last token, which begins at `start`.
    pub fn pop(&mut self, start: usize) {
        self.bytes.truncate(start);
        self.tokens.remove(&start);
    }

    fn starts_with(&self, text: &[u8], start: usize) -> Reading {
        let rest = &self.bytes[start..];
        if rest.iter().zip(text).any(|(byte, wanted)| *byte != Some(*wanted)) {
            return Reading::NONE;
        }
        match rest.len() < text.len() {
            true => Reading { ends: Positions::new(), open: true },
            false => self.ending([start + text.len()].into()),
        }
    }

    /// Ends at these positions; the last one may be the end of the input.
    fn ending(&self, ends: Positions) -> Reading {
        Reading { open: ends.contains(&self.len()), ends }
    }

    /// The end of the character at a position; `Cut` if the input ends within it.
    fn character(&self, at: usize) -> Character {
        let bytes: Vec<u8> = self.bytes[at..].iter().take(4).map_while(|byte| *byte).collect();
        let first = match std::str::from_utf8(&bytes) {
            Ok(text) => text.len(),
            Err(error) if error.valid_up_to() > 0 => error.valid_up_to(),
            Err(error) if error.error_len().is_none() && at + bytes.len() == self.len() => {
                return Character::Cut;
            }
            Err(_) => 0,
        };
        let text = std::str::from_utf8(&bytes[..first]).unwrap();
        text.chars().next().map_or(Character::None, |c| Character::Whole(at + c.len_utf8()))
    }

    fn ends_with(&self, mark: &str, start: usize, end: usize) -> bool {
        let read = &self.bytes[start..end];
        let last = read.len().checked_sub(mark.len()).map(|before| &read[before..]);
        last.is_some_and(|last| last.iter().copied().eq(mark.bytes().map(Some)))
    }
}

enum Character {
    Whole(usize),
    Cut,
    None,
}

/// The result of a format on the rest of an input.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// The possible ends of its texts.
    pub ends: Positions,
    /// Whether the rest is a prefix of one of its texts, or a whole text.
    pub open: bool,
}

impl Reading {
    const NONE: Self = Self { ends: Positions::new(), open: false };

    fn or(mut self, other: Self) -> Self {
        self.ends.extend(other.ends);
        self.open |= other.open;
        self
    }
}

/// The ids of tokens by their text.
pub type Names = HashMap<Vec<u8>, Vec<u32>>;

/// The ends of the innermost tag around a format, without empty texts.
#[derive(Clone, Debug, Default)]
struct Around {
    texts: Vec<String>,
    tokens: Vec<u32>,
}

/// The charts of leaves along inputs, by leaf and position. Inputs with a common beginning share the
/// charts of this beginning.
#[derive(Default)]
pub struct Charts<'l>(RefCell<HashMap<(usize, usize), LeafChart<'l>>>);

/// The chart of a leaf.
struct LeafChart<'l> {
    chart: Chart<'l>,
    /// The bytes that it has read.
    read: Vec<u8>,
    /// Whether the leaf may end, before the first byte and after each byte.
    ends: Vec<bool>,
}

impl<'l> LeafChart<'l> {
    fn new(recognizer: &'l Recognizer) -> Self {
        let chart = Chart::new(recognizer);
        Self { ends: vec![chart.accepts()], chart, read: Vec::new() }
    }

    /// Reads the rest of an input while it is a prefix of a text; returns whether no byte is left.
    fn follow(&mut self, input: &[Option<u8>]) -> bool {
        let common = self.read.iter().zip(input).take_while(|(own, byte)| **byte == Some(**own)).count();
        self.chart.truncate(common);
        self.read.truncate(common);
        self.ends.truncate(common + 1);
        while let Some(Some(byte)) = input.get(self.read.len())
            && self.chart.push(*byte)
        {
            self.read.push(*byte);
            self.ends.push(self.chart.accepts());
        }
        self.read.len() == input.len()
    }
}

/// Follows formats along an input.
pub struct Reader<'a, 'l> {
    input: &'a Input,
    leaves: &'l Leaves,
    /// The ids of tokens by their text.
    names: &'a Names,
    charts: &'a Charts<'l>,
    /// By leaf and position.
    known: RefCell<HashMap<(usize, usize), Reading>>,
}

impl<'a, 'l> Reader<'a, 'l> {
    /// `charts` come from other inputs with the same leaves.
    pub fn new(input: &'a Input, leaves: &'l Leaves, names: &'a Names, charts: &'a Charts<'l>) -> Self {
        Self { input, leaves, names, charts, known: RefCell::default() }
    }

    /// Whether the input is a text of a format, and whether it is a prefix of one.
    pub fn read(&self, format: &Format) -> (bool, bool) {
        let reading = self.format(format, 0, &Around::default());
        (reading.ends.contains(&self.input.len()), reading.open)
    }

    fn format(&self, format: &Format, start: usize, around: &Around) -> Reading {
        match format {
            Format::ConstString { value } => self.input.starts_with(value.as_bytes(), start),
            Format::JsonSchema(_) | Format::Grammar { .. } | Format::Regex { .. } => self.leaf(format, start),
            Format::AnyText(text) => {
                let max = if text.max_tokens == Some(0) { Some(0) } else { text.max_chars };
                let excluded = [&text.excludes[..], &around.texts].concat();
                self.free([start].into(), &[], &excluded, max, &|_, _| Reading::NONE, false)
            }
            Format::Sequence { elements } => {
                let first = self.input.ending([start].into());
                elements.iter().fold(first, |before, format| {
                    let after = self.after_each(&before.ends, |at| self.format(format, at, around));
                    Reading { open: before.open || after.open, ends: after.ends }
                })
            }
            Format::Or { elements } => {
                elements.iter().fold(Reading::NONE, |all, format| all.or(self.format(format, start, around)))
            }
            Format::Optional { content } => self.repeat(content, start, around, 0, Some(1)),
            Format::Plus { content } => self.repeat(content, start, around, 1, None),
            Format::Star { content } => self.repeat(content, start, around, 0, None),
            Format::Repeat { min, max, content } => {
                self.repeat(content, start, around, *min as usize, usize::try_from(*max).ok())
            }
            Format::Tag(tag) => self.tag(tag, start),
            Format::TagsWithSeparator(tags) => {
                let one = |at| self.one_of(&tags.tags, at);
                let separated = |at| {
                    let before = self.input.starts_with(tags.separator.as_bytes(), at);
                    let after = self.after_each(&before.ends, one);
                    Reading { open: before.open || after.open, ends: after.ends }
                };
                let mut all = one(start);
                if !tags.stop_after_first {
                    let more = self.closure(all.ends.clone(), separated);
                    all = all.or(more);
                }
                if tags.at_least_one { all } else { all.or(self.input.ending([start].into())) }
            }
            Format::TriggeredTags(tags) => {
                let excluded = [&tags.excludes[..], &around.texts].concat();
                let mut before = self.input.ending([start].into());
                if tags.at_least_one {
                    before = self.one_of(&tags.tags, start);
                    if tags.stop_after_first {
                        return before;
                    }
                }
                let called = |trigger: &str, at: usize| {
                    let of_trigger = tags.tags.iter().filter_map(|tag| match &tag.begin {
                        Begin::Text(begin) => Some((tag, begin.strip_prefix(trigger)?)),
                        Begin::Token(_) => None,
                    });
                    of_trigger.fold(Reading::NONE, |all, (tag, rest)| {
                        let begun = self.input.starts_with(rest.as_bytes(), at);
                        let inside = self.after_each(&begun.ends, |at| self.inside(tag, at));
                        all.or(Reading { open: begun.open || inside.open, ends: inside.ends })
                    })
                };
                let again = !tags.stop_after_first;
                let free = self.free(before.ends, &tags.triggers, &excluded, None, &called, again);
                Reading { open: before.open || free.open, ends: free.ends }
            }
            Format::Dispatch(dispatch) => {
                let patterns: Vec<String> = dispatch.rules.iter().map(|(of, _)| of.clone()).collect();
                let called = |pattern: &str, at: usize| {
                    let rules = dispatch.rules.iter().filter(|(known, _)| known == pattern);
                    rules.fold(Reading::NONE, |all, (_, format)| {
                        all.or(self.format(format, at, &Around::default()))
                    })
                };
                self.free([start].into(), &patterns, &dispatch.excludes, None, &called, dispatch.again)
            }
            Format::Token { token } => self.named(token, start),
            Format::ExcludeToken { exclude_tokens } => {
                let excluded = [self.ids(exclude_tokens), around.tokens.clone()].concat();
                self.token(start, |id| !excluded.contains(&id))
            }
            Format::AnyTokens { exclude_tokens, max_tokens } => {
                let excluded = [self.ids(exclude_tokens), around.tokens.clone()].concat();
                let one = |at| self.token(at, |id| !excluded.contains(&id));
                self.times([start].into(), one, 0, max_tokens.map(|max| max as usize))
            }
            Format::TokenTriggeredTags(tags) => {
                let barred =
                    [self.ids(&tags.trigger_tokens), self.ids(&tags.exclude_tokens), around.tokens.clone()];
                let barred = barred.concat();
                let one = |at| self.token(at, |id| !barred.contains(&id));
                let tagged = |at| self.one_of(&tags.tags, at);
                match (tags.at_least_one, tags.stop_after_first) {
                    (true, true) => tagged(start),
                    (true, false) => {
                        let first = tagged(start);
                        let more = self.closure(first.ends.clone(), |at| one(at).or(tagged(at)));
                        first.or(more)
                    }
                    (false, false) => self.closure([start].into(), |at| one(at).or(tagged(at))),
                    (false, true) => {
                        let free = self.closure([start].into(), one);
                        let last = self.after_each(&free.ends, tagged);
                        free.or(last)
                    }
                }
            }
            Format::TokenDispatch(dispatch) => {
                let patterns: Vec<TokenRef> = dispatch.rules.iter().map(|(token, _)| token.clone()).collect();
                let barred = [self.ids(&patterns), self.ids(&dispatch.exclude_tokens)].concat();
                let one = |at| self.token(at, |id| !barred.contains(&id));
                let called = |at| {
                    dispatch.rules.iter().fold(Reading::NONE, |all, (token, format)| {
                        let before = self.named(token, at);
                        let after =
                            self.after_each(&before.ends, |at| self.format(format, at, &Around::default()));
                        all.or(Reading { open: before.open || after.open, ends: after.ends })
                    })
                };
                if dispatch.again {
                    return self.closure([start].into(), |at| one(at).or(called(at)));
                }
                let free = self.closure([start].into(), one);
                let last = self.after_each(&free.ends, called);
                free.or(last)
            }
            other => unimplemented!("{other:?}"),
        }
    }

    /// Reads a regex, a grammar or a schema by its handwritten grammar.
    fn leaf(&self, format: &Format, start: usize) -> Reading {
        let number = self.leaves.number(format);
        if let Some(known) = self.known.borrow().get(&(number, start)) {
            return known.clone();
        }
        let mut charts = self.charts.0.borrow_mut();
        let recognizer = self.leaves.recognizer(number);
        let leaf = charts.entry((number, start)).or_insert_with(|| LeafChart::new(recognizer));
        let open = leaf.follow(&self.input.bytes[start..]);
        let ends = (start..).zip(&leaf.ends).filter(|&(_, &ends)| ends).map(|(at, _)| at).collect();
        let reading = Reading { ends, open };
        self.known.borrow_mut().insert((number, start), reading.clone());
        reading
    }

    /// Free text without a complete mark, from each of several positions. `called` continues after
    /// the first complete trigger; with `again`, free text follows once more.
    fn free(
        &self,
        starts: Positions,
        triggers: &[String],
        excluded: &[String],
        max: Option<u32>,
        called: &dyn Fn(&str, usize) -> Reading,
        again: bool,
    ) -> Reading {
        let mut all = Reading::NONE;
        let mut seen = Positions::new();
        let mut rest: Vec<usize> = starts.into_iter().collect();
        while let Some(start) = rest.pop() {
            if !seen.insert(start) {
                continue;
            }
            let (mut end, mut count) = (start, 0);
            loop {
                if excluded.iter().any(|mark| self.input.ends_with(mark, start, end)) {
                    break;
                }
                let complete = triggers.iter().filter(|mark| self.input.ends_with(mark, start, end));
                if let Some(trigger) = complete.max_by_key(|mark| mark.len()) {
                    let reading = called(trigger, end);
                    all.open |= reading.open;
                    if again {
                        rest.extend(reading.ends);
                    } else {
                        all.ends.extend(reading.ends);
                    }
                    break;
                }
                all.ends.insert(end);
                all.open |= end == self.input.len();
                if max == Some(count) || end == self.input.len() {
                    break;
                }
                match self.input.character(end) {
                    Character::Whole(next) => (end, count) = (next, count + 1),
                    // Some character completes no mark.
                    Character::Cut => {
                        all.open = true;
                        break;
                    }
                    Character::None => break,
                }
            }
        }
        all
    }

    fn tag(&self, tag: &Tag, start: usize) -> Reading {
        let begun = match &tag.begin {
            Begin::Text(begin) => self.input.starts_with(begin.as_bytes(), start),
            Begin::Token(token) => self.named(&token.token, start),
        };
        let inside = self.after_each(&begun.ends, |at| self.inside(tag, at));
        Reading { open: begun.open || inside.open, ends: inside.ends }
    }

    /// The content of a tag, and its end.
    fn inside(&self, tag: &Tag, start: usize) -> Reading {
        let texts = match &tag.end {
            End::Text(text) => vec![text.clone()],
            End::Texts(texts) => texts.clone(),
            End::Token(_) => Vec::new(),
        };
        let mut around = Around { texts: texts.clone(), tokens: Vec::new() };
        around.texts.retain(|text| !text.is_empty());
        if let End::Token(token) = &tag.end {
            around.tokens = self.ids(std::slice::from_ref(&token.token));
        }
        let content = self.format(&tag.content, start, &around);
        let ended = self.after_each(&content.ends, |at| match &tag.end {
            End::Token(token) => self.named(&token.token, at),
            _ => texts
                .iter()
                .fold(Reading::NONE, |all, text| all.or(self.input.starts_with(text.as_bytes(), at))),
        });
        Reading { open: content.open || ended.open, ends: ended.ends }
    }

    fn one_of(&self, tags: &[Tag], start: usize) -> Reading {
        tags.iter().fold(Reading::NONE, |all, tag| all.or(self.tag(tag, start)))
    }

    fn repeat(
        &self,
        content: &Format,
        start: usize,
        around: &Around,
        min: usize,
        max: Option<usize>,
    ) -> Reading {
        self.times([start].into(), |at| self.format(content, at, around), min, max)
    }

    /// From `min` to `max` repetitions.
    fn times(
        &self,
        starts: Positions,
        one: impl Fn(usize) -> Reading,
        min: usize,
        max: Option<usize>,
    ) -> Reading {
        let mut at = self.input.ending(starts);
        let mut open = at.open;
        for _ in 0..min {
            at = self.after_each(&at.ends, &one);
            open |= at.open;
        }
        let more = match max {
            None => self.closure(at.ends, one),
            Some(max) => {
                let mut all = at.clone();
                for _ in min..max {
                    at = self.after_each(&at.ends, &one);
                    all = all.or(at.clone());
                }
                all
            }
        };
        Reading { open: open || more.open, ends: more.ends }
    }

    /// Any number of repetitions, from each of several positions.
    fn closure(&self, starts: Positions, one: impl Fn(usize) -> Reading) -> Reading {
        let mut all = self.input.ending(starts);
        let mut new = all.ends.clone();
        while !new.is_empty() {
            let after = self.after_each(&new, &one);
            new = &after.ends - &all.ends;
            all = all.or(after);
        }
        all
    }

    fn after_each(&self, starts: &Positions, one: impl Fn(usize) -> Reading) -> Reading {
        starts.iter().fold(Reading::NONE, |all, &at| all.or(one(at)))
    }

    /// One token that satisfies `fits`.
    fn token(&self, start: usize, fits: impl Fn(u32) -> bool) -> Reading {
        if start == self.input.len() {
            return Reading { ends: Positions::new(), open: true };
        }
        match self.input.tokens.get(&start) {
            Some(&(id, end)) if fits(id) => self.input.ending([end].into()),
            _ => Reading::NONE,
        }
    }

    /// One named token.
    fn named(&self, token: &TokenRef, start: usize) -> Reading {
        let ids = self.ids(std::slice::from_ref(token));
        self.token(start, |id| ids.contains(&id))
    }

    /// The ids of tokens; a text stands for all tokens with this text.
    fn ids(&self, tokens: &[TokenRef]) -> Vec<u32> {
        let ids = tokens.iter().flat_map(|token| match token {
            TokenRef::Id(id) => vec![*id],
            TokenRef::Text(text) => self.names[text.as_bytes()].clone(),
        });
        ids.collect()
    }
}
