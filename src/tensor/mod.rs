//! Token tables on a device.
//!
//! A [`TensorTable`] holds one or more [`TokenTable`]s of the same vocabulary as tensors and answers, for a
//! batch of states and without reading anything back, which tokens are illegal and which state follows.
//! The reserved states are shared; the states of table `i` follow those of table `i − 1`.
//!
//! Two layouts give the same results, see [`Layout`].
//!
//! # Invariants
//! - tables are validated before anything is uploaded; no index that leaves the host is out of bounds;
//! - token ids from outside are brought into range on the device: an id that is none leads to
//!   [`StateId::DEAD`], and the id `width` ([`TensorTable::no_token`]) leaves the state as it is; states that
//!   were made elsewhere are clamped into range;
//! - states are `i32` tensors, whatever the integer type of the device.

mod layout;

use burn::tensor::{Bool, DType, Device, Int, Tensor, TensorData};

pub use layout::Layout;

use crate::automaton::StateId;
use crate::error::{Error, Result};
use crate::table::TokenTable;
use crate::vocabulary::Fingerprint;
use layout::Transitions;

/// How a [`TensorTable`] is laid out and how large it may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorOptions {
    /// The layout. Default: [`Layout::Classes`].
    pub layout: Layout,
    /// Most bytes on the device, below 2³¹ whatever this says. Default: 512 MiB, as much as on the host.
    pub max_bytes: usize,
}

impl Default for TensorOptions {
    fn default() -> Self {
        Self { layout: Layout::Classes, max_bytes: 512 << 20 }
    }
}

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
    transitions: Transitions,
    /// `[states]`, `i32::MAX` for `DEAD`.
    tokens_to_end: Tensor<1, Int>,
    starts: Vec<StateId>,
    start_tokens: Vec<usize>,
    states: usize,
    width: usize,
    bytes: usize,
    layout: Layout,
    fingerprint: Fingerprint,
    device: Device,
}

impl TensorTable {
    /// Uploads `tables` for rows of `width` logits.
    ///
    /// # Errors
    /// - [`Error::is_input`]: no table;
    /// - [`Error::is_incompatible_vocabulary`]: tables of different vocabularies, or `width` below the size of
    ///   the vocabulary;
    /// - [`Error::is_table`]: a table breaks an invariant;
    /// - [`Error::is_limit`]: more than `max_bytes`, or more entries than an `i32` can index.
    pub fn new(
        tables: &[&TokenTable],
        width: usize,
        options: &TensorOptions,
        device: &Device,
    ) -> Result<Self> {
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
        let joined = Joined::new(tables);
        let bytes = options.layout.bytes(tables, joined.states, width);
        layout::check_size(options.layout, tables, joined.states, width, options.max_bytes)?;
        let transitions = Transitions::upload(options.layout, tables, &joined, width, device);
        let mut tokens_to_end = vec![i32::MAX, 0, 0];
        for table in tables {
            let own = StateId::RESERVED..table.state_count() as u32;
            tokens_to_end.extend(own.map(|s| clamp(table.tokens_to_end(StateId(s)))));
        }
        Ok(Self {
            transitions,
            tokens_to_end: ints(tokens_to_end, device),
            starts: (0..tables.len()).map(|i| joined.state(i, tables[i].start())).collect(),
            start_tokens: tables.iter().map(|t| t.tokens_to_end(t.start()) as usize).collect(),
            states: joined.states,
            width,
            bytes,
            layout: options.layout,
            fingerprint: first.fingerprint(),
            device: device.clone(),
        })
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

    /// Number of states of all tables together.
    pub fn state_count(&self) -> usize {
        self.states
    }

    /// Width of a row of logits.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The id that stands for "no token yet": it leaves every state as it is.
    pub fn no_token(&self) -> usize {
        self.width
    }

    /// Bytes on the device.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The layout in use.
    pub fn layout(&self) -> Layout {
        self.layout
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
        if let Some(row) = states.iter().position(|s| s.index() >= self.states) {
            return Err(Error::input(format!(
                "row {row}: state {} of a table of {} states",
                states[row], self.states
            )));
        }
        Ok(ints(states.iter().map(|s| s.0 as i32).collect(), &self.device))
    }

    /// Which tokens may not follow: true where illegal.
    ///
    /// With `spare`, the tokens that a row may still emit after this one, a token is illegal as well where
    /// the shortest way from its next state to the end is longer than that.
    ///
    /// # Shapes
    /// - `states`: `[batch]`, made by [`states`](Self::states) or [`next`](Self::next)
    /// - `spare`: `[batch]`, `i32`, not negative
    /// - returns `[batch, width]`
    pub fn illegal(&self, states: Tensor<1, Int>, spare: Option<Tensor<1, Int>>) -> Tensor<2, Bool> {
        let spare = spare.map(|spare| (self.tokens_to_end.clone(), spare));
        self.transitions.next_of_all(self.in_range(states), spare).equal_elem(StateId::DEAD.0 as i32)
    }

    /// The states after `tokens`: `DEAD` where a token is illegal or no token at all, the same state where
    /// it is [`no_token`](Self::no_token).
    ///
    /// # Shapes
    /// - `states`, `tokens`: `[batch]`
    /// - returns `[batch]`, `i32`
    pub fn next(&self, states: Tensor<1, Int>, tokens: Tensor<1, Int>) -> Tensor<1, Int> {
        let tokens = tokens.cast(DType::I32);
        let last = self.width as i32 - 1;
        let outside = tokens.clone().lower_elem(0).bool_or(tokens.clone().greater_elem(last));
        let none = tokens.clone().equal_elem(self.no_token() as i32);
        let states = self.in_range(states);
        let next = self.transitions.next(states.clone(), tokens.clamp(0, last));
        next.mask_fill(outside, StateId::DEAD.0 as i32).mask_where(none, states)
    }

    /// Keeps states that were not made here from being looked up out of bounds.
    fn in_range(&self, states: Tensor<1, Int>) -> Tensor<1, Int> {
        states.clamp(0, self.states as i32 - 1)
    }
}

/// How the states of several tables become the states of one.
struct Joined {
    /// What is added to a state of table `i` that is not reserved.
    offsets: Vec<u32>,
    states: usize,
}

impl Joined {
    fn new(tables: &[&TokenTable]) -> Self {
        let mut states = StateId::RESERVED as usize;
        let mut offsets = Vec::with_capacity(tables.len());
        for table in tables {
            offsets.push((states - StateId::RESERVED as usize) as u32);
            states += table.state_count() - StateId::RESERVED as usize;
        }
        Self { offsets, states }
    }

    fn state(&self, table: usize, state: StateId) -> StateId {
        if state.0 < StateId::RESERVED { state } else { StateId(state.0 + self.offsets[table]) }
    }
}

fn clamp(value: u32) -> i32 {
    i32::try_from(value).unwrap_or(i32::MAX)
}

/// An `i32` tensor from the host, `[values]`.
pub(crate) fn ints(values: Vec<i32>, device: &Device) -> Tensor<1, Int> {
    let shape = [values.len()];
    Tensor::from_data(TensorData::new(values, shape), (device, DType::I32))
}
