//! What several test files share.
#![allow(dead_code)]

pub mod data;
pub mod devices;
pub mod model;
