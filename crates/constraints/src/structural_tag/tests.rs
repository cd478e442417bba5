use burn_dfa_common::{ErrorKind, Limits};
use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{Begin, End, Format, StructuralTag, Tag, TriggeredTags};
use crate::json_schema::{self, Json, Types};
use crate::{AnyText, Constraint, Dispatch, JsonOptions, TagsWithSeparator};
use burn_dfa_automata::ByteAutomaton;

fn automaton(format: Value) -> ByteAutomaton {
    let tag = json!({"type": "structural_tag", "format": format});
    Constraint::structural_tag(&tag).unwrap().to_automaton(&Limits::default()).unwrap().unwrap()
}

fn schema(schema: Value, rest: Value) -> ByteAutomaton {
    let mut format = json!({"type": "json_schema", "json_schema": schema});
    format.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
    automaton(format)
}

#[track_caller]
fn check(automaton: &ByteAutomaton, accepts: &[&str], rejects: &[&str]) {
    for text in accepts {
        assert!(automaton.matches(text.as_bytes()), "{text:?} is refused");
    }
    for text in rejects {
        assert!(!automaton.matches(text.as_bytes()), "{text:?} is taken");
    }
}

/// Numbers below a bound, by a linear congruential generator.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }

    fn text(&mut self, least: usize, max: usize) -> String {
        let length = least + self.below(max - least + 1);
        (0..length).map(|_| ['a', 'b', '<', 'é'][self.below(4)]).collect()
    }

    fn content(&mut self, depth: usize) -> Format {
        match self.below(if depth == 0 { 4 } else { 6 }) {
            0 => Format::any_text(),
            1 => AnyText::new().with_excludes([self.text(1, 2)]).into(),
            2 => AnyText::new().with_max_chars(self.below(3) as u32).into(),
            3 => Format::const_string(self.text(0, 2)),
            4 => Format::sequence([self.content(depth - 1), self.content(depth - 1)]),
            _ => self.triggered(depth - 1),
        }
    }

    fn tag(&mut self, begin: String, depth: usize) -> Tag {
        Tag::new(&*begin, self.content(depth), &*self.text(1, 2))
    }

    fn triggered(&mut self, depth: usize) -> Format {
        let triggers: BTreeSet<String> = (0..1 + self.below(3)).map(|_| self.text(1, 3)).collect();
        let mut tags = Vec::new();
        for trigger in &triggers {
            for _ in 0..1 + self.below(2) {
                let begin = format!("{trigger}{}", self.text(0, 1));
                tags.push(self.tag(begin, depth));
            }
        }
        if self.below(4) == 0 {
            return TagsWithSeparator::new(tags, self.text(0, 1))
                .with_at_least_one(self.below(2) == 0)
                .into();
        }
        if self.below(4) == 0 {
            let rules: Vec<_> = triggers.into_iter().map(|trigger| (trigger, self.content(0))).collect();
            return Dispatch::new(rules).with_again(self.below(2) == 0).into();
        }
        let excludes: Vec<String> = (0..self.below(2)).map(|_| self.text(1, 2)).collect();
        TriggeredTags::new(triggers, tags)
            .with_at_least_one(self.below(3) == 0)
            .with_stop_after_first(self.below(3) == 0)
            .with_excludes(excludes)
            .into()
    }
}

/// The ends of a format's texts from a start offset in a text, by the meaning of each format alone.
struct Reader<'t>(&'t str);

type Ends = BTreeSet<usize>;

impl Reader<'_> {
    fn format(&self, format: &Format, start: usize, ends: &[String]) -> Ends {
        let rest = &self.0[start..];
        match format {
            Format::ConstString { value } => self.literal(value, start),
            Format::AnyText(text) => {
                let excluded = [&text.excludes[..], ends].concat();
                let max = text.max_chars.map_or(usize::MAX, |max| max as usize);
                let lengths =
                    rest.char_indices().map(|(at, _)| at).chain([rest.len()]).take(max.saturating_add(1));
                let free = |length: &usize| !excluded.iter().any(|text| rest[..*length].contains(text));
                lengths.filter(free).map(|length| start + length).collect()
            }
            Format::Sequence { elements } => elements.iter().fold(Ends::from([start]), |starts, format| {
                starts.iter().flat_map(|&start| self.format(format, start, ends)).collect()
            }),
            Format::Tag(tag) => self.tag(tag, start),
            Format::TagsWithSeparator(tags) => {
                let mut all = Ends::new();
                let mut new: Ends = tags.tags.iter().flat_map(|tag| self.tag(tag, start)).collect();
                while !new.is_subset(&all) {
                    all.extend(&new);
                    let starts = new.iter().flat_map(|&at| self.literal(&tags.separator, at));
                    let starts: Ends = starts.collect();
                    new = starts
                        .iter()
                        .flat_map(|&at| tags.tags.iter().flat_map(move |tag| self.tag(tag, at)))
                        .collect();
                }
                all.extend((!tags.at_least_one).then_some(start));
                all
            }
            Format::TriggeredTags(tags) => {
                let excluded = [&tags.excludes[..], ends].concat();
                let behind = |trigger: &str, at: usize| -> Ends {
                    let of_trigger = tags.tags.iter().filter_map(|tag| match &tag.begin {
                        Begin::Text(begin) => Some((tag, begin.strip_prefix(trigger)?)),
                        Begin::Token(_) => None,
                    });
                    of_trigger
                        .flat_map(|(tag, rest)| {
                            self.literal(rest, at)
                                .into_iter()
                                .flat_map(|at| self.inside(tag, at))
                                .collect::<Vec<_>>()
                        })
                        .collect()
                };
                let mut starts = Ends::from([start]);
                if tags.at_least_one {
                    starts = tags.tags.iter().flat_map(|tag| self.tag(tag, start)).collect();
                    if tags.stop_after_first {
                        return starts;
                    }
                }
                self.free(starts, &tags.triggers, &excluded, !tags.stop_after_first, &behind)
            }
            Format::Dispatch(dispatch) => {
                let patterns: Vec<String> =
                    dispatch.rules.iter().map(|(pattern, _)| pattern.clone()).collect();
                let behind = |pattern: &str, at: usize| -> Ends {
                    let rules = dispatch.rules.iter().filter(|(known, _)| known == pattern);
                    rules.flat_map(|(_, format)| self.format(format, at, &[])).collect()
                };
                self.free(Ends::from([start]), &patterns, &dispatch.excludes, dispatch.again, &behind)
            }
            other => unimplemented!("{other:?}"),
        }
    }

    /// Free text from each start, with the continuation of the first complete trigger.
    fn free(
        &self,
        starts: Ends,
        triggers: &[String],
        excluded: &[String],
        again: bool,
        behind: &dyn Fn(&str, usize) -> Ends,
    ) -> Ends {
        let mut all = Ends::new();
        let mut seen = Ends::new();
        let mut rest: Vec<usize> = starts.into_iter().collect();
        while let Some(start) = rest.pop() {
            if !seen.insert(start) {
                continue;
            }
            for end in (start..=self.0.len()).filter(|&end| self.0.is_char_boundary(end)) {
                let text = &self.0[start..end];
                if excluded.iter().any(|mark| text.ends_with(mark)) {
                    break;
                }
                let complete = triggers.iter().filter(|mark| text.ends_with(*mark));
                if let Some(trigger) = complete.max_by_key(|mark| mark.len()) {
                    let ends = behind(trigger, end);
                    if again {
                        rest.extend(ends)
                    } else {
                        all.extend(ends)
                    }
                    break;
                }
                all.insert(end);
            }
        }
        all
    }

    fn literal(&self, text: &str, start: usize) -> Ends {
        self.0[start..].starts_with(text).then_some(start + text.len()).into_iter().collect()
    }

    fn tag(&self, tag: &Tag, start: usize) -> Ends {
        let Begin::Text(begin) = &tag.begin else { unimplemented!() };
        self.literal(begin, start).into_iter().flat_map(|at| self.inside(tag, at)).collect()
    }

    fn inside(&self, tag: &Tag, start: usize) -> Ends {
        let End::Text(end) = &tag.end else { unimplemented!() };
        let contents = self.format(&tag.content, start, std::slice::from_ref(end));
        contents.into_iter().flat_map(|at| self.literal(end, at)).collect()
    }
}

#[test]
fn random_catalogs_match_their_formats() {
    let mut random = Random(7);
    let (mut compiled, mut taken) = (0, 0);
    for _ in 0..400 {
        let format = random.triggered(1);
        let tag = StructuralTag::new(format.clone());
        let constraint = match Constraint::structural_tag(&tag) {
            Ok(constraint) => constraint,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::StructuralTag, "{error}");
                continue;
            }
        };
        let automaton = match constraint.to_automaton(&Limits::default()) {
            Ok(automaton) => automaton.unwrap(),
            Err(error) => panic!("{error}: {format:?}"),
        };
        compiled += 1;
        let mut texts: Vec<String> = (0..60).map(|_| random.text(0, 9)).collect();
        // A text with the beginning of a tag.
        if let Format::TriggeredTags(TriggeredTags { tags, .. })
        | Format::TagsWithSeparator(TagsWithSeparator { tags, .. }) = &format
        {
            for tag in tags {
                let (Begin::Text(begin), End::Text(end)) = (&tag.begin, &tag.end) else { unreachable!() };
                texts.extend((0..10).map(|_| {
                    format!("{}{begin}{}{end}{}", random.text(0, 2), random.text(0, 3), random.text(0, 2))
                }));
            }
        }
        for text in texts {
            let expected = Reader(&text).format(&format, 0, &[]).contains(&text.len());
            assert_eq!(automaton.matches(text.as_bytes()), expected, "{text:?} of {format:?}");
            taken += usize::from(expected);
        }
    }
    assert!(compiled > 150 && taken > 1_000, "{compiled} {taken}");
}

#[test]
fn many_triggers_are_one_automaton() {
    let mut states = Vec::new();
    for count in [100, 500] {
        let start = std::time::Instant::now();
        let names: Vec<String> =
            (0..count).map(|i| format!("tool_{:08x}", i * 2_654_435_761_u64 % (1 << 32))).collect();
        let tags = names
            .iter()
            .map(|name| Tag::new(&*format!("<function={name}>"), Format::regex("[0-9]{1,4}"), "</function>"));
        let triggers: Vec<String> = names.iter().map(|name| format!("<function={name}")).collect();
        let tag = StructuralTag::new(TriggeredTags::new(triggers, tags));
        let automaton =
            Constraint::structural_tag(&tag).unwrap().to_automaton(&Limits::default()).unwrap().unwrap();
        let text = format!("First <function={0}>12</function>, then <function={0}>3</function>", names[17]);
        check(&automaton, &[&text, "<function=tool_", "<function=other>"], &["<function=tool_00000000>x"]);
        println!("{count} triggers: {} states in {:?}", automaton.state_count(), start.elapsed());
        states.push(automaton.state_count());
    }
    assert!(states[1] < 6 * states[0], "{states:?}");
    let one = json!({"type": "triggered_tags", "triggers": ["<"], "tags": [{"begin": "<a>", "content": {"type": "regex", "pattern": "[0-9]{1,4}"}, "end": "</a>"}]});
    check(&automaton(one), &["b > a <a>1</a>"], &["a < b"]);
}

#[test]
fn text_of_counted_tokens_has_no_automaton_of_bytes() {
    let text = AnyText::new().with_max_tokens(2);
    let tag = StructuralTag::new(Format::tag("<t>", text, "</t>"));
    let constraint = Constraint::structural_tag(&tag).unwrap();
    assert!(constraint.to_automaton(&Limits::default()).unwrap().is_none());
    for (max, text) in [(0, "<t></t>"), (2_147_483_647, "<t>any</t>")] {
        let text_of = AnyText::new().with_max_tokens(max);
        let tag = StructuralTag::new(Format::tag("<t>", text_of, "</t>"));
        let constraint = Constraint::structural_tag(&tag).unwrap();
        assert!(constraint.to_automaton(&Limits::default()).unwrap().unwrap().matches(text.as_bytes()));
    }
    // A bound is an end, too.
    assert!(
        Constraint::structural_tag(&StructuralTag::new(Format::tag(
            "<t>",
            AnyText::new().with_max_tokens(2),
            ""
        )))
        .is_ok()
    );
}

#[test]
fn refusals_name_their_location() {
    let nothing = json!({"type": "const_string", "value": ""});
    let tag = |begin: &str, end: Value| json!({"begin": begin, "content": {"type": "any_text"}, "end": end});
    let cases = [
        (json!({"type": "const_string", "value": 1}), "/format/value"),
        (json!({"type": "const_string", "value": "a", "x/y": 1}), "/format/x~1y"),
        (json!({"type": "any_text", "max_tokens": -3}), "/format/max_tokens"),
        (json!({"type": "any_text", "max_tokens": 2_147_483_648_u64}), "/format/max_tokens"),
        (json!({"type": "any_text", "max_chars": -1}), "/format/max_chars"),
        (json!({"type": "any_text", "excludes": ["a", ""]}), "/format/excludes/1"),
        (json!({"type": "sequence", "elements": [nothing, {"type": "other"}]}), "/format/elements/1/type"),
        (json!({"type": "repeat", "min": 2, "max": 1, "content": nothing}), "/format/max"),
        (json!({"type": "regex", "pattern": "(?<=a)b"}), "/format/pattern"),
        (json!({"type": "grammar", "grammar": "root ::= other"}), "/format/grammar"),
        (json!({"type": "grammar", "grammar": "root ::= (\"a\" Token(1))*"}), "/format/grammar"),
        (
            json!({"type": "tag", "begin": "", "content": {"type": "any_text"}, "end": ["", ""]}),
            "/format/end",
        ),
        (
            json!({"type": "tag", "begin": "<a>", "content": {"type": "any_text", "max_tokens": 2_147_483_647}, "end": ""}),
            "/format/end",
        ),
        (
            json!({"type": "tag", "begin": "<a>", "content": {"type": "any_text", "max_chars": 2_147_483_647}, "end": ""}),
            "/format/end",
        ),
        (
            json!({"type": "triggered_tags", "triggers": ["<"], "tags": [tag("(", json!(")"))]}),
            "/format/tags/0/begin",
        ),
        (
            json!({"type": "triggered_tags", "triggers": ["a", "b"], "tags": [tag("a", json!("b"))]}),
            "/format/triggers/1",
        ),
        (
            json!({"type": "triggered_tags", "triggers": ["a"], "tags": [tag("a", json!(")"))], "excludes": ["a"]}),
            "/format/triggers",
        ),
        (json!({"type": "dispatch", "rules": [["a", nothing], ["ab", nothing]]}), "/format/rules"),
        (json!({"type": "json_schema", "json_schema": {"minimum": "1"}}), "/format/json_schema/minimum"),
        (json!({"type": "json_schema", "json_schema": {}, "style": "minimax_m3_xml"}), "/format/style"),
        (
            json!({"type": "json_schema", "json_schema": {}, "max_whitespace_cnt": 65}),
            "/format/max_whitespace_cnt",
        ),
        (
            json!({"type": "json_schema", "json_schema": {"type": "object", "$ref": "#/$defs/a"}, "style": "qwen_xml"}),
            "/format/json_schema/$ref",
        ),
    ];
    for (format, pointer) in cases {
        let error = Constraint::structural_tag(&json!({"format": format})).unwrap_err();
        assert_eq!(error.pointer(), Some(pointer), "{error}");
        assert!(error.kind().is_constraint());
    }
    let mut deep = nothing;
    for _ in 0..100_000 {
        let mut outer = json!({"type": "optional"});
        outer["content"] = deep;
        deep = outer;
    }
    let mut tag = json!({});
    tag["format"] = deep;
    assert_eq!(Constraint::structural_tag(&tag).unwrap_err().kind(), ErrorKind::StructuralTag);
    // A deep value is dropped by recursion.
    std::mem::forget(tag);
}

#[test]
fn written_tags_are_read_back() {
    let format = json!({"type": "sequence", "elements": [
        {"type": "tag", "begin": {"type": "token", "token": "<think>"}, "content": {"type": "any_tokens", "max_tokens": 9}, "end": {"type": "token", "token": 7}},
        {"type": "triggered_tags", "triggers": ["<"], "tags": [{"begin": "<a>", "content": {"type": "json_schema", "json_schema": {"type": "object"}, "style": "deepseek_v4_1_xml"}, "end": ["</a>", "</b>"]}], "stop_after_first": true},
        {"type": "dispatch", "rules": [["@", {"type": "regex", "pattern": "a"}]], "loop": false},
        {"type": "repeat", "min": 1, "max": -1, "content": {"type": "const_string", "value": "x"}}
    ]});
    let given = json!({"type": "structural_tag", "format": format});
    let tag = StructuralTag::try_from(&given).unwrap();
    assert_eq!(serde_json::to_value(&tag).unwrap(), given);
    assert_eq!(serde_json::from_value::<StructuralTag>(given.clone()).unwrap(), tag);
    assert_eq!(Constraint::structural_tag(&tag).unwrap().definition().unwrap(), given.to_string());

    let old = json!({"triggers": ["<"], "structures": [{"begin": "<a>", "schema": {"type": "null"}, "end": "</a>"}]});
    let old = Constraint::structural_tag(&old).unwrap();
    let again = Constraint::from_request_str(&old.definition().unwrap()).unwrap().unwrap();
    assert_eq!(again.definition(), old.definition());
    let again = again.to_automaton(&Limits::default()).unwrap().unwrap();
    check(&again, &["a <a>null</a>"], &["<a>1</a>"]);
}

#[test]
fn integers_of_64_bits_keep_their_digits() {
    let automaton = schema(json!({"const": 9_007_199_254_740_993_u64}), json!({}));
    check(&automaton, &["9007199254740993"], &["9007199254740992"]);
    let automaton = schema(json!({"type": "integer", "minimum": i64::MIN, "maximum": u64::MAX}), json!({}));
    check(
        &automaton,
        &["-9223372036854775808", "18446744073709551615"],
        &["-9223372036854775809", "18446744073709551616"],
    );
    let text = |number: &str| {
        format!(r#"{{"format": {{"type": "json_schema", "json_schema": {{"maximum": {number}}}}}}}"#)
    };
    let tag = StructuralTag::read(&text("9223372036854775807")).unwrap();
    assert!(serde_json::to_string(&tag).unwrap().contains("9223372036854775807"));
    let error = StructuralTag::read(&text("18446744073709551617")).unwrap_err();
    assert_eq!(error.pointer(), Some("/format/json_schema"), "{error}");
}

#[test]
fn a_schema_of_several_tags_is_one_rule() {
    let content = || Format::json_schema(json!({"type": "object", "properties": {"a": {"type": "integer"}}}));
    let tags = ["a", "b", "c"].map(|name| Tag::new(&*format!("<{name}>"), content(), "</>"));
    let constraint =
        Constraint::structural_tag(&StructuralTag::new(TriggeredTags::new(["<"], tags))).unwrap();
    let rules: Vec<&str> = constraint.as_grammar().unwrap().rule_names().collect();
    assert_eq!(rules, ["root", "schema_1"]);
}

#[test]
fn styles_write_strings_as_they_are() {
    let tool = json!({
        "type": "object", "additionalProperties": false, "required": ["s", "n"],
        "properties": {
            "s": {"type": "string"}, "n": {"type": "integer"}, "e": {"enum": ["a\"b", 3]}, "p": {"type": "string", "maxLength": 2}
        }
    });
    let qwen = schema(tool.clone(), json!({"style": "qwen_xml"}));
    check(
        &qwen,
        &[
            "<parameter=s>\n a \"<b>\\\n</parameter>\n<parameter=n>\n12\n</parameter>",
            "<parameter=s></parameter><parameter=n>1</parameter><parameter=e>a\"b</parameter><parameter=p>é\"</parameter>",
            "<parameter=s></parameter><parameter=n>1</parameter><parameter=e>3</parameter>",
        ],
        &[
            "<parameter=n>1</parameter><parameter=s></parameter>",
            "<parameter=s></parameter></parameter><parameter=n>1</parameter>",
            "<parameter=s></parameter><parameter=n>1</parameter><parameter=e>\"a\\\"b\"</parameter>",
            "<parameter=s></parameter><parameter=n>1</parameter><parameter=p>éab</parameter>",
            "<parameter=s></parameter><parameter=n>1.5</parameter>",
        ],
    );
    let kimi = schema(tool.clone(), json!({"style": "kimi_k3_xml", "excludes": ["<|"]}));
    let argument = |key: &str, kind: &str, value: &str| {
        format!("<|open|>argument key=\"{key}\" type=\"{kind}\"<|sep|>{value}<|close|>argument<|sep|>")
    };
    let [s, n] = [argument("s", "string", "x"), argument("n", "number", "1")];
    check(
        &kimi,
        &[&format!("{s}{n}"), &format!("{s}{n}{}", argument("e", "number", "3"))],
        &[
            &s,
            &format!("{}{n}", argument("s", "string", "<|")),
            &format!("{s}{}", argument("n", "string", "1")),
        ],
    );
    let cohere = schema(
        json!({"type": "object", "properties": {"<": {"type": "array", "items": {"$ref": "#"}}, "n": {"type": "null"}}}),
        json!({"style": "cohere_xml"}),
    );
    check(
        &cohere,
        &[
            "",
            "<cofl:value name=\"&lt;\" type=\"list\"><cofl:value type=\"dict\"><cofl:value name=\"n\" type=\"json\">null</cofl:value></cofl:value></cofl:value>",
        ],
        &[
            "<cofl:value name=\"<\" type=\"list\"></cofl:value>",
            "<cofl:value name=\"n\" type=\"raw\">null</cofl:value>",
        ],
    );
}

#[test]
fn properties_in_any_order_come_once() {
    let of = json!({
        "type": "object", "required": ["a"],
        "properties": {"a": {"type": "integer"}, "b": {"type": "object", "properties": {"c": {}, "d": {}}}}
    });
    check(
        &schema(of.clone(), json!({"any_order": true})),
        &[r#"{"a": 1}"#, r#"{"b": {"d": 1, "c": [2]}, "a": 1}"#, r#"{"a":1,"b":{}}"#],
        &[r#"{"b": {}}"#, r#"{"a": 1, "a": 1}"#, r#"{"a": 1, }"#, r#"{"a": 1, "c": 1}"#, "{}"],
    );
    check(
        &schema(of, json!({"any_order": true, "style": "glm_xml"})),
        &[
            "<arg_key>b</arg_key><arg_value>{\"d\":1,\"c\":2}</arg_value><arg_key>a</arg_key>\n<arg_value>1</arg_value>",
        ],
        &["<arg_key>b</arg_key><arg_value>{}</arg_value>"],
    );
}

#[test]
fn properties_may_be_counted() {
    let of = json!({"type": "object", "properties": {"a": {}, "b": {}, "c": {}}, "minProperties": 2, "maxProperties": 2});
    let p =
        |names: &str| -> String { names.chars().map(|c| format!("<parameter={c}>1</parameter>")).collect() };
    check(
        &schema(of, json!({"style": "qwen_xml"})),
        &[&p("ab"), &p("ac"), &p("bc")],
        &[&p("a"), &p("abc"), "", &p("ba")],
    );
}

/// A chain of definitions; each one refers to the next one twice, and the last is `last`.
fn doubling(count: usize, last: Value) -> Value {
    let mut definitions = serde_json::Map::new();
    for i in 0..count {
        let next = json!({"$ref": format!("#/$defs/d{}", i + 1)});
        definitions.insert(format!("d{i}"), json!({"anyOf": [next, next]}));
    }
    definitions.insert(format!("d{count}"), last);
    Value::Object(definitions)
}

#[test]
fn references_that_double_are_followed_once() {
    let object = json!({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]});
    for style in ["qwen_xml", "cohere_xml", "glm_xml", "deepseek_xml", "kimi_k3_xml"] {
        let root = json!({"$defs": doubling(40, object.clone()), "$ref": "#/$defs/d0"});
        let property = json!({
            "$defs": doubling(40, json!({"type": ["integer", "string"]})),
            "type": "object", "properties": {"a": {"$ref": "#/$defs/d0"}}, "required": ["a"]
        });
        for of in [root, property] {
            let automaton = schema(of.clone(), json!({"style": style}));
            let text = match style {
                "cohere_xml" => "<cofl:value name=\"a\" type=\"json\">1</cofl:value>",
                "glm_xml" => "<arg_key>a</arg_key><arg_value>1</arg_value>",
                "deepseek_xml" => "<｜DSML｜parameter name=\"a\" string=\"false\">1</｜DSML｜parameter>",
                "kimi_k3_xml" => "<|open|>argument key=\"a\" type=\"number\"<|sep|>1<|close|>argument<|sep|>",
                _ => "<parameter=a>1</parameter>",
            };
            check(&automaton, &[text], &["", "<a>1</a>"]);
        }
    }
    // JSON in any order, and the values that a reader of calls accepts.
    let of = json!({"$defs": doubling(40, object), "$ref": "#/$defs/d0"});
    check(&schema(of.clone(), json!({"any_order": true})), &[r#"{"a": 1}"#], &["{}"]);
    let read = json_schema::parse(&Json::of(&of).unwrap(), &StructuralTag::json_options()).unwrap();
    assert_eq!(read.values_of("a").types, Types::INTEGER);
}

#[test]
fn formats_in_formats_do_not_double() {
    let mut triggered = json!({"type": "const_string", "value": "x"});
    let mut separated = triggered.clone();
    let mut by_token = triggered.clone();
    for _ in 0..60 {
        triggered = json!({
            "type": "triggered_tags", "triggers": ["<"], "at_least_one": true,
            "tags": [{"begin": "<", "content": triggered, "end": ">"}]
        });
        separated = json!({
            "type": "tags_with_separator", "separator": ",", "at_least_one": true,
            "tags": [{"begin": "<", "content": separated, "end": ">"}]
        });
        by_token = json!({
            "type": "token_triggered_tags", "trigger_tokens": [1], "at_least_one": true,
            "tags": [{"begin": {"type": "token", "token": 1}, "content": by_token, "end": ">"}]
        });
    }
    for format in [triggered, separated, by_token] {
        assert!(Constraint::structural_tag(&json!({"format": format})).is_ok());
    }
}

#[test]
fn names_are_matched_against_patterns() {
    let qwen = |of: Value| schema(of, json!({"style": "qwen_xml"}));
    let p = |name: &str, value: &str| format!("<parameter={name}>{value}</parameter>");
    // A declared name that matches a pattern has both schemas, and so has a name of two patterns.
    check(
        &qwen(json!({
            "type": "object", "properties": {"ab": {"minimum": 3}}, "patternProperties": {"^a": {"type": "integer"}}
        })),
        &[&p("ab", "3"), &p("ac", "1"), ""],
        &[&p("ab", "2"), &p("ab", "x"), &p("ac", "x"), &p("b", "3")],
    );
    check(
        &qwen(
            json!({"type": "object", "patternProperties": {"^a": {"type": "integer"}, "b$": {"minimum": 3}}}),
        ),
        &[&p("ab", "3"), &p("ac", "2"), &p("cb", "x")],
        &[&p("ab", "2"), &p("ab", "x"), &p("ac", "x"), &p("c", "3")],
    );
    // A declared name that is not allowed does not exist.
    check(
        &qwen(json!({
            "type": "object", "properties": {"ab": {}, "c": {}}, "propertyNames": {"maxLength": 1}
        })),
        &["", &p("c", "1")],
        &[&p("ab", "1")],
    );
    // Nor does a property with the schema false.
    let of = json!({
        "type": "object", "properties": {"ab": false, "c": {}}, "patternProperties": {"^a": {"type": "null"}},
        "additionalProperties": false
    });
    check(
        &schema(of, json!({"style": "qwen_xml"})),
        &["", "<parameter=c>1</parameter><parameter=ax>null</parameter>"],
        &["<parameter=ab>null</parameter>", "<parameter=d>1</parameter>", "<parameter=ax>1</parameter>"],
    );
}

#[test]
fn reading_has_no_limit_and_lowering_has_that_of_the_request() {
    let names = json!({
        "type": "object",
        "patternProperties": {"(a|b)*a(a|b){17}": {"type": "integer"}}, "additionalProperties": {"type": "null"}
    });
    let long = "x".repeat(60_000);
    let formats = [
        json!({"type": "json_schema", "json_schema": names, "style": "qwen_xml"}),
        json!({"type": "any_text", "max_chars": 100_000_000}),
        json!({"type": "any_text", "excludes": [long]}),
    ];
    for format in formats {
        let constraint = Constraint::structural_tag(&json!({"format": format})).unwrap();
        let few = Limits { states: 1_000, ..Limits::default() };
        let error = constraint.to_automaton(&few).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
        let none = Limits { time: std::time::Duration::ZERO, ..Limits::default() };
        assert_eq!(constraint.to_automaton(&none).unwrap_err().kind(), ErrorKind::Limit);
    }
}

#[test]
fn excluded_texts_are_in_no_string() {
    check(
        &schema(json!({"type": ["object", "string"]}), json!({"excludes": ["<|"]})),
        &[r#""<""#, r#"{"<": ["|"]}"#],
        &[r#""a<|""#, r#"{"<|": 1}"#, r#"{"a": ["<|"]}"#],
    );
}

/// Writes a property with this already escaped name and the string `v`.
type Write = fn(&str) -> String;

/// The styles of XML, with a property as each writes it.
fn properties() -> Vec<(&'static str, Write)> {
    vec![
        ("qwen_xml", |name| format!("<parameter={name}>v</parameter>")),
        ("minimax_xml", |name| format!("<parameter name=\"{name}\">v</parameter>")),
        ("deepseek_xml", |name| {
            format!("<｜DSML｜parameter name=\"{name}\" string=\"true\">v</｜DSML｜parameter>")
        }),
        ("deepseek_v4_1_xml", |name| {
            format!("<｜DSML｜ parameter name=\"{name}\" string=\"true\">v</｜DSML｜ parameter>")
        }),
        ("glm_xml", |name| format!("<arg_key>{name}</arg_key><arg_value>v</arg_value>")),
        ("cohere_xml", |name| format!("<cofl:value name=\"{name}\" type=\"raw\">v</cofl:value>")),
        ("kimi_k3_xml", |name| {
            format!("<|open|>argument key=\"{name}\" type=\"string\"<|sep|>v<|close|>argument<|sep|>")
        }),
    ]
}

/// How a style writes a name.
fn written(style: &str, name: &str) -> String {
    let name = match style {
        "cohere_xml" | "kimi_k3_xml" => name.replace('&', "&amp;").replace('"', "&quot;"),
        _ => return name.to_owned(),
    };
    if style == "cohere_xml" { name.replace('<', "&lt;").replace('>', "&gt;") } else { name }
}

#[test]
fn declared_names_are_escaped_by_style() {
    for (style, property) in properties() {
        for name in [
            "a\"b", "a&b", "&", "\"", "a&quot;b", "&amp;", "a<b", "a>b", "a'b", "a=b", "a\nb", "a b", "é&",
            "\">",
        ] {
            let of = schema(
                json!({"type": "object", "properties": {name: {"type": "string"}}, "required": [name]}),
                json!({"style": style}),
            );
            let own = written(style, name);
            check(&of, &[&property(&own)], &[&property("a"), &property(&format!("{own}x"))]);
            if own != name {
                check(&of, &[], &[&property(name)]);
            }
        }
    }
}

#[test]
fn names_of_patterns_are_escaped_by_style() {
    for (style, property) in properties() {
        let escapes = style == "cohere_xml" || style == "kimi_k3_xml";
        for told in [
            json!({"type": "object", "patternProperties": {"^.[&\"]?b$": {"const": "v"}}}),
            json!({"type": "object", "propertyNames": {"pattern": "^.[&\"]?b$"}, "additionalProperties": {"const": "v"}}),
        ] {
            let of = schema(told, json!({"style": style}));
            check(
                &of,
                &[&property("ab"), &property("éb")],
                &[&property("a&b"), &property("a\"b"), &property("ac")],
            );
            for name in ["a&amp;b", "a&quot;b", "&amp;b", "&quot;&amp;b"] {
                assert_eq!(of.matches(property(name).as_bytes()), escapes, "{style} {name}");
            }
            check(
                &of,
                &[],
                &[&property("a&lt;b"), &property("a&am;b"), &property("a&amp;&amp;b"), &property("&b")],
            );
        }
        // Undeclared names differ from declared names.
        let open = json!({
            "type": "object",
            "properties": {"a&b": {"type": "integer"}},
            "propertyNames": {"pattern": "^a.b$"},
            "additionalProperties": {"const": "v"},
        });
        if escapes {
            let of = schema(open, json!({"style": style}));
            check(&of, &[&property("axb"), &property("a&quot;b")], &[&property("a&amp;b"), &property("a&b")]);
        }
    }
}

#[test]
fn names_with_an_ambiguous_end_are_rejected() {
    let refused = |style: &str, schema: Value| {
        let tag = json!({"format": {"type": "json_schema", "style": style, "json_schema": schema}});
        Constraint::structural_tag(&tag).err().and_then(|error| error.pointer().map(str::to_owned))
    };
    let two = |one: &str, two: &str| json!({"type": "object", "properties": {one: {"type": "string"}, two: {"type": "string"}}});
    for (style, named) in [
        ("qwen_xml", ">"),
        ("minimax_xml", "\">"),
        ("deepseek_xml", "\" string=\""),
        ("glm_xml", "</arg_key>"),
    ] {
        let long = format!("a{named}b");
        assert!(refused(style, two("a", &long)).is_some(), "{style}");
        assert!(refused(style, two(&long, "a")).is_some(), "{style}");
        assert_eq!(refused(style, two("c", &long)), None, "{style}");
        let open = json!({"type": "object", "properties": {long: {}}, "additionalProperties": true});
        assert!(refused(style, open).is_some(), "{style}");
    }
    for style in ["cohere_xml", "kimi_k3_xml"] {
        assert_eq!(refused(style, two("a", "a\" type=\"b")), None, "{style}");
    }
}

#[test]
fn references_are_followed_in_every_style() {
    let of = json!({
        "type": "object",
        "properties": {
            "a": {"$ref": "#count"}, "b": {"$ref": "#/$defs/two%20words"}, "c": {"$ref": "https://example.com/flag"}
        },
        "$defs": {
            "one": {"$anchor": "count", "type": "integer", "minimum": 0},
            "two words": {"enum": ["x", "y"]},
            "three": {"$id": "https://example.com/flag", "type": "boolean"}
        }
    });
    for (style, of_name) in properties() {
        let of = schema(of.clone(), json!({"style": style}));
        let value = |name: &str, kind: &str, value: &str| {
            let kinds = match style {
                "deepseek_xml" | "deepseek_v4_1_xml" => [("string=\"true\"", "string=\"false\"")],
                "cohere_xml" => [("type=\"raw\"", "type=\"json\"")],
                "kimi_k3_xml" => [("type=\"string\"", kind)],
                _ => [("", "")],
            };
            let [(string, other)] = kinds;
            let text = of_name(name).replace(">v<", &format!(">{value}<"));
            if kind.is_empty() { text } else { text.replace(string, other) }
        };
        let a = value("a", "type=\"number\"", "7");
        let b = value("b", "", "x");
        let c = value("c", "type=\"boolean\"", "true");
        let wrong = [
            value("a", "type=\"number\"", "-7"),
            value("b", "", "z"),
            value("c", "type=\"boolean\"", "1"),
            format!("{b}{a}"),
        ];
        check(&of, &[&a, &b, &c, &format!("{a}{b}{c}"), ""], &wrong.each_ref().map(|text| &**text));
    }
}

#[test]
fn logic_is_followed_in_every_order() {
    let of = json!({
        "type": "object",
        "properties": {"kind": {"enum": ["file", "url"]}, "path": {"type": "string"}, "port": {"type": "integer"}},
        "required": ["kind"],
        "if": {"properties": {"kind": {"const": "file"}}},
        "then": {"required": ["path"]},
        "else": {"not": {"required": ["path"]}},
        "dependentRequired": {"port": ["kind"]},
        "allOf": [{"properties": {"port": {"minimum": 1}}}]
    });
    let p = |name: &str, value: &str| format!("<parameter={name}>{value}</parameter>");
    let (file, url, path) = (p("kind", "file"), p("kind", "url"), p("path", "/"));
    let (port, zero) = (p("port", "80"), p("port", "0"));
    let qwen = |any_order: bool| schema(of.clone(), json!({"style": "qwen_xml", "any_order": any_order}));
    let right = [format!("{file}{path}"), format!("{file}{path}{port}"), url.clone(), format!("{url}{port}")];
    let wrong = [
        file.clone(),
        format!("{url}{path}"),
        path.clone(),
        port.clone(),
        format!("{url}{zero}"),
        format!("{file}{path}{path}"),
    ];
    let moved = [format!("{path}{file}"), format!("{port}{path}{file}"), format!("{port}{url}")];
    let still_wrong = [format!("{path}{url}"), format!("{port}{file}"), format!("{zero}{url}")];
    fn texts<const N: usize>(all: &[String; N]) -> [&str; N] {
        all.each_ref().map(|text| &**text)
    }
    check(&qwen(false), &texts(&right), &texts(&wrong));
    check(&qwen(false), &[], &texts(&moved));
    check(&qwen(true), &texts(&right), &texts(&wrong));
    check(&qwen(true), &texts(&moved), &texts(&still_wrong));
    check(
        &schema(of.clone(), json!({"any_order": true})),
        &[r#"{"path": "/", "kind": "file"}"#, r#"{"port": 80, "kind": "url"}"#, r#"{"kind":"url"}"#],
        &[r#"{"path": "/", "kind": "url"}"#, r#"{"port": 80}"#, r#"{"kind": "file", "kind": "url"}"#, "{}"],
    );
}

#[test]
fn other_properties_come_between_declared_ones_in_any_order() {
    let of = json!({
        "type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"],
        "additionalProperties": {"type": "null"}, "minProperties": 2
    });
    check(
        &schema(of.clone(), json!({"any_order": true})),
        &[r#"{"a": 1, "b": null}"#, r#"{"b": null, "a": 1}"#, r#"{"b": null, "a": 1, "c": null}"#],
        &[
            r#"{"a": 1}"#,
            r#"{"b": null}"#,
            r#"{"b": null, "a": null}"#,
            r#"{"b": 1, "a": 1}"#,
            r#"{"b": null, "a": 1, "a": 1}"#,
        ],
    );
    let p = |name: &str, value: &str| format!("<parameter={name}>{value}</parameter>");
    let (a, b) = (p("a", "1"), p("b", "null"));
    check(
        &schema(of, json!({"any_order": true, "style": "qwen_xml"})),
        &[&format!("{a}{b}"), &format!("{b}{a}")],
        &[&a, &b, &format!("{b}{}", p("a", "null")), &format!("{a}{b}{a}")],
    );
}

#[test]
fn listed_values_are_elements() {
    let of =
        json!({"type": "object", "properties": {"a": {"enum": [{"x": [1, "s"]}, null]}}, "required": ["a"]});
    let inner = "<cofl:value name=\"x\" type=\"list\"><cofl:value type=\"json\">1</cofl:value><cofl:value type=\"raw\">s</cofl:value></cofl:value>";
    let a = |kind: &str, value: &str| format!("<cofl:value name=\"a\" type=\"{kind}\">{value}</cofl:value>");
    check(
        &schema(of, json!({"style": "cohere_xml"})),
        &[&a("dict", inner), &a("json", "null")],
        &[&a("dict", ""), &a("json", "1"), &a("json", r#"{"x": [1, "s"]}"#)],
    );
}

#[test]
fn elements_nest_as_deep_as_the_stack() {
    let of = json!({
        "type": "object",
        "properties": {"name": {"type": "string"}, "next": {"$ref": "#"}, "all": {"type": "array", "items": {"$ref": "#"}, "maxItems": 2}}
    });
    let cohere = schema(of, json!({"style": "cohere_xml"}));
    assert!(matches!(cohere, ByteAutomaton::Pushdown(_)));
    let name = "<cofl:value name=\"name\" type=\"raw\">n</cofl:value>";
    let next = |inner: &str| format!("<cofl:value name=\"next\" type=\"dict\">{inner}</cofl:value>");
    let all = |inner: &str| format!("<cofl:value name=\"all\" type=\"list\">{inner}</cofl:value>");
    let item = |inner: &str| format!("<cofl:value type=\"dict\">{inner}</cofl:value>");
    let deep = (0..40).fold(name.to_owned(), |inner, _| next(&inner));
    check(
        &cohere,
        &[&deep, &next(&all(&item(name).repeat(2))), &format!("{name}{}", all(&item(&deep)))],
        &[&deep[1..], &all(&item(name).repeat(3)), &format!("{}{name}", next(""))],
    );
}

#[test]
fn limits_hold_while_a_style_is_compiled() {
    let of = json!({
        "type": "object",
        "properties": {"a": {"type": "array", "items": {"type": "string", "pattern": "^(a|b)*a(a|b){14}$"}, "uniqueItems": false}},
        "required": ["a"]
    });
    for style in ["qwen_xml", "cohere_xml", "json"] {
        let format = json!({"type": "json_schema", "json_schema": of, "style": style, "any_order": true});
        let constraint = Constraint::structural_tag(&json!({"format": format})).unwrap();
        let start = std::time::Instant::now();
        let short = Limits { time: std::time::Duration::from_millis(1), ..Limits::default() };
        let error = constraint.to_automaton(&short).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
        assert!(start.elapsed() < std::time::Duration::from_secs(5), "{:?}", start.elapsed());
        let few = Limits { states: 100, ..Limits::default() };
        let error = constraint.to_automaton(&few).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
        let pointer = error.pointer().unwrap();
        assert!(pointer.starts_with("/format/json_schema"), "{pointer}");
    }
}

#[test]
fn keywords_without_automata_are_refused_by_location() {
    let unique = json!({"type": "array", "items": {"type": "string"}, "uniqueItems": true, "maxItems": 3});
    for style in ["qwen_xml", "cohere_xml", "kimi_k3_xml", "json"] {
        for any_order in [false, true] {
            let of = json!({"type": "object", "properties": {"a": unique}});
            let format =
                json!({"type": "json_schema", "json_schema": of, "style": style, "any_order": any_order});
            let constraint = Constraint::structural_tag(&json!({"format": format}));
            let error = constraint.and_then(|of| of.to_automaton(&Limits::default())).unwrap_err();
            assert_eq!(
                error.pointer(),
                Some("/format/json_schema/properties/a/uniqueItems"),
                "{style}: {error}"
            );
        }
    }
    let many: serde_json::Map<String, Value> = (0..11).map(|i| (format!("p{i}"), json!({}))).collect();
    let of = json!({"type": "object", "properties": {"a": {"type": "object", "properties": many}}});
    let format = json!({"type": "json_schema", "json_schema": of, "any_order": true});
    let constraint = Constraint::structural_tag(&json!({"format": format})).unwrap();
    let error = constraint.to_automaton(&Limits::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Schema, "{error}");
    assert_eq!(error.pointer(), Some("/format/json_schema/properties/a/properties"), "{error}");
}

#[test]
fn unquoted_strings_need_no_escapes_in_ascii() {
    let of = json!({
        "type": "object",
        "properties": {"a": {"type": "string", "maxLength": 2}, "b": {"type": "object", "additionalProperties": {"type": "string"}}}
    });
    let tag = json!({"format": {"type": "json_schema", "json_schema": of, "style": "qwen_xml"}});
    let options = JsonOptions { ascii: true, ..StructuralTag::json_options() };
    let constraint = Constraint::structural_tag_with(&tag, &options).unwrap();
    let automaton = constraint.to_automaton(&Limits::default()).unwrap().unwrap();
    check(
        &automaton,
        &["<parameter=a>é\n</parameter>", r#"<parameter=b>{"k": "\u00e9"}</parameter>"#],
        &[
            "<parameter=a>éab</parameter>",
            r#"<parameter=b>{"k": "é"}</parameter>"#,
            r"<parameter=a>\u00e9</parameter>",
        ],
    );
}
