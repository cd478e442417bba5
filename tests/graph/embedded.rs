//! The embedded model, and requests to it.

use burn::tensor::{Device, FloatDType};
use burn_dfa::generation::Request;
use burn_dfa::{Constraint, Limits, TokenId, TokenTable, Vocabulary};
use burn_dfa_llama::{ChatTemplate, Llama, Message, Pretrained};
use burn_dfa_tiny::generator::{Generator, Split};

/// Its positions.
pub const POSITIONS: usize = 256;

pub struct Embedded {
    pretrained: Pretrained,
    pub vocabulary: Vocabulary,
}

impl Embedded {
    pub fn load(device: &Device) -> Self {
        let text = |bytes| std::str::from_utf8(bytes).unwrap();
        let config = text(burn_dfa_tiny::CONFIG);
        let model = Llama::from_bytes(config, burn_dfa_tiny::WEIGHTS, FloatDType::F32, device).unwrap();
        let template = ChatTemplate::from_files(Some(text(burn_dfa_tiny::TOKENIZER_CONFIG)), None).unwrap();
        let pretrained = Pretrained::new(model, burn_dfa_tiny::TOKENIZER, template).unwrap();
        let eos = pretrained.eos().iter().map(|&id| TokenId(id));
        let vocabulary = Vocabulary::from_tokenizer_json(burn_dfa_tiny::TOKENIZER).unwrap();
        let vocabulary = vocabulary.with_eos(eos).unwrap();
        Self { pretrained, vocabulary }
    }

    pub fn model(&self) -> &Llama {
        self.pretrained.model()
    }

    /// A prompt of the held-out set.
    pub fn prompt(&self, index: u64) -> Vec<TokenId> {
        let example = Generator::new(5).example(Split::HeldOut, index);
        let ids = self.pretrained.encode_chat(&[Message::user(example.prompt.as_str())]).unwrap();
        ids.into_iter().map(TokenId).collect()
    }

    pub fn regex(&self, pattern: &str) -> TokenTable {
        self.compile(&Constraint::regex(pattern).unwrap())
    }

    pub fn schema(&self, name: &str) -> TokenTable {
        let schema = burn_dfa_tiny::schema(name).unwrap();
        self.compile(&Constraint::json_schema(serde_json::from_str(schema.json).unwrap()).unwrap())
    }

    fn compile(&self, constraint: &Constraint) -> TokenTable {
        TokenTable::compile(constraint, &self.vocabulary, &Limits::default()).unwrap()
    }

    /// A row per table, of `max_tokens` each; prompts and seeds depend on `first` and the row.
    pub fn requests<'a>(
        &self,
        tables: &[Option<&'a TokenTable>],
        max_tokens: usize,
        first: u64,
    ) -> Vec<Request<'a>> {
        let rows = (first..).zip(tables);
        rows.map(|(row, &table)| Request {
            table,
            ..Request::new(self.prompt(row), max_tokens).with_seed(row)
        })
        .collect()
    }
}
