//! The step on a remote device: each operation is one message to the server, without a reply.

use std::sync::Arc;

use burn::backend::tensor::{FloatTensor, IntTensor};
use burn::backend::{Remote, TensorMetadata};
use burn::tensor::Shape;

use super::cpu::{CpuStep, StepConstraints, StepSampler};
use crate::remote::{call, like, operation};

impl CpuStep for Remote {
    fn after(
        constraints: StepConstraints<Self>,
        position: IntTensor<Self>,
        tokens: IntTensor<Self>,
        vocab_size: usize,
    ) -> IntTensor<Self> {
        let after = like(&position);
        let inputs = [constraints.handle(), position, tokens];
        let [position] = call(operation::AFTER, inputs, [after], &[vocab_size]);
        position
    }

    fn mask_after(
        constraints: StepConstraints<Self>,
        logits: FloatTensor<Self>,
        position: IntTensor<Self>,
        tokens: IntTensor<Self>,
    ) -> (FloatTensor<Self>, IntTensor<Self>) {
        let outputs = [like(&logits), like(&position)];
        let inputs = [constraints.handle(), logits, position, tokens];
        let [logits, position] = call(operation::MASK, inputs, outputs, &[]);
        (logits, position)
    }

    fn mask_tree(
        constraints: StepConstraints<Self>,
        logits: FloatTensor<Self>,
        position: IntTensor<Self>,
        tokens: IntTensor<Self>,
        parents: Arc<[usize]>,
    ) -> (FloatTensor<Self>, IntTensor<Self>) {
        let [batch, numbers] = position.shape().dims();
        let tree = (Shape::from([batch, parents.len(), numbers]), position.dtype());
        let outputs = [like(&logits), tree];
        let inputs = [constraints.handle(), logits, position, tokens];
        let [logits, tree] = call(operation::MASK_TREE, inputs, outputs, &parents);
        (logits, tree)
    }

    fn choose_after(
        constraints: StepConstraints<Self>,
        logits: FloatTensor<Self>,
        position: IntTensor<Self>,
        tokens: IntTensor<Self>,
        sampler: StepSampler<Self>,
    ) -> (IntTensor<Self>, IntTensor<Self>) {
        let outputs = [like(&tokens), like(&position)];
        let inputs = [constraints.handle(), logits, position, tokens];
        let [tokens, position] = match sampler {
            StepSampler::Greedy => call(operation::GREEDY, inputs, outputs, &[]),
            StepSampler::GumbelMax { step, keys } => {
                let [handle, logits, position, tokens] = inputs;
                let inputs = [handle, logits, position, tokens, step, keys];
                call(operation::SAMPLED, inputs, outputs, &[])
            }
        };
        (tokens, position)
    }
}
