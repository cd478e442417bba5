//! On GPUs: the launch of the [kernel](super::search).

use burn::backend::{TensorMetadata, cubecl::dtype_to_storage_type};
use burn::tensor::DType;
use burn_cubecl::{CubeBackend, ops::numeric::empty_device_dtype, tensor::CubeTensor};
use cubecl::prelude::{CubeCount, CubeDim, InputScalar};

use super::FilterOps;
use super::search;
use crate::kernel::grids;

impl FilterOps for CubeBackend {
    fn filter_top_k(logits: CubeTensor, k: CubeTensor) -> CubeTensor {
        keep(logits, k, false)
    }

    fn filter_top_p(logits: CubeTensor, p: CubeTensor) -> CubeTensor {
        keep(logits, p, true)
    }
}

/// Launches one cube per row.
fn keep(logits: CubeTensor, wanted: CubeTensor, by_mass: bool) -> CubeTensor {
    let (client, dtype) = (logits.client.clone(), logits.dtype);
    let kept = empty_device_dtype(client.clone(), logits.device.clone(), logits.shape(), dtype);
    let hardware = &client.properties().hardware;
    // The first one, and one for each byte that differs between the keys of a type.
    let digits = match dtype {
        DType::BF16 => 3,
        DType::F16 => 4,
        _ => 5,
    };
    let units = hardware.max_units_per_cube.min(1024);
    let address_type = logits.required_address_type().max(kept.required_address_type());
    for (first_row, rows) in grids(logits.meta.shape()[0], hardware.max_cube_count.0) {
        search::keep::launch(
            &client,
            CubeCount::Static(rows, 1, 1),
            CubeDim::new_1d(units),
            address_type,
            vector_size(&logits).min(vector_size(&kept)),
            logits.clone().into_tensor_arg(),
            kept.clone().into_tensor_arg(),
            wanted.clone().into_tensor_arg(),
            InputScalar::new(f32::NEG_INFINITY, dtype_to_storage_type(dtype)),
            first_row,
            by_mass,
            digits,
            dtype_to_storage_type(dtype),
        );
    }
    kept
}

/// The number of logits that a unit loads at once: up to 16 bytes, and up to four logits in WGSL.
fn vector_size(logits: &CubeTensor) -> usize {
    let bytes = logits.dtype.size();
    let sizes = logits.client.io_optimized_vector_sizes(bytes).filter(|size| size * bytes <= 16);
    cubecl::tensor_vector_size_parallel(sizes, logits.meta.shape(), logits.meta.strides(), 1)
}
