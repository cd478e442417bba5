//! Constraints on a server that hosts the fused operations: the server's part.
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

use super::placement::first_of;
use super::{HostTable, TensorOptions};
use crate::vocabulary::Vocabulary;
use burn_dfa_tokens::{Artifact, CompiledConstraint, Limits};

/// Why an operation was refused.
pub(crate) type Refused = String;

/// The constraints of all clients of a server.
#[derive(Default)]
pub(crate) struct HostedTables {
    /// The key is the address of the handle's memory. The stored handle keeps the address from
    /// being reused.
    of_handle: Mutex<HashMap<usize, (FlexTensor, Tables)>>,
}

/// The constraints of a handle.
#[derive(Clone)]
pub(crate) struct Tables {
    pub(crate) host: Arc<HostTable>,
    vocabulary: Vocabulary,
    frame: usize,
    /// The constraints and pages of an arena; 0 for joined constraints.
    room: (usize, usize),
}

/// The maximum number of constraints, of pages, and of numbers in a frame.
const MAX: usize = 1 << 24;

impl HostedTables {
    /// The constraints of a handle.
    pub(crate) fn get(&self, handle: &FlexTensor) -> Result<Tables, Refused> {
        let tables = self.lock().get(&address(handle)).map(|(_, tables)| tables.clone());
        tables.ok_or_else(|| "the tensor is no handle of tables".to_owned())
    }

    /// Makes a handle of constraints, and drops constraints whose handles have no other owner.
    fn keep(&self, tables: Tables) -> FlexTensor {
        let handle = FlexTensor::from_data(TensorData::new(vec![1i32], [1]));
        let mut of_handle = self.lock();
        of_handle.retain(|_, (handle, _)| !handle.is_unique());
        of_handle.insert(address(&handle), (handle.clone(), tables));
        handle
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<usize, (FlexTensor, Tables)>> {
        // An insertion is never half done, so a poisoned lock is consistent.
        self.of_handle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads constraints sent by a client; see `Hosted` for the bytes and the numbers.
    pub(crate) fn read(&self, bytes: &[i32], numbers: &[usize]) -> Result<FlexTensor, Refused> {
        let &[frame, count, pages] = numbers else {
            return Err(format!("{} numbers with tables instead of 3", numbers.len()));
        };
        if [frame, count, pages].into_iter().any(|number| number > MAX) {
            return Err(format!("a frame of {frame} numbers, {count} tables, {pages} pages"));
        }
        let parts = unpack(bytes)?;
        let [vocabulary, tables @ ..] = &parts[..] else { return Err("no vocabulary".to_owned()) };
        let vocabulary = match &vocabulary[..] {
            [] => Vocabulary::default(),
            bytes => Vocabulary::from_file(bytes).map_err(|error| error.to_string())?,
        };
        let tables: Vec<CompiledConstraint> =
            tables.iter().map(|bytes| table(bytes, &vocabulary, frame)).collect::<Result<_, _>>()?;
        let kept_bytes = TensorOptions::default().mask_cache_bytes;
        let host = match (&tables[..], count) {
            ([], _) => return Err("no table".to_owned()),
            (tables, 0) => HostTable::joined(&tables.iter().collect::<Vec<_>>(), frame, kept_bytes),
            ([free], count) => HostTable::paged(free, count, pages, frame, kept_bytes),
            (more, _) => return Err(format!("{} tables in a new arena", more.len())),
        };
        Ok(self.keep(Tables { host: Arc::new(host), vocabulary, frame, room: (count, pages) }))
    }

    /// The arena of a handle with one more constraint.
    pub(crate) fn put(
        &self,
        handle: &FlexTensor,
        bytes: &[i32],
        numbers: &[usize],
    ) -> Result<FlexTensor, Refused> {
        let mut tables = self.get(handle)?;
        let (&index, pages) = numbers.split_first().ok_or("no number of a table")?;
        tables.check(index, pages)?;
        let parts = unpack(bytes)?;
        let [bytes] = &parts[..] else { return Err(format!("{} tables instead of one", parts.len())) };
        let table = table(bytes, &tables.vocabulary, tables.frame)?;
        if super::placement::pages_of(table.state_count()) != pages.len() {
            return Err(format!("{} pages for {} states", pages.len(), table.state_count()));
        }
        let pages: Vec<u32> = pages.iter().map(|&page| page as u32).collect();
        Arc::make_mut(&mut tables.host).put(index, &table, &pages);
        Ok(self.keep(tables))
    }

    /// The arena of a handle without one of its constraints.
    pub(crate) fn take_out(&self, handle: &FlexTensor, numbers: &[usize]) -> Result<FlexTensor, Refused> {
        let mut tables = self.get(handle)?;
        let &[index] = numbers else { return Err("no number of a table".to_owned()) };
        tables.check(index, &[])?;
        Arc::make_mut(&mut tables.host).take_out(index);
        Ok(self.keep(tables))
    }
}

impl Tables {
    /// Refuses rows narrower than the vocabulary.
    pub(crate) fn check_width(&self, vocab_size: usize) -> Result<(), Refused> {
        let needed = self.host.vocabulary_len();
        if vocab_size < needed {
            Err(format!("rows of {vocab_size} logits for {needed} tokens"))
        } else {
            Ok(())
        }
    }

    /// Checks the number of a constraint and its pages against the size of the arena.
    fn check(&self, index: usize, pages: &[usize]) -> Result<(), Refused> {
        let (count, room) = self.room;
        if index == 0 || index >= count {
            return Err(format!("table {index} of an arena of {count}"));
        }
        let mut taken = std::collections::HashSet::new();
        match pages
            .iter()
            .find(|&&page| page >= room || first_of(page as u32) > i32::MAX as usize || !taken.insert(page))
        {
            Some(page) => Err(format!("page {page} of {room}")),
            None => Ok(()),
        }
    }
}

/// The memory address of a handle.
fn address(handle: &FlexTensor) -> usize {
    handle.bytes().as_ptr() as usize
}

/// Reads a constraint whose stack frames fit the frames of a position.
fn table(bytes: &[u8], vocabulary: &Vocabulary, frame: usize) -> Result<CompiledConstraint, Refused> {
    // The maximum size of a message of Burn's transport.
    let limits = Limits {
        bytes: 1 << 30,
        states: i32::MAX as usize,
        time: Duration::from_secs(60),
        ..Limits::default()
    };
    let table = Artifact::from_bytes(bytes).and_then(|artifact| artifact.to_hosted(vocabulary, &limits));
    let table = table.map_err(|error| error.to_string())?;
    if table.outcomes() > 0 && frame <= table.outcomes() {
        return Err(format!("frames of {frame} numbers for {} outcomes", table.outcomes()));
    }
    Ok(table)
}

/// Splits the result of `pack`.
fn unpack(numbers: &[i32]) -> Result<Vec<Vec<u8>>, Refused> {
    let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    let (mut rest, mut parts) = (&bytes[..], Vec::new());
    // The last number may be padded.
    while rest.len() > 3 {
        let (length, after) = rest.split_first_chunk::<4>().ok_or("a part without a length")?;
        let length = u32::from_le_bytes(*length) as usize;
        let (part, after) = after
            .split_at_checked(length)
            .ok_or_else(|| format!("a part of {length} bytes, there are {}", after.len()))?;
        parts.push(part.to_vec());
        rest = after;
    }
    Ok(parts)
}
