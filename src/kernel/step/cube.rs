//! The step on CubeCL: WGPU, Vulkan, CUDA; and Fusion, which passes it on.

use burn::backend::cubecl::dtype_to_storage_type;
use burn::backend::tensor::{FloatTensor, IntTensor};
use burn::backend::{Backend, Dispatch, ExtensionType, TensorMetadata, backend_extension};
use burn::tensor::{Int, Tensor};
use burn_cubecl::CubeBackend;
use burn_cubecl::ops::numeric::empty_device_dtype;
use burn_cubecl::tensor::CubeTensor;
use cubecl::prelude::{CubeCount, CubeDim, InputScalar, SequenceArg};

use super::kernels::{GumbelLaunch, NoiseArgs, UNITS, choose_kernel, mask_kernel};
use super::lookup::{CLASSES, DENSE, LookupLaunch, WALK};
use crate::sampling::{FusedSampler, GumbelMax};
use crate::tensor::{Array, Image, Layout, Position};

/// The image of a device constraint, see `tensor::Image`.
#[derive(ExtensionType)]
#[extension_type(fusion: cfg(feature = "fusion"))]
pub(crate) struct Table<B: Backend> {
    image: IntTensor<B>,
    offsets: [u32; Array::ALL.len()],
    states: u32,
    columns: u32,
    vocab_size: u32,
    alphabet: u32,
    layout: u32,
    has_owner: bool,
    ends: u32,
    depth: u32,
    pushes: u32,
    landings: u32,
}

/// The parameters of the noise, see `GumbelMax`.
#[derive(ExtensionType)]
#[extension_type(fusion: cfg(feature = "fusion"))]
pub(crate) struct Gumbel<B: Backend> {
    step: IntTensor<B>,
    keys: IntTensor<B>,
    quantiles: FloatTensor<B>,
}

/// Integers are `i32`; `tokens` are `[batch]`, `position` is `[batch, numbers]`, `logits` are
/// `[batch, vocab_size]`.
#[backend_extension(Cube, Fusion: cfg(feature = "fusion"))]
pub(crate) trait CubeStep: Backend {
    /// The masked logits and the next position.
    #[fusion(meta = |logits, position, _tokens, _table| (logits.clone(), position.clone()))]
    fn mask_step(
        logits: FloatTensor<Self>,
        position: IntTensor<Self>,
        tokens: IntTensor<Self>,
        #[extension_type] table: Table<Self>,
    ) -> (FloatTensor<Self>, IntTensor<Self>);

    /// The tokens of the greatest legal logits and the next position, written in place.
    #[fusion(meta = |_logits, position, tokens, _table| (tokens.clone(), position.clone()))]
    fn greedy_step(
        logits: FloatTensor<Self>,
        position: IntTensor<Self>,
        tokens: IntTensor<Self>,
        #[extension_type] table: Table<Self>,
    ) -> (IntTensor<Self>, IntTensor<Self>);

    /// As `greedy_step`, after adding the noise.
    #[fusion(meta = |_logits, position, tokens, _table, _noise| (tokens.clone(), position.clone()))]
    fn gumbel_step(
        logits: FloatTensor<Self>,
        position: IntTensor<Self>,
        tokens: IntTensor<Self>,
        #[extension_type] table: Table<Self>,
        #[extension_type] noise: Gumbel<Self>,
    ) -> (IntTensor<Self>, IntTensor<Self>);
}

impl CubeStep for CubeBackend {
    fn mask_step(
        logits: CubeTensor,
        position: CubeTensor,
        tokens: CubeTensor,
        table: Table<Self>,
    ) -> (CubeTensor, CubeTensor) {
        let client = logits.client.clone();
        let like = |tensor: &CubeTensor| {
            empty_device_dtype(client.clone(), tensor.device.clone(), tensor.shape(), tensor.dtype)
        };
        let (masked, next_position) = (like(&logits), like(&position));
        let kind = dtype_to_storage_type(logits.dtype);
        let batch = logits.shape()[0] as u32;
        mask_kernel::launch(
            &client,
            CubeCount::Static(table.vocab_size.div_ceil(UNITS), batch, 1),
            CubeDim::new_1d(UNITS),
            logits.into_tensor_arg(),
            position.into_tensor_arg(),
            tokens.into_tensor_arg(),
            table.launch(),
            masked.clone().into_tensor_arg(),
            next_position.clone().into_tensor_arg(),
            InputScalar::new(f32::NEG_INFINITY, kind),
            kind,
        );
        (masked, next_position)
    }

    fn greedy_step(
        logits: CubeTensor,
        position: CubeTensor,
        tokens: CubeTensor,
        table: Table<Self>,
    ) -> (CubeTensor, CubeTensor) {
        launch_choose(logits, position, tokens, NoiseArgs::None, table)
    }

    fn gumbel_step(
        logits: CubeTensor,
        position: CubeTensor,
        tokens: CubeTensor,
        table: Table<Self>,
        noise: Gumbel<Self>,
    ) -> (CubeTensor, CubeTensor) {
        let gumbel = GumbelLaunch::new(
            noise.step.into_tensor_arg(),
            noise.keys.into_tensor_arg(),
            noise.quantiles.into_tensor_arg(),
        );
        launch_choose(logits, position, tokens, NoiseArgs::Gumbel(gumbel), table)
    }
}

/// Returns the chosen tokens and the next position.
fn launch_choose(
    logits: CubeTensor,
    position: CubeTensor,
    tokens: CubeTensor,
    noise: NoiseArgs,
    table: Table<CubeBackend>,
) -> (CubeTensor, CubeTensor) {
    let client = logits.client.clone();
    let kind = dtype_to_storage_type(logits.dtype);
    let batch = logits.shape()[0] as u32;
    let [position, tokens] = [position, tokens].map(own);
    choose_kernel::launch(
        &client,
        CubeCount::Static(batch, 1, 1),
        CubeDim::new_1d(UNITS),
        logits.into_tensor_arg(),
        position.clone().into_tensor_arg(),
        tokens.clone().into_tensor_arg(),
        noise,
        table.launch(),
        kind,
    );
    (tokens, position)
}

impl Table<CubeBackend> {
    fn launch(self) -> LookupLaunch {
        let mut offsets = SequenceArg::new();
        self.offsets.into_iter().for_each(|offset| offsets.push(offset));
        LookupLaunch::new(
            self.image.into_buffer_arg(),
            offsets,
            self.states,
            self.columns,
            self.vocab_size,
            self.alphabet,
            self.layout,
            self.has_owner,
            self.ends,
            self.depth,
            self.pushes,
            self.landings,
            self.landings > 0,
        )
    }
}

impl Table<Dispatch> {
    fn of(image: &Image) -> Self {
        let sizes = &image.sizes;
        Self {
            image: image.values.clone().into_dispatch(),
            offsets: image.offsets.map(|offset| offset as u32),
            states: sizes.states as u32,
            columns: sizes.columns as u32,
            vocab_size: sizes.vocab_size as u32,
            alphabet: sizes.alphabet as u32,
            layout: match sizes.layout {
                Layout::Dense => DENSE,
                Layout::Classes => CLASSES,
                Layout::Walk => WALK,
            },
            has_owner: sizes.has_owner(),
            ends: sizes.ends as u32,
            depth: sizes.depth as u32,
            pushes: sizes.pushes as u32,
            landings: sizes.landings as u32,
        }
    }
}

impl Gumbel<Dispatch> {
    fn of(sampler: &GumbelMax, step: Tensor<1, Int>) -> Self {
        Self {
            step: step.into_dispatch(),
            keys: sampler.keys().into_dispatch(),
            quantiles: sampler.quantiles().into_dispatch(),
        }
    }
}

/// The tensor itself if it has no other handle, else a copy.
fn own(tensor: CubeTensor) -> CubeTensor {
    if tensor.can_mut() { tensor } else { tensor.copy() }
}

/// [`super::mask`] on CubeCL.
pub(super) fn mask(
    image: &Image,
    logits: Tensor<2>,
    position: Position,
    tokens: Tensor<1, Int>,
) -> (Tensor<2>, Position) {
    let (logits, position) = <Dispatch as CubeStep>::mask_step(
        logits.into_dispatch(),
        position.values.into_dispatch(),
        tokens.into_dispatch(),
        Table::of(image),
    );
    (Tensor::from_dispatch(logits), Position { values: Tensor::from_dispatch(position) })
}

/// [`super::choose`] on CubeCL.
pub(super) fn choose(
    image: &Image,
    logits: Tensor<2>,
    position: Position,
    tokens: Tensor<1, Int>,
    step: Tensor<1, Int>,
    rule: FusedSampler,
) -> (Tensor<1, Int>, Position) {
    let (logits, tokens) = (logits.into_dispatch(), tokens.into_dispatch());
    let (position, table) = (position.values.into_dispatch(), Table::of(image));
    let (tokens, position) = match rule {
        FusedSampler::Greedy => <Dispatch as CubeStep>::greedy_step(logits, position, tokens, table),
        FusedSampler::GumbelMax(sampler) => {
            let noise = Gumbel::of(sampler, step);
            <Dispatch as CubeStep>::gumbel_step(logits, position, tokens, table, noise)
        }
    };
    (Tensor::from_dispatch(tokens), Position { values: Tensor::from_dispatch(position) })
}
