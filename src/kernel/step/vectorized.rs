//! Vector instructions that not every machine of its kind has.

/// Runs loops with wider vectors than every machine of its kind has, if this one has them.
#[inline(always)]
pub(super) fn vectorized<R>(work: impl FnOnce() -> R) -> R {
    #[cfg(target_arch = "x86_64")]
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
