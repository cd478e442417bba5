//! Speculative decoding: trees of drafts, pruned vocabularies, rules of acceptance, drafters.

mod distribution;
mod embedded;
mod generation;
mod prune;
mod tree;
