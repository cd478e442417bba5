//! Compares every token of real tokenizers with an independent table of token bytes.

use std::io::Read;

use super::*;

/// Kind and content of each id, from `tokenizers/token-bytes`.
fn table(name: &str) -> Option<Vec<(TokenKind, Vec<u8>)>> {
    let file = std::fs::File::open(data::find(&format!("tokenizers/token-bytes/{name}.tsv.gz"))?).unwrap();
    let mut text = String::new();
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).unwrap();
    let rows = text.lines().enumerate().map(|(at, line)| {
        let [id, kind, hex] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
        assert_eq!(id.parse(), Ok(at));
        let kind = match kind {
            "N" => TokenKind::Normal,
            "A" => TokenKind::Added,
            "S" => TokenKind::Special,
            "U" => TokenKind::Unused,
            _ => panic!("{line}"),
        };
        let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
        (kind, (0..hex.len()).step_by(2).map(byte).collect())
    });
    Some(rows.collect())
}

fn assert_same(name: &str, vocabulary: &Vocabulary, table: &[(TokenKind, Vec<u8>)]) {
    assert_eq!(vocabulary.len(), table.len(), "{name}");
    let mut counts = [0; 4];
    for (id, (kind, content)) in (0..).map(TokenId).zip(table) {
        counts[*kind as usize] += 1;
        assert_eq!(vocabulary.kind(id), *kind, "{name}: {id}");
        let text = matches!(kind, TokenKind::Normal | TokenKind::Added) && !content.is_empty();
        assert_eq!(vocabulary.bytes(id), text.then_some(&content[..]), "{name}: {id}");
        if *kind != TokenKind::Unused {
            assert_eq!(vocabulary.content(id), Some(&content[..]), "{name}: {id}");
        }
    }
    println!("{name}: {} ids alike; normal, added, special, unused: {counts:?}", table.len());
}

#[test]
fn every_id_of_every_tokenizer() {
    let tokenizers = data::tokenizers();
    for file in data::list("tokenizers/token-bytes") {
        let name = file.trim_end_matches(".tsv.gz");
        let table = table(name).unwrap();
        let built = Vocabulary::from_tokens(table.iter().map(|(kind, content)| (*kind, content))).unwrap();
        assert_same(name, &built, &table);
        // Some tokenizers have only the table.
        let Some(tokenizer) = tokenizers.iter().find(|tokenizer| tokenizer.name == name) else { continue };
        let read = Vocabulary::from_tokenizer_json(tokenizer.json()).unwrap();
        assert_same(name, &read, &table);
        assert_eq!(read.fingerprint(), built.fingerprint(), "{name}");
    }
}

#[test]
fn raw_bytes_come_back() {
    let Some(table) = table("gguf-phi-3") else {
        return;
    };
    let text = |kind| matches!(kind, TokenKind::Normal | TokenKind::Added);
    let tokens: Vec<_> = table.into_iter().map(|(kind, content)| text(kind).then_some(content)).collect();
    let vocabulary = Vocabulary::from_bytes(tokens.clone()).unwrap();
    assert_eq!(vocabulary.len(), 32_064);
    for (id, token) in (0..).map(TokenId).zip(&tokens) {
        assert_eq!(vocabulary.bytes(id), token.as_deref(), "{id}");
    }
}

#[test]
fn folders_name_the_end() {
    for data::Tokenizer { name, folder, eos } in data::tokenizers() {
        match Vocabulary::from_folder(folder) {
            Ok(vocabulary) => assert!(vocabulary.eos().iter().eq(&[eos]), "{name}"),
            // This folder names no end token.
            Err(error) => {
                assert!(name == "smollm2" && error.to_string().contains("with_eos"), "{name}: {error}")
            }
        }
    }
}
