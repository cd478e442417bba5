//! The device of a model.

use std::fmt;
use std::str::FromStr;

use burn::tensor::Device;

use super::error::Failure;

/// A device, as written on a command line: `flex`, `vulkan`, `wgpu`, `cuda`, or
/// `remote:ws://host:port` for a device of a server. Opening a device that is not compiled in
/// returns an error with the required feature.
///
/// ```
/// use burn_dfa::cli::Backend;
///
/// assert!(Backend::Flex.open().is_ok());
/// let remote: Backend = "remote:ws://gpu:3000".parse().unwrap();
/// assert_eq!(remote, Backend::Remote("ws://gpu:3000".to_owned()));
/// let error = "tpu".parse::<Backend>().unwrap_err();
/// assert_eq!(
///     error,
///     "no device of this name: there are flex, vulkan, wgpu, cuda and remote:ws://host:port"
/// );
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Backend {
    /// The CPU.
    Flex,
    /// Vulkan, through SPIR-V.
    Vulkan,
    /// Any graphics API, through WGSL.
    Wgpu,
    /// CUDA.
    Cuda,
    /// A device of the server at this address.
    Remote(String),
}

impl Backend {
    /// Opens the first device of the backend.
    ///
    /// # Errors
    /// A backend that is not compiled in; a malformed address; a server that does not answer.
    pub fn open(&self) -> Result<Device, Failure> {
        match self {
            Self::Flex => Ok(Device::flex()),
            #[cfg(feature = "vulkan")]
            Self::Vulkan => Ok(Device::vulkan(burn::tensor::DeviceKind::DefaultDevice)),
            #[cfg(feature = "wgpu")]
            Self::Wgpu => Ok(Device::wgpu(burn::tensor::DeviceKind::DefaultDevice)),
            #[cfg(feature = "cuda")]
            Self::Cuda => Ok(Device::cuda(0)),
            #[cfg(feature = "remote")]
            // As text, because a wrong address is wrong usage; a connection that is lost later is
            // not.
            Self::Remote(address) => Ok(crate::remote::connect(address).map_err(|error| error.to_string())?),
            #[allow(unreachable_patterns)]
            other => {
                let name = other.name();
                Err(format!("this build has no {name}: build it with `--features {name}`").into())
            }
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Flex => "flex",
            Self::Vulkan => "vulkan",
            Self::Wgpu => "wgpu",
            Self::Cuda => "cuda",
            Self::Remote(_) => "remote",
        }
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Remote(address) => write!(f, "remote:{address}"),
            local => f.write_str(local.name()),
        }
    }
}

impl FromStr for Backend {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Some(address) = text.strip_prefix("remote:") {
            return Ok(Self::Remote(address.to_owned()));
        }
        let local = [Self::Flex, Self::Vulkan, Self::Wgpu, Self::Cuda];
        local
            .into_iter()
            .find(|local| local.name() == text)
            .ok_or("no device of this name: there are flex, vulkan, wgpu, cuda and remote:ws://host:port")
    }
}
