//! The wire format of the operations of this crate: their names, and the call of a client.

use burn::backend::ir::{CustomOpIr, ScalarIr, TensorIr};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Remote, TensorMetadata};
use burn::remote::CustomOpClient;
use burn::tensor::{DType, Shape};

/// The version of the operations; a client refuses a server of another version.
pub(crate) const VERSION: i32 = 1;

/// The names of the operations.
pub(crate) struct Operations {
    /// `[1]` → `[1]`: the version.
    pub(crate) version: &'static str,
    /// The bytes of constraints → their handle.
    pub(crate) tables: &'static str,
    /// A handle, the bytes of a constraint → the handle of the arena with the constraint.
    pub(crate) put: &'static str,
    /// A handle → the handle of the arena without the constraint.
    pub(crate) take_out: &'static str,
    /// A handle, positions, tokens → positions.
    pub(crate) after: &'static str,
    /// A handle, logits, positions, tokens → logits, positions.
    pub(crate) mask: &'static str,
    /// As `mask`, for the nodes of a tree.
    pub(crate) mask_tree: &'static str,
    /// A handle, logits, positions, tokens → tokens, positions.
    pub(crate) greedy: &'static str,
    /// A handle, logits, positions, tokens, the step, the keys of a sampler → tokens, positions.
    pub(crate) sampled: &'static str,
    /// Logits, numbers → logits.
    pub(crate) top_k: &'static str,
    /// Logits, fractions → logits.
    pub(crate) top_p: &'static str,
}

pub(crate) const OPERATIONS: Operations = Operations {
    version: "burn-dfa::version",
    tables: "burn-dfa::tables",
    put: "burn-dfa::put",
    take_out: "burn-dfa::take_out",
    after: "burn-dfa::after",
    mask: "burn-dfa::mask",
    mask_tree: "burn-dfa::mask_tree",
    greedy: "burn-dfa::greedy",
    sampled: "burn-dfa::sampled",
    top_k: "burn-dfa::top_k",
    top_p: "burn-dfa::top_p",
};

/// Calls an operation on the server of the inputs, at least one; `outputs` are the shapes and types
/// of the results.
pub(crate) fn call<const I: usize, const O: usize>(
    operation: &'static str,
    inputs: [FloatTensor<Remote>; I],
    outputs: [(Shape, DType); O],
    scalars: Vec<ScalarIr>,
) -> [FloatTensor<Remote>; O] {
    let client = CustomOpClient::new(&inputs[0].device());
    let inputs = inputs.map(|input| input.into_ir());
    let outputs = outputs.map(|(shape, dtype)| TensorIr::uninit(client.create_empty_handle(), shape, dtype));
    let outputs = client.register(CustomOpIr::with_scalars(operation, &inputs, &outputs, scalars));
    outputs.try_into().unwrap_or_else(|_| unreachable!("an operation gives as many tensors as it declares"))
}

/// Shape and type of a tensor.
pub(crate) fn like(tensor: &FloatTensor<Remote>) -> (Shape, DType) {
    (tensor.shape(), tensor.dtype())
}
