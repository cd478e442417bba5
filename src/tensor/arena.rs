//! An arena: tables that come and go while others are in use.

use std::collections::BTreeSet;

use burn::tensor::Device;

#[cfg(feature = "flex")]
use super::HostTable;
#[cfg(feature = "remote")]
use super::Hosted;
use super::placement::{PAGE, pages_of, placed};
use super::{Image, Layout, Sizes, Store, TensorOptions, TensorTable};
use crate::error::{Error, Result, Room};
use crate::table::{StateId, TokenTable};
use crate::vocabulary::Vocabulary;

/// A [`TensorTable`] of fixed size, into which tables are loaded and from which they are released one by one.
///
/// Loading writes the rows of the new table into the buffers that are there and touches no others: rows that
/// follow other tables go on, and a recorded graph reads the new table from its next replay on. On Flex, where the
/// table stays on the host, it only takes note of it.
///
/// Room for states is given out in pages of 32, wherever they are free: entries of the table are the numbers of
/// states as they lie, so a table need not lie in one piece. Hence a table is refused only where there
/// are truly fewer free pages than it needs, and at most 31 states of each table are unused.
///
/// A table that is loaded again while it is there (itself, or a clone) is shared, and stays until it was released
/// as often as it was loaded. The unconstrained table is always there, as number 0, and takes no room.
///
/// A clone is an arena of its own: neither sees what the other loads from then on.
///
/// ```
/// use burn::tensor::Device;
/// use burn_dfa::{Arena, Capacity, Constraint, Limits, TensorOptions, TokenId, TokenTable, Vocabulary};
///
/// let vocabulary = Vocabulary::from_bytes([Some(b"a".to_vec()), Some(b"b".to_vec()), None])?
///     .with_eos([TokenId(2)])?;
/// let compile = |pattern: &str| {
///     TokenTable::compile(&Constraint::regex(pattern)?, &vocabulary, &Limits::default())
/// };
/// let (ab, ba, aa) = (compile("ab")?, compile("ba")?, compile("aa")?);
///
/// let capacity = Capacity::new().with_tables(2).with_states(64).with_classes(8);
/// let options = TensorOptions { capacity, ..TensorOptions::default() };
/// let mut arena = Arena::new(&vocabulary, 3, &options, &Device::flex())?;
/// let first = arena.load(&ab)?;
/// let second = arena.load(&ba)?;
/// assert_eq!(arena.load(&ab)?, first); // shared
///
/// let error = arena.load(&aa).unwrap_err();
/// assert!(error.is_full() && error.room().unwrap()[1].tables == 0);
/// arena.release(second)?;
/// let third = arena.load(&aa)?;
///
/// let states = arena.table().states(&[arena.table().start(first), arena.table().start(third)])?;
/// let illegal = arena.table().illegal(states, None).into_data().try_to_vec::<bool>().unwrap();
/// assert_eq!(illegal, [false, true, true, false, true, true]);
/// # Ok::<(), burn_dfa::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Arena {
    table: TensorTable,
    /// Of every table but number 0, which is always there.
    loaded: Vec<Option<Loaded>>,
    free: BTreeSet<u32>,
}

#[derive(Clone, Debug)]
struct Loaded {
    table: TokenTable,
    pages: Vec<u32>,
    holders: usize,
}

impl Arena {
    /// The number of the unconstrained table.
    pub const UNCONSTRAINED: usize = 0;

    /// An arena for tables of `vocabulary` and rows of `width` logits. [`TensorOptions::capacity`] is its room: tables
    /// at a time, states of all of them together, and the most columns of any.
    ///
    /// Without a layout it takes [`Layout::Walk`], in which tables of both forms lie side by side;
    /// [`Layout::Classes`] is smaller and holds tabulated ones only.
    ///
    /// # Errors
    /// - [`Error::is_input`]: a capacity of no table or no state;
    /// - [`Error::is_incompatible_vocabulary`]: `width` is below the size of the vocabulary;
    /// - [`Error::is_limit`]: as [`TensorTable::new`].
    pub fn new(
        vocabulary: &Vocabulary,
        width: usize,
        options: &TensorOptions,
        device: &Device,
    ) -> Result<Self> {
        let capacity = options.capacity;
        if capacity.tables == 0 || capacity.states == 0 {
            return Err(Error::input(
                "an arena without room: say in `TensorOptions::capacity` how many tables and states it holds",
            ));
        }
        let free = TokenTable::unconstrained(vocabulary);
        let fingerprint = super::check(&[&free], width)?;
        let sizes = Sizes::arena(options.layout, vocabulary, width, capacity);
        sizes.check(options.max_bytes, super::largest_binding(device))?;
        let store = Store::new(
            &sizes,
            options.kernels,
            device,
            #[cfg(feature = "flex")]
            || {
                // Requests come later, and none of them should wait for it.
                vocabulary.prepare();
                let (tables, pages) = (sizes.tables, sizes.pages());
                HostTable::paged(&free, tables, pages, sizes.frame(), options.max_kept_bytes)
            },
            #[cfg(feature = "remote")]
            || Hosted::paged(vocabulary, &free, (sizes.tables, sizes.pages()), sizes.frame(), device),
            || Image::vacant(&sizes, vocabulary, &free, device),
        )?;
        let mut table = TensorTable::of(sizes, store, fingerprint, device);
        table.starts = vec![StateId::DEAD; sizes.tables];
        table.start_tokens = vec![usize::MAX; sizes.tables];
        (table.starts[Self::UNCONSTRAINED], table.start_tokens[Self::UNCONSTRAINED]) = (free.start(), 0);
        Ok(Self { table, loaded: vec![None; capacity.tables], free: (0..sizes.pages() as u32).collect() })
    }

    /// Loads `table`, or shares it where it is loaded already; gives its number, see
    /// [`TensorTable::start`].
    ///
    /// # Errors
    /// Nothing has changed then.
    /// - [`Error::is_full`]: there is no room until others are released;
    /// - [`Error::is_input`]: there is no room for it even in an empty arena, or not in this layout;
    /// - [`Error::is_incompatible_vocabulary`]: a table of another vocabulary;
    /// - [`Error::is_table`]: the table breaks an invariant.
    pub fn load(&mut self, table: &TokenTable) -> Result<usize> {
        for (place, loaded) in self.loaded.iter_mut().enumerate() {
            if let Some(loaded) = loaded
                && loaded.table.is(table)
            {
                loaded.holders += 1;
                return Ok(place + 1);
            }
        }
        let fingerprint = super::check(&[table], self.table.width())?;
        if fingerprint != self.table.fingerprint() {
            return Err(Error::incompatible_vocabulary(format!(
                "a table of vocabulary {fingerprint} in an arena of {}",
                self.table.fingerprint()
            )));
        }
        if table.start() == StateId::UNCONSTRAINED {
            return Ok(Self::UNCONSTRAINED);
        }
        let count = pages_of(table.state_count());
        self.expect_room(table, count)?;
        let needed = Room { states: count * PAGE, tables: 1 };
        let Some(place) = self.loaded.iter().position(Option::is_none).filter(|_| count <= self.free.len())
        else {
            return Err(Error::full(needed, self.room()));
        };
        let pages: Vec<u32> = self.free.iter().copied().take(count).collect();
        let index = place + 1;
        self.table.store.put(index, table, &pages)?;
        pages.iter().for_each(|page| _ = self.free.remove(page));
        self.table.starts[index] = placed(&pages, table.start());
        self.table.start_tokens[index] = table.tokens_to_end(table.start()) as usize;
        self.loaded[place] = Some(Loaded { table: table.clone(), pages, holders: 1 });
        Ok(index)
    }

    /// Refuses a table that would not fit if nothing else were there.
    fn expect_room(&self, table: &TokenTable, pages: usize) -> Result<()> {
        let sizes = &self.table.sizes;
        if sizes.layout == Layout::Classes && table.is_walked() {
            return Err(Error::input(
                "a walked table has no token classes: compile it with `TokenTable::tabulate`, or take `Layout::Walk`",
            ));
        }
        if sizes.layout == Layout::Walk && table.has_special_tokens() {
            return Err(Error::input(
                "a walked table reads its marker as a token of its own, for which an arena has no room: compile it with `TokenTable::tabulate`",
            ));
        }
        if table.outcomes() > sizes.ends || table.outcomes() > 0 && table.frames() != sizes.depth {
            return Err(Error::input(format!(
                "a table with calls of {} outcomes and a stack of {} frames in an arena of {} and {}: reserve them in `TensorOptions::capacity`",
                table.outcomes(),
                table.frames(),
                sizes.ends,
                sizes.depth
            )));
        }
        let columns = if sizes.layout == Layout::Dense { 0 } else { table.class_count() };
        if columns > sizes.columns || pages > sizes.pages() {
            return Err(Error::input(format!(
                "a table of {} states and {columns} columns in an arena of {} and {}: reserve more in `TensorOptions::capacity`",
                table.state_count(),
                sizes.pages() * PAGE,
                sizes.columns
            )));
        }
        Ok(())
    }

    /// Releases a table that was loaded; what it took is free once it was released as often as it was loaded.
    /// States of it mean nothing then.
    ///
    /// # Errors
    /// [`Error::is_input`] where there is no such table.
    pub fn release(&mut self, index: usize) -> Result<()> {
        if index == Self::UNCONSTRAINED {
            return Ok(());
        }
        let place = self.loaded.get_mut(index - 1);
        let Some((place, loaded)) = place.and_then(|place| place.take().map(|loaded| (place, loaded))) else {
            return Err(Error::input(format!("table {index} of an arena: it is not loaded")));
        };
        if loaded.holders > 1 {
            *place = Some(Loaded { holders: loaded.holders - 1, ..loaded });
            return Ok(());
        }
        self.free.extend(loaded.pages);
        self.table.store.take_out(index);
        self.table.starts[index] = StateId::DEAD;
        self.table.start_tokens[index] = usize::MAX;
        Ok(())
    }

    /// What looks up the tables that are loaded; its [`TensorTable::start`] of others is [`StateId::DEAD`]. A clone
    /// of it keeps what is loaded now, in buffers of its own.
    pub fn table(&self) -> &TensorTable {
        &self.table
    }

    /// The room that is free.
    pub fn room(&self) -> Room {
        let tables = self.loaded.iter().filter(|loaded| loaded.is_none()).count();
        Room { states: self.free.len() * PAGE, tables }
    }

    /// The room of the empty arena.
    pub fn capacity(&self) -> Room {
        Room { states: self.table.sizes.pages() * PAGE, tables: self.loaded.len() }
    }

    /// How often a table is loaded.
    pub fn holders(&self, index: usize) -> usize {
        let loaded = index.checked_sub(1).and_then(|place| self.loaded.get(place)?.as_ref());
        loaded.map_or(0, |loaded| loaded.holders)
    }
}

#[cfg(all(test, feature = "flex"))]
mod tests;
