//! Compiled constraints on a device.
//!
//! A [`DeviceConstraint`] holds one or more [`CompiledConstraint`]s of the same vocabulary as
//! tensors. For a batch of states it computes the illegal tokens and the next states, without
//! reading anything back. The constraints share the reserved states; the states of constraint `i`
//! follow the states of constraint `i − 1`.
//!
//! An [`Arena`] admits and releases constraints one by one, while rows continue with the others.
//!
//! On Flex, WGPU, Vulkan and CUDA the steps are fused operations ([`Kernels::Fused`]), on other
//! backends Burn's built-in operations, with the same results. [`DeviceConstraint::illegal`] always
//! takes built-in operations on a GPU.
//!
//! # Invariants
//! - constraints are validated before an upload; no uploaded index is out of bounds;
//! - token ids are checked on the device: an invalid id leads to [`StateId::DEAD`], and the id
//!   `vocab_size` ([`DeviceConstraint::no_token`]) does not change the state; states from outside
//!   are clamped into range;
//! - states are `i32` tensors for every integer type of the device.

mod arena;
#[cfg_attr(not(feature = "cube"), allow(dead_code, reason = "only kernels keep mask rows"))]
pub(crate) mod arrays;
#[cfg(feature = "flex")]
mod cpu;
mod device;
mod image;
pub(crate) mod mask_rows;
mod options;
pub(crate) mod placement;
mod position;
mod sizes;
mod text;

#[cfg(feature = "flex")]
use std::sync::Arc;

use burn::tensor::{DType, Device, Int, Tensor, TensorData};

pub use arena::Arena;
pub use options::{Capacity, Kernels, TensorOptions};
pub use position::Position;

#[cfg(feature = "remote")]
use crate::remote::RemoteConstraints;
use crate::vocabulary::Fingerprint;
pub(crate) use arrays::Array;
use burn_dfa_tokens::{CompiledConstraint, Error, Result, StateId};
#[cfg(feature = "flex")]
pub(crate) use cpu::{CpuConstraints, CpuRow};
pub(crate) use device::{is_fused, reads, records};
use device::{keeps_steps, largest_binding, runs_kernels};
pub(crate) use image::Image;
use mask_rows::MaskRows;
use placement::Joined;
pub(crate) use position::UNLIMITED;
#[cfg(feature = "cube")]
pub(crate) use sizes::MAX_PUSHED;
use sizes::Sizes;
pub(crate) use text::BY_CLASS;

/// Compiled constraints on a device; see the [module](self).
///
/// ```
/// use burn::tensor::Device;
/// use burn_dfa::{
///     CompiledConstraint, Constraint, DeviceConstraint, Limits, TensorOptions, TokenId,
///     Vocabulary,
/// };
///
/// let vocabulary = Vocabulary::from_bytes([Some(b"a".to_vec()), Some(b"b".to_vec()), None])?
///     .with_eos([TokenId(2)])?;
/// let compiled =
///     CompiledConstraint::compile(&Constraint::regex("ab*")?, &vocabulary, &Limits::default())?;
/// let constraint =
///     DeviceConstraint::new(&[&compiled], 3, &TensorOptions::default(), &Device::flex())?;
///
/// let states = constraint.states(&[constraint.start(0)])?;
/// let illegal = constraint.illegal(states, None);
/// assert_eq!(illegal.into_data().try_to_vec::<bool>().unwrap(), [false, true, true]);
/// # Ok::<(), burn_dfa::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct DeviceConstraint {
    store: Store,
    starts: Vec<StateId>,
    /// The constraints on the host, which know their least budgets; `None`: an index without one.
    on_host: Vec<Option<CompiledConstraint>>,
    sizes: Sizes,
    bytes: usize,
    fingerprint: Fingerprint,
    device: Device,
}

/// The storage of the constraints, which determines the operations.
#[derive(Clone, Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "there is one of them per device constraint, and not all variants in every build"
)]
pub(crate) enum Store {
    /// In memory, for the fused operations of Flex.
    #[cfg(feature = "flex")]
    Cpu(Arc<CpuConstraints>),
    /// On the device, for CubeCL kernels.
    #[cfg(feature = "cube")]
    Cube(Image),
    /// On a server, for its fused operations.
    #[cfg(feature = "remote")]
    Remote(RemoteConstraints),
    /// On the device, for the built-in operations.
    BuiltIn(Image),
}

impl Store {
    fn new(
        sizes: &Sizes,
        options: &TensorOptions,
        device: &Device,
        #[cfg(feature = "flex")] cpu: impl FnOnce() -> CpuConstraints,
        #[cfg(feature = "remote")] remote: impl FnOnce() -> Result<RemoteConstraints>,
        image: impl FnOnce() -> Image,
    ) -> Result<Self> {
        let fused = options.kernels == Kernels::Fused && is_fused(device);
        if fused && runs_kernels(device) {
            sizes.check_stack()?;
        }
        Ok(match device.as_dispatch() {
            #[cfg(feature = "flex")]
            burn::backend::DispatchDevice::Flex(_) if fused => Self::Cpu(Arc::new(cpu())),
            #[cfg(feature = "cube")]
            burn::backend::DispatchDevice::Cube(_) if fused => {
                Self::Cube(image().with_pool(options.mask_rows_bytes))
            }
            // A pruned constraint cannot be sent.
            #[cfg(feature = "remote")]
            burn::backend::DispatchDevice::Remote(_) if fused => {
                remote().map_or_else(|_| Self::BuiltIn(image()), Self::Remote)
            }
            _ => Self::BuiltIn(image()),
        })
    }

    /// The image on the device, if any.
    pub(crate) fn image(&self) -> Option<&Image> {
        match self {
            #[cfg(feature = "flex")]
            Self::Cpu(_) => None,
            #[cfg(feature = "remote")]
            Self::Remote(_) => None,
            #[cfg(feature = "cube")]
            Self::Cube(image) => Some(image),
            Self::BuiltIn(image) => Some(image),
        }
    }

    /// Replaces all constraints.
    fn replace(&mut self, constraints: &[&CompiledConstraint], joined: &Joined) -> Result<()> {
        match self {
            #[cfg(feature = "remote")]
            Self::Remote(remote) => remote.replace(constraints)?,
            #[cfg(feature = "flex")]
            Self::Cpu(cpu) => {
                *cpu = Arc::new(CpuConstraints::joined(constraints, cpu.frame(), cpu.mask_cache_bytes()))
            }
            #[cfg(feature = "cube")]
            Self::Cube(image) => image.replace(constraints, joined),
            Self::BuiltIn(image) => image.replace(constraints, joined),
        }
        Ok(())
    }

    /// Loads one constraint of an arena, without changing the others.
    fn put(&mut self, index: usize, constraint: &CompiledConstraint, pages: &[u32]) -> Result<()> {
        match self {
            #[cfg(feature = "remote")]
            Self::Remote(remote) => remote.put(index, constraint, pages)?,
            #[cfg(feature = "flex")]
            Self::Cpu(cpu) => Arc::make_mut(cpu).put(index, constraint, pages),
            #[cfg(feature = "cube")]
            Self::Cube(image) => image.put(index, constraint, pages),
            Self::BuiltIn(image) => image.put(index, constraint, pages),
        }
        Ok(())
    }

    /// Unloads one constraint of an arena. On a device this is a no-op, because no state leads to
    /// its rows.
    fn take_out(&mut self, index: usize) {
        #[cfg(feature = "flex")]
        if let Self::Cpu(cpu) = self {
            Arc::make_mut(cpu).take_out(index);
        }
        #[cfg(feature = "remote")]
        if let Self::Remote(remote) = self {
            remote.take_out(index);
        }
    }
}

impl DeviceConstraint {
    /// Uploads `constraints` for rows of `vocab_size` logits.
    ///
    /// # Errors
    /// - [`ErrorKind::Input`](crate::ErrorKind::Input): no constraint, stacks of different depths,
    ///   or stacks too deep for the kernels of a GPU;
    /// - [`ErrorKind::IncompatibleVocabulary`](crate::ErrorKind::IncompatibleVocabulary):
    ///   constraints of different vocabularies, or `vocab_size` below the size of the vocabulary;
    /// - [`ErrorKind::Artifact`](crate::ErrorKind::Artifact): a constraint violates an invariant;
    /// - [`ErrorKind::Limit`](crate::ErrorKind::Limit): more than `max_bytes`, more than the device
    ///   can bind in one tensor, or more entries than an `i32` can index.
    pub fn new(
        constraints: &[&CompiledConstraint],
        vocab_size: usize,
        options: &TensorOptions,
        device: &Device,
    ) -> Result<Self> {
        let fingerprint = check(constraints, vocab_size)?;
        let joined = Joined::new(constraints);
        let sizes =
            Sizes::new(constraints, joined.states, vocab_size, options.capacity, runs_kernels(device))?;
        sizes.check(options.max_bytes, largest_binding(device))?;
        let store = Store::new(
            &sizes,
            options,
            device,
            #[cfg(feature = "flex")]
            || CpuConstraints::joined(constraints, sizes.frame(), options.mask_cache_bytes),
            #[cfg(feature = "remote")]
            || RemoteConstraints::joined(constraints, sizes.frame(), device),
            || Image::upload(&sizes, constraints, &joined, device),
        )?;
        let mut device_constraint = Self::of(sizes, store, fingerprint, device);
        device_constraint.set_starts(constraints, &joined);
        Ok(device_constraint)
    }

    /// A device constraint without start states yet.
    fn of(sizes: Sizes, store: Store, fingerprint: Fingerprint, device: &Device) -> Self {
        Self {
            bytes: sizes.bytes(),
            store,
            starts: Vec::new(),
            on_host: Vec::new(),
            sizes,
            fingerprint,
            device: device.clone(),
        }
    }

    /// The bytes on a device that [`new`](Self::new) would take, without a device. The kernels of
    /// GPUs take four more for each state.
    ///
    /// # Errors
    /// As [`new`](Self::new), except for the limits of a device and its kernels.
    pub fn bytes_needed(
        constraints: &[&CompiledConstraint],
        vocab_size: usize,
        options: &TensorOptions,
    ) -> Result<usize> {
        check(constraints, vocab_size)?;
        let states = Joined::new(constraints).states;
        let sizes = Sizes::new(constraints, states, vocab_size, options.capacity, false)?;
        sizes.check(options.max_bytes, None)?;
        Ok(sizes.bytes())
    }

    /// Replaces all constraints by `constraints`, in the same buffers, so a recorded graph reads
    /// `constraints` from its next replay on. States of the old constraints become invalid, unless
    /// the new ones are the same: then nothing changes, and the mask rows of visited states stay. If
    /// the device constraint has a clone, the clone keeps the old buffers, and `constraints` are
    /// written to new buffers.
    ///
    /// Byte-level constraints need at least one byte-level constraint among the first ones, whose
    /// arrays hold the bytes of the tokens. An [`Arena`] takes constraints of both forms at any
    /// time.
    ///
    /// # Errors
    /// As [`new`](Self::new); [`ErrorKind::Input`](crate::ErrorKind::Input) if the new constraints
    /// do not fit the current sizes, see [`TensorOptions::capacity`]. An error changes nothing.
    pub fn replace(&mut self, constraints: &[&CompiledConstraint]) -> Result<()> {
        if self.holds(constraints) {
            return Ok(());
        }
        let fingerprint = check(constraints, self.sizes.vocab_size)?;
        if fingerprint != self.fingerprint {
            return Err(Error::incompatible_vocabulary(format!(
                "constraints of vocabulary {fingerprint} cannot replace those of {}",
                self.fingerprint
            )));
        }
        let joined = Joined::new(constraints);
        let runs_kernels = runs_kernels(&self.device);
        let needed =
            Sizes::new(constraints, joined.states, self.sizes.vocab_size, Capacity::default(), runs_kernels)?;
        if needed.is_byte_level() && !self.sizes.is_byte_level() {
            return Err(Error::input(
                "byte-level constraints cannot replace token-level ones: make a new device constraint, take an `Arena`, or compile them with `CompiledConstraint::compile_token_level`",
            ));
        }
        if !self.sizes.hold(&needed) {
            return Err(Error::input(format!(
                "{} constraints of {} states and up to {} columns, or their stacks and special tokens, do not fit a capacity of {}, {} and {}: reserve more in `TensorOptions::capacity`",
                constraints.len(),
                needed.states,
                needed.columns,
                self.sizes.constraints,
                self.sizes.states,
                self.sizes.columns
            )));
        }
        if runs_kernels && self.is_fused() {
            self.sizes.check_pushes(needed.pushes)?;
        }
        if let Store::BuiltIn(image) = &self.store
            && keeps_steps(&self.device)
            && needed.chain > image.chain
        {
            return Err(Error::input(format!(
                "constraints in which {} calls and returns may follow one another in place of constraints with {}, for which a step may be \
                 recorded: reserve a stack in `TensorOptions::capacity`, or take `Kernels::Fused`",
                needed.chain, image.chain
            )));
        }
        self.store.replace(constraints, &joined)?;
        self.set_starts(constraints, &joined);
        Ok(())
    }

    /// Whether the tensors were made of these constraints.
    fn holds(&self, constraints: &[&CompiledConstraint]) -> bool {
        let is_same = |(own, new): (&Option<CompiledConstraint>, &&CompiledConstraint)| {
            own.as_ref().is_some_and(|own| own.is(new))
        };
        self.on_host.len() == constraints.len() && self.on_host.iter().zip(constraints).all(is_same)
    }

    fn set_starts(&mut self, constraints: &[&CompiledConstraint], joined: &Joined) {
        self.starts = constraints
            .iter()
            .enumerate()
            .map(|(i, constraint)| joined.state(i, constraint.start()))
            .collect();
        self.on_host = constraints.iter().map(|&constraint| Some(constraint.clone())).collect();
    }

    /// The start state of constraint `index`.
    ///
    /// # Panics
    /// If `index` is out of range.
    pub fn start(&self, index: usize) -> StateId {
        self.starts[index]
    }

    /// The least number of tokens, end of sequence included, of an output under constraint `index`.
    ///
    /// # Panics
    /// If `index` is out of range.
    pub fn tokens_needed(&self, index: usize) -> usize {
        self.on_host[index]
            .as_ref()
            .map_or(usize::MAX, |constraint| constraint.tokens_to_end(constraint.start()) as usize)
    }

    /// As [`tokens_needed`](Self::tokens_needed), or 0 if the number is clearly within `budget`.
    pub(crate) fn needed_beyond(&self, index: usize, budget: usize) -> usize {
        self.on_host[index].as_ref().map_or(usize::MAX, |constraint| constraint.parts().needed_beyond(budget))
    }

    /// Number of constraints.
    pub fn constraint_count(&self) -> usize {
        self.starts.len()
    }

    /// Total number of states of all constraints, or the reserved capacity.
    pub fn state_count(&self) -> usize {
        self.sizes.states
    }

    /// Width of a row of logits.
    pub fn vocab_size(&self) -> usize {
        self.sizes.vocab_size
    }

    /// The id for "no token yet": it does not change any state.
    pub fn no_token(&self) -> usize {
        self.sizes.vocab_size
    }

    /// Bytes of the image: the arrays of the compiled constraints. Flex uploads none.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The number of mask rows that a batch keeps on a GPU, within
    /// [`TensorOptions::mask_rows_bytes`]; 0 on Flex, and for built-in operations.
    pub fn mask_row_count(&self) -> usize {
        #[cfg(feature = "cube")]
        if let Store::Cube(Image { pool: Some(pool), .. }) = &self.store {
            return pool.slots();
        }
        0
    }

    /// Makes the pool of mask rows for the steps on the current stream, if they keep mask rows.
    pub(crate) fn make_pool(&self, rows: &MaskRows) {
        #[cfg(feature = "cube")]
        if let Store::Cube(image) = &self.store {
            drop(rows.pool(image));
        }
        #[cfg(not(feature = "cube"))]
        let _ = rows;
    }

    /// Whether the lookups are fused operations of the backend.
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

    /// The device that holds the constraints.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Uploads states, shape `[batch]`.
    ///
    /// # Errors
    /// [`ErrorKind::Input`](crate::ErrorKind::Input) for an empty batch or a state out of range.
    pub fn states(&self, states: &[StateId]) -> Result<Tensor<1, Int>> {
        if states.is_empty() {
            return Err(Error::input("a batch needs at least one row"));
        }
        if let Some(row) = states.iter().position(|s| s.index() >= self.sizes.states) {
            return Err(Error::input(format!(
                "row {row}: state {} of a constraint of {} states",
                states[row], self.sizes.states
            )));
        }
        Ok(ints(states.iter().map(|s| s.0 as i32).collect(), &self.device))
    }
}

/// Checks whether `constraints` can share a batch of rows of `vocab_size` logits; returns the
/// fingerprint of their vocabulary.
fn check(constraints: &[&CompiledConstraint], vocab_size: usize) -> Result<Fingerprint> {
    let Some(first) = constraints.first() else {
        return Err(Error::input("a device constraint needs at least one compiled constraint"));
    };
    for constraint in constraints {
        constraint.validate()?;
        if constraint.fingerprint() != first.fingerprint() {
            return Err(Error::incompatible_vocabulary(format!(
                "constraints of vocabularies {} and {} cannot share a batch",
                first.fingerprint(),
                constraint.fingerprint()
            )));
        }
    }
    if vocab_size < first.vocabulary_len() {
        return Err(Error::incompatible_vocabulary(format!(
            "a row of {vocab_size} logits is narrower than the vocabulary of {} tokens: take the vocabulary of the model that has these logits",
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

/// `from[b]`, `from[b] + 1`, …, `[rows, count]`.
///
/// # Shapes
/// - `from`: `[rows]`
/// - `steps`: 0, 1, …, `[count]`
pub(crate) fn runs(from: Tensor<1, Int>, steps: Tensor<1, Int>) -> Tensor<2, Int> {
    let ([rows], [count]) = (from.dims(), steps.dims());
    from.reshape([rows, 1]).expand([rows, count]) + steps.reshape([1, count]).expand([rows, count])
}
