//! Refused streams in the log: each is worth a line, ten thousand of them are not.

use telemetry::throttle::LogThrottle;
use tunnel::{Destination, Refusal};

use super::Origin;

pub fn tell(lines: &LogThrottle, cluster: &str, to: &Destination, frontend: &Origin, refusal: &Refusal) {
    let (hop, reason) = (refusal.hop.as_str(), refusal.reason.as_str());
    match lines.due() {
        None => tracing::debug!(cluster, %to, %frontend, hop, reason, "{refusal}"),
        Some(0) => tracing::info!(cluster, %to, %frontend, hop, reason, "stream refused: {refusal}"),
        Some(untold) => {
            tracing::info!(cluster, %to, %frontend, hop, reason, untold, "stream refused: {refusal}");
        }
    }
}
