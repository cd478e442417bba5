//! State that keeps its place on the device.

use std::sync::Arc;

use burn::tensor::Tensor;
use burn::tensor::kind::Basic;

/// Tensors that a static graph reads and writes at every step, in the same buffers.
///
/// A recorded step reads its state from where it lay when it was recorded, so a new state is written there
/// instead of taking its place. Writing in place needs the tensors to be the only handles of their buffers.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_dfa::processor::Persistent;
///
/// let device = Device::flex();
/// let mut state = (Tensor::<1>::zeros([2], &device), ());
/// state.assign((Tensor::from_floats([1.0, 2.0], &device), ()));
/// assert_eq!(state.0.into_data().try_to_vec::<f32>().unwrap(), [1.0, 2.0]);
/// ```
pub trait Persistent: Clone {
    /// Writes `new`, of the same shapes, into the buffers of `self`.
    fn assign(&mut self, new: Self);
}

impl Persistent for () {
    fn assign(&mut self, (): ()) {}
}

impl<const D: usize, K: Basic> Persistent for Tensor<D, K> {
    fn assign(&mut self, new: Self) {
        self.inplace(|buffer| {
            let everything = buffer.dims().map(|size| 0..size);
            buffer.slice_assign(everything, new)
        });
    }
}

impl<A: Persistent, B: Persistent> Persistent for (A, B) {
    fn assign(&mut self, (first, second): Self) {
        self.0.assign(first);
        self.1.assign(second);
    }
}

/// A state of `None` stays `None`.
impl<S: Persistent> Persistent for Option<S> {
    fn assign(&mut self, new: Self) {
        if let (Some(state), Some(new)) = (self, new) {
            state.assign(new);
        }
    }
}

/// A part of a state that no step changes, such as a mask made before the loop.
///
/// ```
/// use burn_dfa::processor::{Constant, Persistent};
///
/// let mut state = Constant("made before the loop");
/// state.assign(Constant("left out"));
/// assert_eq!(state.0, "made before the loop");
/// ```
#[derive(Clone, Debug)]
pub struct Constant<T>(pub T);

/// Nothing to write.
impl<T: Clone> Persistent for Constant<T> {
    fn assign(&mut self, _: Self) {}
}

/// A part of a state that no step changes, and another batch or another row does, such as a temperature of each row.
///
/// A step hands on the value that it was given, in the same buffers. To write these into themselves would take other ones,
/// which a recorded step does not read; so a value is written only where it is not the one that is there.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_dfa::processor::{Kept, Persistent};
///
/// let device = Device::flex();
/// let mut state = Kept::new(Tensor::<1>::from_floats([0.5], &device));
/// state.assign(state.clone()); // nothing to write
/// state.assign(Kept::new(Tensor::from_floats([0.7], &device)));
/// assert_eq!(state.get().to_data().try_to_vec::<f32>().unwrap(), [0.7]);
/// ```
#[derive(Clone, Debug)]
pub struct Kept<T> {
    value: T,
    /// Two with the same mark have the same value.
    mark: Arc<()>,
}

impl<T> Kept<T> {
    /// A value that differs from all others.
    pub fn new(value: T) -> Self {
        Self { value, mark: Arc::new(()) }
    }

    /// The value.
    pub fn get(&self) -> &T {
        &self.value
    }
}

impl<T: Persistent> Persistent for Kept<T> {
    fn assign(&mut self, new: Self) {
        if !Arc::ptr_eq(&self.mark, &new.mark) {
            self.value.assign(new.value);
            self.mark = new.mark;
        }
    }
}

/// State whose rows begin and end on their own, each with the state that a batch of that row alone begins with.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_dfa::processor::RowState;
///
/// let device = Device::flex();
/// let mut state = Tensor::<1>::zeros([3], &device);
/// state.assign_row(1, Tensor::from_floats([5.0], &device));
/// assert_eq!(state.into_data().try_to_vec::<f32>().unwrap(), [0.0, 5.0, 0.0]);
/// ```
pub trait RowState: Persistent {
    /// Writes `new`, the state of one row, into row `row`, in the buffers of `self`.
    fn assign_row(&mut self, row: usize, new: Self);
}

impl RowState for () {
    fn assign_row(&mut self, _: usize, (): ()) {}
}

impl<const D: usize, K: Basic> RowState for Tensor<D, K> {
    fn assign_row(&mut self, row: usize, new: Self) {
        self.inplace(|buffer| {
            let mut place = buffer.dims().map(|size| 0..size);
            place[0] = row..row + 1;
            buffer.slice_assign(place, new)
        });
    }
}

impl<A: RowState, B: RowState> RowState for (A, B) {
    fn assign_row(&mut self, row: usize, (first, second): Self) {
        self.0.assign_row(row, first);
        self.1.assign_row(row, second);
    }
}

/// A state of `None` stays `None`.
impl<S: RowState> RowState for Option<S> {
    fn assign_row(&mut self, row: usize, new: Self) {
        if let (Some(state), Some(new)) = (self, new) {
            state.assign_row(row, new);
        }
    }
}

/// The value with another row is another value.
impl<T: RowState> RowState for Kept<T> {
    fn assign_row(&mut self, row: usize, new: Self) {
        self.value.assign_row(row, new.value);
        self.mark = Arc::new(());
    }
}

/// A constant is the same for every row.
impl<T: Clone> RowState for Constant<T> {
    fn assign_row(&mut self, _: usize, _: Self) {}
}
