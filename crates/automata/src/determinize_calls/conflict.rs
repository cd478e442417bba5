//! Conflicts, with an example text for each.

use super::{Failure, Subsets, Witness};

/// Two readings of a text that need different stacks without bound.
#[derive(Clone, Debug)]
pub struct Conflict {
    /// The origins of the two readings; see `TransitionNetwork`.
    pub origins: [u32; 2],
    /// A text with both readings.
    pub text: Vec<u8>,
    /// How the two readings differ.
    pub kind: ConflictKind,
    /// The start of the procedure that may return or continue.
    pub(super) procedure: Vec<u32>,
}

/// Why one stack cannot follow two readings of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConflictKind {
    /// With the last byte of the text, a procedure called by the first origin may end, and the
    /// second may continue.
    End,
    /// After the text, a procedure called by the first origin may end, and the whole text with it.
    TextEnd,
    /// After the text, the readings differ in the number of pending calls, and there are more such
    /// readings than the limit.
    Height,
}

impl Subsets<'_, '_> {
    /// A reading with one pending call too many.
    pub(super) fn too_far_ahead(&self, call: u32) -> Failure {
        let rule = self.network.origin(call);
        self.conflict(ConflictKind::Height, [rule; 2], None, self.now)
    }

    /// A byte that is read both inside a procedure, on the path to `inner`, and after its return.
    pub(super) fn may_end_or_go_on(
        &self,
        call: u32,
        procedure: u32,
        inner: u32,
        witness: Witness,
    ) -> Failure {
        let origins = [self.caller(call), self.network.origin(inner)];
        self.conflict(ConflictKind::End, origins, Some(procedure), witness)
    }

    /// A text that may end within a call.
    pub(super) fn may_end_with_text(&self, call: u32, witness: Witness) -> Failure {
        self.conflict(ConflictKind::TextEnd, [self.caller(call); 2], None, witness)
    }

    /// A text that may end within a procedure with known callers.
    pub(super) fn ends_within(&self, procedure: u32, witness: Witness) -> Failure {
        let rule = self.procedures[procedure as usize].callers.first().map_or(0, |&call| self.caller(call));
        self.conflict(ConflictKind::TextEnd, [rule; 2], None, witness)
    }

    /// The origin of a call.
    fn caller(&self, call: u32) -> u32 {
        let first = self.calls[call as usize].frame.first().and_then(|calls| calls.first());
        first.map_or(0, |&(_, node)| self.network.origin(node))
    }

    pub(super) fn conflict(
        &self,
        kind: ConflictKind,
        origins: [u32; 2],
        procedure: Option<u32>,
        witness: Witness,
    ) -> Failure {
        let procedure =
            procedure.map_or(Vec::new(), |procedure| self.procedures[procedure as usize].nodes.clone());
        let mut text = Vec::new();
        self.tell(witness, false, 64, &mut text);
        Failure::Conflict(Conflict { origins, text, kind, procedure })
    }

    /// Writes an example text for a witness; `within` limits it to the bytes since the start of the
    /// procedure.
    pub(super) fn tell(&self, witness: Witness, within: bool, depth: usize, text: &mut Vec<u8>) {
        let mut bytes = Vec::new();
        let mut witness = witness;
        let mut front = Vec::new();
        loop {
            match witness {
                Witness::Start => break,
                Witness::Read { from, byte } => {
                    bytes.push(byte);
                    if within && self.begins[from as usize] {
                        break;
                    }
                    witness = self.witnesses[from as usize];
                }
                Witness::After { call, from, byte } => {
                    if depth == 0 {
                        front = "…".into();
                        break;
                    }
                    let mut inner = Vec::new();
                    self.tell(Witness::Read { from, byte }, true, depth - 1, &mut inner);
                    bytes.extend(inner.iter().rev());
                    witness = self.calls[call as usize].witness;
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
