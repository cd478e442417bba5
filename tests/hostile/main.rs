//! Input that attacks: every door takes it with a typed error, or in bounded time and memory.

mod attacks;
mod child;
mod inputs;
