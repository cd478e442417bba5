//! A server in this process, with clients over sockets.

mod answers;
mod beside;
mod cached;
mod client;
mod clients;
mod constraints;
mod custom;
mod engine;
mod fields;
mod guards;
mod hostile;
mod lazy;
mod load;
mod page;
mod prefix;
mod reasoning;
mod reports;
mod responses;
mod slow;
mod strict;
mod toolless;
mod tools;
mod whitespace;
mod words;
