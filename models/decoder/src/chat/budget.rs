//! What a chat template may still use while it renders: bytes of the texts and lists that it makes,
//! and work. Each thread renders one template.

use std::cell::Cell;
use std::fmt::{self, Write};

use minijinja::value::ValueKind;
use minijinja::{Error, ErrorKind, Value};

/// Total bytes of the texts and lists that a template makes, including discarded ones.
const MAX_BYTES: usize = 256 << 20;
/// Bytes of text that a template may read.
const MAX_WORK: usize = 2 << 30;
/// Greatest nesting depth of lists and maps in written values.
pub(crate) const MAX_DEPTH: usize = 200;

thread_local! {
    /// Remaining bytes of the template that runs on this thread.
    static BYTES: Cell<usize> = const { Cell::new(0) };
    /// The remaining work of the template on this thread.
    static WORK: Cell<usize> = const { Cell::new(0) };
}

/// Gives the template of this thread its full budget.
pub(crate) fn begin() {
    BYTES.set(MAX_BYTES);
    WORK.set(MAX_WORK);
}

/// Charges some bytes to the template of this thread.
pub(crate) fn take(bytes: usize) -> Result<(), Error> {
    let left = BYTES.get().checked_sub(bytes);
    BYTES.set(left.unwrap_or(0));
    left.map(drop).ok_or_else(|| wrong(&format!("it makes texts and lists of more than {MAX_BYTES} bytes")))
}

/// Charges some work to the template of this thread.
pub(crate) fn spend(work: usize) -> Result<(), Error> {
    let left = WORK.get().checked_sub(work);
    WORK.set(left.unwrap_or(0));
    left.map(drop).ok_or_else(|| wrong("it compares, searches or cuts too much text"))
}

/// The error of an operation on a wrong value, or beyond the budget.
pub(crate) fn wrong(message: &str) -> Error {
    Error::new(ErrorKind::InvalidOperation, message.to_owned())
}

/// A new value, after its bytes are counted.
pub(crate) fn counted(value: Value) -> Result<Value, Error> {
    let bytes = match value.kind() {
        ValueKind::String => value.as_str().map_or(0, str::len),
        ValueKind::Seq => value.len().unwrap_or(0).saturating_mul(4 * size_of::<Value>()),
        _ => 0,
    };
    take(bytes).map(|()| value)
}

/// A writer that fails when no bytes are left.
pub(crate) struct Bounded<W>(pub(crate) W);

impl<W: Write> Write for Bounded<W> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        take(text.len()).map_err(|_| fmt::Error)?;
        self.0.write_str(text)
    }
}

/// The text that `write` writes, as long as bytes are left.
pub(crate) fn written(write: impl FnOnce(&mut Bounded<String>) -> fmt::Result) -> Result<String, Error> {
    let mut text = Bounded(String::new());
    match write(&mut text) {
        Ok(()) => Ok(text.0),
        // The usual cause is an exhausted byte budget.
        Err(error) => Err(take(1).err().unwrap_or_else(|| error.into())),
    }
}
