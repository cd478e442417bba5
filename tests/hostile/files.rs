//! Attacks by files: tokenizers with their config files, artifacts, and documents of structural
//! tags and tools.

use std::fmt::Write as _;

use burn_dfa::constraint::{StructuralTag, Tool, ToolFormat, Tools};
use burn_dfa::tokens::Origin;
use burn_dfa::vocabulary::ModelFiles;
use burn_dfa::{CompiledConstraint, Constraint, Limits, Result, TokenId, Vocabulary};
use serde_json::{Map, Value, json};

use crate::attacks::{doubling, entries, format, json_of, tag, tokenizer};
use crate::child::{Attack, End, Gauge, attacks, hold, obey};

/// The test that a child runs.
const OBEYING: &str = "files::the_attack_that_a_child_is_told";

const ATTACKS: &[Attack] = attacks! {
    // Tokenizers.
    "a tokenizer that is cut anywhere": Vocabulary = |gauge| {
        let whole = r#"{"model": {"type": "BPE", "vocab": {"a": 0, "Ġb": 1, "<0x0A>": 2}, "merges": ["a b"]}, "decoder": {"type": "ByteLevel"},
            "added_tokens": [{"id": 3, "content": "</s>", "special": true}], "pre_tokenizer": {"type": "ByteLevel"}, "x": "\u00e9é"}"#;
        let cuts = (0..whole.len()).map(|end| &whole.as_bytes()[..end]);
        gauge.arm();
        Vocabulary::from_tokenizer_json(whole)?;
        refused(cuts.map(|cut| Vocabulary::from_tokenizer_json(cut).map(drop)))
    };
    "1,000,000 merges": Fine = |gauge| {
        let merges = r#""a b","#.repeat(1_000_000);
        tokenizer(gauge, &format!(r#"{{"decoder":{{"type":"ByteLevel"}},"model":{{"type":"BPE","vocab":{{"a":0,"b":1,"ab":2}},"merges":[{merges}"a b"]}}}}"#))
    };
    "100,000 added tokens of one id": Vocabulary = |gauge| tokenizer(gauge, &added(100_000, |_| 7, |i| format!("<{i}>"))) ;
    "100,000 added tokens of one text": Fine = |gauge| tokenizer(gauge, &added(100_000, |i| i + 1, |_| "<s>".to_owned()));
    "one name 1,000,000 times": Vocabulary = |gauge| {
        let again = r#""a":0,"#.repeat(1_000_000);
        tokenizer(gauge, &format!(r#"{{"decoder":{{"type":"Metaspace"}},"model":{{"type":"WordLevel","vocab":{{{again}"b":1}}}}}}"#))
    };
    "a model 1,000,000 times": Vocabulary = |gauge| {
        let again = r#""model":{"type":"BPE","vocab":{"a":0}},"#.repeat(1_000_000);
        tokenizer(gauge, &format!(r#"{{{again}"decoder":{{"type":"ByteLevel"}}}}"#))
    };
    "a normaliser 1,000,000 deep": Vocabulary = |gauge| {
        let open = r#"{"type":"Sequence","normalizers":["#.repeat(1_000_000);
        tokenizer(gauge, &format!(r#"{{"normalizer":{open},"decoder":{{"type":"ByteLevel"}},"model":{{"type":"BPE","vocab":{{"a":0}}}}}}"#))
    };
    "an unknown part 1,000,000 deep": Fine = |gauge| {
        let deep = format!("{}{}", "[".repeat(1_000_000), "]".repeat(1_000_000));
        tokenizer(gauge, &format!(r#"{{"other":{deep},"decoder":{{"type":"ByteLevel"}},"model":{{"type":"BPE","vocab":{{"a":0}}}}}}"#))
    };
    "ids that are no ids": Vocabulary = |gauge| {
        let ids = ["1e999999", "1.5", "-0.5", "1e3", "18446744073709551616", "\"3\"", "null", "[0]", "true"];
        let texts = ids.map(|id| format!(r#"{{"decoder":{{"type":"ByteLevel"}},"model":{{"type":"BPE","vocab":{{"a":{id}}}}}}}"#));
        gauge.arm();
        refused(texts.iter().map(|text| Vocabulary::from_tokenizer_json(text).map(drop)))
    };
    "tokens of half a character": Vocabulary = |gauge| {
        tokenizer(gauge, r#"{"decoder":{"type":"ByteLevel"},"model":{"type":"BPE","vocab":{"\ud800":0,"\udc00":1,"a":2}}}"#)
    };
    "a pattern of a decoder that is slow": Vocabulary = |gauge| {
        tokenizer(gauge, r#"{"decoder":{"type":"Replace","pattern":{"Regex":"(a*)*b"},"content":""},"model":{"type":"BPE","vocab":{"a":0}}}"#)
    };
    // The config files of a tokenizer.
    "a width of 1e18": Vocabulary = |gauge| beside(gauge, r#"{"vocab_size": 1000000000000000000, "eos_token_id": 1}"#, None);
    "a width of 1e999999": Vocabulary = |gauge| beside(gauge, r#"{"vocab_size": 1e999999, "eos_token_id": 1}"#, None);
    "an end of 2^64": Vocabulary = |gauge| beside(gauge, r#"{"eos_token_id": 18446744073709551616}"#, None);
    "1,000,000 ends": Fine = |gauge| {
        let ends = "1,".repeat(1_000_000);
        beside(gauge, &format!(r#"{{"eos_token_id": [{ends}1]}}"#), None)
    };
    "1,000,000 ends that are no tokens": Vocabulary = |gauge| {
        let mut ends = String::new();
        (2..1_000_000).for_each(|id| write!(ends, "{id},").expect("a string takes all"));
        beside(gauge, &format!(r#"{{"eos_token_id": [{ends}1]}}"#), None)
    };
    "a configuration 1,000,000 deep": Vocabulary = |gauge| beside(gauge, &format!(r#"{{"a": {}"#, "[".repeat(1_000_000)), None);
    "an end 1,000,000 deep": Vocabulary = |gauge| {
        let deep = r#"{"content":"#.repeat(1_000_000);
        beside(gauge, "{}", Some(&format!(r#"{{"eos_token": {deep}"#)))
    };
    "an end of 30 MB": Vocabulary = |gauge| beside(gauge, "{}", Some(&format!(r#"{{"eos_token": "{}"}}"#, "e".repeat(30 << 20))));
    // Artifacts.
    "an artifact that is cut anywhere": Artifact = |gauge| {
        let (vocabulary, whole) = artifact()?;
        let limits = gauge.arm().clone();
        CompiledConstraint::from_bytes(&whole, &vocabulary, &limits)?;
        refused((0..whole.len()).map(|end| CompiledConstraint::from_bytes(&whole[..end], &vocabulary, &limits).map(drop)))
    };
    "an artifact with any byte changed": Artifact = |gauge| {
        let (vocabulary, whole) = artifact()?;
        let limits = gauge.arm().clone();
        refused((0..whole.len()).flat_map(|at| [1, 0x80, 0xff].map(|mask| (at, mask))).map(|(at, mask)| {
            let mut changed = whole.clone();
            changed[at] ^= mask;
            CompiledConstraint::from_bytes(&changed, &vocabulary, &limits).map(drop)
        }))
    };
    "a header of 2^63 bytes": Artifact = |gauge| read(gauge, &[&(1u64 << 63).to_le_bytes(), &b"{}"[..]].concat());
    "a header 10,000,000 deep": Artifact = |gauge| headed(gauge, &"[".repeat(10_000_000), 0);
    "a header with metadata 10,000,000 deep": Artifact = |gauge| {
        headed(gauge, &format!(r#"{{"__metadata__": {{"constraint": {}"#, r#"{"a":"#.repeat(10_000_000)), 0)
    };
    "90 MB of metadata": Limit = |gauge| headed(gauge, &format!(r#"{{"__metadata__": {{"constraint": "{}"}}}}"#, "c".repeat(90 << 20)), 0);
    "1,000,000 texts of metadata": Artifact = |gauge| {
        let mut texts = String::new();
        (0..1_000_000).for_each(|i| write!(texts, r#""{i}":"","#).expect("a string takes all"));
        headed(gauge, &format!(r#"{{"__metadata__": {{{texts}"format":"burn-dfa compiled constraint"}}}}"#), 0)
    };
    "1,000,000 tensors": Artifact = |gauge| {
        let mut tensors = String::new();
        (0..1_000_000).for_each(|i| write!(tensors, r#","{i}":{{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}"#).expect("a string takes all"));
        headed(gauge, &format!(r#"{{"__metadata__": {{"format": "burn-dfa compiled constraint"}}{tensors}}}"#), 0)
    };
    "tensors of 2^64 elements": Artifact = |gauge| {
        headed(gauge, r#"{"next":{"dtype":"I32","shape":[4294967296,4294967296],"data_offsets":[0,4]}}"#, 4)
    };
    "a tensor of 1,000,000 dimensions": Artifact = |gauge| {
        headed(gauge, &format!(r#"{{"next":{{"dtype":"U8","shape":[{}1],"data_offsets":[0,1]}}}}"#, "1,".repeat(1_000_000)), 1)
    };
    "tensors that overlap": Artifact = |gauge| {
        headed(gauge, r#"{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}}"#, 6)
    };
    "a tensor that ends before it begins": Artifact = |gauge| {
        headed(gauge, r#"{"a":{"dtype":"U8","shape":[4],"data_offsets":[8,4]},"b":{"dtype":"U8","shape":[8],"data_offsets":[0,8]}}"#, 8)
    };
    "numbers of metadata that are too large": Artifact = |gauge| {
        let (vocabulary, whole) = artifact()?;
        let length = u64::from_le_bytes(whole[..8].try_into().expect("8 bytes")) as usize;
        let header: Value = serde_json::from_slice(&whole[8..8 + length]).expect("a header");
        let changed = ["start", "frames"].into_iter().flat_map(|name| {
            let header = &header;
            ["99999999999999999999999", "-1", "1e9", "4294967295", ""].map(move |number| {
                let mut header = header.clone();
                header["__metadata__"][name] = number.into();
                header.to_string()
            })
        });
        let changed: Vec<Vec<u8>> = changed.map(|header| file(&header, &whole[8 + length..])).collect();
        let limits = gauge.arm().clone();
        refused(changed.iter().map(|file| CompiledConstraint::from_bytes(file, &vocabulary, &limits).map(drop)))
    };
    // Structural tags.
    "100,000 formats in a sequence": Limit = |gauge| {
        let elements: Vec<Value> = (0..100_000).map(|i| json!({"type": "const_string", "value": format!("{i}")})).collect();
        format(gauge, json!({"type": "sequence", "elements": elements}))
    };
    "100,000 formats of which one": Limit = |gauge| {
        let elements: Vec<Value> = (0..100_000).map(|i| json!({"type": "regex", "pattern": format!("{i}[ab]")})).collect();
        format(gauge, json!({"type": "or", "elements": elements}))
    };
    "100,000 triggers": Tag = |gauge| {
        let triggers: Vec<String> = (0..100_000).map(|i| format!("<f{i}>")).collect();
        let tags: Vec<Value> = triggers.iter().map(|begin| tag(begin, json!({"type": "const_string", "value": "x"}))).collect();
        format(gauge, json!({"type": "triggered_tags", "triggers": triggers, "tags": tags}))
    };
    "100,000 tags that begin alike": Fine = |gauge| {
        let tags: Vec<Value> = (0..100_000).map(|_| tag("<f>", json!({"type": "const_string", "value": "x"}))).collect();
        format(gauge, json!({"type": "triggered_tags", "triggers": ["<f>"], "tags": tags}))
    };
    "1,000 tags of one schema of 100 KB": Fine = |gauge| {
        let schema = json!({"type": "object", "properties": {"a": {"type": "integer"}}, "description": "d".repeat(100_000)});
        let content = json!({"type": "qwen_xml_parameter", "json_schema": schema});
        let tags: Vec<Value> = (0..1_000).map(|i| tag(&format!("<f{i}>"), content.clone())).collect();
        format(gauge, json!({"type": "triggered_tags", "triggers": ["<f"], "tags": tags}))
    };
    "numbers of formats that are too large": Tag = |gauge| {
        let inner = json!({"type": "const_string", "value": "ab"});
        let formats = [
            json!({"type": "any_text", "max_chars": 1u64 << 63}),
            json!({"type": "any_text", "max_tokens": -1}),
            json!({"type": "any_text", "max_tokens": 1e300}),
            json!({"type": "repeat", "min": -1, "max": 3, "content": inner}),
            json!({"type": "repeat", "min": 5, "max": 3, "content": inner}),
            json!({"type": "repeat", "min": 1u64 << 40, "max": 1u64 << 41, "content": inner}),
            json!({"type": "token", "token": 1u64 << 40}),
            json!({"type": "json_schema", "json_schema": true, "max_whitespace_cnt": 1u64 << 40}),
            json!({"type": "json_schema", "json_schema": true, "max_whitespace_cnt": 100}),
        ];
        let limits = gauge.arm().clone();
        refused(formats.into_iter().map(|format| {
            let tag = StructuralTag::try_from(&json_of("format", format))?;
            Constraint::structural_tag(&tag)?.to_automaton(&limits).map(drop)
        }))
    };
    "repetitions in repetitions of formats": Limit = |gauge| {
        let inner = json!({"type": "const_string", "value": "ab"});
        let repeat = |inner, _| json!({"type": "repeat", "min": 1_000, "max": 2_000, "content": inner});
        format(gauge, (0..8).fold(inner, repeat))
    };
    "definitions that double, in every style": Fine = |gauge| {
        let schema = doubling(40, json!({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}));
        let limits = gauge.arm().clone();
        STYLES.iter().try_for_each(|style| {
            let format = json!({"type": "json_schema", "json_schema": schema, "style": style});
            let tag = StructuralTag::try_from(&json_of("format", format))?;
            Constraint::structural_tag(&tag)?.to_automaton(&limits).map(drop)
        })
    };
    "definitions that double, in any order": Fine = |gauge| {
        let schema = doubling(40, json!({"type": "object", "properties": {"a": {"type": "integer"}}}));
        format(gauge, json!({"type": "json_schema", "json_schema": schema, "any_order": true}))
    };
    "a ring of definitions in every style": Schema = |gauge| {
        let next = |i: usize| json!({"anyOf": [{"$ref": format!("#/$defs/d{}", (i + 1) % 40)}, {"$ref": format!("#/$defs/d{}", (i + 7) % 40)}]});
        let defs: Map<String, Value> = (0..40).map(|i| (format!("d{i}"), next(i))).collect();
        let schema = json!({"$ref": "#/$defs/d0", "$defs": defs});
        let limits = gauge.arm().clone();
        refused(STYLES.iter().map(|style| {
            let format = json!({"type": "json_schema", "json_schema": schema, "style": style});
            let tag = StructuralTag::try_from(&json_of("format", format))?;
            Constraint::structural_tag(&tag)?.to_automaton(&limits).map(drop)
        }))
    };
    "100,000 properties in a style": Limit = |gauge| {
        let all: Map<String, Value> = (0..100_000).map(|i| (format!("p{i}"), json!({"type": "integer"}))).collect();
        format(gauge, json!({"type": "json_schema", "json_schema": {"type": "object", "properties": all}, "style": "qwen_xml"}))
    };
    "10,000 properties that refer to as many definitions": Limit = |gauge| {
        let all: Map<String, Value> = (0..10_000).map(|i| (format!("p{i}"), json!({"$ref": format!("#/$defs/d{i}")}))).collect();
        let defs: Map<String, Value> = (0..10_000).map(|i| (format!("d{i}"), json!({"enum": [i]}))).collect();
        let schema = json!({"type": "object", "properties": all, "$defs": defs});
        format(gauge, json!({"type": "json_schema", "json_schema": schema, "style": "qwen_xml"}))
    };
    "a property of 100,000 values in a style": Fine = |gauge| {
        let values: Vec<String> = (0..100_000).map(|i| format!("value {}", i * 7919 % 100_000)).collect();
        let schema = json!({"type": "object", "properties": {"a": {"enum": values}}});
        format(gauge, json!({"type": "json_schema", "json_schema": schema, "style": "minimax_xml"}))
    };
    "names of properties of 1 MB in a style": Limit = |gauge| {
        let all: Map<String, Value> = (0..10).map(|i| (format!("{i}{}", "n".repeat(1 << 20)), json!({"type": "integer"}))).collect();
        format(gauge, json!({"type": "json_schema", "json_schema": {"type": "object", "properties": all}, "style": "kimi_k3_xml"}))
    };
    "1,000 levels of arrays in a style": Tag = |gauge| {
        let deep = (0..1_000).fold(json!({"type": "integer"}), |inner, _| json!({"type": "array", "items": inner}));
        let schema = json!({"type": "object", "properties": {"a": deep}});
        format(gauge, json!({"type": "json_schema", "json_schema": schema, "style": "cohere_xml"}))
    };
    // Tools.
    "10,000 tools in XML": Fine = |gauge| {
        let parameters = json!({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}});
        let limits = gauge.arm().clone();
        let tools = (0..10_000).map(|i| Tool::new(format!("f{i}")).with_parameters(parameters.clone()));
        Constraint::tools(&Tools::new(tools)?.with_format(ToolFormat::QwenXml))?.to_automaton(&limits).map(drop)
    };
    "a tool of 10,000 properties": Limit = |gauge| {
        let all: Map<String, Value> = (0..10_000).map(|i| (format!("p{i}"), json!({"$ref": format!("#/$defs/d{i}")}))).collect();
        let defs: Map<String, Value> = (0..10_000).map(|i| (format!("d{i}"), json!({"type": "integer"}))).collect();
        let schema = json!({"type": "object", "properties": all, "$defs": defs});
        let limits = gauge.arm().clone();
        let tools = Tools::new([Tool::new("f").with_parameters(schema)])?.with_format(ToolFormat::QwenXml);
        Constraint::tools(&tools)?.to_automaton(&limits).map(drop)
    };
};

/// The styles of structural tags.
const STYLES: [&str; 8] = [
    "qwen_xml",
    "minimax_xml",
    "deepseek_xml",
    "deepseek_v4_1_xml",
    "glm_xml",
    "kimi_k3_xml",
    "cohere_xml",
    "json",
];

/// The last of several results, which must all be errors of one kind.
fn refused(results: impl IntoIterator<Item = Result<()>>) -> Result<()> {
    let mut last = Ok(());
    for (at, result) in results.into_iter().enumerate() {
        let (end, before) = (End::of(&result), End::of(&last));
        assert!(end != End::Fine && (at == 0 || end == before), "number {at}: {end:?} after {before:?}");
        last = result;
    }
    last
}

/// A tokenizer of `count` added tokens.
fn added(count: usize, id: fn(usize) -> usize, content: fn(usize) -> String) -> String {
    let mut tokens = String::new();
    for i in 0..count {
        let comma = if i == 0 { "" } else { "," };
        write!(tokens, r#"{comma}{{"id":{},"content":"{}","special":true}}"#, id(i), content(i))
            .expect("a string takes all");
    }
    format!(
        r#"{{"decoder":{{"type":"ByteLevel"}},"model":{{"type":"BPE","vocab":{{"a":0}}}},"added_tokens":[{tokens}]}}"#
    )
}

/// A tokenizer with config files.
fn beside(gauge: &mut Gauge, config: &str, tokenizer_config: Option<&str>) -> Result<()> {
    gauge.arm();
    let files = ModelFiles {
        tokenizer: entries(2, |i| i).into_bytes().into(),
        config: Some(config.into()),
        tokenizer_config: tokenizer_config.map(Into::into),
        ..ModelFiles::default()
    };
    Vocabulary::from_files(&files).map(drop)
}

/// A small artifact, and its vocabulary.
fn artifact() -> Result<(Vocabulary, Vec<u8>)> {
    let vocabulary = Vocabulary::from_chars("ab(".chars())?.with_eos([TokenId(2)])?;
    let (constraint, limits) = (Constraint::regex("ab*")?, Limits::default());
    let compiled = CompiledConstraint::compile(&constraint, &vocabulary, &limits)?;
    let bytes = compiled.to_bytes(&Origin::new(&constraint, &limits))?;
    Ok((vocabulary, bytes))
}

fn file(header: &str, data: &[u8]) -> Vec<u8> {
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), data].concat()
}

/// An artifact of a header and `zeros` zeros.
fn headed(gauge: &mut Gauge, header: &str, zeros: usize) -> Result<()> {
    read(gauge, &file(header, &vec![0; zeros]))
}

fn read(gauge: &mut Gauge, bytes: &[u8]) -> Result<()> {
    let (vocabulary, _) = artifact()?;
    let limits = gauge.arm();
    CompiledConstraint::from_bytes(bytes, &vocabulary, limits).map(drop)
}

#[test]
#[ignore = "run in a process of its own by the test below"]
fn the_attack_that_a_child_is_told() {
    obey(ATTACKS);
}

#[test]
fn every_file_ends_as_required_within_memory_and_time() {
    hold(ATTACKS, OBEYING);
}
