//! Regular expressions: read by `regex-syntax`, compiled to a nondeterministic automaton by `regex-automata`, determinised here.
//!
//! `regex-automata` compiles the pattern to its Thompson automaton, which is copied state by state
//! and determinised by [`Nfa::determinize`]: the full match is built in (acceptance at the end of the text, all
//! alternatives, no priorities), look-around is exact, Unicode word boundaries included, and the clock is
//! watched. The tests hold the result against `regex-automata`'s own dense automaton.
//!
//! [`RegexOptions`] say how a pattern is read; `ascii` writes its named classes in ASCII.

mod ascii;

use std::sync::Arc;

use regex_automata::nfa::thompson::{self, WhichCaptures};
use regex_automata::util::primitives::StateID;
use regex_syntax::ast::{self, AssertionKind, Ast, ClassSetItem};
use regex_syntax::hir::translate::TranslatorBuilder;
use regex_syntax::hir::{Hir, HirKind, Repetition};

use super::json_schema::ecma;
use crate::automaton::{ByteDfa, Nfa};
use crate::error::{Error, Limit, Result};
use crate::limits::Meter;

/// How a regex is read.
///
/// ```
/// use burn_dfa::constraint::RegexOptions;
/// use burn_dfa::{Constraint, Limits};
///
/// let ascii = RegexOptions::new().with_ascii_classes(true);
/// for (options, is_digit) in [(RegexOptions::new(), true), (ascii, false)] {
///     let dfa = Constraint::regex_with(r"\d", &options)?.to_byte_dfa(&Limits::default())?.unwrap();
///     assert!(dfa.matches(b"7"));
///     assert_eq!(dfa.matches("\u{09ED}".as_bytes()), is_digit); // seven in Bengali
/// }
/// # Ok::<(), burn_dfa::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RegexOptions {
    /// Whether `\d`, `\w`, `\s`, their negations and word boundaries know ASCII alone, as in XGrammar and in Python's
    /// `re.ASCII`: digits are `0` to `9`. All else is as it was: `.` and `\D` are characters of Unicode. Default: false.
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

/// A pattern that was read.
#[derive(Clone, Debug)]
pub(crate) struct Regex {
    form: Form,
}

/// What a regex is made of.
#[derive(Clone, Debug)]
enum Form {
    /// A pattern in the syntax of `regex-syntax`.
    Hir(Hir),
    /// A pattern of ECMA-262.
    Ecma(ecma::Pattern),
    /// Any number of these texts in a row, in their order, or none.
    Substring(Vec<String>),
}

/// Most bytes of a pattern's Thompson automaton, where the limits allow as much.
const NFA_BYTES: usize = 128 << 20;

/// Most bytes of a pattern.
pub(super) const MAX_BYTES: usize = 1 << 20;

/// Most classes with a name, such as `\w`, in a pattern: two bytes there are 6 KB of ranges here.
pub(super) const MAX_NAMED: usize = 4096;

/// Most items between the brackets of one class, whose reading takes time by their square.
pub(super) const MAX_ITEMS: usize = 4096;

impl Regex {
    /// The pattern as text, near to how it was given; `None` where it was not read by `regex-syntax`.
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

    /// Reads a pattern by some options; gives with it the pattern that means the same without them.
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
        // Bytes that are not UTF-8 are allowed where the pattern asks for them.
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

    /// Reads a pattern of ECMA-262; the case of ASCII letters makes no difference where `ignore_case`.
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

    /// The language of the strings that the pattern matches as a whole.
    pub(crate) fn lower(&self, meter: &Meter) -> Result<ByteDfa> {
        match &self.form {
            Form::Hir(hir) => determinize(hir, meter),
            Form::Ecma(pattern) => pattern.lower_whole(meter),
            Form::Substring(texts) => lower_substring(texts, meter),
        }
    }
}

/// The language of the strings that `hir`, a pattern of another dialect, matches as a whole. (Printing and parsing it
/// would not do: `regex-syntax` prints `(a+)?` as `a+?`.)
pub(super) fn lower(hir: &Hir, meter: &Meter) -> Result<ByteDfa> {
    determinize(hir, meter)
}

/// The language of the strings that `hir` matches somewhere: `(?s:.*)` before and after.
pub(super) fn lower_search(hir: &Hir, meter: &Meter) -> Result<ByteDfa> {
    let mut nfa = Nfa::new(meter);
    let behind = any_text(&mut nfa, Nfa::ACCEPT)?;
    let found = copy(hir, &mut nfa, behind, meter)?;
    let start = any_text(&mut nfa, found)?;
    nfa.determinize(start)
}

/// Any characters in UTF-8, and then `next`. It is written here, since the compiler of patterns takes longer to begin with classes
/// beyond ASCII than for most patterns.
fn any_text(nfa: &mut Nfa, next: u32) -> Result<u32> {
    // The branch is patched once there is a state to go on to.
    let between = nfa.union([next, next])?;
    let one = nfa.bytes([(0x80, 0xbf, between)])?;
    let two = nfa.bytes([(0x80, 0xbf, one)])?;
    let three = nfa.bytes([(0x80, 0xbf, two)])?;
    // Behind these bytes some sequences are not well-formed: table 3-7 of the Unicode Standard.
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

/// Copies the automaton of the pattern in front of `behind` and returns where it starts.
fn copy(hir: &Hir, nfa: &mut Nfa, behind: u32, meter: &Meter) -> Result<u32> {
    let bytes = meter.limits().bytes;
    let config = thompson::Config::new()
        .utf8(false)
        .which_captures(WhichCaptures::None)
        .nfa_size_limit(Some(bytes.min(NFA_BYTES)));
    let source = thompson::Compiler::new()
        .configure(config)
        .build_from_hir(&simplify(hir))
        // There is no capture, no pattern too many, no reverse search: what is left is size.
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
            thompson::State::Fail => nfa.bytes([])?,
            thompson::State::Match { .. } => nfa.union([behind])?,
        };
    }
    Ok(at(source.start_anchored()))
}

/// The same language without groups, and with repetitions of repetitions made one where they can be.
///
/// `(x?){1000}` has a thousand ways to be empty, and the automaton would go through them all after each
/// character; `x{0,1000}` has one.
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

/// The counts of `inner` repeated by `outer` where they have no gaps and are in range.
fn once(inner: &Repetition, outer: &Repetition) -> Option<(u32, Option<u32>)> {
    // Of k times between a and b the counts are ka to kb; with a ≤ 1 ≤ b there is no gap after kb.
    if inner.min > 1 || inner.max == Some(0) || outer.max == Some(0) {
        return None;
    }
    let max = match (inner.max, outer.max) {
        (Some(inner), Some(outer)) => Some(inner.checked_mul(outer)?),
        _ => None,
    };
    Some((inner.min * outer.min, max))
}

/// Why a pattern with more than `most` of something is refused.
pub(super) fn too_many(what: &str, most: usize) -> String {
    format!("more than {most} {what}; split the pattern, or list strings with `Constraint::choice` or `enum`")
}

/// What is said of a pattern that cannot be read, with the way out where the reason leaves it open.
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

/// Refuses what takes far more room or time than it is long.
#[derive(Default)]
struct Weights {
    named: usize,
    /// Of the class at hand, the innermost brackets counting for all around them.
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

/// Where the first word boundary of a pattern is written.
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
