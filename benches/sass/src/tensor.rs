//! What the kernels import of the library.

#[path = "../../../src/tensor/arrays.rs"]
pub(crate) mod arrays;
