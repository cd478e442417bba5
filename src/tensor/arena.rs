//! An arena: admits and releases constraints while other constraints are in use.

use std::collections::BTreeSet;

use burn::tensor::Device;

#[cfg(feature = "flex")]
use super::CpuConstraints;
use super::placement::{PAGE, pages_of, placed};
use super::{DeviceConstraint, Image, Sizes, Store, TensorOptions};
#[cfg(feature = "remote")]
use crate::remote::RemoteConstraints;
use crate::vocabulary::Vocabulary;
use burn_dfa_tokens::{ArenaSpace, CompiledConstraint, Error, Result, StateId};

/// A [`DeviceConstraint`] of fixed size that admits and releases constraints one by one.
///
/// Loading writes only the rows of the new constraint, into the existing buffers: rows of the batch
/// under other constraints continue, and a recorded graph reads the new constraint from its next
/// replay on. On Flex the constraint stays on the host, and loading only registers it.
///
/// States are allocated in pages of 32. The entries of the arrays are absolute state numbers, so
/// the pages of a constraint need not be contiguous. Hence a constraint is refused only if it needs
/// more pages than are free, and each constraint wastes at most 31 states.
///
/// Loading a loaded constraint again (itself, or a clone) shares it; it stays until it was released
/// as often as it was loaded. The unconstrained constraint is always loaded, as number 0, and takes
/// no space.
///
/// A clone is an independent arena: neither sees later loads of the other. A graph that you record
/// yourself reads new constraints only while neither the arena nor its
/// [`device_constraint`](Self::device_constraint) has a clone.
///
/// ```
/// use burn::tensor::Device;
/// use burn_dfa::{
///     Arena, Capacity, CompiledConstraint, Constraint, ErrorKind, Limits, TensorOptions, TokenId,
///     Vocabulary,
/// };
///
/// let vocabulary = Vocabulary::from_bytes([Some(b"a".to_vec()), Some(b"b".to_vec()), None])?
///     .with_eos([TokenId(2)])?;
/// let compile = |pattern: &str| {
///     CompiledConstraint::compile(&Constraint::regex(pattern)?, &vocabulary, &Limits::default())
/// };
/// let (ab, ba, aa) = (compile("ab")?, compile("ba")?, compile("aa")?);
///
/// let capacity = Capacity::new().with_constraints(2).with_states(64).with_classes(8);
/// let options = TensorOptions { capacity, ..TensorOptions::default() };
/// let mut arena = Arena::new(&vocabulary, 3, &options, &Device::flex())?;
/// let first = arena.admit(&ab)?;
/// let second = arena.admit(&ba)?;
/// assert_eq!(arena.admit(&ab)?, first); // shared
///
/// let error = arena.admit(&aa).unwrap_err();
/// assert!(error.kind() == ErrorKind::Full && error.arena_space().unwrap()[1].constraints == 0);
/// arena.release(second)?;
/// let third = arena.admit(&aa)?;
///
/// let constraints = arena.device_constraint();
/// let states = constraints.states(&[constraints.start(first), constraints.start(third)])?;
/// let illegal = constraints.illegal(states, None).into_data().try_to_vec::<bool>().unwrap();
/// assert_eq!(illegal, [false, true, true, false, true, true]);
/// # Ok::<(), burn_dfa::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Arena {
    device_constraint: DeviceConstraint,
    /// Every constraint but number 0, which is always loaded.
    loaded: Vec<Option<Loaded>>,
    free: BTreeSet<u32>,
}

#[derive(Clone, Debug)]
struct Loaded {
    constraint: CompiledConstraint,
    pages: Vec<u32>,
    holders: usize,
}

impl Arena {
    /// The number of the unconstrained constraint.
    pub const UNCONSTRAINED: usize = 0;

    /// An arena for constraints of `vocabulary` and rows of `vocab_size` logits.
    /// [`TensorOptions::capacity`] sets its space: the number of loaded constraints, their total
    /// states, and the maximum number of columns. An arena holds token-level and byte-level
    /// constraints.
    ///
    /// # Errors
    /// - [`ErrorKind::Input`](crate::ErrorKind::Input): a capacity of 0 constraints or 0 states, or
    ///   of more frames per token than a kernel holds;
    /// - [`ErrorKind::IncompatibleVocabulary`](crate::ErrorKind::IncompatibleVocabulary):
    ///   `vocab_size` is below the size of the vocabulary;
    /// - [`ErrorKind::Limit`](crate::ErrorKind::Limit): as [`DeviceConstraint::new`].
    pub fn new(
        vocabulary: &Vocabulary,
        vocab_size: usize,
        options: &TensorOptions,
        device: &Device,
    ) -> Result<Self> {
        let capacity = options.capacity;
        if capacity.constraints == 0 || capacity.states == 0 {
            return Err(Error::input(
                "an arena without capacity: say in `TensorOptions::capacity` how many constraints and states it holds",
            ));
        }
        let free = CompiledConstraint::unconstrained(vocabulary);
        let fingerprint = super::check(&[&free], vocab_size)?;
        let sizes = Sizes::arena(vocabulary, vocab_size, capacity, super::runs_kernels(device));
        sizes.check(options.max_bytes, super::largest_binding(device))?;
        let store = Store::new(
            &sizes,
            options,
            device,
            #[cfg(feature = "flex")]
            || {
                // Prepare now, so no request waits for it.
                vocabulary.prepare();
                let (constraints, pages) = (sizes.constraints, sizes.pages());
                CpuConstraints::paged(&free, constraints, pages, sizes.frame(), options.mask_cache_bytes)
            },
            #[cfg(feature = "remote")]
            || {
                RemoteConstraints::paged(
                    vocabulary,
                    &free,
                    (sizes.constraints, sizes.pages()),
                    sizes.frame(),
                    device,
                )
            },
            || Image::vacant(&sizes, vocabulary, &free, device),
        )?;
        let mut device_constraint = DeviceConstraint::of(sizes, store, fingerprint, device);
        device_constraint.starts = vec![StateId::DEAD; sizes.constraints];
        device_constraint.on_host = vec![None; sizes.constraints];
        device_constraint.starts[Self::UNCONSTRAINED] = free.start();
        device_constraint.on_host[Self::UNCONSTRAINED] = Some(free);
        Ok(Self {
            device_constraint,
            loaded: vec![None; capacity.constraints],
            free: (0..sizes.pages() as u32).collect(),
        })
    }

    /// Loads `constraint`, or shares it if it is loaded already; returns its number, see
    /// [`DeviceConstraint::start`].
    ///
    /// # Errors
    /// An error changes nothing.
    /// - [`ErrorKind::Full`](crate::ErrorKind::Full): there is no space until others are released;
    /// - [`ErrorKind::Input`](crate::ErrorKind::Input): it does not fit into an empty arena;
    /// - [`ErrorKind::IncompatibleVocabulary`](crate::ErrorKind::IncompatibleVocabulary): a
    ///   constraint of another vocabulary;
    /// - [`ErrorKind::Artifact`](crate::ErrorKind::Artifact): the constraint violates an invariant.
    pub fn admit(&mut self, constraint: &CompiledConstraint) -> Result<usize> {
        for (at, loaded) in self.loaded.iter_mut().enumerate() {
            if let Some(loaded) = loaded
                && loaded.constraint.is(constraint)
            {
                loaded.holders += 1;
                return Ok(at + 1);
            }
        }
        self.expect_vocabulary(constraint)?;
        super::check(&[constraint], self.device_constraint.vocab_size())?;
        if constraint.start() == StateId::UNCONSTRAINED {
            return Ok(Self::UNCONSTRAINED);
        }
        let count = pages_of(constraint.state_count());
        self.expect_capacity(constraint, count)?;
        let needed = ArenaSpace { states: count * PAGE, constraints: 1 };
        let Some(at) = self.loaded.iter().position(Option::is_none).filter(|_| count <= self.free.len())
        else {
            return Err(Error::full(needed, self.free_space()));
        };
        let pages: Vec<u32> = self.free.iter().copied().take(count).collect();
        let index = at + 1;
        self.device_constraint.store.put(index, constraint, &pages)?;
        pages.iter().for_each(|page| _ = self.free.remove(page));
        self.device_constraint.starts[index] = placed(&pages, constraint.start());
        self.device_constraint.on_host[index] = Some(constraint.clone());
        self.loaded[at] = Some(Loaded { constraint: constraint.clone(), pages, holders: 1 });
        Ok(index)
    }

    /// Refuses a constraint of another vocabulary than the arena's.
    fn expect_vocabulary(&self, constraint: &CompiledConstraint) -> Result<()> {
        let expected = self.device_constraint.fingerprint();
        if constraint.fingerprint() == expected {
            return Ok(());
        }
        let free = self.device_constraint.on_host[Self::UNCONSTRAINED].as_ref();
        Err(Error::incompatible_vocabulary(format!(
            "a constraint of vocabulary {} of {} tokens in an arena for vocabulary {expected} of {}: compile it for the vocabulary of the arena",
            constraint.fingerprint(),
            constraint.vocabulary_len(),
            free.map_or(0, CompiledConstraint::vocabulary_len)
        )))
    }

    /// Refuses a constraint that would not fit into an empty arena.
    fn expect_capacity(&self, constraint: &CompiledConstraint, pages: usize) -> Result<()> {
        let sizes = &self.device_constraint.sizes;
        if constraint.has_special_tokens() {
            return Err(Error::input(
                "a byte-level constraint reads its marker as a token of its own, for which an arena has no space: compile it with `CompiledConstraint::compile_token_level`",
            ));
        }
        if constraint.exits() > sizes.exits || constraint.exits() > 0 && constraint.frames() != sizes.depth {
            return Err(Error::input(format!(
                "a constraint with calls of {} exits and a stack of {} frames in an arena of {} and {}: reserve them in `TensorOptions::capacity`",
                constraint.exits(),
                constraint.frames(),
                sizes.exits,
                sizes.depth
            )));
        }
        if super::runs_kernels(&self.device_constraint.device) && self.device_constraint.is_fused() {
            sizes.check_pushes(constraint.pushes())?;
        }
        let columns = constraint.class_count();
        if columns > sizes.columns || pages > sizes.pages() {
            return Err(Error::input(format!(
                "a constraint of {} states and {columns} columns in an arena of {} and {}: reserve more in `TensorOptions::capacity`",
                constraint.state_count(),
                sizes.pages() * PAGE,
                sizes.columns
            )));
        }
        Ok(())
    }

    /// Releases a loaded constraint. Its pages are free after it was released as often as it was
    /// loaded; its states are then invalid.
    ///
    /// # Errors
    /// [`ErrorKind::Input`](crate::ErrorKind::Input) if no constraint has this number.
    pub fn release(&mut self, index: usize) -> Result<()> {
        if index == Self::UNCONSTRAINED {
            return Ok(());
        }
        let entry = self.loaded.get_mut(index - 1);
        let Some((entry, loaded)) = entry.and_then(|entry| entry.take().map(|loaded| (entry, loaded))) else {
            return Err(Error::input(format!("constraint {index} of an arena: it is not loaded")));
        };
        if loaded.holders > 1 {
            *entry = Some(Loaded { holders: loaded.holders - 1, ..loaded });
            return Ok(());
        }
        self.free.extend(loaded.pages);
        self.device_constraint.store.take_out(index);
        self.device_constraint.starts[index] = StateId::DEAD;
        self.device_constraint.on_host[index] = None;
        Ok(())
    }

    /// The device constraint of all loaded constraints; its [`DeviceConstraint::start`] of any
    /// other is [`StateId::DEAD`]. A clone keeps the constraints loaded now, in separate buffers.
    pub fn device_constraint(&self) -> &DeviceConstraint {
        &self.device_constraint
    }

    /// The free space.
    pub fn free_space(&self) -> ArenaSpace {
        let constraints = self.loaded.iter().filter(|loaded| loaded.is_none()).count();
        ArenaSpace { states: self.free.len() * PAGE, constraints }
    }

    /// The space of the empty arena.
    pub fn capacity(&self) -> ArenaSpace {
        ArenaSpace { states: self.device_constraint.sizes.pages() * PAGE, constraints: self.loaded.len() }
    }

    /// How often a constraint is loaded.
    pub fn holders(&self, index: usize) -> usize {
        let loaded = index.checked_sub(1).and_then(|at| self.loaded.get(at)?.as_ref());
        loaded.map_or(0, |loaded| loaded.holders)
    }
}

#[cfg(all(test, feature = "flex"))]
mod tests;
