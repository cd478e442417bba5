//! Conflicts, with a text that leads to them.

use super::{Failure, Item, Story, Subsets};

/// Two ways to read a text that need different stacks for ever.
#[derive(Clone, Debug)]
pub(crate) struct Conflict {
    /// What the two are part of; see [`Network::origin`].
    pub(crate) origins: [u32; 2],
    /// A text that both read.
    pub(crate) text: Vec<u8>,
    pub(crate) kind: ConflictKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConflictKind {
    /// After the text what the first calls may end, and the second go on.
    End,
    /// After the text the two are within different numbers of calls, and there are more such ways than are followed.
    Height,
}

impl Subsets<'_, '_> {
    /// Of a way that is too many calls ahead, by one more call.
    pub(super) fn too_far_ahead(&self, call: u32) -> Failure {
        let rule = self.network.origin(call);
        self.conflict(ConflictKind::Height, [rule; 2], self.now)
    }

    /// Of items that end in a piece where others do not.
    pub(super) fn may_end(&self, piece: u32, ending: Item, other: Option<Item>, story: Story) -> Failure {
        let call = self.pieces[piece as usize].callers.first().map(|&call| &self.calls[call as usize]);
        let call = call.and_then(|call| call.frame.get(ending.tag as usize)?.first());
        // Where the call stands; it is not known yet where a piece is empty.
        let node = call.map_or(ending.node, |&(_, call)| call);
        let rule = self.network.origin(node);
        let other = other.map_or(rule, |other| self.network.origin(other.node));
        self.conflict(ConflictKind::End, [rule, other], story)
    }

    pub(super) fn conflict(&self, kind: ConflictKind, origins: [u32; 2], story: Story) -> Failure {
        let mut text = Vec::new();
        self.tell(story, false, 64, &mut text);
        Failure::Conflict(Conflict { origins, text, kind })
    }

    /// Writes down a text that leads to where the story ends; from the beginning of the piece on if that is asked for.
    pub(super) fn tell(&self, story: Story, within: bool, depth: usize, text: &mut Vec<u8>) {
        let mut bytes = Vec::new();
        let mut story = story;
        let mut front = Vec::new();
        loop {
            match story {
                Story::Start => break,
                Story::Read { from, byte } => {
                    bytes.push(byte);
                    if within && self.begins[from as usize] {
                        break;
                    }
                    story = self.stories[from as usize];
                }
                Story::After { call, from, byte } => {
                    if depth == 0 {
                        front = "…".into();
                        break;
                    }
                    let mut inner = Vec::new();
                    self.tell(Story::Read { from, byte }, true, depth - 1, &mut inner);
                    bytes.extend(inner.iter().rev());
                    story = self.calls[call as usize].story;
                }
            }
            if bytes.len() > 1000 {
                front = "…".into();
                break;
            }
        }
        text.extend(front);
        text.extend(bytes.iter().rev());
    }
}
