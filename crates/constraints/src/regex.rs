//! Regular expressions: parsed by `regex-syntax`, lowered by [`hir`].
//!
//! [`RegexOptions`] select the syntax; `ascii` rewrites named classes in ASCII.

mod ascii;

use burn_dfa_common::{Error, Result, limits::Meter};
use std::sync::Arc;

use regex_syntax::ast::{self, AssertionKind, Ast, ClassSetItem};
use regex_syntax::hir::translate::TranslatorBuilder;
use regex_syntax::hir::{Hir, HirKind};

use super::hir;
use super::json_schema::ecma;
use super::pattern_limits::{MAX_BYTES, MAX_ITEMS, MAX_NAMED, too_many};
use burn_dfa_automata::ByteDfa;

/// How a regex is read.
///
/// ```
/// use burn_dfa_tokens::constraint::RegexOptions;
/// use burn_dfa_tokens::{Constraint, Limits};
///
/// let ascii = RegexOptions::new().with_ascii_classes(true);
/// for (options, is_digit) in [(RegexOptions::new(), true), (ascii, false)] {
///     let dfa =
///         Constraint::regex_with(r"\d", &options)?.to_byte_dfa(&Limits::default())?.unwrap();
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
    /// Its name is part of the `Debug` text, which the identity of a grammar digests.
    form: RegexSource,
}

/// The source of a regex.
#[derive(Clone, Debug)]
enum RegexSource {
    /// A pattern in the syntax of `regex-syntax`.
    Hir(Hir),
    /// A pattern of ECMA-262.
    Ecma(ecma::Pattern),
}

impl Regex {
    /// The pattern as text, close to the original; `None` if another parser than `regex-syntax`
    /// read it.
    pub(super) fn text(&self) -> Option<String> {
        let RegexSource::Hir(hir) = &self.form else { return None };
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
        Ok((Self { form: RegexSource::Hir(hir) }, plain))
    }

    /// Parses a pattern of ECMA-262; `ignore_case` ignores the case of ASCII letters.
    ///
    /// # Errors
    /// The offset and the reason.
    pub(crate) fn ecma(pattern: &str, ignore_case: bool) -> std::result::Result<Self, (usize, String)> {
        match ecma::Pattern::parse_with(pattern, ignore_case) {
            Ok(pattern) => Ok(Self { form: RegexSource::Ecma(pattern) }),
            Err(refusal) => Err((refusal.offset, refusal.reason)),
        }
    }

    /// The language of the strings matched as a whole.
    pub(crate) fn lower(&self, meter: &Meter) -> Result<ByteDfa> {
        match &self.form {
            RegexSource::Hir(hir) => hir::lower(hir, meter),
            RegexSource::Ecma(pattern) => pattern.lower_whole(meter),
        }
    }
}

/// The error message for a malformed pattern, with advice if the reason allows any.
fn refusal(kind: &ast::ErrorKind) -> String {
    let advice = match kind {
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
    format!("{kind}: {advice}")
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
