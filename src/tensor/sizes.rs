//! The sizes of the arrays of a device constraint.

use super::arrays::Array;
use super::options::Capacity;
use super::placement::{PAGE, first_of, pages_of};
use super::text::{Text, texts};
use crate::vocabulary::Vocabulary;
use burn_dfa_tokens::{CompiledConstraint, Error, Limit, Result, TokenReading, symbols::FIRST_SPECIAL};

/// The numbers that determine the shapes of all [arrays](Array).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sizes {
    pub(crate) states: usize,
    pub(crate) columns: usize,
    pub(crate) constraints: usize,
    pub(crate) vocab_size: usize,
    /// For byte-level constraints: the number of texts, the symbols of all texts, and the number of
    /// distinct symbols; else 0.
    pub(super) texts: usize,
    pub(super) symbols: usize,
    pub(crate) alphabet: usize,
    /// For constraints with calls: the maximum number of exits of a procedure, and of frames of a
    /// stack; else 0.
    pub(crate) exits: usize,
    pub(crate) depth: usize,
    /// The maximum number of frames pushed by one token, or an upper bound if no kernel needs it.
    pub(crate) pushes: usize,
    /// For constraints with calls: the maximum number of consecutive states that read no byte; else
    /// 0.
    pub(super) chain: usize,
    /// Whether steps are kernels, which keep mask rows.
    pub(super) runs_kernels: bool,
}

/// The maximum size of the frames that a token pushes, in numbers: a kernel's unit holds them in an
/// array, and large arrays of a unit are stored in slow memory.
pub(crate) const MAX_PUSHED: usize = 2048;

impl Sizes {
    pub(super) fn new(
        constraints: &[&CompiledConstraint],
        states: usize,
        vocab_size: usize,
        capacity: Capacity,
        runs_kernels: bool,
    ) -> Result<Self> {
        let texts = texts(constraints);
        // Only byte-level constraints have calls.
        let capacity = if texts.is_empty() { Capacity { exits: 0, ..capacity } } else { capacity };
        let (exits, depth, pushes) = stack_of(constraints, capacity, runs_kernels)?;
        let chain = if capacity.exits > 0 { longest_chain(depth) } else { chain_of(constraints) };
        let columns = constraints.iter().map(|constraint| constraint.class_count()).max().unwrap_or(0);
        // At least one token with its own symbol, so a constraint with such a token can replace a
        // constraint without.
        let tokens = texts.iter().map(|text| text.own_symbols()).max().unwrap_or(0).max(1);
        Ok(Self {
            states: states.max(capacity.states),
            columns: columns.max(capacity.classes),
            constraints: constraints.len().max(capacity.constraints),
            vocab_size,
            texts: texts.len(),
            symbols: texts.iter().map(|text| text.symbols(vocab_size)).sum(),
            alphabet: if texts.is_empty() { 0 } else { FIRST_SPECIAL as usize + tokens },
            exits,
            depth,
            pushes,
            chain,
            runs_kernels,
        })
    }

    /// The sizes of an arena. Its first constraint has only the reserved states.
    pub(super) fn arena(
        vocabulary: &Vocabulary,
        vocab_size: usize,
        capacity: Capacity,
        runs_kernels: bool,
    ) -> Self {
        let depth = if capacity.exits > 0 { capacity.frames } else { 0 };
        Self {
            states: first_of(0).saturating_add(pages_of(capacity.states).max(1).saturating_mul(PAGE)),
            columns: capacity.classes.max(CompiledConstraint::RESERVED_COLUMNS),
            constraints: capacity.constraints.saturating_add(1),
            vocab_size,
            texts: 1,
            symbols: Text::of(vocabulary).symbols(vocab_size),
            alphabet: FIRST_SPECIAL as usize,
            exits: capacity.exits,
            depth,
            pushes: reserved_pushes(capacity, depth, Some(vocabulary), runs_kernels),
            chain: longest_chain(depth),
            runs_kernels,
        }
    }

    /// The size of a stack frame in numbers; 0 without a stack.
    pub(crate) fn frame(&self) -> usize {
        if self.exits > 0 { self.exits.saturating_add(1) } else { 0 }
    }

    /// The size of a position in numbers.
    pub(crate) fn numbers(&self) -> usize {
        if self.exits > 0 { self.depth.saturating_mul(self.frame()).saturating_add(3) } else { 2 }
    }

    /// The pages of an arena.
    pub(super) fn pages(&self) -> usize {
        pages_of(self.states)
    }

    /// Whether byte-level constraints fit.
    pub(crate) fn is_byte_level(&self) -> bool {
        self.texts > 0
    }

    /// Whether lookups need the constraint of a state.
    pub(crate) fn has_owner(&self) -> bool {
        self.constraints > 1
    }

    /// Bytes of the image.
    pub(super) fn bytes(&self) -> usize {
        Array::offset(self, Array::ALL.len()).saturating_mul(size_of::<i32>())
    }

    /// Refuses a device constraint, or the position of one row, too large for its options, for the
    /// device or for `i32` indices.
    pub(super) fn check(&self, max_bytes: usize, largest_binding: Option<usize>) -> Result<()> {
        let max = max_bytes.min(i32::MAX as usize);
        if self.bytes().max(self.numbers().saturating_mul(size_of::<i32>())) > max {
            return Err(Error::limit(Limit::DeviceBytes(max)));
        }
        match largest_binding {
            Some(binding) if self.bytes() > binding => Err(Error::limit(Limit::Binding(binding))),
            _ => Ok(()),
        }
    }

    /// Refuses a stack if a token may push more frames than a kernel's unit holds.
    pub(super) fn check_stack(&self) -> Result<()> {
        if self.pushes.saturating_mul(self.frame()) <= MAX_PUSHED {
            return Ok(());
        }
        Err(Error::input(format!(
            "tokens that push up to {} frames of {} exits on a stack need too much space in a kernel: compile with fewer `Limits::frames`, reserve fewer with `Capacity::with_pushes`, or take `Kernels::BuiltIn`",
            self.pushes, self.exits
        )))
    }

    /// Refuses a constraint if one of its tokens pushes more frames than a unit of the kernel
    /// holds.
    pub(super) fn check_pushes(&self, pushes: usize) -> Result<()> {
        if pushes <= self.pushes {
            return Ok(());
        }
        Err(Error::input(format!(
            "a constraint of which a token pushes up to {pushes} frames, with space for {}: reserve more with `Capacity::with_pushes`",
            self.pushes
        )))
    }

    /// Whether arrays of `other` sizes fit.
    pub(super) fn hold(&self, other: &Self) -> bool {
        self.vocab_size == other.vocab_size
            && self.states >= other.states
            && self.columns >= other.columns
            && self.constraints >= other.constraints
            && self.texts >= other.texts
            && self.symbols >= other.symbols
            && self.alphabet >= other.alphabet
            && self.exits >= other.exits
            && (other.exits == 0 || self.depth == other.depth)
    }
}

/// The maximum number of consecutive states that read no byte, in any of the constraints.
pub(super) fn chain_of(constraints: &[&CompiledConstraint]) -> usize {
    let calls = constraints.iter().filter_map(|constraint| constraint.parts().calls.as_ref());
    calls.map(|calls| (calls.chain as usize).min(longest_chain(calls.depth as usize))).max().unwrap_or(0)
}

/// The maximum number of consecutive states that read no byte, in any constraint with a stack of
/// `depth` frames: a RETURN per frame, a RETURN on the empty stack, and a call.
fn longest_chain(depth: usize) -> usize {
    if depth == 0 { 0 } else { depth.saturating_add(2) }
}

/// The maximum number of frames that a token pushes on a stack of `depth` frames, for any
/// constraint that `capacity` allows.
fn reserved_pushes(
    capacity: Capacity,
    depth: usize,
    vocabulary: Option<&Vocabulary>,
    runs_kernels: bool,
) -> usize {
    let longest = |vocabulary: &Vocabulary| vocabulary.iter().map(|(_, bytes)| bytes.len()).max();
    let pushes = match (capacity.pushes, vocabulary) {
        _ if !runs_kernels || depth == 0 => depth,
        // A special token without bytes pushes one frame.
        (0, Some(vocabulary)) => longest(vocabulary).unwrap_or(0).max(1),
        (0, None) => depth,
        (pushes, _) => pushes,
    };
    pushes.min(depth)
}

/// The vocabulary of byte-level constraints, if there are any.
fn vocabulary_of<'a>(constraints: &[&'a CompiledConstraint]) -> Option<&'a Vocabulary> {
    constraints.iter().find_map(|constraint| match &constraint.parts().reading {
        TokenReading::Bytes { vocabulary, .. } => Some(vocabulary),
        TokenReading::Classes(_) => None,
    })
}

/// The maximum number of exits, the depth of the stacks, and the maximum number of frames pushed by
/// a token.
fn stack_of(
    constraints: &[&CompiledConstraint],
    capacity: Capacity,
    runs_kernels: bool,
) -> Result<(usize, usize, usize)> {
    let calls = constraints
        .iter()
        .enumerate()
        .filter_map(|(index, constraint)| Some((index, constraint.parts().calls.as_ref()?)));
    let calls: Vec<_> = calls.collect();
    let Some((_, first)) = calls.first() else {
        let depth = if capacity.exits > 0 { capacity.frames } else { 0 };
        return Ok((
            capacity.exits,
            depth,
            reserved_pushes(capacity, depth, vocabulary_of(constraints), runs_kernels),
        ));
    };
    let depth = if capacity.exits > 0 { capacity.frames } else { first.depth as usize };
    if let Some((index, other)) = calls.iter().find(|(_, calls)| calls.depth as usize != depth) {
        let (others, fix) = match capacity.exits {
            0 => ("others", "compile all with the same `Limits::frames`"),
            _ => ("capacity", "compile with its `Limits::frames`, or set it with `Capacity::with_stack`"),
        };
        return Err(Error::input(format!(
            "constraint {index} has a stack of {} frames, the {others} of {depth}: {fix}",
            other.depth
        )));
    }
    let exits = calls.iter().map(|(_, calls)| calls.exits).max().unwrap_or(0);
    let pushes = if runs_kernels {
        // Later constraints may push more frames per token.
        let reserved = match capacity.exits {
            0 => capacity.pushes.min(depth),
            _ => reserved_pushes(capacity, depth, vocabulary_of(constraints), true),
        };
        constraints.iter().map(|constraint| constraint.pushes()).fold(reserved, usize::max)
    } else {
        depth
    };
    Ok((exits.max(capacity.exits), depth, pushes))
}

#[cfg(test)]
mod tests {
    use burn_dfa_testing::words::{compact, vocabulary_of};
    use serde_json::json;

    use super::*;
    use crate::{ErrorKind, Limits};

    #[test]
    fn arrays_of_kernels_hold_the_frames_of_a_token() {
        let vocabulary = vocabulary_of(&["[[", "[[[[", "something"]);
        let vocab_size = vocabulary.len();
        let capacity = Capacity::new().with_constraints(2).with_states(64).with_classes(32);
        let arena = |capacity| Sizes::arena(&vocabulary, vocab_size, capacity, true);
        let stack = capacity.with_stack(2, 64);
        assert_eq!(arena(capacity).pushes, 0);
        assert_eq!(arena(stack).pushes, 9, "the bytes of the longest token");
        assert_eq!(arena(capacity.with_stack(2, 5)).pushes, 5);
        assert_eq!(arena(stack.with_pushes(3)).pushes, 3);
        assert_eq!(arena(stack.with_pushes(100)).pushes, 64);
        assert_eq!(Sizes::arena(&vocabulary, vocab_size, stack.with_pushes(3), false).pushes, 64);

        let lists = compact(&json!({"type": "array", "items": {"$ref": "#"}}));
        let lists = CompiledConstraint::compile_byte_level(&lists, &vocabulary, &Limits::default()).unwrap();
        assert_eq!((lists.pushes(), lists.frames()), (4, 64));
        let fixed =
            |capacity| Sizes::new(&[&lists], lists.state_count(), vocab_size, capacity, true).unwrap().pushes;
        assert_eq!(fixed(Capacity::new()), 4);
        assert_eq!(fixed(Capacity::new().with_pushes(6)), 6);
        assert_eq!(fixed(stack), 9);
        assert_eq!(fixed(stack.with_pushes(3)), 4);

        arena(stack.with_pushes(4)).check_pushes(lists.pushes()).unwrap();
        let error = arena(stack.with_pushes(3)).check_pushes(lists.pushes()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Input);
        assert!(
            error.to_string().contains("4 frames") && error.to_string().contains("with_pushes"),
            "{error}"
        );
    }

    #[test]
    fn a_stack_too_large_for_a_row_is_refused() {
        let vocabulary = vocabulary_of(&[]);
        let capacity = Capacity::new().with_constraints(1).with_states(1).with_classes(8);
        let check = |exits, frames| {
            let sizes =
                Sizes::arena(&vocabulary, vocabulary.len(), capacity.with_stack(exits, frames), false);
            sizes.check(1 << 20, None)
        };
        check(1, 64).unwrap();
        for (exits, frames) in [(1, usize::MAX), (1, 1 << 40), (usize::MAX, 1)] {
            assert_eq!(check(exits, frames).unwrap_err().kind(), ErrorKind::Limit);
        }
    }
}
