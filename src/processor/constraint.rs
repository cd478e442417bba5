//! [`ConstraintProcessor`]: the constraint as a processor, which advances the state by the last
//! token and masks the logits.

use burn::tensor::{DType, Device, Int, Tensor};

use super::{DraftTree, InitContext, LogitsProcessor, StepContext, process_and_sample};
use crate::in_place::in_place;
use crate::kernel::step;
use crate::sampling::{FusedSampler, Sampler};
use crate::tensor::{Arena, DeviceConstraint, Position, mask_rows::MaskRows, reads};
use burn_dfa_tokens::{CompiledConstraint, Error, Result, RowPosition, StateId};

/// Keeps the output of every row within its constraint and, optionally, within its token budget.
///
/// Each row follows one constraint of a [`DeviceConstraint`] and has its own [`Position`]. The
/// logit of an illegal token becomes −∞, the logit of a legal token keeps its bits. With
/// [budgets](Self::with_budgets), a token is legal only if the output can still be completed within
/// the budget, so every row ends in time.
///
/// Its two steps, [`advance`](Self::advance) and [`mask`](Self::mask), can be called separately.
/// With [`continuous`](Self::continuous), rows begin and end independently, each with its
/// constraint.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_dfa::processor::ConstraintProcessor;
/// use burn_dfa::{
///     CompiledConstraint, Constraint, DeviceConstraint, Limits, TensorOptions, TokenId,
///     Vocabulary,
/// };
///
/// let vocabulary = Vocabulary::from_bytes([Some(b"a".to_vec()), Some(b"b".to_vec()), None])?
///     .with_eos([TokenId(2)])?;
/// let compiled =
///     CompiledConstraint::compile(&Constraint::regex("ab*")?, &vocabulary, &Limits::default())?;
/// let device = Device::flex();
/// let constraint = DeviceConstraint::new(&[&compiled], 3, &TensorOptions::default(), &device)?;
/// let processor = ConstraintProcessor::new(constraint, &[0])?;
///
/// let position = processor.start();
/// let logits = Tensor::<2>::from_data([[0.5, 1.0, 2.0]], &device);
/// let masked = processor.mask(&position, logits).into_data().try_to_vec::<f32>().unwrap();
/// assert_eq!(masked, [0.5, f32::NEG_INFINITY, f32::NEG_INFINITY]);
/// # Ok::<(), burn_dfa::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ConstraintProcessor {
    pub(super) constraints: DeviceConstraints,
    /// The constraint of each row; `None`: idle.
    pub(super) rows: Vec<Option<usize>>,
    pub(super) budgets: Option<Vec<usize>>,
}

/// The constraints of the rows.
#[derive(Clone, Debug)]
pub(super) enum DeviceConstraints {
    /// Fixed constraints, which can only be replaced all at once.
    Fixed(DeviceConstraint),
    /// Constraints that are admitted and released.
    Arena(Arena),
}

impl ConstraintProcessor {
    /// Row `b` of the batch follows constraint `rows[b]`. An unconstrained row follows a
    /// [`CompiledConstraint::unconstrained`](crate::CompiledConstraint::unconstrained).
    ///
    /// # Errors
    /// [`ErrorKind::Input`](crate::ErrorKind::Input) for an empty batch or an index out of range.
    pub fn new(device_constraint: DeviceConstraint, rows: &[usize]) -> Result<Self> {
        check_rows(rows, device_constraint.constraint_count())?;
        let rows = rows.iter().copied().map(Some).collect();
        Ok(Self { constraints: DeviceConstraints::Fixed(device_constraint), rows, budgets: None })
    }

    /// Row `b` may emit `budgets[b]` tokens, end of sequence included, and is complete within this
    /// budget.
    ///
    /// # Errors
    /// - [`ErrorKind::Budget`](crate::ErrorKind::Budget): a budget is below the shortest output of
    ///   the row's constraint;
    /// - [`ErrorKind::Input`](crate::ErrorKind::Input): not one budget per row, or a budget of 2³¹
    ///   or more.
    pub fn with_budgets(mut self, budgets: &[usize]) -> Result<Self> {
        let device_constraint = self.device_constraint();
        check_budgets(budgets, &self.rows, |index, budget| device_constraint.needed_beyond(index, budget))?;
        self.budgets = Some(budgets.to_vec());
        Ok(self)
    }

    /// Replaces the constraints and budgets of the rows, in the same buffers: see
    /// [`DeviceConstraint::replace`]. The rows restart from [`start`](Self::start).
    ///
    /// # Errors
    /// As [`DeviceConstraint::replace`], [`new`](Self::new) and
    /// [`with_budgets`](Self::with_budgets), and [`ErrorKind::Input`](crate::ErrorKind::Input) for
    /// another number of rows, or for a processor of [`continuous`](Self::continuous). An error
    /// changes nothing.
    pub fn replace(
        &mut self,
        constraints: &[&CompiledConstraint],
        rows: &[usize],
        budgets: &[usize],
    ) -> Result<()> {
        if rows.len() != self.rows.len() {
            return Err(Error::input(format!("{} rows in the place of {}", rows.len(), self.rows.len())));
        }
        check_rows(rows, constraints.len())?;
        let rows: Vec<_> = rows.iter().copied().map(Some).collect();
        check_budgets(budgets, &rows, |index, budget| constraints[index].parts().needed_beyond(budget))?;
        match &mut self.constraints {
            DeviceConstraints::Fixed(device_constraint) => device_constraint.replace(constraints)?,
            DeviceConstraints::Arena(_) => {
                return Err(Error::input("rows that come and go are not replaced: admit and release them"));
            }
        }
        (self.rows, self.budgets) = (rows, Some(budgets.to_vec()));
        Ok(())
    }

    /// The device constraint of the processor.
    pub fn device_constraint(&self) -> &DeviceConstraint {
        match &self.constraints {
            DeviceConstraints::Fixed(device_constraint) => device_constraint,
            DeviceConstraints::Arena(arena) => arena.device_constraint(),
        }
    }

    /// The position before the first token.
    pub fn start(&self) -> Position {
        let device_constraint = self.device_constraint();
        let start = |(row, index): (usize, &Option<usize>)| {
            let state = index.map_or(StateId::DONE, |index| device_constraint.start(index));
            let budget = |budgets: &Vec<usize>| budgets[row] as u32;
            RowPosition::new(state, self.budgets.as_ref().map_or(RowPosition::UNLIMITED, budget))
        };
        let rows = self.rows.iter().enumerate().map(start);
        Position::upload(rows, device_constraint.sizes().numbers(), device_constraint.device())
            .with_rows(MaskRows::of_batch())
    }

    /// Makes the pool of mask rows of a batch before its first step.
    pub(crate) fn make_pool(&self, position: &Position) {
        self.device_constraint().make_pool(&position.rows);
    }

    /// Advances every row by one token; [`DeviceConstraint::no_token`] does not change its row.
    ///
    /// # Shapes
    /// - `tokens`: `[batch]`
    ///
    /// # Panics
    /// If `tokens` has another length than `position`.
    pub fn advance(&self, position: Position, tokens: Tensor<1, Int>) -> Position {
        step::after(self.device_constraint(), position, step::ids(tokens))
    }

    /// Sets the logits of illegal tokens to −∞.
    ///
    /// # Shapes
    /// - `logits`: `[batch, vocab_size]`; the result has the same shape and dtype
    ///
    /// # Panics
    /// If [`check`](Self::check) refuses `logits`.
    pub fn mask(&self, position: &Position, logits: Tensor<2>) -> Tensor<2> {
        self.expect(&logits);
        let none = Tensor::full(
            [self.rows.len()],
            self.device_constraint().no_token() as i32,
            (&logits.device(), DType::I32),
        );
        step::mask(self.device_constraint(), logits, position.clone(), none).0
    }

    /// Follows a tree of drafts and sets the logits of tokens that are illegal after a node to −∞,
    /// for all rows and nodes at once.
    ///
    /// `tokens` holds the last token of each row for the root, or [`DeviceConstraint::no_token`],
    /// and a draft for every other node; `position` is the position before the last token. A draft
    /// that violates the constraint or the budget gets −∞ in the row of its parent, so no rule
    /// accepts it; its node keeps the parent's position, so no row is ever all −∞. After
    /// acceptance, [`Position::at`] the last accepted node is the new position.
    ///
    /// # Shapes
    /// - `tokens`: `[batch, nodes]`
    /// - `logits`: `[batch, nodes, vocab_size]`; the result has the same shape and dtype
    ///
    /// # Panics
    /// If the shapes differ, or [`check`](Self::check) refuses a slice of the logits.
    ///
    /// ```
    /// use burn::tensor::{Device, Int, Tensor};
    /// use burn_dfa::processor::{ConstraintProcessor, DraftTree};
    /// use burn_dfa::{
    ///     CompiledConstraint, Constraint, DeviceConstraint, Limits, TensorOptions, TokenId,
    ///     Vocabulary,
    /// };
    ///
    /// let vocabulary = Vocabulary::from_bytes([Some(b"a".to_vec()), Some(b"b".to_vec()), None])?
    ///     .with_eos([TokenId(2)])?;
    /// let compiled = CompiledConstraint::compile(
    ///     &Constraint::regex("ab")?,
    ///     &vocabulary,
    ///     &Limits::default(),
    /// )?;
    /// let device = Device::flex();
    /// let constraint =
    ///     DeviceConstraint::new(&[&compiled], 3, &TensorOptions::default(), &device)?;
    /// let processor = ConstraintProcessor::new(constraint, &[0])?;
    ///
    /// // No token yet, and the drafts `a`, `b`.
    /// let tokens = Tensor::<2, Int>::from_data([[3, 0, 1]], &device);
    /// let logits = Tensor::<3>::zeros([1, 3, 3], &device);
    /// let (masked, positions) =
    ///     processor.mask_tree(&processor.start(), &DraftTree::chain(2), tokens, logits);
    /// let never = f32::NEG_INFINITY;
    /// let expected = [0.0, never, never, never, 0.0, never, never, never, 0.0];
    /// assert_eq!(masked.into_data().try_to_vec::<f32>().unwrap(), expected);
    ///
    /// // Both were accepted, and the end of sequence follows.
    /// let position = positions.at(Tensor::from_data([2], &device));
    /// let position = processor.advance(position, Tensor::from_data([2], &device));
    /// assert!(position.is_done().into_data().try_to_vec::<bool>().unwrap()[0]);
    /// # Ok::<(), burn_dfa::Error>(())
    /// ```
    pub fn mask_tree(
        &self,
        position: &Position,
        tree: &DraftTree,
        tokens: Tensor<2, Int>,
        logits: Tensor<3>,
    ) -> (Tensor<3>, Position<3>) {
        let expected = [self.rows.len(), tree.len(), self.device_constraint().vocab_size()];
        assert_eq!(logits.dims(), expected, "logits of every row and node");
        assert_eq!(tokens.dims(), [expected[0], expected[1]], "one token for every row and node");
        if let Err(error) = self.check_kind(logits.dtype(), &logits.device()) {
            panic!("{error}");
        }
        let tokens = step::ids(tokens);
        step::mask_tree(self.device_constraint(), tree.parents(), logits, position.clone(), tokens)
    }

    /// Checks whether [`mask`](Self::mask) and the processor accept `logits`: `[rows, vocab_size]`,
    /// `f32`, `f16` or `bf16`, on the device of the constraint.
    ///
    /// # Errors
    /// [`ErrorKind::IncompatibleVocabulary`](crate::ErrorKind::IncompatibleVocabulary) for rows of
    /// another width, and [`ErrorKind::Input`](crate::ErrorKind::Input) for another number of rows,
    /// another type or another device.
    pub fn check(&self, logits: &Tensor<2>) -> Result<()> {
        self.check_shape(logits.dims())?;
        self.check_kind(logits.dtype(), &logits.device())
    }

    fn check_kind(&self, dtype: DType, device: &Device) -> Result<()> {
        if !reads(dtype) {
            return Err(Error::input(format!("logits of type {dtype:?}: cast them to f32, f16 or bf16")));
        }
        let expected = self.device_constraint().device();
        if device != expected {
            return Err(Error::input(format!("logits on {device:?}, the constraint on {expected:?}")));
        }
        Ok(())
    }

    fn expect(&self, logits: &Tensor<2>) {
        if let Err(error) = self.check(logits) {
            panic!("{error}");
        }
    }
}

fn check_rows(rows: &[usize], count: usize) -> Result<()> {
    if rows.is_empty() {
        return Err(Error::input("a batch needs at least one row"));
    }
    if let Some(row) = rows.iter().position(|&index| index >= count) {
        return Err(Error::input(format!("row {row} follows constraint {}, there are {count}", rows[row])));
    }
    Ok(())
}

/// `needed` is the least budget of a constraint.
fn check_budgets(
    budgets: &[usize],
    rows: &[Option<usize>],
    needed: impl Fn(usize, usize) -> usize,
) -> Result<()> {
    if budgets.len() != rows.len() {
        return Err(Error::input(format!("{} budgets for {} rows", budgets.len(), rows.len())));
    }
    for (row, (&given, &index)) in budgets.iter().zip(rows).enumerate() {
        check_budget(row, given, index.map_or(0, |index| needed(index, given)))?;
    }
    Ok(())
}

pub(super) fn check_budget(row: usize, given: usize, needed: usize) -> Result<()> {
    if given < needed {
        return Err(Error::budget(needed, given, row));
    }
    if i32::try_from(given).is_err() {
        return Err(Error::input(format!("row {row}: a budget of {given} tokens is not below 2^31")));
    }
    Ok(())
}

impl LogitsProcessor for ConstraintProcessor {
    type State = Position;

    fn init(&self, _context: &InitContext) -> Position {
        self.start()
    }

    fn process(&self, position: Position, logits: Tensor<2>, context: &StepContext) -> (Tensor<2>, Position) {
        self.expect(&logits);
        step::mask(self.device_constraint(), logits, position, step::ids(context.tokens.clone()))
    }

    fn sample_step(
        &self,
        position: &mut Position,
        context: &mut StepContext,
        logits: Tensor<2>,
        sampler: &dyn Sampler,
    ) {
        // A seed for all rows takes the operations of the sampler, which repeat it.
        let fits = |fused: &FusedSampler<'_>| match fused {
            FusedSampler::Greedy => true,
            FusedSampler::GumbelMax(sampler) => sampler.batch() == self.rows.len(),
        };
        let is_fused = self.device_constraint().is_fused();
        let Some(fused) = sampler.fused().filter(|fused| is_fused && fits(fused)) else {
            return process_and_sample(self, position, context, logits, sampler);
        };
        self.expect(&logits);
        let (step, rows) = (context.step.clone(), position.rows.clone());
        // Both tensors are moved out and back, so the operation may write in place.
        in_place(&mut context.tokens, |tokens| {
            let mut chosen = None;
            in_place(&mut position.values, |values| {
                let position = Position { values, rows };
                let tokens = step::ids(tokens);
                let (tokens, position) =
                    step::choose(self.device_constraint(), logits, position, tokens, step, fused);
                chosen = Some(tokens);
                position.values
            });
            chosen.expect("the closure has run")
        });
    }

    fn check_shape(&self, shape: [usize; 2]) -> Result<()> {
        let expected = [self.rows.len(), self.device_constraint().vocab_size()];
        if shape[0] != expected[0] {
            return Err(Error::input(format!(
                "logits of shape {shape:?} for rows and constraints of shape {expected:?}"
            )));
        }
        if shape[1] != expected[1] {
            return Err(Error::incompatible_vocabulary(format!(
                "rows of {} logits, but the constraints are for rows of {}",
                shape[1], expected[1]
            )));
        }
        Ok(())
    }
}
