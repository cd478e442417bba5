//! A server in this process, asked over sockets.

mod answers;
mod client;
mod clients;
mod constraints;
mod engine;
mod guards;
mod hostile;
mod lazy;
mod load;
mod prefix;
#[path = "../../../../tests/common/python.rs"]
mod python;
mod reasoning;
mod responses;
#[path = "../../../../tests/common/skip.rs"]
mod skip;
mod tools;
