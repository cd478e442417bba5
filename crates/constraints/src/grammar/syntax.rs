//! The syntaxes of grammars, and constraints read from them.

use std::fmt;
use std::str::FromStr;

use super::{Grammar, ebnf, gbnf, lark};
use crate::{Constraint, JsonOptions, Kind, StructuralTag};
use burn_dfa_common::{Error, Result};

/// The syntax of a grammar. The caller selects it; it is never guessed from a text.
///
/// ```
/// use burn_dfa_tokens::constraint::Syntax;
///
/// assert_eq!("lark".parse::<Syntax>()?, Syntax::Lark);
/// assert_eq!(Syntax::Gbnf.start(), "root");
/// # Ok::<(), burn_dfa_tokens::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Syntax {
    /// The syntax of llama.cpp.
    Gbnf,
    /// The syntax of XGrammar, also used by SGLang and vLLM.
    Ebnf,
    /// The syntax of llguidance, which OpenAI uses for tools; it cuts texts into terminals.
    Lark,
}

impl Syntax {
    /// All syntaxes.
    pub const ALL: [Self; 3] = [Self::Gbnf, Self::Ebnf, Self::Lark];

    /// The default start rule.
    pub fn start(self) -> &'static str {
        match self {
            Self::Gbnf | Self::Ebnf => "root",
            Self::Lark => "start",
        }
    }

    /// The name, in small letters.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gbnf => "gbnf",
            Self::Ebnf => "ebnf",
            Self::Lark => "lark",
        }
    }
}

impl fmt::Display for Syntax {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Syntax {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let found = Self::ALL.into_iter().find(|syntax| syntax.name() == name);
        found.ok_or_else(|| Error::input(format!("`{name}` is no syntax of grammars: gbnf, ebnf or lark")))
    }
}

/// A grammar as it was given.
#[derive(Clone, Debug, PartialEq)]
pub(in super::super) enum GivenGrammar {
    /// Its text, and the start rule if given.
    Text { syntax: Syntax, text: String, start: Option<String> },
    /// A structural tag, with the options of its schemas.
    Tag(Box<StructuralTag>, Box<JsonOptions>),
}

impl Grammar {
    /// Reads a grammar; the start rule is `start`, or the [default](Syntax::start).
    ///
    /// # Errors
    /// The text is malformed or unsupported; the error has the [`location`](Error::location).
    pub fn read(syntax: Syntax, text: &str, start: Option<&str>) -> Result<Self> {
        match syntax {
            Syntax::Gbnf => gbnf::read(text, start),
            Syntax::Ebnf => ebnf::read(text, start),
            Syntax::Lark => lark::read(text, start),
        }
    }
}

impl Constraint {
    /// The texts of a context-free grammar, written in one of the [syntaxes](Syntax).
    ///
    /// Left and right recursion become loops; only recursion with text before and after it needs a
    /// stack, of [`Limits::frames`](crate::Limits::frames). A grammar may be ambiguous. Grammars
    /// whose stack height stays ambiguous without bound, such as palindromes, are rejected at
    /// compilation.
    ///
    /// ```
    /// use burn_dfa_tokens::constraint::Syntax;
    /// use burn_dfa_tokens::{Constraint, Limits};
    ///
    /// let sums = r#"
    ///     root ::= term ("+" term)*
    ///     term ::= [0-9]+ | "(" root ")"
    /// "#;
    /// let automaton =
    ///     Constraint::grammar(Syntax::Gbnf, sums)?.to_automaton(&Limits::default())?.unwrap();
    /// assert!(automaton.matches(b"1+(2+(33+4))") && !automaton.matches(b"1+(2"));
    ///
    /// let error = Constraint::grammar(Syntax::Gbnf, "root ::= term").unwrap_err();
    /// assert_eq!(error.location(), Some((1, 10)));
    /// # Ok::<(), burn_dfa_tokens::Error>(())
    /// ```
    ///
    /// # Errors
    /// The text is malformed or unsupported; the error has the [`location`](Error::location).
    pub fn grammar(syntax: Syntax, text: &str) -> Result<Self> {
        Self::given_grammar(syntax, text, None)
    }

    /// Like [`grammar`](Self::grammar), with the start rule `start`.
    ///
    /// # Errors
    /// See [`grammar`](Self::grammar).
    pub fn grammar_from(syntax: Syntax, text: &str, start: &str) -> Result<Self> {
        Self::given_grammar(syntax, text, Some(start))
    }

    pub(in super::super) fn given_grammar(syntax: Syntax, text: &str, start: Option<&str>) -> Result<Self> {
        let grammar = Grammar::read(syntax, text, start)?;
        let given = GivenGrammar::Text { syntax, text: text.to_owned(), start: start.map(str::to_owned) };
        Ok(Kind::Grammar(grammar.into(), Some(given.into())).into())
    }
}
