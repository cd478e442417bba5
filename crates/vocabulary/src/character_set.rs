//! Sets of characters by their first bytes in UTF-8.

/// The characters with a first byte in a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CharacterSet([u128; 2]);

impl CharacterSet {
    /// All first bytes, including the continuation bytes of a character.
    pub const ALL: Self = Self([u128::MAX; 2]);
    /// The 128 characters of ASCII.
    pub const ASCII: Self = Self([u128::MAX, 0]);
    /// The first bytes of the well-formed sequences of the Unicode Standard, table 3-7: ASCII, and
    /// c2 to f4.
    pub const CHARACTERS: Self = Self([u128::MAX, (1 << 0x75) - (1 << 0x42)]);

    /// The set of the given bytes.
    pub fn of(bytes: impl IntoIterator<Item = u8>) -> Self {
        let mut all = Self::default();
        bytes.into_iter().for_each(|byte| all.insert(byte));
        all
    }

    /// The set of a range of bytes.
    pub fn between(first: u8, last: u8) -> Self {
        // The lowest `count` bits.
        let lowest = |count: u32| 1u128.checked_shl(count).map_or(u128::MAX, |bit| bit - 1);
        let half = |at: u32| {
            let [from, to] = [u32::from(first), u32::from(last) + 1].map(|end| end.saturating_sub(at << 7));
            lowest(to) & !lowest(from)
        };
        Self([half(0), half(1)])
    }

    /// Adds the first byte of a character.
    #[inline]
    pub fn insert(&mut self, byte: u8) {
        self.0[usize::from(byte >> 7)] |= 1 << (byte & 127);
    }

    /// Whether `byte` is in the set.
    #[inline]
    pub fn contains(self, byte: u8) -> bool {
        self.0[usize::from(byte >> 7)] >> (byte & 127) & 1 == 1
    }

    /// Whether the set is empty.
    pub fn is_empty(self) -> bool {
        self == Self::default()
    }

    /// The intersection.
    pub fn and(self, other: Self) -> Self {
        Self([self.0[0] & other.0[0], self.0[1] & other.0[1]])
    }

    /// The union.
    pub fn or(self, other: Self) -> Self {
        Self([self.0[0] | other.0[0], self.0[1] | other.0[1]])
    }

    /// The difference.
    pub fn without(self, other: Self) -> Self {
        self.and(Self([!other.0[0], !other.0[1]]))
    }

    /// Whether the set is a subset of `other`.
    pub fn is_within(self, other: Self) -> bool {
        self.without(other).is_empty()
    }

    /// The number of first bytes.
    pub fn count(self) -> usize {
        self.0.iter().map(|half| half.count_ones() as usize).sum()
    }

    /// The first bytes, in order.
    pub fn bytes(self) -> impl Iterator<Item = u8> {
        (0..2u8).flat_map(move |half| {
            let mut bits = self.0[usize::from(half)];
            std::iter::from_fn(move || {
                let bit = (bits != 0).then(|| bits.trailing_zeros() as u8)?;
                bits &= bits - 1;
                Some(half << 7 | bit)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_their_bytes() {
        let (some, others) = ([0, 65, 127, 128, 200, 255], [65, 66, 255]);
        let [a, b] = [CharacterSet::of(some), CharacterSet::of(others)];
        assert!(a.bytes().eq(some));
        assert!(a.and(b).bytes().eq([65, 255]));
        assert!(a.or(b).bytes().eq([0, 65, 66, 127, 128, 200, 255]));
        assert!(a.without(b).bytes().eq([0, 127, 128, 200]));
        assert!((0..=u8::MAX).all(|byte| a.contains(byte) == some.contains(&byte)));
        assert!(a.and(b).is_within(b) && !b.is_within(a) && CharacterSet::default().is_empty());
        assert!(CharacterSet::ALL.bytes().eq(0..=255) && CharacterSet::ASCII.bytes().eq(0..128));
        for (first, last) in
            [(0, 0), (0, 127), (0, 255), (9, 130), (65, 90), (127, 128), (128, 200), (255, 255)]
        {
            assert_eq!(CharacterSet::between(first, last), CharacterSet::of(first..=last));
        }
        assert!(CharacterSet::CHARACTERS.bytes().eq((0..128).chain(0xc2..=0xf4)));
    }
}
