//! Named classes of a pattern in ASCII: `\d` becomes `[[:digit:]]`, and a word boundary `\b`
//! becomes `(?-u:\b)`.
//!
//! This works on the parsed pattern, so the rewritten pattern means the same to every parser.

use std::sync::Arc;

use regex_syntax::ast::print::Printer;
use regex_syntax::ast::{
    Ast, ClassAscii, ClassAsciiKind, ClassBracketed, ClassPerl, ClassPerlKind, ClassSet, ClassSetItem, Flag,
    Flags, FlagsItem, FlagsItemKind, Group, GroupKind,
};

use super::is_boundary;

/// The pattern with its named classes in ASCII, and its text.
pub(super) fn written(mut ast: Ast) -> (Ast, Arc<str>) {
    rewrite(&mut ast);
    let mut text = String::new();
    Printer::new().print(&ast, &mut text).expect("a string can be written to");
    (ast, text.into())
}

/// Rewrites a pattern; the parser limits its nesting depth.
fn rewrite(ast: &mut Ast) {
    match ast {
        Ast::ClassPerl(class) => {
            let kind = ClassSet::Item(ClassSetItem::Ascii(ascii(class)));
            *ast = Ast::class_bracketed(ClassBracketed { span: class.span, negated: false, kind });
        }
        Ast::ClassBracketed(class) => rewrite_set(&mut class.kind),
        Ast::Assertion(assertion) if is_boundary(&assertion.kind) => {
            let span = assertion.span;
            let item = |kind| FlagsItem { span, kind };
            let items = [FlagsItemKind::Negation, FlagsItemKind::Flag(Flag::Unicode)].map(item).to_vec();
            let kind = GroupKind::NonCapturing(Flags { span, items });
            *ast = Ast::group(Group { span, kind, ast: Box::new(Ast::Assertion(assertion.clone())) });
        }
        Ast::Repetition(repetition) => rewrite(&mut repetition.ast),
        Ast::Group(group) => rewrite(&mut group.ast),
        Ast::Alternation(alternation) => alternation.asts.iter_mut().for_each(rewrite),
        Ast::Concat(concat) => concat.asts.iter_mut().for_each(rewrite),
        _ => {}
    }
}

fn rewrite_set(set: &mut ClassSet) {
    match set {
        ClassSet::Item(item) => rewrite_item(item),
        ClassSet::BinaryOp(operation) => {
            rewrite_set(&mut operation.lhs);
            rewrite_set(&mut operation.rhs);
        }
    }
}

fn rewrite_item(item: &mut ClassSetItem) {
    match item {
        ClassSetItem::Perl(class) => *item = ClassSetItem::Ascii(ascii(class)),
        ClassSetItem::Bracketed(class) => rewrite_set(&mut class.kind),
        ClassSetItem::Union(union) => union.items.iter_mut().for_each(rewrite_item),
        _ => {}
    }
}

fn ascii(class: &ClassPerl) -> ClassAscii {
    let kind = match class.kind {
        ClassPerlKind::Digit => ClassAsciiKind::Digit,
        ClassPerlKind::Space => ClassAsciiKind::Space,
        ClassPerlKind::Word => ClassAsciiKind::Word,
    };
    ClassAscii { span: class.span, kind, negated: class.negated }
}

#[cfg(test)]
mod tests {
    use crate::{ByteDfa, Limits};
    use crate::{Constraint, RegexOptions};

    fn dfa(constraint: &Constraint) -> ByteDfa {
        constraint.to_byte_dfa(&Limits::default()).unwrap().unwrap()
    }

    fn ascii(pattern: &str) -> Constraint {
        Constraint::regex_with(pattern, &RegexOptions::new().with_ascii_classes(true)).unwrap()
    }

    #[test]
    fn digits_of_bengali_are_refused() {
        for (pattern, own, foreign) in [
            (r"\d{2}", "42", "\u{09EA}\u{09E8}"),
            (r"[\d-]+", "4-2", "\u{09EA}-\u{09E8}"),
            (r"[a[\d&&[^7]]]", "4", "\u{09EA}"),
            (r"(?x) \d \  \d # digits", "4 2", "\u{09EA} \u{09E8}"),
            (r"\w+", "a_1", "\u{00E9}"),
            (r"a\sb", "a\u{000B}b", "a\u{2003}b"),
            (r"(\W)", "\u{00E9}", "a"),
            (r"[^\D]", "4", "\u{09EA}"),
            (r"\D|\S", "\u{09EA}", ""),
            (r"(?i)k\d", "K4", "K\u{09EA}"),
        ] {
            let (narrow, wide) = (dfa(&ascii(pattern)), dfa(&Constraint::regex(pattern).unwrap()));
            assert!(narrow.matches(own.as_bytes()), "{pattern}: {own}");
            assert!(!narrow.matches(foreign.as_bytes()), "{pattern}: {foreign}");
            if !pattern.contains(['W', 'D']) {
                assert!(wide.matches(foreign.as_bytes()), "{pattern}: {foreign}");
            }
        }
    }

    #[test]
    fn boundaries_are_those_of_ascii() {
        let text = "\u{00E9}a".as_bytes();
        assert!(dfa(&ascii(r".\ba")).matches(text) && !dfa(&ascii(r".\Ba")).matches(text));
        let (boundary, inner) = (Constraint::regex(r".\ba").unwrap(), Constraint::regex(r".\Ba").unwrap());
        assert!(!dfa(&boundary).matches(text) && dfa(&inner).matches(text));
    }

    #[test]
    fn the_definition_means_the_same() {
        for pattern in [
            r"\d+|[\w-]{2,3}\b\s*",
            r"(?x) [ \d \s ] # a comment",
            r"(?i:[^\W\d]+)(?P<n>\S\{)",
            r"\p{Greek}\d\x{1F600}\.[\^\]\-a]",
            r"(?s-u:.)\d|\b{start}\w+\b{end}",
        ] {
            let constraint = ascii(pattern);
            let definition = constraint.definition().unwrap();
            let again = Constraint::from_request_str(&definition).unwrap().unwrap();
            assert_eq!(dfa(&again), dfa(&constraint), "{pattern}: {definition}");
        }
        assert_eq!(ascii("a+[b-d]").definition().unwrap(), r#"{"regex":"a+[b-d]"}"#);
    }

    #[test]
    fn errors_have_the_place_in_the_pattern_as_it_was_given() {
        let options = RegexOptions::new().with_ascii_classes(true);
        for (pattern, offset) in [(r"\d\d(", 4), (r"\d\p{Nowhere}", 2), (r"\d(?-u:\xFF)\pL(?u:\b)", 17)] {
            let error = Constraint::regex_with(pattern, &options).map(|_| pattern);
            match error {
                Err(error) => assert_eq!(error.offset(), Some(offset), "{pattern}"),
                // A boundary of ASCII is allowed next to any bytes.
                Ok(pattern) => assert!(pattern.contains(r"\b"), "{pattern}"),
            }
        }
    }
}
