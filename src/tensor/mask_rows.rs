//! Mask rows on the device: the legal tokens of the states that the rows of a batch have visited.
//!
//! The mask of a state hardly ever changes, so a step finds it once, by following the bytes of
//! every token, and keeps it as one bit per token. A pool of such rows belongs to a batch: its
//! [`Position`](super::Position) holds it, so a recorded step reads and writes the same buffer. The
//! vocabulary of a draft model has rows of another size, and therefore another pool.
//!
//! A row is exact for its state and
//! - a generation of the state: a constraint that is loaded again has another generation;
//! - the exits of the state's procedure from which the end is reachable, and a stack of at most the
//!   depth at which the row was found, or of this very depth if the limit of the stack made a token
//!   illegal or a path longer;
//! - a budget that is greater than the distance to the end after every legal token, otherwise the
//!   tokens are followed again.
//!
//! Tokens that return into frames below the state's procedure are marked, and followed at every
//! step.

#[cfg(feature = "cube")]
use std::sync::{Arc, Mutex, PoisonError};

#[cfg(feature = "cube")]
use burn::tensor::{DType, Int, StreamId, Tensor};

#[cfg(feature = "cube")]
use super::arrays::{CLOCK, TAG, TILE, TILE_WORDS};
#[cfg(feature = "cube")]
use super::{Image, Sizes};

/// The maximum number of slots of a set. A state belongs to one set and takes any of its slots.
#[cfg(feature = "cube")]
const WAYS: usize = 4;

/// The maximum number of pools of a batch: of the model, of draft models with other vocabularies,
/// and of other threads.
#[cfg(feature = "cube")]
const MAX_POOLS: usize = 4;

/// The pools of a batch. A pool is made before the first step, or by the first step that needs it.
/// Clones share the pools.
#[derive(Clone, Debug, Default)]
pub(crate) struct MaskRows {
    /// At most one pool of the same sizes for a stream of a device. A pool is never replaced,
    /// because recorded steps hold its buffer.
    #[cfg(feature = "cube")]
    pools: Option<Arc<Mutex<Vec<Pool>>>>,
}

/// A pool on a device.
#[cfg(feature = "cube")]
#[derive(Debug)]
struct Pool {
    /// The stream of its kernels, whose order keeps them from each other's slots.
    stream: StreamId,
    sizes: PoolSizes,
    values: Tensor<1, Int>,
}

/// The sizes of a pool, in numbers of 32 bits.
#[cfg(feature = "cube")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PoolSizes {
    pub(crate) sets: usize,
    /// The slots of a set.
    pub(crate) ways: usize,
    /// The size of a row.
    pub(crate) row: usize,
    /// The size of a tile.
    pub(crate) tile: usize,
}

#[cfg(feature = "cube")]
impl PoolSizes {
    /// A pool of at most `max_bytes`, and of about a slot for every state; `None` if not even one
    /// slot fits.
    pub(super) fn new(sizes: &Sizes, max_bytes: usize) -> Option<Self> {
        let tile = 1 + TILE_WORDS * if sizes.exits > 0 { 2 } else { 1 };
        let row = tiles(sizes.vocab_size) * tile;
        let max = max_bytes.min(i32::MAX as usize) / size_of::<i32>();
        let slots = max.saturating_sub(CLOCK) / (TAG + row);
        let ways = slots.min(WAYS);
        let sets = (slots / ways.max(1)).min(sizes.states.div_ceil(WAYS));
        (sets > 0).then_some(Self { sets, ways, row, tile })
    }

    /// The number of slots.
    pub(super) fn slots(&self) -> usize {
        self.sets * self.ways
    }

    fn len(&self) -> usize {
        CLOCK + self.slots() * (TAG + self.row)
    }
}

/// The tiles of a row of logits.
#[cfg(feature = "cube")]
pub(crate) fn tiles(vocab_size: usize) -> usize {
    vocab_size.div_ceil(TILE as usize)
}

impl MaskRows {
    /// Pools for the steps of a batch.
    pub(crate) fn of_batch() -> Self {
        #[cfg(feature = "cube")]
        return Self { pools: Some(Arc::default()) };
        #[cfg(not(feature = "cube"))]
        Self {}
    }

    /// The pool for steps under the constraints of an image on the current stream, made if it does
    /// not exist; `None` if the batch keeps no rows, or has all its pools. By default, each thread
    /// has its own stream. Streams share no pool, because a kernel of one could take a slot
    /// that a kernel of another reads.
    ///
    /// Kernels write to the buffer of the pool, whatever handles of it exist: no operation copies
    /// it.
    #[cfg(feature = "cube")]
    pub(crate) fn pool(&self, image: &Image) -> Option<(PoolSizes, Tensor<1, Int>)> {
        let sizes = image.pool?;
        let (stream, device) = (StreamId::current(), image.values.device());
        let mut pools = self.pools.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner);
        let is_own =
            |pool: &&Pool| pool.stream == stream && pool.sizes == sizes && pool.values.device() == device;
        if let Some(pool) = pools.iter().find(is_own) {
            return Some((sizes, pool.values.clone()));
        }
        if pools.len() == MAX_POOLS {
            return None;
        }
        let values = Tensor::<1, Int>::zeros([sizes.len()], (&device, DType::I32));
        pools.push(Pool { stream, sizes, values: values.clone() });
        Some((sizes, values))
    }
}

#[cfg(all(test, feature = "cube"))]
pub(crate) mod tests {
    use super::*;

    fn sizes(states: usize, vocab_size: usize, exits: usize) -> Sizes {
        Sizes {
            states,
            columns: 9,
            constraints: 1,
            vocab_size,
            texts: 1,
            symbols: vocab_size,
            alphabet: 300,
            exits,
            depth: if exits > 0 { 4 } else { 0 },
            pushes: if exits > 0 { 4 } else { 0 },
            chain: 0,
            runs_kernels: true,
        }
    }

    #[test]
    fn a_pool_has_as_many_slots_as_its_bytes_hold() {
        // The numbers of a slot: the tag, and for each tile a bound and one or two words for every
        // 32 tokens.
        for (vocab_size, exits, numbers) in
            [(300, 0, 8 + 257), (8_192, 1, 8 + 513), (8_193, 0, 8 + 2 * 257), (128_256, 3, 8 + 16 * 513)]
        {
            let sizes = sizes(400, vocab_size, exits);
            let slots = |bytes| PoolSizes::new(&sizes, bytes).map_or(0, |pool| pool.slots());
            for count in [1, 2, 3, 4, 40] {
                let bytes = 4 * (8 + count * numbers);
                assert_eq!(slots(bytes), count, "{vocab_size} tokens, {exits} exits");
                assert_eq!(PoolSizes::new(&sizes, bytes).map(|pool| 4 * pool.len()), Some(bytes));
                // One byte less holds fewer slots.
                assert!(slots(bytes - 1) < count, "{vocab_size} tokens, {exits} exits");
            }
            assert_eq!((slots(0), slots(31), slots(4 * numbers)), (0, 0, 0));
            // A slot for every state, in whole sets.
            assert_eq!((slots(1 << 30), slots(usize::MAX)), (400, 400));
        }
        assert_eq!(PoolSizes::new(&sizes(5, 300, 0), 1 << 30).map(|pool| pool.slots()), Some(8));
    }

    #[cfg(all(feature = "wgpu", not(feature = "vulkan")))]
    pub(crate) mod on_a_device {
        use std::panic::catch_unwind;
        use std::thread;

        use burn::tensor::{Device, DeviceKind};

        use super::*;
        use crate::processor::ConstraintProcessor;
        use crate::tensor::{Array, Store};
        use crate::tokens::RowPosition;
        use crate::{
            CompiledConstraint, Constraint, DeviceConstraint, Limits, Position, StateId, TensorOptions,
            TokenId,
        };

        /// WGPU, if a small computation on it succeeds.
        pub(crate) fn wgpu() -> Option<Device> {
            let opened = catch_unwind(|| {
                let device = Device::wgpu(DeviceKind::DefaultDevice);
                let two = (Tensor::<1>::ones([1], &device) + 1.0).into_data();
                assert_eq!(two.try_to_vec::<f32>().unwrap(), [2.0]);
                device
            });
            if opened.is_err() {
                burn_dfa_testing::skip::skipped("mask rows on WGPU: there is no such device");
            }
            opened.ok()
        }

        /// The clock of each pool, and the time of the last use of each filled slot whose bits
        /// count.
        pub(crate) fn uses(rows: &MaskRows) -> Vec<(i32, Vec<i32>)> {
            let pools = rows.pools.as_ref().unwrap().lock().unwrap();
            let uses = |pool: &Pool| {
                let values = pool.values.clone().into_data().try_to_vec::<i32>().unwrap();
                let (tags, rows) = values[CLOCK..].split_at(pool.sizes.slots() * TAG);
                let slots = tags.chunks_exact(TAG).zip(rows.chunks_exact(pool.sizes.row));
                // No upload has the generation 0, and no budget makes bits with this bound exact.
                let filled = slots.filter(|(tag, row)| tag[1] != 0 && row[0] != i32::MAX);
                (values[0], filled.map(|(tag, _)| tag[4]).collect())
            };
            pools.iter().map(uses).collect()
        }

        /// A byte-level constraint for a vocabulary of bytes.
        fn of_bytes(pattern: &str) -> CompiledConstraint {
            let vocabulary = burn_dfa_testing::words::vocabulary_of(&[]);
            let constraint = Constraint::regex(pattern).unwrap();
            CompiledConstraint::compile_byte_level(&constraint, &vocabulary, &Limits::default()).unwrap()
        }

        fn on_device(compiled: &CompiledConstraint, device: &Device) -> DeviceConstraint {
            let vocab_size = compiled.vocabulary_len();
            DeviceConstraint::new(&[compiled], vocab_size, &TensorOptions::new(), device).unwrap()
        }

        #[test]
        fn a_draft_vocabulary_and_the_models_keep_rows() {
            let Some(device) = wgpu() else { return };
            // The rows of the model have two tiles, and the rows of the draft model have one.
            let words: Vec<String> = (0..9_000).map(|word| format!("a{word}")).collect();
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let vocabulary = burn_dfa_testing::words::vocabulary_of(&words);
            let constraint = Constraint::regex("[a-c]*").unwrap();
            let compiled =
                CompiledConstraint::compile_byte_level(&constraint, &vocabulary, &Limits::default());
            let compiled = compiled.unwrap();
            let ids: Vec<TokenId> = (0..=256).map(TokenId).collect();
            let pruned = compiled.prune(&vocabulary, &ids).unwrap();
            let processor = |compiled: &CompiledConstraint| {
                ConstraintProcessor::new(on_device(compiled, &device), &[0]).unwrap()
            };
            let (model, draft) = (processor(&compiled), processor(&pruned));
            assert_eq!(
                [&model, &draft].map(|processor| tiles(processor.device_constraint().vocab_size())),
                [2, 1]
            );
            let position = model.start();
            for step in 1..=3 {
                for processor in [&draft, &model] {
                    let logits =
                        Tensor::zeros([1, processor.device_constraint().vocab_size()], (&device, DType::F32));
                    let masked = processor.mask(&position, logits).into_data();
                    let masked = masked.try_to_vec::<f32>().unwrap();
                    // Three letters and the end of the sequence.
                    assert_eq!(masked.iter().filter(|&&logit| logit == 0.0).count(), 4);
                }
                // The first step filled the only slot in use; later steps read it.
                assert_eq!(uses(&position.rows), [(step, vec![step]), (step, vec![step])]);
            }
        }

        /// A hit follows no token: with all arrays of the image set to 0 but the generations, the
        /// mask of a visited state is the same.
        #[test]
        fn a_hit_reads_only_the_mask_row() {
            let Some(device) = wgpu() else { return };
            let on_device = on_device(&of_bytes("[a-c]*"), &device);
            let vocab_size = on_device.vocab_size();
            let mut erased = on_device.clone();
            let Store::Cube(image) = &mut erased.store else { panic!("WGPU has kernels") };
            let generations = image.range(Array::Generation);
            let values = image.values.clone();
            image.values =
                values.zeros_like().slice_assign([generations.clone()], values.slice([generations]));
            let [processor, erased] =
                [on_device, erased].map(|tensors| ConstraintProcessor::new(tensors, &[0]).unwrap());
            let position = processor.start();
            let legal = |processor: &ConstraintProcessor, position: &Position| {
                let logits = Tensor::zeros([1, vocab_size], (&device, DType::F32));
                let masked = processor.mask(position, logits).into_data().try_to_vec::<f32>().unwrap();
                masked.into_iter().filter(|&logit| logit == 0.0).count()
            };
            // Three letters and the end of the sequence.
            assert_eq!([&processor, &erased].map(|processor| legal(processor, &position)), [4, 4]);
            assert_ne!(legal(&erased, &erased.start()), 4, "a new batch has no mask row");
        }

        #[test]
        fn the_same_constraints_again_keep_the_mask_rows() {
            let Some(device) = wgpu() else { return };
            let [first, second] = ["[a-c]*", "[d-f]*"].map(of_bytes);
            let on_device = on_device(&first, &device);
            let vocab_size = on_device.vocab_size();
            let mut processor = ConstraintProcessor::new(on_device, &[0]).unwrap();
            let position = processor.start();
            let mut last = Vec::new();
            for constraint in [&first, &first.clone(), &second, &first] {
                processor.replace(&[constraint], &[0], &[9]).unwrap();
                let logits = Tensor::zeros([1, vocab_size], (&device, DType::F32));
                drop(processor.mask(&position, logits).into_data());
                last = uses(&position.rows);
            }
            // The second visit is a hit. After another constraint the first one is uploaded again.
            assert_eq!(last, [(4, vec![2, 3, 4])]);
        }

        /// A batch whose steps are on several threads does not walk at every step.
        #[test]
        fn each_thread_keeps_rows_of_its_own() {
            let Some(device) = wgpu() else { return };
            let on_device = on_device(&of_bytes("[a-c]*"), &device);
            let vocab_size = on_device.vocab_size();
            let processor = ConstraintProcessor::new(on_device, &[0]).unwrap();
            let position = processor.start();
            let step = move |processor: &ConstraintProcessor, position: &Position| {
                let device = processor.device_constraint().device();
                let logits = Tensor::zeros([1, vocab_size], (device, DType::F32));
                let masked = processor.mask(position, logits).into_data().try_to_vec::<f32>().unwrap();
                // Three letters and the end of the sequence.
                assert_eq!(masked.iter().filter(|&&logit| logit == 0.0).count(), 4);
            };
            let steps_elsewhere = |count: usize| {
                let (processor, position) = (processor.clone(), position.clone());
                let thread = thread::spawn(move || (0..count).for_each(|_| step(&processor, &position)));
                thread.join().unwrap();
            };
            step(&processor, &position);
            steps_elsewhere(2);
            step(&processor, &position);
            // The second step of a thread reads the slot that its first step filled.
            assert_eq!(uses(&position.rows), [(2, vec![2]), (2, vec![2])]);
            (0..MAX_POOLS).for_each(|_| steps_elsewhere(1));
            assert_eq!(uses(&position.rows).len(), MAX_POOLS);
        }

        /// A row with as many frames as fit shares its state with a row that has one less.
        #[test]
        fn the_limit_of_a_stack_decides_for_its_depth_alone() {
            let Some(device) = wgpu() else { return };
            let vocabulary = burn_dfa_testing::words::vocabulary_of(&[]);
            let lists = serde_json::json!({"type": "array", "items": {"$ref": "#"}});
            let constraint = burn_dfa_testing::words::compact(&lists);
            let limits = Limits::default().with_frames(2);
            let compiled = CompiledConstraint::compile_byte_level(&constraint, &vocabulary, &limits).unwrap();
            let open = TokenId(u32::from(b'['));
            let mut positions = vec![RowPosition::unlimited(compiled.start())];
            while positions[positions.len() - 1].state != StateId::DEAD {
                positions.push(compiled.after(&positions[positions.len() - 1], open));
            }
            let [.., above, full, _] = &positions[..] else { panic!("there are lists in lists") };
            assert_eq!((above.state, above.frames.len()), (full.state, full.frames.len() / 2));

            let vocab_size = vocabulary.len();
            let on_device =
                DeviceConstraint::new(&[&compiled], vocab_size, &TensorOptions::new(), &device).unwrap();
            let processor = ConstraintProcessor::new(on_device, &[0, 0]).unwrap();
            let mut position = processor.start();
            for count in 0..positions.len() - 2 {
                let last = if count + 3 == positions.len() { vocab_size as i32 } else { open.0 as i32 };
                let tokens = Tensor::from_data([open.0 as i32, last], (&device, DType::I32));
                position = processor.advance(position, tokens);
            }
            let legal = |own: &RowPosition| {
                let tokens = (0..vocab_size as u32).map(TokenId);
                tokens.map(|token| compiled.can_end(&compiled.after(own, token))).collect::<Vec<_>>()
            };
            assert_ne!(legal(full), legal(above));
            // In the first step the second row finds no free slot, because the first row asks for
            // it.
            let expected = [vec![1], vec![2, 2], vec![3, 3]];
            for (step, expected) in (1..).zip(expected) {
                let logits = Tensor::zeros([2, vocab_size], (&device, DType::F32));
                let masked = processor.mask(&position, logits).into_data().try_to_vec::<f32>().unwrap();
                let found: Vec<bool> = masked.iter().map(|&logit| logit == 0.0).collect();
                assert_eq!(found, [legal(full), legal(above)].concat(), "step {step}");
                assert_eq!(uses(&position.rows), [(step, expected)]);
            }
        }
    }
}
