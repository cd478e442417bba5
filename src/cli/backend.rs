//! The backend that a model runs on.

use burn::tensor::Device;
use clap::ValueEnum;

use super::error::Failure;

/// A backend by name. One that is not compiled in is refused when it is opened, with the feature that it needs.
///
/// ```
/// use burn_dfa::cli::Backend;
///
/// assert!(Backend::Flex.open().is_ok());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Backend {
    /// The CPU.
    Flex,
    /// Vulkan, through SPIR-V.
    Vulkan,
    /// Any graphics API, through WGSL.
    Wgpu,
    /// CUDA.
    Cuda,
}

impl Backend {
    /// Its first device.
    ///
    /// # Errors
    /// A backend that is not compiled in.
    pub fn open(self) -> Result<Device, Failure> {
        match self {
            Self::Flex => Ok(Device::flex()),
            #[cfg(feature = "vulkan")]
            Self::Vulkan => Ok(Device::vulkan(burn::tensor::DeviceKind::DefaultDevice)),
            #[cfg(feature = "wgpu")]
            Self::Wgpu => Ok(Device::wgpu(burn::tensor::DeviceKind::DefaultDevice)),
            #[cfg(feature = "cuda")]
            Self::Cuda => Ok(Device::cuda(0)),
            #[allow(unreachable_patterns)]
            other => {
                let name = format!("{other:?}").to_lowercase();
                Err(format!("this build has no {name}: build it with `--features {name}`").into())
            }
        }
    }
}
