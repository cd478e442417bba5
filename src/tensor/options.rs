//! The operations and size limits of constraints on a device.

/// Minimum sizes of the arrays of a device constraint, so other constraints can replace its
/// constraints, or the space of an [`Arena`](super::Arena).
///
/// ```
/// use burn_dfa::Capacity;
///
/// let capacity = Capacity::new().with_constraints(4).with_states(10_000).with_classes(300);
/// assert_eq!((capacity.states, capacity.classes, capacity.constraints), (10_000, 300, 4));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capacity {
    /// Total states of all constraints, reserved states included.
    pub states: usize,
    /// Columns of a constraint, as counted by
    /// [`CompiledConstraint::class_count`](crate::CompiledConstraint::class_count).
    pub classes: usize,
    /// Number of constraints.
    pub constraints: usize,
    /// Exits per procedure of constraints with calls, as counted by
    /// [`CompiledConstraint::exits`](crate::CompiledConstraint::exits); 0 if no constraint
    /// has calls.
    pub exits: usize,
    /// Frames of a stack, if `exits` is not 0: [`Limits::frames`](crate::Limits::frames) of all
    /// constraints with calls.
    pub frames: usize,
    /// Frames that one token pushes on a stack, as counted by
    /// [`CompiledConstraint::pushes`](crate::CompiledConstraint::pushes). With the default, 0, they
    /// suffice for every constraint: as many as the longest token has bytes, and at most `frames`.
    ///
    /// On a GPU, each thread that follows a token holds these frames in an array, so fewer frames
    /// make the advance of a row and the first mask of a state faster. Other devices ignore this
    /// number.
    pub pushes: usize,
}

impl Capacity {
    /// No reserve: only the needed sizes.
    pub const fn new() -> Self {
        Self { states: 0, classes: 0, constraints: 0, exits: 0, frames: 0, pushes: 0 }
    }

    /// Sets [`states`](Self::states).
    pub fn with_states(self, states: usize) -> Self {
        Self { states, ..self }
    }

    /// Sets [`classes`](Self::classes).
    pub fn with_classes(self, classes: usize) -> Self {
        Self { classes, ..self }
    }

    /// Sets [`exits`](Self::exits) and [`frames`](Self::frames).
    pub fn with_stack(self, exits: usize, frames: usize) -> Self {
        Self { exits, frames, ..self }
    }

    /// Sets [`pushes`](Self::pushes).
    pub fn with_pushes(self, pushes: usize) -> Self {
        Self { pushes, ..self }
    }

    /// Sets [`constraints`](Self::constraints).
    pub fn with_constraints(self, constraints: usize) -> Self {
        Self { constraints, ..self }
    }
}

/// The operations and size limits of a [`DeviceConstraint`](super::DeviceConstraint).
///
/// ```
/// use burn_dfa::{Kernels, TensorOptions};
///
/// let options = TensorOptions::new().with_max_bytes(64 << 20);
/// assert_eq!((options.max_bytes, options.kernels), (64 << 20, Kernels::Fused));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorOptions {
    /// The operations of the lookups. Default: [`Kernels::Fused`].
    pub kernels: Kernels,
    /// Minimum sizes, for constraints that will be [replaced](super::DeviceConstraint::replace), or
    /// the space of an [`Arena`](super::Arena). Default: no reserve.
    pub capacity: Capacity,
    /// Maximum number of bytes of the [image](super::DeviceConstraint::bytes), and of the position
    /// of a row, always below 2³¹. It applies to Flex too, which uploads no image. Default: 256
    /// MiB.
    pub max_bytes: usize,
    /// Maximum size in bytes of the mask cache of each constraint on Flex. It stores the legal
    /// tokens of the latest new positions. Default: 4 MiB; 0 disables the cache. A server of remote
    /// devices uses the default.
    pub mask_cache_bytes: usize,
    /// Maximum size in bytes of the mask rows that a batch keeps on a GPU: one bit per token, or
    /// two with a stack, for every state that its rows visit. Default: 64 MiB; 0 keeps none, so
    /// every step computes its masks. The mask rows of a draft model with another vocabulary may
    /// take as much again, and so may each other thread that steps the batch. The limit is four
    /// times as much: the steps of further threads compute their masks.
    pub mask_rows_bytes: usize,
}

impl Default for TensorOptions {
    fn default() -> Self {
        Self {
            kernels: Kernels::Fused,
            capacity: Capacity::new(),
            max_bytes: 256 << 20,
            mask_cache_bytes: 4 << 20,
            mask_rows_bytes: 64 << 20,
        }
    }
}

impl TensorOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets [`kernels`](Self::kernels).
    pub fn with_kernels(self, kernels: Kernels) -> Self {
        Self { kernels, ..self }
    }

    /// Sets [`capacity`](Self::capacity).
    pub fn with_capacity(self, capacity: Capacity) -> Self {
        Self { capacity, ..self }
    }

    /// Sets [`max_bytes`](Self::max_bytes).
    pub fn with_max_bytes(self, max_bytes: usize) -> Self {
        Self { max_bytes, ..self }
    }

    /// Sets [`mask_cache_bytes`](Self::mask_cache_bytes).
    pub fn with_mask_cache_bytes(self, mask_cache_bytes: usize) -> Self {
        Self { mask_cache_bytes, ..self }
    }

    /// Sets [`mask_rows_bytes`](Self::mask_rows_bytes).
    pub fn with_mask_rows_bytes(self, mask_rows_bytes: usize) -> Self {
        Self { mask_rows_bytes, ..self }
    }
}

/// The operations of the lookups.
///
/// ```
/// use burn::tensor::Device;
/// use burn_dfa::{
///     CompiledConstraint, DeviceConstraint, Kernels, TensorOptions, TokenId, Vocabulary,
/// };
///
/// let vocabulary = Vocabulary::from_bytes([Some("a"), None])?.with_eos([TokenId(1)])?;
/// let compiled = CompiledConstraint::unconstrained(&vocabulary);
/// let options = TensorOptions::new().with_kernels(Kernels::BuiltIn);
/// assert!(!DeviceConstraint::new(&[&compiled], 2, &options, &Device::flex())?.is_fused());
/// # Ok::<(), burn_dfa::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kernels {
    /// One fused operation per step if the backend has one (Flex, WGPU, Vulkan, CUDA), else as
    /// `BuiltIn`. On Flex it reads the constraints on the host.
    Fused,
    /// Burn's built-in operations, which run on all backends. A recorded step has a fixed number of
    /// operations. So device constraints with a reserved stack in [`Capacity`] always run the steps
    /// of the deepest stack, and without a reserve, constraints can be
    /// [replaced](super::DeviceConstraint::replace) only by constraints that need no more steps.
    BuiltIn,
}
