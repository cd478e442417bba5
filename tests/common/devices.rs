//! The devices of this build on this machine.

use burn::tensor::Device;

#[cfg(any(feature = "vulkan", feature = "wgpu", feature = "cuda"))]
use burn_dfa_testing::skip::skipped;

/// If set, a missing Vulkan, which WGPU needs, fails the tests instead of skipping them.
#[cfg(any(feature = "vulkan", feature = "wgpu", feature = "cuda"))]
const REQUIRE: &str = "BURN_DFA_REQUIRE_VULKAN";

/// The device named by `BURN_DEVICE`; without it Flex, and the available GPU backends of the
/// enabled features.
///
/// # Panics
/// If the named device does not exist.
#[allow(unused_mut)]
pub fn all() -> Vec<(&'static str, Device)> {
    let named = std::env::var("BURN_DEVICE").ok();
    let is_asked_for = |name: &str| named.as_deref().is_none_or(|named| named == name);
    let mut devices = Vec::new();
    if is_asked_for("flex") {
        devices.push(("flex", Device::flex()));
    }
    #[cfg(feature = "vulkan")]
    if is_asked_for("vulkan") {
        devices.extend(probe("vulkan", || Device::vulkan(burn::tensor::DeviceKind::DefaultDevice)));
    }
    #[cfg(feature = "wgpu")]
    if is_asked_for("wgpu") {
        devices.extend(probe("wgpu", || Device::wgpu(burn::tensor::DeviceKind::DefaultDevice)));
    }
    #[cfg(feature = "cuda")]
    if is_asked_for("cuda") {
        devices.extend(probe("cuda", || Device::cuda(0)));
    }
    assert!(!devices.is_empty(), "BURN_DEVICE is {named:?}, and there is no such device");
    devices
}

/// Whether a device is a software GPU, on which long tests take fewer steps.
#[allow(dead_code)]
#[cfg(any(feature = "vulkan", feature = "wgpu", feature = "cuda"))]
pub fn is_software_gpu(name: &str, device: &Device) -> bool {
    name != "flex" && device.identity().is_some_and(|identity| identity.physical.is_none())
}

/// Without a GPU feature there is none.
#[allow(dead_code)]
#[cfg(not(any(feature = "vulkan", feature = "wgpu", feature = "cuda")))]
pub fn is_software_gpu(_: &str, _: &Device) -> bool {
    false
}

/// The device, if a small computation on it succeeds.
#[cfg(any(feature = "vulkan", feature = "wgpu", feature = "cuda"))]
fn probe(name: &'static str, open: impl FnOnce() -> Device) -> Option<(&'static str, Device)> {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    let opened = catch_unwind(AssertUnwindSafe(|| {
        let device = open();
        let two = (burn::tensor::Tensor::<1>::ones([1], &device) + 1.0).into_data();
        assert_eq!(two.try_to_vec::<f32>().unwrap(), [2.0]);
        device
    }));
    match opened {
        // CubeCL 0.11's SPIR-V for shared memory makes Mesa's compiler crash; its WGSL does not.
        Ok(device) if cfg!(feature = "vulkan") && is_software_gpu(name, &device) => {
            skipped(format_args!("{name}: a software Vulkan takes no SPIR-V; leave the feature vulkan out"));
            None
        }
        Ok(device) => Some((name, device)),
        Err(_) if name != "cuda" && std::env::var_os(REQUIRE).is_some() => {
            panic!("{REQUIRE} is set and there is no {name} device")
        }
        Err(_) => {
            skipped(format_args!("{name}: there is no such device"));
            None
        }
    }
}
