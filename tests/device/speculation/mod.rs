//! Speculative decoding: draft trees, pruned vocabularies, acceptance rules, drafters.

mod distribution;
mod embedded;
mod generation;
mod prune;
mod tree;
