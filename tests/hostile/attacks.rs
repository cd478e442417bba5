//! The attacks.

use std::fmt::Write as _;

use burn::tensor::Device;
use burn_dfa::constraint::{StructuralTag, Syntax, Tool, ToolFormat, Tools};
use burn_dfa::processor::ConstraintProcessor;
use burn_dfa::{
    CompiledConstraint, Constraint, DeviceConstraint, Limits, Result, TensorOptions, TokenId, Vocabulary,
};
use serde_json::{Map, Value, json};

use crate::child::{Attack, End, Gauge, attacks, hold, obey};

/// The test that a child runs.
const OBEYING: &str = "attacks::the_attack_that_a_child_is_told";

const ATTACKS: &[Attack] = attacks! {
    // Regexes.
    "(a|a)*{1000}": Fine = |gauge| regex(gauge, "(a|a)*{1000}");
    "counters in counters": Limit = |gauge| regex(gauge, "(((a{1000}){1000}){1000}){1000}");
    "optional counters in counters": Limit = |gauge| regex(gauge, "(?:(?:a{0,60}b?){0,60}c?){0,60}");
    "ways to be empty": Fine = |gauge| regex(gauge, "((a?){300}){100}|(?:){4294967295}");
    "a huge count": Limit = |gauge| regex(gauge, "a{4294967295}");
    "an exponent of states": Limit = |gauge| regex(gauge, "(?s)(a|b)*a(a|b){30}");
    "an exponent of states, in Unicode": Limit = |gauge| regex(gauge, r"\w*é\w{30}");
    "giant classes, counted": Fine = |gauge| regex(gauge, r"(?i)[\pL\pN\pS&&[^\p{Greek}]]{200}");
    "giant classes, many": Pattern = |gauge| regex(gauge, &r"\w".repeat(500_000));
    "giant classes, one": Pattern = |gauge| regex(gauge, &format!("[{}]", r"\w\PL".repeat(20_000)));
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
    "1 MB of alternatives": Bounded = |gauge| regex(gauge, &"ab|".repeat(340_000));
    "10 MB of alternatives": Pattern = |gauge| regex(gauge, &"ab|".repeat(3_500_000));
    "a count behind 150,000 repetitions in 80 loops": Bounded = |gauge| {
        regex(gauge, &format!("{}{}b{{2}}{}", "(?:".repeat(80), "a*".repeat(150_000), "c)*".repeat(80)))
    };
    "boundaries": Fine = |gauge| regex(gauge, &format!("{}a", r"(?:\b|\B|^|$)*".repeat(200)));
    // Schemas.
    "100,000 values of enum": Fine = |gauge| {
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
    "trees of trees": Fine = |gauge| {
        let all: Map<String, Value> = (0..30).map(|i| (format!("p{i}"), json!({"$ref": "#"}))).collect();
        schema(gauge, json!({"properties": all}))
    };
    "50 MB of description": Fine = |gauge| schema(gauge, json!({"type": "null", "description": "d".repeat(50 << 20)}));
    "50 MB of properties": Bounded = |gauge| {
        let all: Map<String, Value> = (0..1_400_000).map(|i| (format!("property {i}"), json!({"type": "null"}))).collect();
        schema(gauge, json!({"properties": all}))
    };
    "50 MB of values": Bounded = |gauge| {
        let values: Vec<Value> = (0..2_000_000).map(|i| json!(format!("one of the values {i}"))).collect();
        schema(gauge, json!({"enum": values}))
    };
    "50 MB of branches": Bounded = |gauge| {
        let branches: Vec<Value> = (0..900_000).map(|i| json!({"const": i, "title": "a branch", "type": "integer"})).collect();
        schema(gauge, json!({"oneOf": branches}))
    };
    "20,000 branches": Limit = |gauge| {
        let branches: Vec<Value> = (0..20_000).map(|i| json!({"const": i, "type": "integer"})).collect();
        schema(gauge, json!({"oneOf": branches}))
    };
    "a list of 200,000 different items": Schema = |gauge| {
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
    "20,000 dynamic anchors beside 20,000 references": Fine = |gauge| {
        let anchors: Map<String, Value> = (0..20_000).map(|i| (i.to_string(), json!({"$dynamicAnchor": format!("n{i}")}))).collect();
        let resource = |id: &str| json!({"$id": id, "$defs": anchors});
        let mut all = vec![json!({"$dynamicRef": "a#n0"})];
        all.extend((0..20_000).map(|_| json!({"$ref": "a"})));
        schema(gauge, json!({"type": "null", "allOf": all, "$defs": {"a": resource("a"), "b": resource("b")}}))
    };
    "50 MB of unknown keywords": Bounded = |gauge| {
        let all: Map<String, Value> = (0..2_000_000).map(|i| (format!("unknown keyword {i}"), Value::Null)).collect();
        schema(gauge, Value::Object(all))
    };
    "50 MB of pattern": Schema = |gauge| schema(gauge, json!({"pattern": "ab|".repeat(17_000_000)}));
    "50 MB of braces": Schema = |gauge| schema(gauge, json!({"pattern": "{".repeat(50 << 20)}));
    "50 MB of required names": Bounded = |gauge| {
        let names: Vec<Value> = (0..2_500_000).map(|i| json!(format!("required {i}"))).collect();
        schema(gauge, json!({"required": names}))
    };
    "100,000 required names with one hash": Fine = |gauge| {
        let schema = json!({"required": colliding(100_000)});
        gauge.arm();
        Constraint::json_schema(schema).map(drop)
    };
    "100,000 required names of random characters": Limit = |gauge| schema(gauge, json!({"required": colliding(100_000)}));
    "a required name of 10 MB": Limit = |gauge| schema(gauge, json!({"required": ["n".repeat(10 << 20)]}));
    "50 MB of one reference": Schema = |gauge| schema(gauge, json!({"$ref": format!("#{}", "/a".repeat(25 << 20))}));
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
    "slow patterns beside many names": Limit = |gauge| {
        let names: Map<String, Value> = (0..10_000).map(|i| (i.to_string(), json!(true))).collect();
        schema(gauge, json!({"properties": names, "patternProperties": {"(a|b)*a(a|b){17}": true}, "unevaluatedProperties": false}))
    };
    "a request 10,000 deep": Request = |gauge| {
        let request = json_of("response_format", nested(|inner| json_of("schema", inner)));
        gauge.arm();
        let result = Constraint::from_request(&request).map(drop);
        // Dropping it would recurse within serde_json.
        std::mem::forget(request);
        result
    };
    "references that double": Limit = |gauge| {
        let double = |i: usize| json!({"type": "object", "properties": {"a": {"$ref": format!("#/$defs/d{i}")}, "b": {"$ref": format!("#/$defs/d{i}")}}, "required": ["a", "b"]});
        let mut defs: Map<String, Value> = (0..60).map(|i| (format!("d{}", i + 1), double(i))).collect();
        defs.insert("d0".into(), json!({"type": "string"}));
        schema(gauge, json!({"$ref": "#/$defs/d60", "$defs": defs}))
    };
    "definitions that double, as JSON": Fine = |gauge| schema(gauge, doubling(50, json!({"type": "integer"})));
    "100,000 definitions in a chain": Schema = |gauge| {
        let next = |i: usize| json!({"properties": {"a": {"$ref": format!("#/$defs/d{}", i + 1)}}});
        let mut defs: Map<String, Value> = (0..100_000).map(|i| (format!("d{i}"), next(i))).collect();
        defs.insert("d100000".into(), json!({"type": "null"}));
        schema(gauge, json!({"$ref": "#/$defs/d0", "$defs": defs}))
    };
    "100,000 definitions from the last on": Schema = |gauge| {
        let next = |i: usize| json!({"properties": {"a": {"$ref": format!("#/properties/d{i}")}}});
        let mut all = Map::from_iter([("d0".to_owned(), json!({"type": "null"}))]);
        all.extend((0..100_000).map(|i| (format!("d{}", i + 1), next(i))));
        schema(gauge, json!({"properties": all}))
    };
    "slow patterns beside names that are evaluated": Limit = |gauge| {
        schema(gauge, json!({"properties": {"a": true}, "patternProperties": {"(a|b)*a(a|b){25}": true}, "unevaluatedProperties": false}))
    };
    "sets of properties": Fine = |gauge| {
        let needs = |i: usize| (format!("p{i}"), json!({"required": [format!("q{i}")]}));
        let all: Map<String, Value> = (0..40).map(needs).collect();
        schema(gauge, json!({"dependentSchemas": all}))
    };
    "sets of items": Limit = |gauge| {
        let contains: Vec<Value> = (0..40).map(|i| json!({"contains": {"const": i}})).collect();
        schema(gauge, json!({"type": "array", "allOf": contains}))
    };
    "sets of values": Schema = |gauge| {
        let values: Vec<usize> = (0..40).collect();
        schema(gauge, json!({"type": "array", "items": {"enum": values}, "uniqueItems": true}))
    };
    "exactly one of overlapping patterns": Limit = |gauge| {
        let branches: Vec<Value> = (0..40).map(|i| json!({"pattern": format!("a.{{{i}}}b")})).collect();
        schema(gauge, json!({"type": "string", "oneOf": branches}))
    };
    "all of many patterns": Fine = |gauge| {
        let branches: Vec<Value> = (0..200).map(|i| json!({"pattern": format!("(x{i}|y)*z.{{{}}}$", i % 9)})).collect();
        schema(gauge, json!({"type": "string", "allOf": branches}))
    };
    "looks in looks": Fine = |gauge| {
        let pattern = format!("{}a{}", "(?=.*(?<!b".repeat(40), "))".repeat(40));
        schema(gauge, json!({"type": "string", "pattern": pattern}))
    };
    "looks, counted": Limit = |gauge| schema(gauge, json!({"type": "string", "pattern": "(?:(?=.*a.{20})(?!b{50}).){1000}"}));
    "10,000 doubled characters": Limit = |gauge| {
        let pairs: Vec<String> = (0..10_000).filter_map(|i| char::from_u32(0x4e00 + i)).map(|c| format!("{c}{c}")).collect();
        schema(gauge, json!({"type": "string", "pattern": pairs.join("|")}))
    };
    "patterns of names": Limit = |gauge| {
        let all: Map<String, Value> = (0..60).map(|i| (format!("a.{{{i}}}b"), json!({"minimum": i}))).collect();
        schema(gauge, json!({"type": "object", "patternProperties": all}))
    };
    "2^63 characters": Limit = |gauge| schema(gauge, json!({"type": "string", "maxLength": 1u64 << 63}));
    "2^63 characters of pairs": Limit = |gauge| schema(gauge, json!({"type": "string", "maxLength": 1u64 << 63, "pattern": "^(ab)*$"}));
    "2^60 characters in 30 words": Limit = |gauge| schema(gauge, json!({"type": "string", "maxLength": 1u64 << 60, "pattern": "^(?:\\S+\\s+){0,29}\\S+$"}));
    "2^63 items": Limit = |gauge| schema(gauge, json!({"type": "array", "minItems": 1u64 << 63}));
    "2^63 properties": Limit = |gauge| schema(gauge, json!({"type": "object", "minProperties": 1u64 << 63}));
    "2^63 matches": Limit = |gauge| schema(gauge, json!({"type": "array", "contains": {"const": 1}, "minContains": 1u64 << 63}));
    "multiples of 1e-300": Fine = |gauge| schema(gauge, json!({"type": "number", "multipleOf": 1e-300}));
    "multiples of 1e300": Fine = |gauge| schema(gauge, json!({"type": "number", "multipleOf": 1e300}));
    "multiples of large primes": Limit = |gauge| {
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
    "loops of nothing": Grammar = |gauge| gbnf(gauge, "root ::= (a* b*)* root?\na ::= b* \"\"\nb ::= (a? \"x\"?)+");
    "hidden left recursion": Grammar = |gauge| gbnf(gauge, "root ::= n root \"x\" | \"y\"\nn ::= m*\nm ::= n | \"\" | \"z\"");
    "groups 10,000 deep in a grammar": Grammar = |gauge| {
        gbnf(gauge, &format!("root ::= {}\"a\"{}", "(".repeat(10_000), ")".repeat(10_000)))
    };
    "100,000 rules in a chain": Grammar = |gauge| {
        let rules: String = (0..100_000).map(|i| format!("r{i} ::= \"a\" r{} | \"b\"\n", i + 1)).collect();
        gbnf(gauge, &format!("root ::= r0\n{rules}r100000 ::= \"c\""))
    };
    "100,000 rules at the end of each other": Grammar = |gauge| {
        let rules: String = (0..100_000).map(|i| format!("r{i} ::= r{} \"a\"\n", i + 1)).collect();
        gbnf(gauge, &format!("root ::= \"x\" r0\n{rules}r100000 ::= \"b\""))
    };
    "100,000 nullable rules before recursion": Fine = |gauge| {
        let rules: String = (0..100_000).map(|i| format!("r{i} ::= r{}\n", i + 1)).collect();
        gbnf(gauge, &format!("root ::= r0 root | \"x\"\n{rules}r100000 ::= \"b\"?"))
    };
    "100,000 nullable choices before recursion": Limit = |gauge| {
        let rules: String = (0..100_000).map(|i| format!("r{i} ::= r{} | \"c{i}\"\n", i + 1)).collect();
        gbnf(gauge, &format!("root ::= r0 root | \"x\"\n{rules}r100000 ::= \"b\"?"))
    };
    "nullable rules that double before recursion": Limit = |gauge| {
        let rules: String = (0..60).map(|i| format!("r{i} ::= r{} r{}\n", i + 1, i + 1)).collect();
        gbnf(gauge, &format!("root ::= r0 root | \"x\"\n{rules}r60 ::= \"b\"?"))
    };
    "100,000 rules beside each other": Bounded = |gauge| {
        let names: Vec<String> = (0..100_000).map(|i| format!("r{i}")).collect();
        let rules: String = names.iter().map(|name| format!("{name} ::= \"{name}\"\n")).collect();
        gbnf(gauge, &format!("root ::= {}\n{rules}", names.join(" | ")))
    };
    "2,000 rules in a ring": Grammar = |gauge| {
        let rule = |i: usize| format!("r{i} ::= r{} \"a\" | \"(\" r{} \")\" | \"b\"\n", (i + 1) % 2_000, i * 7 % 2_000);
        gbnf(gauge, &format!("root ::= r0\n{}", (0..2_000).map(rule).collect::<String>()))
    };
    "rules that double": Grammar = |gauge| {
        let rules: String = (0..200).map(|i| format!("r{i} ::= r{} \"x\" r{}\n", i + 1, i + 1)).collect();
        gbnf(gauge, &format!("root ::= r0 r0\n{rules}r200 ::= \"c\""))
    };
    "a million repetitions": Limit = |gauge| gbnf(gauge, "root ::= \"a\"{0,1000000}");
    "a million millions of repetitions": Limit = |gauge| gbnf(gauge, "root ::= ((\"ab\"){0,1000000}){0,1000000}");
    "a million brackets": Limit = |gauge| gbnf(gauge, "root ::= (\"(\" root \")\"){0,1000000}");
    "10 MB of a grammar's alternatives": Limit = |gauge| {
        let branches: Vec<String> = (0..800_000).map(|i| format!("\"{i}\"")).collect();
        gbnf(gauge, &format!("root ::= {}", branches.join(" | ")))
    };
    "1,000,000 literals in a row": Limit = |gauge| gbnf(gauge, &format!("root ::= {}", r#""ab" "#.repeat(1_000_000)));
    "300 rules of 300 literals in a row": Limit = |gauge| {
        let rules: String = (0..300).map(|i| format!("r{i} ::= {}\n", format!("\"{i}\" ").repeat(300))).collect();
        let names: Vec<String> = (0..300).map(|i| format!("r{i}")).collect();
        gbnf(gauge, &format!("root ::= {}\n{rules}", names.join(" ")))
    };
    "10 MB of a grammar's literal": Limit = |gauge| gbnf(gauge, &format!("root ::= \"{}\"", "a".repeat(10 << 20)));
    "ambiguity without end": Grammar = |gauge| gbnf(gauge, "root ::= root root root | root root | \"a\" | \"\"");
    "an exponent of subsets": Limit = |gauge| gbnf(gauge, &format!("root ::= [ab]* \"a\" {}", "[ab] ".repeat(30)));
    "5,000 calls in a row": Fine = |gauge| gbnf(gauge, "root ::= \"x\" s{5000} \"y\"\ns ::= \"a\" s s | \"b\"");
    "calls that may end, 5,000 deep": Grammar = |gauge| {
        let rule = |i: usize| format!("r{i} ::= \"a\" (\"b\" r{} r{i} \"b\"?)? \n", (i + 1) % 5_000);
        gbnf(gauge, &format!("root ::= r0\n{}", (0..5_000).map(rule).collect::<String>()))
    };
    "palindromes": Grammar = |gauge| gbnf(gauge, "root ::= \"a\" root \"a\" | \"b\" root \"b\" | [ab]?");
    "sixty-four exits": Limit = |gauge| {
        let starts: Vec<String> = (0..64).map(|i| format!("a{i} \"{i:02}\"")).collect();
        let rules: String = (0..64).map(|i| format!("\na{i} ::= \"(\" a{i} \")\" | \"x{i}\"")).collect();
        gbnf(gauge, &format!("root ::= {}{rules}", starts.join(" | ")))
    };
    "complements of exponents": Limit = |gauge| {
        lark(gauge, "start: A\nA: /[ab]*a[ab]{22}/ & ~/(a|b)*b[ab]{22}/")
    };
    "2,000 terminals at once": Fine = |gauge| {
        let words: Vec<String> = (0..2_000).map(|i| format!("\"w{i}\"")).collect();
        lark(gauge, &format!("start: ({})*\n%ignore / +/", words.join(" | ")))
    };
    "templates that never end": Grammar = |gauge| lark(gauge, "start: t{\"a\"}\nt{x}: t{u{x}} | x\nu{x}: x \"b\"");
    "templates that double": Limit = |gauge| {
        let templates: String = (0..40).map(|i| format!("t{i}{{x}}: t{}{{x}} t{}{{u{{x}}}}\n", i + 1, i + 1)).collect();
        lark(gauge, &format!("start: t0{{\"a\"}}\n{templates}t40{{x}}: x\nu{{x}}: x \"b\""))
    };
    "templates in templates": Limit = |gauge| {
        lark(gauge, "start: t{u{\"b\"}, Y}+ | u{u{Y}}+ t{t{Y, x}, u{\"b\"}}\nt{p, r}: r | (u{x} \"c\" | p? u{p})? u{r}\n\
            u{p}: (\"c\"*)+ Y (\"a\"* \"b\" | x p+ p)+ | p+ \"c\"* Y\nx: \"a\" | \"c\"\nY: \"b\"")
    };
    "a parameter of 2^60 values": Grammar = |gauge| {
        lark(gauge, "start: r::0\nr::_: \"\" | \"a\" r::incr(_[0:60]) | \"b\" r::set_bit(59)")
    };
    "terminals that double": Limit = |gauge| {
        let terminals: String = (0..60).map(|i| format!("T{i}: T{} T{}\n", i + 1, i + 1)).collect();
        lark(gauge, &format!("start: T0\n{terminals}T60: \"a\""))
    };
    "terminals that double, without a text": Limit = |gauge| {
        let terminals: String = (0..60).map(|i| format!("T{i}: T{} | T{}\n", i + 1, i + 1)).collect();
        lark(gauge, &format!("start: T0\n{terminals}T60: /a/ & /b/"))
    };
    "complements that double": Fine = |gauge| {
        let terminals: String = (0..60).map(|i| format!("T{i}: ~T{} & ~T{}\n", i + 1, i + 1)).collect();
        lark(gauge, &format!("start: T0\n{terminals}T60: /a/"))
    };
    "priorities of exponents": Limit = |gauge| {
        lark(gauge, "start: A | B\nA.2: /[ab]*a[ab]{22}/\nB: /[ab]*b[ab]{22}/")
    };
    // Structural tags.
    "20,000 tags": Fine = |gauge| {
        let tags: Vec<Value> = (0..20_000).map(|i| tag(&format!("<f{i}>"), json!({"type": "any_text"}))).collect();
        format(gauge, json!({"type": "triggered_tags", "triggers": ["<f"], "tags": tags}))
    };
    "triggers that begin alike": Tag = |gauge| {
        let names: Vec<String> = (1..1_000).map(|i| format!("{}b", "a".repeat(i))).collect();
        let tags: Vec<Value> = names.iter().map(|name| tag(name, json!({"type": "const_string", "value": "x"}))).collect();
        format(gauge, json!({"type": "triggered_tags", "triggers": names, "tags": tags}))
    };
    "formats 10,000 deep": Tag = |gauge| {
        let star = |inner| [("type".to_owned(), json!("star")), ("content".to_owned(), inner)];
        let deep = (0..10_000).fold(json!({"type": "any_text"}), |inner, _| Value::Object(Map::from_iter(star(inner))));
        format(gauge, deep)
    };
    "tags in tags": Fine = |gauge| {
        let deep = (0..80).fold(json!({"type": "any_text"}), |inner, i| tag(&format!("<{i}>"), inner));
        format(gauge, deep)
    };
    "2^31 repetitions of a format": Limit = |gauge| {
        let inner = json!({"type": "const_string", "value": "ab"});
        format(gauge, json!({"type": "repeat", "min": 0, "max": i32::MAX, "content": inner}))
    };
    "2^31 characters of text": Fine = |gauge| format(gauge, json!({"type": "any_text", "max_chars": i32::MAX}));
    "10,000 excluded texts": Tag = |gauge| {
        let excluded: Vec<String> = (0..10_000).map(|i| format!("x{i}y")).collect();
        format(gauge, json!({"type": "any_text", "excludes": excluded}))
    };
    "40 properties in any order": Schema = |gauge| {
        let properties: Map<String, Value> = (0..40).map(|i| (format!("p{i}"), json!({"type": "integer"}))).collect();
        let schema = json!({"type": "object", "properties": properties});
        format(gauge, json!({"type": "json_schema", "json_schema": schema, "any_order": true}))
    };
    "definitions that double": Fine = |gauge| {
        let schema = doubling(40, json!({"type": "object", "properties": {"a": {"type": "integer"}}}));
        format(gauge, json!({"type": "qwen_xml_parameter", "json_schema": schema}))
    };
    "definitions that double, of a property": Fine = |gauge| {
        let mut schema = doubling(40, json!({"type": ["integer", "string"]}));
        schema["properties"] = json!({"a": {"$ref": "#/$defs/d0"}});
        if let Some(members) = schema.as_object_mut() {
            members.remove("$ref");
        }
        format(gauge, json!({"type": "json_schema", "json_schema": schema, "style": "cohere_xml"}))
    };
    "definitions that double, of a tool": Fine = |gauge| {
        let schema = doubling(40, json!({"type": "object", "properties": {"a": {"type": "integer"}}}));
        let limits = gauge.arm();
        let tools = Tools::new([Tool::new("f").with_parameters(schema)])?.with_format(ToolFormat::QwenXml);
        Constraint::tools(&tools)?.to_automaton(limits).map(drop)
    };
    "50,000 tools, of which all are allowed": Bounded = |gauge| {
        let tools: Vec<Value> = (0..50_000).map(|i| json!({"type": "function", "function": {"name": format!("f{i}")}})).collect();
        let names: Vec<Value> = tools.iter().rev().cloned().collect();
        let choice = json!({"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": names}});
        let limits = gauge.arm();
        let tools = Tools::from_request(&json!({"tools": tools, "tool_choice": choice}))?;
        Constraint::tools(&tools)?.to_automaton(limits).map(drop)
    };
    "80 tags in tags, each in two places": Fine = |gauge| {
        let each = |content, i| json!({
            "type": "triggered_tags", "triggers": ["<"], "at_least_one": true, "tags": [tag(&format!("<{i}>"), content)]
        });
        format(gauge, (0..80).fold(json!({"type": "const_string", "value": "x"}), each))
    };
    "100,000 tags of 4,000 triggers": Bounded = |gauge| {
        let triggers: Vec<String> = (0..4_000).map(|i| format!("<f{i:04}>")).collect();
        let content = json!({"type": "const_string", "value": "x"});
        let tags: Vec<Value> = (0..100_000).map(|i| tag(&format!("<f{:04}>{i}", i % 4_000), content.clone())).collect();
        format(gauge, json!({"type": "triggered_tags", "triggers": triggers, "tags": tags}))
    };
    "one long end around 1,000 texts": Tag = |gauge| {
        let texts: Vec<Value> = (0..1_000).map(|i| json!({"type": "any_text", "excludes": [format!("x{i}y")]})).collect();
        let content = json!({"type": "or", "elements": texts});
        format(gauge, json!({"type": "tag", "begin": "<", "content": content, "end": "0123456789abcdef".repeat(4_000)}))
    };
    "one long end around 1,000 dispatches": Tag = |gauge| {
        let texts: Vec<Value> = (0..1_000).map(|i| json!({
            "type": "triggered_tags", "triggers": [format!("x{i}y")], "tags": [tag(&format!("x{i}y"), json!({"type": "any_text"}))]
        })).collect();
        let content = json!({"type": "or", "elements": texts});
        format(gauge, json!({"type": "tag", "begin": "<", "content": content, "end": "0123456789abcdef".repeat(4_000)}))
    };
    "triggers that overlap everywhere": Tag = |gauge| {
        let triggers: Vec<String> = (0..4_000).map(|i| format!("{i:012b}").replace('0', "ab").replace('1', "ba")).collect();
        let content = json!({"type": "const_string", "value": "x"});
        let tags: Vec<Value> = triggers.iter().map(|begin| tag(begin, content.clone())).collect();
        format(gauge, json!({"type": "triggered_tags", "triggers": triggers, "tags": tags}))
    };
    "1,000 objects of 10 properties in any order": Fine = |gauge| {
        let ten = || -> Map<String, Value> { (0..10).map(|i| (format!("p{i}"), json!({"type": "integer"}))).collect() };
        let objects: Vec<Value> = (0..1_000).map(|_| json!({"type": "object", "properties": ten()})).collect();
        format(gauge, json!({"type": "json_schema", "json_schema": {"anyOf": objects}, "any_order": true}))
    };
    "16 properties that are counted": Fine = |gauge| {
        let all: Map<String, Value> = (0..16).map(|i| (format!("p{i}"), json!({"type": "integer"}))).collect();
        let schema = json!({"type": "object", "properties": all, "minProperties": 8});
        format(gauge, json!({"type": "json_schema", "json_schema": schema, "style": "qwen_xml"}))
    };
    "200 patterns of names in a style": Bounded = |gauge| {
        let all: Map<String, Value> = (0..200).map(|i| (format!("^p{i}(a|b)*a(a|b){{12}}"), json!({"minimum": i}))).collect();
        let schema = json!({"type": "object", "patternProperties": all});
        format(gauge, json!({"type": "json_schema", "json_schema": schema, "style": "qwen_xml"}))
    };
    "10,000 properties that refer to all": Limit = |gauge| {
        let all: Map<String, Value> = (0..10_000).map(|i| (format!("p{i}"), json!({"$ref": "#/$defs/a"}))).collect();
        let schema = json!({"type": "object", "properties": all, "$defs": {"a": {"enum": (0..10_000).collect::<Vec<_>>()}}});
        format(gauge, json!({"type": "json_schema", "json_schema": schema, "style": "qwen_xml"}))
    };
    "4,000 excluded texts beside a long schema": Fine = |gauge| {
        let excluded: Vec<String> = (0..4_000).map(|i| format!("x{i}y")).collect();
        let schema = json!({"type": "string", "description": "x".repeat(10 << 20)});
        format(gauge, json!({"type": "json_schema", "json_schema": schema, "excludes": excluded}))
    };
    "a tag that is no object": Tag = |gauge| format(gauge, json!([[[]]]));
    // Tokenizers.
    "a tokenizer of 5,000,000 entries": Bounded = |gauge| tokenizer(gauge, &entries(5_000_000, |i| i));
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
    // Compiled constraints and budgets.
    "a vocabulary without letters": Unsatisfiable = |gauge| {
        let limits = gauge.arm();
        let vocabulary = Vocabulary::from_bytes([Some("a"), None])?.with_eos([TokenId(1)])?;
        CompiledConstraint::compile(&Constraint::regex("[b-z]{1000}")?, &vocabulary, limits).map(drop)
    };
    "long tokens in many states": Limit = |gauge| {
        let tokens = (1..3000usize).map(|length| Some("ab".repeat(length)));
        let vocabulary = Vocabulary::from_bytes(tokens.chain([None]))?.with_eos([TokenId(2999)])?;
        let limits = gauge.arm();
        CompiledConstraint::compile_token_level(&Constraint::regex("[ab]{20000}")?, &vocabulary, limits).map(drop)
    };
    "a budget of 0": Budget = |gauge| budget(gauge, 0);
    "a budget of 2^63": Input = |gauge| budget(gauge, 1 << 63);
};

/// Names with one hash in a table of formulas, if the table had the hash of numbers.
fn colliding(count: usize) -> Vec<String> {
    let mix = |hash: u64, word: u64| (hash.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    // A required name comes after the numbers of the variants `Leaf` and `Present`.
    let before = mix(mix(0, 5), 9);
    let names = (0..).filter_map(|i: u64| {
        let first = (0..8).fold(0u64, |word, at: u32| word | (0x61 + (i >> (4 * at) & 15)) << (8 * at));
        // With this second word, the hash is 0.
        let second = mix(before, first).rotate_left(23);
        String::from_utf8([first, second].map(u64::to_le_bytes).concat()).ok()
    });
    names.take(count).collect()
}

/// A schema with `count` definitions that refer to the next one twice each; the last is `last`.
pub fn doubling(count: usize, last: Value) -> Value {
    let next = |i: usize| json!({"$ref": format!("#/$defs/d{}", i + 1)});
    let mut defs: Map<String, Value> =
        (0..count).map(|i| (format!("d{i}"), json!({"anyOf": [next(i), next(i)]}))).collect();
    defs.insert(format!("d{count}"), last);
    json!({"$ref": "#/$defs/d0", "$defs": defs})
}

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

pub fn grammar(gauge: &mut Gauge, syntax: Syntax, text: &str) -> Result<()> {
    let limits = gauge.arm();
    Constraint::grammar(syntax, text)?.to_automaton(limits).map(drop)
}

pub fn format(gauge: &mut Gauge, format: Value) -> Result<()> {
    let limits = gauge.arm();
    let tag = StructuralTag::try_from(&json_of("format", format))?;
    Constraint::structural_tag(&tag)?.to_automaton(limits).map(drop)
}

pub fn tag(begin: &str, content: Value) -> Value {
    json!({"type": "tag", "begin": begin, "content": content, "end": "</>"})
}

pub fn tokenizer(gauge: &mut Gauge, json: &str) -> Result<()> {
    let limits = gauge.arm();
    let vocabulary = Vocabulary::from_tokenizer_json(json)?;
    let end = vocabulary.len();
    let vocabulary = vocabulary.pad_to(end + 1)?.with_eos([TokenId(end as u32)])?;
    CompiledConstraint::compile(&Constraint::regex("[a-z0-9]+")?, &vocabulary, limits).map(drop)
}

/// A tokenizer of `count` entries.
pub fn entries(count: i64, id: fn(i64) -> i64) -> String {
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
    let constraint = CompiledConstraint::compile(&Constraint::regex("a*")?, &vocabulary, limits)?;
    let device_constraint =
        DeviceConstraint::new(&[&constraint], 3, &TensorOptions::default(), &Device::flex())?;
    ConstraintProcessor::new(device_constraint, &[0])?.with_budgets(&[tokens]).map(drop)
}

pub fn json_of(name: &str, inner: Value) -> Value {
    Value::Object(Map::from_iter([(name.to_owned(), inner)]))
}

/// 10,000 levels around a null.
pub fn nested(wrap: fn(Value) -> Value) -> Value {
    (0..10_000).fold(json!({"type": "null"}), |inner, _| wrap(inner))
}

#[test]
#[ignore = "run in a process of its own by the tests below"]
fn the_attack_that_a_child_is_told() {
    obey(ATTACKS);
}

#[test]
fn every_attack_ends_as_required_within_memory_and_time() {
    hold(ATTACKS, OBEYING);
}
