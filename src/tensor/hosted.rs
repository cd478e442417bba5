//! Constraints on a server that hosts the fused operations: the client's part, a handle.
//!
//! The client sends constraints once, as artifacts. The server reads them and returns a handle, a
//! tensor that every step names. A handle is immutable: loading a constraint into an arena returns
//! a new handle, which shares the unchanged constraints.

use burn::backend::ir::ScalarIr;
use burn::backend::tensor::IntTensor;
use burn::backend::{Backend, Dispatch, Remote, backend_extension};
use burn::tensor::{DType, Device, Int, Shape, Tensor};

use super::ints;
use crate::remote::{OPERATIONS, call, like};
use crate::vocabulary::Vocabulary;
use burn_dfa_tokens::{CompiledConstraint, Result, TokenReading};

/// A handle of constraints on a server.
#[derive(Clone, Debug)]
pub(crate) struct Hosted {
    handle: Tensor<1, Int>,
    frame: usize,
}

impl Hosted {
    /// Sends joined constraints.
    pub(super) fn joined(tables: &[&CompiledConstraint], frame: usize, device: &Device) -> Result<Self> {
        let vocabulary = tables.iter().find_map(|table| match &table.parts().reading {
            TokenReading::Bytes { vocabulary, .. } => Some(vocabulary),
            TokenReading::Classes(_) => None,
        });
        Self::send(vocabulary, tables, frame, 0, 0, device)
    }

    /// Sends a paged arena for `tables` constraints, with only the first, `free`, loaded.
    pub(super) fn paged(
        vocabulary: &Vocabulary,
        free: &CompiledConstraint,
        (tables, pages): (usize, usize),
        frame: usize,
        device: &Device,
    ) -> Result<Self> {
        Self::send(Some(vocabulary), &[free], frame, tables, pages, device)
    }

    fn send(
        vocabulary: Option<&Vocabulary>,
        tables: &[&CompiledConstraint],
        frame: usize,
        count: usize,
        pages: usize,
        device: &Device,
    ) -> Result<Self> {
        let mut parts = vec![vocabulary.map_or_else(Vec::new, Vocabulary::to_file)];
        for table in tables {
            parts.push(table.to_hosted_bytes()?);
        }
        let bytes = pack(&parts, device).into_dispatch();
        let handle = <Dispatch as HostedTables>::hosted_tables(bytes, vec![frame, count, pages]);
        Ok(Self { handle: Tensor::from_dispatch(handle), frame })
    }

    /// Replaces the joined constraints.
    pub(super) fn replace(&mut self, tables: &[&CompiledConstraint]) -> Result<()> {
        *self = Self::joined(tables, self.frame, &self.handle.device())?;
        Ok(())
    }

    /// Loads a constraint into pages.
    pub(super) fn put(&mut self, index: usize, table: &CompiledConstraint, pages: &[u32]) -> Result<()> {
        let bytes = pack(&[table.to_hosted_bytes()?], &self.handle.device()).into_dispatch();
        let mut numbers = vec![index];
        numbers.extend(pages.iter().map(|&page| page as usize));
        let handle = <Dispatch as HostedTables>::hosted_put(self.handle(), bytes, numbers);
        self.handle = Tensor::from_dispatch(handle);
        Ok(())
    }

    /// Unloads a constraint.
    pub(super) fn take_out(&mut self, index: usize) {
        let handle = <Dispatch as HostedTables>::hosted_take_out(self.handle(), vec![index]);
        self.handle = Tensor::from_dispatch(handle);
    }

    /// The argument that names the constraints in an operation.
    pub(crate) fn handle(&self) -> IntTensor<Dispatch> {
        self.handle.clone().into_dispatch()
    }
}

/// Byte strings, each prefixed by its length in four bytes, as an `i32` tensor, padded with zeros.
fn pack(parts: &[Vec<u8>], device: &Device) -> Tensor<1, Int> {
    let mut bytes = Vec::new();
    for part in parts {
        bytes.extend((part.len() as u32).to_le_bytes());
        bytes.extend(part);
    }
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    let numbers = bytes.as_chunks().0.iter().map(|&bytes| i32::from_le_bytes(bytes));
    ints(numbers.collect(), device)
}

/// The operations that send constraints; each returns a handle, `[1]`.
#[backend_extension(Remote)]
trait HostedTables: Backend {
    /// `numbers`: the size of a frame, then the constraints and the pages of an arena, or 0 for
    /// joined constraints.
    fn hosted_tables(bytes: IntTensor<Self>, numbers: Vec<usize>) -> IntTensor<Self>;

    /// `numbers`: the number of the constraint, and its pages.
    fn hosted_put(handle: IntTensor<Self>, bytes: IntTensor<Self>, numbers: Vec<usize>) -> IntTensor<Self>;

    /// `numbers`: the number of the constraint.
    fn hosted_take_out(handle: IntTensor<Self>, numbers: Vec<usize>) -> IntTensor<Self>;
}

impl HostedTables for Remote {
    fn hosted_tables(bytes: IntTensor<Self>, numbers: Vec<usize>) -> IntTensor<Self> {
        let handle = (Shape::from([1]), DType::I32);
        let [handle] = call(OPERATIONS.tables, [bytes], [handle], scalars(numbers));
        handle
    }

    fn hosted_put(handle: IntTensor<Self>, bytes: IntTensor<Self>, numbers: Vec<usize>) -> IntTensor<Self> {
        let new = like(&handle);
        let [handle] = call(OPERATIONS.put, [handle, bytes], [new], scalars(numbers));
        handle
    }

    fn hosted_take_out(handle: IntTensor<Self>, numbers: Vec<usize>) -> IntTensor<Self> {
        let new = like(&handle);
        let [handle] = call(OPERATIONS.take_out, [handle], [new], scalars(numbers));
        handle
    }
}

fn scalars(numbers: Vec<usize>) -> Vec<ScalarIr> {
    numbers.into_iter().map(|number| ScalarIr::UInt(number as u64)).collect()
}
