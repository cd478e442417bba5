//! The shape of a draft tree.

use std::sync::Arc;

use burn::tensor::{Device, Int, Tensor};

use crate::tensor::ints;
use burn_dfa_tokens::{Error, Result};

/// A tree of nodes in topological order, the same for all rows of a batch.
///
/// Node 0, the root, stands for the last token of a row; every other node is a draft token, a
/// proposal for the token after its parent. A chain is a tree in which every node has at most one
/// child.
///
/// ```
/// use burn_dfa::processor::DraftTree;
///
/// let chain = DraftTree::chain(2);
/// assert_eq!(chain, DraftTree::new(&[0, 1])?);
///
/// // Two draft tokens for the next token, and one that follows the second of them.
/// let tree = DraftTree::new(&[0, 0, 2])?;
/// assert_eq!((tree.len(), tree.depth()), (4, 2));
/// assert_eq!(tree.path(3), [0, 2, 3]);
/// # Ok::<(), burn_dfa::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DraftTree {
    /// The parent of every node; the root is its own parent.
    parents: Arc<[usize]>,
    /// The number of drafts from the root to every node.
    depths: Arc<[usize]>,
}

impl DraftTree {
    /// The maximum number of nodes of a tree.
    pub const MAX: usize = 1024;

    /// A chain of `drafts` draft tokens, possibly 0.
    ///
    /// # Panics
    /// For [`MAX`](Self::MAX) drafts or more.
    pub fn chain(drafts: usize) -> Self {
        assert!(drafts < Self::MAX, "a chain of {drafts} drafts");
        Self::of((0..=drafts).map(|node| node.saturating_sub(1)).collect())
    }

    /// `parents[i]` is the parent of node `i + 1`, and comes before it.
    ///
    /// # Errors
    /// [`ErrorKind::Input`](crate::ErrorKind::Input) if a parent does not come before its child, or
    /// for more than [`MAX`](Self::MAX) nodes.
    pub fn new(parents: &[usize]) -> Result<Self> {
        if parents.len() >= Self::MAX {
            return Err(Error::input(format!(
                "a tree of {} drafts: {} are the most",
                parents.len(),
                Self::MAX - 1
            )));
        }
        if let Some(at) = parents.iter().enumerate().position(|(at, &parent)| parent > at) {
            return Err(Error::input(format!(
                "node {} of a draft tree follows node {}: parents come before their children",
                at + 1,
                parents[at]
            )));
        }
        Ok(Self::of(std::iter::once(0).chain(parents.iter().copied()).collect()))
    }

    fn of(parents: Arc<[usize]>) -> Self {
        let mut depths = vec![0; parents.len()];
        for node in 1..parents.len() {
            depths[node] = depths[parents[node]] + 1;
        }
        Self { parents, depths: depths.into() }
    }

    /// Joins this tree and `other` at the root; the nodes of `other` come last.
    ///
    /// # Errors
    /// [`ErrorKind::Input`](crate::ErrorKind::Input) for more than [`MAX`](Self::MAX) nodes in
    /// total.
    pub fn beside(&self, other: &Self) -> Result<Self> {
        let shift = self.len() - 1;
        let others = other.parents[1..].iter().map(|&parent| if parent == 0 { 0 } else { parent + shift });
        Self::new(&self.parents[1..].iter().copied().chain(others).collect::<Vec<_>>())
    }

    /// Number of nodes, the root included.
    #[allow(clippy::len_without_is_empty, reason = "there is always a root")]
    pub fn len(&self) -> usize {
        self.parents.len()
    }

    /// The length of the longest path of drafts.
    pub fn depth(&self) -> usize {
        self.depths.iter().copied().max().unwrap_or(0)
    }

    /// Whether every node follows the one before it.
    pub fn is_chain(&self) -> bool {
        self.depth() + 1 == self.len()
    }

    /// The parent of every node; the root is its own parent.
    pub fn parents(&self) -> &Arc<[usize]> {
        &self.parents
    }

    /// The number of drafts from the root to every node, the node included.
    pub fn depths(&self) -> &[usize] {
        &self.depths
    }

    /// The nodes from the root to `node`.
    ///
    /// # Panics
    /// If the node does not exist.
    pub fn path(&self, node: usize) -> Vec<usize> {
        let mut path = vec![node];
        while let Some(&last) = path.last().filter(|&&last| last != 0) {
            path.push(self.parents[last]);
        }
        path.reverse();
        path
    }

    /// The path to every node, `[nodes, depth + 1]`; shorter paths repeat their last node.
    pub fn paths(&self, device: &Device) -> Tensor<2, Int> {
        let columns = self.depth() + 1;
        let rows = (0..self.len()).flat_map(|node| {
            let path = self.path(node);
            (0..columns).map(move |depth| path.get(depth).copied().unwrap_or(node) as i32)
        });
        ints(rows.collect(), device).reshape([self.len(), columns])
    }

    /// [`depths`](Self::depths) on a device, `[nodes]`.
    pub fn depths_on(&self, device: &Device) -> Tensor<1, Int> {
        ints(self.depths.iter().map(|&depth| depth as i32).collect(), device)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    #[test]
    fn trees_are_checked_and_joined() {
        assert_eq!(DraftTree::new(&[1]).unwrap_err().kind(), ErrorKind::Input);
        assert!(DraftTree::new(&vec![0; DraftTree::MAX]).unwrap_err().kind() == ErrorKind::Input);
        let none = DraftTree::chain(0);
        assert_eq!((none.len(), none.depth(), none.is_chain()), (1, 0, true));
        let both = DraftTree::chain(2).beside(&DraftTree::new(&[0, 0, 1]).unwrap()).unwrap();
        assert_eq!(both, DraftTree::new(&[0, 1, 0, 0, 3]).unwrap());
        assert!(!both.is_chain());
        let paths = both.paths(&Device::flex()).into_data().try_to_vec::<i32>().unwrap();
        assert_eq!(paths, [0, 0, 0, 0, 1, 1, 0, 1, 2, 0, 3, 3, 0, 4, 4, 0, 3, 5]);
    }
}
