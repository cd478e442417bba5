//! Recursive constraints with a stack for each row, on every device and with every kind of
//! operation.

use burn::tensor::{DType, Device, Tensor, TensorData};
use burn_dfa::ErrorKind;
use burn_dfa::constraint::{Format, StructuralTag, Syntax, Tag, TriggeredTags};
use burn_dfa::generation::{FinishReason, GenerationConfig, Request, generate};
use burn_dfa::processor::{ConstraintProcessor, DraftTree, LogitsProcessor, StepContext};
use burn_dfa::sampling::Greedy;
use burn_dfa::tokens::RowPosition;
use burn_dfa::{
    CompiledConstraint, Constraint, DeviceConstraint, ForcedText, Kernels, Limits, StateId, TensorOptions,
    TokenId, Vocabulary,
};
use rand::{Rng, SeedableRng, rngs::StdRng};
use serde_json::{Value, json};

use crate::common::{devices, ints, model::RandomLm};
use burn_dfa_testing::words::{EOS, compact, token_level, vocabulary_of};

/// Tokens that enter and leave several arrays and objects at once.
pub(crate) fn vocabulary() -> Vocabulary {
    vocabulary_of(&[
        "{\"",
        "\":",
        "\"}",
        "\"}]}",
        "}]}",
        "]}]}",
        "[[",
        "]]",
        "]]]",
        "[[[[",
        "],[",
        "[]",
        "{}",
        "[{",
        "}]",
        "[[]",
        "{\"name\":\"",
        "\",\"children\":[",
        "{\"children\":[",
        "x\"}",
        "x\",",
        "name",
        "children",
        "true",
        "null",
        "12",
        ",{\"",
        "}}",
        "}}}",
        "{\"a\":{\"",
        "été",
        "\"]",
        ",[",
        "\",\"",
        "[1,",
        "next",
        "{\"next\":",
        "{\"next\":{\"next\":",
        "</think>",
        "k>{\"",
        "ink>[[[",
    ])
}

/// Recursive schemas, and schemas that allow any JSON.
pub(crate) fn schemas() -> Vec<Value> {
    let tree = json!({"type": "object", "properties": {
        "name": {"type": "string"}, "children": {"type": "array", "items": {"$ref": "#"}}},
        "required": ["name"], "additionalProperties": false});
    let list =
        json!({"type": "object", "properties": {"next": {"$ref": "#"}}, "additionalProperties": false});
    let any = json!({});
    let arrays = json!({"type": "array", "items": {"$ref": "#"}});
    let mutual = json!({"$ref": "#/$defs/a", "$defs": {
        "a": {"type": "object", "properties": {"b": {"$ref": "#/$defs/b"}, "n": {"type": "integer"}},
            "required": ["n"], "additionalProperties": false},
        "b": {"type": "array", "items": {"$ref": "#/$defs/a"}, "maxItems": 3}}});
    // A list with a tag at any position: procedures with two exits.
    let tagged = json!({"type": "array", "contains": {"const": "x"}, "items": {"anyOf": [
        {"const": "x"}, {"const": "y"}, {"type": "array", "items": {"$ref": "#"}, "maxItems": 2}]}});
    let chosen = json!({"anyOf": [
        {"type": "object", "properties": {"t": {"const": "a"}, "next": {"$ref": "#"}}, "required": ["t", "next"],
            "additionalProperties": false},
        {"type": "object", "properties": {"t": {"const": "b"}}, "required": ["t"], "additionalProperties": false},
        {"type": "array", "items": {"$ref": "#"}, "minItems": 2, "maxItems": 2}]});
    vec![tree, list, any, arrays, mutual, tagged, chosen]
}

/// With 5 frames, only the longest token of forced text is legal.
fn limits(frames: usize) -> Limits {
    let forced = if frames == 5 { ForcedText::Longest } else { ForcedText::AnyToken };
    Limits::new().with_frames(frames).with_forced_text(forced)
}

pub(crate) fn compile(schema: &Value, vocabulary: &Vocabulary, frames: usize) -> CompiledConstraint {
    let constraint = compact(schema);
    let compiled = CompiledConstraint::compile_byte_level(&constraint, vocabulary, &limits(frames)).unwrap();
    assert!(compiled.exits() > 0, "{schema} has calls");
    compiled
}

/// Grammars whose frames are sets of calls, with ambiguous call depth, with a named token, and with
/// a block whose end depends on the text after `x`. Also a structural tag: text with calls.
pub(crate) fn grammars(vocabulary: &Vocabulary, frames: usize) -> Vec<CompiledConstraint> {
    let think = (0..vocabulary.len() as u32).map(TokenId);
    let think = think.into_iter().find(|&id| vocabulary.bytes(id) == Some(b"</think>")).unwrap();
    let texts = [
        r#"root ::= a "1" | b "true"
           a ::= "[" a* "]" | "12" | "name"
           b ::= "[" b* "]" | "{" b "}" | "true""#
            .to_owned(),
        r#"root ::= "[[" [a-z]* "]]" | c "," root | c
           c ::= "[" c* "]" | "{}""#
            .to_owned(),
        format!(r#"root ::= "[" root* "]" | <[{think}]> root | "x""#),
        r#"root ::= (part ",")*
           part ::= "[" (part ",")* "x" | name " "* ("1" | "true")
           name ::= "name" | [x-z]+"#
            .to_owned(),
    ];
    let nested = json!({"type": "array", "items": {"$ref": "#"}});
    let tag = Tag::new("[[", Format::json_schema(nested), "]]");
    let tag = StructuralTag::new(TriggeredTags::new(["[["], [tag]));
    let constraints = texts.iter().map(|text| Constraint::grammar(Syntax::Gbnf, text).unwrap());
    let compiled = constraints.chain([Constraint::structural_tag(&tag).unwrap()]).map(|constraint| {
        let compiled =
            CompiledConstraint::compile_byte_level(&constraint, vocabulary, &limits(frames)).unwrap();
        assert!(compiled.exits() > 0, "{constraint:?} has calls");
        compiled
    });
    compiled.collect()
}

pub(crate) fn needed(constraint: &CompiledConstraint) -> usize {
    constraint.tokens_to_end(constraint.start()) as usize
}

/// The legal tokens of a row.
pub(crate) fn legal(constraint: &CompiledConstraint, position: &RowPosition) -> Vec<bool> {
    let tokens = (0..constraint.vocabulary_len() as u32).map(TokenId);
    tokens.map(|token| constraint.can_end(&constraint.after(position, token))).collect()
}

/// As [`walk_rows`], with one row for each constraint.
fn walk(
    constraints: &[&CompiledConstraint],
    options: &TensorOptions,
    device: &Device,
    steps: usize,
    spare: usize,
    seed: u64,
) {
    let rows: Vec<usize> = (0..constraints.len()).collect();
    walk_rows(constraints, &rows, options, device, steps, &[spare], seed);
}

/// Compares masks of a device with the host's, along random walks. Row `b` of the batch follows
/// constraint `rows[b]`, with up to `spares[b % spares.len()]` more tokens than needed.
pub(crate) fn walk_rows(
    constraints: &[&CompiledConstraint],
    rows: &[usize],
    options: &TensorOptions,
    device: &Device,
    steps: usize,
    spares: &[usize],
    seed: u64,
) {
    let name = format!("{options:?} on {device:?}, seed {seed}");
    let mut rng = StdRng::seed_from_u64(seed);
    let vocab_size = constraints[0].vocabulary_len() + 3;
    let device_constraint = DeviceConstraint::new(constraints, vocab_size, options, device).unwrap();
    let constraints: Vec<_> = rows.iter().map(|&row| constraints[row]).collect();
    let budgets: Vec<usize> = constraints
        .iter()
        .zip(spares.iter().cycle())
        .map(|(constraint, &spare)| needed(constraint) + rng.random_range(0..spare))
        .collect();
    let processor =
        ConstraintProcessor::new(device_constraint, rows).unwrap().with_budgets(&budgets).unwrap();
    let mut own: Vec<_> = constraints
        .iter()
        .zip(&budgets)
        .map(|(t, &budget)| RowPosition::new(t.start(), budget as u32))
        .collect();
    let mut position = processor.start();
    let mut tokens = vec![vocab_size as i32; constraints.len()];
    for step in 0..steps {
        let values: Vec<f32> =
            (0..constraints.len() * vocab_size).map(|_| rng.random_range(-4.0..4.0)).collect();
        let logits = Tensor::<2>::from_data(
            TensorData::new(values.clone(), [constraints.len(), vocab_size]),
            (device, DType::F32),
        );
        let mut chosen = position.clone();
        let context =
            StepContext { tokens: ints(tokens.clone(), device), step: ints(vec![step as i32], device) };
        let (masked, next) = processor.process(position, logits.clone(), &context);
        let masked = masked.into_data().try_to_vec::<f32>().unwrap();
        let all_legal: Vec<Vec<bool>> =
            constraints.iter().zip(&own).map(|(constraint, own)| legal(constraint, own)).collect();
        for (row, (legal, own)) in all_legal.iter().zip(&own).enumerate() {
            assert!(legal.contains(&true), "{name}: row {row} has no legal token at {own:?}");
            for token in 0..vocab_size {
                let expected = if *legal.get(token).unwrap_or(&false) {
                    values[row * vocab_size + token]
                } else {
                    f32::NEG_INFINITY
                };
                let found = masked[row * vocab_size + token];
                assert_eq!(
                    found.to_bits(),
                    expected.to_bits(),
                    "{name}: step {step}, row {row}, token {token}, {own:?}"
                );
            }
        }
        let mut context =
            StepContext { tokens: ints(tokens.clone(), device), step: ints(vec![step as i32], device) };
        processor.sample_step(&mut chosen, &mut context, logits, &Greedy);
        let greedy = context.tokens.into_data().try_to_vec::<i32>().unwrap();
        for (row, token) in greedy.iter().enumerate() {
            // Of equal logits, the first.
            let best = masked[row * vocab_size..][..vocab_size]
                .iter()
                .enumerate()
                .rev()
                .max_by(|a, b| a.1.total_cmp(b.1))
                .unwrap()
                .0;
            assert_eq!(*token as usize, best, "{name}: step {step}, row {row}");
        }
        let (a, b) = (chosen.states().into_data(), next.states().into_data());
        assert_eq!(a, b, "{name}");
        position = next;
        for (row, (constraint, own)) in constraints.iter().zip(&mut own).enumerate() {
            let legal: Vec<usize> =
                (0..all_legal[row].len()).filter(|&token| all_legal[row][token]).collect();
            // Mostly words, sometimes bytes, rarely the end.
            let words: Vec<usize> = legal.iter().copied().filter(|&token| token > EOS.index()).collect();
            let token = match words.is_empty() || rng.random_range(0..3) == 0 {
                true => legal[rng.random_range(0..legal.len())],
                false => words[rng.random_range(0..words.len())],
            };
            tokens[row] = token as i32;
            *own = constraint.after(own, TokenId(token as u32));
        }
    }
}

#[test]
fn masks_match_the_host_on_every_device() {
    let vocabulary = vocabulary();
    for frames in [64, 5, 3] {
        let mut constraints: Vec<_> =
            schemas().iter().map(|schema| compile(schema, &vocabulary, frames)).collect();
        constraints.extend(grammars(&vocabulary, frames));
        // Also rows without a stack.
        constraints.push(CompiledConstraint::unconstrained(&vocabulary));
        constraints.push(token_level(&Constraint::regex("(true|[a-z]*12)+").unwrap(), &vocabulary));
        let constraints: Vec<_> = constraints.iter().collect();
        for (name, device) in devices::all() {
            for kernels in [Kernels::Fused, Kernels::BuiltIn] {
                let options = TensorOptions::new().with_kernels(kernels);
                // The built-in operations are slow on a GPU, and equal on all devices.
                let steps = match (name, kernels) {
                    (_, Kernels::Fused) => 200,
                    ("flex", _) => 30,
                    _ if frames == 5 => 3,
                    _ => continue,
                };
                walk(&constraints, &options, &device, steps, steps, frames as u64);
            }
        }
    }
}

/// The frames that a token pushes are at most its bytes that may begin a call.
#[test]
fn a_byte_pushes_at_most_one_frame() {
    let vocabulary = vocabulary();
    let mut constraints: Vec<_> = schemas().iter().map(|schema| compile(schema, &vocabulary, 64)).collect();
    constraints.extend(grammars(&vocabulary, 64));
    // Of lists of lists, "[[[[" pushes most; the closing brackets push nothing.
    assert_eq!(constraints[3].pushes(), 4);
    assert_eq!(compile(&schemas()[3], &vocabulary, 3).pushes(), 3, "no more than the stack has");
    let mut rng = StdRng::seed_from_u64(21);
    for constraint in &constraints {
        let frame = 1 + constraint.exits();
        let mut max_pushed = 0usize;
        for _ in 0..6 {
            let mut at = RowPosition::unlimited(constraint.start());
            for _ in 0..30 {
                let mut steps = Vec::new();
                for token in (0..vocabulary.len() as u32).map(TokenId) {
                    let after = constraint.after(&at, token);
                    let pairs = at.frames.chunks(frame).zip(after.frames.chunks(frame));
                    let kept = pairs.take_while(|(before, after)| before == after).count();
                    max_pushed = max_pushed.max(after.frames.len() / frame - kept);
                    if after.state != StateId::DEAD && after.state != StateId::DONE {
                        steps.push(after);
                    }
                }
                if steps.is_empty() {
                    break;
                }
                at = steps.swap_remove(rng.random_range(0..steps.len()));
            }
        }
        assert!(
            0 < max_pushed && max_pushed <= constraint.pushes(),
            "{max_pushed} frames, {} at most",
            constraint.pushes()
        );
    }
}

#[test]
fn a_constraint_with_calls_cannot_replace_token_level_ones() {
    let vocabulary = vocabulary();
    let calls = compile(&json!({}), &vocabulary, 8);
    let regex = token_level(&Constraint::regex("a").unwrap(), &vocabulary);
    let (vocab_size, options) = (vocabulary.len(), TensorOptions::new());
    let new = |constraints: &[&CompiledConstraint]| {
        DeviceConstraint::new(constraints, vocab_size, &options, &Device::flex()).unwrap()
    };
    new(&[&regex, &calls]).replace(&[&regex]).unwrap();
    let error = new(&[&regex, &regex]).replace(&[&calls]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Input);
    assert!(error.to_string().contains("byte-level"), "{error}");
}

/// In a counted string all plain tokens are legal at once, also tokens across two blocks; at its
/// end, at the end of the budget and on a full stack they differ.
#[test]
fn plain_tokens_pass_from_block_to_block() {
    let words =
        ["abcdefghijklmnop", "ABCDEFGHIJKLMNO", "some words", "déjà vu", "語語語語", "a\"}", "\\n", "x y z"];
    let vocabulary = vocabulary_of(&words);
    let string = |min: u32, max: u32| json!({"type": "string", "minLength": min, "maxLength": max});
    let within = |string: Value| {
        json!({"type": "object", "properties": {"s": string, "n": {"$ref": "#"}}, "required": ["s"],
            "additionalProperties": false})
    };
    let schemas =
        [within(string(700, 1500)), within(string(0, 900)), string(1000, 3000), within(string(650, 650))];
    let constraints: Vec<_> = schemas.iter().map(|schema| compile(schema, &vocabulary, 4)).collect();
    let constraints: Vec<_> = constraints.iter().collect();
    for seed in 0..4 {
        for spare in [20, 400, 100_000] {
            walk(&constraints, &TensorOptions::new(), &Device::flex(), 250, spare, seed);
        }
    }
}

#[test]
fn trees_of_drafts_have_stacks_of_their_own() {
    let vocabulary = vocabulary();
    let mut constraints: Vec<_> = schemas().iter().map(|schema| compile(schema, &vocabulary, 8)).collect();
    constraints.extend(grammars(&vocabulary, 8));
    let constraints: Vec<_> = constraints.iter().collect();
    let vocab_size = vocabulary.len();
    let parents = [0, 0, 1, 1, 0, 4, 5];
    let tree = DraftTree::new(&parents[1..]).unwrap();
    let mut rng = StdRng::seed_from_u64(3);
    for (name, device) in devices::all() {
        for kernels in [Kernels::Fused, Kernels::BuiltIn] {
            let options = TensorOptions::new().with_kernels(kernels);
            let device_constraint =
                DeviceConstraint::new(&constraints, vocab_size, &options, &device).unwrap();
            let rows: Vec<usize> = (0..constraints.len()).collect();
            let budgets: Vec<usize> = constraints.iter().map(|constraint| needed(constraint) + 20).collect();
            let processor =
                ConstraintProcessor::new(device_constraint, &rows).unwrap().with_budgets(&budgets).unwrap();
            let (mut tokens, mut expected) = (Vec::new(), Vec::new());
            for (constraint, &budget) in constraints.iter().zip(&budgets) {
                let mut nodes = vec![RowPosition::new(constraint.start(), budget as u32)];
                tokens.push(vocab_size as i32);
                for &parent in &parents[1..] {
                    let from = nodes[parent].clone();
                    let legal: Vec<u32> = (0..vocab_size as u32)
                        .filter(|&t| constraint.can_end(&constraint.after(&from, TokenId(t))))
                        .collect();
                    // One in four violates the constraint, and keeps its parent's position.
                    let token = match rng.random_range(0..4) {
                        0 => rng.random_range(0..vocab_size as u32),
                        _ => legal[rng.random_range(0..legal.len())],
                    };
                    tokens.push(token as i32);
                    let next = constraint.after(&from, TokenId(token));
                    nodes.push(if constraint.can_end(&next) { next } else { from });
                }
                expected.extend(nodes.iter().flat_map(|node| legal(constraint, node)));
            }
            let shape = [constraints.len(), parents.len(), vocab_size];
            let tokens = ints(tokens, &device).reshape([shape[0], shape[1]]);
            let logits = Tensor::<3>::zeros(shape, (&device, DType::F32));
            let (masked, positions) = processor.mask_tree(&processor.start(), &tree, tokens, logits);
            let masked = masked.into_data().try_to_vec::<f32>().unwrap();
            let found: Vec<bool> = masked.iter().map(|&logit| logit == 0.0).collect();
            assert!(found == expected, "{name}, {kernels:?}");
            // The accepted position is a position of the tree.
            let last = positions.at(ints(vec![6; shape[0]], &device));
            let logits = Tensor::<2>::zeros([shape[0], vocab_size], (&device, DType::F32));
            let masked = processor.mask(&last, logits).into_data().try_to_vec::<f32>().unwrap();
            for row in 0..shape[0] {
                let at = (row * parents.len() + 6) * vocab_size;
                let found: Vec<bool> =
                    masked[row * vocab_size..][..vocab_size].iter().map(|&logit| logit == 0.0).collect();
                assert!(found == expected[at..at + vocab_size], "{name}, {kernels:?}, row {row}");
            }
        }
    }
}

#[test]
fn every_text_is_valid_and_complete_within_its_budget_and_its_stack() {
    let vocabulary = vocabulary();
    let device = Device::flex();
    let (mut deepest, mut generations) = (0, 0);
    for frames in [2, 3, 5, 64] {
        let schemas: Vec<Value> = schemas();
        let constraints: Vec<_> = schemas.iter().map(|schema| compile(schema, &vocabulary, frames)).collect();
        for round in 0..360u64 {
            let model = RandomLm::new(vocabulary.len(), round, DType::F32, &device);
            let requests: Vec<_> = constraints
                .iter()
                .map(|constraint| {
                    let budget = needed(constraint) + (round as usize * 7) % 90;
                    Request::new(vec![TokenId(round as u32 % 200)], budget)
                        .with_constraint(constraint)
                        .with_seed(round)
                })
                .collect();
            let config = GenerationConfig::new().with_temperature((round % 3 != 0).then_some(1.5));
            let outputs = generate(&model, &vocabulary, &requests, &config);
            for ((output, schema), constraint) in outputs.unwrap().iter().zip(&schemas).zip(&constraints) {
                let text = output.text();
                assert_eq!(output.finish, FinishReason::EndOfSequence, "{schema}: {text}");
                let value: Value =
                    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{schema}: {error}: {text}"));
                assert!(jsonschema::is_valid(schema, &value), "{schema}: {text}");
                assert!(constraint.accepts(&output.tokens));
                generations += 1;
                let depth = text.bytes().scan(0, |open, byte| {
                    *open +=
                        i32::from(byte == b'[' || byte == b'{') - i32::from(byte == b']' || byte == b'}');
                    Some(*open)
                });
                deepest = deepest.max(depth.max().unwrap_or(0));
            }
        }
    }
    assert!(deepest > 6 && generations >= 10_000, "{deepest}, {generations}");
}

#[test]
fn depth_is_bounded_only_by_the_stack() {
    let vocabulary = vocabulary();
    let compiled = compile(&json!({}), &vocabulary, 64);
    let text = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let tokens = |text: &str| text.bytes().map(|byte| TokenId(byte.into())).chain([EOS]).collect::<Vec<_>>();
    assert!(compiled.accepts(&tokens(&text(60))));
    assert!(!compiled.accepts(&tokens(&text(70))));
    let deeper = compile(&json!({}), &vocabulary, 128);
    assert!(deeper.accepts(&tokens(&text(70))));
    let constraint = compact(&json!({}));
    let too_many = Limits::new().with_frames(Limits::MAX_FRAMES + 1);
    let error = CompiledConstraint::compile(&constraint, &vocabulary, &too_many).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit);
    assert!(error.to_string().ends_with("lower `Limits::frames` to 1024 at most"), "{error}");
    assert_eq!(compiled.next(compiled.start(), TokenId(u32::from(b']'))), StateId::DEAD);
}

#[test]
fn free_text_precedes_a_constraint_with_a_stack() {
    let vocabulary = vocabulary();
    let limits = Limits::new().with_frames(5);
    let mut words = (EOS.0..vocabulary.len() as u32).map(TokenId);
    let token = words.find(|&id| vocabulary.bytes(id) == Some(b"true")).unwrap();
    let any = compact(&json!({}));
    let plain = CompiledConstraint::compile(&any, &vocabulary, &limits).unwrap();
    let after = [Constraint::after("</think>", any.clone()), Constraint::after(token, any)];
    let constraints = after.map(|after| CompiledConstraint::compile(&after, &vocabulary, &limits).unwrap());
    let mut rng = StdRng::seed_from_u64(9);
    for (constraint, marker) in constraints.iter().zip([None, Some(token)]) {
        assert!(constraint.exits() > 0);
        let length = if marker.is_some() { 1 } else { "</think>".len() };
        // A marker in text takes one token or more, at most one for each byte.
        let marked = needed(&plain) + 1..=needed(&plain) + length;
        assert!(marked.contains(&needed(constraint)), "{} is not in {marked:?}", needed(constraint));
        let mut at = RowPosition::unlimited(constraint.start());
        let read = |at: &mut RowPosition, text: &str| {
            text.bytes().for_each(|byte| *at = constraint.after(at, TokenId(byte.into())));
        };
        read(&mut at, "<[{]</th[");
        assert!(!legal(constraint, &at)[EOS.index()]);
        assert!(constraint.can_end(&constraint.after(&at, token)), "free text, or the marker");
        match marker {
            Some(marker) => at = constraint.after(&at, marker),
            None => read(&mut at, "</think>"),
        }
        // From here on only the constraint applies, except for the marker token.
        let mut own = RowPosition::unlimited(plain.start());
        for step in 0..200 {
            let mut expected = legal(&plain, &own);
            if let Some(marker) = marker {
                expected[marker.index()] = false;
            }
            assert_eq!(legal(constraint, &at), expected, "step {step}");
            let choice: Vec<usize> = (0..expected.len()).filter(|&id| expected[id]).collect();
            let next = TokenId(choice[rng.random_range(0..choice.len())] as u32);
            if next == EOS {
                break;
            }
            (at, own) = (constraint.after(&at, next), plain.after(&own, next));
        }
    }
    let constraints: Vec<&CompiledConstraint> = constraints.iter().collect();
    for (_, device) in devices::all() {
        for kernels in [Kernels::Fused, Kernels::BuiltIn] {
            let steps = if kernels == Kernels::Fused { 200 } else { 12 };
            walk(&constraints, &TensorOptions::new().with_kernels(kernels), &device, steps, steps, 11);
        }
    }
}
