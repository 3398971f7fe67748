//! A hub that was restored to a state before the cluster joined: it knows the certificate's signer,
//! but not the cluster. An agent's certificate may not create one, so the bootstrap kubeconfig
//! does.

use api::hub_status::HubStatus;
use hub::Cause;
use net::follow::Complaints;
use serde_json::Value;
use tokio::time::Instant;

use crate::joining::bootstrap::Bootstrap;
use crate::joining::{JoinError, Joining};

/// See the module.
#[derive(Default)]
pub struct Announcing {
    /// Since when the hub has not known the cluster, or since the last attempt to announce it.
    since: Option<Instant>,
    complaints: Complaints,
}

// === impl Announcing ===

impl Announcing {
    /// Takes the hub's answer about the cluster. A 403 may also mean that it does not exist.
    pub async fn heard(&mut self, joining: &Joining, answer: &Result<Value, Cause>) {
        match answer {
            Err(Cause::Status(HubStatus { code: 403 | 404, .. })) => {}
            Ok(_) => return self.since = None,
            Err(_) => return,
        }
        let now = Instant::now();
        if now - *self.since.get_or_insert(now) < joining.timing.unannounced {
            return;
        }
        self.since = Some(now);
        match announced(joining).await {
            Ok(()) => self.complaints.clear(),
            Err(error) => {
                if let Some(reason) = self.complaints.new_cause(&error) {
                    tracing::warn!(reason, "the hub may no longer know this cluster, and announcing it again failed");
                }
            }
        }
    }
}

async fn announced(joining: &Joining) -> Result<(), JoinError> {
    Bootstrap::new(joining).await?.announce().await
}
