//! What client and server share: the names of the operations, their version, and how constraints
//! are sent.

/// The version of the operations; a client refuses a server of another version.
pub(super) const VERSION: i32 = 1;

/// The names of the operations, with their inputs and outputs.
pub(crate) mod operation {
    /// `[1]` → `[1]`: the version.
    pub(crate) const VERSION: &str = "burn-dfa::version";
    /// The [packed](super::pack) bytes of a vocabulary and of constraints → their handle. The
    /// numbers are the size of a stack frame, then the constraints and the pages of an arena, or 0
    /// for joined constraints.
    pub(crate) const CONSTRAINTS: &str = "burn-dfa::constraints";
    /// A handle, the packed bytes of a constraint → the handle of the arena with the constraint.
    /// The numbers are the number of the constraint and its pages.
    pub(crate) const PUT: &str = "burn-dfa::put";
    /// A handle → the handle of the arena without the constraint of a number.
    pub(crate) const TAKE_OUT: &str = "burn-dfa::take_out";
    /// A handle, positions, tokens → positions. The number is the width of a row of logits.
    pub(crate) const AFTER: &str = "burn-dfa::after";
    /// A handle, logits, positions, tokens → logits, positions.
    pub(crate) const MASK: &str = "burn-dfa::mask";
    /// As [`MASK`], for the nodes of a tree. The numbers are the parents of the nodes.
    pub(crate) const MASK_TREE: &str = "burn-dfa::mask_tree";
    /// A handle, logits, positions, tokens → tokens, positions.
    pub(crate) const GREEDY: &str = "burn-dfa::greedy";
    /// A handle, logits, positions, tokens, the step, the keys of a sampler → tokens, positions.
    pub(crate) const SAMPLED: &str = "burn-dfa::sampled";
    /// Logits, numbers → logits.
    pub(crate) const TOP_K: &str = "burn-dfa::top_k";
    /// Logits, fractions → logits.
    pub(crate) const TOP_P: &str = "burn-dfa::top_p";
}

/// Byte strings, each prefixed by its length in four bytes, as `i32` values, padded with zeros.
pub(super) fn pack(parts: &[Vec<u8>]) -> Vec<i32> {
    let mut bytes = Vec::new();
    for part in parts {
        bytes.extend((part.len() as u32).to_le_bytes());
        bytes.extend(part);
    }
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes.as_chunks().0.iter().map(|&bytes| i32::from_le_bytes(bytes)).collect()
}

/// The byte strings that [`pack`] has packed.
///
/// # Errors
/// A length exceeds the bytes that are left.
#[cfg(feature = "remote-server")]
pub(super) fn unpack(numbers: &[i32]) -> Result<Vec<Vec<u8>>, String> {
    let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    let (mut rest, mut parts) = (&bytes[..], Vec::new());
    // The last number may be padded.
    while rest.len() > 3 {
        let (length, after) = rest.split_first_chunk::<4>().ok_or("a part without a length")?;
        let length = u32::from_le_bytes(*length) as usize;
        let (part, after) = after
            .split_at_checked(length)
            .ok_or_else(|| format!("a part of {length} bytes, there are {}", after.len()))?;
        parts.push(part.to_vec());
        rest = after;
    }
    Ok(parts)
}
