//! Each object's share of the queue, and that of its namespace, or of its kind where objects have
//! none: one object that changes all the time takes no other object's place, and one namespace
//! takes no other's.

use k8s_openapi::api::core::v1::ObjectReference;
use net::shares::{self, Share};

/// Of one object.
const MOST_OF_ONE: usize = 16;
/// Of objects of one namespace.
const MOST_OF_NAMESPACE: usize = 32;
/// Of objects of one kind that have no namespace: each is another agent's.
const MOST_OF_KIND: usize = 256;
/// The same, of objects of clusters that are not accepted: an agent that may ask to join can create
/// any number of them, and must take no accepted cluster's place.
const MOST_OF_STRANGERS: usize = 64;

/// How many Events wait, by whose they are.
#[derive(Debug, Clone, Default)]
pub struct Shares(shares::Shares<String>);

/// A permit to wait, released when dropped.
#[derive(Debug)]
pub struct EventPermit {
    _of_one: Share<String>,
    _of_all: Share<String>,
}

// === impl Shares ===

impl Shares {
    /// None: the share of the object, or of its namespace or kind, is used up.
    pub fn enter(&self, object: &ObjectReference) -> Option<EventPermit> {
        self.enter_among("kind", MOST_OF_KIND, object)
    }

    /// The same, of an object without a namespace whose cluster is not accepted.
    pub fn enter_stranger(&self, object: &ObjectReference) -> Option<EventPermit> {
        self.enter_among("strangers' kind", MOST_OF_STRANGERS, object)
    }

    fn enter_among(&self, those: &str, most_of_kind: usize, object: &ObjectReference) -> Option<EventPermit> {
        let (kind, name) = (object.kind.as_deref().unwrap_or_default(), object.name.as_deref().unwrap_or_default());
        let namespace = object.namespace.as_deref().unwrap_or_default();
        let (all, most) = match namespace {
            "" => (format!("{those} {kind}"), most_of_kind),
            namespace => (format!("namespace {namespace}"), MOST_OF_NAMESPACE),
        };
        let of_one = self.0.enter(format!("object {kind} {namespace}/{name}"), MOST_OF_ONE)?;
        Some(EventPermit { _of_one: of_one, _of_all: self.0.enter(all, most)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(kind: &str, namespace: Option<&str>, name: usize) -> ObjectReference {
        let (kind, namespace) = (Some(kind.to_owned()), namespace.map(str::to_owned));
        ObjectReference { kind, namespace, name: Some(name.to_string()), ..ObjectReference::default() }
    }

    #[test]
    fn each_namespace_has_its_share_and_each_kind_without_one() {
        let shares = Shares::default();
        let busy = |name| shares.enter(&of("Secret", Some("busy"), name));
        let mut places: Vec<_> = (0..MOST_OF_NAMESPACE).map(|name| busy(name).unwrap()).collect();
        assert!(busy(MOST_OF_NAMESPACE).is_none());
        assert!(shares.enter(&of("ManifestWork", Some("busy"), 0)).is_none());
        places.extend(
            [of("Secret", Some("other"), 0), of("CSR", None, 0), of("ManagedCluster", None, 0)]
                .map(|of| shares.enter(&of).unwrap()),
        );
        drop(places.remove(0));
        assert!(busy(MOST_OF_NAMESPACE).is_some());
        drop(places);
        assert!(shares.0.keys() == 0, "nothing is remembered of who left");
    }

    #[test]
    fn strangers_take_no_place_of_accepted_clusters() {
        let shares = Shares::default();
        let stranger = |name| shares.enter_stranger(&of("ManagedCluster", None, name));
        let places: Vec<_> = (0..MOST_OF_STRANGERS).map(|name| stranger(name).unwrap()).collect();
        assert!(stranger(MOST_OF_STRANGERS).is_none());
        let accepted = |name| shares.enter(&of("ManagedCluster", None, name));
        let all: Vec<_> = (1000..1000 + MOST_OF_KIND).map(|name| accepted(name).unwrap()).collect();
        assert!(accepted(0).is_none());
        drop((places, all));
        assert!(shares.0.keys() == 0);
    }

    #[test]
    fn one_object_leaves_room_for_others_of_its_kind() {
        let shares = Shares::default();
        for namespace in [None, Some("place")] {
            let enter = |name| shares.enter(&of("ManagedCluster", namespace, name));
            let mut places: Vec<_> = (0..MOST_OF_ONE).map(|_| enter(0).unwrap()).collect();
            assert!(enter(0).is_none(), "{namespace:?}");
            places.push(enter(1).unwrap());
            assert!(shares.enter(&of("Other", namespace, 0)).is_some(), "another kind's object of that name");
        }
        assert!(shares.0.keys() == 0);
    }
}
