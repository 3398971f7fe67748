//! What a Lease says of its holder.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::LeaseSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;

/// The part of a Lease that an election is about. Its times are the holder's: they are compared for
/// being the same or not, and never with our clock.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Record {
    /// An empty name is nobody's, as after a release.
    pub(super) holder: Option<String>,
    /// A Lease that people made may not say.
    pub(super) lasts: Option<Duration>,
    pub(super) acquired: Option<MicroTime>,
    pub(super) renewed: Option<MicroTime>,
    /// How often the holder changed.
    pub(super) transitions: i32,
}

// === impl Record ===

impl From<LeaseSpec> for Record {
    fn from(spec: LeaseSpec) -> Self {
        Self {
            holder: spec.holder_identity.filter(|name| !name.is_empty()),
            lasts: spec.lease_duration_seconds.and_then(|seconds| u64::try_from(seconds).ok()).map(Duration::from_secs),
            acquired: spec.acquire_time,
            renewed: spec.renew_time,
            transitions: spec.lease_transitions.unwrap_or_default(),
        }
    }
}
