//! Mask rows on the device: the legal tokens of the states that the rows of a batch have visited.
//!
//! The mask of a state hardly ever changes, so a step finds it once, by following the bytes of every
//! token, and keeps it as one bit per token. A pool of such rows belongs to a batch: its
//! [`Position`](super::Position) holds it, so a recorded step reads and writes the same buffer.
//!
//! A row is exact for its state and
//! - a generation of the state: a constraint that is loaded again has another generation;
//! - the exits of the state's procedure from which the end is reachable, and a stack of at most the
//!   depth at which the row was found;
//! - a budget that is greater than the distance to the end after every legal token, otherwise the
//!   tokens are followed again.
//!
//! Tokens that return into frames below the state's procedure are listed, and followed at every
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

/// The pool of a batch, made by the first step that needs it. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct MaskRows {
    #[cfg(feature = "cube")]
    pool: Option<Arc<Mutex<Option<Pool>>>>,
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
        let tile = 1 + TILE_WORDS * if sizes.ends > 0 { 2 } else { 1 };
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
    /// A pool for the steps of a batch.
    pub(crate) fn of_batch() -> Self {
        #[cfg(feature = "cube")]
        return Self { pool: Some(Arc::default()) };
        #[cfg(not(feature = "cube"))]
        Self {}
    }

    /// The pool for steps under the constraints of an image on the current stream, if there is one.
    /// Another stream than that of the first step gets none, because its kernels could take a slot
    /// that a kernel of the first stream reads.
    #[cfg(feature = "cube")]
    pub(crate) fn pool(&self, image: &Image) -> Option<(PoolSizes, Tensor<1, Int>)> {
        let sizes = image.pool?;
        let (stream, device) = (StreamId::current(), image.values.device());
        let mut pool = self.pool.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner);
        let pool = pool.get_or_insert_with(|| Pool {
            stream,
            sizes,
            values: Tensor::zeros([sizes.len()], (&device, DType::I32)),
        });
        let fits = pool.stream == stream && pool.sizes == sizes && pool.values.device() == device;
        fits.then(|| (sizes, pool.values.clone()))
    }
}

#[cfg(all(test, feature = "cube"))]
mod tests {
    use super::*;
    use crate::tensor::Layout;

    fn sizes(states: usize, vocab_size: usize, ends: usize) -> Sizes {
        Sizes {
            layout: Layout::ByteLevel,
            states,
            columns: 9,
            tables: 1,
            vocab_size,
            texts: 1,
            symbols: vocab_size,
            alphabet: 300,
            ends,
            depth: if ends > 0 { 4 } else { 0 },
            pushes: if ends > 0 { 4 } else { 0 },
            chain: 0,
            runs_kernels: true,
        }
    }

    #[test]
    fn a_pool_has_as_many_slots_as_its_bytes_hold() {
        // The numbers of a slot: the tag, and for each tile a bound and one or two words for every 32
        // tokens.
        for (vocab_size, ends, numbers) in
            [(300, 0, 8 + 257), (8_192, 1, 8 + 513), (8_193, 0, 8 + 2 * 257), (128_256, 3, 8 + 16 * 513)]
        {
            let sizes = sizes(400, vocab_size, ends);
            let slots = |bytes| PoolSizes::new(&sizes, bytes).map_or(0, |pool| pool.slots());
            for count in [1, 2, 3, 4, 40] {
                let bytes = 4 * (8 + count * numbers);
                assert_eq!(slots(bytes), count, "{vocab_size} tokens, {ends} exits");
                assert_eq!(PoolSizes::new(&sizes, bytes).map(|pool| 4 * pool.len()), Some(bytes));
                // One byte less: sets of several slots lose a whole way.
                assert!(slots(bytes - 1) < count, "{vocab_size} tokens, {ends} exits");
            }
            assert_eq!((slots(0), slots(31), slots(4 * numbers)), (0, 0, 0));
            // A slot for every state, in whole sets.
            assert_eq!((slots(1 << 30), slots(usize::MAX)), (400, 400));
        }
        assert_eq!(PoolSizes::new(&sizes(5, 300, 0), 1 << 30).map(|pool| pool.slots()), Some(8));
    }
}
