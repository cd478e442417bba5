//! The step on a server: the client's part. Each operation is one message without a reply.

use std::sync::Arc;

use burn::backend::ir::ScalarIr;
use burn::backend::tensor::{FloatTensor, IntTensor};
use burn::backend::{Backend, Dispatch, Remote, TensorMetadata, backend_extension};
use burn::tensor::{Int, Shape, Tensor};

use crate::remote::{OPERATIONS, call, like};
use crate::sampling::FusedSampler;
use crate::tensor::{Hosted, Position};

/// As the operations of Flex, with a handle of the constraints.
#[backend_extension(Remote)]
trait HostedStep: Backend {
    fn hosted_after(
        tables: IntTensor<Self>,
        position: IntTensor<Self>,
        tokens: IntTensor<Self>,
        vocab_size: usize,
    ) -> IntTensor<Self>;

    fn hosted_mask(
        tables: IntTensor<Self>,
        logits: FloatTensor<Self>,
        position: IntTensor<Self>,
        tokens: IntTensor<Self>,
    ) -> (FloatTensor<Self>, IntTensor<Self>);

    fn hosted_mask_tree(
        tables: IntTensor<Self>,
        logits: FloatTensor<Self>,
        position: IntTensor<Self>,
        tokens: IntTensor<Self>,
        parents: Arc<[usize]>,
    ) -> (FloatTensor<Self>, IntTensor<Self>);

    fn hosted_greedy(
        tables: IntTensor<Self>,
        logits: FloatTensor<Self>,
        position: IntTensor<Self>,
        tokens: IntTensor<Self>,
    ) -> (IntTensor<Self>, IntTensor<Self>);

    fn hosted_sampled(
        tables: IntTensor<Self>,
        logits: FloatTensor<Self>,
        position: IntTensor<Self>,
        tokens: IntTensor<Self>,
        step: IntTensor<Self>,
        keys: IntTensor<Self>,
    ) -> (IntTensor<Self>, IntTensor<Self>);
}

impl HostedStep for Remote {
    fn hosted_after(
        tables: IntTensor<Self>,
        position: IntTensor<Self>,
        tokens: IntTensor<Self>,
        vocab_size: usize,
    ) -> IntTensor<Self> {
        let after = like(&position);
        let vocab_size = vec![ScalarIr::UInt(vocab_size as u64)];
        let [position] = call(OPERATIONS.after, [tables, position, tokens], [after], vocab_size);
        position
    }

    fn hosted_mask(
        tables: IntTensor<Self>,
        logits: FloatTensor<Self>,
        position: IntTensor<Self>,
        tokens: IntTensor<Self>,
    ) -> (FloatTensor<Self>, IntTensor<Self>) {
        let outputs = [like(&logits), like(&position)];
        let inputs = [tables, logits, position, tokens];
        let [logits, position] = call(OPERATIONS.mask, inputs, outputs, Vec::new());
        (logits, position)
    }

    fn hosted_mask_tree(
        tables: IntTensor<Self>,
        logits: FloatTensor<Self>,
        position: IntTensor<Self>,
        tokens: IntTensor<Self>,
        parents: Arc<[usize]>,
    ) -> (FloatTensor<Self>, IntTensor<Self>) {
        let [batch, numbers] = position.shape().dims();
        let tree = (Shape::from([batch, parents.len(), numbers]), position.dtype());
        let outputs = [like(&logits), tree];
        let inputs = [tables, logits, position, tokens];
        let parents = parents.iter().map(|&parent| ScalarIr::UInt(parent as u64)).collect();
        let [logits, position] = call(OPERATIONS.mask_tree, inputs, outputs, parents);
        (logits, position)
    }

    fn hosted_greedy(
        tables: IntTensor<Self>,
        logits: FloatTensor<Self>,
        position: IntTensor<Self>,
        tokens: IntTensor<Self>,
    ) -> (IntTensor<Self>, IntTensor<Self>) {
        let outputs = [like(&tokens), like(&position)];
        let inputs = [tables, logits, position, tokens];
        let [tokens, position] = call(OPERATIONS.greedy, inputs, outputs, Vec::new());
        (tokens, position)
    }

    fn hosted_sampled(
        tables: IntTensor<Self>,
        logits: FloatTensor<Self>,
        position: IntTensor<Self>,
        tokens: IntTensor<Self>,
        step: IntTensor<Self>,
        keys: IntTensor<Self>,
    ) -> (IntTensor<Self>, IntTensor<Self>) {
        let outputs = [like(&tokens), like(&position)];
        let inputs = [tables, logits, position, tokens, step, keys];
        let [tokens, position] = call(OPERATIONS.sampled, inputs, outputs, Vec::new());
        (tokens, position)
    }
}

/// [`super::after`] on a server.
pub(super) fn after(
    tables: &Hosted,
    position: Position,
    tokens: Tensor<1, Int>,
    vocab_size: usize,
) -> Position {
    let (position, tokens) = (position.values.into_dispatch(), tokens.into_dispatch());
    let position = <Dispatch as HostedStep>::hosted_after(tables.handle(), position, tokens, vocab_size);
    Position::new(Tensor::from_dispatch(position))
}

/// [`super::mask`] on a server.
pub(super) fn mask(
    tables: &Hosted,
    logits: Tensor<2>,
    position: Position,
    tokens: Tensor<1, Int>,
) -> (Tensor<2>, Position) {
    let (logits, position) = <Dispatch as HostedStep>::hosted_mask(
        tables.handle(),
        logits.into_dispatch(),
        position.values.into_dispatch(),
        tokens.into_dispatch(),
    );
    (Tensor::from_dispatch(logits), Position::new(Tensor::from_dispatch(position)))
}

/// [`super::mask_tree`] on a server.
pub(super) fn mask_tree(
    tables: &Hosted,
    parents: &Arc<[usize]>,
    logits: Tensor<3>,
    position: Position,
    tokens: Tensor<2, Int>,
) -> (Tensor<3>, Position<3>) {
    let (logits, tree) = <Dispatch as HostedStep>::hosted_mask_tree(
        tables.handle(),
        logits.into_dispatch(),
        position.values.into_dispatch(),
        tokens.into_dispatch(),
        parents.clone(),
    );
    (Tensor::from_dispatch(logits), Position::new(Tensor::from_dispatch(tree)))
}

/// [`super::choose`] on a server.
pub(super) fn choose(
    tables: &Hosted,
    logits: Tensor<2>,
    position: Position,
    tokens: Tensor<1, Int>,
    step: Tensor<1, Int>,
    rule: FusedSampler,
) -> (Tensor<1, Int>, Position) {
    let (tables, logits) = (tables.handle(), logits.into_dispatch());
    let (position, tokens) = (position.values.into_dispatch(), tokens.into_dispatch());
    let (tokens, position) = match rule {
        FusedSampler::Greedy => <Dispatch as HostedStep>::hosted_greedy(tables, logits, position, tokens),
        FusedSampler::GumbelMax(sampler) => <Dispatch as HostedStep>::hosted_sampled(
            tables,
            logits,
            position,
            tokens,
            step.into_dispatch(),
            sampler.keys().into_dispatch(),
        ),
    };
    (Tensor::from_dispatch(tokens), Position::new(Tensor::from_dispatch(position)))
}
