//! The initial data of a row.

use burn::tensor::{DType, Device, Int, Tensor, TensorData};

use crate::generation::options::SamplingOptions;
use crate::generation::request::Request;
use crate::processor::InitContext;
use crate::tensor::ints;
use crate::vocabulary::TokenId;

/// The prompt of a row, and how its tokens are chosen.
pub(super) struct Prompt {
    pub(super) tokens: Vec<TokenId>,
    pub(super) options: SamplingOptions,
    pub(super) seed: u64,
    pub(super) salt: Option<String>,
}

impl Prompt {
    pub(super) fn new(request: &Request, options: &SamplingOptions) -> Self {
        Self {
            tokens: request.prompt.clone(),
            options: options.clone(),
            seed: request.seed,
            salt: request.cache_salt.clone(),
        }
    }

    /// The prompt as a batch of one row.
    pub(super) fn init(&self, vocab_size: usize, device: &Device) -> InitContext {
        InitContext { prompt: upload(&self.tokens, device), padding: ints(vec![0], device), vocab_size }
    }
}

/// Tokens as the model reads them, `[1, length]`.
pub(super) fn upload(tokens: &[TokenId], device: &Device) -> Tensor<2, Int> {
    let ids: Vec<i32> = tokens.iter().map(|token| token.0 as i32).collect();
    Tensor::from_data(TensorData::new(ids, [1, tokens.len()]), (device, DType::I32))
}
