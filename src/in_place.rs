//! State that stays in the same buffers on the device, so that a recorded step can be replayed.

use std::sync::Arc;

use burn::tensor::kind::Basic;
use burn::tensor::{Bool, Tensor};
use replace_with::replace_with;

/// Replaces a tensor by the result of `write`, which is given the handle itself. If there is no
/// other handle of the buffer, an operation such as `slice_assign` writes into it.
///
/// [`Tensor::inplace`] does the same, but allocates an empty tensor for the time of the call. A
/// recording can use only memory that the runs before it left, so it fails at times: when more such
/// tensors exist at once than in these runs. Use this function in steps that are recorded.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_dfa::processor::in_place;
///
/// let mut lengths = Tensor::<1>::from_floats([3.0, 5.0], &Device::flex());
/// in_place(&mut lengths, |lengths| lengths + 1);
/// assert_eq!(lengths.into_data().try_to_vec::<f32>().unwrap(), [4.0, 6.0]);
/// ```
///
/// # Panics
/// If `write` panics; the tensor is then empty.
pub fn in_place<const D: usize, K: Basic>(
    tensor: &mut Tensor<D, K>,
    write: impl FnOnce(Tensor<D, K>) -> Tensor<D, K>,
) {
    let device = tensor.device();
    replace_with(tensor, || Tensor::empty([0; D], &device), write);
}

/// Tensors that a static graph reads and writes at every step, in the same buffers.
///
/// A recorded step reads its state from the buffers of the recording, so a new state must be
/// written into these buffers. Writing in place requires that the tensors are the only handles of
/// their buffers.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_dfa::processor::InPlaceState;
///
/// let device = Device::flex();
/// let mut state = (Tensor::<1>::zeros([2], &device), (), None::<Tensor<1>>);
/// state.assign((Tensor::from_floats([1.0, 2.0], &device), (), None));
/// assert_eq!(state.0.into_data().try_to_vec::<f32>().unwrap(), [1.0, 2.0]);
/// ```
pub trait InPlaceState: Clone {
    /// Writes `new`, of the same shapes, into the buffers of `self`.
    fn assign(&mut self, new: Self);
}

impl InPlaceState for () {
    fn assign(&mut self, (): ()) {}
}

impl<const D: usize, K: Basic> InPlaceState for Tensor<D, K> {
    fn assign(&mut self, new: Self) {
        in_place(self, |buffer| {
            let everything = buffer.dims().map(|size| 0..size);
            buffer.slice_assign(everything, new)
        });
    }
}

/// A state of `None` stays `None`.
impl<S: InPlaceState> InPlaceState for Option<S> {
    fn assign(&mut self, new: Self) {
        if let (Some(state), Some(new)) = (self, new) {
            state.assign(new);
        }
    }
}

/// A part of a state that no step changes, such as a mask made before the loop.
///
/// ```
/// use burn_dfa::processor::{Constant, InPlaceState};
///
/// let mut state = Constant("made before the loop");
/// state.assign(Constant("left out"));
/// assert_eq!(state.0, "made before the loop");
/// ```
#[derive(Clone, Debug)]
pub struct Constant<T>(pub T);

/// Nothing to write.
impl<T: Clone> InPlaceState for Constant<T> {
    fn assign(&mut self, _: Self) {}
}

/// A part of a state that no step changes, but a new batch or a new row does, such as the
/// temperature of each row.
///
/// A step returns its value in the same buffers. Assigning these buffers to themselves would
/// allocate new buffers, which a recorded step does not read, so `assign` writes only a different
/// value.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_dfa::processor::{RowParam, InPlaceState};
///
/// let device = Device::flex();
/// let mut state = RowParam::new(Tensor::<1>::from_floats([0.5], &device));
/// state.assign(state.clone()); // nothing to write
/// state.assign(RowParam::new(Tensor::from_floats([0.7], &device)));
/// assert_eq!(state.get().to_data().try_to_vec::<f32>().unwrap(), [0.7]);
/// ```
#[derive(Clone, Debug)]
pub struct RowParam<T> {
    value: T,
    /// Two parameters with the same mark have the same value.
    mark: Arc<()>,
}

impl<T> RowParam<T> {
    /// A value that differs from all others.
    pub fn new(value: T) -> Self {
        Self { value, mark: Arc::new(()) }
    }

    /// The value.
    pub fn get(&self) -> &T {
        &self.value
    }
}

impl<T: InPlaceState> InPlaceState for RowParam<T> {
    fn assign(&mut self, new: Self) {
        if !Arc::ptr_eq(&self.mark, &new.mark) {
            self.value.assign(new.value);
            self.mark = new.mark;
        }
    }
}

/// State of independent rows: the first dimension of a tensor is the row of the batch.
///
/// In a continuous batch, rows begin and end independently. Each row begins with the initial state
/// of a batch of this row alone. In speculative decoding, each row continues with the state after
/// its last accepted draft token.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_dfa::processor::RowState;
///
/// let device = Device::flex();
/// let mut state = Tensor::<1>::zeros([3], &device);
/// state.assign_row(1, Tensor::from_floats([5.0], &device));
/// let other = Tensor::from_floats([7.0, 8.0, 9.0], &device);
/// let state = state.mask_rows(&Tensor::from_data([true, false, false], &device), other);
/// assert_eq!(state.into_data().try_to_vec::<f32>().unwrap(), [7.0, 5.0, 0.0]);
/// ```
pub trait RowState: InPlaceState {
    /// Writes `new`, the state of one row, into row `row`, in the buffers of `self`.
    fn assign_row(&mut self, row: usize, new: Self);

    /// The rows of `other` where `mask` is true, and the rows of `self` elsewhere.
    ///
    /// # Shapes
    /// - `mask`: `[batch]`
    #[must_use]
    fn mask_rows(self, mask: &Tensor<1, Bool>, other: Self) -> Self;
}

impl RowState for () {
    fn assign_row(&mut self, _: usize, (): ()) {}

    fn mask_rows(self, _: &Tensor<1, Bool>, (): ()) {}
}

impl<const D: usize, K: Basic> RowState for Tensor<D, K> {
    fn assign_row(&mut self, row: usize, new: Self) {
        in_place(self, |buffer| {
            let mut range = buffer.dims().map(|size| 0..size);
            range[0] = row..row + 1;
            buffer.slice_assign(range, new)
        });
    }

    fn mask_rows(self, mask: &Tensor<1, Bool>, other: Self) -> Self {
        let shape = self.dims();
        let mut column = [1; D];
        column[0] = shape[0];
        self.mask_where(mask.clone().reshape(column).expand(shape), other)
    }
}

/// States of several parts.
macro_rules! tuples {
    ($(($($part:ident $field:tt),+)),+) => {$(
        impl<$($part: InPlaceState),+> InPlaceState for ($($part),+) {
            fn assign(&mut self, new: Self) {
                $(self.$field.assign(new.$field);)+
            }
        }

        impl<$($part: RowState),+> RowState for ($($part),+) {
            fn assign_row(&mut self, row: usize, new: Self) {
                $(self.$field.assign_row(row, new.$field);)+
            }

            fn mask_rows(self, mask: &Tensor<1, Bool>, other: Self) -> Self {
                ($(self.$field.mask_rows(mask, other.$field)),+)
            }
        }
    )+};
}

tuples!((A 0, B 1), (A 0, B 1, C 2), (A 0, B 1, C 2, D 3));

/// A state of `None` stays `None`.
impl<S: RowState> RowState for Option<S> {
    fn assign_row(&mut self, row: usize, new: Self) {
        if let (Some(state), Some(new)) = (self, new) {
            state.assign_row(row, new);
        }
    }

    fn mask_rows(self, mask: &Tensor<1, Bool>, other: Self) -> Self {
        Some(self?.mask_rows(mask, other?))
    }
}

/// The value with another row is another value.
impl<T: RowState> RowState for RowParam<T> {
    fn assign_row(&mut self, row: usize, new: Self) {
        self.value.assign_row(row, new.value);
        self.mark = Arc::new(());
    }

    fn mask_rows(self, mask: &Tensor<1, Bool>, other: Self) -> Self {
        if Arc::ptr_eq(&self.mark, &other.mark) {
            return self;
        }
        Self::new(self.value.mask_rows(mask, other.value))
    }
}

/// A constant is the same for every row.
impl<T: Clone> RowState for Constant<T> {
    fn assign_row(&mut self, _: usize, _: Self) {}

    fn mask_rows(self, _: &Tensor<1, Bool>, _: Self) -> Self {
        self
    }
}
