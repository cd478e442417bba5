//! The positions of the rows of a batch, on the device.

use burn::tensor::{Bool, DType, Device, Int, Tensor, TensorData};

use super::mask_rows::MaskRows;
use crate::in_place::{InPlaceState, RowState};
use burn_dfa_tokens::{RowPosition, StateId};

/// The position of every row of a batch in its constraint, or of every node of a tree of draft
/// tokens: the state, the remaining budget, and the stack of constraints with calls. One `i32`
/// tensor holds all numbers: the state, the remaining tokens, the number of frames, and the frames
/// from the bottom, each a call state and its costs. Numbers after the frames in use are arbitrary.
///
/// # Shapes
/// - `Position<2>`, of rows: `[batch, numbers]`
/// - `Position<3>`, of trees: `[batch, nodes, numbers]`
///
/// ```
/// use burn::tensor::Device;
/// use burn_dfa::processor::ConstraintProcessor;
/// use burn_dfa::{
///     CompiledConstraint, Constraint, DeviceConstraint, Limits, Position, TensorOptions, TokenId,
///     Vocabulary,
/// };
///
/// let vocabulary = Vocabulary::from_chars("ab.".chars())?.with_eos([TokenId(2)])?;
/// let compiled =
///     CompiledConstraint::compile(&Constraint::regex("ab*")?, &vocabulary, &Limits::default())?;
/// let constraint =
///     DeviceConstraint::new(&[&compiled], 3, &TensorOptions::default(), &Device::flex())?;
/// let processor = ConstraintProcessor::new(constraint, &[0, 0])?.with_budgets(&[7, 9])?;
/// let position: Position = processor.start();
/// assert_eq!(position.remaining().into_data().try_to_vec::<i32>().unwrap(), [7, 9]);
/// # Ok::<(), burn_dfa::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Position<const D: usize = 2> {
    /// The last dimension holds the numbers of a position.
    pub(crate) values: Tensor<D, Int>,
    /// The mask rows of the batch.
    pub(crate) rows: MaskRows,
}

/// [`RowPosition::UNLIMITED`], on a device.
pub(crate) const UNLIMITED: i32 = RowPosition::UNLIMITED as i32;

impl<const D: usize> Position<D> {
    /// Positions without mask rows yet.
    pub(crate) fn new(values: Tensor<D, Int>) -> Self {
        Self { values, rows: MaskRows::default() }
    }

    /// The same positions in a batch with mask rows.
    pub(crate) fn with_rows(self, rows: MaskRows) -> Self {
        Self { rows, ..self }
    }
}

impl Position {
    /// Uploads positions of `numbers` numbers with empty stacks.
    pub(crate) fn upload(rows: impl Iterator<Item = RowPosition>, numbers: usize, device: &Device) -> Self {
        let mut values = Vec::new();
        for (row, position) in rows.enumerate() {
            values.extend([position.state.0 as i32, position.remaining as i32]);
            values.resize((row + 1) * numbers, 0);
        }
        let shape = [values.len() / numbers, numbers];
        Self::new(Tensor::from_data(TensorData::new(values, shape), (device, DType::I32)))
    }

    /// Combines states and remaining tokens, `[batch]` each, with empty stacks.
    pub(crate) fn of(states: Tensor<1, Int>, remaining: Tensor<1, Int>, numbers: usize) -> Self {
        let ([batch], dtype, device) = (states.dims(), states.dtype(), states.device());
        let values = Tensor::stack(vec![states, remaining], 1);
        if numbers == 2 {
            return Self::new(values);
        }
        let stack = Tensor::zeros([batch, numbers - 2], (&device, dtype));
        Self::new(Tensor::cat(vec![values, stack], 1))
    }

    /// The number of rows.
    pub(crate) fn batch(&self) -> usize {
        self.values.dims()[0]
    }

    /// One of the numbers of each row, `[batch]`.
    pub(crate) fn column(&self, column: usize) -> Tensor<1, Int> {
        let [batch, _] = self.values.dims();
        self.values.clone().slice([0..batch, column..column + 1]).reshape([batch])
    }

    /// The state of each row, `[batch]`, as numbered by the
    /// [`DeviceConstraint`](super::DeviceConstraint).
    pub fn states(&self) -> Tensor<1, Int> {
        self.column(0)
    }

    /// The number of tokens that each row may still emit, `[batch]`.
    pub fn remaining(&self) -> Tensor<1, Int> {
        self.column(1)
    }

    /// Whether each row has ended, `[batch]`.
    pub fn is_done(&self) -> Tensor<1, Bool> {
        self.states().equal_elem(StateId::DONE.0 as i32)
    }
}

impl Position<3> {
    /// The state after each node, `[batch, nodes]`, as numbered by the
    /// [`DeviceConstraint`](super::DeviceConstraint).
    pub fn states(&self) -> Tensor<2, Int> {
        let [batch, nodes, _] = self.values.dims();
        self.values.clone().slice([0..batch, 0..nodes, 0..1]).reshape([batch, nodes])
    }

    /// The position of each row after one of its nodes, the result of accepting draft tokens.
    ///
    /// # Shapes
    /// - `nodes`: `[batch]`, indices of nodes
    pub fn at(&self, nodes: Tensor<1, Int>) -> Position {
        let [batch, _, numbers] = self.values.dims();
        let nodes = nodes.reshape([batch, 1, 1]).expand([batch, 1, numbers]);
        Position::new(self.values.clone().gather(1, nodes).reshape([batch, numbers]))
            .with_rows(self.rows.clone())
    }

    /// The positions of all rows after each node.
    pub(crate) fn stack(nodes: Vec<Position>) -> Self {
        Self::new(Tensor::stack(nodes.into_iter().map(|node| node.values).collect(), 1))
    }

    /// The nodes of all rows as rows, `[batch · nodes]`.
    pub(crate) fn flatten(&self) -> Position {
        let [batch, nodes, numbers] = self.values.dims();
        Position::new(self.values.clone().reshape([batch * nodes, numbers])).with_rows(self.rows.clone())
    }
}

/// The mask rows stay: they are exact for any positions.
impl<const D: usize> InPlaceState for Position<D> {
    fn assign(&mut self, new: Self) {
        self.values.assign(new.values);
    }
}

impl<const D: usize> RowState for Position<D> {
    fn assign_row(&mut self, row: usize, new: Self) {
        self.values.assign_row(row, new.values);
    }

    fn mask_rows(self, mask: &Tensor<1, Bool>, other: Self) -> Self {
        Self { values: self.values.mask_rows(mask, other.values), ..self }
    }
}
