//! Who leads, as its Lease says.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::LeaseSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use serde_json::Value;

/// With exactly the six digits that kube-apiserver accepts (`metav1.RFC3339Micro`).
pub(super) fn text(time: Timestamp) -> Value {
    Value::String(format!("{time:.6}"))
}

/// The part of a Lease that matters for the election. Its times are from the holder's clock: they
/// are only compared for equality, never with our clock.
#[derive(Debug, Clone, Default, PartialEq)]
pub(in crate::election) struct Record {
    /// `None` also for an empty name, which a release leaves.
    pub(in crate::election) holder: Option<String>,
    /// A Lease that a person wrote may lack it.
    pub(in crate::election) lasts: Option<Duration>,
    pub(in crate::election) acquired: Option<MicroTime>,
    pub(in crate::election) renewed: Option<MicroTime>,
    /// How often the holder changed.
    pub(in crate::election) transitions: i32,
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
