//! Sharing of common suffixes among many words.

use super::FastMap;
use super::nfa::Nfa;
use crate::error::Result;

/// A node of a trie, its children being laid down already.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Node {
    /// Whether a word ends here.
    pub(super) ends: bool,
    /// `(byte, state)`, by byte.
    children: Vec<(u8, u32)>,
}

/// The nodes laid down so far, each once.
pub(super) struct Suffixes {
    states: FastMap<Node, u32>,
    next: u32,
}

impl Suffixes {
    /// Words are followed by the state `next`.
    pub(super) fn new(next: u32) -> Self {
        Self { states: FastMap::default(), next }
    }

    /// Lays down the nodes of `path`, the path of `word`, that are deeper than `depth`.
    pub(super) fn freeze(
        &mut self,
        nfa: &mut Nfa,
        path: &mut Vec<Node>,
        word: &[u8],
        depth: usize,
    ) -> Result<()> {
        while path.len() > depth + 1 {
            let Some(node) = path.pop() else { break };
            let state = self.state(nfa, node)?;
            let parent = path.len() - 1;
            path[parent].children.push((word[parent], state));
        }
        Ok(())
    }

    /// The state of `node`, laid down where it is new.
    pub(super) fn state(&mut self, nfa: &mut Nfa, node: Node) -> Result<u32> {
        if node.ends && node.children.is_empty() {
            return Ok(self.next);
        }
        if let Some(&state) = self.states.get(&node) {
            return Ok(state);
        }
        let mut state = nfa.bytes(node.children.iter().map(|&(byte, next)| (byte, byte, next)))?;
        if node.ends {
            state = nfa.union([state, self.next])?;
        }
        self.states.insert(node, state);
        Ok(state)
    }
}
