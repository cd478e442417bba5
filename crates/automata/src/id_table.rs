//! A hash table from values to their numbers. The values are stored elsewhere.

/// The numbers of distinct values, in a table with linear probing.
pub(super) struct IdTable {
    /// For each number, the hash of its value in the high half and the number plus 1 in the low
    /// half; 0 for a slot not in use. At most half of the slots are in use. The number of slots is
    /// a power of two.
    slots: Vec<u64>,
    count: usize,
}

impl IdTable {
    /// The number of slots of a small table.
    const SMALL: usize = 1 << 4;

    /// The empty table.
    pub(super) fn new() -> Self {
        Self::with_slots(Self::SMALL)
    }

    /// The empty table with a number of slots, a power of two.
    pub(super) fn with_slots(slots: usize) -> Self {
        debug_assert!(slots.is_power_of_two());
        Self { slots: vec![0; slots], count: 0 }
    }

    /// The number of a value with the given hash: a known number for which `is_same` holds, or else
    /// `new`. Returns whether it is new. `is_same` compares only values with equal hashes.
    pub(super) fn find_or_insert(
        &mut self,
        hash: u32,
        new: u32,
        is_same: impl Fn(u32) -> bool,
    ) -> (u32, bool) {
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        while self.slots[at] != 0 {
            let (other, id) = ((self.slots[at] >> 32) as u32, self.slots[at] as u32 - 1);
            if other == hash && is_same(id) {
                return (id, false);
            }
            at = (at + 1) & mask;
        }
        self.slots[at] = u64::from(hash) << 32 | u64::from(new + 1);
        self.count += 1;
        if self.count * 2 > self.slots.len() {
            self.grow();
        }
        (new, true)
    }

    /// Forgets all values; cheap for small tables.
    pub(super) fn clear(&mut self) {
        if self.slots.len() > 4 * Self::SMALL {
            *self = Self::new();
        } else if self.count > 0 {
            self.slots.fill(0);
            self.count = 0;
        }
    }

    /// Memory in use.
    pub(super) fn bytes(&self) -> usize {
        self.slots.len() * size_of::<u64>()
    }

    /// Doubles the table.
    fn grow(&mut self) {
        let mask = self.slots.len() * 2 - 1;
        let mut slots = vec![0; mask + 1];
        for &slot in self.slots.iter().filter(|slot| **slot != 0) {
            let mut at = (slot >> 32) as usize & mask;
            while slots[at] != 0 {
                at = (at + 1) & mask;
            }
            slots[at] = slot;
        }
        self.slots = slots;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_keep_their_numbers_when_hashes_collide() {
        let mut table = IdTable::new();
        let hashes: [fn(u32) -> u32; 3] =
            [|value| value % 3, |value| value.wrapping_mul(0x9e37_79b9), |_| u32::MAX];
        for hash_of in hashes {
            table.clear();
            let mut values = Vec::new();
            for value in (0..200).chain(100..300) {
                let (id, is_new) = table
                    .find_or_insert(hash_of(value), values.len() as u32, |id| values[id as usize] == value);
                assert_eq!(is_new, !values.contains(&value));
                if is_new {
                    values.push(value);
                }
                assert_eq!(values[id as usize], value);
            }
            assert_eq!(values.len(), 300);
        }
    }
}
