//! Which of the two judges of a cluster's availability has the word, and what they have said.

use serde_json::Value;

use crate::fields::field;
use crate::ocm::condition::{self, AVAILABLE};
use crate::ocm::delivery::{DELIVERY_ANNOTATION, Mode};

/// Reasons of the condition if answers determined it.
const REASONS: [&str; 3] = [ANSWERS, NOT_READY, UNREACHABLE];
pub(super) const ANSWERS: &str = "MemberAnswers";
pub(super) const NOT_READY: &str = "MemberNotReady";
pub(super) const UNREACHABLE: &str = "MemberUnreachable";

/// The one judge of a cluster's availability: two would overwrite each other. The follower of
/// Leases also checks it before it reports an agent as silent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// The agent that renews its Lease; if it is silent, the follower of Leases
    /// (`ocm-registration`) reports it. The same for clusters without delivery, or without
    /// acceptance.
    Agent,
    /// The part `availability`, by the member's answers.
    Answers,
}

/// The judge of the availability of `cluster` (a `ManagedCluster`). `is_silent`: its agent did not
/// renew its Lease for a grace.
pub fn owner(cluster: &Value, is_silent: bool) -> Owner {
    let is_free = || reason(cluster).is_none_or(|reason| is_ours(reason) || reason == condition::LEASE_UPDATE_STOPPED);
    let is_accepted = field(cluster, "spec.hubAcceptsClient").and_then(Value::as_bool) == Some(true);
    if is_accepted && is_delivered(cluster) && (is_silent || is_free()) { Owner::Answers } else { Owner::Agent }
}

/// Whether answers determined its condition: only then do answers set its taints.
pub fn is_by_answers(cluster: &Value) -> bool {
    is_delivered(cluster) && reason(cluster).is_some_and(is_ours)
}

fn is_ours(reason: &str) -> bool {
    REASONS.contains(&reason)
}

fn is_delivered(cluster: &Value) -> bool {
    let annotation = cluster["metadata"]["annotations"].get(DELIVERY_ANNOTATION).and_then(Value::as_str);
    Mode::read(annotation).is_some()
}

fn reason(cluster: &Value) -> Option<&str> {
    condition::find(cluster, AVAILABLE)?["reason"].as_str()
}

/// Status and reason of its condition.
pub(super) fn said(cluster: &Value) -> (Option<&str>, Option<&str>) {
    (condition::status(cluster, AVAILABLE), reason(cluster))
}

/// Whether answers lost it, according to its condition.
pub(super) fn is_reported_lost(cluster: &Value) -> bool {
    let said = said(cluster);
    said == (Some("False"), Some(NOT_READY)) || said == (Some("Unknown"), Some(UNREACHABLE))
}
