//! A report on a compiled grammar: the use of its rules, and the called parts.

use super::Compiled;
use super::counted::Counting;
use super::emit::CalledProcedure;
use super::flat::{ExprId, FlatExpr, FlatGrammar};
use super::form::Grammar;
use super::shape::{class, literal, times};
use burn_dfa_automata::{ByteDfa, FastMap};
use burn_dfa_common::{Limits, Result, limits::Meter};

/// How a grammar is compiled; see [`Grammar::report`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GrammarReport {
    /// The use of each rule, by name: the start rule, then the others in order of first occurrence.
    pub rules: Vec<(String, RuleUse)>,
    /// The called parts; empty if no stack is needed.
    pub calls: Vec<CalledPart>,
    /// The most stacks that readings of the same text have at once; 1 if the text determines the
    /// stack.
    pub stacks: usize,
    /// The limit on the number of stacks.
    pub max_stacks: usize,
}

/// The use of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RuleUse {
    /// It is copied at each reference; parts of it may be [called](GrammarReport::calls).
    Copied,
    /// It is called as a whole, at least from some references.
    Called,
    /// The start rule does not refer to it, directly or indirectly.
    Unused,
    /// It is referenced but has no finite text.
    Textless,
}

/// A called part: it pushes a frame on the stack at its start, and pops the frame at its end.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CalledPart {
    /// A rule, by name.
    Rule(String),
    /// Parts of a rule.
    Between {
        /// The rule, by name.
        rule: String,
        /// The part before the call, which is not called; `None` if it is in another rule.
        opens: Option<String>,
        /// The part at the end of the call.
        closes: String,
    },
}

impl Grammar {
    /// Reports how the grammar is compiled, within `limits`.
    ///
    /// ```
    /// use burn_dfa_tokens::Limits;
    /// use burn_dfa_tokens::constraint::{CalledPart, Grammar, RuleUse, Syntax};
    ///
    /// let text = r#"
    ///     root ::= digit | "(" root ")"
    ///     digit ::= [0-9]
    ///     other ::= "x"
    /// "#;
    /// let report = Grammar::read(Syntax::Gbnf, text, None)?.report(&Limits::default())?;
    /// let uses: Vec<RuleUse> = report.rules.iter().map(|(_, of)| *of).collect();
    /// assert_eq!(uses, [RuleUse::Copied, RuleUse::Copied, RuleUse::Unused]);
    /// let CalledPart::Between { opens, closes, .. } = &report.calls[0] else {
    ///     panic!("{report:?}")
    /// };
    /// assert_eq!((opens.as_deref(), closes.as_str()), (Some("\"(\""), "\")\""));
    /// # Ok::<(), burn_dfa_tokens::Error>(())
    /// ```
    ///
    /// # Errors
    /// The grammar cannot be compiled.
    pub fn report(&self, limits: &Limits) -> Result<GrammarReport> {
        let meter = Meter::start(limits);
        let mut flat = FlatGrammar::new(self, &meter, &mut Counting::default())?;
        let Compiled { stacks, calls, called, .. } = self.determinize(&mut flat, &meter)?;
        let reached = reached(&flat, self.start);
        let rule_use = |rule: usize| match () {
            () if !reached[rule] => RuleUse::Unused,
            () if !flat.is_productive(flat.given[rule]) => RuleUse::Textless,
            () if called[flat.stands[rule]] => RuleUse::Called,
            () => RuleUse::Copied,
        };
        let rules =
            self.rules_from_start().map(|rule| (self.rules[rule].name.clone(), rule_use(rule))).collect();
        let words = Words { grammar: self, flat: &flat };
        let holders = holders(&flat);
        let calls = calls.into_iter().map(|called| match called {
            CalledProcedure::Rule(rule) => CalledPart::Rule(self.rules[rule].name.clone()),
            CalledProcedure::Slice { sequence, exprs, from, to } => {
                let rule =
                    holders.get(&sequence).map_or(String::new(), |&rule| self.rules[rule].name.clone());
                let opens = from.checked_sub(1).map(|before| words.of(exprs[before]));
                CalledPart::Between { rule, opens, closes: words.of(exprs[to]) }
            }
        });
        let mut distinct: Vec<CalledPart> = Vec::new();
        calls.for_each(|call| {
            if !distinct.contains(&call) {
                distinct.push(call)
            }
        });
        Ok(GrammarReport {
            rules,
            calls: distinct,
            stacks,
            max_stacks: limits.stacks.clamp(1, Limits::MAX_STACKS),
        })
    }
}

/// By rule, whether texts may hold one of its.
fn reached(flat: &FlatGrammar, start: usize) -> Vec<bool> {
    let mut reached = vec![false; flat.given.len()];
    let mut rest = vec![start];
    while let Some(rule) = rest.pop() {
        if !std::mem::replace(&mut reached[rule], true) {
            flat.rules_of(flat.given[rule], &mut rest);
        }
    }
    reached
}

/// The first rule with each sequence.
fn holders(flat: &FlatGrammar) -> FastMap<ExprId, usize> {
    let mut holders = FastMap::default();
    for (rule, &body) in flat.bodies.iter().enumerate() {
        let mut rest = vec![body];
        while let Some(expr) = rest.pop() {
            let inner: &[ExprId] = match flat.get(expr) {
                FlatExpr::Sequence(inner) => {
                    holders.entry(expr).or_insert(rule);
                    inner
                }
                FlatExpr::Choice(inner) => inner,
                FlatExpr::Repeat { inner, .. } => std::slice::from_ref(inner),
                _ => &[],
            };
            rest.extend_from_slice(inner);
        }
    }
    holders
}

/// Flat expressions in a readable notation.
struct Words<'p, 'm> {
    grammar: &'p Grammar,
    flat: &'p FlatGrammar<'m>,
}

impl Words<'_, '_> {
    fn of(&self, expr: ExprId) -> String {
        let joined = |exprs: &[ExprId], between: &str| {
            let exprs: Vec<String> = exprs.iter().map(|&expr| self.of(expr)).collect();
            format!("({})", exprs.join(between))
        };
        match self.flat.get(expr) {
            FlatExpr::Bytes(bytes) => literal(bytes),
            FlatExpr::Dfa { dfa, terminal } => {
                let word = word_of(&self.flat.dfas[*dfa]).map(|word| literal(&word));
                let of = word.or_else(|| self.flat.class_of(*dfa).map(class));
                of.unwrap_or_else(|| if terminal.is_some() { "a terminal" } else { "a pattern" }.to_owned())
            }
            FlatExpr::Counted(_) => "a part of counted tokens".to_owned(),
            FlatExpr::Nested(_) => "another constraint".to_owned(),
            FlatExpr::Rule(rule) => self.grammar.rules[*rule].name.clone(),
            FlatExpr::Sequence(exprs) => joined(exprs, " "),
            FlatExpr::Choice(exprs) => joined(exprs, " | "),
            FlatExpr::Repeat { inner, min, max } => self.of(*inner) + &times(*min, *max),
            FlatExpr::Tokens(set) => self.flat.sets.get(*set).to_string(),
        }
    }
}

/// Most bytes shown of a word.
const SHOWN: usize = 64;

/// The only word of an automaton, if it has but one.
fn word_of(dfa: &ByteDfa) -> Option<Vec<u8>> {
    let (mut word, mut at) = (Vec::new(), dfa.start());
    loop {
        let mut next = (0..=u8::MAX).map(|byte| (byte, dfa.next(at, byte))).filter(|(_, to)| to.0 != 0);
        match (next.next(), next.next(), dfa.is_accepting(at)) {
            (None, _, true) => return Some(word),
            (Some((byte, to)), None, false) if word.len() < SHOWN => {
                word.push(byte);
                at = to;
            }
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Syntax;
    use super::*;

    fn report(text: &str) -> GrammarReport {
        Grammar::read(Syntax::Gbnf, text, None).unwrap().report(&Limits::default()).unwrap()
    }

    #[test]
    fn recursion_at_the_ends_is_not_called() {
        let report = report("root ::= root \"+\" item | item\nitem ::= [0-9] item?");
        assert_eq!((report.calls.len(), report.stacks), (0, 1));
        assert!(report.rules.iter().all(|(_, of)| *of == RuleUse::Copied), "{report:?}");
    }

    #[test]
    fn rules_without_a_text_or_a_use_are_named() {
        let report = report("root ::= \"a\" | loop\nloop ::= \"b\" loop\nleft ::= \"c\"");
        let uses: Vec<(&str, RuleUse)> = report.rules.iter().map(|(name, of)| (name.as_str(), *of)).collect();
        assert_eq!(uses, [("root", RuleUse::Copied), ("loop", RuleUse::Textless), ("left", RuleUse::Unused)]);
    }

    #[test]
    fn calls_are_named_by_what_opens_and_closes_them() {
        let report = report("root ::= \"a\" | \"[\" (root (\",\" root)*)? \"]\" | [{] root [}]");
        let between = |opens: &str, closes: &str| CalledPart::Between {
            rule: "root".into(),
            opens: Some(opens.into()),
            closes: closes.into(),
        };
        for call in [between("\"[\"", "\"]\""), between("\"{\"", "\"}\"")] {
            assert!(report.calls.contains(&call), "{report:?}");
        }
    }
}
