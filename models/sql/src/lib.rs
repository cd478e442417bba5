//! Tables of text to records: constrained generation as functions of SQL, on DataFusion and
//! Ballista.
//!
//! ```text
//! SELECT extract(text, '{…}') ──▶ planner: schema ──▶ constraint, type of the column
//!                             ──▶ rows of a batch ──▶ prompts ──▶ engine: ContinuousBatch ──▶ column of structs
//! ```
//!
//! | module | holds |
//! |---|---|
//! | `shape` | the type of a column, from the schema of its values |
//! | `constraints` | the constraints of calls, compiled once |
//! | `engine` | the rows of a batch on the engine of [`burn_dfa_engine`] |
//! | `prompts` | the prompt of a row |
//! | `function` | `extract`, `classify`, `matches`, and the reasons for missing answers |
//! | [`session`], [`cluster`] | sessions of queries: in this process, or on Ballista's executors |
//! | [`data`], [`output`], [`options`] | example data, results as text, the command line |

mod constraints;
mod engine;
mod function;
mod prompts;
mod shape;

pub mod cluster;
pub mod data;
pub mod options;
pub mod output;
pub mod session;

pub use burn_dfa_engine::{Failure, Prompt};
pub use constraints::{Compiled, Constraints, Refusal, Source};
pub use engine::{Engine, Progress, Sizes};
pub use function::Functions;
pub use options::embedded_files;
pub use prompts::PromptTemplates;
pub use shape::Shape;
