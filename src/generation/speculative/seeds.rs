//! Independent random numbers from the seed of one row.

/// The uses of random numbers.
#[derive(Clone, Copy, Debug)]
pub(super) enum Use {
    /// Whether a draft token is accepted.
    Acceptance = 1,
    /// The token after the accepted ones.
    NextToken = 2,
    /// The draft tokens of the second of two merged drafters.
    SecondDrafter = 3,
    /// The draft tokens of a draft model.
    DraftModel = 4,
}

/// Derived seeds of the same rows for a use.
pub(super) fn derived(seeds: &[u64], to: Use) -> Vec<u64> {
    let salt = (to as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    seeds.iter().map(|seed| seed.rotate_left(17) ^ salt).collect()
}
