//! A device of compute capability 9.0 that is not there, and arguments without memory.

use std::sync::Arc;

use cubecl::cmma::MatrixLayout;

use cubecl::features::Plane;
use cubecl::ir::{
    ContiguousElements, DeviceIdentity, HardwareProperties, MemoryDeviceProperties, MmaProperties,
};
use cubecl::prelude::{BufferArg, DeviceProperties, TargetProperties, TensorArg, TensorBinding, VectorSize};
use cubecl::profile::TimingMethod;
use cubecl::server::Handle;
use cubecl::zspace::Tiling;
use cubecl_core::device::{DeviceId, ServiceId};
use cubecl_core::environment::stream::StreamId;
use cubecl_cpp::register_supported_types;
use cubecl_cpp::shared::{CompilationOptions, CppSupportedFeatures};

/// As `cubecl-cuda` fills them in for an H100, as far as the kernels ask.
pub(super) fn properties() -> Arc<DeviceProperties> {
    let hardware = HardwareProperties {
        load_width: 128,
        vector_register_count: None,
        plane_size_min: 32,
        plane_size_max: 32,
        max_bindings: 1024,
        max_shared_memory_size: 232_448,
        max_cube_count: (i32::MAX as u32, 65_535, 65_535),
        max_units_per_cube: 1024,
        max_cube_dim: (1024, 1024, 64),
        num_streaming_multiprocessors: Some(132),
        num_tensor_cores: Some(4),
        min_tensor_cores_dim: Some(8),
        num_cpu_cores: None,
        last_level_cache_size: None,
        max_vector_size: VectorSize::MAX,
        cube_mma_reserved_shared_memory: 0,
    };
    let memory = MemoryDeviceProperties::new(1 << 34, 512);
    let identity = DeviceIdentity { name: "sm_90".into(), fingerprint: "ptx_sm90".into(), physical: None };
    let mut properties =
        DeviceProperties::new(Default::default(), memory, hardware, TimingMethod::Device, identity);
    register_supported_types(&mut properties);
    let features = &mut properties.features;
    features.memory_reinterpret = true;
    features.alignment = true;
    features.device_memory_scope = true;
    features.plane |= Plane::Ops | Plane::Sync | Plane::NonUniformControlFlow;
    Arc::new(properties)
}

/// Of matrices, which no kernel here uses.
pub(super) fn target() -> Arc<TargetProperties> {
    Arc::new(TargetProperties {
        mma: MmaProperties {
            register_size_bits: 32,
            const_plane_size: 32,
            register_layout_a: MatrixLayout::RowMajor,
            register_layout_b: MatrixLayout::ColMajor,
            register_layout_acc: MatrixLayout::RowMajor,
            register_duplication_a: 1,
            register_duplication_b: 1,
            register_duplication_acc: 1,
            contiguous_elements: ContiguousElements::new(|_, _, _| 2),
        },
    })
}

pub(super) fn options() -> CompilationOptions {
    CompilationOptions {
        supports_features: CppSupportedFeatures {
            grid_constants: true,
            clusters: true,
            fast_math: true,
            fast_tanh: true,
            elect_sync: true,
            dp4a: true,
        },
        ..Default::default()
    }
}

/// A contiguous tensor, whose elements have a size of `bytes`.
pub(super) fn tensor(shape: &[usize], bytes: usize) -> TensorArg {
    let mut strides = vec![1; shape.len()];
    for at in (1..shape.len()).rev() {
        strides[at - 1] = strides[at] * shape[at];
    }
    let service = ServiceId::of::<()>(DeviceId::new(0, 0));
    let size = (shape.iter().product::<usize>() * bytes) as u64;
    let handle = Handle::new(service, StreamId::current(), size).binding();
    let (shape, strides) = (shape.to_vec().into(), strides.into());
    TensorArg::Handle { handle: TensorBinding { handle, strides, shape, tiling: Tiling::UNTILED } }
}

/// A buffer of numbers of 32 bits.
pub(super) fn buffer(size: usize) -> BufferArg {
    tensor(&[size], 4).into_buffer_arg()
}
