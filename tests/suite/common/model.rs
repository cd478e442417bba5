//! A model of random logits.

use burn::tensor::{DType, Device, Int, Tensor, TensorData};
use burn_dfa::generation::CausalLm;
use rand::{Rng, SeedableRng, rngs::StdRng};

/// Logits out of a bank of random rows, chosen by the last token and the position of a row alone.
pub struct RandomLm {
    /// `[BANK, width]`
    bank: Tensor<2>,
    device: Device,
}

/// A power of two.
const BANK: usize = 64;

impl RandomLm {
    pub fn new(width: usize, seed: u64, dtype: DType, device: &Device) -> Self {
        let mut rng = StdRng::seed_from_u64(seed);
        let values: Vec<f32> = (0..BANK * width).map(|_| rng.random_range(-4.0..4.0)).collect();
        let bank = Tensor::from_data(TensorData::new(values, [BANK, width]), (device, dtype));
        Self { bank, device: device.clone() }
    }

    fn logits(&self, tokens: Tensor<1, Int>, positions: Tensor<1, Int>) -> Tensor<2> {
        let row = tokens.cast(DType::I32) * 31 + positions * 17;
        self.bank.clone().select(0, row.bitwise_and_scalar(BANK as i32 - 1))
    }
}

impl CausalLm for RandomLm {
    /// The next position of each row.
    type Cache = Tensor<1, Int>;

    fn device(&self) -> Device {
        self.device.clone()
    }

    fn vocab_size(&self) -> usize {
        self.bank.dims()[1]
    }

    fn prefill(
        &self,
        tokens: Tensor<2, Int>,
        padding: Tensor<1, Int>,
        _capacity: usize,
    ) -> (Tensor<2>, Self::Cache) {
        let [batch, length] = tokens.dims();
        let last = tokens.slice([0..batch, length - 1..length]).reshape([batch]);
        let positions = padding.cast(DType::I32) * -1 + (length as i32 - 1);
        (self.logits(last, positions.clone()), positions + 1)
    }

    fn step(&self, tokens: Tensor<1, Int>, positions: &mut Self::Cache) -> Tensor<2> {
        let logits = self.logits(tokens, positions.clone());
        positions.inplace(|positions| positions + 1);
        logits
    }
}
