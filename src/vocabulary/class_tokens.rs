//! The tokens of each class.

/// For each class of a partition of the tokens, its tokens in order.
#[derive(Debug)]
pub(crate) struct ClassTokens {
    tokens: Vec<u32>,
    /// `[classes + 1]`
    offsets: Vec<u32>,
}

impl ClassTokens {
    /// `class` holds the class of every token, below `classes`.
    pub(crate) fn by_class(class: &[u32], classes: usize) -> Self {
        let mut offsets = vec![0; classes + 1];
        // Neighbours are often of one class: a run of them is counted and placed without going to memory.
        for run in class.chunk_by(|a, b| a == b) {
            offsets[run[0] as usize + 1] += run.len() as u32;
        }
        for class in 0..classes {
            offsets[class + 1] += offsets[class];
        }
        let mut fill = offsets.clone();
        let mut tokens = vec![0; class.len()];
        let mut token = 0;
        for run in class.chunk_by(|a, b| a == b) {
            let first = &mut fill[run[0] as usize];
            for place in &mut tokens[*first as usize..][..run.len()] {
                *place = token;
                token += 1;
            }
            *first += run.len() as u32;
        }
        Self { tokens, offsets }
    }

    /// The class of every token.
    pub(crate) fn classes(&self) -> Vec<u32> {
        let mut classes = vec![0; self.tokens.len()];
        for class in 0..self.offsets.len() - 1 {
            for &token in self.of(class) {
                classes[token as usize] = class as u32;
            }
        }
        classes
    }

    /// The tokens of `class`, in order.
    pub(crate) fn of(&self, class: usize) -> &[u32] {
        &self.tokens[self.offsets[class] as usize..self.offsets[class + 1] as usize]
    }
}
