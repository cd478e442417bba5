//! Identities of constraints, as keys of caches of compiled constraints.
//!
//! The identity of a constraint is a digest of its definition. Grammars built by hand and automata
//! have no definition: they are digested part by part. All matches here are exhaustive and take
//! every field by name, so the code does not compile if the digest misses a new kind of part.

use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::form::{Bounded, Counted, CutShort, Expression, Grammar, Lexing, Node, Rule, Terminal, TokenName};
use crate::definition::Undefined;
use crate::{Constraint, Marker};
use burn_dfa_automata::{ByteDfa, ByteStateId, FastMap};

/// A digest of a part.
pub type Identity = [u8; 32];

/// Most levels of parts within each other: more than a grammar may have.
const MAX_NESTING: usize = 512;

impl Constraint {
    /// A digest of every input to the automaton of the constraint: constraints with the same
    /// identity have the same automaton. `None` for parts of structural tags outside of their tag,
    /// and for parts nested too deep.
    #[doc(hidden)]
    pub fn identity(&self) -> Option<Identity> {
        Identities::default().constraint(self)
    }
}

/// Collects the fields of one part. No two lists of fields have the same bytes.
struct Fields(Sha256);

impl Fields {
    /// Starts the digest of a part of this kind.
    fn of(kind: &str) -> Self {
        Self(Sha256::new()).bytes(kind.as_bytes())
    }

    fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.update((bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
        self
    }

    fn number(mut self, number: usize) -> Self {
        self.0.update((number as u64).to_le_bytes());
        self
    }

    /// As [`Option`]: at most one identity.
    fn option(self, identity: Option<Identity>) -> Self {
        self.all(identity.as_slice())
    }

    fn all(self, identities: &[Identity]) -> Self {
        self.bytes(identities.as_flattened())
    }

    fn end(self) -> Identity {
        self.0.finalize().into()
    }
}

/// The identities of shared parts so far.
#[derive(Default)]
struct Identities {
    /// By address of a shared part, so it is digested once.
    known: FastMap<usize, Identity>,
    depth: usize,
}

impl Identities {
    fn constraint(&mut self, constraint: &Constraint) -> Option<Identity> {
        self.nested(|own| {
            Some(match constraint.defined() {
                Ok(definition) => {
                    let fields = Fields::of("definition").bytes(definition.as_bytes());
                    match constraint.json_options() {
                        // The definition leaves out default options, and the default may change.
                        Some(options) => {
                            fields.bytes(serde_json::json!(options).to_string().as_bytes()).end()
                        }
                        None => fields.end(),
                    }
                }
                Err(Undefined::Dfa(dfa)) => automaton(dfa),
                Err(Undefined::Grammar(grammar)) => own.grammar(grammar)?,
                Err(Undefined::Part) => return None,
                Err(Undefined::After(marker, constraint)) => {
                    let marker = match marker {
                        Marker::Text(text) => Fields::of("after text").bytes(text.as_bytes()),
                        Marker::Token(token) => Fields::of("after token").number(token.0 as usize),
                    };
                    marker.all(&[own.constraint(constraint)?]).end()
                }
            })
        })
    }

    fn grammar(&mut self, grammar: &Grammar) -> Option<Identity> {
        self.nested(|own| {
            let Grammar { rules, start, lexing, checks } = grammar;
            // A check is a function, which has no digest.
            if !checks.is_empty() {
                return None;
            }
            let mut fields = Fields::of("grammar").number(*start).number(rules.len());
            for Rule { name, body } in rules {
                fields = fields.bytes(name.as_bytes()).all(&[own.expression(body)?]);
            }
            Some(match lexing {
                Lexing::None => fields.end(),
                Lexing::Longest { ignored, leading, once } => {
                    let ignored = match ignored {
                        Some(ignored) => Some(own.expression(ignored)?),
                        None => None,
                    };
                    fields.number(usize::from(*leading)).number(usize::from(*once)).option(ignored).end()
                }
            })
        })
    }

    fn expression(&mut self, expression: &Expression) -> Option<Identity> {
        self.nested(|own| {
            let Expression(node) = expression;
            let fields = match node {
                Node::Literal(bytes) => Fields::of("literal").bytes(bytes),
                Node::Class(ranges) => ranges.iter().fold(Fields::of("class"), |fields, &(first, last)| {
                    fields.number(first as usize).number(last as usize)
                }),
                // Its derived text has all of its fields. A printed pattern would not do: `(a+)?`
                // is printed as `a+?`.
                Node::Regex(regex) => Fields::of("regex").bytes(format!("{regex:?}").as_bytes()),
                Node::Rule(rule) => Fields::of("rule").number(*rule),
                Node::Sequence(parts) => Fields::of("sequence").all(&own.expressions(parts)?),
                Node::Choice(parts) => Fields::of("choice").all(&own.expressions(parts)?),
                Node::Repeat { inner, min, max } => {
                    let inner = own.shared(inner, Self::expression)?;
                    Fields::of("repeat")
                        .all(&[inner])
                        .number(*min)
                        .number(usize::from(max.is_some()))
                        .number(max.unwrap_or(0))
                }
                Node::And(parts) => Fields::of("and").all(&own.expressions(parts)?),
                Node::Not(inner) => Fields::of("not").all(&[own.shared(inner, Self::expression)?]),
                Node::Terminal(terminal) => {
                    Fields::of("terminal").all(&[own.shared(terminal, Self::terminal)?])
                }
                Node::Substring(words) => {
                    words.iter().fold(Fields::of("substring"), |fields, word| fields.bytes(word.as_bytes()))
                }
                Node::Constraint(constraint) => {
                    Fields::of("constraint").all(&[own.shared(constraint, Self::constraint)?])
                }
                Node::Grammar(grammar) => Fields::of("inner").all(&[own.shared(grammar, Self::grammar)?]),
                Node::Bounded(bounded) => {
                    Fields::of("bounded part").all(&[own.shared(bounded, Self::bounded)?])
                }
                Node::Counted(counted) => Fields::of("counted").all(&[own.shared(counted, Self::counted)?]),
                Node::Token { tokens, except } => {
                    let fields = Fields::of("token").number(usize::from(*except));
                    tokens.iter().fold(fields, |fields, token| match token {
                        TokenName::Id(id) => fields.bytes(b"id").number(id.0 as usize),
                        TokenName::Text(text) => fields.bytes(b"text").bytes(text.as_bytes()),
                    })
                }
            };
            Some(fields.end())
        })
    }

    fn expressions(&mut self, expressions: &[Expression]) -> Option<Vec<Identity>> {
        expressions.iter().map(|expression| self.expression(expression)).collect()
    }

    fn terminal(&mut self, terminal: &Terminal) -> Option<Identity> {
        let Terminal { name, body, lazy } = terminal;
        let fields = Fields::of("terminal").number(usize::from(*lazy)).all(&[self.expression(body)?]);
        Some(name.iter().fold(fields, |fields, name| fields.bytes(name.as_bytes())).end())
    }

    fn counted(&mut self, counted: &Counted) -> Option<Identity> {
        let Counted { name, body, max_tokens, cut_short } = counted;
        let fields = Fields::of("counted").bytes(name.as_bytes()).number(*max_tokens as usize);
        let fields = fields.all(&[self.expression(body)?]);
        Some(match cut_short {
            None => fields.end(),
            Some(CutShort { texts, only_any }) => {
                fields.number(usize::from(*only_any)).all(&[self.expression(texts)?]).end()
            }
        })
    }

    fn bounded(&mut self, bounded: &Bounded) -> Option<Identity> {
        let Bounded { name, body, lazy, max_chars } = bounded;
        let fields = Fields::of("bounded").bytes(name.as_bytes()).number(usize::from(*lazy));
        let fields = fields.number(usize::from(max_chars.is_some())).number(max_chars.unwrap_or(0));
        Some(fields.all(&[self.expression(body)?]).end())
    }

    /// The identity of a part with several references.
    fn shared<T>(
        &mut self,
        part: &Arc<T>,
        of: impl Fn(&mut Self, &T) -> Option<Identity>,
    ) -> Option<Identity> {
        let pointer = Arc::as_ptr(part) as usize;
        if let Some(&known) = self.known.get(&pointer) {
            return Some(known);
        }
        let identity = of(self, part)?;
        self.known.insert(pointer, identity);
        Some(identity)
    }

    /// Descends one level, unless the nesting limit is reached.
    fn nested(&mut self, of: impl FnOnce(&mut Self) -> Option<Identity>) -> Option<Identity> {
        if self.depth == MAX_NESTING {
            return None;
        }
        self.depth += 1;
        let identity = of(self);
        self.depth -= 1;
        identity
    }
}

fn automaton(dfa: &ByteDfa) -> Identity {
    let states = (0..dfa.state_count() as u32).map(ByteStateId);
    let mut fields =
        Fields::of("automaton").bytes(dfa.classes()).number(dfa.class_count()).number(dfa.start().index());
    for state in states {
        let row: Vec<u8> = dfa.row(state).iter().flat_map(|next| next.to_le_bytes()).collect();
        fields = fields.number(usize::from(dfa.is_accepting(state))).bytes(&row);
    }
    fields.end()
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use serde_json::{Value, json};

    use super::*;
    use crate::TokenId;
    use crate::{
        Additional, AnyText, CharClass, CharPattern, Escapes, Formats, JsonOptions, Numbers, Order,
        Reasoning, RegexOptions, SchemaFormat, Separators, StructuralTag, Style, Syntax, Tool, ToolChoice,
        ToolFormat, Tools, Transitions, Unenforceable, Unknown, Whitespace,
    };
    use burn_dfa_common::Limits;

    /// Distinct constraints, with their names.
    type All = Vec<(String, Constraint)>;

    fn add(all: &mut All, name: impl Into<String>, constraint: crate::Result<Constraint>) {
        let name = name.into();
        match constraint {
            Ok(constraint) => all.push((name, constraint)),
            Err(error) => panic!("{name}: {error}"),
        }
    }

    fn regex(pattern: &str) -> Constraint {
        Constraint::regex(pattern).unwrap()
    }

    fn texts(all: &mut All) {
        for pattern in ["a", "a+", "(?:a+)?", "a+?", r"\d", r"\b", r"(?-u:\b)", ""] {
            add(all, format!("regex {pattern}"), Constraint::regex(pattern));
        }
        let ascii = RegexOptions::new().with_ascii_classes(true);
        add(all, "regex in ASCII", Constraint::regex_with(r"\d", &ascii));
        for choices in [&["a"][..], &["a", "b"], &["b", "a"], &["a\",\"b"], &["ab"]] {
            add(all, format!("choice {choices:?}"), Constraint::choice(choices.iter().copied()));
        }
        let pattern = CharPattern::new().one(CharClass::UPPER).one("x");
        add(all, "pattern", Ok(Constraint::pattern(pattern.clone())));
        add(all, "longer pattern", Ok(Constraint::pattern(pattern.clone().optional("x"))));
        add(all, "other pattern", Ok(Constraint::pattern(pattern.one_or_more("x"))));
        for pattern in ["a", "ab", "[ab]"] {
            let dfa = regex(pattern).to_byte_dfa(&Limits::default()).unwrap().unwrap();
            add(all, format!("automaton {pattern}"), Ok(Constraint::dfa(dfa)));
        }
    }

    fn tokens(all: &mut All) {
        let sets: [&[&[u32]]; 4] = [&[&[1]], &[&[1], &[2]], &[&[1, 2]], &[&[2, 1], &[1]]];
        for sets in sets {
            let sets: Vec<Vec<TokenId>> =
                sets.iter().map(|set| set.iter().copied().map(TokenId).collect()).collect();
            add(all, format!("sets {sets:?}"), Constraint::token_sets(sets));
        }
        for (initial, accepting, token) in [(1, 2, 5), (1, 1, 5), (1, 2, 6), (2, 2, 5)] {
            let transitions = Transitions::new(initial, [accepting], [(1, TokenId(token), 2)]);
            add(all, format!("{transitions:?}"), transitions.map(Constraint::transitions));
        }
    }

    /// Distinct options, different from the default.
    fn options() -> Vec<JsonOptions> {
        let new = JsonOptions::new;
        vec![
            new(),
            new().with_whitespace(Whitespace::Compact),
            new().with_whitespace(Whitespace::Pretty(2)),
            new().with_whitespace(Whitespace::Pretty(4)),
            new().with_whitespace(Whitespace::Flexible(2)),
            new().with_separators(Separators { item: ";".into(), key: ":".into() }),
            new().with_separators(Separators { item: ",".into(), key: "=".into() }),
            new().with_additional(Additional::Closed),
            new().with_order(Order::RequiredFirst),
            new().with_formats(Formats::Annotate),
            new().with_unknown(Unknown::Refuse),
            new().with_unenforceable(Unenforceable::Ignore),
            new().with_numbers(Numbers::Any),
            new().with_ascii(true),
            new().with_escapes(Escapes::Numbered),
            new().with_escapes(Escapes::Any),
            new().with_max_string(4),
            new().with_max_string(5),
            new().with_max_digits(4),
            new().with_recursion(4),
            new().with_any_depth(4),
        ]
    }

    fn schemas(all: &mut All) {
        for options in options() {
            let schema = json!({"type": "object", "properties": {"a": {}, "b": {}}});
            add(all, format!("schema {options:?}"), Constraint::json_schema_with(schema, &options));
        }
        let texts = [
            r#"{"properties":{"b":{},"a":{}},"type":"object"}"#,
            r#"{"const":0.1}"#,
            r#"{"const":0.1000000000000000000001}"#,
            r#"{"const":"0.1"}"#,
            r#"{"$schema":"http://json-schema.org/draft-04/schema#","const":1}"#,
            r#"{"const":1}"#,
            "true",
        ];
        texts.iter().for_each(|text| add(all, *text, Constraint::json_schema_from_str(text)));
    }

    fn grammars(all: &mut All) {
        let shared = "root ::= \"a\"\nstart ::= \"b\"";
        add(all, "gbnf", Constraint::grammar(Syntax::Gbnf, shared));
        add(all, "ebnf", Constraint::grammar(Syntax::Ebnf, shared));
        add(all, "gbnf from start", Constraint::grammar_from(Syntax::Gbnf, shared, "start"));
        add(all, "ebnf from start", Constraint::grammar_from(Syntax::Ebnf, shared, "start"));
        add(all, "lark", Constraint::grammar(Syntax::Lark, "start: \"a\""));
        add(all, "other lark", Constraint::grammar(Syntax::Lark, "start: \"b\""));
    }

    /// A grammar of one rule, built by hand.
    fn built(body: Expression) -> Constraint {
        let mut builder = Grammar::builder();
        builder.define("root", body).unwrap();
        Constraint::from_grammar(builder.finish("root").unwrap())
    }

    fn built_by_hand(all: &mut All) {
        let (a, b) = (|| Expression::literal("a"), || Expression::literal("b"));
        let bodies = [
            a(),
            b(),
            Expression::literal(""),
            Expression::bytes(&[0xFF]),
            Expression::class(&CharClass::UPPER),
            Expression::class(&CharClass::LOWER),
            Expression::sequence([]),
            Expression::sequence([a()]),
            Expression::sequence([a(), b()]),
            Expression::sequence([a(), Expression::sequence([b()])]),
            Expression::choice([]),
            Expression::choice([a()]),
            Expression::choice([a(), b()]),
            Expression::choice([b(), a()]),
            a().repeat(0, None),
            a().repeat(0, Some(0)),
            a().repeat(0, Some(1)),
            a().repeat(1, None),
            b().repeat(1, None),
            a().max_tokens(2),
            a().max_tokens(3),
            b().max_tokens(3),
            a().counted("other".into(), 3),
            Expression::tokens(vec![TokenId(1)], Vec::new(), false),
            Expression::tokens(vec![TokenId(1)], Vec::new(), true),
            Expression::tokens(vec![TokenId(2)], Vec::new(), false),
            Expression::tokens(vec![TokenId(1), TokenId(2)], Vec::new(), false),
            Expression::tokens(Vec::new(), vec!["1".into()], false),
        ];
        for body in bodies {
            let name = format!("built {body:?}");
            all.push((name, built(body)));
        }
        let regexes = ["a+?", "(?:a+)?", "a", r"\d", r"(?-u:\xFF)"];
        for pattern in regexes {
            let regex = crate::Regex::parse(pattern).unwrap();
            all.push((format!("built of {pattern}"), built(Expression::regex(regex))));
        }
        for (pattern, ignore_case) in [("a", false), ("a", true), ("b", false)] {
            let regex = crate::Regex::ecma(pattern, ignore_case).unwrap();
            all.push((format!("built of ECMA {pattern} {ignore_case}"), built(Expression::regex(regex))));
        }
        for name in ["root", "other"] {
            let mut builder = Grammar::builder();
            builder.define("root", a()).unwrap();
            builder.define("other", b()).unwrap();
            let grammar = builder.finish(name).unwrap();
            all.push((format!("built from {name}"), Constraint::from_grammar(grammar)));
        }
        // The constraints of the text readers, without the texts.
        let texts = [
            (Syntax::Lark, "start: A B\nA: \"a\"\nB: /b+/"),
            (Syntax::Lark, "start: A B\nA: \"a\"\nB: /b+/\n%ignore \" \""),
            (Syntax::Lark, "start: A B\nA: \"a\"\nB: /b+/\n%ignore \"x\""),
            (Syntax::Lark, "start: a B\na[lazy]: /a+/\nB: /b+/"),
            (Syntax::Lark, "start: a B\na: /a+/\nB: /b+/"),
            (Syntax::Lark, "start: a b\na[max_tokens=3]: /a+/\nb: /b/"),
            (Syntax::Lark, "start: a b\na[max_tokens=3, suffix=\"c\"]: /a+/\nb: /b/"),
            (Syntax::Lark, "start: A\nA: /a+/ & /aa/"),
            (Syntax::Lark, "start: A\nA: ~/a+/"),
            (Syntax::Lark, "start: %json {\"type\": \"integer\"}"),
            (Syntax::Lark, "start: %json {\"type\": \"boolean\"}"),
            (Syntax::Lark, "start: %regex {\"substring_words\": \"a b c\"}"),
            (Syntax::Lark, "start: %regex {\"substring_words\": \"a b d\"}"),
            (Syntax::Gbnf, "root ::= \"a\" root?"),
            (Syntax::Ebnf, "root ::= \"a\" root?  | \"b\""),
        ];
        for (syntax, text) in texts {
            let grammar = Grammar::read(syntax, text, None).unwrap_or_else(|error| panic!("{text}: {error}"));
            all.push((format!("built as {syntax} {text}"), Constraint::from_grammar(grammar)));
        }
    }

    fn tags(all: &mut All) {
        let schema = || json!({"type": "object", "properties": {"a": {"type": "integer"}}});
        let format = || SchemaFormat::new(schema());
        let formats = [
            format().into(),
            format().with_style(Style::QwenXml).into(),
            format().with_any_order(true).into(),
            format().with_max_whitespace(2).into(),
            format().with_excludes(["x"]).into(),
            AnyText::new().into(),
            AnyText::new().with_excludes(["x"]).into(),
            crate::Format::tag("<a>", format(), "</a>"),
            crate::Format::tag("<a>", format(), "</b>"),
            crate::Format::token(1),
            crate::Format::exclude_token([1]),
        ];
        for format in formats {
            add(all, format!("tag {format:?}"), Constraint::structural_tag(&StructuralTag::new(format)));
        }
        for options in options() {
            let tag = StructuralTag::new(crate::Format::tag("<", format(), ">"));
            add(all, format!("tag by {options:?}"), Constraint::structural_tag_with(&tag, &options));
        }
    }

    /// The tools of requests, with other fields of requests.
    fn tools() -> Vec<Tools> {
        let parameters = json!({"type": "object", "properties": {"a": {"type": "integer"}}});
        let tool = |name: &str, parameters: &Value| Tool::new(name).with_parameters(parameters.clone());
        let of = |tools: Vec<Tool>| Tools::new(tools).unwrap();
        let both = || of(vec![tool("f", &parameters), Tool::new("g")]).with_format(ToolFormat::Hermes);
        let mut all = vec![
            both().with_choice(ToolChoice::Required),
            both().with_choice(ToolChoice::Named("f".into())),
            both().with_choice(ToolChoice::Named("g".into())),
            both().with_choice(ToolChoice::None),
            both().with_choice(ToolChoice::Allowed { names: vec!["f".into()], required: false }),
            both().with_choice(ToolChoice::Allowed { names: vec!["f".into()], required: true }),
            both().with_parallel(false),
            both().with_reasoning(Reasoning::think()),
            both().with_reasoning(Reasoning::think().opened()),
            both().with_reasoning(Reasoning::think().with_after("\n")),
            both().with_reasoning(Reasoning::text("<a>", "</a>")),
            both().with_reasoning(Reasoning::tokens("<a>", "</a>")),
            of(vec![tool("f", &json!({"type": "object"}))]).with_format(ToolFormat::Hermes),
            of(vec![Tool::new("g"), tool("f", &parameters)]).with_format(ToolFormat::Hermes),
        ];
        all.extend(ToolFormat::ALL.map(|format| both().with_format(format)));
        all
    }

    fn with_tools(all: &mut All) {
        let formats =
            [json!({"type": "object"}), json!({"type": "integer"}), json!({"properties": {"a": {}}})];
        for tools in tools() {
            add(all, format!("{tools:?}"), tools.to_constraint());
            // A call or a text, as a server allows them.
            for format in &formats {
                let content = Constraint::json_schema(format.clone()).unwrap();
                let either = [tools.to_constraint().unwrap(), content].map(Expression::constraint);
                all.push((format!("{tools:?} or {format}"), built(Expression::choice(either))));
            }
        }
    }

    fn all() -> All {
        let mut all = Vec::new();
        for more in [texts, tokens, schemas, grammars, built_by_hand, tags, with_tools] {
            more(&mut all);
        }
        let after = |(name, constraint): &(String, Constraint)| {
            [Marker::from("x"), Marker::from("y"), Marker::from("7"), Marker::from(TokenId(7))].map(
                |marker| (format!("{name} after {marker:?}"), Constraint::after(marker, constraint.clone())),
            )
        };
        let behind: Vec<_> = all.iter().step_by(5).flat_map(after).collect();
        all.extend(behind);
        all
    }

    #[test]
    fn constraints_that_differ_have_identities_that_differ() {
        let (all, again) = (all(), all());
        assert!(all.len() > 250, "{}", all.len());
        let mut known: HashMap<Identity, &str> = HashMap::new();
        for ((name, constraint), (_, same)) in all.iter().zip(&again) {
            let identity = constraint.identity().unwrap_or_else(|| panic!("{name}"));
            assert_eq!(same.identity(), Some(identity), "{name}");
            if let Some(other) = known.insert(identity, name) {
                panic!("{name} and {other} have the same identity");
            }
        }
    }

    #[test]
    fn options_are_digested_where_they_are_the_default_too() {
        // A constraint compiled with another default would be loaded for it.
        let tag = StructuralTag::new(SchemaFormat::new(json!({"const": 1})));
        for constraint in [Constraint::json_schema(json!({"const": 1})), Constraint::structural_tag(&tag)] {
            let constraint = constraint.unwrap();
            let definition = constraint.definition().unwrap();
            assert!(!definition.contains("whitespace"), "{definition}");
            let alone = Fields::of("definition").bytes(definition.as_bytes()).end();
            assert_ne!(constraint.identity(), Some(alone), "{definition}");
        }
    }

    #[test]
    fn a_part_that_is_shared_is_digested_once() {
        // 2^64 leaves.
        let double = |body: Expression, _| {
            let twice = body.repeat(1, Some(1));
            Expression::sequence([twice.clone(), twice])
        };
        let of = |leaf: &str| built((0..64).fold(Expression::literal(leaf), double)).identity();
        assert!(of("a").is_some() && of("a") == of("a") && of("a") != of("b"));
        // Whether parts are shared makes no difference.
        let (apart, part) =
            (|| Expression::literal("a").repeat(2, None), Expression::literal("a").repeat(2, None));
        let shared = built(Expression::sequence([part.clone(), part]));
        assert_eq!(built(Expression::sequence([apart(), apart()])).identity(), shared.identity());
    }

    #[test]
    fn deep_grammars_and_grammars_of_tags_have_no_identity() {
        let deep = (0..600).fold(Expression::literal("a"), |body, _| Expression::sequence([body]));
        assert_eq!(built(deep).identity(), None);
        // Two tags with different schemas, without the tags.
        let style = |schema| SchemaFormat::new(schema).with_style(Style::QwenXml);
        let tag =
            StructuralTag::new(style(json!({"properties": {"a": {"type": "integer"}}, "type": "object"})));
        let tag = Constraint::structural_tag(&tag).unwrap();
        assert!(tag.identity().is_some());
        assert_eq!(Constraint::from_grammar(tag.as_grammar().unwrap().clone()).identity(), None);
    }
}
