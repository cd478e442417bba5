//! [`ConstraintProcessor`] for a continuous batch: rows begin and end independently.

use super::constraint::{DeviceConstraints, check_budget};
use super::{ConstraintProcessor, Position, RowState};
use crate::tensor::Arena;
use burn_dfa_tokens::{CompiledConstraint, Error, Result, RowPosition};

impl ConstraintProcessor {
    /// A processor of `rows` idle rows. [`admit`](Self::admit) loads a constraint for a row into
    /// the arena, and [`release`](Self::release) releases it, while the other rows continue. An
    /// idle row is done and accepts only the end of sequence.
    ///
    /// # Errors
    /// [`ErrorKind::Input`](crate::ErrorKind::Input) for no rows.
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor};
    /// use burn_dfa::processor::ConstraintProcessor;
    /// use burn_dfa::{
    ///     Arena, Capacity, CompiledConstraint, Constraint, Limits, TensorOptions, TokenId,
    ///     Vocabulary,
    /// };
    ///
    /// let vocabulary = Vocabulary::from_bytes([Some(b"a".to_vec()), Some(b"b".to_vec()), None])?
    ///     .with_eos([TokenId(2)])?;
    /// let compiled = CompiledConstraint::compile(
    ///     &Constraint::regex("ab*")?,
    ///     &vocabulary,
    ///     &Limits::default(),
    /// )?;
    /// let device = Device::flex();
    /// let capacity = Capacity::new().with_constraints(2).with_states(64).with_classes(8);
    /// let options = TensorOptions::new().with_capacity(capacity);
    /// let mut processor =
    ///     ConstraintProcessor::continuous(Arena::new(&vocabulary, 3, &options, &device)?, 3)?;
    /// let mut position = processor.start();
    ///
    /// processor.admit(&mut position, 0, Some(&compiled), 8)?;
    /// processor.admit(&mut position, 2, None, 8)?; // free text
    /// let never = f32::NEG_INFINITY;
    /// let masked = processor.mask(&position, Tensor::zeros([3, 3], &device));
    /// let expected = [0.0, never, never, never, never, 0.0, 0.0, 0.0, 0.0];
    /// assert_eq!(masked.into_data().try_to_vec::<f32>().unwrap(), expected);
    ///
    /// processor.release(&mut position, 0)?;
    /// assert_eq!(
    ///     position.is_done().into_data().try_to_vec::<bool>().unwrap(),
    ///     [true, true, false]
    /// );
    /// # Ok::<(), burn_dfa::Error>(())
    /// ```
    pub fn continuous(arena: Arena, rows: usize) -> Result<Self> {
        if rows == 0 {
            return Err(Error::input("a batch needs at least one row"));
        }
        Ok(Self { constraints: DeviceConstraints::Arena(arena), rows: vec![None; rows], budgets: None })
    }

    /// Begins a constraint in an idle row, with a budget as in
    /// [`with_budgets`](Self::with_budgets); `None` is free text. Writes the position of the row in
    /// place, and does not change the other rows.
    ///
    /// The row has no last token yet: feed
    /// [`DeviceConstraint::no_token`](crate::DeviceConstraint::no_token) next.
    ///
    /// # Errors
    /// An error changes nothing.
    /// - as [`Arena::admit`]; after [`ErrorKind::Full`](crate::ErrorKind::Full), try again when a
    ///   row was released;
    /// - [`ErrorKind::Budget`](crate::ErrorKind::Budget): the budget is below the shortest output
    ///   of the constraint;
    /// - [`ErrorKind::Input`](crate::ErrorKind::Input): the row does not exist or is not idle, or
    ///   the processor was not made by [`continuous`](Self::continuous).
    pub fn admit(
        &mut self,
        position: &mut Position,
        row: usize,
        constraint: Option<&CompiledConstraint>,
        budget: usize,
    ) -> Result<()> {
        self.seat(row, constraint, budget)?;
        position.assign_row(row, self.row(row).start());
        Ok(())
    }

    /// As [`admit`](Self::admit), without writing the position.
    pub(crate) fn seat(
        &mut self,
        row: usize,
        constraint: Option<&CompiledConstraint>,
        budget: usize,
    ) -> Result<()> {
        check_budget(
            row,
            budget,
            constraint.map_or(0, |constraint| constraint.parts().needed_beyond(budget)),
        )?;
        let (arena, seat) = self.seat_of(row)?;
        if seat.is_some() {
            return Err(Error::input(format!("row {row} is taken: release it first")));
        }
        *seat = Some(constraint.map_or(Ok(Arena::UNCONSTRAINED), |constraint| arena.admit(constraint))?);
        let rows = self.rows.len();
        self.budgets.get_or_insert_with(|| vec![RowPosition::UNLIMITED as usize; rows])[row] = budget;
        Ok(())
    }

    /// Ends a row, finished or not, and releases its constraint; the row becomes idle.
    ///
    /// # Errors
    /// [`ErrorKind::Input`](crate::ErrorKind::Input): the row does not exist or is idle, or the
    /// processor was not made by [`continuous`](Self::continuous).
    pub fn release(&mut self, position: &mut Position, row: usize) -> Result<()> {
        let (arena, seat) = self.seat_of(row)?;
        let index = seat.take().ok_or_else(|| Error::input(format!("row {row} is idle")))?;
        arena.release(index)?;
        if let Some(budgets) = &mut self.budgets {
            budgets[row] = RowPosition::UNLIMITED as usize;
        }
        position.assign_row(row, self.row(row).start());
        Ok(())
    }

    /// Whether a row of a processor of [`continuous`](Self::continuous) has no constraint.
    pub(crate) fn is_idle(&self, row: usize) -> bool {
        self.rows[row].is_none()
    }

    /// The arena of a processor of [`continuous`](Self::continuous).
    pub fn arena(&self) -> Option<&Arena> {
        match &self.constraints {
            DeviceConstraints::Fixed(_) => None,
            DeviceConstraints::Arena(arena) => Some(arena),
        }
    }

    fn seat_of(&mut self, row: usize) -> Result<(&mut Arena, &mut Option<usize>)> {
        let rows = self.rows.len();
        let DeviceConstraints::Arena(arena) = &mut self.constraints else {
            return Err(Error::input(
                "the rows of this processor do not come and go: make it with `ConstraintProcessor::continuous`",
            ));
        };
        let seat = self.rows.get_mut(row);
        let seat = seat.ok_or_else(|| Error::input(format!("row {row} of a batch of {rows} rows")))?;
        Ok((arena, seat))
    }

    /// A processor of one of the rows. It shares the buffers of the device constraint, so no
    /// constraint may be loaded while it exists.
    pub(crate) fn row(&self, row: usize) -> Self {
        let budgets = self.budgets.as_ref().map(|budgets| vec![budgets[row]]);
        Self {
            constraints: DeviceConstraints::Fixed(self.device_constraint().clone()),
            rows: vec![self.rows[row]],
            budgets,
        }
    }
}
