//! Fused operations, as extensions of Burn's backends.
//!
//! Each operation has a plain loop for Flex and a kernel for CubeCL (WGPU, Vulkan, CUDA). Fusion
//! forwards them, and a remote device sends them to its server. Burn's built-in operations are the
//! reference, and run on every other backend.

pub(crate) mod filter;
pub(crate) mod step;

/// Splits the rows of a batch into grids of at most `max` rows: the first row and the number of
/// rows of each. Devices limit the cubes in a dimension of a grid: WebGPU to 65,535 in each, CUDA
/// in `y` and `z`.
#[cfg(feature = "cube")]
fn grids(rows: usize, max: u32) -> impl Iterator<Item = (u32, u32)> {
    let rows = rows as u32;
    (0..rows).step_by(max as usize).map(move |first| (first, max.min(rows - first)))
}

#[cfg(all(test, feature = "cube"))]
mod tests {
    use super::grids;

    #[test]
    fn every_row_is_in_one_grid() {
        let of = |rows| grids(rows, 65_535).collect::<Vec<_>>();
        assert!(of(0).is_empty());
        assert_eq!(of(1), [(0, 1)]);
        assert_eq!(of(65_535), [(0, 65_535)]);
        assert_eq!(of(65_536), [(0, 65_535), (65_535, 1)]);
        assert_eq!(of(140_000), [(0, 65_535), (65_535, 65_535), (131_070, 8_930)]);
        assert_eq!(grids(70_000, u32::MAX).collect::<Vec<_>>(), [(0, 70_000)]);
    }
}
