//! The positions after a tree of draft tokens: one unit per row, one launch per branch.

use cubecl::prelude::*;

use super::lookup::Lookup;
use super::stack;

/// Writes the positions of each row after the nodes of a branch into `tree`,
/// `[batch, nodes, numbers]`.
///
/// A branch is `count` nodes from node `first` on. The first one follows `parent`, and each other
/// node follows the node before it. Node 0 begins at `position`, with the last token of the row;
/// any other node begins at its parent, and keeps the parent's position if its token is illegal.
#[cube(launch, create_dummy_kernel)]
pub(super) fn follow_kernel(
    position: &Tensor<i32>,
    tokens: &Tensor<i32>,
    lookup: &Lookup,
    tree: &mut Tensor<i32>,
    first: u32,
    parent: u32,
    count: u32,
) {
    let row = ABSOLUTE_POS;
    if row < tree.shape(0) {
        let mut own = stack::frame_buffer(lookup);
        let root = row * position.stride(0);
        let mut from = row * tree.stride(0) + parent as usize * tree.stride(1);
        let mut node = first;
        while node < first + count {
            let base = row * tree.stride(0) + node as usize * tree.stride(1);
            if node == 0 {
                let mut depth = 0i32;
                if comptime!(lookup.has_stack) {
                    depth = position[root + 2 * position.stride(1)];
                }
                let numbers = stack::numbers(lookup, depth);
                let mut number = 0usize;
                while number < numbers {
                    tree[base + number] = position[root + number * position.stride(1)];
                    number += 1;
                }
            } else {
                copy(lookup, tree, from, base);
            }
            let token = tokens[row * tokens.stride(0) + node as usize * tokens.stride(1)];
            stack::advance(lookup, tree, base, &mut own, token);
            if node > 0 && stack::to_end(lookup, &*tree, base, &own) > tree[base + 1] {
                copy(lookup, tree, from, base);
            }
            from = base;
            node += 1;
        }
    }
}

/// Copies the position of a node.
#[cube]
fn copy(lookup: &Lookup, tree: &mut Tensor<i32>, from: usize, to: usize) {
    let mut depth = 0i32;
    if comptime!(lookup.has_stack) {
        depth = tree[from + 2];
    }
    let numbers = stack::numbers(lookup, depth);
    let mut number = 0usize;
    while number < numbers {
        let value = tree[from + number];
        tree[to + number] = value;
        number += 1;
    }
}
