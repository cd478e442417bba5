//! What kernels know of the buffers on a device: the arrays of an image, and the parts of a pool of
//! mask rows. Imports nothing, because the sources of the kernels are also compiled without Burn.

/// The arrays, in memory order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Array {
    /// `[states, columns]`: the state after each column.
    Next,
    /// `[states]`: the least number of tokens to the end, `i32::MAX` if it is unreachable; with
    /// calls `[states, exits]`: to each exit of the state's procedure.
    TokensToEnd,
    /// `[states, 1 + exits]`, with calls: the stack operation of a state, as in
    /// `ConstraintParts::calls`.
    Jumps,
    /// `[states, exits]`, with calls: the frames pushed on the shortest path to each exit.
    Frames,
    /// `[states]`, if tokens are followed symbol by symbol: the minimum number of symbols of a
    /// legal token, as in `ConstraintParts::shortest`.
    Shortest,
    /// `[states]`: the constraint of a state, if there are several.
    Owner,
    /// `[states]`, for kernels: a number that no other upload of a state has, see `mask_rows`.
    Generation,
    /// `[constraints, vocab_size]`: the class of every token.
    Class,
    /// `[constraints]`: the text number of each constraint, or [`BY_CLASS`](super::BY_CLASS).
    Text,
    /// `[constraints, alphabet]`: the column of every symbol.
    Column,
    /// `[texts, vocab_size + 1]`: the start of the symbols of every token.
    Offsets,
    /// `[symbols]`: the symbols of all tokens of all texts.
    Symbols,
}

/// The numbers of a pool before the tags: the first counts the steps.
pub(crate) const CLOCK: usize = 8;
/// The numbers of a tag.
pub(crate) const TAG: usize = 8;
/// The tokens of a tile, the part of a row that one cube of a kernel handles.
pub(crate) const TILE: u32 = 8192;
/// The words of a tile's bits.
pub(crate) const TILE_WORDS: usize = TILE as usize / 32;
