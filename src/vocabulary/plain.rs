//! Plain tokens: at most [`LONGEST`] printable ASCII characters, none of them `"` or `\`, so that they may stand
//! anywhere in a JSON string.
//!
//! Most tokens of a vocabulary are plain, and where an automaton takes any of them, as within a string, a walk can
//! take them all at once and follow only the rest. The idea is that of llguidance's slices (Moskal and others,
//! guidance-ai/llguidance, "Optimizations").

use super::Trie;

/// The length of the longest plain token.
pub(crate) const LONGEST: usize = 16;

/// The bytes of plain tokens.
pub(crate) fn is_plain_byte(byte: u8) -> bool {
    matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\'
}

/// Whether the bytes of a token are plain.
pub(super) fn is_plain(bytes: &[u8]) -> bool {
    bytes.len() <= LONGEST && bytes.iter().all(|&byte| is_plain_byte(byte))
}

/// Of every node of a trie, whether all tokens at it and below it are plain.
pub(super) fn plain_subtrees(trie: &Trie) -> Vec<bool> {
    // The length of the plain prefix of the node at hand, after each depth.
    let mut plain = vec![true; trie.max_depth() + 1];
    // Nodes with tokens that are not plain, before each node.
    let mut others = vec![0u32; trie.len() + 1];
    for node in 0..trie.len() {
        let depth = trie.depth(node);
        plain[depth] = plain[depth - 1] && depth <= LONGEST && is_plain_byte(trie.byte(node));
        others[node + 1] = others[node] + u32::from(!plain[depth] && !trie.tokens(node).is_empty());
    }
    (0..trie.len()).map(|node| others[trie.end(node) as usize] == others[node]).collect()
}
