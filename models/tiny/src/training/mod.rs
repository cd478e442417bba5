//! Training of the embedded model: tokenizer, batches, the loop with its checkpoints, evaluation.

mod batch;
mod call_evaluation;
mod checkpoint;
mod decode;
mod evaluation;
mod prompt;
mod schedule;
mod tokenizer;
mod trainer;

pub use batch::{Batch, Batches};
pub use call_evaluation::{CallMode, CallScore, evaluate_calls};
pub use checkpoint::{Checkpoint, Progress};
pub use evaluation::{Mode, Score, evaluate};
pub use prompt::{END, Lesson, PROMPT_END, PROMPT_START, chat_prompt};
pub use schedule::Schedule;
pub use tokenizer::{build_tokenizer, load_tokenizer};
pub use trainer::{TrainOptions, teacher_forced, train};

/// Errors of the trainer, which is a tool and not a library: a message is enough.
pub type Error = Box<dyn std::error::Error + Send + Sync>;
