//! Sets of characters by their first bytes in UTF-8.

/// The characters whose first byte is in a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct CharacterSet([u128; 2]);

impl CharacterSet {
    /// Those of every byte, and what begins amid a character.
    pub(crate) const ALL: Self = Self([u128::MAX; 2]);
    pub(crate) const ASCII: Self = Self([u128::MAX, 0]);
    /// Those of all first bytes in the well-formed sequences of the Unicode Standard, table 3-7: of ASCII, and c2 to f4.
    pub(crate) const CHARACTERS: Self = Self([u128::MAX, (1 << 0x75) - (1 << 0x42)]);

    /// Those of these bytes.
    pub(crate) fn of(bytes: impl IntoIterator<Item = u8>) -> Self {
        let mut all = Self::default();
        bytes.into_iter().for_each(|byte| all.insert(byte));
        all
    }

    /// Those of the bytes of a range.
    pub(crate) fn between(first: u8, last: u8) -> Self {
        // The lowest bits, so many of them.
        let lowest = |count: u32| 1u128.checked_shl(count).map_or(u128::MAX, |bit| bit - 1);
        let half = |at: u32| {
            let [from, to] = [u32::from(first), u32::from(last) + 1].map(|end| end.saturating_sub(at << 7));
            lowest(to) & !lowest(from)
        };
        Self([half(0), half(1)])
    }

    #[inline]
    pub(crate) fn insert(&mut self, byte: u8) {
        self.0[usize::from(byte >> 7)] |= 1 << (byte & 127);
    }

    #[inline]
    pub(crate) fn contains(self, byte: u8) -> bool {
        self.0[usize::from(byte >> 7)] >> (byte & 127) & 1 == 1
    }

    pub(crate) fn is_empty(self) -> bool {
        self == Self::default()
    }

    /// Those that are in both sets.
    pub(crate) fn and(self, other: Self) -> Self {
        Self([self.0[0] & other.0[0], self.0[1] & other.0[1]])
    }

    /// Those that are in one of the sets.
    pub(crate) fn or(self, other: Self) -> Self {
        Self([self.0[0] | other.0[0], self.0[1] | other.0[1]])
    }

    /// Those that are not in the other set.
    pub(crate) fn without(self, other: Self) -> Self {
        self.and(Self([!other.0[0], !other.0[1]]))
    }

    /// Whether the other set has all of these.
    pub(crate) fn is_within(self, other: Self) -> bool {
        self.without(other).is_empty()
    }

    /// How many first bytes they have.
    pub(crate) fn count(self) -> usize {
        self.0.iter().map(|half| half.count_ones() as usize).sum()
    }

    /// The first bytes, in order.
    pub(crate) fn bytes(self) -> impl Iterator<Item = u8> {
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
