//! Sets of small numbers that are emptied often.

/// A set of numbers. Emptying it takes constant time, because each number is marked with the last
/// *pass* that added it.
pub(super) struct StampSet {
    /// The last pass that added each number; 0 for none.
    stamps: Vec<u32>,
    pass: u32,
}

impl StampSet {
    /// The empty set, with capacity for the numbers below `count`.
    pub(super) fn new(count: usize) -> Self {
        Self { stamps: vec![0; count], pass: 1 }
    }

    /// Empties the set.
    pub(super) fn clear(&mut self) {
        self.pass += 1;
        if self.pass == u32::MAX {
            self.stamps.fill(0);
            self.pass = 1;
        }
    }

    /// Adds a number; returns whether it is new.
    pub(super) fn insert(&mut self, number: u32) -> bool {
        let at = number as usize;
        if self.stamps.len() <= at {
            self.stamps.resize(at + 1, 0);
        }
        std::mem::replace(&mut self.stamps[at], self.pass) != self.pass
    }
}
