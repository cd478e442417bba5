//! The step on a CPU: on Flex, or on the server of a remote device.

use std::sync::Arc;

use burn::backend::tensor::{FloatTensor, IntTensor};
use burn::backend::{Backend, Dispatch, ExtensionType, backend_extension};
use burn::tensor::{Int, Tensor};

#[cfg(feature = "remote")]
use crate::remote::RemoteConstraints;
use crate::sampling::FusedSampler;
#[cfg(feature = "flex")]
use crate::tensor::CpuConstraints;
use crate::tensor::Position;

/// The constraints of a step.
#[derive(ExtensionType)]
pub(crate) enum StepConstraints<B: Backend> {
    /// In the memory of this process, for Flex.
    #[cfg(feature = "flex")]
    Local(Arc<CpuConstraints>),
    /// On the server of a remote device, named by a handle.
    #[cfg_attr(not(feature = "remote"), allow(dead_code, reason = "only remote devices have a handle"))]
    Remote(IntTensor<B>),
}

impl<B: Backend> StepConstraints<B> {
    /// The constraints of a step on Flex.
    ///
    /// # Panics
    /// If they are on a server.
    #[cfg(feature = "flex")]
    pub(super) fn local(self) -> Arc<CpuConstraints> {
        match self {
            Self::Local(constraints) => constraints,
            Self::Remote(_) => panic!("the constraints are on a server, the logits on Flex"),
        }
    }

    /// The handle of the constraints of a step on a server.
    ///
    /// # Panics
    /// If they are in this process.
    #[cfg(feature = "remote")]
    pub(super) fn handle(self) -> IntTensor<B> {
        match self {
            Self::Remote(handle) => handle,
            #[cfg(feature = "flex")]
            Self::Local(_) => panic!("the constraints are on Flex, the logits on a server"),
        }
    }
}

#[cfg(feature = "flex")]
impl From<&Arc<CpuConstraints>> for StepConstraints<Dispatch> {
    fn from(constraints: &Arc<CpuConstraints>) -> Self {
        Self::Local(constraints.clone())
    }
}

#[cfg(feature = "remote")]
impl From<&RemoteConstraints> for StepConstraints<Dispatch> {
    fn from(constraints: &RemoteConstraints) -> Self {
        Self::Remote(constraints.handle().into_dispatch())
    }
}

/// The sampling rule of a step.
#[derive(ExtensionType)]
pub(crate) enum StepSampler<B: Backend> {
    /// The greatest logit.
    Greedy,
    /// The greatest logit over the temperature plus noise; see
    /// [`GumbelMax`](crate::sampling::GumbelMax).
    GumbelMax {
        /// The number of the step, `[1]` or `[batch]`.
        step: IntTensor<B>,
        /// The keys of the noise, `[batch, 3]`.
        keys: IntTensor<B>,
    },
}

/// The step: Flex runs it, and a remote device sends it to its server, which runs it on Flex.
///
/// Integers are `i32`, logits `f32`, `f16` or `bf16`; `tokens` are `[batch]`, `position` is
/// `[batch, numbers]`.
#[backend_extension(Flex: cfg(feature = "flex"), Remote: cfg(feature = "remote"))]
pub(crate) trait CpuStep: Backend {
    /// The position after `tokens`.
    fn after(
        #[extension_type] constraints: StepConstraints<Self>,
        position: IntTensor<Self>,
        tokens: IntTensor<Self>,
        vocab_size: usize,
    ) -> IntTensor<Self>;

    /// `logits` `[batch, vocab_size]`, masked, and the position after `tokens`.
    fn mask_after(
        #[extension_type] constraints: StepConstraints<Self>,
        logits: FloatTensor<Self>,
        position: IntTensor<Self>,
        tokens: IntTensor<Self>,
    ) -> (FloatTensor<Self>, IntTensor<Self>);

    /// `logits` `[batch, nodes, vocab_size]`, masked, and the positions of all nodes
    /// `[batch, nodes, numbers]`, whose `tokens` are `[batch, nodes]`; `parents` holds the parent
    /// of every node.
    fn mask_tree(
        #[extension_type] constraints: StepConstraints<Self>,
        logits: FloatTensor<Self>,
        position: IntTensor<Self>,
        tokens: IntTensor<Self>,
        parents: Arc<[usize]>,
    ) -> (FloatTensor<Self>, IntTensor<Self>);

    /// The tokens chosen from `logits` `[batch, vocab_size]`, and the position after `tokens`.
    fn choose_after(
        #[extension_type] constraints: StepConstraints<Self>,
        logits: FloatTensor<Self>,
        position: IntTensor<Self>,
        tokens: IntTensor<Self>,
        #[extension_type] sampler: StepSampler<Self>,
    ) -> (IntTensor<Self>, IntTensor<Self>);
}

/// [`super::after`] on a CPU.
pub(super) fn after(
    constraints: impl Into<StepConstraints<Dispatch>>,
    position: Position,
    tokens: Tensor<1, Int>,
    vocab_size: usize,
) -> Position {
    let position = <Dispatch as CpuStep>::after(
        constraints.into(),
        position.values.into_dispatch(),
        tokens.into_dispatch(),
        vocab_size,
    );
    Position::new(Tensor::from_dispatch(position))
}

/// [`super::mask`] on a CPU.
pub(super) fn mask(
    constraints: impl Into<StepConstraints<Dispatch>>,
    logits: Tensor<2>,
    position: Position,
    tokens: Tensor<1, Int>,
) -> (Tensor<2>, Position) {
    let (logits, position) = <Dispatch as CpuStep>::mask_after(
        constraints.into(),
        logits.into_dispatch(),
        position.values.into_dispatch(),
        tokens.into_dispatch(),
    );
    (Tensor::from_dispatch(logits), Position::new(Tensor::from_dispatch(position)))
}

/// [`super::mask_tree`] on a CPU.
pub(super) fn mask_tree(
    constraints: impl Into<StepConstraints<Dispatch>>,
    parents: &Arc<[usize]>,
    logits: Tensor<3>,
    position: Position,
    tokens: Tensor<2, Int>,
) -> (Tensor<3>, Position<3>) {
    let (logits, tree) = <Dispatch as CpuStep>::mask_tree(
        constraints.into(),
        logits.into_dispatch(),
        position.values.into_dispatch(),
        tokens.into_dispatch(),
        parents.clone(),
    );
    (Tensor::from_dispatch(logits), Position::new(Tensor::from_dispatch(tree)))
}

/// [`super::choose`] on a CPU.
pub(super) fn choose(
    constraints: impl Into<StepConstraints<Dispatch>>,
    logits: Tensor<2>,
    position: Position,
    tokens: Tensor<1, Int>,
    step: Tensor<1, Int>,
    fused: FusedSampler,
) -> (Tensor<1, Int>, Position) {
    let sampler = match fused {
        FusedSampler::Greedy => StepSampler::Greedy,
        FusedSampler::GumbelMax(sampler) => {
            let (step, keys) = (step.into_dispatch(), sampler.keys().into_dispatch());
            StepSampler::GumbelMax { step, keys }
        }
    };
    let (tokens, position) = <Dispatch as CpuStep>::choose_after(
        constraints.into(),
        logits.into_dispatch(),
        position.values.into_dispatch(),
        tokens.into_dispatch(),
        sampler,
    );
    (Tensor::from_dispatch(tokens), Position::new(Tensor::from_dispatch(position)))
}
