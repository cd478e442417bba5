//! Compares chat templates with their renderings by Hugging Face transformers (`golden/export.py`).

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use burn_dfa_decoder::{ChatTemplate, DecoderError, Message};
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
struct Golden {
    templates: BTreeMap<String, String>,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    template: String,
    messages: Vec<Value>,
    #[serde(default)]
    tools: Vec<Value>,
    #[serde(default)]
    variables: BTreeMap<String, Value>,
    add_generation_prompt: bool,
    /// `None` if the template rejects the messages.
    text: Option<String>,
}

#[test]
fn renders_as_transformers_does() {
    let golden: Golden = serde_json::from_str(include_str!("golden/chat.json")).unwrap();
    assert!(golden.cases.len() >= 80);
    for (number, case) in golden.cases.iter().enumerate() {
        let mut template = ChatTemplate::new(golden.templates[&case.template].as_str())
            .unwrap()
            .with_date(2025, 2, 9)
            .with_bos_token("<s>")
            .with_eos_token("</s>");
        for (name, value) in &case.variables {
            template = template.with_variable(name, value);
        }
        let text = template.render_json(&case.messages, &case.tools, case.add_generation_prompt);
        match &case.text {
            Some(expected) => assert_eq!(&text.unwrap(), expected, "{}, case {number}", case.template),
            None => {
                let error = text.unwrap_err();
                assert!(matches!(error, DecoderError::Template { .. }), "{error}");
                let is_refusal = error.to_string().contains("Roles must alternate");
                assert!(is_refusal || case.messages[0]["content"].is_array(), "{error}");
            }
        }
        // Messages with only a role and a text.
        let plain = |message: &Value| {
            let fields = message.as_object()?;
            let (role, content) = (message["role"].as_str()?, message["content"].as_str()?);
            (fields.len() == 2).then(|| Message::new(role, content))
        };
        let messages: Option<Vec<Message>> = case.messages.iter().map(plain).collect();
        if let (Some(messages), Some(expected)) = (messages, &case.text) {
            let text = template.render_with_tools(&messages, &case.tools, case.add_generation_prompt);
            assert_eq!(&text.unwrap(), expected, "{}, case {number}", case.template);
        }
    }
}

#[test]
fn finds_the_template_wherever_it_is() {
    let hello = [Message::user("hi")];
    let render = |config: Option<&str>, jinja: Option<&str>| {
        ChatTemplate::from_files(config, jinja.map(String::from))
            .unwrap()
            .map(|template| template.render(&hello, false).unwrap())
    };
    let plain = r#"{"chat_template": "A{{ bos_token }}", "bos_token": "<s>"}"#;
    assert_eq!(render(Some(plain), None).unwrap(), "A<s>");
    // Special tokens may be objects or null.
    let object = r#"{"chat_template": "{{ bos_token }}{{ eos_token }}.",
        "bos_token": {"content": "<b>", "lstrip": false}, "eos_token": null}"#;
    assert_eq!(render(Some(object), None).unwrap(), "<b>.");
    let named = r#"{"chat_template": [{"name": "tool_use", "template": "T"},
        {"name": "default", "template": "D"}]}"#;
    assert_eq!(render(Some(named), None).unwrap(), "D");
    // The separate file takes precedence, and uses the special tokens of the other file.
    assert_eq!(render(Some(plain), Some("B{{ bos_token }}")).unwrap(), "B<s>");
    assert_eq!(render(None, Some("B")).unwrap(), "B");
    assert_eq!(render(Some("{}"), None), None);
    assert_eq!(render(None, None), None);
    assert!(ChatTemplate::from_files(Some("{"), None).is_err());
}

#[test]
fn a_date_is_the_fallback_of_the_template() {
    let template = ChatTemplate::new(
        "{% if strftime_now is defined %}{{ strftime_now('%d %b %Y') }}{% else %}26 Jul 2024{% endif %}",
    )
    .unwrap();
    assert_eq!(template.render(&[], false).unwrap(), "26 Jul 2024");
    assert_eq!(template.with_date(2024, 2, 29).render(&[], false).unwrap(), "29 Feb 2024");
    // Without a date, the template uses today's date.
    let template = ChatTemplate::new("{{ strftime_now('%Y') }}").unwrap();
    let year: u16 = template.render(&[], false).unwrap().parse().unwrap();
    assert!(year >= 2026);
    for (year, month, day, text) in [
        (1970, 1, 1, "Thursday 1 January"),
        (1999, 12, 31, "Friday 31 December"),
        (2000, 2, 29, "Tuesday 29 February"),
        (2100, 3, 1, "Monday 1 March"),
    ] {
        let template = ChatTemplate::new("{{ strftime_now('%A %d %B').replace(' 0', ' ') }}").unwrap();
        assert_eq!(template.with_date(year, month, day).render(&[], false).unwrap(), text);
    }
}

#[test]
#[should_panic(expected = "no day 2100-2-29")]
fn a_day_that_is_none() {
    let _ = ChatTemplate::new("").unwrap().with_date(2100, 2, 29);
}

#[test]
fn operators_and_filters_are_those_of_jinja() {
    let cases = [
        ("{{ 'a' ~ 1 ~ 'b' }}{{ 'x' + 'y' }}{{ 1 + 2 }}{{ 1.5 + 2 }}", "a1bxy33.5"),
        ("{{ 3 * 4 }}{{ 2 * 1.5 }}{{ 'ab' * 2 }}{{ 2 * 'c' }}{{ 2 ** 3 * 2 }}", "123.0ababcc16"),
        ("{{ ([1] + [2, 3]) | length }}{{ ([0] * 3) | join('-') }}{{ ((1, 2) + (3,)) | join }}", "30-0-0123"),
        (
            "{{ 'a-b' | replace('-', '+') }}{{ 'a-b'.replace('-', '') }}{{ 'aaa'.replace('a', 'b', 2) }}",
            "a+babbba",
        ),
        ("{{ ', '.join(['a', 'b']) }}{{ [{'n': 1}, {'n': 2}] | join('/', attribute='n') }}", "a, b1/2"),
        (
            "{{ 'a\nb' | indent(2) }}|{{ 'a\n\nb' | indent(2, first=true, blank=true) }}",
            "a\n  b|  a\n  \n  b",
        ),
        ("{{ [1, 2, 3] | sum }}{{ 'abc' | list | length }}{{ '{}-{}'.format('a', 1) }}", "63a-1"),
        ("{% macro f(a, b=2) %}{{ a * b }}{% endmacro %}{{ f(*[3]) }}{{ f(3, *[4]) }}{{ f(5) }}", "61210"),
        (
            "{% set ns = namespace(s='') %}{% for i in range(3) %}{% set ns.s = ns.s ~ i %}{% endfor %}{{ ns.s }}",
            "012",
        ),
        ("{{ '*' }} * {{ 2 if 1 * 1 == 1 else 0 }}", "* * 2"),
    ];
    for (source, expected) in cases {
        let text = ChatTemplate::new(source).and_then(|template| template.render(&[], false));
        assert_eq!(text.unwrap_or_else(|error| panic!("{source}: {error}")), expected, "{source}");
    }
}

#[test]
fn templates_do_not_take_all_memory_or_the_stack() {
    let doubled = |double: &str| {
        let open = "{% set ns = namespace(s='x' * 1000, l=['x']) %}{% for i in range(60) %}";
        [open, double, "{% endfor %}{{ ns.s | length }}{{ ns.l | string }}"].concat()
    };
    let nested = |end: &str| {
        let open = "{% set ns = namespace(l=[]) %}{% for a in range(1000) %}{% for i in range(200) %}";
        [open, "{% set ns.l = [ns.l] %}{% endfor %}{% endfor %}", end].concat()
    };
    let sources = [
        doubled("{% set ns.s = ns.s ~ ns.s %}"),
        doubled("{% set ns.s = ns.s + ns.s %}"),
        doubled("{% set ns.s = ns.s * 2 %}"),
        doubled("{% set ns.s = ns.s | replace('x', 'xx') %}"),
        doubled("{% set ns.s = ns.s.replace('x', 'xx') %}"),
        doubled("{% set ns.s = ns.s.replace('x', 'xx', 1000000000) %}"),
        doubled("{% set ns.s = [ns.s, ns.s] | join %}"),
        doubled("{% set ns.s = ''.join([ns.s, ns.s]) %}"),
        doubled("{% set ns.s = '{}{}'.format(ns.s, ns.s) %}"),
        doubled("{% set ns.s = ns.s | indent(1000000000, true) %}"),
        doubled("{% set t %}{{ ns.s }}{{ ns.s }}{% endset %}{% set ns.s = t %}"),
        doubled("{% macro m() %}{{ ns.s }}{{ ns.s }}{% endmacro %}{% set ns.s = m() %}"),
        doubled("{% set ns.s = [ns.s, ns.s] | string %}"),
        doubled("{% set ns.s = [ns.s, ns.s] | tojson %}"),
        doubled("{% set ns.l = ns.l + ns.l %}"),
        doubled("{% set ns.l = ns.l * 2 %}"),
        doubled("{% set ns.l = [ns.l, ns.l] %}"),
        "{{ ('x' * 100000000) ~ ('x' * 100000000) ~ ('x' * 100000000) }}".to_owned(),
        "{{ ((1,) * 100000000) | length }}".to_owned(),
        "{{ '{:>1000000000}'.format('x') }}".to_owned(),
        nested("{{ ns.l }}"),
        nested("{{ ns.l | tojson }}"),
        nested("{{ ns.l | string }}"),
        nested("{{ ns.l == ns.l }}{{ raise_exception('it is compared') }}"),
        nested("{{ ns.l ~ '' }}{{ raise_exception('it is written') }}"),
    ];
    for source in &sources {
        let result =
            ChatTemplate::new(source).and_then(|template| template.render(&[Message::user("x")], false));
        let error = result.map(|text| text.len()).expect_err(source);
        assert!(matches!(error, DecoderError::Template { .. }), "{source}: {error}");
    }
    // Deep and long sources that are compiled.
    let long = "a".repeat(200_000);
    let deep = [
        format!("{{{{ {}1{} }}}}", "[".repeat(5_000), "]".repeat(5_000)),
        format!("{{{{ a{} }}}}", "~a".repeat(60_000)),
        format!("{{{{ a{} }}}}", ".a".repeat(60_000)),
        format!("{{{{ a{} }}}}", "|upper".repeat(20_000)),
        format!("{{% if a %}}{}{{% endif %}}", "{% elif a %}".repeat(10_000)),
        format!("{{{{ {}a }}}}", "not ".repeat(30_000)),
        long,
    ];
    for source in &deep {
        // The source may be valid or invalid.
        let _ = ChatTemplate::new(source).and_then(|template| template.render(&[], false));
    }
    for too_long in [&deep[0], &deep[1], &deep[5], &deep[6]] {
        assert!(ChatTemplate::new(too_long.as_str()).is_err());
    }
}

#[test]
fn templates_do_not_compare_or_search_without_end() {
    // Two lists of 2⁶⁰ shared items.
    let towers = |end: &str| {
        let double =
            |i: usize| format!("{{% set a{i} = [a{0}, a{0}] %}}{{% set b{i} = [b{0}, b{0}] %}}", i - 1);
        let doubles: String = (1..=60).map(double).collect();
        let end = end.replace("a.l", "a60").replace("b.l", "b60");
        ["{% set a0 = [1] %}{% set b0 = [1] %}", &doubles, &end].concat()
    };
    // Repeats the same work on long texts.
    let again = |work: &str| {
        let open = "{% set s = 'x' * 20000000 %}{% set t = 'x' * 20000000 %}{% set ns = namespace(l=[]) %}";
        [open, "{% for i in range(100000) %}", work, "{% endfor %}"].concat()
    };
    let mut sources = vec![
        "{% set a = namespace() %}{% set a.a = a %}{{ a ~ '' }}".to_owned(),
        towers("{% set n = namespace() %}{% set n.a = a.l %}"),
        "{% set a = namespace() %}{% set b = namespace() %}{% set a.a = [a] %}{% set b.a = [b] %}{{ a == b }}".to_owned(),
    ];
    let ends = [
        "{{ a.l == b.l }}",
        "{{ a.l != b.l }}",
        "{{ a.l < b.l }}",
        "{{ a.l <= b.l }}",
        "{{ a.l > b.l }}",
        "{{ a.l >= b.l }}",
        "{{ a.l <= b.l <= a.l }}",
        "{{ a.l in [b.l] }}",
        "{{ a.l not in [1, b.l] }}",
        "{{ a.l is eq b.l }}",
        "{{ a.l is in [b.l] }}",
        "{{ [{'x': a.l}] | selectattr('x', 'equalto', b.l) | list }}",
        "{{ [a.l] | select('in', [b.l]) | list }}",
        "{{ [a.l] | map('sort') | list }}",
        "{{ [a.l, b.l] | sort | length }}",
        "{{ [a.l, b.l] | unique | list | length }}",
        "{{ [a.l, b.l] | min | length }}",
        "{{ [a.l, b.l] | max | length }}",
        "{{ {'a': a.l, 'b': b.l} | dictsort(by='value') | length }}",
        "{{ [a.l].count(b.l) }}",
        "{{ {a.l: 1} }}",
        "{{ {'a': 1}[a.l] }}",
        "{{ {'a': 1}.get(a.l) }}",
    ];
    sources.extend(ends.map(towers));
    let works = [
        "{% if s == t %}{% endif %}",
        "{% if s < t < s %}{% endif %}",
        "{% if 'y' in s %}{% endif %}",
        "{% if s[-1] == 'y' %}{% endif %}",
        "{% for c in s %}{% break %}{% endfor %}",
        "{% if s | length == 1 %}{% endif %}",
        "{% if s.find('y') == 0 %}{% endif %}",
        "{% if s is lower %}{% endif %}",
        "{% set c, d = s %}",
        "{% set ns.l = ns.l + [s[1:]] %}",
        "{% set ns.l = ns.l + [s[::-1]] %}",
        "{% set ns.l = ns.l + [s | upper] %}",
        "{% set ns.l = ns.l + [s.split('x')] %}",
        "{% set ns.l = ns.l + [s | list] %}",
        "{% set ns.l = ns.l + [namespace(*s)] %}",
        "{% set ns.l = [s, s] | map('lower') | list %}",
    ];
    sources.extend(works.map(again));
    for source in &sources {
        let started = Instant::now();
        let result =
            ChatTemplate::new(source).and_then(|template| template.render(&[Message::user("x")], false));
        let error = result.map(|text| text.len()).expect_err(source);
        assert!(matches!(error, DecoderError::Template { .. }), "{source}: {error}");
        let end = &source[source.len().saturating_sub(80)..];
        println!("{:?} {end}: {error}", started.elapsed());
        assert!(started.elapsed() < Duration::from_secs(60), "{source}: {:?}", started.elapsed());
    }
}

#[test]
fn slices_comparisons_and_lookups_are_those_of_python() {
    let cases = [
        (
            "{{ 'aé日z'[1:] }},{{ 'aé日z'[:2] }},{{ 'aé日z'[1:-1] }},{{ 'aé日z'[-2:] }},{{ 'ab'[5:] }}",
            "é日z,aé,é日,日z,",
        ),
        (
            "{{ 'abcde'[::2] }},{{ 'abcde'[::-1] }},{{ 'abcde'[3:0:-2] }},{{ 'abc'[-9:9] }}",
            "ace,edcba,db,abc",
        ),
        (
            "{{ [1, 2, 3][1:] }}{{ [1, 2, 3][::-1] }}{{ [1, 2, 3][-1:] }}{{ (1, 2, 3)[:2] == (1, 2) }}",
            "[2, 3][3, 2, 1][3]True",
        ),
        ("{{ messages[1:] | length }}{{ messages[:-1] | length }}{{ messages[0]['role'] }}", "00user"),
        (
            "{{ 'abc'[0] }}{{ 'abc'[-1] }}{{ 'abc'[9] }}{{ [1, 2][-1] }}{{ {'a': 3}['a'] }}{{ {'a': 3}['b'] }}",
            "ac23",
        ),
        (
            "{{ 1 < 2 < 3 }}{{ 1 < 2 > 3 }}{{ 'a' in 'ab' }}{{ 'c' not in ['a'] }}{{ 'a' in {'a': 1} }}",
            "TrueFalseTrueTrueTrue",
        ),
        (
            "{{ [1, [2]] == [1, [2]] }}{{ (1, 2) == [1, 2] }}{{ {'a': 1} != {'a': 1} }}{{ [1] < [2] }}",
            "TrueFalseFalseTrue",
        ),
        ("{{ nothing[1:] }}{{ none[:1] }}{{ 'x' in nothing }}", "[][]False"),
        (
            "{{ [3, 1, 2] | sort }}{{ [3, 1] | min }}{{ ['b', 'a', 'b'] | unique | list }}{{ 'Ab' | lower }}",
            "[1, 2, 3]1['b', 'a']ab",
        ),
        (
            "{% for k, v in {'b': 1, 'a': 2} | dictsort %}{{ k }}{{ v }}{% endfor %}{% for k, v in {'a': 1}.items() %}{{ k }}{{ v }}{% endfor %}",
            "a2b1a1",
        ),
        ("{% for x in [[1, [2]], [3]] recursive %}{{ loop(x) if x is iterable else x }}{% endfor %}", "123"),
        (
            "{{ [{'n': 2}, {'n': 1}] | sort(attribute='n') | map(attribute='n') | join }}{{ [1, 2] | sort(reverse=true) | join }}",
            "1221",
        ),
        (
            "{% for k, v in {'a': 2, 'b': 1} | dictsort(by='value') %}{{ k }}{% endfor %}{{ [{'n': 1}, {'n': 1}] | unique(attribute='n') | list | length }}",
            "ba1",
        ),
        (
            "{{ 'a-b-c'.split('-', 1) }}{{ 'a b'.split() }}{{ 'a-b' | split('-') | list }}{{ 'ABC' | lower | first }}",
            "['a', 'b-c']['a', 'b']['a', 'b']a",
        ),
        ("{% macro f(a, b, c) %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ f(*[1], *[2, 3]) }}", "123"),
    ];
    for (source, expected) in cases {
        let text =
            ChatTemplate::new(source).and_then(|template| template.render(&[Message::user("x")], false));
        assert_eq!(text.unwrap_or_else(|error| panic!("{source}: {error}")), expected, "{source}");
    }
    for source in [
        "{{ 1 in 2 }}",
        "{{ 'x' in none }}",
        "{{ 'abc'[::0] }}",
        "{{ 1[1:] }}",
        "{{ nothing['a'] }}",
        "{{ {[1]: 2} }}",
    ] {
        let result = ChatTemplate::new(source).and_then(|template| template.render(&[], false));
        assert!(matches!(result, Err(DecoderError::Template { .. })), "{source}");
    }
    // The message contains the line of the operator.
    let template = ChatTemplate::new("a\n{% for x in messages %}\n{{ x + 1 }}\n{% endfor %}").unwrap();
    let error = template.render(&[Message::user("x")], false).unwrap_err().to_string();
    assert!(error.contains(":3"), "{error}");
}

#[test]
fn hostile_templates_end() {
    for source in ["{% for x in %}", "{% generation %}", "{%", "{% endgeneration %}", "{% elsewhere %}"] {
        assert!(ChatTemplate::new(source).is_err(), "{source}");
    }
    for source in [
        "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
        "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}",
        "{{ nothing.at.all }}",
        "{{ messages[0].content.undefined_method() }}",
        "{{ raise_exception() }}",
        "{{ strftime_now('%Q') }}",
        "{% include 'elsewhere' %}",
    ] {
        let template = ChatTemplate::new(source).unwrap();
        let result = template.render(&[Message::user("x")], false);
        assert!(matches!(result, Err(DecoderError::Template { .. })), "{source}");
    }
}
