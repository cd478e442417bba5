//! How a table is laid out on a device, and how large it may be.

/// How transitions lie in memory. The results are the same.
///
/// ```
/// use burn::tensor::Device;
/// use burn_dfa::{Constraint, Layout, Limits, TensorOptions, TensorTable, TokenId, TokenTable, Vocabulary};
///
/// let vocabulary = Vocabulary::from_bytes([Some("a"), None])?.with_eos([TokenId(1)])?;
/// let table = TokenTable::compile(&Constraint::regex("a+")?, &vocabulary, &Limits::default())?;
/// for layout in [Layout::Dense, Layout::Classes, Layout::Walk] {
///     let options = TensorOptions::new().with_layout(layout);
///     assert_eq!(TensorTable::new(&[&table], 2, &options, &Device::flex())?.layout(), layout);
/// }
/// # Ok::<(), burn_dfa::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Layout {
    /// The next state of every state and token, `[states, width]`: the fewest lookups, for small
    /// vocabularies. It is the tensor of Bumblebee's DFA processor.
    Dense,
    /// The next state of every state and token class, `[states, classes]`, and the class of every token,
    /// `[tables, width]`. Of tables with calls: the state that the last byte of every token class leads to, where they
    /// [have classes](crate::TokenTable::with_token_classes), and what [`Walk`](Self::Walk) has for the tokens that change
    /// the stack before.
    Classes,
    /// The next state of every state and byte class, `[states, byte classes]`, and the bytes of every token, which
    /// are followed one by one: for tables that are too large to tabulate, and for a first mask at once.
    Walk,
}

/// Least sizes of the arrays of a table, so that other tables can take their place, or the room of an
/// [`Arena`](super::Arena).
///
/// ```
/// use burn_dfa::Capacity;
///
/// let capacity = Capacity::new().with_tables(4).with_states(10_000).with_classes(300);
/// assert_eq!((capacity.states, capacity.classes, capacity.tables), (10_000, 300, 4));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capacity {
    /// States of all tables together, the reserved ones included.
    pub states: usize,
    /// Columns of a table, as counted by [`TokenTable::class_count`](crate::TokenTable::class_count).
    pub classes: usize,
    /// Tables.
    pub tables: usize,
    /// Outcomes of a piece, for tables with calls, as [`TokenTable::outcomes`](crate::TokenTable::outcomes) counts them; 0
    /// where there are to be none.
    pub outcomes: usize,
    /// Frames of a stack, where `outcomes` is not 0: [`Limits::frames`](crate::Limits::frames) of all tables with calls.
    pub frames: usize,
}

impl Capacity {
    /// Just as much as is needed.
    pub const fn new() -> Self {
        Self { states: 0, classes: 0, tables: 0, outcomes: 0, frames: 0 }
    }

    /// Sets [`states`](Self::states).
    pub fn with_states(self, states: usize) -> Self {
        Self { states, ..self }
    }

    /// Sets [`classes`](Self::classes).
    pub fn with_classes(self, classes: usize) -> Self {
        Self { classes, ..self }
    }

    /// Sets [`outcomes`](Self::outcomes) and [`frames`](Self::frames).
    pub fn with_stack(self, outcomes: usize, frames: usize) -> Self {
        Self { outcomes, frames, ..self }
    }

    /// Sets [`tables`](Self::tables).
    pub fn with_tables(self, tables: usize) -> Self {
        Self { tables, ..self }
    }
}

/// How a [`TensorTable`](super::TensorTable) is laid out and how large it may be.
///
/// ```
/// use burn_dfa::{Layout, TensorOptions};
///
/// let options = TensorOptions::new().with_layout(Layout::Walk).with_max_bytes(64 << 20);
/// assert_eq!(options.layout, Some(Layout::Walk));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorOptions {
    /// The layout. Default: `None`, which takes [`Layout::Walk`] where a table is walked and has no classes of tokens, else the
    /// smaller of [`Layout::Dense`] and [`Layout::Classes`].
    pub layout: Option<Layout>,
    /// Which operations look up. Default: [`Kernels::Fused`].
    pub kernels: Kernels,
    /// Least sizes, for tables that are to be [replaced](super::TensorTable::replace), and the room of an
    /// [`Arena`](super::Arena). Default: just as needed.
    pub capacity: Capacity,
    /// Most bytes on the device, below 2³¹ whatever this says. Default: 256 MiB.
    pub max_bytes: usize,
    /// Most bytes of memory for what is kept of each table, where the fused operations are those of Flex: the tokens that may
    /// follow at places where finding them took long. Default: 4 MiB; with 0 nothing is kept. A server of remote devices takes
    /// the default.
    pub max_kept_bytes: usize,
}

impl Default for TensorOptions {
    fn default() -> Self {
        Self {
            layout: None,
            kernels: Kernels::Fused,
            capacity: Capacity::new(),
            max_bytes: 256 << 20,
            max_kept_bytes: 4 << 20,
        }
    }
}

impl TensorOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets [`layout`](Self::layout).
    pub fn with_layout(self, layout: Layout) -> Self {
        Self { layout: Some(layout), ..self }
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

    /// Sets [`max_kept_bytes`](Self::max_kept_bytes).
    pub fn with_max_kept_bytes(self, max_kept_bytes: usize) -> Self {
        Self { max_kept_bytes, ..self }
    }
}

/// Which operations look up the table.
///
/// ```
/// use burn::tensor::Device;
/// use burn_dfa::{Kernels, TensorOptions, TensorTable, TokenId, TokenTable, Vocabulary};
///
/// let vocabulary = Vocabulary::from_bytes([Some("a"), None])?.with_eos([TokenId(1)])?;
/// let table = TokenTable::unconstrained(&vocabulary);
/// let options = TensorOptions::new().with_kernels(Kernels::BuiltIn);
/// assert!(!TensorTable::new(&[&table], 2, &options, &Device::flex())?.is_fused());
/// # Ok::<(), burn_dfa::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kernels {
    /// One fused operation a step where the backend has one (Flex, WGPU, Vulkan, CUDA), else as `BuiltIn`.
    /// On Flex it reads the tables of the host; there the layout [`Layout::Dense`] is built in.
    Fused,
    /// Burn's built-in operations, which run wherever Burn does.
    BuiltIn,
}
