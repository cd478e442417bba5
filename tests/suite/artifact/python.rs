//! A reader in numpy, written by `docs/artifact.md`, has the masks of the library.

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

use burn::tensor::{DType, Device};
use burn_dfa::table::Origin;
use burn_dfa::{Constraint, Limits, TensorOptions, TensorTable, TokenTable};
use rand::{Rng, SeedableRng, rngs::StdRng};
use safetensors::tensor::{Dtype, TensorView};
use serde_json::json;

use super::tiny;
use crate::common::skip::skipped;
use crate::common::{bools, ints};

const WALKS: usize = 1_000;
const STEPS: usize = 16;

/// Set where a missing Python, numpy or safetensors must fail the test instead of skipping it.
const REQUIRE: &str = "BURN_DFA_REQUIRE_PYTHON";

/// A Python that has what is needed.
fn python() -> Option<Command> {
    let python = std::env::var_os("BURN_DFA_PYTHON").unwrap_or_else(|| "python3".into());
    let found = Command::new(&python).args(["-c", "import numpy, safetensors"]).output();
    if found.is_ok_and(|output| output.status.success()) {
        return Some(Command::new(python));
    }
    assert!(
        std::env::var_os(REQUIRE).is_none(),
        "{REQUIRE} is set, and {} lacks numpy or safetensors",
        python.display()
    );
    skipped("no Python with numpy and safetensors (BURN_DFA_PYTHON names it)");
    None
}

/// Random walks in step, some of which break the constraint, with the masks of every step: what is left of a budget of
/// `STEPS` tokens, the tokens taken, and the legal tokens as bits.
fn walks(table: &TokenTable, width: usize, path: &Path) {
    let mut random = StdRng::seed_from_u64(11);
    let device = Device::flex();
    let tensors = TensorTable::new(&[table], width, &TensorOptions::default(), &device).unwrap();
    let mut states = tensors.states(&vec![tensors.start(0); WALKS]).unwrap();
    let (mut tokens, mut masks) = (Vec::new(), Vec::new());
    for step in 0..STEPS {
        let spare = states.clone().zeros_like().cast(DType::I32) + (STEPS - step - 1) as i32;
        let illegal = bools(tensors.illegal(states.clone(), Some(spare)));
        let mut taken = Vec::new();
        for row in illegal.chunks_exact(width) {
            let legal: Vec<usize> = (0..width).filter(|&token| !row[token]).collect();
            let astray = legal.is_empty() || random.random_range(0..50) == 0;
            let token = if astray {
                random.random_range(0..width)
            } else {
                legal[random.random_range(0..legal.len())]
            };
            taken.push(token as i32);
            masks
                .extend(row.chunks(8).map(|bits| {
                    bits.iter().rev().fold(0u8, |byte, &illegal| byte << 1 | u8::from(!illegal))
                }));
        }
        states = tensors.next(states, ints(taken.clone(), &device));
        tokens.extend(taken.iter().flat_map(|token| token.to_le_bytes()));
    }
    let shape = vec![STEPS, WALKS, width.div_ceil(8)];
    let tensors = HashMap::from([
        ("tokens", TensorView::new(Dtype::I32, vec![STEPS, WALKS], &tokens).unwrap()),
        ("masks", TensorView::new(Dtype::U8, shape, &masks).unwrap()),
    ]);
    std::fs::write(path, safetensors::serialize(tensors, None).unwrap()).unwrap();
}

#[test]
fn numpy_has_the_same_masks() {
    let Some(mut python) = python() else { return };
    let folder = std::env::temp_dir().join(format!("burn-dfa-python-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let vocabulary = tiny();
    let schema = json!({
        "properties": {"name": {"type": "string", "maxLength": 12}, "age": {"type": "integer", "minimum": -5}},
        "required": ["name"], "additionalProperties": false
    });
    let constraint = Constraint::json_schema(schema).unwrap();
    let limits = Limits::default();
    for (form, compile) in
        [("tabulated", TokenTable::tabulate as fn(_, _, _) -> _), ("walked", TokenTable::walk)]
    {
        let table: TokenTable = compile(&constraint, &vocabulary, &limits).unwrap();
        table.save(folder.join(format!("{form}.safetensors")), &Origin::new(&constraint, &limits)).unwrap();
        walks(&table, vocabulary.len(), &folder.join(format!("{form}.walks")));
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("suite/artifact/walks.py");
    let output = python.arg(script).arg(&folder).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    print!("{said}");
    let equal = format!("{WALKS} walks of {STEPS} tokens, all masks equal");
    assert_eq!(said.matches(&equal).count(), 2, "{said}");
    std::fs::remove_dir_all(folder).unwrap();
}
