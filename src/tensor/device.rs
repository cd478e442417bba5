//! Capabilities of a device.

use burn::backend::DispatchDevice;
use burn::tensor::{DType, Device};

/// Whether the fused operations exist on `device`.
pub(crate) fn is_fused(device: &Device) -> bool {
    match device.as_dispatch() {
        #[cfg(feature = "flex")]
        DispatchDevice::Flex(_) => true,
        #[cfg(feature = "cube")]
        DispatchDevice::Cube(_) => true,
        #[cfg(feature = "remote")]
        DispatchDevice::Remote(_) => crate::remote::hosts_operations(device),
        #[allow(unreachable_patterns, reason = "which other backends there are depends on features")]
        _ => false,
    }
}

/// Whether `device` records operations and replays them.
pub(crate) fn records(device: &Device) -> bool {
    runs_kernels(device)
}

/// Whether `device` may record a step and replay it, so the recorded number of operations applies
/// to all later constraints.
pub(super) fn keeps_steps(device: &Device) -> bool {
    match device.as_dispatch() {
        #[cfg(feature = "flex")]
        DispatchDevice::Flex(_) => false,
        #[cfg(feature = "remote")]
        DispatchDevice::Remote(_) => false,
        #[allow(unreachable_patterns, reason = "which other backends there are depends on features")]
        _ => true,
    }
}

/// Whether the fused operations of `device` are kernels.
pub(crate) fn runs_kernels(device: &Device) -> bool {
    match device.as_dispatch() {
        #[cfg(feature = "cube")]
        DispatchDevice::Cube(_) => true,
        #[allow(unreachable_patterns, reason = "which other backends there are depends on features")]
        _ => false,
    }
}

/// Whether the fused operations read logits of this type.
pub(crate) fn reads(dtype: DType) -> bool {
    matches!(dtype, DType::F32 | DType::F16 | DType::BF16)
}

/// The maximum size in bytes of one tensor that a kernel can read on `device`, if limited.
pub(crate) fn largest_binding(device: &Device) -> Option<usize> {
    match device.as_dispatch() {
        #[cfg(feature = "cube")]
        DispatchDevice::Cube(device) => {
            Some(usize::try_from(device.client().properties().memory.max_page_size).unwrap_or(usize::MAX))
        }
        #[allow(unreachable_patterns, reason = "which other backends there are depends on features")]
        _ => None,
    }
}
