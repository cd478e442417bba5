//! The step on CubeCL: WGPU, Vulkan, CUDA; and Fusion, which passes it on.

use burn::backend::cubecl::dtype_to_storage_type;
use burn::backend::tensor::{FloatTensor, IntTensor};
use burn::backend::{Backend, Dispatch, ExtensionType, TensorMetadata, backend_extension};
use burn::tensor::{Int, Tensor};
use burn_cubecl::CubeBackend;
use burn_cubecl::ops::numeric::empty_device_dtype;
use burn_cubecl::tensor::CubeTensor;
use cubecl::prelude::{CubeCount, CubeDim, InputScalar};

use super::kernels::{UNITS, greedy_kernel, gumbel_kernel, mask_kernel};
use super::lookup::{CLASSES, DENSE, LookupLaunch, WALK};
use super::{Cursor, Moved};
use crate::sampling::{GumbelMax, Rule};
use crate::tensor::{Layout, Tensors};

/// The arrays of a table, see `Tensors`.
#[derive(ExtensionType)]
#[extension_type(fusion: cfg(feature = "fusion"))]
pub(crate) struct Arrays<B: Backend> {
    next: IntTensor<B>,
    class: IntTensor<B>,
    owner: IntTensor<B>,
    reading: IntTensor<B>,
    offsets: IntTensor<B>,
    symbols: IntTensor<B>,
    column: IntTensor<B>,
    tokens_to_end: IntTensor<B>,
    width: u32,
    layout: u32,
    has_owner: bool,
}

/// What the noise is made of, see `GumbelMax`.
#[derive(ExtensionType)]
#[extension_type(fusion: cfg(feature = "fusion"))]
pub(crate) struct Noise<B: Backend> {
    step: IntTensor<B>,
    low: IntTensor<B>,
    high: IntTensor<B>,
    quantiles: FloatTensor<B>,
    factor: f32,
}

/// Integers are `i32`; `tokens`, `states` and `remaining` are `[batch]`, `logits` `[batch, width]`.
#[backend_extension(Cube, Fusion: cfg(feature = "fusion"))]
pub(crate) trait CubeStep: Backend {
    /// The masked logits, the next states and what remains.
    #[fusion(meta = |logits, _tokens, states, remaining, _table| (logits.clone(), states.clone(), remaining.clone()))]
    fn mask_step(
        logits: FloatTensor<Self>,
        tokens: IntTensor<Self>,
        states: IntTensor<Self>,
        remaining: IntTensor<Self>,
        #[extension_type] table: Arrays<Self>,
    ) -> (FloatTensor<Self>, IntTensor<Self>, IntTensor<Self>);

    /// The tokens of the greatest legal logits, the next states and what remains, in place of the old ones.
    #[fusion(meta = |_logits, tokens, states, remaining, _table| (tokens.clone(), states.clone(), remaining.clone()))]
    fn greedy_step(
        logits: FloatTensor<Self>,
        tokens: IntTensor<Self>,
        states: IntTensor<Self>,
        remaining: IntTensor<Self>,
        #[extension_type] table: Arrays<Self>,
    ) -> (IntTensor<Self>, IntTensor<Self>, IntTensor<Self>);

    /// As `greedy_step`, after the noise.
    #[fusion(meta = |_logits, tokens, states, remaining, _table, _noise| (tokens.clone(), states.clone(), remaining.clone()))]
    fn gumbel_step(
        logits: FloatTensor<Self>,
        tokens: IntTensor<Self>,
        states: IntTensor<Self>,
        remaining: IntTensor<Self>,
        #[extension_type] table: Arrays<Self>,
        #[extension_type] noise: Noise<Self>,
    ) -> (IntTensor<Self>, IntTensor<Self>, IntTensor<Self>);
}

impl CubeStep for CubeBackend {
    fn mask_step(
        logits: CubeTensor,
        tokens: CubeTensor,
        states: CubeTensor,
        remaining: CubeTensor,
        table: Arrays<Self>,
    ) -> (CubeTensor, CubeTensor, CubeTensor) {
        let client = logits.client.clone();
        let like = |tensor: &CubeTensor| {
            empty_device_dtype(client.clone(), tensor.device.clone(), tensor.shape(), tensor.dtype)
        };
        let (masked, next_states, next_remaining) = (like(&logits), like(&states), like(&remaining));
        let kind = dtype_to_storage_type(logits.dtype);
        let batch = logits.shape()[0] as u32;
        mask_kernel::launch(
            &client,
            CubeCount::Static(table.width.div_ceil(UNITS), batch, 1),
            CubeDim::new_1d(UNITS),
            logits.into_tensor_arg(),
            tokens.into_tensor_arg(),
            states.into_tensor_arg(),
            remaining.into_tensor_arg(),
            table.launch(),
            masked.clone().into_tensor_arg(),
            next_states.clone().into_tensor_arg(),
            next_remaining.clone().into_tensor_arg(),
            InputScalar::new(f32::NEG_INFINITY, kind),
            kind,
        );
        (masked, next_states, next_remaining)
    }

    fn greedy_step(
        logits: CubeTensor,
        tokens: CubeTensor,
        states: CubeTensor,
        remaining: CubeTensor,
        table: Arrays<Self>,
    ) -> (CubeTensor, CubeTensor, CubeTensor) {
        let client = logits.client.clone();
        let kind = dtype_to_storage_type(logits.dtype);
        let batch = logits.shape()[0] as u32;
        let [tokens, states, remaining] = [tokens, states, remaining].map(own);
        greedy_kernel::launch(
            &client,
            CubeCount::Static(batch, 1, 1),
            CubeDim::new_1d(UNITS),
            logits.into_tensor_arg(),
            tokens.clone().into_tensor_arg(),
            states.clone().into_tensor_arg(),
            remaining.clone().into_tensor_arg(),
            table.launch(),
            kind,
        );
        (tokens, states, remaining)
    }

    fn gumbel_step(
        logits: CubeTensor,
        tokens: CubeTensor,
        states: CubeTensor,
        remaining: CubeTensor,
        table: Arrays<Self>,
        noise: Noise<Self>,
    ) -> (CubeTensor, CubeTensor, CubeTensor) {
        let client = logits.client.clone();
        let kind = dtype_to_storage_type(logits.dtype);
        let batch = logits.shape()[0] as u32;
        let [tokens, states, remaining] = [tokens, states, remaining].map(own);
        gumbel_kernel::launch(
            &client,
            CubeCount::Static(batch, 1, 1),
            CubeDim::new_1d(UNITS),
            logits.into_tensor_arg(),
            tokens.clone().into_tensor_arg(),
            states.clone().into_tensor_arg(),
            remaining.clone().into_tensor_arg(),
            noise.step.into_tensor_arg(),
            noise.low.into_tensor_arg(),
            noise.high.into_tensor_arg(),
            noise.quantiles.into_tensor_arg(),
            noise.factor,
            table.launch(),
            kind,
        );
        (tokens, states, remaining)
    }
}

impl Arrays<CubeBackend> {
    fn launch(self) -> LookupLaunch {
        let (states, columns) = (self.next.shape()[0] as u32, self.next.shape()[1] as u32);
        let alphabet = self.column.shape()[1] as u32;
        LookupLaunch::new(
            self.next.into_buffer_arg(),
            self.class.into_buffer_arg(),
            self.owner.into_buffer_arg(),
            self.reading.into_buffer_arg(),
            self.offsets.into_buffer_arg(),
            self.symbols.into_buffer_arg(),
            self.column.into_buffer_arg(),
            self.tokens_to_end.into_buffer_arg(),
            states,
            columns,
            self.width,
            alphabet,
            self.layout,
            self.has_owner,
        )
    }
}

impl Arrays<Dispatch> {
    fn of(table: &Tensors, width: usize) -> Self {
        Self {
            next: table.next.clone().into_dispatch(),
            class: table.class.clone().into_dispatch(),
            owner: table.owner.clone().into_dispatch(),
            reading: table.reading.clone().into_dispatch(),
            offsets: table.offsets.clone().into_dispatch(),
            symbols: table.symbols.clone().into_dispatch(),
            column: table.column.clone().into_dispatch(),
            tokens_to_end: table.tokens_to_end.clone().into_dispatch(),
            width: width as u32,
            layout: match table.layout {
                Layout::Dense => DENSE,
                Layout::Classes => CLASSES,
                Layout::Walk => WALK,
            },
            has_owner: table.has_owner,
        }
    }
}

impl Noise<Dispatch> {
    fn of(sampler: &GumbelMax, step: Tensor<1, Int>) -> Self {
        let [low, high] = sampler.halves();
        Self {
            step: step.into_dispatch(),
            low: low.into_dispatch(),
            high: high.into_dispatch(),
            quantiles: sampler.quantiles().into_dispatch(),
            factor: sampler.keys().factor(),
        }
    }
}

/// The tensor itself where nobody else holds it, else a copy.
fn own(tensor: CubeTensor) -> CubeTensor {
    if tensor.can_mut() { tensor } else { tensor.copy() }
}

/// [`super::mask`] on CubeCL.
pub(super) fn mask(table: &Tensors, width: usize, logits: Tensor<2>, at: Cursor) -> (Tensor<2>, Moved) {
    let (logits, states, remaining) = <Dispatch as CubeStep>::mask_step(
        logits.into_dispatch(),
        at.tokens.into_dispatch(),
        at.states.into_dispatch(),
        at.remaining.into_dispatch(),
        Arrays::of(table, width),
    );
    let moved = Moved { states: Tensor::from_dispatch(states), remaining: Tensor::from_dispatch(remaining) };
    (Tensor::from_dispatch(logits), moved)
}

/// [`super::choose`] on CubeCL.
pub(super) fn choose(
    table: &Tensors,
    width: usize,
    logits: Tensor<2>,
    at: Cursor,
    step: Tensor<1, Int>,
    rule: Rule,
) -> (Tensor<1, Int>, Moved) {
    let (logits, tokens) = (logits.into_dispatch(), at.tokens.into_dispatch());
    let (states, remaining) = (at.states.into_dispatch(), at.remaining.into_dispatch());
    let table = Arrays::of(table, width);
    let (tokens, states, remaining) = match rule {
        Rule::Greedy => <Dispatch as CubeStep>::greedy_step(logits, tokens, states, remaining, table),
        Rule::GumbelMax(sampler) => {
            let noise = Noise::of(sampler, step);
            <Dispatch as CubeStep>::gumbel_step(logits, tokens, states, remaining, table, noise)
        }
    };
    let moved = Moved { states: Tensor::from_dispatch(states), remaining: Tensor::from_dispatch(remaining) };
    (Tensor::from_dispatch(tokens), moved)
}
