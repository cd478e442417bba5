//! The cost of top-k and top-p, compared with a copy of the logits.
//!
//! All logits may be in the row, or one of [`LEGAL`], as after the mask of a constraint. As in
//! [`rows`](crate::rows), each variant is recorded over several sets of logits.

use burn::tensor::{Bool, DType, Device, Distribution, Tensor, TensorData};
use burn_dfa::processor::{InitContext, LogitsProcessor, StepContext, TopK, TopP};

use crate::clock::{Clock, Recorded, in_turns, variant};
use crate::rows::{ROUND, of_each};
use crate::table::{self, Table};

/// The vocabulary sizes of Llama 3 and SmolLM2.
const VOCAB_SIZES: [usize; 2] = [128_256, 49_152];
const BATCHES: [usize; 3] = [1, 8, 64];
/// Sets of logits.
const SETS: usize = 8;
const K: usize = 50;
const P: f32 = 0.9;
/// One of this many logits is finite in a masked row.
const LEGAL: usize = 50;

#[derive(Clone, Copy, Debug)]
struct Case {
    vocab_size: usize,
    batch: usize,
    dtype: DType,
    is_masked: bool,
}

pub fn measure(device: &Device, clock: &Clock) {
    let columns = [
        "logits",
        "batch",
        "type",
        "masked",
        "copy µs",
        "top-k µs",
        "top-k ÷ copy",
        "top-p µs",
        "top-p ÷ copy",
        "recorded",
    ];
    let table = Table::begin("Filters of rows of logits", &columns);
    let half = [DType::BF16, DType::F16].into_iter().find(|dtype| device.supports_dtype(*dtype));
    let mut cases = Vec::new();
    for vocab_size in clock.cases(VOCAB_SIZES.to_vec()) {
        for dtype in [half, Some(DType::F32)].into_iter().flatten() {
            for batch in clock.cases(BATCHES.to_vec()) {
                cases.extend([false, true].map(|is_masked| Case { vocab_size, batch, dtype, is_masked }));
            }
        }
    }
    clock.each(cases, |case| format!("{case:?}"), |case| case.measure(device, clock, &table));
}

impl Case {
    fn measure(&self, device: &Device, clock: &Clock, table: &Table) {
        let sets: Vec<Tensor<2>> = (0..SETS).map(|_| self.logits(device)).collect();
        let context = StepContext {
            tokens: Tensor::full([self.batch], self.vocab_size as i32, (device, DType::I32)),
            step: Tensor::zeros([1], (device, DType::I32)),
        };
        let init = InitContext {
            prompt: Tensor::zeros([self.batch, 1], (device, DType::I32)),
            padding: Tensor::zeros([self.batch], (device, DType::I32)),
            vocab_size: self.vocab_size,
        };
        let (top_k, top_p) = (TopK::new(K).expect("a count"), TopP::new(P).expect("a probability"));
        let (by_k, by_p) = (top_k.init(&init), top_p.init(&init));
        device.sync().expect("the device");
        let mut copy = Recorded::new(device, || of_each(&sets, device, |logits| -logits));
        let mut top_k = Recorded::new(device, || {
            of_each(&sets, device, |logits| top_k.process(by_k.clone(), logits, &context).0)
        });
        let mut top_p = Recorded::new(device, || {
            of_each(&sets, device, |logits| top_p.process(by_p.clone(), logits, &context).0)
        });
        let recorded = copy.is_hardware() && top_k.is_hardware() && top_p.is_hardware();
        let variants = [
            variant(device, || copy.replay()),
            variant(device, || top_k.replay()),
            variant(device, || top_p.replay()),
        ];
        let times = in_turns(clock, ROUND, variants);
        let of_one = |variant| table::microseconds(times.median(variant) / SETS as f64);
        table.row(&[
            self.vocab_size.to_string(),
            self.batch.to_string(),
            table::dtype(self.dtype),
            if self.is_masked { "yes".into() } else { "no".into() },
            of_one(0),
            of_one(1),
            table::ratio(times.ratio(1, 0)),
            of_one(2),
            table::ratio(times.ratio(2, 0)),
            if recorded { "yes".into() } else { "no".into() },
        ]);
    }

    fn logits(&self, device: &Device) -> Tensor<2> {
        let shape = [self.batch, self.vocab_size];
        let logits = Tensor::<2>::random(shape, Distribution::Normal(0.0, 3.0), device).cast(self.dtype);
        if !self.is_masked {
            return logits;
        }
        let illegal: Vec<bool> = (0..self.vocab_size).map(|token| token % LEGAL != 0).collect();
        let illegal = Tensor::<1, Bool>::from_data(TensorData::new(illegal, [self.vocab_size]), device);
        let illegal = illegal.unsqueeze::<2>().expand(shape);
        logits.mask_fill(illegal, f32::NEG_INFINITY)
    }
}
