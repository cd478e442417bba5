//! Hostile input: every entry point returns a typed error, or finishes in bounded time and memory.

mod attacks;
mod child;
mod files;
