//! Tables on a server that hosts the fused operations: the server's half.
//!
//! A client names its tables by a tensor that the server made for them. The tensor counts by the memory that it lies in, not by
//! what it holds, so a client reaches no tables but those that it was given a handle of; and they are dropped when no client
//! has the handle any more.
//!
//! Nothing that a client sends is taken on trust: what is not as it must be is refused with a reason.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use burn::backend::flex::FlexTensor;
use burn::tensor::TensorData;

use super::placement::first_of;
use super::{HostTable, TensorOptions};
use crate::limits::Limits;
use crate::table::{Artifact, TokenTable};
use crate::vocabulary::Vocabulary;

/// Why an operation was refused.
pub(crate) type Refused = String;

/// The tables of all clients of a server.
#[derive(Default)]
pub(crate) struct HostedTables {
    /// By the address of the handle's memory, which the handle here keeps from being given out again.
    of_handle: Mutex<HashMap<usize, (FlexTensor, Tables)>>,
}

/// Tables that a handle stands for.
#[derive(Clone)]
pub(crate) struct Tables {
    pub(crate) host: Arc<HostTable>,
    vocabulary: Vocabulary,
    frame: usize,
    /// Of an arena its tables and pages; 0 where tables are joined.
    room: (usize, usize),
}

/// The most tables, pages and numbers of a frame.
const MOST: usize = 1 << 24;

impl HostedTables {
    /// The tables of a handle.
    pub(crate) fn get(&self, handle: &FlexTensor) -> Result<Tables, Refused> {
        let tables = self.lock().get(&address(handle)).map(|(_, tables)| tables.clone());
        tables.ok_or_else(|| "the tensor is no handle of tables".to_owned())
    }

    /// A handle of tables; those whose handles nobody has any more are dropped.
    fn keep(&self, tables: Tables) -> FlexTensor {
        let handle = FlexTensor::from_data(TensorData::new(vec![1i32], [1]));
        let mut of_handle = self.lock();
        of_handle.retain(|_, (handle, _)| !handle.is_unique());
        of_handle.insert(address(&handle), (handle.clone(), tables));
        handle
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<usize, (FlexTensor, Tables)>> {
        // Entries are put in whole.
        self.of_handle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the tables that a client sends; see `Hosted` for the bytes and the numbers.
    pub(crate) fn read(&self, bytes: &[i32], numbers: &[usize]) -> Result<FlexTensor, Refused> {
        let &[frame, count, pages] = numbers else {
            return Err(format!("{} numbers with tables instead of 3", numbers.len()));
        };
        if [frame, count, pages].into_iter().any(|number| number > MOST) {
            return Err(format!("a frame of {frame} numbers, {count} tables, {pages} pages"));
        }
        let parts = unpack(bytes)?;
        let [vocabulary, tables @ ..] = &parts[..] else { return Err("no vocabulary".to_owned()) };
        let vocabulary = match &vocabulary[..] {
            [] => Vocabulary::default(),
            bytes => Vocabulary::from_file(bytes).map_err(|error| error.to_string())?,
        };
        let tables: Vec<TokenTable> =
            tables.iter().map(|bytes| table(bytes, &vocabulary, frame)).collect::<Result<_, _>>()?;
        let kept_bytes = TensorOptions::default().max_kept_bytes;
        let host = match (&tables[..], count) {
            ([], _) => return Err("no table".to_owned()),
            (tables, 0) => HostTable::joined(&tables.iter().collect::<Vec<_>>(), frame, kept_bytes),
            ([free], count) => HostTable::paged(free, count, pages, frame, kept_bytes),
            (more, _) => return Err(format!("{} tables in a new arena", more.len())),
        };
        Ok(self.keep(Tables { host: Arc::new(host), vocabulary, frame, room: (count, pages) }))
    }

    /// The arena of a handle with one more table in it.
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

    /// The arena of a handle without one of its tables.
    pub(crate) fn take_out(&self, handle: &FlexTensor, numbers: &[usize]) -> Result<FlexTensor, Refused> {
        let mut tables = self.get(handle)?;
        let &[index] = numbers else { return Err("no number of a table".to_owned()) };
        tables.check(index, &[])?;
        Arc::make_mut(&mut tables.host).take_out(index);
        Ok(self.keep(tables))
    }
}

impl Tables {
    /// Refuses rows that are narrower than the vocabulary.
    pub(crate) fn check_width(&self, width: usize) -> Result<(), Refused> {
        let needed = self.host.vocabulary_len();
        if width < needed { Err(format!("rows of {width} logits for {needed} tokens")) } else { Ok(()) }
    }

    /// Checks that a table of an arena and its pages are among those that there are.
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

/// Where the memory of a handle lies.
fn address(handle: &FlexTensor) -> usize {
    handle.bytes().as_ptr() as usize
}

/// A table whose frames have room in those of a position.
fn table(bytes: &[u8], vocabulary: &Vocabulary, frame: usize) -> Result<TokenTable, Refused> {
    // A message of Burn's transport has at most as many bytes.
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

/// What `pack` has put together.
fn unpack(numbers: &[i32]) -> Result<Vec<Vec<u8>>, Refused> {
    let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    let (mut rest, mut parts) = (&bytes[..], Vec::new());
    // The last number is filled up.
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
