//! Queries in this process, by the program, and on a cluster of processes.

mod cluster;
mod functions;
mod process;
mod program;
mod shapes;
mod streaming;
