//! Fused operations, as extensions of Burn's backends.
//!
//! Each operation has a plain loop for Flex and a kernel for CubeCL (WGPU, Vulkan, CUDA). Fusion
//! forwards them, and a remote device sends them to its server. Burn's built-in operations are the
//! reference, and run on every other backend.

pub(crate) mod filter;
pub(crate) mod step;
