//! Vector instructions that not every machine of its kind has.

/// Runs loops with wider vectors than every machine of its kind has, if this one has them.
#[inline(always)]
pub(super) fn vectorized<R>(work: impl FnOnce() -> R) -> R {
    #[cfg(all(feature = "simd", target_arch = "x86_64"))]
    {
        if let Some(simd) = pulp::x86::V4::try_new() {
            return simd.vectorize(work);
        }
        if let Some(simd) = pulp::x86::V3::try_new() {
            return simd.vectorize(work);
        }
    }
    work()
}

/// Whether compilers write the chosen places of a vector of 32-bit numbers by an instruction that
/// takes many cycles on some processors: those with AVX2 alone.
pub(super) fn writes_places_slowly() -> bool {
    #[cfg(all(feature = "simd", target_arch = "x86_64"))]
    let slowly = pulp::x86::V4::try_new().is_none() && pulp::x86::V3::try_new().is_some();
    #[cfg(not(all(feature = "simd", target_arch = "x86_64")))]
    let slowly = false;
    slowly
}
