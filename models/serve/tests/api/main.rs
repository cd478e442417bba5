//! A server in this process, asked over sockets.

mod answers;
mod client;
mod constraints;
mod engine;
mod guards;
mod hostile;
mod load;
mod reasoning;
mod responses;
mod tools;
