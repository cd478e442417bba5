//! Edges between numbered states, and distances along them.

/// The targets of every state, back to back (compressed sparse rows).
pub struct Csr {
    offsets: Vec<u32>,
    targets: Vec<u32>,
}

/// Edges under construction.
pub(super) struct Filling(Csr);

impl Filling {
    /// For `states` states, given the source of each future edge, in any order.
    pub(super) fn new(states: usize, from: impl Iterator<Item = u32>) -> Self {
        // Offsets are shifted by one entry during filling: `offsets[s + 1]` is the insertion
        // position of state `s`, and finally its end.
        let mut offsets = vec![0_u32; states + 2];
        from.for_each(|from| offsets[from as usize + 2] += 1);
        let mut before = 0;
        for offset in &mut offsets {
            before += *offset;
            *offset = before;
        }
        Self(Csr { offsets, targets: vec![0; before as usize] })
    }

    pub(super) fn add(&mut self, from: u32, to: u32) {
        let next = &mut self.0.offsets[from as usize + 1];
        self.0.targets[*next as usize] = to;
        *next += 1;
    }

    /// Finishes after all edges were added.
    pub(super) fn done(mut self) -> Csr {
        self.0.offsets.pop();
        self.0
    }
}

impl Csr {
    /// The edges `(from, to)` of `states` states, fewer than 2³²; the targets of a state keep their
    /// order.
    pub fn new(states: usize, edges: impl Iterator<Item = (u32, u32)> + Clone) -> Self {
        let mut filling = Filling::new(states, edges.clone().map(|(from, _)| from));
        edges.for_each(|(from, to)| filling.add(from, to));
        filling.done()
    }

    /// The targets of `state`.
    pub fn of(&self, state: u32) -> &[u32] {
        &self.targets[self.offsets[state as usize] as usize..self.offsets[state as usize + 1] as usize]
    }

    /// For each state the least number of edges from one of `starts` to it; `u32::MAX` if no path
    /// exists.
    ///
    /// With the edges of an automaton reversed and its accepting states as `starts`, the result is
    /// the distances to the end; states without a path to the end have `u32::MAX`.
    pub fn distances(&self, starts: impl IntoIterator<Item = u32>) -> Vec<u32> {
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
