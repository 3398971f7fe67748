//! Publishes a `ClusterProfile` for every registered cluster.

use super::Context;

/// Runs until it is dropped.
pub async fn run(context: Context<'_>) {
    let _ = context;
    std::future::pending::<()>().await;
}
