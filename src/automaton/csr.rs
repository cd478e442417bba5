//! Edges between numbered states.

/// The targets of every state, back to back (compressed sparse rows).
pub(crate) struct Csr {
    offsets: Vec<usize>,
    targets: Vec<u32>,
}

impl Csr {
    /// The edges `(from, to)` of `states` states; the targets of a state keep their order.
    pub(crate) fn new(states: usize, pairs: impl Iterator<Item = (u32, u32)> + Clone) -> Self {
        let mut offsets = vec![0; states + 1];
        for (from, _) in pairs.clone() {
            offsets[from as usize + 1] += 1;
        }
        for state in 0..states {
            offsets[state + 1] += offsets[state];
        }
        let mut fill = offsets.clone();
        let mut targets = vec![0; offsets[states]];
        for (from, to) in pairs {
            targets[fill[from as usize]] = to;
            fill[from as usize] += 1;
        }
        Self { offsets, targets }
    }

    /// The targets of `state`.
    pub(crate) fn of(&self, state: u32) -> &[u32] {
        &self.targets[self.offsets[state as usize]..self.offsets[state as usize + 1]]
    }
}
