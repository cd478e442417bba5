//! The regexes, grammars and schemas in these structural tags, each with an equivalent handwritten
//! grammar.

use burn_dfa_tokens::constraint::{Format, SchemaFormat, Style};
use rand::Rng;
use rand::rngs::StdRng;
use serde_json::{Value, json};

use crate::grammar::earley::Recognizer;
use crate::grammar::form::{Grammar, Node, all, class, one, rule, text};
use crate::grammar::random::Sampler;

/// The characters of texts here, without white space.
const CHARACTERS: &str = "ab<>()[],{}\":xyntrufalse/pm=é";

pub struct Leaves(Vec<Leaf>);

struct Leaf {
    format: Format,
    grammar: Grammar,
    recognizer: Recognizer,
}

impl Leaves {
    pub fn new() -> Self {
        Self([regexes(), grammars(), schemas()].concat().into_iter().map(leaf).collect())
    }

    /// The schemas of tools, in JSON and in XML.
    pub fn of_tools() -> Self {
        Self(tools().into_iter().map(leaf).collect())
    }

    pub fn number(&self, format: &Format) -> usize {
        self.0.iter().position(|leaf| leaf.format == *format).expect("a format with a grammar")
    }

    pub fn recognizer(&self, number: usize) -> &Recognizer {
        &self.0[number].recognizer
    }

    /// A random leaf.
    pub fn any(&self, rng: &mut StdRng) -> Format {
        self.0[rng.random_range(0..self.0.len())].format.clone()
    }

    /// A random text of a leaf, over these characters.
    pub fn draw(&self, format: &Format, rng: &mut StdRng) -> String {
        let sampler = Sampler::new(&self.0[self.number(format)].grammar);
        let text = sampler.draw(rng, 6).expect("a text");
        let text = String::from_utf8(text).expect("characters");
        // A class may contain other characters.
        text.chars()
            .map(|c| if c.is_ascii_whitespace() || CHARACTERS.contains(c) { c } else { 'a' })
            .collect()
    }
}

fn leaf((format, rules): (Format, Vec<Node>)) -> Leaf {
    let grammar = Grammar { rules };
    Leaf { format, recognizer: Recognizer::new(&grammar), grammar }
}

/// Whether a format contains recursion.
pub fn has_stack(format: &Format) -> bool {
    let text = serde_json::to_string(format).unwrap();
    text.contains("$ref") || text.contains("root ::= \\\"(\\\"") || text.contains("rule-1")
}

/// The bytes of texts here.
pub fn bytes() -> Vec<u8> {
    // Includes the last byte of another character than `é`, so that a started character may be a
    // different one.
    let mut bytes: Vec<u8> = CHARACTERS.bytes().chain(*b" \t\n\r").chain([0xA8]).collect();
    bytes.sort_unstable();
    bytes.dedup();
    bytes
}

fn regexes() -> Vec<(Format, Vec<Node>)> {
    let but = |c: char| {
        let (before, after) = (char::from(c as u8 - 1), char::from(c as u8 + 1));
        class(&[('\0', before), (after, char::MAX)])
    };
    vec![
        (Format::regex("[ab]+<?"), vec![all([class(&[('a', 'b')]).repeat(1, None), text("<").optional()])]),
        (
            Format::regex("(ab)?b|é{2,3}"),
            vec![one([all([text("ab").optional(), text("b")]), text("é").repeat(2, Some(3))])],
        ),
        (Format::regex("[^<]*"), vec![but('<').repeat(0, None)]),
        (
            Format::regex("<(a|[^b]b)*>"),
            vec![all([text("<"), one([text("a"), all([but('b'), text("b")])]).repeat(0, None), text(">")])],
        ),
    ]
}

fn grammars() -> Vec<(Format, Vec<Node>)> {
    let nested = vec![one([all([text("("), rule(0).optional(), text(")")]), text("a")])];
    let lists = vec![
        all([text("["), rule(1).optional(), text("]")]),
        all([one([rule(0), text("b<")]), all([text(","), rule(1)]).optional()]),
    ];
    let words = vec![one([text("a"), text("<b")]).repeat(0, None)];
    let written = |rules: Vec<Node>| (Format::grammar(Grammar { rules: rules.clone() }.to_string()), rules);
    [nested, lists, words].map(written).into()
}

/// Schemas with at most one character of white space per position.
fn schemas() -> Vec<(Format, Vec<Node>)> {
    let of = |schema: Value| SchemaFormat::new(schema).with_max_whitespace(1);
    let space = || class(&[(' ', ' '), ('\t', '\n'), ('\r', '\r')]).optional();
    let boolean = || one([text("true"), text("false")]);
    let member = |name: &str, value: Node| {
        all([space(), text(format!("\"{name}\"")), space(), text(":"), space(), value])
    };
    let next = |member: Node| all([space(), text(","), member]);
    let within = |open: &str, inner: Node, close: &str| all([text(open), inner, space(), text(close)]);
    let first = all([member("x", boolean()), next(member("y", text("null"))).optional()]);
    let object = json!({"type": "object", "properties": {"x": {"type": "boolean"}, "y": {"type": "null"}}, "required": ["x"]});
    let item = |node: Node| all([space(), node]);
    let items = all([item(boolean()), all([space(), text(","), item(boolean())]).repeat(0, None)]);
    let either = one([
        all([member("x", boolean()), next(member("y", text("null"))).optional()]),
        all([member("y", text("null")), next(member("x", boolean()))]),
    ]);
    let xml = |name: &str, value: Node| {
        let value = all([space(), value, space()]);
        all([space(), text(format!("<parameter={name}>")), value, text("</parameter>")])
    };
    let parameters = json!({"type": "object", "properties": {"a": {"enum": ["x", "<y"]}, "b": {"type": "boolean"}}, "required": ["a"]});
    vec![
        (
            of(json!({"enum": ["a", "b<", "<b"]})).into(),
            vec![one([text("\"a\""), text("\"b<\""), text("\"<b\"")])],
        ),
        (of(object.clone()).into(), vec![within("{", first, "}")]),
        (of(object).with_any_order(true).into(), vec![within("{", either, "}")]),
        (
            of(json!({"type": "array", "items": {"type": "boolean"}})).into(),
            vec![within("[", items.optional(), "]")],
        ),
        (
            of(json!({"type": "object", "properties": {"n": {"$ref": "#"}}})).into(),
            vec![within("{", member("n", rule(0)).optional(), "}")],
        ),
        (
            of(json!({"type": "string", "pattern": "^[ab<]{0,3}$"})).into(),
            vec![all([text("\""), one([class(&[('a', 'b')]), text("<")]).repeat(0, Some(3)), text("\"")])],
        ),
        (
            of(parameters).with_style(Style::QwenXml).into(),
            vec![all([xml("a", one([text("x"), text("<y")])), xml("b", boolean()).optional(), space()])],
        ),
    ]
}

/// The parameters of tools, with and without properties.
pub fn parameters() -> [Value; 2] {
    [
        json!({"type": "object", "properties": {}, "additionalProperties": false}),
        json!({"type": "object", "properties": {"x": {"type": "boolean"}, "s": {"enum": ["a<", "}"]}}}),
    ]
}

fn tools() -> Vec<(Format, Vec<Node>)> {
    let blank = || class(&[(' ', ' '), ('\t', '\n'), ('\r', '\r')]);
    let space = || blank().repeat(0, Some(16));
    let x = || one([text("true"), text("false")]);
    // Either member, or both.
    let some = |x: Node, next: Node, s: Node| one([all([x, next.optional()]), s]).optional();
    let member = |name: &str, value: Node| {
        all([space(), text(format!("\"{name}\"")), space(), text(":"), space(), value])
    };
    let s = || member("s", one([text("\"a<\""), text("\"}\"")]));
    let members = some(member("x", x()), all([space(), text(","), s()]), s());
    let object = |inner: Node| vec![all([text("{"), inner, space(), text("}")])];
    // White space in XML has no limit.
    let blanks = || blank().repeat(0, None);
    let element = |name: &str, value: Node| {
        let begin = text(format!("<parameter={name}>"));
        all([blanks(), begin, blanks(), value, blanks(), text("</parameter>")])
    };
    let s = || element("s", one([text("a<"), text("}")]));
    let elements = some(element("x", x()), s(), s());
    let [none, two] = parameters();
    let json = |schema: &Value| SchemaFormat::new(schema.clone());
    let xml = |schema: &Value| json(schema).with_style(Style::QwenXml);
    vec![
        (json(&none).into(), object(all([]))),
        (json(&two).into(), object(members)),
        (xml(&none).into(), vec![blanks()]),
        (xml(&two).into(), vec![all([elements, blanks()])]),
    ]
}

#[test]
fn the_grammars_of_schemas_are_those_of_the_standard() {
    use rand::SeedableRng;
    let rng = &mut StdRng::seed_from_u64(1);
    for leaf in Leaves::new().0.into_iter().chain(Leaves::of_tools().0) {
        let Format::JsonSchema(schema) = &leaf.format else { continue };
        if schema.style != Style::Json {
            continue;
        }
        let judge = jsonschema::validator_for(&schema.json_schema).unwrap();
        for _ in 0..50 {
            let text = Sampler::new(&leaf.grammar).draw(rng, 6).unwrap();
            assert!(judge.is_valid(&serde_json::from_slice(&text).unwrap()), "{schema:?}");
        }
    }
}
