//! Sessions for queries: in this process, or on a cluster.

use ballista::extension::{SessionConfigExt, SessionContextExt};
use datafusion::common::Result;
use datafusion::execution::SessionStateBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};

use crate::function::Functions;

/// Files of at least this many bytes are cut for several tasks. A row takes long, so small parts
/// pay off.
const MIN_PARTITION_BYTES: usize = 16 << 10;

/// Settings for queries that ask a model: the batch size, PostgreSQL's dialect, and small file
/// parts.
///
/// DataFusion's own dialect reads `extract(text, …)` as a part of a date; in this dialect the
/// function needs double quotes, `"extract"(text, …)`. A text of a CSV file may have several lines,
/// so CSV files are not cut.
pub fn settings(batch: usize) -> SessionConfig {
    adapted(SessionConfig::new(), batch)
}

fn adapted(settings: SessionConfig, batch: usize) -> SessionConfig {
    settings
        .with_batch_size(batch)
        .set_str("datafusion.sql_parser.dialect", "PostgreSQL")
        .set_bool("datafusion.catalog.newlines_in_values", true)
        .set_usize("datafusion.optimizer.repartition_file_min_size", MIN_PARTITION_BYTES)
}

/// A session in this process, with this number of partitions; `FROM` may name files.
pub fn local(functions: &Functions, batch: usize, partitions: Option<usize>) -> SessionContext {
    let mut settings = settings(batch);
    if let Some(partitions) = partitions {
        settings = settings.with_target_partitions(partitions);
    }
    let context = SessionContext::new_with_config(settings).enable_url_table();
    functions.register(&context);
    context
}

/// A session whose queries run on the cluster of a scheduler, at an address such as
/// `http://127.0.0.1:50050`.
///
/// # Errors
/// The address is malformed. A missing scheduler is an error only when a query runs.
pub async fn remote(
    scheduler: &str,
    functions: &Functions,
    batch: usize,
    partitions: Option<usize>,
) -> Result<SessionContext> {
    // An executor that has finished one partition starts the next immediately.
    let mut settings = adapted(SessionConfig::new_with_ballista(), batch)
        .set_usize("ballista.scheduler.max_partitions_per_task", 1);
    if let Some(partitions) = partitions {
        settings = settings.with_target_partitions(partitions);
    }
    let state = SessionStateBuilder::new_with_default_features().with_config(settings).build();
    let context = SessionContext::remote_with_state(scheduler, state).await?.enable_url_table();
    functions.register(&context);
    Ok(context)
}
