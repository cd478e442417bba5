//! A tokenizer read from a GGUF file is that of the `tokenizer.json` it was made from.

use super::*;
use burn_dfa_testing::{data, skip};
use burn_dfa_tokens::Vocabulary;
use burn_dfa_tokens::vocabulary::TokenId;
use rand::prelude::*;
use serde_json::{Value as Json, json};
use tokenizers::Tokenizer;

/// Texts in eight scripts, with digits, spaces, contractions, combining characters and emoji.
const TEXTS: [&str; 16] = [
    "The quick brown fox can't jump; it's 12345 years old, isn't it?",
    "  two spaces,\ttabs\n\nand   three lines \r\n",
    "def f(x):\n    return x ** 2  # 3.14159\n",
    r#"{"name": "Ada", "age": 36, "tags": ["a", "b"], "x": -1.5e10}"#,
    "Größe, naïve, señor, Ångström, İstanbul, ﬁn",
    "Привет, мир! Сколько будет 2 + 2?",
    "Γειά σου Κόσμε, τι κάνεις;",
    "שלום עולם, מה שלומך היום?",
    "مرحبا بالعالم، كيف حالك ١٢٣؟",
    "नमस्ते दुनिया, आप कैसे हैं १२३",
    "你好，世界！今天是2024年5月1日。",
    "こんにちは世界、カタカナとひらがな。",
    "안녕하세요 세계, 한국어 조합형",
    "สวัสดีชาวโลก ๑๒๓",
    "e\u{301} o\u{308}\u{304} 👩‍👩‍👧 🇩🇪 ½ ² Ⅷ ㈱ \u{200b}\u{feff}",
    "",
];

/// Texts made of characters and words of [`TEXTS`].
fn texts(count: usize) -> Vec<String> {
    let mut rng = StdRng::seed_from_u64(5);
    let characters: Vec<char> = TEXTS.iter().flat_map(|text| text.chars()).collect();
    let words: Vec<&str> = TEXTS.iter().flat_map(|text| text.split_inclusive(' ')).collect();
    let random = (0..count).map(|index| {
        let parts = rng.random_range(1..30);
        let part = |rng: &mut StdRng| match index % 2 {
            0 => characters.choose(rng).unwrap().to_string(),
            _ => (*words.choose(rng).unwrap()).to_owned(),
        };
        (0..parts).map(|_| part(&mut rng)).collect::<String>()
    });
    TEXTS.into_iter().map(String::from).chain(random.collect::<Vec<_>>()).collect()
}

/// Compares the bytes of every id, and the ids of many texts.
fn assert_same(name: &str, file: &GgufFile, expected: &str) {
    let files = file.tokenizer_files().unwrap();
    let [read, written] =
        [&files.tokenizer[..], expected].map(|json| Vocabulary::from_tokenizer_json(json).unwrap());
    assert_eq!(read.len(), written.len(), "{name}");
    for id in (0..read.len() as u32).map(TokenId) {
        assert_eq!(read.bytes(id), written.bytes(id), "{name}: {id}");
        assert_eq!(read.content(id), written.content(id), "{name}: {id}");
    }
    let [read, written] = [&files.tokenizer[..], expected].map(|json| json.parse::<Tokenizer>().unwrap());
    let texts = texts(1000);
    for text in &texts {
        for special in [true, false] {
            let ids =
                |tokenizer: &Tokenizer| tokenizer.encode(&text[..], special).unwrap().get_ids().to_vec();
            assert_eq!(ids(&read), ids(&written), "{name}: {text:?}");
        }
        let ids = written.encode(&text[..], true).unwrap().get_ids().to_vec();
        assert_eq!(read.decode(&ids, true).unwrap(), written.decode(&ids, true).unwrap(), "{name}: {text:?}");
    }
    println!("{name}: {} ids and {} texts alike", read.get_vocab_size(true), texts.len());
}

/// The embedded tokenizer and the tokenizers of the test data, written as GGUF.
#[test]
fn a_written_tokenizer_is_read_as_it_was() {
    for tokenizer in data::tokenizers() {
        let pre = if tokenizer.name == "gpt2" { "gpt-2" } else { "smollm" };
        let writer = Writer::new("llama")
            .with_tokenizer(&tokenizer.json(), pre)
            .with("tokenizer.ggml.eos_token_id", Value::U32(tokenizer.eos.0))
            .with("tokenizer.ggml.bos_token_id", Value::U32(1))
            .with("tokenizer.ggml.add_bos_token", Value::Bool(tokenizer.name == "mistral_v1"));
        // No name stands for the splits of the embedded tokenizer.
        let writer = match tokenizer.name {
            "tiny" => writer.with("tokenizer.huggingface.json", Value::Text(tokenizer.json())),
            _ => writer,
        };
        let file = read(&writer.to_bytes()).unwrap();
        assert_same(tokenizer.name, &file, &tokenizer.json());
        if tokenizer.name == "mistral_v1" {
            let merges = |json: &str| -> Vec<String> {
                let file: Json = serde_json::from_str(json).unwrap();
                let text = |merge: &Json| {
                    merge.as_str().map_or_else(
                        || format!("{} {}", merge[0].as_str().unwrap(), merge[1].as_str().unwrap()),
                        str::to_owned,
                    )
                };
                file["model"]["merges"].as_array().unwrap().iter().map(text).collect()
            };
            assert_eq!(merges(&file.tokenizer_files().unwrap().tokenizer), merges(&tokenizer.json()));
        }
        let ends: Json = serde_json::from_str(&file.tokenizer_files().unwrap().generation_config).unwrap();
        assert!(ends["eos_token_id"].as_array().unwrap().contains(&json!(tokenizer.eos.0)), "{ends}");
    }
}

/// Small tokenizers of four families.
#[test]
fn tokenizers_of_four_families_are_read() {
    let folder =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/decoder/tests/golden/tokenizers");
    for (name, pre) in [("llama3", "llama-bpe"), ("qwen", "qwen2"), ("mistral", ""), ("gemma", "")] {
        let json = std::fs::read_to_string(folder.join(format!("{name}.json"))).unwrap();
        let file: Json = serde_json::from_str(&json).unwrap();
        let writer = Writer::new("llama").with_tokenizer(&json, pre);
        let bos = file["post_processor"].to_string();
        let bos = file["added_tokens"]
            .as_array()
            .unwrap()
            .iter()
            .find(|token| bos.contains(&token["content"].to_string()));
        let id = bos.map(|token| token["id"].as_u64().unwrap() as u32);
        let writer = writer
            .with("tokenizer.ggml.add_space_prefix", Value::Bool(name == "mistral"))
            .with("tokenizer.ggml.bos_token_id", Value::U32(id.unwrap_or(0)))
            .with("tokenizer.ggml.add_bos_token", Value::Bool(id.is_some()));
        assert_same(name, &read(&writer.to_bytes()).unwrap(), &json);
    }
}

/// The real SmolLM2, if `BURN_DFA_GGUF` names its file.
#[test]
fn a_real_model_has_its_published_tokenizer() {
    let Some(path) = std::env::var_os("BURN_DFA_GGUF") else {
        return skip::skipped("BURN_DFA_GGUF names no GGUF file of SmolLM2 (scripts/smollm2 downloads one)");
    };
    let Some(expected) = data::find("tokenizers/smollm2/tokenizer.json") else { return };
    let file = GgufFile::open(path).unwrap();
    assert_same("real SmolLM2", &file, &std::fs::read_to_string(expected).unwrap());
}

/// Every kind of splits, on texts in every script, as the `tokenizers` crate reads it; and the
/// first and the last token.
#[test]
fn splits_and_added_tokens() {
    let tiny = data::tiny().json();
    let names =
        ["default", "gpt-2", "smollm", "llama-bpe", "smaug-bpe", "qwen2", "deepseek-r1-qwen", "tekken"];
    for name in names {
        let file = read(&Writer::new("llama").with_tokenizer(&tiny, name).to_bytes()).unwrap();
        let tokenizer: Tokenizer = file.tokenizer_files().unwrap().tokenizer.parse().unwrap();
        for text in TEXTS {
            let ids = tokenizer.encode(text, false).unwrap().get_ids().to_vec();
            let composed = name == "qwen2" && text.contains("e\u{301}");
            assert!(composed || tokenizer.decode(&ids, false).unwrap() == text, "{name}: {text:?}");
        }
    }
    let words = |name: &str, text: &str| -> Vec<String> {
        let file = read(&Writer::new("llama").with_tokenizer(&tiny, name).to_bytes()).unwrap();
        let tokenizer: Tokenizer = file.tokenizer_files().unwrap().tokenizer.parse().unwrap();
        let mut split = tokenizers::PreTokenizedString::from(text);
        tokenizers::PreTokenizer::pre_tokenize(tokenizer.get_pre_tokenizer().unwrap(), &mut split).unwrap();
        let splits = split.get_splits(tokenizers::OffsetReferential::Original, tokenizers::OffsetType::Byte);
        splits.into_iter().map(|(_, (from, to), _)| text[from..to].to_owned()).collect()
    };
    assert_eq!(words("gpt-2", "it's 12345  x"), ["it", "'s", " 12345", " ", " x"]);
    assert_eq!(words("smollm", "it's 123"), ["it", "'s", " ", "1", "2", "3"]);
    assert_eq!(words("llama-bpe", "IT'S 12345\n\n x"), ["IT", "'S", " ", "123", "45", "\n\n", " x"]);
    assert_eq!(words("qwen2", "12 (a)"), ["1", "2", " (", "a", ")"]);
    assert_eq!(words("tekken", "fooBar12"), ["foo", "Bar", "1", "2"]);
    assert_eq!(words("default", "a,b  1234"), ["a", ",", "b", " ", " ", "123", "4"]);

    let ends = |bos: bool, eos: bool| {
        let writer = Writer::new("llama").with_tokenizer(&tiny, "smollm");
        let writer = writer
            .with("tokenizer.ggml.bos_token_id", Value::U32(1))
            .with("tokenizer.ggml.eos_token_id", Value::U32(0))
            .with("tokenizer.ggml.add_bos_token", Value::Bool(bos))
            .with("tokenizer.ggml.add_eos_token", Value::Bool(eos));
        let file = read(&writer.to_bytes()).unwrap();
        let tokenizer: Tokenizer = file.tokenizer_files().unwrap().tokenizer.parse().unwrap();
        let ids = tokenizer.encode("a", true).unwrap().get_ids().to_vec();
        (ids.first() == Some(&1), ids.last() == Some(&0))
    };
    for flags in [(false, false), (true, false), (false, true), (true, true)] {
        assert_eq!(ends(flags.0, flags.1), flags);
    }
}

/// One merge that must be a pair of texts.
#[test]
fn merges_are_no_comments() {
    let tokens = ["#version", "a", "#versiona"].map(String::from);
    let writer = Writer::new("llama")
        .with("tokenizer.ggml.model", "gpt2".into())
        .with("tokenizer.ggml.pre", "gpt-2".into())
        .with("tokenizer.ggml.tokens", Value::Texts(tokens.into()))
        .with("tokenizer.ggml.merges", Value::Texts(vec!["#version a".into()]));
    let file = read(&writer.to_bytes()).unwrap();
    let tokenizer: Tokenizer = file.tokenizer_files().unwrap().tokenizer.parse().unwrap();
    let written = tokenizer.to_string(false).unwrap();
    assert!(written.contains(r##"["#version","a"]"##), "{written}");
}

#[test]
fn refusals_name_the_key() {
    let tiny = || Writer::new("llama").with_tokenizer(&data::tiny().json(), "smollm");
    let table = [
        (tiny().with("tokenizer.ggml.model", "bert".into()), "tokenizer.ggml.model is \"bert\""),
        (tiny().with("tokenizer.ggml.pre", "viking".into()), "tokenizer.ggml.pre is \"viking\""),
        (tiny().without("tokenizer.ggml.tokens"), "tokenizer.ggml.tokens is missing"),
        (tiny().without("tokenizer.ggml.merges"), "tokenizer.ggml.merges is missing"),
        (tiny().with("tokenizer.ggml.model", "llama".into()), "tokenizer.ggml.scores is missing"),
        (
            tiny().with("tokenizer.ggml.token_type", Value::I32s(vec![1])),
            "tokenizer.ggml.token_type has 1 entries",
        ),
        (
            tiny().with("tokenizer.ggml.merges", Value::Texts(vec!["ab".into()])),
            "tokenizer.ggml.merges has \"ab\" at 0",
        ),
        (
            tiny().with("tokenizer.ggml.eos_token_id", Value::U32(1 << 30)),
            "tokenizer.ggml.eos_token_id is 1073741824",
        ),
        (
            tiny().with("tokenizer.ggml.add_bos_token", Value::Bool(true)),
            "tokenizer.ggml.bos_token_id is missing",
        ),
        (
            tiny()
                .with("tokenizer.ggml.tokens", Value::Texts(vec!["a".into(), "a".into()]))
                .without("tokenizer.ggml.token_type"),
            "tokenizer.ggml.tokens has \"a\" twice, as 0 and as 1",
        ),
        (
            tiny()
                .with("tokenizer.ggml.model", "llama".into())
                .with("tokenizer.ggml.tokens", Value::Texts(vec!["a".repeat(20_000)]))
                .with("tokenizer.ggml.scores", Value::F32s(vec![0.0]))
                .without("tokenizer.ggml.token_type"),
            "tokenizer.ggml.tokens has tokens that are too long",
        ),
    ];
    for (writer, part) in table {
        let error = read(&writer.to_bytes()).unwrap().tokenizer_files().unwrap_err();
        assert!(matches!(error, GgufError::Metadata { .. }) && error.to_string().contains(part), "{error}");
    }
}

/// A vocabulary is read from a file on disk as from a folder.
#[test]
fn a_vocabulary_is_read_from_a_file() {
    let path = std::env::temp_dir().join(format!("burn-dfa-gguf-{}.gguf", std::process::id()));
    let writer = Writer::new("phi3").with_tokenizer(&data::tiny().json(), "gpt-2");
    std::fs::write(&path, writer.to_bytes()).unwrap();
    let alone = Vocabulary::from_folder(&path).unwrap();
    // The width of the logits is that of the embedding matrix.
    let wide = alone.len() + 5;
    let embeddings = vec![0.0; wide];
    std::fs::write(&path, writer.with_floats("token_embd.weight", &[wide, 1], &embeddings).to_bytes())
        .unwrap();
    let vocabulary = Vocabulary::from_folder(&path).unwrap();
    assert_eq!((vocabulary.len(), vocabulary.eos()), (wide, alone.eos()));
    assert!(!vocabulary.eos().is_empty());
    assert_eq!(Vocabulary::from_tokenizer_json(data::tiny().json()).unwrap().len(), alone.len());
    std::fs::write(&path, b"GGUF\x03").unwrap();
    let error = Vocabulary::from_folder(&path).unwrap_err().to_string();
    assert!(
        error.contains(path.to_str().unwrap()) && error.contains("at byte 4: the file ends early"),
        "{error}"
    );
    std::fs::remove_file(path).unwrap();
}

/// A file may hold its `tokenizer.json`. The chat template, the ends and the sampling are in the
/// other files.
#[test]
fn template_ends_and_sampling_come_from_the_metadata() {
    let json = |text: &str| serde_json::from_str::<Json>(text).unwrap();
    let tokens = ["<unk>", "<s>", "</s>", "<|end|>", "<|eot_id|>", "a"].map(String::from);
    let writer = Writer::new("llama")
        .with("tokenizer.ggml.tokens", Value::Texts(tokens.into()))
        .with("tokenizer.ggml.token_type", Value::I32s(vec![2, 3, 3, 3, 1, 1]))
        .with("tokenizer.ggml.bos_token_id", Value::U32(1))
        .with("tokenizer.ggml.eos_token_id", Value::U32(5))
        .with("tokenizer.chat_template", "{{ messages }}".into())
        .with("tokenizer.huggingface.json", "{}".into())
        .with("general.sampling.temp", Value::F32(0.7));
    let files = read(&writer.to_bytes()).unwrap().tokenizer_files().unwrap();
    assert_eq!(files.tokenizer, "{}");
    let expected = json!({"bos_token": "<s>", "eos_token": "a", "chat_template": "{{ messages }}"});
    assert_eq!(json(&files.tokenizer_config), expected);
    let expected = json!({"eos_token_id": [2, 3, 5], "temperature": 0.7, "do_sample": true});
    assert_eq!(json(&files.generation_config), expected);
}
