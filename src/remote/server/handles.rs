//! The constraints that clients have sent, by their handles.
//!
//! A client names its constraints by a handle, a tensor made by the server. The server identifies a
//! handle by its memory address, not by its value, so a client can use only the constraints of its
//! handles. The server drops constraints after their handle has no owner.
//!
//! The server validates all client data and refuses invalid data with a reason.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use burn::backend::flex::FlexTensor;
use burn::tensor::TensorData;

use crate::TensorOptions;
use crate::remote::wire::unpack;
use crate::tensor::CpuConstraints;
use crate::tensor::placement::{first_of, pages_of};
use crate::vocabulary::Vocabulary;
use burn_dfa_tokens::{Artifact, CompiledConstraint, Limits};

/// Why an operation was refused.
pub(super) type Refused = String;

/// The constraints of all clients of a server.
#[derive(Default)]
pub(super) struct Handles {
    /// The key is the address of the handle's memory. The stored handle keeps the address from
    /// being reused.
    of_handle: Mutex<HashMap<usize, (FlexTensor, Sent)>>,
}

/// The constraints of a handle.
#[derive(Clone)]
pub(super) struct Sent {
    pub(super) constraints: Arc<CpuConstraints>,
    vocabulary: Vocabulary,
    frame: usize,
    /// The constraints and pages of an arena; 0 for joined constraints.
    arena: (usize, usize),
}

/// The maximum number of constraints, of pages, and of numbers in a frame.
const MAX: usize = 1 << 24;

impl Handles {
    /// The constraints of a handle.
    pub(super) fn get(&self, handle: &FlexTensor) -> Result<Sent, Refused> {
        let sent = self.lock().get(&address(handle)).map(|(_, sent)| sent.clone());
        sent.ok_or_else(|| "the tensor is no handle of constraints".to_owned())
    }

    /// Makes a handle of constraints, and drops constraints whose handles have no other owner.
    fn keep(&self, sent: Sent) -> FlexTensor {
        let handle = FlexTensor::from_data(TensorData::new(vec![1i32], [1]));
        let mut of_handle = self.lock();
        of_handle.retain(|_, (handle, _)| !handle.is_unique());
        of_handle.insert(address(&handle), (handle.clone(), sent));
        handle
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<usize, (FlexTensor, Sent)>> {
        // An insertion is never half done, so a poisoned lock is consistent.
        self.of_handle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads constraints that a client sends, see `operation::CONSTRAINTS`.
    pub(super) fn read(&self, bytes: &[i32], numbers: &[usize]) -> Result<FlexTensor, Refused> {
        let &[frame, count, pages] = numbers else {
            return Err(format!("{} numbers with constraints instead of 3", numbers.len()));
        };
        if [frame, count, pages].into_iter().any(|number| number > MAX) {
            return Err(format!("a frame of {frame} numbers, {count} constraints, {pages} pages"));
        }
        let parts = unpack(bytes)?;
        let [vocabulary, artifacts @ ..] = &parts[..] else { return Err("no vocabulary".to_owned()) };
        let vocabulary = match &vocabulary[..] {
            [] => Vocabulary::default(),
            bytes => Vocabulary::from_file(bytes).map_err(|error| error.to_string())?,
        };
        let compiled: Vec<CompiledConstraint> = artifacts
            .iter()
            .map(|bytes| read_constraint(bytes, &vocabulary, frame))
            .collect::<Result<_, _>>()?;
        let mask_cache_bytes = TensorOptions::default().mask_cache_bytes;
        let constraints = match (&compiled[..], count) {
            ([], _) => return Err("no constraint".to_owned()),
            (compiled, 0) => {
                CpuConstraints::joined(&compiled.iter().collect::<Vec<_>>(), frame, mask_cache_bytes)
            }
            ([free], count) => CpuConstraints::paged(free, count, pages, frame, mask_cache_bytes),
            (more, _) => return Err(format!("{} constraints in a new arena", more.len())),
        };
        Ok(self.keep(Sent { constraints: Arc::new(constraints), vocabulary, frame, arena: (count, pages) }))
    }

    /// The arena of a handle with one more constraint.
    pub(super) fn put(
        &self,
        handle: &FlexTensor,
        bytes: &[i32],
        numbers: &[usize],
    ) -> Result<FlexTensor, Refused> {
        let mut sent = self.get(handle)?;
        let (&index, pages) = numbers.split_first().ok_or("no number of a constraint")?;
        sent.check(index, pages)?;
        let parts = unpack(bytes)?;
        let [bytes] = &parts[..] else { return Err(format!("{} constraints instead of one", parts.len())) };
        let constraint = read_constraint(bytes, &sent.vocabulary, sent.frame)?;
        if pages_of(constraint.state_count()) != pages.len() {
            return Err(format!("{} pages for {} states", pages.len(), constraint.state_count()));
        }
        let pages: Vec<u32> = pages.iter().map(|&page| page as u32).collect();
        Arc::make_mut(&mut sent.constraints).put(index, &constraint, &pages);
        Ok(self.keep(sent))
    }

    /// The arena of a handle without one of its constraints.
    pub(super) fn take_out(&self, handle: &FlexTensor, numbers: &[usize]) -> Result<FlexTensor, Refused> {
        let mut sent = self.get(handle)?;
        let &[index] = numbers else { return Err("no number of a constraint".to_owned()) };
        sent.check(index, &[])?;
        Arc::make_mut(&mut sent.constraints).take_out(index);
        Ok(self.keep(sent))
    }
}

impl Sent {
    /// Refuses rows narrower than the vocabulary.
    pub(super) fn check_vocab_size(&self, vocab_size: usize) -> Result<(), Refused> {
        let needed = self.constraints.vocabulary_len();
        if vocab_size < needed {
            Err(format!("rows of {vocab_size} logits for {needed} tokens"))
        } else {
            Ok(())
        }
    }

    /// Checks the number of a constraint and its pages against the size of the arena.
    fn check(&self, index: usize, pages: &[usize]) -> Result<(), Refused> {
        let (count, page_count) = self.arena;
        if index == 0 || index >= count {
            return Err(format!("constraint {index} of an arena of {count}"));
        }
        let mut taken = std::collections::HashSet::new();
        match pages.iter().find(|&&page| {
            page >= page_count || first_of(page as u32) > i32::MAX as usize || !taken.insert(page)
        }) {
            Some(page) => Err(format!("page {page} of {page_count}")),
            None => Ok(()),
        }
    }
}

/// The memory address of a handle.
fn address(handle: &FlexTensor) -> usize {
    handle.bytes().as_ptr() as usize
}

/// Reads a constraint whose stack frames fit the frames of a position.
fn read_constraint(
    bytes: &[u8],
    vocabulary: &Vocabulary,
    frame: usize,
) -> Result<CompiledConstraint, Refused> {
    // The maximum size of a message of Burn's transport.
    let limits = Limits {
        bytes: 1 << 30,
        states: i32::MAX as usize,
        time: Duration::from_secs(60),
        ..Limits::default()
    };
    let constraint =
        Artifact::from_bytes(bytes).and_then(|artifact| artifact.to_server_constraint(vocabulary, &limits));
    let constraint = constraint.map_err(|error| error.to_string())?;
    if constraint.exits() > 0 && frame <= constraint.exits() {
        return Err(format!("frames of {frame} numbers for {} exits", constraint.exits()));
    }
    Ok(constraint)
}
