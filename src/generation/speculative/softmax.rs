//! The distributions from which rows are sampled.

use burn::tensor::activation::softmax;
use burn::tensor::{Bool, DType, Device, IndexingUpdateOp, Tensor, TensorData};

use crate::sampling::temperature_factor;
use burn_dfa_tokens::Result;

/// A softmax at the temperature of each row. For a greedy row, the likeliest token has probability
/// 1.
#[derive(Clone, Debug)]
pub(super) struct RowSoftmax {
    /// 1 / temperature of each row, 1 for a greedy row: `[batch, 1, 1]`.
    factors: Tensor<3>,
    /// The greedy rows, `[batch, 1, 1]`; `None` if there are none.
    greedy: Option<Tensor<3, Bool>>,
}

impl RowSoftmax {
    /// A temperature for each row; `None` for a greedy row.
    pub(super) fn new(temperatures: &[Option<f32>], device: &Device) -> Result<Self> {
        let factor = |temperature: &Option<f32>| temperature.map_or(Ok(1.0), temperature_factor);
        let factors: Vec<f32> = temperatures.iter().map(factor).collect::<Result<_>>()?;
        let greedy: Vec<bool> = temperatures.iter().map(Option::is_none).collect();
        let shape = [temperatures.len(), 1, 1];
        Ok(Self {
            factors: Tensor::from_data(TensorData::new(factors, shape), (device, DType::F32)),
            greedy: (greedy.contains(&true))
                .then(|| Tensor::from_data(TensorData::new(greedy, shape), device)),
        })
    }

    /// The probabilities of logits `[batch, count, vocab_size]`, in `f32`.
    pub(super) fn of(&self, logits: Tensor<3>) -> Tensor<3> {
        let shape = logits.dims();
        let greedy = self.greedy.as_ref().map(|rows| (rows, logits.clone().argmax(2).cast(DType::I32)));
        let sampled = softmax(logits.cast(DType::F32) * self.factors.clone(), 2);
        let Some((greedy, likeliest)) = greedy else { return sampled };
        // Burn's `one_hot` reads its indices back.
        let one = Tensor::ones(likeliest.dims(), (&likeliest.device(), DType::F32));
        let certain = sampled.zeros_like().scatter(2, likeliest, one, IndexingUpdateOp::Add);
        sampled.mask_where(greedy.clone().expand(shape), certain)
    }
}
