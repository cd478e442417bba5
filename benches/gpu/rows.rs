//! The cost of a mask and of a choice, compared with a copy of the logits and a choice without a
//! constraint.
//!
//! Each variant is recorded over several sets of logits, so that small caches do not hold all of
//! them; the time is per set. The L2 cache of a large GPU holds the sets of a small batch, as it
//! holds the logits of a model that were just computed. A copy is an element-wise kernel of Burn
//! that reads and writes each logit.

use burn::tensor::{DType, Device, Distribution, Tensor, s};
use burn_dfa::Vocabulary;
use burn_dfa::processor::{InPlaceState, LogitsProcessor, StepContext, in_place};
use burn_dfa::sampling::{Greedy, Sampler};

use crate::clock::{Clock, Recorded, Variant, in_turns, variant};
use crate::table::{self, Table};
use crate::vocabulary;
use crate::workloads::{Form, Workload};

/// The vocabulary sizes of Llama 3, SmolLM2 and Gemma 3.
const VOCAB_SIZES: [usize; 3] = [128_256, 49_152, 262_144];
const BATCHES: [usize; 4] = [1, 8, 64, 512];
/// Objects around the string, each in a list: an object and its list take about two of the 64
/// frames of a stack.
const DEPTHS: [usize; 5] = [1, 4, 8, 16, 31];
/// Total bytes of all sets of logits, up to [`MAX_SETS`] sets.
const BYTES: usize = 128 << 20;
const MAX_SETS: usize = 64;
/// The rows of logits that are made at once. All rows as `f32` may be larger than a buffer of a
/// device.
const PART: usize = 64;
/// Seconds per variant in a round.
pub const ROUND: f64 = 0.04;

#[derive(Clone, Copy, Debug)]
struct Case {
    vocab_size: usize,
    batch: usize,
    dtype: DType,
    form: Form,
    workload: Workload,
    /// Whether the batch keeps mask rows. Otherwise every step costs what the first visit of a
    /// state costs.
    keeps: bool,
}

pub fn measure(device: &Device, clock: &Clock) {
    let vocab_sizes = clock.cases(VOCAB_SIZES.to_vec());
    let vocabularies: Vec<Vocabulary> =
        vocab_sizes.iter().map(|vocab_size| vocabulary::of_size(*vocab_size)).collect();
    let columns = [
        "logits",
        "batch",
        "type",
        "form",
        "place",
        "mask rows",
        "legal",
        "copy µs",
        "copy GB/s",
        "mask µs",
        "mask ÷ copy",
        "in place ÷ copy",
        "greedy µs",
        "choose µs",
        "choose ÷ greedy",
        "choose ÷ copy",
        "recorded",
    ];
    let table = Table::begin("Rows of logits", &columns);
    let name = |case: &Case| format!("{case:?}");
    // The narrowest float type. `model::dtype` would multiply matrices, which takes tuning.
    let dtype = [DType::BF16, DType::F16].into_iter().find(|dtype| device.supports_dtype(*dtype));
    clock.each(cases(clock, &vocab_sizes, dtype.unwrap_or(DType::F32)), name, |case| {
        let index = vocab_sizes
            .iter()
            .position(|vocab_size| *vocab_size == case.vocab_size)
            .expect("one of the sizes");
        case.measure(&vocabularies[index], device, clock, &table);
    });
}

/// The cases, most informative first.
fn cases(clock: &Clock, vocab_sizes: &[usize], dtype: DType) -> Vec<Case> {
    use Form::{ByteLevel, TokenLevel};
    use Workload::{Letters, Nested};
    let batches = clock.cases(BATCHES.to_vec());
    let (small, large) = batches.split_at(batches.len().min(2));
    let largest = &batches[batches.len() - 1..];
    let mut cases = Vec::new();
    let mut push = |vocab_size, batches: &[usize], dtype, form, workload, keeps| {
        cases.extend(batches.iter().map(|&batch| Case { vocab_size, batch, dtype, form, workload, keeps }));
    };
    // Most schemas are byte-level. First with mask rows of a visited state, with many legal tokens
    // and with few.
    push(vocab_sizes[0], &batches, dtype, ByteLevel, Workload::String, true);
    push(vocab_sizes[0], small, dtype, ByteLevel, Letters, true);
    // Then without mask rows, as a fill, in both forms.
    push(vocab_sizes[0], small, dtype, ByteLevel, Workload::String, false);
    for keeps in [false, true] {
        push(vocab_sizes[0], small, dtype, TokenLevel, Workload::String, keeps);
    }
    push(vocab_sizes[0], &[8], dtype, ByteLevel, Nested(DEPTHS[0]), true);
    for &vocab_size in &vocab_sizes[1..] {
        push(vocab_size, &batches, dtype, ByteLevel, Workload::String, true);
        push(vocab_size, &[8], dtype, ByteLevel, Nested(DEPTHS[0]), true);
    }
    push(vocab_sizes[0], large, dtype, ByteLevel, Workload::String, false);
    for keeps in [false, true] {
        push(vocab_sizes[0], large, dtype, TokenLevel, Workload::String, keeps);
    }
    for &vocab_size in &vocab_sizes[1..] {
        push(vocab_size, &batches, dtype, TokenLevel, Workload::String, true);
    }
    for &vocab_size in vocab_sizes {
        for batch in clock.cases(vec![8, 64]) {
            for depth in clock.cases(DEPTHS.to_vec()) {
                push(vocab_size, &[batch], dtype, ByteLevel, Nested(depth), true);
            }
        }
        for form in [TokenLevel, ByteLevel] {
            push(vocab_size, largest, dtype, form, Letters, true);
        }
        if dtype != DType::F32 {
            push(vocab_size, &batches, DType::F32, TokenLevel, Workload::String, true);
        }
    }
    cases
}

impl Case {
    fn measure(&self, vocabulary: &Vocabulary, device: &Device, clock: &Clock, table: &Table) {
        let (vocab_size, batch) = (vocabulary.len(), self.batch);
        let bytes = batch * vocab_size * self.dtype.size();
        let sets: Vec<Tensor<2>> =
            (0..(BYTES / bytes).clamp(1, MAX_SETS)).map(|_| self.logits(vocab_size, device)).collect();
        let (processor, position) = self.workload.rows(self.form, batch, self.keeps, vocabulary, device);
        let legal = legal(&processor.mask(&position, sets[0].clone()));
        assert!(legal > 0, "{self:?}: the rows are in the constraint");
        let context = || StepContext {
            tokens: Tensor::full([batch], vocab_size as i32, (device, DType::I32)),
            step: Tensor::zeros([1], (device, DType::I32)),
        };
        let [none, mut free, mut chosen] = [context(), context(), context()];
        let mut moving = processor.start();
        moving.assign(position.clone());
        // All buffers that a replay reads or writes must exist before recording begins.
        device.sync().expect("the device");

        let mut copy = Recorded::new(device, || of_each(&sets, device, |logits| -logits));
        let mut mask = Recorded::new(device, || {
            of_each(&sets, device, |logits| processor.process(position.clone(), logits, &none))
        });
        let mut own: Vec<Tensor<2>> = sets.iter().map(|logits| logits.clone() + 0.0).collect();
        device.sync().expect("the device");
        let mut in_place = Recorded::new(device, || {
            for logits in &mut own {
                in_place(logits, |logits| processor.process(position.clone(), logits, &none).0);
            }
        });
        let mut greedy = Recorded::new(device, || {
            for logits in &sets {
                let tokens = Greedy.sample(logits.clone(), &free.step);
                free.tokens.assign(tokens);
            }
        });
        let mut choose = Recorded::new(device, || {
            for logits in &sets {
                processor.sample_step(&mut moving, &mut chosen, logits.clone(), &Greedy);
            }
        });
        let recorded = [
            copy.is_hardware(),
            mask.is_hardware(),
            in_place.is_hardware(),
            greedy.is_hardware(),
            choose.is_hardware(),
        ];
        let variants: [Variant; 5] = [
            variant(device, || copy.replay()),
            variant(device, || mask.replay()),
            variant(device, || in_place.replay()),
            variant(device, || greedy.replay()),
            variant(device, || choose.replay()),
        ];
        let times = in_turns(clock, ROUND, variants);
        drop((in_place, choose));
        assert_eq!(self::legal(&own[0]), legal, "{self:?}: masks of replays");
        let tokens = chosen.tokens.into_data().try_to_vec::<i32>().expect("tokens");
        assert_eq!(
            tokens,
            vec![vocabulary::byte(b'a').0 as i32; batch],
            "{self:?}: the greatest logit is chosen"
        );
        let count = sets.len() as f64;
        let of_one = |variant| times.median(variant) / count;
        table.row(&[
            vocab_size.to_string(),
            batch.to_string(),
            table::dtype(self.dtype),
            self.form.name(),
            self.workload.name(),
            if self.keeps { "kept".into() } else { "none".into() },
            legal.to_string(),
            table::microseconds(of_one(0)),
            format!("{:.0}", 2e-9 * bytes as f64 / of_one(0)),
            table::microseconds(of_one(1)),
            table::ratio(times.ratio(1, 0)),
            table::ratio(times.ratio(2, 0)),
            table::microseconds(of_one(3)),
            table::microseconds(of_one(4)),
            table::ratio(times.ratio(4, 3)),
            table::ratio(times.ratio(4, 0)),
            if recorded == [true; 5] { "yes".into() } else { "no".into() },
        ]);
    }

    /// Random logits with the letter `a` as the maximum, so that each choice keeps a row in its
    /// string.
    fn logits(&self, vocab_size: usize, device: &Device) -> Tensor<2> {
        let letter = vocabulary::byte(b'a').0 as usize;
        let mut logits = Tensor::<2>::empty([self.batch, vocab_size], (device, self.dtype));
        for first in (0..self.batch).step_by(PART) {
            let rows = PART.min(self.batch - first);
            let part = Tensor::<2>::random([rows, vocab_size], Distribution::Normal(0.0, 3.0), device);
            let great = Tensor::full([rows, 1], 100.0, device);
            let part = part.slice_assign(s![.., letter..letter + 1], great).cast(self.dtype);
            logits = logits.slice_assign(s![first..first + rows, ..], part);
            // Otherwise the parts exist at the same time.
            device.flush().expect("the device");
        }
        logits
    }
}

/// The results for all sets. Each kernel is launched separately; otherwise fusion would join
/// several copies into one kernel.
pub fn of_each<T>(sets: &[Tensor<2>], device: &Device, work: impl Fn(Tensor<2>) -> T) -> Vec<T> {
    let each = sets.iter().map(|logits| {
        let result = work(logits.clone());
        device.flush().expect("the device");
        result
    });
    each.collect()
}

/// The number of legal tokens, which is the same in all rows.
fn legal(masked: &Tensor<2>) -> usize {
    let [batch, vocab_size] = masked.dims();
    let mut counts = Vec::new();
    for first in (0..batch).step_by(PART) {
        let rows = masked.clone().slice(s![first..(first + PART).min(batch), 0..vocab_size]);
        let rows = rows.cast(DType::F32).into_data().try_to_vec::<f32>().expect("rows");
        let count = |row: &[f32]| row.iter().filter(|logit| logit.is_finite()).count();
        counts.extend(rows.chunks(vocab_size).map(count));
    }
    assert!(counts.iter().all(|count| *count == counts[0]), "all rows have one mask: {counts:?}");
    counts[0]
}
