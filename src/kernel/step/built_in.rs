//! The step in Burn's built-in operations: the reference, which runs on every backend.

use burn::tensor::{Bool, Int, Tensor};

use super::built_in_stack::Rows;
use crate::in_place::RowState;
use crate::tensor::{Array, BY_CLASS, Image, Position};
use burn_dfa_tokens::{CompiledConstraint, StateId};

/// The position after `tokens`, `[batch]`: in the state `DEAD` for an illegal or invalid token,
/// unchanged for the id `vocab_size`.
pub(super) fn after(image: &Image, position: Position, tokens: Tensor<1, Int>) -> Position {
    if image.sizes.exits > 0 {
        return after_on_stack(image, position, tokens);
    }
    let last = image.sizes.vocab_size as i32 - 1;
    let outside = tokens.clone().lower_elem(0).bool_or(tokens.clone().greater_elem(last));
    let none = tokens.clone().equal_elem(last + 1);
    let (states, remaining) = (image.in_range(position.states()), position.remaining());
    let next = next(image, states.clone(), tokens.clamp(0, last));
    let next = next.mask_fill(outside, StateId::DEAD.0 as i32).mask_where(none.clone(), states);
    Position::of(next, spend(remaining.clone()).mask_where(none, remaining), image.sizes.numbers())
}

/// Whether the end is within the remaining tokens, for states of any shape.
fn can_end<const D: usize>(
    image: &Image,
    states: Tensor<D, Int>,
    remaining: Tensor<D, Int>,
) -> Tensor<D, Bool> {
    let shape = states.dims();
    image.entries(Array::TokensToEnd, states.reshape([-1])).reshape(shape).lower_equal(remaining)
}

/// The budget after a token.
fn spend(remaining: Tensor<1, Int>) -> Tensor<1, Int> {
    (remaining - 1).clamp_min(0)
}

/// See [`super::mask`].
pub(super) fn mask(
    image: &Image,
    logits: Tensor<2>,
    position: Position,
    tokens: Tensor<1, Int>,
) -> (Tensor<2>, Position) {
    let position = after(image, position, tokens);
    (logits.mask_fill(illegal(image, position.clone()), f32::NEG_INFINITY), position)
}

/// Whether each token is illegal, `[batch, vocab_size]`.
pub(super) fn illegal(image: &Image, position: Position) -> Tensor<2, Bool> {
    let batch = position.batch();
    let (states, left) = (image.in_range(position.states()), spend(position.remaining()));
    let legal = |next: Tensor<2, Int>| {
        let left = left.clone().reshape([batch, 1]).expand(next.dims());
        can_end(image, next, left)
    };
    if image.sizes.exits > 0 {
        let all = [batch, image.sizes.vocab_size];
        let mut rows = Rows::repeated(image, &position, image.sizes.vocab_size);
        let token = image.numbers(image.sizes.vocab_size).reshape([1, -1]).expand(all).reshape([-1]);
        read(image, &mut rows, token);
        let left = left.reshape([batch, 1]).expand(all);
        return rows.to_end().reshape(all).lower_equal(left).bool_not();
    }
    let legal = if image.longest == 0 {
        let class = rows(image, Array::Class, owners(image, states.clone()));
        legal(rows(image, Array::Next, states)).int().gather(1, class).equal_elem(1)
    } else {
        let all = [batch, image.sizes.vocab_size];
        let token = image.numbers(image.sizes.vocab_size).reshape([1, -1]).expand(all).reshape([-1]);
        let state = states.reshape([batch, 1]).expand(all).reshape([-1]);
        legal(next(image, state, token).reshape(all))
    };
    legal.bool_not()
}

/// The positions of all nodes, see [`super::mask_tree`].
pub(super) fn follow(
    image: &Image,
    parents: &[usize],
    position: Position,
    tokens: Tensor<2, Int>,
) -> Position<3> {
    let [batch, _] = tokens.dims();
    let token = |node: usize| tokens.clone().slice([0..batch, node..node + 1]).reshape([batch]);
    let mut nodes = vec![after(image, position, token(0))];
    for (node, &parent) in parents.iter().enumerate().skip(1) {
        let parent = nodes[parent].clone();
        let next = after(image, parent.clone(), token(node));
        let illegal = if image.sizes.exits > 0 {
            Rows::at(image, &next).to_end().greater(next.remaining())
        } else {
            can_end(image, next.states(), next.remaining()).bool_not()
        };
        nodes.push(next.mask_rows(&illegal, parent));
    }
    Position::stack(nodes)
}

/// As [`after`], for constraints with calls.
fn after_on_stack(image: &Image, position: Position, tokens: Tensor<1, Int>) -> Position {
    let last = image.sizes.vocab_size as i32 - 1;
    let outside = tokens.clone().lower_elem(0).bool_or(tokens.clone().greater_elem(last));
    let none = tokens.clone().equal_elem(last + 1);
    let remaining = position.remaining();
    let mut rows = Rows::at(image, &position);
    read(image, &mut rows, tokens.clamp(0, last));
    rows.states = rows.states.mask_fill(outside, StateId::DEAD.0 as i32);
    rows.position(spend(remaining)).mask_rows(&none, position)
}

/// Advances rows with stacks by tokens in range: at once for token-level constraints, else symbol
/// by symbol.
fn read(image: &Image, rows: &mut Rows, tokens: Tensor<1, Int>) {
    let (sizes, owner) = (&image.sizes, owners(image, rows.states.clone()));
    let class = image.cells(Array::Class, sizes.vocab_size, owner.clone(), tokens.clone());
    let by_class = image.entries(Array::Text, owner.clone()).equal_elem(BY_CLASS);
    let next = class.mask_fill(by_class.clone().bool_not(), CompiledConstraint::NEVER as i32);
    let next = image.cells(Array::Next, sizes.columns, rows.states.clone(), next);
    let by_bytes = by_class.clone().bool_not();
    let short = is_too_short(image, rows.states.clone(), owner.clone(), tokens.clone());
    rows.land(next, by_class);
    rows.states = rows.states.clone().mask_fill(short.bool_and(by_bytes.clone()), StateId::DEAD.0 as i32);
    walk(image, owner, tokens, |column, more| rows.step(column, more.bool_and(by_bytes.clone())));
}

/// Whether tokens have too few symbols to be legal in these states, `[rows]`.
fn is_too_short(
    image: &Image,
    states: Tensor<1, Int>,
    owner: Tensor<1, Int>,
    tokens: Tensor<1, Int>,
) -> Tensor<1, Bool> {
    let text = image.entries(Array::Text, owner).clamp_min(0);
    let vocab_size = image.sizes.vocab_size + 1;
    let begin = image.cells(Array::Offsets, vocab_size, text.clone(), tokens.clone());
    let end = image.cells(Array::Offsets, vocab_size, text, tokens + 1);
    (end - begin).lower(image.entries(Array::Shortest, states))
}

/// Calls `step` once per symbol of the longest token, with the column of each row's next symbol,
/// `[rows]`, and a mask of the rows that have one.
fn walk(
    image: &Image,
    owner: Tensor<1, Int>,
    tokens: Tensor<1, Int>,
    mut step: impl FnMut(Tensor<1, Int>, Tensor<1, Bool>),
) {
    let sizes = &image.sizes;
    // Token-level constraints do not use the text, but the lookup must be in bounds.
    let text = image.entries(Array::Text, owner.clone()).clamp_min(0);
    let vocab_size = sizes.vocab_size + 1;
    let mut at = image.cells(Array::Offsets, vocab_size, text.clone(), tokens.clone());
    let end = image.cells(Array::Offsets, vocab_size, text, tokens + 1);
    // One iteration per symbol of the longest token.
    for _ in 0..image.longest {
        let more = at.clone().lower(end.clone());
        let symbol = image.entries(Array::Symbols, at.clone().min_pair(end.clone() - 1));
        step(image.cells(Array::Column, sizes.alphabet, owner.clone(), symbol), more);
        at = at + 1;
    }
}

/// The state after one token per row, `[rows]`; states and tokens are in range.
fn next(image: &Image, states: Tensor<1, Int>, tokens: Tensor<1, Int>) -> Tensor<1, Int> {
    let sizes = &image.sizes;
    let step = |states: Tensor<1, Int>, column| image.cells(Array::Next, sizes.columns, states, column);
    let owner = owners(image, states.clone());
    let class = image.cells(Array::Class, sizes.vocab_size, owner.clone(), tokens.clone());
    if image.longest == 0 {
        return step(states, class);
    }
    let by_class = image.entries(Array::Text, owner.clone()).equal_elem(BY_CLASS);
    let short = is_too_short(image, states.clone(), owner.clone(), tokens.clone());
    let mut state = states.clone().mask_fill(short, StateId::DEAD.0 as i32);
    walk(image, owner, tokens, |column, more| {
        state = state.clone().mask_where(more, step(state.clone(), column));
    });
    // A state with live byte transitions is dead if no sequence of tokens reaches the end.
    let lost = image.entries(Array::TokensToEnd, state.clone()).equal_elem(i32::MAX);
    let walked = state.mask_fill(lost, StateId::DEAD.0 as i32);
    walked.mask_where(by_class, step(states, class))
}

/// The constraint of each state.
fn owners(image: &Image, states: Tensor<1, Int>) -> Tensor<1, Int> {
    if image.sizes.has_owner() { image.entries(Array::Owner, states) } else { states.zeros_like() }
}

/// The rows of an array, `[batch, columns]`, entry by entry, because some backends copy a whole
/// slice to select from it.
fn rows(image: &Image, array: Array, row: Tensor<1, Int>) -> Tensor<2, Int> {
    let columns = match array {
        Array::Next => image.sizes.columns,
        _ => image.sizes.vocab_size,
    };
    let shape = [row.dims()[0], columns];
    let row = row.reshape([-1, 1]).expand(shape).reshape([-1]);
    let column = image.numbers(columns).reshape([1, -1]).expand(shape).reshape([-1]);
    image.cells(array, columns, row, column).reshape(shape)
}
