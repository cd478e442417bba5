//! A numpy reader that follows `docs/artifact.md` computes the same masks as the library.

use std::collections::HashMap;
use std::path::Path;

use burn::tensor::{Device, Tensor};
use burn_dfa::processor::ConstraintProcessor;
use burn_dfa::tokens::Origin;
use burn_dfa::{CompiledConstraint, Constraint, DeviceConstraint, ForcedText, Limits, TensorOptions};
use burn_dfa_testing::python;
use rand::{Rng, SeedableRng, rngs::StdRng};
use safetensors::tensor::{Dtype, TensorView};
use serde_json::json;

use super::tiny;
use crate::common::{bools, ints};

/// Simultaneous random walks, some with illegal tokens, with the masks of every step: the rest of a
/// budget of `steps` tokens, the tokens, and the legal tokens as bits.
fn walks(compiled: &CompiledConstraint, vocab_size: usize, [steps, walks]: [usize; 2], path: &Path) {
    let mut random = StdRng::seed_from_u64(11);
    let device = Device::flex();
    let tensors = DeviceConstraint::new(&[compiled], vocab_size, &TensorOptions::default(), &device).unwrap();
    let processor = ConstraintProcessor::new(tensors, &vec![0; walks]).unwrap();
    let processor = processor.with_budgets(&vec![steps; walks]).unwrap();
    let mut position = processor.start();
    let (mut tokens, mut masks) = (Vec::new(), Vec::new());
    for _ in 0..steps {
        let logits = processor.mask(&position, Tensor::zeros([walks, vocab_size], &device));
        let illegal = bools(logits.equal_elem(f32::NEG_INFINITY));
        let mut taken = Vec::new();
        for row in illegal.chunks_exact(vocab_size) {
            let legal: Vec<usize> = (0..vocab_size).filter(|&token| !row[token]).collect();
            let astray = legal.is_empty() || random.random_range(0..50) == 0;
            let token = if astray {
                random.random_range(0..vocab_size)
            } else {
                legal[random.random_range(0..legal.len())]
            };
            taken.push(token as i32);
            masks
                .extend(row.chunks(8).map(|bits| {
                    bits.iter().rev().fold(0u8, |byte, &illegal| byte << 1 | u8::from(!illegal))
                }));
        }
        position = processor.advance(position, ints(taken.clone(), &device));
        tokens.extend(taken.iter().flat_map(|token| token.to_le_bytes()));
    }
    let shape = vec![steps, walks, vocab_size.div_ceil(8)];
    let tensors = HashMap::from([
        ("tokens", TensorView::new(Dtype::I32, vec![steps, walks], &tokens).unwrap()),
        ("masks", TensorView::new(Dtype::U8, shape, &masks).unwrap()),
    ]);
    std::fs::write(path, safetensors::serialize(tensors, None).unwrap()).unwrap();
}

#[test]
fn numpy_has_the_same_masks() {
    let Some(mut python) = python::with("numpy, safetensors") else { return };
    let folder = std::env::temp_dir().join(format!("burn-dfa-python-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let vocabulary = tiny();
    let person = Constraint::json_schema(json!({
        "properties": {"name": {"type": "string", "maxLength": 12}, "age": {"type": "integer", "minimum": -5}},
        "required": ["name"], "additionalProperties": false
    }));
    // Lists that contain a 1, except the innermost, so a list has two exits; few walks end before
    // the stack is full.
    let lists = Constraint::json_schema(json!({
        "$defs": {"list": {"type": "array", "contains": {"enum": [1]}, "items": {"anyOf": [{"enum": [1, true]}, {"$ref": "#/$defs/list"}]}}},
        "$ref": "#/$defs/list", "maxItems": 3
    }));
    let (person, lists) = (person.unwrap(), lists.unwrap());
    let (no_stack, small) = (Limits::default().with_frames(0), Limits::default().with_frames(3));
    let [longest, small_longest] =
        [&no_stack, &small].map(|limits| limits.clone().with_forced_text(ForcedText::Longest));
    let forms = [
        (
            "token_level",
            CompiledConstraint::compile_token_level as fn(_, _, _) -> _,
            &person,
            &no_stack,
            [16, 1_000],
        ),
        ("byte_level", CompiledConstraint::compile_byte_level, &person, &no_stack, [16, 1_000]),
        ("pushdown", CompiledConstraint::compile_byte_level, &lists, &small, [40, 200]),
        ("byte_level-longest", CompiledConstraint::compile_byte_level, &person, &longest, [16, 1_000]),
        ("pushdown-longest", CompiledConstraint::compile_byte_level, &lists, &small_longest, [40, 200]),
    ];
    for (form, compile, constraint, limits, size) in forms {
        let compiled: CompiledConstraint = compile(constraint, &vocabulary, limits).unwrap();
        assert_eq!(compiled.frames() > 0, form.starts_with("pushdown"));
        compiled.save(folder.join(format!("{form}.safetensors")), &Origin::new(constraint, limits)).unwrap();
        walks(&compiled, vocabulary.len(), size, &folder.join(format!("{form}.walks")));
    }
    // Some bytes are no tokens.
    let (_, words, compiled, bytes) = super::pushdown_with_words();
    std::fs::write(folder.join("words.safetensors"), bytes).unwrap();
    walks(&compiled, words.len(), [20, 100], &folder.join("words.walks"));
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("suite/artifact/walks.py");
    let output = python.arg(script).arg(&folder).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    print!("{said}");
    for (form, _, _, _, [steps, walks]) in forms {
        let equal = format!("{form}: {walks} walks of {steps} tokens, at most ");
        assert!(said.contains(&equal), "{said}");
    }
    assert!(said.contains("words: 100 walks of 20 tokens, at most "), "{said}");
    assert!(said.contains("at most 3 frames"), "the stack is never full: {said}");
    std::fs::remove_dir_all(folder).unwrap();
}
