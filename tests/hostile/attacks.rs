//! The attacks.

use std::fmt::Write as _;
use std::time::Duration;

use burn::tensor::Device;
use burn_dfa::constraint::{StructuralTag, Syntax};
use burn_dfa::processor::DfaProcessor;
use burn_dfa::{Constraint, Limits, Result, TensorOptions, TensorTable, TokenId, TokenTable, Vocabulary};
use serde_json::{Map, Value, json};

use crate::child::{Attack, End, Gauge, Report, obey, run};

/// The test that a child runs.
const OBEYING: &str = "attacks::the_attack_that_a_child_is_told";

macro_rules! attacks {
    ($($name:literal: $end:ident = $run:expr;)*) => {
        &[$(Attack { name: $name, end: End::$end, run: $run }),*]
    };
}

const ATTACKS: &[Attack] = attacks! {
    // Regexes.
    "(a|a)*{1000}": Fine = |gauge| regex(gauge, "(a|a)*{1000}");
    "counters in counters": Limit = |gauge| regex(gauge, "(((a{1000}){1000}){1000}){1000}");
    "optional counters in counters": Any = |gauge| regex(gauge, "(?:(?:a{0,60}b?){0,60}c?){0,60}");
    "ways to be empty": Fine = |gauge| regex(gauge, "((a?){300}){100}|(?:){4294967295}");
    "a huge count": Limit = |gauge| regex(gauge, "a{4294967295}");
    "an exponent of states": Limit = |gauge| regex(gauge, "(?s)(a|b)*a(a|b){30}");
    "an exponent of states, in Unicode": Limit = |gauge| regex(gauge, r"\w*é\w{30}");
    "giant classes, counted": Any = |gauge| regex(gauge, r"(?i)[\pL\pN\pS&&[^\p{Greek}]]{200}");
    "giant classes, many": Any = |gauge| regex(gauge, &r"\w".repeat(500_000));
    "giant classes, one": Any = |gauge| regex(gauge, &format!("[{}]", r"\w\PL".repeat(20_000)));
    "a class of 300,000 characters": Pattern = |gauge| {
        let even = (0x3400u32..0xA000).chain(0x1_0000..0xA_0000).filter(|code| code % 2 == 0);
        let class: String = even.filter_map(char::from_u32).take(300_000).collect();
        regex(gauge, &format!("[{class}]"))
    };
    "the same in a schema": Schema = |gauge| {
        let even = (0x3400u32..0xA000).chain(0x1_0000..0xA_0000).filter(|code| code % 2 == 0);
        let class: String = even.filter_map(char::from_u32).take(300_000).collect();
        schema(gauge, json!({"pattern": format!("[{class}]")}))
    };
    "groups 10,000 deep": Pattern = |gauge| regex(gauge, &format!("{}a{}", "(".repeat(10_000), ")".repeat(10_000)));
    "1 MB of alternatives": Any = |gauge| regex(gauge, &"ab|".repeat(340_000));
    "10 MB of alternatives": Any = |gauge| regex(gauge, &"ab|".repeat(3_500_000));
    "boundaries": Any = |gauge| regex(gauge, &format!("{}a", r"(?:\b|\B|^|$)*".repeat(200)));
    // Schemas.
    "100,000 values of enum": Any = |gauge| {
        let values: Vec<Value> = (0..100_000).map(|i| json!(format!("value {}", i * 7919 % 100_000))).collect();
        schema(gauge, json!({"enum": values}))
    };
    "100,000 choices": Fine = |gauge| {
        let choices: Vec<String> = (0..100_000).map(|i| format!("{}", i * 7919 % 1_000_000_007u64)).collect();
        let limits = gauge.arm();
        lower(&Constraint::choice(choices)?, limits)
    };
    "arrays 10,000 deep": Schema = |gauge| schema(gauge, nested(|inner| json_of("items", inner)));
    "values 10,000 deep": Schema = |gauge| schema(gauge, nested(|inner| json_of("const", inner)));
    "negations 10,000 deep": Schema = |gauge| schema(gauge, nested(|inner| json_of("not", inner)));
    "text 1,000,000 deep": Request = |gauge| {
        let text = "[".repeat(1_000_000);
        gauge.arm();
        Constraint::from_request(&json!({"structured_outputs": {"json": text}})).map(drop)
    };
    "a cycle": Schema = |gauge| schema(gauge, json!({"$ref": "#"}));
    "a cycle of 100": Schema = |gauge| {
        let next = |i: usize| json!({"allOf": [{"$ref": format!("#/$defs/d{}", (i + 1) % 100)}]});
        let defs: Map<String, Value> = (0..100).map(|i| (format!("d{i}"), next(i))).collect();
        schema(gauge, json!({"$ref": "#/$defs/d0", "$defs": defs}))
    };
    "trees of trees": Any = |gauge| {
        let all: Map<String, Value> = (0..30).map(|i| (format!("p{i}"), json!({"$ref": "#"}))).collect();
        schema(gauge, json!({"properties": all}))
    };
    "50 MB of description": Fine = |gauge| schema(gauge, json!({"type": "null", "description": "d".repeat(50 << 20)}));
    "50 MB of properties": Any = |gauge| {
        let all: Map<String, Value> = (0..1_400_000).map(|i| (format!("property {i}"), json!({"type": "null"}))).collect();
        schema(gauge, json!({"properties": all}))
    };
    "50 MB of values": Any = |gauge| {
        let values: Vec<Value> = (0..2_000_000).map(|i| json!(format!("one of the values {i}"))).collect();
        schema(gauge, json!({"enum": values}))
    };
    "50 MB of branches": Any = |gauge| {
        let branches: Vec<Value> = (0..900_000).map(|i| json!({"const": i, "title": "a branch", "type": "integer"})).collect();
        schema(gauge, json!({"oneOf": branches}))
    };
    "20,000 branches": Limit = |gauge| {
        let branches: Vec<Value> = (0..20_000).map(|i| json!({"const": i, "type": "integer"})).collect();
        schema(gauge, json!({"oneOf": branches}))
    };
    "a list of 200,000 different items": Limit = |gauge| {
        let items: Vec<Value> = (0..200_000).map(Value::from).collect();
        schema(gauge, json!({"const": items, "uniqueItems": true}))
    };
    "40 numbers of 1 MB beside 200 multiples": Limit = |gauge| {
        let branches: Vec<String> = (1..=200).map(|step| format!(r#"{{"multipleOf": {step}}}"#)).collect();
        let numbers: Vec<String> = (1_000_000..1_000_040).map(|digits| "7".repeat(digits)).collect();
        let schema = format!(r#"{{"enum": [{}], "oneOf": [{}]}}"#, numbers.join(", "), branches.join(", "));
        let limits = gauge.arm();
        lower(&Constraint::json_schema_from_str(&schema)?, limits)
    };
    "50 MB of unknown keywords": Any = |gauge| {
        let all: Map<String, Value> = (0..2_000_000).map(|i| (format!("unknown keyword {i}"), Value::Null)).collect();
        schema(gauge, Value::Object(all))
    };
    "50 MB of pattern": Any = |gauge| schema(gauge, json!({"pattern": "ab|".repeat(17_000_000)}));
    "50 MB of braces": Any = |gauge| schema(gauge, json!({"pattern": "{".repeat(50 << 20)}));
    "50 MB of required names": Any = |gauge| {
        let names: Vec<Value> = (0..2_500_000).map(|i| json!(format!("required {i}"))).collect();
        schema(gauge, json!({"required": names}))
    };
    "50 MB of one reference": Any = |gauge| schema(gauge, json!({"$ref": format!("#{}", "/a".repeat(25 << 20))}));
    "one long name above many": Schema = |gauge| {
        let many: Map<String, Value> = (0..100_000).map(|i| (i.to_string(), json!({"type": "null"}))).collect();
        schema(gauge, json!({"properties": {"n".repeat(1 << 20): {"properties": many}}}))
    };
    "one long name above many references": Schema = |gauge| {
        let many: Map<String, Value> = (0..100_000).map(|i| (i.to_string(), json!({"$ref": "#a"}))).collect();
        schema(gauge, json!({"$ref": "#/$defs/a", "$defs": {"a": {"type": "null"}, "n".repeat(1 << 20): {"properties": many}}}))
    };
    "one long identifier above many": Schema = |gauge| {
        let many: Map<String, Value> = (0..100_000).map(|i| (i.to_string(), json!({"$anchor": format!("a{i}")}))).collect();
        schema(gauge, json!({"$id": "n".repeat(1 << 20), "$ref": "#a7", "properties": many}))
    };
    "one long list evaluated by many": Schema = |gauge| {
        let names: Map<String, Value> = (0..20_000).map(|i| (i.to_string(), json!(true))).collect();
        let many: Vec<Value> = (0..20_000).map(|_| json!({"$ref": "#/$defs/a"})).collect();
        schema(gauge, json!({"allOf": many, "unevaluatedProperties": false, "$defs": {"a": {"properties": names}}}))
    };
    "slow patterns beside many names": Any = |gauge| {
        let names: Map<String, Value> = (0..10_000).map(|i| (i.to_string(), json!(true))).collect();
        schema(gauge, json!({"properties": names, "patternProperties": {"(a|b)*a(a|b){17}": true}, "unevaluatedProperties": false}))
    };
    "a request 10,000 deep": Request = |gauge| {
        let request = json_of("response_format", nested(|inner| json_of("schema", inner)));
        gauge.arm();
        let result = Constraint::from_request(&request).map(drop);
        // To drop it takes recursion, of serde_json's.
        std::mem::forget(request);
        result
    };
    "references that double": Limit = |gauge| {
        let double = |i: usize| json!({"type": "object", "properties": {"a": {"$ref": format!("#/$defs/d{i}")}, "b": {"$ref": format!("#/$defs/d{i}")}}, "required": ["a", "b"]});
        let mut defs: Map<String, Value> = (0..60).map(|i| (format!("d{}", i + 1), double(i))).collect();
        defs.insert("d0".into(), json!({"type": "string"}));
        schema(gauge, json!({"$ref": "#/$defs/d60", "$defs": defs}))
    };
    "sets of properties": Any = |gauge| {
        let needs = |i: usize| (format!("p{i}"), json!({"required": [format!("q{i}")]}));
        let all: Map<String, Value> = (0..40).map(needs).collect();
        schema(gauge, json!({"dependentSchemas": all}))
    };
    "sets of items": Any = |gauge| {
        let contains: Vec<Value> = (0..40).map(|i| json!({"contains": {"const": i}})).collect();
        schema(gauge, json!({"type": "array", "allOf": contains}))
    };
    "sets of values": Any = |gauge| {
        let values: Vec<usize> = (0..40).collect();
        schema(gauge, json!({"type": "array", "items": {"enum": values}, "uniqueItems": true}))
    };
    "exactly one of overlapping patterns": Any = |gauge| {
        let branches: Vec<Value> = (0..40).map(|i| json!({"pattern": format!("a.{{{i}}}b")})).collect();
        schema(gauge, json!({"type": "string", "oneOf": branches}))
    };
    "all of many patterns": Any = |gauge| {
        let branches: Vec<Value> = (0..200).map(|i| json!({"pattern": format!("(x{i}|y)*z.{{{}}}$", i % 9)})).collect();
        schema(gauge, json!({"type": "string", "allOf": branches}))
    };
    "looks in looks": Any = |gauge| {
        let pattern = format!("{}a{}", "(?=.*(?<!b".repeat(40), "))".repeat(40));
        schema(gauge, json!({"type": "string", "pattern": pattern}))
    };
    "looks, counted": Any = |gauge| schema(gauge, json!({"type": "string", "pattern": "(?:(?=.*a.{20})(?!b{50}).){1000}"}));
    "patterns of names": Any = |gauge| {
        let all: Map<String, Value> = (0..60).map(|i| (format!("a.{{{i}}}b"), json!({"minimum": i}))).collect();
        schema(gauge, json!({"type": "object", "patternProperties": all}))
    };
    "2^63 characters": Limit = |gauge| schema(gauge, json!({"type": "string", "maxLength": 1u64 << 63}));
    "2^63 characters of pairs": Limit = |gauge| schema(gauge, json!({"type": "string", "maxLength": 1u64 << 63, "pattern": "^(ab)*$"}));
    "2^60 characters in 30 words": Any = |gauge| schema(gauge, json!({"type": "string", "maxLength": 1u64 << 60, "pattern": "^(?:\\S+\\s+){0,29}\\S+$"}));
    "2^63 items": Limit = |gauge| schema(gauge, json!({"type": "array", "minItems": 1u64 << 63}));
    "2^63 properties": Any = |gauge| schema(gauge, json!({"type": "object", "minProperties": 1u64 << 63}));
    "2^63 matches": Any = |gauge| schema(gauge, json!({"type": "array", "contains": {"const": 1}, "minContains": 1u64 << 63}));
    "multiples of 1e-300": Any = |gauge| schema(gauge, json!({"type": "number", "multipleOf": 1e-300}));
    "multiples of 1e300": Any = |gauge| schema(gauge, json!({"type": "number", "multipleOf": 1e300}));
    "multiples of large primes": Any = |gauge| {
        schema(gauge, json!({"type": "integer", "allOf": [{"multipleOf": 4_294_967_291u64}, {"multipleOf": 999_983}]}))
    };
    "bounds of 300 digits": Fine = |gauge| schema(gauge, json!({"type": "number", "minimum": 1e300, "maximum": 1.5e300}));
    "the number 1e999999": Request = |gauge| {
        gauge.arm();
        let json = r#"{"minimum": 1e999999}"#;
        Constraint::from_request(&json!({"structured_outputs": {"json": json}})).map(drop)
    };
    // Grammars.
    "a rule that is itself": Unsatisfiable = |gauge| gbnf(gauge, "root ::= root");
    "two rules that are each other": Unsatisfiable = |gauge| gbnf(gauge, "root ::= a\na ::= root");
    "itself, or nothing": Fine = |gauge| gbnf(gauge, "root ::= root | \"\"");
    "loops of nothing": Any = |gauge| gbnf(gauge, "root ::= (a* b*)* root?\na ::= b* \"\"\nb ::= (a? \"x\"?)+");
    "hidden left recursion": Any = |gauge| gbnf(gauge, "root ::= n root \"x\" | \"y\"\nn ::= m*\nm ::= n | \"\" | \"z\"");
    "groups 10,000 deep in a grammar": Grammar = |gauge| {
        gbnf(gauge, &format!("root ::= {}\"a\"{}", "(".repeat(10_000), ")".repeat(10_000)))
    };
    "100,000 rules in a chain": Grammar = |gauge| {
        let rules: String = (0..100_000).map(|i| format!("r{i} ::= \"a\" r{} | \"b\"\n", i + 1)).collect();
        gbnf(gauge, &format!("root ::= r0\n{rules}r100000 ::= \"c\""))
    };
    "100,000 rules beside each other": Any = |gauge| {
        let names: Vec<String> = (0..100_000).map(|i| format!("r{i}")).collect();
        let rules: String = names.iter().map(|name| format!("{name} ::= \"{name}\"\n")).collect();
        gbnf(gauge, &format!("root ::= {}\n{rules}", names.join(" | ")))
    };
    "2,000 rules in a ring": Any = |gauge| {
        let rule = |i: usize| format!("r{i} ::= r{} \"a\" | \"(\" r{} \")\" | \"b\"\n", (i + 1) % 2_000, i * 7 % 2_000);
        gbnf(gauge, &format!("root ::= r0\n{}", (0..2_000).map(rule).collect::<String>()))
    };
    "rules that double": Any = |gauge| {
        let rules: String = (0..200).map(|i| format!("r{i} ::= r{} \"x\" r{}\n", i + 1, i + 1)).collect();
        gbnf(gauge, &format!("root ::= r0 r0\n{rules}r200 ::= \"c\""))
    };
    "a million repetitions": Any = |gauge| gbnf(gauge, "root ::= \"a\"{0,1000000}");
    "a million millions of repetitions": Limit = |gauge| gbnf(gauge, "root ::= ((\"ab\"){0,1000000}){0,1000000}");
    "a million brackets": Any = |gauge| gbnf(gauge, "root ::= (\"(\" root \")\"){0,1000000}");
    "10 MB of a grammar's alternatives": Any = |gauge| {
        let branches: Vec<String> = (0..800_000).map(|i| format!("\"{i}\"")).collect();
        gbnf(gauge, &format!("root ::= {}", branches.join(" | ")))
    };
    "10 MB of a grammar's literal": Any = |gauge| gbnf(gauge, &format!("root ::= \"{}\"", "a".repeat(10 << 20)));
    "ambiguity without end": Grammar = |gauge| gbnf(gauge, "root ::= root root root | root root | \"a\" | \"\"");
    "an exponent of subsets": Limit = |gauge| gbnf(gauge, &format!("root ::= [ab]* \"a\" {}", "[ab] ".repeat(30)));
    "5,000 calls in a row": Any = |gauge| gbnf(gauge, "root ::= \"x\" s{5000} \"y\"\ns ::= \"a\" s s | \"b\"");
    "calls that may end, 5,000 deep": Any = |gauge| {
        let rule = |i: usize| format!("r{i} ::= \"a\" (\"b\" r{} r{i} \"b\"?)? \n", (i + 1) % 5_000);
        gbnf(gauge, &format!("root ::= r0\n{}", (0..5_000).map(rule).collect::<String>()))
    };
    "palindromes": Grammar = |gauge| gbnf(gauge, "root ::= \"a\" root \"a\" | \"b\" root \"b\" | [ab]?");
    "sixty-four outcomes": Any = |gauge| {
        let starts: Vec<String> = (0..64).map(|i| format!("a{i} \"{i:02}\"")).collect();
        let rules: String = (0..64).map(|i| format!("\na{i} ::= \"(\" a{i} \")\" | \"x{i}\"")).collect();
        gbnf(gauge, &format!("root ::= {}{rules}", starts.join(" | ")))
    };
    "complements of exponents": Limit = |gauge| {
        lark(gauge, "start: A\nA: /[ab]*a[ab]{22}/ & ~/(a|b)*b[ab]{22}/")
    };
    "2,000 terminals at once": Any = |gauge| {
        let words: Vec<String> = (0..2_000).map(|i| format!("\"w{i}\"")).collect();
        lark(gauge, &format!("start: ({})*\n%ignore / +/", words.join(" | ")))
    };
    "templates that never end": Grammar = |gauge| lark(gauge, "start: t{\"a\"}\nt{x}: t{u{x}} | x\nu{x}: x \"b\"");
    "templates that double": Any = |gauge| {
        let templates: String = (0..40).map(|i| format!("t{i}{{x}}: t{}{{x}} t{}{{u{{x}}}}\n", i + 1, i + 1)).collect();
        lark(gauge, &format!("start: t0{{\"a\"}}\n{templates}t40{{x}}: x\nu{{x}}: x \"b\""))
    };
    "templates in templates": Any = |gauge| {
        lark(gauge, "start: t{u{\"b\"}, Y}+ | u{u{Y}}+ t{t{Y, x}, u{\"b\"}}\nt{p, r}: r | (u{x} \"c\" | p? u{p})? u{r}\n\
            u{p}: (\"c\"*)+ Y (\"a\"* \"b\" | x p+ p)+ | p+ \"c\"* Y\nx: \"a\" | \"c\"\nY: \"b\"")
    };
    "a parameter of 2^60 values": Any = |gauge| {
        lark(gauge, "start: r::0\nr::_: \"\" | \"a\" r::incr(_[0:60]) | \"b\" r::set_bit(59)")
    };
    // Structural tags.
    "20,000 tags": Any = |gauge| {
        let tags: Vec<Value> = (0..20_000).map(|i| tag(&format!("<f{i}>"), json!({"type": "any_text"}))).collect();
        format(gauge, json!({"type": "triggered_tags", "triggers": ["<f"], "tags": tags}))
    };
    "triggers that begin alike": Any = |gauge| {
        let names: Vec<String> = (1..1_000).map(|i| format!("{}b", "a".repeat(i))).collect();
        let tags: Vec<Value> = names.iter().map(|name| tag(name, json!({"type": "const_string", "value": "x"}))).collect();
        format(gauge, json!({"type": "triggered_tags", "triggers": names, "tags": tags}))
    };
    "formats 10,000 deep": Tag = |gauge| {
        let star = |inner| [("type".to_owned(), json!("star")), ("content".to_owned(), inner)];
        let deep = (0..10_000).fold(json!({"type": "any_text"}), |inner, _| Value::Object(Map::from_iter(star(inner))));
        format(gauge, deep)
    };
    "tags in tags": Any = |gauge| {
        let deep = (0..80).fold(json!({"type": "any_text"}), |inner, i| tag(&format!("<{i}>"), inner));
        format(gauge, deep)
    };
    "2^31 repetitions of a format": Any = |gauge| {
        let inner = json!({"type": "const_string", "value": "ab"});
        format(gauge, json!({"type": "repeat", "min": 0, "max": i32::MAX, "content": inner}))
    };
    "2^31 characters of text": Any = |gauge| format(gauge, json!({"type": "any_text", "max_chars": i32::MAX}));
    "10,000 excluded texts": Any = |gauge| {
        let excluded: Vec<String> = (0..10_000).map(|i| format!("x{i}y")).collect();
        format(gauge, json!({"type": "any_text", "excludes": excluded}))
    };
    "40 properties in any order": Any = |gauge| {
        let properties: Map<String, Value> = (0..40).map(|i| (format!("p{i}"), json!({"type": "integer"}))).collect();
        let schema = json!({"type": "object", "properties": properties});
        format(gauge, json!({"type": "json_schema", "json_schema": schema, "any_order": true}))
    };
    "a tag that is no object": Tag = |gauge| format(gauge, json!([[[]]]));
    // Tokenizers.
    "a tokenizer of 5,000,000 entries": Any = |gauge| tokenizer(gauge, &entries(5_000_000, |i| i));
    "a tokenizer of 20,000,000 pieces": Vocabulary = |gauge| {
        let pieces = r#"["",0],"#.repeat(20_000_000);
        tokenizer(gauge, &format!(r#"{{"decoder":{{"type":"Metaspace"}},"model":{{"type":"Unigram","vocab":[{pieces}["",0]]}}}}"#))
    };
    "a negative id": Vocabulary = |gauge| tokenizer(gauge, &entries(10, |i| i - 3));
    "an id of 2^32": Vocabulary = |gauge| tokenizer(gauge, &entries(10, |i| i + (1 << 32) - 5));
    "an id far off": Vocabulary = |gauge| tokenizer(gauge, &entries(10, |i| i * 1_000_000));
    "ids with gaps": Fine = |gauge| tokenizer(gauge, &entries(10, |i| i * 7));
    "one id for all": Vocabulary = |gauge| tokenizer(gauge, &entries(10, |_| 3));
    "a token of 30 MB": Vocabulary = |gauge| {
        let token = "a".repeat(30 << 20);
        tokenizer(gauge, &format!(r#"{{"decoder":{{"type":"Metaspace"}},"model":{{"type":"WordLevel","vocab":{{"{token}":0}}}}}}"#))
    };
    "tokens that grow": Vocabulary = |gauge| {
        let steps = r#"{"type":"Replace","pattern":{"String":"a"},"content":"aaaaaaaaaaaaaaaa"},"#.repeat(12);
        tokenizer(gauge, &format!(r#"{{"decoder":{{"type":"Sequence","decoders":[{steps}{{"type":"Fuse"}}]}},"model":{{"type":"WordLevel","vocab":{{"a":0}}}}}}"#))
    };
    "a decoder of 100,000 steps": Vocabulary = |gauge| {
        let steps = r#"{"type":"Replace","pattern":{"String":"a"},"content":"b"},"#.repeat(100_000);
        tokenizer(gauge, &format!(r#"{{"decoder":{{"type":"Sequence","decoders":[{steps}{{"type":"Fuse"}}]}},"model":{{"type":"WordLevel","vocab":{{"a":0}}}}}}"#))
    };
    "decoders 100,000 deep": Vocabulary = |gauge| {
        let open = r#"{"type":"Sequence","decoders":["#.repeat(100_000);
        tokenizer(gauge, &format!(r#"{{"decoder":{open},"model":{{"type":"BPE","vocab":{{"a":0}}}}}}"#))
    };
    // Tables and budgets.
    "a vocabulary without letters": Unsatisfiable = |gauge| {
        let limits = gauge.arm();
        let vocabulary = Vocabulary::from_bytes([Some("a"), None])?.with_eos([TokenId(1)])?;
        TokenTable::compile(&Constraint::regex("[b-z]{1000}")?, &vocabulary, limits).map(drop)
    };
    "long tokens in many states": Any = |gauge| {
        let tokens = (1..3000usize).map(|length| Some("ab".repeat(length)));
        let vocabulary = Vocabulary::from_bytes(tokens.chain([None]))?.with_eos([TokenId(2999)])?;
        let limits = gauge.arm();
        TokenTable::tabulate(&Constraint::regex("[ab]{20000}")?, &vocabulary, limits).map(drop)
    };
    "a budget of 0": Budget = |gauge| budget(gauge, 0);
    "a budget of 2^63": Input = |gauge| budget(gauge, 1 << 63);
};

fn lower(constraint: &Constraint, limits: &Limits) -> Result<()> {
    constraint.to_byte_dfa(limits).map(drop)
}

fn regex(gauge: &mut Gauge, pattern: &str) -> Result<()> {
    let limits = gauge.arm();
    lower(&Constraint::regex(pattern)?, limits)
}

fn schema(gauge: &mut Gauge, schema: Value) -> Result<()> {
    let limits = gauge.arm();
    lower(&Constraint::json_schema(schema)?, limits)
}

fn gbnf(gauge: &mut Gauge, text: &str) -> Result<()> {
    grammar(gauge, Syntax::Gbnf, text)
}

fn lark(gauge: &mut Gauge, text: &str) -> Result<()> {
    grammar(gauge, Syntax::Lark, text)
}

fn grammar(gauge: &mut Gauge, syntax: Syntax, text: &str) -> Result<()> {
    let limits = gauge.arm();
    Constraint::grammar(syntax, text)?.to_automaton(limits).map(drop)
}

fn format(gauge: &mut Gauge, format: Value) -> Result<()> {
    let limits = gauge.arm();
    let tag = StructuralTag::try_from(&json_of("format", format))?;
    Constraint::structural_tag(&tag)?.to_automaton(limits).map(drop)
}

fn tag(begin: &str, content: Value) -> Value {
    json!({"type": "tag", "begin": begin, "content": content, "end": "</>"})
}

fn tokenizer(gauge: &mut Gauge, json: &str) -> Result<()> {
    let limits = gauge.arm();
    let vocabulary = Vocabulary::from_tokenizer_json(json)?;
    let end = vocabulary.len();
    let vocabulary = vocabulary.pad_to(end + 1)?.with_eos([TokenId(end as u32)])?;
    TokenTable::compile(&Constraint::regex("[a-z0-9]+")?, &vocabulary, limits).map(drop)
}

/// A tokenizer of so many entries.
fn entries(count: i64, id: fn(i64) -> i64) -> String {
    let mut json = String::from(r#"{"decoder":{"type":"Metaspace"},"model":{"type":"WordLevel","vocab":{"#);
    for i in 0..count {
        let comma = if i == 0 { "" } else { "," };
        write!(json, r#"{comma}"t{i}":{}"#, id(i)).expect("a string takes all");
    }
    json + "}}}"
}

fn budget(gauge: &mut Gauge, tokens: usize) -> Result<()> {
    let limits = gauge.arm();
    let vocabulary = Vocabulary::from_chars("ab".chars())?.pad_to(3)?.with_eos([TokenId(2)])?;
    let table = TokenTable::compile(&Constraint::regex("a*")?, &vocabulary, limits)?;
    let table = TensorTable::new(&[&table], 3, &TensorOptions::default(), &Device::flex())?;
    DfaProcessor::new(table, &[0])?.with_budgets(&[tokens]).map(drop)
}

fn json_of(name: &str, inner: Value) -> Value {
    Value::Object(Map::from_iter([(name.to_owned(), inner)]))
}

/// 10,000 levels around a null.
fn nested(wrap: fn(Value) -> Value) -> Value {
    (0..10_000).fold(json!({"type": "null"}), |inner, _| wrap(inner))
}

#[test]
#[ignore = "run in a process of its own by the tests below"]
fn the_attack_that_a_child_is_told() {
    obey(ATTACKS);
}

// What docs/security.md promises of memory and time, and no more.

/// Of structures, each within [`Limits::bytes`], so many may live at a time.
const STRUCTURES: u64 = 4;

/// What is read may take so many times what was held with the input.
const READING: u64 = 6;

/// How long a piece of work between two looks at the clock may take.
const OVERTIME: Duration = Duration::from_secs(2);

/// How long reading may take for each MiB that was held with the input.
const READING_TIME: Duration = Duration::from_millis(30);

#[test]
fn every_attack_ends_as_it_must_within_memory_and_time() {
    let limits = Limits { bytes: 64 << 20, time: Duration::from_secs(2), ..Limits::default() };
    let mut failed = Vec::new();
    for attack in ATTACKS {
        let report = match run(attack, OBEYING, &limits) {
            Ok(report) => report,
            Err(reason) => {
                failed.push(format!("{}: {reason}", attack.name));
                continue;
            }
        };
        let Report { held, memory, time, .. } = report;
        let (mib, ms) = (|bytes| bytes >> 20, time.as_millis());
        println!("{:40} {:14} {:5} + {:5} MiB {ms:6} ms", attack.name, report.end, mib(held), mib(memory));
        if attack.end != End::Any && report.end != format!("{:?}", attack.end) {
            failed.push(format!("{}: {:?} was to come of it", attack.name, attack.end));
        }
        let most = STRUCTURES * limits.bytes as u64 + READING * held;
        let longest = limits.time + OVERTIME + READING_TIME * mib(held) as u32;
        if memory > most || time > longest {
            let used = format!("{memory} bytes of at most {most}, {time:?} of at most {longest:?}");
            failed.push(format!("{}: {used}", attack.name));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
