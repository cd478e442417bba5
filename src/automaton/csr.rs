//! Edges between numbered states, and distances along them.

/// The targets of every state, back to back (compressed sparse rows).
pub(crate) struct Csr {
    offsets: Vec<usize>,
    targets: Vec<u32>,
}

impl Csr {
    /// The edges `(from, to)` of `states` states; the targets of a state keep their order.
    pub(crate) fn new(states: usize, edges: impl Iterator<Item = (u32, u32)> + Clone) -> Self {
        // One place ahead while they are filled: where the targets of a state go next is where those of the state before end.
        let mut offsets = vec![0; states + 2];
        edges.clone().for_each(|(from, _)| offsets[from as usize + 2] += 1);
        for state in 0..states {
            offsets[state + 2] += offsets[state + 1];
        }
        let mut targets = vec![0; offsets[states + 1]];
        edges.for_each(|(from, to)| {
            let next = &mut offsets[from as usize + 1];
            targets[*next] = to;
            *next += 1;
        });
        offsets.truncate(states + 1);
        Self { offsets, targets }
    }

    /// The targets of `state`.
    pub(crate) fn of(&self, state: u32) -> &[u32] {
        &self.targets[self.offsets[state as usize]..self.offsets[state as usize + 1]]
    }

    /// For each state the least number of edges from one of `starts` to it; `u32::MAX` where there is no way.
    ///
    /// With the edges of an automaton reversed and its accepting states as `starts`, these are the distances to the
    /// end; states that cannot reach the end have `u32::MAX`.
    pub(crate) fn distances(&self, starts: impl IntoIterator<Item = u32>) -> Vec<u32> {
        let mut distances = vec![u32::MAX; self.offsets.len() - 1];
        let mut queue: Vec<u32> = starts.into_iter().collect();
        for &state in &queue {
            distances[state as usize] = 0;
        }
        let mut at = 0;
        while let Some(&state) = queue.get(at) {
            at += 1;
            for &next in self.of(state) {
                if distances[next as usize] == u32::MAX {
                    distances[next as usize] = distances[state as usize] + 1;
                    queue.push(next);
                }
            }
        }
        distances
    }
}
