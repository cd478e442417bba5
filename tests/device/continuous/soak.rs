//! Constraints loaded and released at random, against the host.

use burn::tensor::{DType, Device, Tensor, TensorData};
use burn_dfa::processor::{ConstraintProcessor, Position};
use burn_dfa::{
    Arena, ArenaSpace, Capacity, CompiledConstraint, Constraint, Kernels, Limits, StateId, TensorOptions,
    TokenId, Vocabulary,
};
use rand::{Rng, SeedableRng, rngs::StdRng};

use crate::common::{devices, ints, mask_rows_bytes};

const ROWS: usize = 16;
const VOCAB_SIZE: usize = 110;
const PAGE: usize = 32;

/// The printable characters of ASCII, a few words, two ends.
fn vocabulary() -> Vocabulary {
    let letters = (0x20..0x7fu8).map(|byte| Some(vec![byte]));
    let words = ["ab", "abc", "cd", "123", "12", "yes"].map(|word| Some(word.as_bytes().to_vec()));
    let tokens = letters.chain(words).chain([None, None, None]);
    Vocabulary::from_bytes(tokens).unwrap().with_eos([TokenId(101), TokenId(103)]).unwrap()
}

/// Constraints of a few to a hundred and fifty states, token-level or in both forms.
fn pool(vocabulary: &Vocabulary, both_forms: bool) -> Vec<CompiledConstraint> {
    let sizes: [usize; 14] = [1, 2, 5, 9, 30, 31, 32, 40, 63, 64, 65, 97, 130, 150];
    let patterns = sizes.iter().flat_map(|size| {
        let (half, third) = (size.div_ceil(2), size.div_ceil(3));
        [
            format!("[a-z]{{{size}}}"),
            format!("(ab|cd|[0-9]){{{half}}}x?"),
            format!("([a-c]{{1,{third}}}-)?[^a]{{1,{third}}}"),
        ]
    });
    let form = |(index, pattern): (usize, String)| {
        let constraint = Constraint::regex(&pattern).unwrap();
        let compile = if both_forms && index % 2 == 0 {
            CompiledConstraint::compile_byte_level
        } else {
            CompiledConstraint::compile_token_level
        };
        compile(&constraint, vocabulary, &Limits::default()).unwrap()
    };
    patterns.enumerate().map(form).collect()
}

/// A row on the host.
struct Row<'a> {
    constraint: &'a CompiledConstraint,
    /// In the pool; `None`: free text.
    index: Option<usize>,
    state: StateId,
    left: u32,
}

fn allows(row: Option<&Row>, ends: &[u32], token: u32) -> bool {
    match row {
        None => ends.contains(&token),
        Some(row) => {
            let next = row.constraint.next(row.state, TokenId(token));
            next != StateId::DEAD && row.constraint.tokens_to_end(next) < row.left.max(1)
        }
    }
}

/// Counts of events.
#[derive(Default)]
struct Tally {
    arrivals: usize,
    refused: usize,
    shared: usize,
    unconstrained: usize,
}

struct Soak<'a> {
    name: String,
    pool: &'a [CompiledConstraint],
    free: &'a CompiledConstraint,
    ends: Vec<u32>,
    device: &'a Device,
    processor: ConstraintProcessor,
    state: Position,
    rows: Vec<Option<Row<'a>>>,
    rng: StdRng,
    tally: Tally,
}

impl<'a> Soak<'a> {
    fn arena(&self) -> &Arena {
        self.processor.arena().unwrap()
    }

    /// Constraints of the pool in use by some row.
    fn live(&self) -> Vec<usize> {
        let mut live: Vec<usize> = self.rows.iter().flatten().filter_map(|row| row.index).collect();
        live.sort_unstable();
        live.dedup();
        live
    }

    fn arrive(&mut self, row: usize) {
        // Sometimes the constraint of another row, or none.
        let live = self.live();
        let index = match self.rng.random_range(0..10) {
            0 => None,
            1..4 if !live.is_empty() => Some(live[self.rng.random_range(0..live.len())]),
            _ => Some(self.rng.random_range(0..self.pool.len())),
        };
        let constraint = index.map(|index| &self.pool[index]);
        let needed = constraint.map_or(0, |constraint| constraint.tokens_to_end(constraint.start()) as usize);
        let budget = needed + self.rng.random_range(0..20);
        let before = self.arena().free_space();
        let pages = constraint.map_or(0, |constraint| (constraint.state_count() - 3).div_ceil(PAGE));
        let is_shared = index.is_none_or(|index| live.contains(&index));
        let has_room = before.constraints > 0 && before.states >= pages * PAGE;
        match self.processor.admit(&mut self.state, row, constraint, budget) {
            Ok(()) => {
                // For any order of arrivals and departures, sufficient free space is usable.
                assert!(is_shared || has_room, "{}: {before}", self.name);
                self.tally.arrivals += 1;
                self.tally.unconstrained += usize::from(index.is_none());
                self.tally.shared += usize::from(index.is_some() && is_shared);
                let constraint = constraint.unwrap_or(self.free);
                self.rows[row] =
                    Some(Row { constraint, index, state: constraint.start(), left: budget as u32 });
            }
            Err(error) => {
                assert!(!is_shared && !has_room, "{}: {error}", self.name);
                let needed = ArenaSpace { states: pages * PAGE, constraints: 1 };
                assert_eq!(error.arena_space(), Some([needed, before]), "{}", self.name);
                assert_eq!(self.arena().free_space(), before);
                self.tally.refused += 1;
                let taken: Vec<_> = (0..ROWS).filter(|&row| self.rows[row].is_some()).collect();
                let gone = taken[self.rng.random_range(0..taken.len())];
                self.depart(gone);
            }
        }
    }

    fn depart(&mut self, row: usize) {
        self.processor.release(&mut self.state, row).unwrap();
        self.rows[row] = None;
    }

    /// All allocated space belongs to constraints in use, in whole pages.
    fn check_free_space(&self) {
        let live = self.live();
        let pages = live.iter().map(|&index| (self.pool[index].state_count() - 3).div_ceil(PAGE));
        let (free, all) = (self.arena().free_space(), self.arena().capacity());
        assert_eq!(all.states - free.states, pages.sum::<usize>() * PAGE, "{}", self.name);
        assert_eq!(all.constraints - free.constraints, live.len(), "{}", self.name);
    }

    /// Masks all rows, checks every logit, and advances every row by a legal token.
    fn step(&mut self, logits: &Tensor<2>, values: &[f32]) {
        let masked = self.processor.mask(&self.state, logits.clone()).into_data();
        let masked = masked.convert_dtype(DType::F32).try_to_vec::<f32>().unwrap();
        let mut tokens = Vec::with_capacity(ROWS);
        for (index, row) in self.rows.iter_mut().enumerate() {
            let mut legal = Vec::new();
            for token in 0..VOCAB_SIZE as u32 {
                let at = index * VOCAB_SIZE + token as usize;
                let allowed = allows(row.as_ref(), &self.ends, token);
                let expected = if allowed { values[at] } else { f32::NEG_INFINITY };
                assert_eq!(masked[at], expected, "{}: row {index}, token {token}", self.name);
                if allowed {
                    legal.push(token);
                }
            }
            let token = legal[self.rng.random_range(0..legal.len())];
            if let Some(row) = row {
                (row.state, row.left) = (row.constraint.next(row.state, TokenId(token)), row.left.max(1) - 1);
            }
            tokens.push(token as i32);
        }
        self.state = self.processor.advance(self.state.clone(), ints(tokens, self.device));
    }
}

/// With a number of `slots`, the batch keeps `slots` mask rows.
fn soak(
    device: &Device,
    name: &str,
    kernels: Kernels,
    both_forms: bool,
    slots: Option<usize>,
    arrivals: usize,
) {
    let vocabulary = vocabulary();
    let pool = pool(&vocabulary, both_forms);
    let free = CompiledConstraint::unconstrained(&vocabulary);
    let capacity = Capacity { constraints: 12, states: 20 * PAGE, classes: 40, ..Capacity::new() };
    let mut options = TensorOptions { capacity, kernels, ..TensorOptions::default() };
    if let Some(slots) = slots {
        options.mask_rows_bytes = mask_rows_bytes(slots, false);
    }
    let arena = Arena::new(&vocabulary, VOCAB_SIZE, &options, device).unwrap();
    if let Some(slots) = slots {
        assert_eq!(arena.device_constraint().mask_row_count(), slots);
    }
    let (empty, bytes) = (arena.free_space(), arena.device_constraint().bytes());
    let processor = ConstraintProcessor::continuous(arena, ROWS).unwrap();
    let mut rng = StdRng::seed_from_u64(8);
    let values: Vec<f32> = (0..ROWS * VOCAB_SIZE).map(|_| rng.random_range(-6.0..6.0)).collect();
    let logits =
        Tensor::<2>::from_data(TensorData::new(values.clone(), [ROWS, VOCAB_SIZE]), (device, DType::F32));
    let mut soak = Soak {
        name: format!("{name}, {kernels:?}, both forms: {both_forms}, {slots:?} mask rows"),
        pool: &pool,
        free: &free,
        ends: vocabulary.eos().iter().map(|id| id.0).collect(),
        device,
        state: processor.start(),
        processor,
        rows: (0..ROWS).map(|_| None).collect(),
        rng,
        tally: Tally::default(),
    };
    while soak.tally.arrivals < arrivals {
        let row = soak.rng.random_range(0..ROWS);
        match soak.rows[row] {
            None => soak.arrive(row),
            Some(_) if soak.rng.random_bool(0.5) => soak.depart(row),
            Some(_) => {}
        }
        soak.check_free_space();
        soak.step(&logits, &values);
        assert_eq!(soak.arena().device_constraint().bytes(), bytes);
    }
    for row in 0..ROWS {
        if soak.rows[row].is_some() {
            soak.depart(row);
        }
    }
    soak.step(&logits, &values);
    assert_eq!(soak.arena().free_space(), empty);
    let Tally { arrivals, refused, shared, unconstrained } = soak.tally;
    assert!(refused > arrivals / 20 && shared > arrivals / 20 && unconstrained > arrivals / 20);
    eprintln!("{}: {arrivals} arrivals, {refused} refused, {shared} shared, {bytes} bytes", soak.name);
}

#[test]
fn ten_thousand_constraints_are_loaded_and_released() {
    soak(&Device::flex(), "flex", Kernels::Fused, true, None, 10_000);
}

#[test]
fn constraints_are_loaded_and_released_by_every_operation() {
    for (name, device) in devices::all() {
        for (kernels, both_forms) in [
            (Kernels::Fused, true),
            (Kernels::Fused, false),
            (Kernels::BuiltIn, true),
            (Kernels::BuiltIn, false),
        ] {
            // On a GPU the built-in operations are the same for any forms.
            if name != "flex" && (kernels, both_forms) == (Kernels::BuiltIn, false) {
                continue;
            }
            // The built-in operations are slow on a GPU, and equal on all devices.
            let arrivals = match (name, kernels) {
                ("flex", _) => 400,
                (_, Kernels::BuiltIn) => 60,
                _ => 200,
            };
            soak(&device, name, kernels, both_forms, None, arrivals);
            // Pools of a few slots, in which almost every step gives a slot to another state.
            if name != "flex" && (kernels, both_forms) == (Kernels::Fused, true) {
                for slots in [1, 2, 3, 16] {
                    soak(&device, name, kernels, both_forms, Some(slots), arrivals);
                }
            }
        }
    }
}
