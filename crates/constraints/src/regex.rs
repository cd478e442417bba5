//! Regular expressions: parsed by `regex-syntax`, compiled to an NFA by `regex-automata`,
//! determinized here.
//!
//! `regex-automata` compiles the pattern to its Thompson NFA, which is copied state by state.
//! Counted repetitions are built here. [`Nfa::determinize`] determinizes the result: the full match
//! is built in (acceptance at the end of the text, all alternatives, no priorities), look-around is
//! exact, Unicode word boundaries included, and the time limit is checked. The tests compare the
//! result with `regex-automata`'s own dense automaton.
//!
//! [`RegexOptions`] select the syntax; `ascii` rewrites named classes in ASCII.

mod ascii;

use burn_dfa_common::{Error, Limit, Result, limits::Meter};
use std::sync::Arc;

use regex_automata::nfa::thompson::{self, WhichCaptures};
use regex_automata::util::primitives::StateID;
use regex_syntax::ast::{self, AssertionKind, Ast, ClassSetItem};
use regex_syntax::hir::translate::TranslatorBuilder;
use regex_syntax::hir::{Hir, HirKind, Repetition};

use super::json_schema::ecma;
use burn_dfa_automata::{ByteDfa, Nfa};

/// How a regex is read.
///
/// ```
/// use burn_dfa_tokens::constraint::RegexOptions;
/// use burn_dfa_tokens::{Constraint, Limits};
///
/// let ascii = RegexOptions::new().with_ascii_classes(true);
/// for (options, is_digit) in [(RegexOptions::new(), true), (ascii, false)] {
///     let dfa = Constraint::regex_with(r"\d", &options)?.to_byte_dfa(&Limits::default())?.unwrap();
///     assert!(dfa.matches(b"7"));
///     assert_eq!(dfa.matches("\u{09ED}".as_bytes()), is_digit); // seven in Bengali
/// }
/// # Ok::<(), burn_dfa_tokens::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RegexOptions {
    /// Whether `\d`, `\w`, `\s`, their negations and word boundaries know ASCII alone, as in
    /// XGrammar and in Python's `re.ASCII`: digits are `0` to `9`. The rest of the pattern is
    /// unaffected: `.` and `\D` are characters of Unicode. Default: false.
    pub ascii_classes: bool,
}

impl RegexOptions {
    /// The default: all of Unicode.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets [`ascii_classes`](Self::ascii_classes).
    pub fn with_ascii_classes(self, ascii_classes: bool) -> Self {
        Self { ascii_classes, ..self }
    }
}

/// A parsed pattern.
#[derive(Clone, Debug)]
pub(crate) struct Regex {
    form: Form,
}

/// The source of a regex.
#[derive(Clone, Debug)]
enum Form {
    /// A pattern in the syntax of `regex-syntax`.
    Hir(Hir),
    /// A pattern of ECMA-262.
    Ecma(ecma::Pattern),
    /// Any number of these texts in a row, in their order, or none.
    Substring(Vec<String>),
}

/// Most bytes of a pattern.
pub(super) const MAX_BYTES: usize = 1 << 20;

/// Most named classes, such as `\w`, in a pattern: two bytes of pattern are 6 KB of ranges here.
pub(super) const MAX_NAMED: usize = 4096;

/// Most items between the brackets of one class; parsing takes quadratic time.
pub(super) const MAX_ITEMS: usize = 4096;

impl Regex {
    /// The pattern as text, close to the original; `None` if another parser than `regex-syntax`
    /// read it.
    pub(super) fn text(&self) -> Option<String> {
        let Form::Hir(hir) = &self.form else { return None };
        let mut text = String::new();
        for c in hir.to_string().chars() {
            match c {
                '\\' | '"' | '\'' => text.push(c),
                // As it is, unless it can hardly be seen.
                _ => text.extend(c.escape_debug()),
            }
        }
        let grouped = matches!(hir.kind(), HirKind::Concat(_) | HirKind::Alternation(_));
        let inner = text.strip_prefix("(?:").and_then(|text| text.strip_suffix(')')).filter(|_| grouped);
        Some(inner.map_or(text.clone(), str::to_owned))
    }

    /// Reads a pattern.
    ///
    /// # Errors
    /// A pattern error with the offset.
    pub(crate) fn parse(pattern: &str) -> Result<Self> {
        Self::parse_with(pattern, &RegexOptions::default()).map(|(regex, _)| regex)
    }

    /// Parses a pattern with options; also returns an equivalent pattern for the default options.
    ///
    /// # Errors
    /// A pattern error with the offset.
    pub(super) fn parse_with(pattern: &str, options: &RegexOptions) -> Result<(Self, Arc<str>)> {
        if pattern.len() > MAX_BYTES {
            return Err(Error::pattern(MAX_BYTES, too_many("bytes", MAX_BYTES)));
        }
        let ast = ast::parse::Parser::new()
            .parse(pattern)
            .map_err(|error| Error::pattern(error.span().start.offset, refusal(error.kind())))?;
        ast::visit(&ast, Weights::default())?;
        let (ast, plain) = match options.ascii_classes {
            false => (ast, pattern.into()),
            true => ascii::written(ast),
        };
        // A pattern may ask for bytes that are not UTF-8.
        let hir = TranslatorBuilder::new()
            .utf8(false)
            .build()
            .translate(pattern, &ast)
            .map_err(|error| Error::pattern(error.span().start.offset, error.kind().to_string()))?;
        let properties = hir.properties();
        if !properties.is_utf8() && properties.look_set().contains_word_unicode() {
            return Err(Error::pattern(
                ast::visit(&ast, FirstBoundary).err().unwrap_or(0),
                r"a Unicode word boundary in a pattern that matches bytes that are not UTF-8: write (?-u:\b), or leave Unicode on",
            ));
        }
        Ok((Self { form: Form::Hir(hir) }, plain))
    }

    /// Parses a pattern of ECMA-262; `ignore_case` ignores the case of ASCII letters.
    ///
    /// # Errors
    /// The offset and the reason.
    pub(crate) fn ecma(pattern: &str, ignore_case: bool) -> std::result::Result<Self, (usize, String)> {
        match ecma::Pattern::parse_with(pattern, ignore_case) {
            Ok(pattern) => Ok(Self { form: Form::Ecma(pattern) }),
            Err(refusal) => Err((refusal.offset, refusal.reason)),
        }
    }

    /// Any number of these texts in a row, in their order, or none.
    pub(crate) fn substring(texts: Vec<String>) -> Self {
        Self { form: Form::Substring(texts) }
    }

    /// The language of the strings matched as a whole.
    pub(crate) fn lower(&self, meter: &Meter) -> Result<ByteDfa> {
        match &self.form {
            Form::Hir(hir) => determinize(hir, meter),
            Form::Ecma(pattern) => pattern.lower_whole(meter),
            Form::Substring(texts) => lower_substring(texts, meter),
        }
    }
}

/// The language of the strings that `hir`, a pattern of another dialect, matches as a whole.
/// (Printing and parsing `hir` would fail: `regex-syntax` prints `(a+)?` as `a+?`.)
pub(super) fn lower(hir: &Hir, meter: &Meter) -> Result<ByteDfa> {
    determinize(hir, meter)
}

/// The language of the strings with a match of `hir` anywhere: `(?s:.*)` before and after.
pub(super) fn lower_search(hir: &Hir, meter: &Meter) -> Result<ByteDfa> {
    let mut nfa = Nfa::new(meter);
    let behind = any_text(&mut nfa, Nfa::ACCEPT)?;
    let found = copy(hir, &mut nfa, behind, meter)?;
    let start = any_text(&mut nfa, found)?;
    nfa.determinize(start)
}

/// Any characters in UTF-8, and then `next`. It is written here, since the compiler of patterns
/// takes longer to begin with classes beyond ASCII than for most patterns.
fn any_text(nfa: &mut Nfa, next: u32) -> Result<u32> {
    // The branch is patched after its target state exists.
    let between = nfa.union([next, next])?;
    let one = nfa.bytes([(0x80, 0xbf, between)])?;
    let two = nfa.bytes([(0x80, 0xbf, one)])?;
    let three = nfa.bytes([(0x80, 0xbf, two)])?;
    // After these bytes, some sequences are not well-formed: table 3-7 of the Unicode Standard.
    let [e0, ed] = [nfa.bytes([(0xa0, 0xbf, one)])?, nfa.bytes([(0x80, 0x9f, one)])?];
    let [f0, f4] = [nfa.bytes([(0x90, 0xbf, two)])?, nfa.bytes([(0x80, 0x8f, two)])?];
    let first = [
        (0x00, 0x7f, between),
        (0xc2, 0xdf, one),
        (0xe0, 0xe0, e0),
        (0xe1, 0xec, two),
        (0xed, 0xed, ed),
        (0xee, 0xef, two),
        (0xf0, 0xf0, f0),
        (0xf1, 0xf3, three),
        (0xf4, 0xf4, f4),
    ];
    let character = nfa.bytes(first)?;
    nfa.patch(between, character);
    Ok(between)
}

/// A chain of the texts, with the start and the end between any two.
fn lower_substring(texts: &[String], meter: &Meter) -> Result<ByteDfa> {
    let mut nfa = Nfa::new(meter);
    let mut at = Nfa::ACCEPT;
    let mut starts = vec![at];
    for text in texts.iter().rev() {
        for &byte in text.as_bytes().iter().rev() {
            at = nfa.bytes([(byte, byte, at)])?;
        }
        at = nfa.union([Nfa::ACCEPT, at])?;
        starts.push(at);
    }
    let start = nfa.union(starts)?;
    nfa.determinize(start)
}

fn determinize(hir: &Hir, meter: &Meter) -> Result<ByteDfa> {
    let mut nfa = Nfa::new(meter);
    let start = copy(hir, &mut nfa, Nfa::ACCEPT, meter)?;
    nfa.determinize(start)
}

/// Copies the automaton of the pattern before state `behind` and returns its start.
fn copy(hir: &Hir, nfa: &mut Nfa, behind: u32, meter: &Meter) -> Result<u32> {
    add(&simplify(hir), nfa, behind, meter)
}

/// Adds a pattern before state `behind`. Counted repetitions are built here, so the subset
/// construction knows which states are copies of each other; `regex-automata` compiles everything
/// else.
fn add(hir: &Hir, nfa: &mut Nfa, behind: u32, meter: &Meter) -> Result<u32> {
    match hir.kind() {
        _ if !has_count(hir) => compiled(hir, nfa, behind, meter),
        HirKind::Repetition(Repetition { min, max, sub, .. }) => {
            let max = max.map(|max| max as usize);
            nfa.repeat(*min as usize, max, behind, |nfa, next| add(sub, nfa, next, meter))
        }
        HirKind::Concat(subs) => {
            let parts = subs.chunk_by(|a, b| !has_count(a) && !has_count(b));
            parts.rev().try_fold(behind, |behind, part| match part {
                [one] => add(one, nfa, behind, meter),
                many => compiled(&Hir::concat(many.to_vec()), nfa, behind, meter),
            })
        }
        HirKind::Alternation(subs) => {
            let starts: Result<Vec<u32>> = subs.iter().map(|sub| add(sub, nfa, behind, meter)).collect();
            nfa.union(starts?)
        }
        HirKind::Capture(capture) => add(&capture.sub, nfa, behind, meter),
        HirKind::Empty | HirKind::Literal(_) | HirKind::Class(_) | HirKind::Look(_) => {
            compiled(hir, nfa, behind, meter)
        }
    }
}

/// Whether the compiler makes several copies of a repeated part of the pattern.
fn has_count(hir: &Hir) -> bool {
    match hir.kind() {
        HirKind::Empty | HirKind::Literal(_) | HirKind::Class(_) | HirKind::Look(_) => false,
        HirKind::Repetition(repetition) => {
            repetition.min > 1 || repetition.max > Some(1) || has_count(&repetition.sub)
        }
        HirKind::Capture(capture) => has_count(&capture.sub),
        HirKind::Concat(subs) | HirKind::Alternation(subs) => subs.iter().any(has_count),
    }
}

/// Copies the automaton that `regex-automata` compiles for the pattern before state `behind`, and
/// returns its start.
fn compiled(hir: &Hir, nfa: &mut Nfa, behind: u32, meter: &Meter) -> Result<u32> {
    let bytes = meter.limits().bytes;
    let config = thompson::Config::new()
        .utf8(false)
        .which_captures(WhichCaptures::None)
        .nfa_size_limit(Some(bytes.min(Nfa::MAX_BYTES)));
    let source = thompson::Compiler::new()
        .configure(config)
        .build_from_hir(hir)
        // The pattern has no captures, no reverse search and is only one pattern: the remaining
        // error is size.
        .map_err(|_| Error::limit(Limit::Bytes(bytes)))?;
    let base = nfa.next_state()?;
    let at = |id: StateID| base + id.as_u32();
    for state in source.states() {
        match state {
            thompson::State::ByteRange { trans } => nfa.bytes([(trans.start, trans.end, at(trans.next))])?,
            thompson::State::Sparse(sparse) => {
                nfa.bytes(sparse.transitions.iter().map(|t| (t.start, t.end, at(t.next))))?
            }
            thompson::State::Dense(dense) => {
                let next = |byte| dense.matches_byte(byte).map(|next| (byte, byte, at(next)));
                nfa.bytes((0..=u8::MAX).filter_map(next))?
            }
            thompson::State::Look { look, next } => nfa.look(*look, at(*next))?,
            thompson::State::Union { alternates } => nfa.union(alternates.iter().map(|&id| at(id)))?,
            thompson::State::BinaryUnion { alt1, alt2 } => nfa.union([at(*alt1), at(*alt2)])?,
            thompson::State::Capture { next, .. } => nfa.union([at(*next)])?,
            thompson::State::Fail => nfa.dead()?,
            thompson::State::Match { .. } => nfa.union([behind])?,
        };
    }
    Ok(at(source.start_anchored()))
}

/// The same language without groups, with nested repetitions merged if possible.
///
/// `(x?){1000}` matches the empty string in a thousand ways, and the automaton would try them all
/// after each character; `x{0,1000}` has one.
fn simplify(hir: &Hir) -> Hir {
    match hir.kind() {
        HirKind::Empty | HirKind::Literal(_) | HirKind::Class(_) | HirKind::Look(_) => hir.clone(),
        HirKind::Capture(capture) => simplify(&capture.sub),
        HirKind::Concat(subs) => Hir::concat(subs.iter().map(simplify).collect()),
        HirKind::Alternation(subs) => Hir::alternation(subs.iter().map(simplify).collect()),
        HirKind::Repetition(outer) => {
            let sub = simplify(&outer.sub);
            if let HirKind::Repetition(inner) = sub.kind()
                && let Some((min, max)) = once(inner, outer)
            {
                return Hir::repetition(Repetition { min, max, ..inner.clone() });
            }
            Hir::repetition(outer.with(sub))
        }
    }
}

/// The counts of `inner` repeated by `outer`, if they have no gaps and are in range.
fn once(inner: &Repetition, outer: &Repetition) -> Option<(u32, Option<u32>)> {
    // For k repetitions of a to b, the counts are ka to kb; with a ≤ 1 ≤ b, no gap follows kb.
    if inner.min > 1 || inner.max == Some(0) || outer.max == Some(0) {
        return None;
    }
    let max = match (inner.max, outer.max) {
        (Some(inner), Some(outer)) => Some(inner.checked_mul(outer)?),
        _ => None,
    };
    Some((inner.min * outer.min, max))
}

/// The error message for a pattern with more than `most` of something.
pub(super) fn too_many(what: &str, most: usize) -> String {
    format!("more than {most} {what}; split the pattern, or list strings with `Constraint::choice` or `enum`")
}

/// The error message for a malformed pattern, with advice if the reason allows any.
fn refusal(kind: &ast::ErrorKind) -> String {
    let way_out = match kind {
        ast::ErrorKind::UnsupportedLookAround => {
            "intersect two constraints with `ByteDfa::intersection` instead; the `pattern` of a JSON schema may look around"
        }
        ast::ErrorKind::UnsupportedBackreference => {
            "no finite automaton remembers what a group matched; write out what may be repeated"
        }
        ast::ErrorKind::GroupUnclosed | ast::ErrorKind::GroupUnopened => {
            "close it, or escape the parenthesis with a backslash"
        }
        ast::ErrorKind::ClassUnclosed => "close it, or escape the bracket with a backslash",
        _ => return kind.to_string(),
    };
    format!("{kind}: {way_out}")
}

/// Rejects patterns that need far more memory or time than their length suggests.
#[derive(Default)]
struct Weights {
    named: usize,
    /// Of the current class; the innermost brackets count for all enclosing ones.
    items: usize,
}

impl Weights {
    fn named(&mut self, offset: usize) -> Result<()> {
        self.named += 1;
        if self.named > MAX_NAMED {
            return Err(Error::pattern(offset, too_many("classes with a name", MAX_NAMED)));
        }
        Ok(())
    }
}

impl ast::Visitor for Weights {
    type Output = ();
    type Err = Error;

    fn finish(self) -> Result<()> {
        Ok(())
    }

    fn visit_pre(&mut self, ast: &Ast) -> Result<()> {
        self.items = 0;
        match ast {
            Ast::ClassUnicode(_) | Ast::ClassPerl(_) => self.named(ast.span().start.offset),
            _ => Ok(()),
        }
    }

    fn visit_class_set_item_pre(&mut self, item: &ClassSetItem) -> Result<()> {
        self.items += 1;
        let offset = item.span().start.offset;
        if self.items > MAX_ITEMS {
            return Err(Error::pattern(offset, too_many("items in a class", MAX_ITEMS)));
        }
        match item {
            ClassSetItem::Unicode(_) | ClassSetItem::Perl(_) => self.named(offset),
            _ => Ok(()),
        }
    }
}

/// Finds the offset of the first word boundary of a pattern.
struct FirstBoundary;

impl ast::Visitor for FirstBoundary {
    type Output = ();
    type Err = usize;

    fn finish(self) -> std::result::Result<(), usize> {
        Ok(())
    }

    fn visit_pre(&mut self, ast: &Ast) -> std::result::Result<(), usize> {
        match ast {
            Ast::Assertion(assertion) if is_boundary(&assertion.kind) => Err(assertion.span.start.offset),
            _ => Ok(()),
        }
    }
}

fn is_boundary(kind: &AssertionKind) -> bool {
    use AssertionKind::{EndLine, EndText, StartLine, StartText};
    !matches!(kind, StartLine | EndLine | StartText | EndText)
}
