//! The step on CubeCL: WGPU, Vulkan, CUDA; and Fusion, which passes it on.

use std::ops::Range;
use std::sync::Arc;

use burn::backend::tensor::{FloatTensor, IntTensor};
use burn::backend::{Backend, Dispatch, ExtensionType, TensorMetadata, backend_extension};
use burn::tensor::{Int, Tensor};
use burn_cubecl::CubeBackend;
use burn_cubecl::kernel::into_contiguous_aligned;
use burn_cubecl::ops::numeric::empty_device_dtype;
use burn_cubecl::tensor::CubeTensor;
use cubecl::features::Plane;
use cubecl::prelude::{BufferArg, CubeCount, CubeDim, SequenceArg};

use super::advance::{SourceArgs, advance_kernel};
use super::choose::{choose_kernel, merge_kernel};
use super::follow::follow_kernel;
use super::load::Load;
use super::lookup::LookupLaunch;
use super::mask::{mask_in_place_kernel, mask_kernel};
use super::noise::{GumbelKeysLaunch, KeysArgs, NoiseArgs};
use super::packing::Packing;
use super::rows::{ARRIVED, BEST, RowsLaunch};
use super::tile::{AT_ONCE, UNITS};
use crate::kernel::grids;
use crate::sampling::{FusedSampler, GumbelMax};
use crate::tensor::mask_rows::{MaskRows, PoolSizes, tiles};
use crate::tensor::{Array, Image, MAX_PUSHED, Position};

/// About as many cubes as a large GPU runs at a time: 8 on each of an H200's 132 multiprocessors.
const FEW_CUBES: usize = 1024;

/// The image of a device constraint, see `tensor::Image`.
#[derive(ExtensionType)]
#[extension_type(fusion: cfg(feature = "fusion"))]
pub(crate) struct KernelImage<B: Backend> {
    image: IntTensor<B>,
    offsets: [u32; Array::ALL.len()],
    states: u32,
    columns: u32,
    vocab_size: u32,
    alphabet: u32,
    is_byte_level: bool,
    has_owner: bool,
    exits: u32,
    depth: u32,
    pushes: u32,
    /// The mask rows of the batch; arbitrary without `rows`.
    pool: IntTensor<B>,
    rows: Option<PoolSizes>,
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
    #[fusion(meta = |logits, position, _tokens, _image| (logits.clone(), position.clone()))]
    fn mask_step(
        logits: FloatTensor<Self>,
        position: IntTensor<Self>,
        tokens: IntTensor<Self>,
        #[extension_type] image: KernelImage<Self>,
    ) -> (FloatTensor<Self>, IntTensor<Self>);

    /// The positions after the nodes of a tree of tokens, `[batch, nodes, numbers]`, written into
    /// `tree`; `tokens` are `[batch, nodes]`.
    #[fusion(meta = |tree, _position, _tokens, _parents, _image| tree.clone())]
    fn follow_step(
        tree: IntTensor<Self>,
        position: IntTensor<Self>,
        tokens: IntTensor<Self>,
        parents: Arc<[usize]>,
        #[extension_type] image: KernelImage<Self>,
    ) -> IntTensor<Self>;

    /// The tokens of the greatest legal logits and the next position, written in place.
    #[fusion(meta = |_logits, position, tokens, _image| (tokens.clone(), position.clone()))]
    fn greedy_step(
        logits: FloatTensor<Self>,
        position: IntTensor<Self>,
        tokens: IntTensor<Self>,
        #[extension_type] image: KernelImage<Self>,
    ) -> (IntTensor<Self>, IntTensor<Self>);

    /// As `greedy_step`, after adding the noise.
    #[fusion(meta = |_logits, position, tokens, _image, _noise| (tokens.clone(), position.clone()))]
    fn gumbel_step(
        logits: FloatTensor<Self>,
        position: IntTensor<Self>,
        tokens: IntTensor<Self>,
        #[extension_type] image: KernelImage<Self>,
        #[extension_type] noise: Gumbel<Self>,
    ) -> (IntTensor<Self>, IntTensor<Self>);
}

impl CubeStep for CubeBackend {
    fn mask_step(
        logits: CubeTensor,
        position: CubeTensor,
        tokens: CubeTensor,
        image: KernelImage<Self>,
    ) -> (CubeTensor, CubeTensor) {
        let logits = into_contiguous_aligned(logits);
        let client = logits.client.clone();
        let like = |tensor: &CubeTensor| {
            empty_device_dtype(client.clone(), tensor.device.clone(), tensor.shape(), tensor.dtype)
        };
        let next = like(&position);
        let batch = logits.shape()[0];
        let plans = integers(&position, batch * ARRIVED);
        let source = SourceArgs::Other(position.into_tensor_arg());
        launch_advance(source, &next, tokens, KeysArgs::None, &image, &plans, ARRIVED);
        let load = Load::of(&logits);
        let tiles = tiles(image.vocab_size as usize) as u32;
        // A copy, or the logits themselves if they have no other handle.
        let masked = if logits.can_mut() { None } else { Some(like(&logits)) };
        for (first_row, rows) in grids(batch, client.properties().hardware.max_cube_count.1) {
            let cubes = CubeCount::Static(tiles, rows, 1);
            match &masked {
                None => mask_in_place_kernel::launch(
                    &client,
                    cubes,
                    CubeDim::new_1d(UNITS),
                    logits.required_address_type(),
                    load.numbers,
                    logits.clone().into_tensor_arg(),
                    next.clone().into_tensor_arg(),
                    plans.clone().into_buffer_arg(),
                    image.launch(),
                    image.rows(),
                    image.pool(),
                    load.vectors(&logits),
                    row_stride(&next),
                    ARRIVED as u32,
                    first_row,
                    load.packing.never(load.kind),
                    load.packing,
                    load.kind,
                ),
                Some(masked) => mask_kernel::launch(
                    &client,
                    cubes,
                    CubeDim::new_1d(UNITS),
                    logits.required_address_type().max(masked.required_address_type()),
                    load.numbers,
                    logits.clone().into_tensor_arg(),
                    next.clone().into_tensor_arg(),
                    plans.clone().into_buffer_arg(),
                    image.launch(),
                    image.rows(),
                    image.pool(),
                    masked.clone().into_tensor_arg(),
                    at_once(batch * tiles as usize),
                    load.vectors(&logits),
                    load.vectors(masked),
                    row_stride(&next),
                    ARRIVED as u32,
                    first_row,
                    load.packing.never(load.kind),
                    load.packing,
                    load.kind,
                ),
            }
        }
        (masked.unwrap_or(logits), next)
    }

    fn follow_step(
        tree: CubeTensor,
        position: CubeTensor,
        tokens: CubeTensor,
        parents: Arc<[usize]>,
        image: KernelImage<Self>,
    ) -> CubeTensor {
        let tree = own(tree);
        for branch in branches(&parents) {
            follow_kernel::launch(
                &tree.client,
                CubeCount::Static((tree.shape()[0] as u32).div_ceil(UNITS), 1, 1),
                CubeDim::new_1d(UNITS),
                position.clone().into_tensor_arg(),
                tokens.clone().into_tensor_arg(),
                image.launch(),
                tree.clone().into_tensor_arg(),
                branch.start as u32,
                parents[branch.start] as u32,
                branch.len() as u32,
            );
        }
        tree
    }

    fn greedy_step(
        logits: CubeTensor,
        position: CubeTensor,
        tokens: CubeTensor,
        image: KernelImage<Self>,
    ) -> (CubeTensor, CubeTensor) {
        launch_choose(logits, position, tokens, image, None)
    }

    fn gumbel_step(
        logits: CubeTensor,
        position: CubeTensor,
        tokens: CubeTensor,
        image: KernelImage<Self>,
        noise: Gumbel<Self>,
    ) -> (CubeTensor, CubeTensor) {
        launch_choose(logits, position, tokens, image, Some(noise))
    }
}

/// The branches of a tree: ranges of nodes in which each node follows the one before it. A chain is
/// one branch.
fn branches(parents: &[usize]) -> Vec<Range<usize>> {
    let mut branches: Vec<Range<usize>> = Vec::new();
    for (node, &parent) in parents.iter().enumerate() {
        match branches.last_mut() {
            Some(branch) if parent + 1 == node => branch.end += 1,
            _ => branches.push(node..node + 1),
        }
    }
    branches
}

/// Advances positions by `tokens`, in place if there is no other source, and writes the plans of
/// the rows.
fn launch_advance(
    source: SourceArgs,
    position: &CubeTensor,
    tokens: CubeTensor,
    keys: KeysArgs,
    image: &KernelImage<CubeBackend>,
    plans: &CubeTensor,
    stride: usize,
) {
    advance_kernel::launch(
        &position.client,
        CubeCount::Static(1, 1, 1),
        CubeDim::new_1d(UNITS),
        source,
        position.clone().into_tensor_arg(),
        tokens.into_tensor_arg(),
        keys,
        image.launch(),
        image.rows(),
        image.pool(),
        plans.clone().into_buffer_arg(),
        stride as u32,
    );
}

/// Returns the chosen tokens and the next position.
fn launch_choose(
    logits: CubeTensor,
    position: CubeTensor,
    tokens: CubeTensor,
    image: KernelImage<CubeBackend>,
    noise: Option<Gumbel<CubeBackend>>,
) -> (CubeTensor, CubeTensor) {
    let logits = into_contiguous_aligned(logits);
    let client = logits.client.clone();
    let load = Load::of(&logits);
    // Logits with noise are `f32`.
    let infinity = if noise.is_some() { Packing::One } else { load.packing }.infinity();
    let batch = logits.shape()[0];
    let tiles = tiles(image.vocab_size as usize);
    let features = &client.properties().features;
    let merges = tiles == 1 || features.device_memory_scope || is_forced(MERGES);
    let planes = features.plane.contains(Plane::Ops) || is_forced(PLANES);
    // On CUDA, rows of two numbers are apart in memory, and stay so: a copy would be another
    // buffer.
    let [position, tokens] = [into_contiguous_aligned(position), tokens].map(own);
    let stride = BEST + 2 * tiles;
    let plans = integers(&position, batch * stride);
    launch_advance(
        SourceArgs::InPlace,
        &position,
        tokens.clone(),
        noise.as_ref().map_or(KeysArgs::None, Gumbel::launch_keys),
        &image,
        &plans,
        stride,
    );
    let max_cubes = client.properties().hardware.max_cube_count;
    for (first_row, rows) in grids(batch, max_cubes.1) {
        choose_kernel::launch(
            &client,
            CubeCount::Static(tiles as u32, rows, 1),
            CubeDim::new_1d(UNITS),
            logits.required_address_type(),
            load.numbers,
            logits.clone().into_tensor_arg(),
            position.clone().into_tensor_arg(),
            tokens.clone().into_tensor_arg(),
            noise.as_ref().map_or(NoiseArgs::None, Gumbel::launch_noise),
            plans.clone().into_buffer_arg(),
            image.launch(),
            image.rows(),
            image.pool(),
            tiles as u32,
            load.vectors(&logits),
            row_stride(&position),
            stride as u32,
            first_row,
            rows < batch as u32,
            merges,
            planes,
            at_once(batch * tiles),
            load.packing,
            infinity,
            load.kind,
        );
    }
    if !merges {
        for (first_row, rows) in grids(batch, max_cubes.0) {
            merge_kernel::launch(
                &client,
                CubeCount::Static(rows, 1, 1),
                CubeDim::new_1d(UNITS),
                plans.clone().into_buffer_arg(),
                tokens.clone().into_tensor_arg(),
                tiles as u32,
                stride as u32,
                first_row,
                planes,
            );
        }
    }
    (tokens, position)
}

/// A choice by the last cube of a row, and one with planes.
const MERGES: u8 = 1;
const PLANES: u8 = 2;

/// Whether a choice uses what the device does not promise: only in a test.
fn is_forced(_part: u8) -> bool {
    #[cfg(all(test, feature = "wgpu", not(feature = "vulkan")))]
    return tests::FORCED.load(std::sync::atomic::Ordering::Relaxed) & _part != 0;
    #[cfg(not(all(test, feature = "wgpu", not(feature = "vulkan"))))]
    false
}

/// The numbers from a row to the next one.
fn row_stride(tensor: &CubeTensor) -> u32 {
    tensor.meta.strides()[0] as u32
}

/// Uninitialized integers.
fn integers(like: &CubeTensor, count: usize) -> CubeTensor {
    empty_device_dtype(like.client.clone(), like.device.clone(), [count].into(), like.dtype)
}

/// The vectors of logits that a unit loads before it uses the first one: several, where few cubes
/// leave a device time to wait for memory. More cubes hide each other's waits.
fn at_once(cubes: usize) -> u32 {
    if cubes <= FEW_CUBES { AT_ONCE } else { 1 }
}

impl KernelImage<CubeBackend> {
    fn launch(&self) -> LookupLaunch {
        let mut offsets = SequenceArg::new();
        self.offsets.into_iter().for_each(|offset| offsets.push(offset));
        LookupLaunch::new(
            self.image.clone().into_buffer_arg(),
            offsets,
            self.states,
            self.columns,
            self.vocab_size,
            self.alphabet,
            self.is_byte_level,
            self.has_owner,
            self.exits,
            self.depth,
            self.pushes,
            self.exits > 0,
            self.frame_buffer_len(),
        )
    }

    /// The size of the array for the frames pushed by a token: one of few, because each takes
    /// another compilation of the kernels. A software Vulkan compiles a large array for minutes.
    /// 384 numbers are 64 frames of 5 exits, for an arena without `Capacity::pushes`.
    fn frame_buffer_len(&self) -> u32 {
        let needed = if self.exits > 0 { self.pushes * (self.exits + 1) } else { 0 };
        [1, 16, 64, 256, 384].into_iter().find(|&size| needed <= size).unwrap_or(MAX_PUSHED as u32)
    }

    /// The pool, or an empty buffer that no kernel reads.
    fn pool(&self) -> BufferArg {
        match self.rows {
            Some(_) => self.pool.clone().into_buffer_arg(),
            None => integers(&self.image, 1).into_buffer_arg(),
        }
    }

    fn rows(&self) -> RowsLaunch {
        let rows = self.rows.map_or([0; 4], |rows| [rows.sets, rows.ways, rows.row, rows.tile]);
        let [sets, ways, row, tile] = rows.map(|size| size as u32);
        RowsLaunch::new(sets, ways, row, tile, self.rows.is_some())
    }
}

impl KernelImage<Dispatch> {
    fn of(image: &Image, rows: &MaskRows) -> Self {
        let (sizes, pool) = (&image.sizes, rows.pool(image));
        let (rows, pool) = match pool {
            Some((rows, pool)) => (Some(rows), pool),
            None => (None, image.numbers(1)),
        };
        Self {
            pool: pool.into_dispatch(),
            rows,
            image: image.values.clone().into_dispatch(),
            offsets: image.offsets.map(|offset| offset as u32),
            states: sizes.states as u32,
            columns: sizes.columns as u32,
            vocab_size: sizes.vocab_size as u32,
            alphabet: sizes.alphabet as u32,
            is_byte_level: sizes.is_byte_level(),
            has_owner: sizes.has_owner(),
            exits: sizes.exits as u32,
            depth: sizes.depth as u32,
            pushes: sizes.pushes as u32,
        }
    }
}

impl Gumbel<CubeBackend> {
    fn launch_keys(&self) -> KeysArgs {
        let [step, keys] = [&self.step, &self.keys].map(|numbers| numbers.clone().into_tensor_arg());
        KeysArgs::Gumbel(GumbelKeysLaunch::new(step, keys))
    }

    fn launch_noise(&self) -> NoiseArgs {
        NoiseArgs::Gumbel(self.quantiles.clone().into_tensor_arg())
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
    let Position { values, rows } = position;
    let (logits, values) = <Dispatch as CubeStep>::mask_step(
        logits.into_dispatch(),
        values.into_dispatch(),
        tokens.into_dispatch(),
        KernelImage::of(image, &rows),
    );
    (Tensor::from_dispatch(logits), Position { values: Tensor::from_dispatch(values), rows })
}

/// The positions after the nodes of a tree, see [`super::mask_tree`], on CubeCL.
pub(super) fn follow(
    image: &Image,
    parents: &[usize],
    position: Position,
    tokens: Tensor<2, Int>,
) -> Position<3> {
    let Position { values, rows } = position;
    let ([batch, numbers], nodes) = (values.dims(), parents.len());
    let tree = Tensor::<3, Int>::empty([batch, nodes, numbers], (&values.device(), values.dtype()));
    let tree = <Dispatch as CubeStep>::follow_step(
        tree.into_dispatch(),
        values.into_dispatch(),
        tokens.into_dispatch(),
        parents.into(),
        KernelImage::of(image, &MaskRows::default()),
    );
    Position { values: Tensor::from_dispatch(tree), rows }
}

/// [`super::choose`] on CubeCL.
pub(super) fn choose(
    image: &Image,
    logits: Tensor<2>,
    position: Position,
    tokens: Tensor<1, Int>,
    step: Tensor<1, Int>,
    fused: FusedSampler,
) -> (Tensor<1, Int>, Position) {
    let Position { values, rows } = position;
    let (logits, tokens) = (logits.into_dispatch(), tokens.into_dispatch());
    let (values, image) = (values.into_dispatch(), KernelImage::of(image, &rows));
    let (tokens, values) = match fused {
        FusedSampler::Greedy => <Dispatch as CubeStep>::greedy_step(logits, values, tokens, image),
        FusedSampler::GumbelMax(sampler) => {
            let noise = Gumbel::of(sampler, step);
            <Dispatch as CubeStep>::gumbel_step(logits, values, tokens, image, noise)
        }
    };
    (Tensor::from_dispatch(tokens), Position { values: Tensor::from_dispatch(values), rows })
}

#[cfg(all(test, feature = "wgpu", not(feature = "vulkan")))]
mod tests {
    use std::sync::atomic::{AtomicU8, Ordering};

    use burn::tensor::{DType, Tensor, TensorData};
    use burn_dfa_testing::skip::skipped;

    use super::{MERGES, PLANES};
    use crate::processor::{ConstraintProcessor, LogitsProcessor, StepContext};
    use crate::sampling::{Greedy, GumbelMax, Sampler};
    use crate::tensor::mask_rows::tests::on_a_device::wgpu;
    use crate::{CompiledConstraint, Constraint, DeviceConstraint, Limits, TensorOptions};

    pub(super) static FORCED: AtomicU8 = AtomicU8::new(0);

    /// Forces until it is dropped, also by a panic.
    struct Force;

    impl Force {
        fn begin(parts: u8) -> Self {
            FORCED.store(parts, Ordering::Relaxed);
            Self
        }
    }

    impl Drop for Force {
        fn drop(&mut self) {
            FORCED.store(0, Ordering::Relaxed);
        }
    }

    /// WGSL promises no order of memory between cubes, and CubeCL no planes on Mesa's software
    /// Vulkan, which has both. So a choice by the last cube of a row, as on CUDA, runs there too.
    #[test]
    fn the_last_cube_and_planes_choose_as_a_third_kernel_does() {
        let Some(device) = wgpu() else { return };
        if !device.identity().is_some_and(|identity| identity.name.contains("llvmpipe")) {
            return skipped("a choice by the last cube on WGPU: the device is not Mesa's software Vulkan");
        }
        let words: Vec<String> = (0..20_000).map(|word| format!("w{word}\"")).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let vocabulary = burn_dfa_testing::words::vocabulary_of(&words);
        let (rows, vocab_size) = (7, vocabulary.len().next_multiple_of(8));
        let constraint = Constraint::regex("(w[0-9]+\")+").unwrap();
        let compiled =
            CompiledConstraint::compile_byte_level(&constraint, &vocabulary, &Limits::default()).unwrap();
        let on_device =
            DeviceConstraint::new(&[&compiled], vocab_size, &TensorOptions::new(), &device).unwrap();
        let processor = ConstraintProcessor::new(on_device, &vec![0; rows]).unwrap();
        // Each greatest logit is in several tiles; in the last rows it is NaN, or all are −∞.
        let logit = |at: usize| match (at / vocab_size, at % vocab_size) {
            (5, 9_000 | 15_000) => f32::NAN,
            (6, _) => f32::NEG_INFINITY,
            (row, token) => ((row * 7_919 + token * 104_729) % 4_999) as f32,
        };
        let data = TensorData::new((0..rows * vocab_size).map(logit).collect(), [rows, vocab_size]);
        let choices = |sampler: &dyn Sampler, dtype: DType, forced: u8| {
            let _force = Force::begin(forced);
            let mut position = processor.start();
            let mut context = StepContext {
                tokens: Tensor::full([rows], vocab_size as i32, (&device, DType::I32)),
                step: Tensor::zeros([1], (&device, DType::I32)),
            };
            let mut step = || {
                let logits = Tensor::<2>::from_data(data.clone().convert_dtype(dtype), (&device, dtype));
                processor.sample_step(&mut position, &mut context, logits, sampler);
                context.tokens.clone().into_data().try_to_vec::<i32>().unwrap()
            };
            (0..20).map(|_| step()).collect::<Vec<Vec<i32>>>()
        };
        let gumbel = GumbelMax::new(&[7; 7], vocab_size, &device).unwrap();
        let dtypes = [DType::F32, DType::F16].into_iter().filter(|dtype| device.supports_dtype(*dtype));
        for (dtype, sampler) in dtypes.flat_map(|dtype| [(dtype, &Greedy as &dyn Sampler), (dtype, &gumbel)])
        {
            let expected = choices(sampler, dtype, 0);
            assert!(expected[0].iter().collect::<std::collections::HashSet<_>>().len() > 4, "{expected:?}");
            for forced in [MERGES, PLANES, MERGES | PLANES] {
                assert_eq!(choices(sampler, dtype, forced), expected, "{dtype:?}, forced {forced}");
            }
        }
    }
}
