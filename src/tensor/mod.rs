//! Token tables on a device.
//!
//! A [`TensorTable`] holds one or more [`TokenTable`]s of the same vocabulary as tensors and answers, for a
//! batch of states and without reading anything back, which tokens are illegal and which state follows.
//! The reserved states are shared; the states of table `i` follow those of table `i − 1`.
//!
//! In an [`Arena`] tables come and go one by one, while rows go on with the others.
//!
//! Three layouts give the same results, see [`Layout`]. On Flex, WGPU, Vulkan and CUDA the lookups are fused
//! operations ([`Kernels::Fused`]), elsewhere Burn's built-in ones.
//!
//! # Invariants
//! - tables are validated before anything is uploaded; no index that leaves the host is out of bounds;
//! - token ids from outside are brought into range on the device: an id that is none leads to
//!   [`StateId::DEAD`], and the id `width` ([`TensorTable::no_token`]) leaves the state as it is; states that
//!   were made elsewhere are clamped into range;
//! - states are `i32` tensors, whatever the integer type of the device.

mod arena;
mod device;
#[cfg(feature = "flex")]
mod host;
#[cfg(feature = "remote")]
mod hosted;
#[cfg(all(feature = "remote-server", feature = "flex"))]
mod hosting;
mod image;
#[cfg(feature = "flex")]
mod kept_rows;
#[cfg(feature = "flex")]
mod legal;
mod options;
mod placement;
mod position;
mod sizes;
mod text;

#[cfg(feature = "flex")]
use std::sync::Arc;

use burn::tensor::{DType, Device, Int, Tensor, TensorData};

pub use arena::Arena;
pub use options::{Capacity, Kernels, Layout, TensorOptions};
pub use position::Position;

use crate::error::{Error, Result};
use crate::table::{StateId, TokenTable};
use crate::vocabulary::Fingerprint;
pub(crate) use device::{is_fused, reads, records};
use device::{largest_binding, runs_kernels};
#[cfg(feature = "flex")]
pub(crate) use host::{HostRow, HostTable};
#[cfg(feature = "remote")]
pub(crate) use hosted::Hosted;
#[cfg(all(feature = "remote-server", feature = "flex"))]
pub(crate) use hosting::{HostedTables, Refused};
pub(crate) use image::{Array, Image};
#[cfg(feature = "flex")]
pub(crate) use kept_rows::{Place, place};
#[cfg(feature = "flex")]
pub(crate) use legal::Legal;
use placement::Joined;
pub(crate) use position::UNLIMITED;
use sizes::Sizes;
pub(crate) use text::{BY_CLASS, FOLLOWED};

/// Compiled constraints on a device; see the [module](self).
///
/// ```
/// use burn::tensor::Device;
/// use burn_dfa::{Constraint, Limits, TensorOptions, TensorTable, TokenId, TokenTable, Vocabulary};
///
/// let vocabulary = Vocabulary::from_bytes([Some(b"a".to_vec()), Some(b"b".to_vec()), None])?
///     .with_eos([TokenId(2)])?;
/// let table = TokenTable::compile(&Constraint::regex("ab*")?, &vocabulary, &Limits::default())?;
/// let table = TensorTable::new(&[&table], 3, &TensorOptions::default(), &Device::flex())?;
///
/// let states = table.states(&[table.start(0)])?;
/// let illegal = table.illegal(states, None);
/// assert_eq!(illegal.into_data().try_to_vec::<bool>().unwrap(), [false, true, true]);
/// # Ok::<(), burn_dfa::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct TensorTable {
    store: Store,
    starts: Vec<StateId>,
    start_tokens: Vec<usize>,
    sizes: Sizes,
    bytes: usize,
    fingerprint: Fingerprint,
    device: Device,
}

/// Where the table is, and what reads it.
#[derive(Clone, Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "there is one of them per table, and not all variants in every build"
)]
pub(crate) enum Store {
    /// On the host, for the fused operations of Flex.
    #[cfg(feature = "flex")]
    Host(Arc<HostTable>),
    /// On the device, for the kernels of CubeCL.
    #[cfg(feature = "cube")]
    Cube(Image),
    /// On a server, for the fused operations that it hosts.
    #[cfg(feature = "remote")]
    Hosted(Hosted),
    /// On the device, for the built-in operations.
    BuiltIn(Image),
}

impl Store {
    fn new(
        sizes: &Sizes,
        kernels: Kernels,
        device: &Device,
        #[cfg(feature = "flex")] host: impl FnOnce() -> HostTable,
        #[cfg(feature = "remote")] hosted: impl FnOnce() -> Result<Hosted>,
        image: impl FnOnce() -> Image,
    ) -> Result<Self> {
        let fused = kernels == Kernels::Fused && is_fused(device);
        Ok(match device.as_dispatch() {
            #[cfg(feature = "flex")]
            burn::backend::DispatchDevice::Flex(_) if fused && sizes.layout != Layout::Dense => {
                Self::Host(Arc::new(host()))
            }
            #[cfg(feature = "cube")]
            burn::backend::DispatchDevice::Cube(_) if fused => {
                sizes.check_stack()?;
                Self::Cube(image())
            }
            // A pruned table cannot be sent as it is.
            #[cfg(feature = "remote")]
            burn::backend::DispatchDevice::Remote(_) if fused && sizes.layout != Layout::Dense => {
                hosted().map_or_else(|_| Self::BuiltIn(image()), Self::Hosted)
            }
            _ => Self::BuiltIn(image()),
        })
    }

    /// The image, where there is one.
    pub(crate) fn image(&self) -> Option<&Image> {
        match self {
            #[cfg(feature = "flex")]
            Self::Host(_) => None,
            #[cfg(feature = "remote")]
            Self::Hosted(_) => None,
            #[cfg(feature = "cube")]
            Self::Cube(image) => Some(image),
            Self::BuiltIn(image) => Some(image),
        }
    }

    /// Puts other tables in the place of those that it holds.
    fn replace(&mut self, tables: &[&TokenTable], joined: &Joined) -> Result<()> {
        match self {
            #[cfg(feature = "remote")]
            Self::Hosted(hosted) => hosted.replace(tables)?,
            #[cfg(feature = "flex")]
            Self::Host(host) => *host = Arc::new(HostTable::joined(tables, host.frame(), host.kept_bytes())),
            #[cfg(feature = "cube")]
            Self::Cube(image) => image.replace(tables, joined),
            Self::BuiltIn(image) => image.replace(tables, joined),
        }
        Ok(())
    }

    /// Puts one table of an arena in its place, and leaves the others as they are.
    fn put(&mut self, index: usize, table: &TokenTable, pages: &[u32]) -> Result<()> {
        match self {
            #[cfg(feature = "remote")]
            Self::Hosted(hosted) => hosted.put(index, table, pages)?,
            #[cfg(feature = "flex")]
            Self::Host(host) => Arc::make_mut(host).put(index, table, pages),
            #[cfg(feature = "cube")]
            Self::Cube(image) => image.put(index, table, pages),
            Self::BuiltIn(image) => image.put(index, table, pages),
        }
        Ok(())
    }

    /// Forgets one table of an arena. On a device there is nothing to do: no state leads to its rows any more.
    fn take_out(&mut self, index: usize) {
        #[cfg(feature = "flex")]
        if let Self::Host(host) = self {
            Arc::make_mut(host).take_out(index);
        }
        #[cfg(feature = "remote")]
        if let Self::Hosted(hosted) = self {
            hosted.take_out(index);
        }
    }
}

impl TensorTable {
    /// Uploads `tables` for rows of `width` logits.
    ///
    /// # Errors
    /// - [`Error::is_input`]: no table, a layout that a table does not have, stacks of different depths, or stacks that are
    ///   too deep for the kernels of a GPU;
    /// - [`Error::is_incompatible_vocabulary`]: tables of different vocabularies, or `width` below the size of
    ///   the vocabulary;
    /// - [`Error::is_table`]: a table breaks an invariant;
    /// - [`Error::is_limit`]: more than `max_bytes`, more than the device can bind in one tensor, or more entries
    ///   than an `i32` can index.
    pub fn new(
        tables: &[&TokenTable],
        width: usize,
        options: &TensorOptions,
        device: &Device,
    ) -> Result<Self> {
        let fingerprint = check(tables, width)?;
        let joined = Joined::new(tables);
        let sizes =
            Sizes::new(options.layout, tables, joined.states, width, options.capacity, runs_kernels(device))?;
        sizes.check(options.max_bytes, largest_binding(device))?;
        let store = Store::new(
            &sizes,
            options.kernels,
            device,
            #[cfg(feature = "flex")]
            || HostTable::joined(tables, sizes.frame(), options.max_kept_bytes),
            #[cfg(feature = "remote")]
            || Hosted::joined(tables, sizes.frame(), device),
            || Image::upload(&sizes, tables, &joined, device),
        )?;
        let mut table = Self::of(sizes, store, fingerprint, device);
        table.set_starts(tables, &joined);
        Ok(table)
    }

    /// A table of which no state is known yet.
    fn of(sizes: Sizes, store: Store, fingerprint: Fingerprint, device: &Device) -> Self {
        Self {
            bytes: sizes.bytes(),
            store,
            starts: Vec::new(),
            start_tokens: Vec::new(),
            sizes,
            fingerprint,
            device: device.clone(),
        }
    }

    /// The layout that [`new`](Self::new) would take, and its bytes on the device, without a device.
    ///
    /// # Errors
    /// As [`new`](Self::new), but for the limit of the device.
    pub fn plan(tables: &[&TokenTable], width: usize, options: &TensorOptions) -> Result<(Layout, usize)> {
        check(tables, width)?;
        let states = Joined::new(tables).states;
        let sizes = Sizes::new(options.layout, tables, states, width, options.capacity, false)?;
        sizes.check(options.max_bytes, None)?;
        Ok((sizes.layout, sizes.bytes()))
    }

    /// Puts `tables` in the place of those that it holds, in the same buffers, so that a recorded graph reads
    /// them from its next replay on. States of the old tables mean nothing any more.
    ///
    /// # Errors
    /// As [`new`](Self::new); [`Error::is_input`] where the new tables do not fit the sizes of the present ones,
    /// see [`TensorOptions::capacity`]. Nothing has changed then.
    pub fn replace(&mut self, tables: &[&TokenTable]) -> Result<()> {
        let fingerprint = check(tables, self.sizes.width)?;
        if fingerprint != self.fingerprint {
            return Err(Error::incompatible_vocabulary(format!(
                "tables of vocabulary {fingerprint} cannot replace those of {}",
                self.fingerprint
            )));
        }
        let joined = Joined::new(tables);
        let layout = Some(self.sizes.layout);
        let runs_kernels = runs_kernels(&self.device);
        let needed =
            Sizes::new(layout, tables, joined.states, self.sizes.width, Capacity::default(), runs_kernels)?;
        if !self.sizes.hold(&needed) {
            return Err(Error::input(format!(
                "{} tables of {} states and up to {} columns do not fit a capacity of {}, {} and {}: reserve more in `TensorOptions::capacity`",
                tables.len(),
                needed.states,
                needed.columns,
                self.sizes.tables,
                self.sizes.states,
                self.sizes.columns
            )));
        }
        self.store.replace(tables, &joined)?;
        self.set_starts(tables, &joined);
        Ok(())
    }

    fn set_starts(&mut self, tables: &[&TokenTable], joined: &Joined) {
        self.starts = tables.iter().enumerate().map(|(i, table)| joined.state(i, table.start())).collect();
        self.start_tokens = tables.iter().map(|t| t.tokens_to_end(t.start()) as usize).collect();
    }

    /// The start state of table `index`.
    ///
    /// # Panics
    /// Where there is no such table.
    pub fn start(&self, index: usize) -> StateId {
        self.starts[index]
    }

    /// The least number of tokens, end of sequence included, of an output of table `index`.
    ///
    /// # Panics
    /// Where there is no such table.
    pub fn tokens_needed(&self, index: usize) -> usize {
        self.start_tokens[index]
    }

    /// Number of tables.
    pub fn table_count(&self) -> usize {
        self.starts.len()
    }

    /// Number of states of all tables together, or the capacity for them.
    pub fn state_count(&self) -> usize {
        self.sizes.states
    }

    /// Width of a row of logits.
    pub fn width(&self) -> usize {
        self.sizes.width
    }

    /// The id that stands for "no token yet": it leaves every state as it is.
    pub fn no_token(&self) -> usize {
        self.sizes.width
    }

    /// Bytes on the device.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The layout in use.
    pub fn layout(&self) -> Layout {
        self.sizes.layout
    }

    /// Whether the lookups are a fused operation of the backend.
    pub fn is_fused(&self) -> bool {
        !matches!(self.store, Store::BuiltIn(_))
    }

    pub(crate) fn sizes(&self) -> &Sizes {
        &self.sizes
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// The fingerprint of the vocabulary.
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// The device that holds the table.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Uploads states, shape `[batch]`.
    ///
    /// # Errors
    /// [`Error::is_input`] for an empty batch or a state that the table does not have.
    pub fn states(&self, states: &[StateId]) -> Result<Tensor<1, Int>> {
        if states.is_empty() {
            return Err(Error::input("a batch needs at least one row"));
        }
        if let Some(row) = states.iter().position(|s| s.index() >= self.sizes.states) {
            return Err(Error::input(format!(
                "row {row}: state {} of a table of {} states",
                states[row], self.sizes.states
            )));
        }
        Ok(ints(states.iter().map(|s| s.0 as i32).collect(), &self.device))
    }
}

/// Checks that `tables` can share a batch of rows of `width` logits; gives their vocabulary.
fn check(tables: &[&TokenTable], width: usize) -> Result<Fingerprint> {
    let Some(first) = tables.first() else {
        return Err(Error::input("a tensor table needs at least one token table"));
    };
    for table in tables {
        table.validate()?;
        if table.fingerprint() != first.fingerprint() {
            return Err(Error::incompatible_vocabulary(format!(
                "tables of vocabularies {} and {} cannot share a batch",
                first.fingerprint(),
                table.fingerprint()
            )));
        }
    }
    if width < first.vocabulary_len() {
        return Err(Error::incompatible_vocabulary(format!(
            "a row of {width} logits is narrower than the vocabulary of {} tokens",
            first.vocabulary_len()
        )));
    }
    Ok(first.fingerprint())
}

/// An `i32` tensor from the host, `[values]`.
pub(crate) fn ints(values: Vec<i32>, device: &Device) -> Tensor<1, Int> {
    let shape = [values.len()];
    Tensor::from_data(TensorData::new(values, shape), (device, DType::I32))
}
