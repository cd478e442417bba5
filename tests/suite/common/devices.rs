//! The devices that this build and this machine offer.

use std::panic::{AssertUnwindSafe, catch_unwind};

use burn::tensor::{Device, Tensor};

/// Set where a missing GPU backend must fail the tests instead of skipping them.
const REQUIRE: &str = "BURN_DFA_REQUIRE_VULKAN";

/// Flex, and the GPU backends that the features name and the machine has.
#[allow(unused_mut)]
pub fn all() -> Vec<(&'static str, Device)> {
    let mut devices = vec![("flex", Device::flex())];
    #[cfg(feature = "vulkan")]
    devices.extend(probe("vulkan", || Device::vulkan(burn::tensor::DeviceKind::DefaultDevice)));
    #[cfg(feature = "wgpu")]
    devices.extend(probe("wgpu", || Device::wgpu(burn::tensor::DeviceKind::DefaultDevice)));
    #[cfg(feature = "cuda")]
    devices.extend(probe("cuda", || Device::cuda(0)));
    devices
}

/// The device where a small computation succeeds on it.
#[allow(dead_code)]
fn probe(name: &'static str, open: impl FnOnce() -> Device) -> Option<(&'static str, Device)> {
    let opened = catch_unwind(AssertUnwindSafe(|| {
        let device = open();
        let sum = Tensor::<1>::ones([4], &device).sum().into_data();
        assert_eq!(sum.try_to_vec::<f32>().unwrap(), [4.0]);
        device
    }));
    match opened {
        Ok(device) => Some((name, device)),
        Err(_) if name != "cuda" && std::env::var_os(REQUIRE).is_some() => {
            panic!("{REQUIRE} is set and there is no {name} device")
        }
        Err(_) => {
            eprintln!("skipped on {name}: there is no such device");
            None
        }
    }
}
