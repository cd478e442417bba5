//! The children of trie nodes, stored contiguously.
//!
//! The nodes of a trie are stored in depth-first order, so two siblings are separated by the whole
//! subtree of the first. Following the siblings of a node with many children would miss the cache
//! at each of them. The bytes of all children of a node fill one or two cache lines.

use std::ops::Range;

/// The children of some nodes.
#[derive(Debug, Default)]
pub(super) struct ChildLists {
    /// `[lists]`: the end of each list.
    ends: Vec<u32>,
    bytes: Vec<u8>,
    nodes: Vec<u32>,
}

impl ChildLists {
    /// The least number of children of a list.
    pub(super) const MANY: usize = 8;

    /// Adds children, in the order of their bytes, and returns the number of the list.
    pub(super) fn push(&mut self, children: &[(u8, u32)]) -> u32 {
        self.bytes.extend(children.iter().map(|(byte, _)| byte));
        self.nodes.extend(children.iter().map(|(_, node)| node));
        self.ends.push(self.bytes.len() as u32);
        self.ends.len() as u32 - 1
    }

    pub(super) fn shrink_to_fit(&mut self) {
        self.ends.shrink_to_fit();
        self.bytes.shrink_to_fit();
        self.nodes.shrink_to_fit();
    }

    /// The range of a list.
    #[inline]
    pub(super) fn range(&self, child_list: u32) -> Range<u32> {
        let start = if child_list == 0 { 0 } else { self.ends[child_list as usize - 1] };
        start..self.ends[child_list as usize]
    }

    /// The first index in a range of a list whose byte is not less than this one.
    #[inline]
    pub(super) fn first_from(&self, range: Range<u32>, byte: u8) -> u32 {
        let bytes = &self.bytes[range.start as usize..range.end as usize];
        if bytes.first().is_none_or(|&next| next >= byte) {
            return range.start;
        }
        range.start + bytes.partition_point(|&other| other < byte) as u32
    }

    #[inline]
    pub(super) fn byte(&self, index: u32) -> u8 {
        self.bytes[index as usize]
    }

    #[inline]
    pub(super) fn node(&self, index: u32) -> u32 {
        self.nodes[index as usize]
    }
}
