//! Constraints on a server, as the client names them: by a handle.
//!
//! The client sends constraints once, as artifacts. The server reads them and returns a handle, a
//! tensor that every step names. A handle is immutable: loading a constraint into an arena returns
//! a new handle, which shares the unchanged constraints.

use burn::tensor::{DType, Device, Int, Tensor, TensorData};

use super::client::call_ints;
use super::wire::{operation, pack};
use crate::vocabulary::Vocabulary;
use burn_dfa_tokens::{CompiledConstraint, Result, TokenReading};

/// A handle of constraints on a server.
#[derive(Clone, Debug)]
pub(crate) struct RemoteConstraints {
    handle: Tensor<1, Int>,
    frame: usize,
}

impl RemoteConstraints {
    /// Sends joined constraints, whose stack frames have `frame` numbers.
    pub(crate) fn joined(constraints: &[&CompiledConstraint], frame: usize, device: &Device) -> Result<Self> {
        let vocabulary = constraints.iter().find_map(|constraint| match &constraint.parts().reading {
            TokenReading::Bytes { vocabulary, .. } => Some(vocabulary),
            TokenReading::Classes(_) => None,
        });
        Self::send(vocabulary, constraints, [frame, 0, 0], device)
    }

    /// Sends a paged arena for `count` constraints, with only the first, `free`, loaded.
    pub(crate) fn paged(
        vocabulary: &Vocabulary,
        free: &CompiledConstraint,
        (count, pages): (usize, usize),
        frame: usize,
        device: &Device,
    ) -> Result<Self> {
        Self::send(Some(vocabulary), &[free], [frame, count, pages], device)
    }

    /// Sends constraints with the size of a frame, and the numbers of constraints and of pages of
    /// an arena, or 0 for joined constraints.
    fn send(
        vocabulary: Option<&Vocabulary>,
        constraints: &[&CompiledConstraint],
        numbers: [usize; 3],
        device: &Device,
    ) -> Result<Self> {
        let mut parts = vec![vocabulary.map_or_else(Vec::new, Vocabulary::to_file)];
        for constraint in constraints {
            parts.push(constraint.to_server_bytes()?);
        }
        let handle = call_ints(operation::CONSTRAINTS, packed(&parts, device), None, numbers.into());
        Ok(Self { handle, frame: numbers[0] })
    }

    /// Replaces the joined constraints.
    pub(crate) fn replace(&mut self, constraints: &[&CompiledConstraint]) -> Result<()> {
        *self = Self::joined(constraints, self.frame, &self.handle.device())?;
        Ok(())
    }

    /// Loads a constraint into pages.
    pub(crate) fn put(&mut self, index: usize, constraint: &CompiledConstraint, pages: &[u32]) -> Result<()> {
        let bytes = packed(&[constraint.to_server_bytes()?], &self.handle.device());
        let mut numbers = vec![index];
        numbers.extend(pages.iter().map(|&page| page as usize));
        self.handle = call_ints(operation::PUT, self.handle(), Some(bytes), numbers);
        Ok(())
    }

    /// Unloads a constraint.
    pub(crate) fn take_out(&mut self, index: usize) {
        self.handle = call_ints(operation::TAKE_OUT, self.handle(), None, vec![index]);
    }

    /// The argument that names the constraints in an operation, `[1]`.
    pub(crate) fn handle(&self) -> Tensor<1, Int> {
        self.handle.clone()
    }
}

/// Byte strings as a tensor on the server.
fn packed(parts: &[Vec<u8>], device: &Device) -> Tensor<1, Int> {
    let numbers = pack(parts);
    let shape = [numbers.len()];
    Tensor::from_data(TensorData::new(numbers, shape), (device, DType::I32))
}
