//! Devices of a server: a server of Flex in this process, and clients that reach it over the
//! loopback.

mod clients;
#[path = "../common/mod.rs"]
mod common;
mod hostile;
mod lost;
mod same;
mod servers;
