//! Artifacts: written files are read back, and tampered files are refused or sound.

mod cache;
mod file;
mod mutants;
mod python;

use burn_dfa::ErrorKind;
use burn_dfa::constraint::{Marker, Transitions};
use burn_dfa::tokens::{Artifact, Origin};
use burn_dfa::vocabulary::TokenKind;
use burn_dfa::{CompiledConstraint, Constraint, Limits, StateId, TokenId, Vocabulary};
use serde_json::json;

use burn_dfa_testing::words::compact;

/// A small vocabulary with all kinds of tokens; `spelling` holds the bytes `a` to `c` and `é` one
/// by one.
fn vocabulary(spelling: bool) -> Vocabulary {
    use TokenKind::{Added, Normal, Special, Unused};
    let words: [(TokenKind, &[u8]); 8] = [
        (Normal, b"ab"),
        (Special, b"<s>"),
        (Unused, b""),
        (Added, b"ca"),
        (Normal, "é".as_bytes()),
        (Normal, b""),
        (Special, b"</s>"),
        (Normal, b"bc"),
    ];
    let bytes = "abcé".bytes().map(|byte| (Normal, vec![byte])).filter(|_| spelling);
    let words = words.map(|(kind, word)| (kind, word.to_vec()));
    let vocabulary = Vocabulary::from_tokens(words.into_iter().chain(bytes)).unwrap();
    vocabulary.with_eos([TokenId(6), TokenId(2)]).unwrap()
}

/// The vocabulary of the embedded model.
fn tiny() -> Vocabulary {
    Vocabulary::from_folder(concat!(env!("CARGO_MANIFEST_DIR"), "/../models/tiny")).unwrap()
}

/// One constraint of every kind, with its vocabulary and the bytes of its artifact.
fn artifacts() -> Vec<(&'static str, Vocabulary, CompiledConstraint, Vec<u8>)> {
    let (limits, spelling, words) = (Limits::default(), vocabulary(true), vocabulary(false));
    let regex = Constraint::regex("(ab|ca)+é?|bca").unwrap();
    let ids = |ids: &[u32]| ids.iter().map(|&id| TokenId(id)).collect::<Vec<_>>();
    let sets = Constraint::token_sets(vec![ids(&[1, 0]), ids(&[3]), ids(&[0, 7])]).unwrap();
    let row = |state, id, next| (state, TokenId(id), next);
    let transitions = Transitions::new(1, [2], [row(1, 0, 1), row(1, 4, 2), row(2, 5, 1)]).unwrap();
    let transitions = Constraint::transitions(transitions);
    let behind = |marker: Marker| Constraint::after(marker, regex.clone());
    let artifact =
        |compile: fn(&Constraint, &Vocabulary, &Limits) -> _, constraint, vocabulary: &Vocabulary| {
            let compiled: burn_dfa::Result<CompiledConstraint> = compile(constraint, vocabulary, &limits);
            let compiled = compiled.unwrap();
            let bytes = compiled.to_bytes(&Origin::new(constraint, &limits)).unwrap();
            (vocabulary.clone(), compiled, bytes)
        };
    let all = [
        ("token-level", artifact(CompiledConstraint::compile_token_level, &regex, &spelling)),
        ("token-level, words", artifact(CompiledConstraint::compile_token_level, &regex, &words)),
        ("byte-level", artifact(CompiledConstraint::compile_byte_level, &regex, &spelling)),
        ("byte-level, words", artifact(CompiledConstraint::compile_byte_level, &regex, &words)),
        ("token sets", artifact(CompiledConstraint::compile, &sets, &words)),
        ("transitions", artifact(CompiledConstraint::compile, &transitions, &words)),
        ("text first", artifact(CompiledConstraint::compile_token_level, &behind("c".into()), &spelling)),
        (
            "text first, byte-level",
            artifact(CompiledConstraint::compile_byte_level, &behind("c".into()), &spelling),
        ),
        ("a marker", artifact(CompiledConstraint::compile_byte_level, &behind(TokenId(1).into()), &spelling)),
        (
            "a marker, words",
            artifact(CompiledConstraint::compile_byte_level, &behind(TokenId(3).into()), &words),
        ),
    ];
    let mut all: Vec<_> =
        all.map(|(name, (vocabulary, compiled, bytes))| (name, vocabulary, compiled, bytes)).into();
    let free = CompiledConstraint::unconstrained(&words);
    let bytes = free.to_bytes(&Origin::default()).unwrap();
    all.push(("unconstrained", words, free, bytes));
    all.push(pushdown());
    all.push(pushdown_with_words());
    all
}

/// A constraint with calls, with a byte that is no token.
fn pushdown_with_words() -> (&'static str, Vocabulary, CompiledConstraint, Vec<u8>) {
    let words = [&b"["[..], b"]", b",", b"\"", b"a", b"\xa9", b"\xc3\xa9\"", b"],["];
    let vocabulary = Vocabulary::from_bytes(words.map(Some).into_iter().chain([None])).unwrap();
    let vocabulary = vocabulary.with_eos([TokenId(words.len() as u32)]).unwrap();
    let schema = json!({"type": "array", "items": {"anyOf": [{"enum": ["a", "aé"]}, {"$ref": "#"}]}});
    let (constraint, limits) = (compact(&schema), Limits::new().with_frames(6));
    let compiled = CompiledConstraint::compile(&constraint, &vocabulary, &limits).unwrap();
    assert_eq!((compiled.exits() > 0, compiled.frames()), (true, 6));
    let bytes = compiled.to_bytes(&Origin::new(&constraint, &limits)).unwrap();
    ("pushdown, words", vocabulary, compiled, bytes)
}

/// A constraint with calls: arrays of arrays, at least one of them not empty, so procedures have
/// two exits.
fn pushdown() -> (&'static str, Vocabulary, CompiledConstraint, Vec<u8>) {
    let words = ["[", "]", ",", "[[", "]]", "],[", "[]", "x"].map(|word| Some(word.as_bytes().to_vec()));
    let vocabulary = Vocabulary::from_bytes(words.into_iter().chain([None])).unwrap();
    let vocabulary = vocabulary.with_eos([TokenId(8)]).unwrap();
    let schema = json!({"type": "array", "items": {"$ref": "#/$defs/n"}, "contains": {"minItems": 1},
        "$defs": {"n": {"type": "array", "items": {"$ref": "#/$defs/n"}}}});
    let (constraint, limits) = (compact(&schema), Limits::new().with_frames(6));
    let compiled = CompiledConstraint::compile(&constraint, &vocabulary, &limits).unwrap();
    assert_eq!((compiled.exits() > 0, compiled.frames()), (true, 6));
    let bytes = compiled.to_bytes(&Origin::new(&constraint, &limits)).unwrap();
    ("pushdown", vocabulary, compiled, bytes)
}

#[test]
fn saved_artifacts_load_unchanged() {
    let path = std::env::temp_dir().join(format!("burn-dfa-artifact-{}", std::process::id()));
    for (name, vocabulary, compiled, bytes) in artifacts() {
        let loaded = CompiledConstraint::from_bytes(&bytes, &vocabulary, &Limits::default()).unwrap();
        assert!(loaded == compiled, "{name}: {loaded:?} instead of {compiled:?}");
        let artifact = Artifact::from_bytes(&bytes).unwrap();
        artifact.validate(&Limits::default()).unwrap();
        assert_eq!(loaded.to_bytes(&artifact.origin()).unwrap(), bytes, "{name}");
        compiled.save(&path, &artifact.origin()).unwrap();
        assert!(
            CompiledConstraint::load(&path, &vocabulary, &Limits::default()).unwrap() == compiled,
            "{name}"
        );
    }
    std::fs::remove_file(path).unwrap();
}

#[test]
fn large_constraints_load_unchanged_in_both_forms() {
    let vocabulary = tiny();
    let schema = json!({"properties": {"name": {"type": "string", "maxLength": 40}, "tags": {"items": {"format": "date"}}}});
    let constraint = Constraint::json_schema(schema).unwrap();
    for compile in [CompiledConstraint::compile_token_level, CompiledConstraint::compile_byte_level] {
        let compiled = compile(&constraint, &vocabulary, &Limits::default()).unwrap();
        let bytes = compiled.to_bytes(&Origin::default()).unwrap();
        assert!(
            CompiledConstraint::from_bytes(&bytes, &vocabulary, &Limits::default()).unwrap() == compiled,
            "{compiled:?}"
        );
    }
}

#[test]
fn an_artifact_names_its_origin() {
    let (_, vocabulary, _, bytes) = artifacts().remove(0);
    let artifact = Artifact::from_bytes(&bytes).unwrap();
    assert_eq!(artifact.metadata("constraint"), Some(r#"{"regex":"(ab|ca)+é?|bca"}"#));
    assert_eq!(artifact.metadata("fingerprint"), Some(&*vocabulary.fingerprint().to_string()));
    assert_eq!(artifact.metadata("library_version"), Some(env!("CARGO_PKG_VERSION")));
    let limits: serde_json::Value = serde_json::from_str(artifact.metadata("limits").unwrap()).unwrap();
    assert_eq!((&limits["states"], &limits["time"]), (&json!(1_000_000), &json!(30.0)));
    let names: Vec<_> = artifact.tensors().map(|(name, dtype, ..)| format!("{name} {dtype}")).collect();
    assert_eq!(names, ["class I32", "next I32", "tokens_to_end I32"]);
}

#[test]
fn artifacts_that_do_not_fit_are_refused() {
    let (_, vocabulary, compiled, bytes) = artifacts().remove(0);
    let other = vocabulary.clone().with_eos([TokenId(6)]).unwrap();
    let error = CompiledConstraint::from_bytes(&bytes, &other, &Limits::default()).unwrap_err();
    assert!(
        error.kind() == ErrorKind::IncompatibleVocabulary
            && error.to_string().contains("compile the constraint for it")
    );
    for limits in [
        Limits { states: compiled.state_count() - 1, ..Limits::default() },
        Limits { bytes: bytes.len() - 1, ..Limits::default() },
    ] {
        let error = CompiledConstraint::from_bytes(&bytes, &vocabulary, &limits).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
    }
    // A pruned constraint keeps the distances of the other vocabulary.
    let pruned = compiled.prune(&vocabulary, &[TokenId(0), TokenId(6)]).unwrap();
    let error = pruned.to_bytes(&Origin::default()).unwrap_err();
    assert!(error.kind() == ErrorKind::Artifact && error.to_string().contains("pruned"), "{error}");
    for path in ["no/such/file.safetensors", "src"] {
        let error = CompiledConstraint::load(path, &vocabulary, &Limits::default()).unwrap_err();
        assert!(error.kind() == ErrorKind::Artifact && error.to_string().contains(path), "{error}");
    }
    for other in [&b""[..], b"\xff\xff\xff\xff\xff\xff\xff\xff", b"\x02\0\0\0\0\0\0\0{}", b"GIF89a__________"]
    {
        assert!(
            CompiledConstraint::from_bytes(other, &vocabulary, &Limits::default()).unwrap_err().kind()
                == ErrorKind::Artifact
        );
    }
}

/// An unreachable end has only one encoding.
#[test]
fn a_negative_distance_is_refused() {
    for (name, vocabulary, _, bytes) in
        artifacts().into_iter().filter(|(_, _, compiled, _)| compiled.frames() == 0)
    {
        let mut file = file::File::read(&bytes);
        file.tensors.get_mut("tokens_to_end").unwrap().data[..4].copy_from_slice(&(-1i32).to_le_bytes());
        let error =
            CompiledConstraint::from_bytes(&file.write(), &vocabulary, &Limits::default()).unwrap_err();
        assert!(
            error.kind() == ErrorKind::Artifact && error.to_string().contains("tokens_to_end"),
            "{name}: {error}"
        );
    }
}

#[test]
fn other_versions_and_formats_are_refused() {
    for (name, vocabulary, _, bytes) in artifacts() {
        let file = file::File::read(&bytes);
        assert_eq!(file.metadata["format_version"], "1", "{name}");
        let others = [("format_version", "0"), ("format_version", "2"), ("format", "burn-dfa token table")];
        for (key, value) in others {
            let mut other = file.clone();
            other.metadata.insert(key.into(), value.into());
            let error =
                CompiledConstraint::from_bytes(&other.write(), &vocabulary, &Limits::default()).unwrap_err();
            let location = format!("`{key}`");
            assert!(
                error.kind() == ErrorKind::Artifact && error.to_string().contains(&location),
                "{name}: {error}"
            );
        }
    }
}

/// A distance in tokens that is not the distance of the constraint is refused, or has no effect.
#[test]
fn forged_distances_in_tokens_have_no_effect() {
    for (name, vocabulary, compiled, bytes) in artifacts() {
        let file = file::File::read(&bytes);
        for tensor in ["tokens_to_end", "tokens_to_exit", "frames_to_exit"] {
            if !file.tensors.contains_key(tensor) {
                continue;
            }
            let mut lie = file.clone();
            let data = &mut lie.tensors.get_mut(tensor).unwrap().data;
            let last = data.len() - 4;
            let value = i32::from_le_bytes(data[last..].try_into().unwrap());
            data[last..].copy_from_slice(&(value ^ 1).to_le_bytes());
            let loaded = CompiledConstraint::from_bytes(&lie.write(), &vocabulary, &Limits::default());
            if file.tensors.contains_key("bytes_to_end") || tensor == "tokens_to_exit" {
                let loaded = loaded.unwrap();
                let states = (0..compiled.state_count() as u32).map(StateId);
                assert!(
                    states
                        .into_iter()
                        .all(|state| loaded.tokens_to_end(state) == compiled.tokens_to_end(state)),
                    "{name}"
                );
                continue;
            }
            let error = loaded.unwrap_err();
            assert!(
                error.kind() == ErrorKind::Artifact && error.to_string().contains(tensor),
                "{name}: {error}"
            );
        }
    }
}

/// The example of `docs/artifact.md`.
#[test]
fn the_worked_example_is_true() {
    let words = [(TokenKind::Normal, "a"), (TokenKind::Normal, "b"), (TokenKind::Normal, "ab")];
    let marks = [(TokenKind::Special, "<s>"), (TokenKind::Special, "</s>")];
    let vocabulary = Vocabulary::from_tokens(words.into_iter().chain(marks)).unwrap();
    let vocabulary = vocabulary.with_eos([TokenId(4)]).unwrap();
    let constraint = Constraint::regex("ab*").unwrap();
    let integers = |file: &file::File, name: &str| -> Vec<i32> {
        let (numbers, _) = file.tensors[name].data.as_chunks();
        numbers.iter().map(|&number| i32::from_le_bytes(number)).collect()
    };
    let reserved = |columns: usize| {
        let row = |first: &[i32], rest: i32| [first, &vec![rest; columns - first.len()]].concat();
        [row(&[0], 0), row(&[0, 1], 0), row(&[0, 1], 2)].concat()
    };

    let compiled =
        CompiledConstraint::compile_token_level(&constraint, &vocabulary, &Limits::default()).unwrap();
    let bytes = compiled.to_bytes(&Origin::default()).unwrap();
    let file = file::File::read(&bytes);
    assert_eq!(integers(&file, "class"), [3, 4, 3, 2, 1]);
    assert_eq!(integers(&file, "next"), [&reserved(5)[..], &[0, 0, 0, 4, 0], &[0, 1, 0, 0, 4]].concat());
    assert_eq!(integers(&file, "tokens_to_end"), [i32::MAX, 0, 0, 2, 1]);
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let header = str::from_utf8(&bytes[8..][..length]).unwrap();
    let page = include_str!("../../../docs/artifact.md");
    assert!(
        page.contains(&format!("The file has {} bytes: the number {length} in 8 bytes", bytes.len())),
        "{header}"
    );
    let shown: String = page.split("```").find_map(|block| block.strip_prefix("json\n")).unwrap().into();
    let bare = |json: &str| json.split_whitespace().collect::<String>();
    assert_eq!(bare(&shown), bare(header));

    let compiled =
        CompiledConstraint::compile_byte_level(&constraint, &vocabulary, &Limits::default()).unwrap();
    let file = file::File::read(&compiled.to_bytes(&Origin::default()).unwrap());
    let column: Vec<i32> = (0..259usize)
        .map(|symbol| {
            [3, 4, 5, 0, 1, 2][match symbol {
                97 => 1,
                98 => 2,
                256.. => symbol - 253,
                _ => 0,
            }]
        })
        .collect();
    assert_eq!(integers(&file, "column"), column);
    assert_eq!(integers(&file, "offsets"), [0, 1, 2, 4, 5, 6]);
    assert_eq!(file.tensors["symbols"].data, [97, 98, 97, 98, 258, 257].map(u16::to_le_bytes).concat());
    assert_eq!(
        integers(&file, "next"),
        [&reserved(6)[..], &[0, 0, 0, 0, 4, 0], &[0, 1, 0, 0, 0, 4]].concat()
    );
}
