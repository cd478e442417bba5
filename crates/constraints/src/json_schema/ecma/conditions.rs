//! Patterns as conditions on a whole string, decided separately.
//!
//! A pattern with counted characters and look-around needs the product of the automata of all
//! conditions and counts. Example: `^(?=.*[a-z])(?!.*<).{8,64}$` claims that the string matches
//! `^.*[a-z]`, does not match `^.*<`, matches `^.*$`, and has 8 to 64 characters. The automata of
//! the first three have a few states each. The length is counted together with `minLength` and
//! `maxLength`.

use super::machine;
use super::term::{Side, Term};
use crate::hir;
use burn_dfa_automata::{ByteDfa, Op};
use burn_dfa_common::{Result, limits::Meter};

/// The least and the greatest number of characters of a string.
pub(in super::super) type Length = (u64, Option<u64>);

/// Counts up to this number stay in the pattern.
const FEW: u64 = 32;

/// The automaton of the strings with a match of `term`.
///
/// # Errors
/// A limit is exceeded.
pub(super) fn lower(term: &Term, meter: &Meter) -> Result<ByteDfa> {
    let terms = flat(term);
    let starts = terms.iter().take_while(|term| matches!(term, Term::Start)).count();
    let looks = terms[starts..].iter().take_while(|term| is_ahead(term)).count();
    if starts == 0 || looks == 0 {
        return single(term, meter);
    }
    let rest = anchored(terms[starts + looks..].iter().map(|&term| term.clone()));
    let mut found = single(&rest, meter)?;
    for look in &terms[starts..starts + looks] {
        if let Term::Look { negated, term, .. } = look {
            let strings = single(&anchored([Term::clone(term)]), meter)?;
            let op = if *negated { Op::Difference } else { Op::Intersection };
            found = found.product(&strings, op, meter)?;
        }
    }
    Ok(found)
}

/// The automaton of the strings with a match of `term`, without splitting the pattern.
fn single(term: &Term, meter: &Meter) -> Result<ByteDfa> {
    match term.hir() {
        Some(hir) => hir::lower_search(&hir, meter),
        None => machine::lower(term, meter),
    }
}

/// The length of the whole string as bounded by a repetition, and the pattern without the counts of
/// the repetition. Both claims together are equivalent to the pattern. `None` if no such repetition
/// is found.
pub(super) fn without_length(term: &Term) -> Option<(Length, Term)> {
    without_length_above(FEW, term)
}

fn without_length_above(few: u64, term: &Term) -> Option<(Length, Term)> {
    let terms = flat(term);
    let starts = terms.iter().take_while(|term| matches!(term, Term::Start)).count();
    if starts == 0 {
        return None;
    }
    let looks = terms[starts..].iter().take_while(|term| is_ahead(term)).count();
    let mut length: Option<Length> = None;
    let mut claim = |(min, max): Length| {
        let (shortest, longest) = length.unwrap_or((0, None));
        length = Some((shortest.max(min), longest.into_iter().chain(max).min()));
    };
    let mut kept = Vec::new();
    for look in &terms[starts..starts + looks] {
        let counted = match look {
            Term::Look { side, negated: false, term } => {
                uncounted(few, &flat(term)).map(|(length, terms)| {
                    claim(length);
                    Term::Look { side: *side, negated: false, term: Box::new(Term::Concat(terms)) }
                })
            }
            _ => None,
        };
        kept.push(counted.unwrap_or_else(|| Term::clone(look)));
    }
    let rest = &terms[starts + looks..];
    match uncounted(few, rest) {
        Some((length, terms)) => {
            claim(length);
            kept.extend(terms);
        }
        None => kept.extend(rest.iter().map(|&term| term.clone())),
    }
    length.map(|length| (length, anchored(kept)))
}

/// For terms from the start of the string to its end: the length of the string, and the terms
/// without the count, if one of them is a repetition of many characters and the rest have a fixed
/// number of characters.
fn uncounted(few: u64, terms: &[&Term]) -> Option<(Length, Vec<Term>)> {
    let [inner @ .., Term::End] = terms else { return None };
    let mut counted = None;
    let mut fixed: u64 = 0;
    for (at, term) in inner.iter().enumerate() {
        match (width(term), term) {
            (Some(width), _) => fixed = fixed.checked_add(width)?,
            (None, Term::Repeat { term, min, max }) if counted.is_none() => {
                let width = width(term).filter(|&width| width > 0)?;
                counted = Some((at, width, u64::from(*min), max.map(u64::from)));
            }
            _ => return None,
        }
    }
    let (at, width, min, max) = counted?;
    let characters = |count: u64| count.checked_mul(width)?.checked_add(fixed);
    let length = (characters(min)?, max.map_or(Some(None), |max| characters(max).map(Some))?);
    if length.1.unwrap_or(length.0) <= few {
        return None;
    }
    let mut terms: Vec<Term> = terms.iter().map(|&term| term.clone()).collect();
    if let Term::Repeat { min, max, .. } = &mut terms[at] {
        (*min, *max) = (0, None);
    }
    Some((length, terms))
}

/// The number of characters of a match of `term`, if it is fixed.
fn width(term: &Term) -> Option<u64> {
    match term {
        Term::Class(_) => Some(1),
        Term::Concat(terms) => terms.iter().try_fold(0u64, |sum, term| sum.checked_add(width(term)?)),
        Term::Alternate(terms) => {
            let first = width(terms.first()?)?;
            terms.iter().all(|term| width(term) == Some(first)).then_some(first)
        }
        Term::Repeat { term, min, max } if *max == Some(*min) => width(term)?.checked_mul(u64::from(*min)),
        Term::Repeat { .. } => None,
        Term::Start | Term::End | Term::Boundary(_) | Term::Look { .. } => Some(0),
    }
}

/// The sequence of terms in `term`.
fn flat(term: &Term) -> Vec<&Term> {
    match term {
        Term::Concat(terms) => terms.iter().flat_map(flat).collect(),
        _ => vec![term],
    }
}

fn is_ahead(term: &Term) -> bool {
    matches!(term, Term::Look { side: Side::Ahead, .. })
}

fn anchored(terms: impl IntoIterator<Item = Term>) -> Term {
    Term::Concat(std::iter::once(Term::Start).chain(terms).collect())
}

#[cfg(test)]
mod tests {
    use super::super::read;
    use super::*;
    use burn_dfa_common::Limits;

    fn term(pattern: &str) -> Term {
        read::parse(pattern, false).unwrap()
    }

    fn lowered(pattern: &str) -> ByteDfa {
        lower(&term(pattern), &Meter::start(&Limits::default())).unwrap()
    }

    #[test]
    fn conditions_apart_are_the_pattern() {
        let limits = Limits::default();
        let meter = Meter::start(&limits);
        for pattern in [
            r"^(?=.*[a-z])(?=.*[A-Z])(?=.*\d)(?=.*[^\w\s]).{4,7}$",
            r"^(?!.*<[^>]+>).{0,9}$",
            r"^(?=.{1,9}$)(?:(?!-)[a-z0-9-]{1,4}(?<!-)\.)+(?!-)[a-z]{2,4}$",
            r"^(?=a|b$)(?!ab)",
            r"^(?=a$)|b",
            r"^^(?!(?=a)b|(?!a)c)(?=.$)[abc]",
            r"^(?=\b)(?!\B.)\w+$",
            r"^(?!)(?=a)a$",
            r"^(?:(?=ab))(?!abc)a",
            r"(?=a)^(?!ab)a",
            r"^(?=a)?b",
        ] {
            let whole = machine::lower(&term(pattern), &meter).unwrap();
            assert_eq!(lowered(pattern), whole, "{pattern}");
        }
    }

    #[test]
    fn a_length_apart_is_the_pattern() {
        let limits = Limits::default();
        let meter = Meter::start(&limits);
        for (pattern, expected) in [
            (r"^.{0,9}$", Some((0, Some(9)))),
            (r"^[a-z][a-z0-9]{2,6}[é-ü]?$", None),
            (r"^[a-z][a-z0-9]{2,6}[é-ü]{2}$", Some((5, Some(9)))),
            (r"^(?:[a-f]{2}:){2,4}$", Some((6, Some(12)))),
            (r"^(?:ab|cd|[é-ü]b){3,}x$", Some((7, None))),
            (r"^(?:ab|c){3,5}$", None),
            (r"^(?=.{3,7}$)(?!a)\w{2,9}$", Some((3, Some(7)))),
            (r"^(?=.{3,7})\w{2,9}$", Some((2, Some(9)))),
            (r"^(?!.{3,7}$)\w*$", None),
            (r"^(?=\w{5,6}$).{1,9}$", Some((5, Some(6)))),
            (r"^(?=\w{5,6}$).{7,9}$", Some((7, Some(6)))),
            (r"^(?=.{3,}$)(a|bc)*$", Some((3, None))),
            (r"^\b[ab]{2,6}\b(?<!b)(?!a)$", Some((2, Some(6)))),
            (r"^[ab]{2,6}[ab]*$", None),
            (r"^[ab]{2,6}", None),
            (r"[ab]{2,6}$", None),
            (r"^[ab]{2,6}$|c", None),
            (r"^(?:$a?){2,6}$", None),
            (r"^(?:a{2}){2,6}b{3}$", Some((7, Some(15)))),
            (r"^(?:^a$){0,6}$", Some((0, Some(6)))),
            (r"^(?:){2,6}$", None),
        ] {
            let found = without_length_above(0, &term(pattern));
            assert_eq!(found.as_ref().map(|found| found.0), expected, "{pattern}");
            let Some(((min, max), rest)) = found else { continue };
            let rest = lower(&rest, &meter).unwrap();
            let max = max.map(|max| max.to_string()).unwrap_or_default();
            // An empty range is no pattern.
            let lengths = read::parse(&format!(r"^[\s\S]{{{min},{max}}}$"), false);
            let lengths = lengths.unwrap_or_else(|_| term(r"^(?!)"));
            let lengths = lower(&lengths, &meter).unwrap();
            let both = rest.product(&lengths, Op::Intersection, &meter).unwrap();
            assert_eq!(both, lowered(pattern), "{pattern}");
        }
        // Few characters stay in the pattern.
        assert!(without_length(&term("^[a-z]{1,32}$")).is_none());
        assert!(without_length(&term("^[a-z]{1,33}$")).is_some());
    }
}
