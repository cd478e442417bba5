//! Products and fused operations on Flex, for decode steps and prompts.
//!
//! A step at batch 1 is memory-bound: it reads every weight once, and runs the operations between
//! the products. So a function here does the work of several operations of Burn in one pass.
//! [`kernels`] holds the loops. A prompt is bound by its products, and `many` multiplies its rows.
//! If a function returns `None`, the caller falls back to Burn: on other backends, with autodiff,
//! for other float types, and for many rows that AVX-512 does not multiply.

mod kernels;
#[cfg(target_arch = "x86_64")]
mod many;
#[cfg(test)]
mod tests;

use burn::backend::flex::FlexTensor;
use burn::backend::{BackendTensor, DispatchTensorKind, Flex};
use burn::tensor::{Bool, DType, Int, Tensor, TensorData};
use burn_dfa::processor::in_place;
use half::{bf16, f16};

use crate::config::Activation;
use crate::rotary::Rotation;
use kernels::{Heads, Number};

/// Greatest number of rows for which a product counts as matrix times vectors.
const FEW: usize = 16;

/// Calls a function that is generic over the stored float.
macro_rules! by_dtype {
    ($dtype:expr, $function:ident($($argument:expr),* $(,)?)) => {
        match $dtype {
            DType::F32 => Some($function::<f32>($($argument),*)),
            DType::BF16 => Some($function::<bf16>($($argument),*)),
            DType::F16 => Some($function::<f16>($($argument),*)),
            _ => None,
        }
    };
}

/// Whether a tensor belongs to Flex itself, without autodiff.
pub(crate) fn is_flex<const D: usize>(tensor: &Tensor<D>) -> bool {
    matches!(tensor.clone().into_dispatch().kind, DispatchTensorKind::Flex(BackendTensor::Float(_)))
}

/// Calls a function on a thread of the pool, which shares work without waking another thread first.
pub(crate) fn in_pool<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    rayon::scope(|_| work())
}

/// The contiguous primitive of a tensor that [`is_flex`].
fn open<const D: usize>(tensor: Tensor<D>) -> FlexTensor {
    let tensor = tensor.try_into_primitive::<Flex>().expect("a float tensor of Flex");
    if tensor.is_contiguous() { tensor } else { tensor.to_contiguous() }
}

/// Like [`open`], for [`Number::write`]: a contiguous view of a larger buffer is copied too.
fn open_whole<const D: usize>(tensor: Tensor<D>) -> FlexTensor {
    // If nothing is copied, the result is a second handle; the first one is dropped here.
    tensor.try_into_primitive::<Flex>().expect("a float tensor of Flex").to_contiguous()
}

/// A mask that fills its buffer.
fn open_mask(mask: &Tensor<4, Bool>) -> FlexTensor {
    mask.clone().try_into_primitive::<Flex>().expect("a mask of Flex").to_contiguous()
}

fn close<T: Number, const D: usize>(values: Vec<T>, shape: [usize; D]) -> Tensor<D> {
    Tensor::from_primitive::<Flex>(FlexTensor::from_data(TensorData::new(values, shape)))
}

/// Rows `[rows, inputs]` times the transpose of `[outputs, inputs]`: a few rows, or many rows that
/// AVX-512 multiplies.
///
/// For a few rows, all threads together read the rows of the matrix once, and widen them while
/// reading. Burn's product shares the work among threads only if it is large, and casts a `bf16`
/// matrix at every call.
pub(crate) fn product(x: &Tensor<2>, weight: &Tensor<2>) -> Option<Tensor<2>> {
    let [rows, inputs] = x.dims();
    if rows == 0 || inputs == 0 || !is_flex(x) || !is_flex(weight) {
        return None;
    }
    if rows > FEW {
        return product_of_many(x, weight);
    }
    fn apply<T: Number>(x: &Tensor<2>, weight: &Tensor<2>) -> Tensor<2> {
        let ([rows, inputs], [outputs, _]) = (x.dims(), weight.dims());
        assert_eq!(weight.dims(), [outputs, inputs], "as many inputs");
        let (x, weight) = (open(x.clone()), open(weight.clone()));
        let y = kernels::product(T::read(&x), T::read(&weight), inputs);
        match rows {
            1 => close(y, [1, outputs]),
            _ => close(y, [outputs, rows]).transpose(),
        }
    }
    by_dtype!(x.dtype(), apply(x, weight))
}

#[cfg(target_arch = "x86_64")]
fn product_of_many(x: &Tensor<2>, weight: &Tensor<2>) -> Option<Tensor<2>> {
    fn apply<T: Number>(y: Tensor<4>, [rows, outputs]: [usize; 2]) -> Tensor<2> {
        close(many::transpose(T::read(&open(y)), rows), [rows, outputs])
    }
    let ([rows, _], [outputs, _]) = (x.dims(), weight.dims());
    let [x, weight] = [x, weight].map(|matrix| matrix.clone().unsqueeze());
    let y = product_of_heads(&weight, &x)?;
    by_dtype!(y.dtype(), apply(y, [rows, outputs]))
}

/// The rows of `a` times the transpose of `b`, for each head, if both have many rows and AVX-512
/// multiplies them.
///
/// # Shapes
/// - `a`: `[batch, heads, outputs, inputs]`
/// - `b`: `[batch, heads, rows, inputs]`
/// - returns `[batch, heads, outputs, rows]`
#[cfg(target_arch = "x86_64")]
pub(crate) fn product_of_heads(a: &Tensor<4>, b: &Tensor<4>) -> Option<Tensor<4>> {
    fn apply<T: many::Vectorized>(a: &Tensor<4>, b: &Tensor<4>) -> Option<Tensor<4>> {
        let simd = <T::Simd as many::Simd>::try_new()?;
        let ([batch, heads, outputs, inputs], [_, _, rows, _]) = (a.dims(), b.dims());
        assert_eq!(b.dims(), [batch, heads, rows, inputs], "as many heads and inputs");
        let (a, b) = (open(a.clone()), open(b.clone()));
        let mut y = vec![T::narrow(0.0); batch * heads * outputs * rows];
        let a = T::read(&a).chunks_exact(outputs * inputs);
        let b = T::read(&b).chunks_exact(rows * inputs);
        for ((y, a), b) in y.chunks_exact_mut(outputs * rows).zip(a).zip(b) {
            many::product(simd, b, a, inputs, y);
        }
        Some(close(y, [batch, heads, outputs, rows]))
    }
    let ([_, _, outputs, inputs], [_, _, rows, _]) = (a.dims(), b.dims());
    if rows.min(outputs) <= FEW || inputs == 0 || !is_flex(a) || !is_flex(b) {
        return None;
    }
    match a.dtype() {
        DType::F32 => apply::<f32>(a, b),
        DType::BF16 => apply::<bf16>(a, b),
        _ => None,
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn product_of_many(_x: &Tensor<2>, _weight: &Tensor<2>) -> Option<Tensor<2>> {
    None
}

#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn product_of_heads(_a: &Tensor<4>, _b: &Tensor<4>) -> Option<Tensor<4>> {
    None
}

/// See [`RmsNorm`](crate::layers::RmsNorm); the last dimension is normalized.
pub(crate) fn rms_norm<const D: usize>(
    x: &Tensor<D>,
    weight: &Tensor<1>,
    epsilon: f64,
    plus_one: bool,
) -> Option<Tensor<D>> {
    if !is_flex(x) || !is_flex(weight) {
        return None;
    }
    fn apply<T: Number, const D: usize>(
        x: &Tensor<D>,
        weight: &Tensor<1>,
        epsilon: f64,
        plus_one: bool,
    ) -> Tensor<D> {
        let shape = x.dims();
        let (x, weight) = (open(x.clone()), open(weight.clone()));
        close(kernels::rms_norm(T::read(&x), T::read(&weight), epsilon as f32, plus_one), shape)
    }
    match x.dtype() {
        DType::F32 => Some(apply::<f32, D>(x, weight, epsilon, plus_one)),
        DType::BF16 => Some(apply::<bf16, D>(x, weight, epsilon, plus_one)),
        DType::F16 => Some(apply::<f16, D>(x, weight, epsilon, plus_one)),
        _ => None,
    }
}

/// `activation(gate) * up`.
pub(crate) fn gated(activation: Activation, gate: &Tensor<3>, up: &Tensor<3>) -> Option<Tensor<3>> {
    if !is_flex(gate) || !is_flex(up) {
        return None;
    }
    fn apply<T: Number>(activation: Activation, gate: &Tensor<3>, up: &Tensor<3>) -> Tensor<3> {
        let shape = gate.dims();
        let (gate, up) = (open(gate.clone()), open(up.clone()));
        close(kernels::gated(activation, T::read(&gate), T::read(&up)), shape)
    }
    by_dtype!(gate.dtype(), apply(activation, gate, up))
}

/// Softmax of scores over the visible positions, in place; over all positions if none is visible.
///
/// # Shapes
/// - `scores`: `[batch, heads, length, seen]`
/// - `hidden`: `[batch or 1, 1, length, seen]`
///
/// # Panics
/// If [`supports`] is false.
pub(crate) fn masked_softmax(scores: Tensor<4>, hidden: &Tensor<4, Bool>) -> Tensor<4> {
    fn apply<T: Number>(scores: Tensor<4>, hidden: &Tensor<4, Bool>) -> Tensor<4> {
        let [_, heads, rows, seen] = scores.dims();
        let (mut scores, hidden) = (open_whole(scores), open_mask(hidden));
        kernels::masked_softmax(T::write(&mut scores), hidden.storage(), heads, [rows, seen]);
        Tensor::from_primitive::<Flex>(scores)
    }
    by_dtype!(scores.dtype(), apply(scores, hidden)).expect("scores that `supports` has seen")
}

fn widened<T: Number>(tensor: &Tensor<3>) -> Vec<f32> {
    T::read(&open(tensor.clone())).iter().map(|x| x.widen()).collect()
}

fn rotate<T: Number>(queries_and_keys: [&mut Vec<f32>; 2], rotation: Option<&Rotation>, heads: &Heads) {
    let Some(rotation) = rotation else { return };
    let [cos, sin] = rotation.tables().map(open);
    let Heads { kv_heads, group, width, .. } = *heads;
    for (x, heads) in queries_and_keys.into_iter().zip([kv_heads * group, kv_heads]) {
        // As a batch of single positions, which the tables are too.
        kernels::rotate(x, [T::read(&cos), T::read(&sin)], [heads, 1, width]);
    }
}

/// See [`Rotation::apply`].
pub(crate) fn rotate_heads(x: &Tensor<4>, rotation: &Rotation) -> Option<Tensor<4>> {
    if !is_flex(x) {
        return None;
    }
    fn apply<T: Number>(x: &Tensor<4>, rotation: &Rotation) -> Tensor<4> {
        let [_, heads, length, width] = x.dims();
        let [cos, sin] = rotation.tables().map(open);
        let mut y = open_whole(x.clone());
        kernels::rotate(T::write(&mut y), [T::read(&cos), T::read(&sin)], [heads, length, width]);
        Tensor::from_primitive::<Flex>(y)
    }
    by_dtype!(x.dtype(), apply(x, rotation))
}

/// Whether [`attend`] and [`masked_softmax`] support these activations.
pub(crate) fn supports<const D: usize>(x: &Tensor<D>) -> bool {
    is_flex(x) && matches!(x.dtype(), DType::F32 | DType::BF16 | DType::F16)
}

/// Attention of consecutive positions of rows of different lengths: rotates queries and keys if a
/// rotation is given, writes keys and values after each row, in place, and attends over the cache.
/// Scores are multiplied by `scale`. With a `window`, a position sees at most `window` slots,
/// including its own.
///
/// # Shapes
/// - `q`: `[batch, positions, heads * head_dim]`, as the result; `k`, `v`:
///   `[batch, positions, kv_heads * head_dim]`
/// - `lengths`, `padding`: `[batch]`: the slot of the first position, and the first visible slot of
///   a row; reading them is cheap, since Flex uses the memory of the host
/// - `cache`: keys and values, `[batch, kv_heads, capacity, head_dim]`
///
/// # Panics
/// If [`supports`] is false.
pub(crate) fn attend(
    [q, k, v]: [&Tensor<3>; 3],
    scale: f64,
    window: Option<usize>,
    rotation: Option<&Rotation>,
    lengths: &Tensor<1, Int>,
    padding: &Tensor<1, Int>,
    cache: [&mut Tensor<4>; 2],
) -> Tensor<3> {
    fn apply<T: Number>(
        [q, k, v]: [&Tensor<3>; 3],
        scale: f64,
        window: Option<usize>,
        rotation: Option<&Rotation>,
        lengths: &[usize],
        padding: &[usize],
        [keys, values]: [&mut Tensor<4>; 2],
    ) -> Tensor<3> {
        let shape @ [_, positions, columns] = q.dims();
        let [_, kv_heads, capacity, width] = keys.dims();
        let scale = scale as f32;
        let heads = Heads { kv_heads, group: columns / (kv_heads * width), width, capacity, scale };
        let [mut q, mut k, v] = [q, k, v].map(widened::<T>);
        rotate::<T>([&mut q, &mut k], rotation, &heads);
        // The rows of one position, and their visible slots.
        let at = |x: &[f32], position: usize| -> Vec<f32> {
            let row = x.len() / (lengths.len() * positions);
            x.chunks_exact(row).skip(position).step_by(positions).flatten().copied().collect()
        };
        let seen: Vec<Vec<_>> = (0..positions)
            .map(|position| {
                let slots = lengths.iter().map(|length| (length + position).min(capacity - 1));
                let begin = |slot: usize| window.map_or(0, |window| (slot + 1).saturating_sub(window));
                slots.zip(padding).map(|(slot, &first)| first.max(begin(slot)).min(slot)..slot + 1).collect()
            })
            .collect();
        for (buffer, rows) in [(&mut *keys, &k), (&mut *values, &v)] {
            in_place(buffer, |buffer| {
                let mut buffer = open_whole(buffer);
                for (position, seen) in seen.iter().enumerate() {
                    kernels::store(T::write(&mut buffer), &at(rows, position), seen, &heads);
                }
                Tensor::from_primitive::<Flex>(buffer)
            });
        }
        let (keys, values) = (open(keys.clone()), open(values.clone()));
        let mut mixed = vec![T::narrow(0.0); q.len()];
        for (position, seen) in seen.iter().enumerate() {
            let rows = kernels::attend(&at(&q, position), T::read(&keys), T::read(&values), seen, &heads);
            let targets = mixed.chunks_exact_mut(columns).skip(position).step_by(positions);
            targets.zip(rows.chunks_exact(columns)).for_each(|(target, row)| target.copy_from_slice(row));
        }
        close(mixed, shape)
    }
    let numbers = |tensor: &Tensor<1, Int>| -> Vec<usize> {
        tensor.clone().into_data().iter::<i64>().map(|number| number.max(0) as usize).collect()
    };
    let (lengths, padding) = (numbers(lengths), numbers(padding));
    by_dtype!(q.dtype(), apply([q, k, v], scale, window, rotation, &lengths, &padding, cache))
        .expect("activations that `supports` has seen")
}
