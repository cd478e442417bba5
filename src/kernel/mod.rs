//! Fused operations, as extensions of Burn's backends.
//!
//! Each operation has a plain loop for Flex and a kernel for CubeCL (WGPU, Vulkan, CUDA); Fusion
//! forwards them. Burn's built-in operations are the reference, and run on every other backend.

pub(crate) mod filter;
#[cfg(all(feature = "remote-server", feature = "flex"))]
pub(crate) mod hosting;
pub(crate) mod step;
