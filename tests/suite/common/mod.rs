//! What several test files share.

pub mod data;
pub mod devices;
pub mod model;
