//! Conflicts, with a text that leads to them.

use super::{Failure, Story, Subsets};

/// Two ways to read a text that need different stacks for ever.
#[derive(Clone, Debug)]
pub(crate) struct Conflict {
    /// What the two are part of; see [`Network::origin`].
    pub(crate) origins: [u32; 2],
    /// A text that both read.
    pub(crate) text: Vec<u8>,
    pub(crate) kind: ConflictKind,
    /// Where the piece begins that may end or go on.
    pub(super) piece: Vec<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConflictKind {
    /// After the text what the first calls may end, and the second go on, with the last byte.
    End,
    /// After the text what the first calls may end, and the whole text with it.
    TextEnd,
    /// After the text the two are within different numbers of calls, and there are more such ways than are followed.
    Height,
}

impl Subsets<'_, '_> {
    /// Of a way that is too many calls ahead, by one more call.
    pub(super) fn too_far_ahead(&self, call: u32) -> Failure {
        let rule = self.network.origin(call);
        self.conflict(ConflictKind::Height, [rule; 2], None, self.now)
    }

    /// Of a byte that is read in a piece, on the way to `inner`, and behind it as well.
    pub(super) fn may_end_or_go_on(&self, call: u32, piece: u32, inner: u32, story: Story) -> Failure {
        let origins = [self.caller(call), self.network.origin(inner)];
        self.conflict(ConflictKind::End, origins, Some(piece), story)
    }

    /// Of a text that may end within a call.
    pub(super) fn may_end_with_text(&self, call: u32, story: Story) -> Failure {
        self.conflict(ConflictKind::TextEnd, [self.caller(call); 2], None, story)
    }

    /// Of a text that may end within a piece that knows its calls.
    pub(super) fn ends_within(&self, piece: u32, story: Story) -> Failure {
        let rule = self.pieces[piece as usize].callers.first().map_or(0, |&call| self.caller(call));
        self.conflict(ConflictKind::TextEnd, [rule; 2], None, story)
    }

    /// What a call is part of.
    fn caller(&self, call: u32) -> u32 {
        let first = self.calls[call as usize].frame.first().and_then(|calls| calls.first());
        first.map_or(0, |&(_, node)| self.network.origin(node))
    }

    pub(super) fn conflict(
        &self,
        kind: ConflictKind,
        origins: [u32; 2],
        piece: Option<u32>,
        story: Story,
    ) -> Failure {
        let piece = piece.map_or(Vec::new(), |piece| self.pieces[piece as usize].nodes.clone());
        let mut text = Vec::new();
        self.tell(story, false, 64, &mut text);
        Failure::Conflict(Conflict { origins, text, kind, piece })
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
