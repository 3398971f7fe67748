//! Which clusters the hub delivers to without an agent: those with an annotation that says so.

use std::num::NonZeroU64;

use api::ocm_agent::{ANNOUNCED_BY_ANNOTATION, TUNNEL_AGENT};
use serde_json::{Value, json};

use super::condition::{self, HUB_ACCEPTED};

/// The annotation of a `ManagedCluster` for such delivery.
pub const DELIVERY_ANNOTATION: &str = "cluster.core.oam.dev/delivery";
/// Records that the first acceptance decided once whether to set it: RFC 3339.
pub const DELIVERY_SET_ANNOTATION: &str = "cluster.core.oam.dev/delivery-set-on";

/// Annotations of a `ManagedCluster` that [`chosen`] reads.
pub const ANNOTATIONS: [&str; 3] = [DELIVERY_ANNOTATION, DELIVERY_SET_ANNOTATION, ANNOUNCED_BY_ANNOTATION];

/// How a cluster is delivered to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// From the hub, unless an agent has applied something for this hub.
    Push,
    /// The same, but takes over what an agent applied, once for each time that a person asks for
    /// it: the number differs each time. Only once, because a hub and an agent that overwrite each
    /// other serve no purpose. None: it is unknown whether that was carried out.
    Adopt(Option<NonZeroU64>),
}

/// The annotations that a cluster gets with its first acceptance, at `now` (RFC 3339), if any.
///
/// A klusterlet does not announce its cluster as [`TUNNEL_AGENT`], and nothing else shows that no
/// agent will deliver. For all other clusters, a person decides how delivery works. A person's
/// choice before the acceptance stays, and an annotation that a person removes afterwards is not
/// restored.
///
/// An agent could write the announcement on any cluster that it announces. That gains it nothing:
/// it may write every annotation of its own `ManagedCluster`, including this one.
pub fn chosen(cluster: &Value, now: &str) -> Option<Value> {
    let annotation = |name: &str| cluster["metadata"]["annotations"].get(name);
    let is_ours = annotation(ANNOUNCED_BY_ANNOTATION).is_some_and(|by| by == TUNNEL_AGENT);
    let is_first = condition::status(cluster, HUB_ACCEPTED) != Some("True");
    if !is_ours || !is_first || annotation(DELIVERY_SET_ANNOTATION).is_some() {
        return None;
    }
    let mut annotations = json!({DELIVERY_SET_ANNOTATION: now});
    if annotation(DELIVERY_ANNOTATION).is_none() {
        annotations[DELIVERY_ANNOTATION] = "push".into();
    }
    Some(annotations)
}

// === impl Mode ===

impl Mode {
    /// Takes over what an agent applied; it is unknown whether that was carried out.
    pub const UNHEARD: Self = Self::Adopt(None);

    /// Other values mean nothing.
    pub fn read(value: Option<&str>) -> Option<Self> {
        match value? {
            "push" => Some(Self::Push),
            "adopt" => Some(Self::UNHEARD),
            _ => None,
        }
    }

    /// Whether both are the same mode, regardless of the number.
    pub fn is_like(self, other: Self) -> bool {
        matches!((self, other), (Self::Push, Self::Push) | (Self::Adopt(_), Self::Adopt(_)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster(annotations: &Value, accepted: &str) -> Value {
        let condition = json!({"type": HUB_ACCEPTED, "status": accepted});
        json!({"metadata": {"annotations": annotations}, "status": {"conditions": [condition]}})
    }

    #[test]
    fn a_cluster_that_no_klusterlet_announced_is_delivered_to_from_its_first_acceptance_on() {
        let announced = json!({ANNOUNCED_BY_ANNOTATION: TUNNEL_AGENT});
        let set = json!({DELIVERY_ANNOTATION: "push", DELIVERY_SET_ANNOTATION: "now"});
        let mut new = cluster(&announced, "");
        new["status"] = Value::Null;
        assert_eq!(chosen(&new, "now"), Some(set.clone()));
        // The earlier acceptance could not be carried out.
        assert_eq!(chosen(&cluster(&announced, "False"), "now"), Some(set));
        assert_eq!(chosen(&cluster(&announced, "True"), "now"), None, "accepted before, by whomever");
    }

    #[test]
    fn a_klusterlets_cluster_is_not_delivered_to() {
        for annotations in [
            json!({}),
            Value::Null,
            json!({ANNOUNCED_BY_ANNOTATION: "klusterlet"}),
            json!({ANNOUNCED_BY_ANNOTATION: 1}),
        ] {
            assert_eq!(chosen(&cluster(&annotations, "False"), "now"), None, "{annotations}");
        }
    }

    #[test]
    fn what_a_person_says_stays() {
        let mut annotations = json!({ANNOUNCED_BY_ANNOTATION: TUNNEL_AGENT, DELIVERY_ANNOTATION: "no"});
        let said = chosen(&cluster(&annotations, "False"), "now");
        assert_eq!(said, Some(json!({DELIVERY_SET_ANNOTATION: "now"})), "it is remembered all the same");
        annotations = json!({ANNOUNCED_BY_ANNOTATION: TUNNEL_AGENT, DELIVERY_SET_ANNOTATION: "then"});
        assert_eq!(chosen(&cluster(&annotations, "False"), "now"), None, "taken off, then denied and accepted again");
    }
}
