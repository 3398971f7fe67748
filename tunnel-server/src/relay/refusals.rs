//! Refused streams in the log: each is worth a line, ten thousand of them are not.

use tunnel::{Destination, Refusal};

use super::Origin;
use telemetry::quiet::Quiet;

/// Cheap to clone; clones count together.
#[derive(Debug, Clone, Default)]
pub struct Refusals(Quiet);

// === impl Refusals ===

impl Refusals {
    pub fn tell(&self, cluster: &str, to: &Destination, frontend: &Origin, refusal: &Refusal) {
        let (hop, reason) = (refusal.hop.as_str(), refusal.reason.as_str());
        match self.0.due() {
            None => tracing::debug!(cluster, %to, %frontend, hop, reason, "{refusal}"),
            Some(0) => tracing::info!(cluster, %to, %frontend, hop, reason, "stream refused: {refusal}"),
            Some(untold) => {
                tracing::info!(cluster, %to, %frontend, hop, reason, untold, "stream refused: {refusal}");
            }
        }
    }
}
