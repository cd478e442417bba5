//! Shared parts of tests: data, small vocabularies, programs in Python, and notices of skipped
//! tests.

#![allow(missing_docs)]

pub mod data;
pub mod gguf;
pub mod input;
pub mod python;
pub mod skip;
pub mod words;
