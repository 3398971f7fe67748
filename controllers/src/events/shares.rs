//! Each namespace's share of the queue: whoever changes one object all the time takes no other
//! namespace's place.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use k8s_openapi::api::core::v1::ObjectReference;
use parking_lot::Mutex;

/// Of objects of one namespace, or of one kind where objects have none.
const MOST: usize = 32;

/// How many Events wait, by whose they are.
#[derive(Debug, Clone, Default)]
pub struct Shares(Arc<Mutex<HashMap<String, usize>>>);

/// A place of one that waits. It is free again when this is dropped.
#[derive(Debug)]
pub struct Place {
    of: String,
    shares: Shares,
}

// === impl Shares ===

impl Shares {
    /// None: the share of the object's namespace is used up.
    pub fn enter(&self, object: &ObjectReference) -> Option<Place> {
        let of = match object.namespace.as_deref().filter(|namespace| !namespace.is_empty()) {
            Some(namespace) => format!("namespace {namespace}"),
            None => format!("kind {}", object.kind.as_deref().unwrap_or_default()),
        };
        let mut waiting = self.0.lock();
        let count = waiting.entry(of.clone()).or_default();
        if *count >= MOST {
            return None;
        }
        *count += 1;
        Some(Place { of, shares: self.clone() })
    }
}

// === impl Place ===

impl Drop for Place {
    fn drop(&mut self) {
        if let Entry::Occupied(mut count) = self.shares.0.lock().entry(std::mem::take(&mut self.of)) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(kind: &str, namespace: Option<&str>) -> ObjectReference {
        let (kind, namespace) = (Some(kind.to_owned()), namespace.map(str::to_owned));
        ObjectReference { kind, namespace, ..ObjectReference::default() }
    }

    #[test]
    fn each_namespace_has_its_share_and_each_kind_without_one() {
        let shares = Shares::default();
        let mut places: Vec<_> = (0..MOST).map(|_| shares.enter(&of("Secret", Some("busy"))).unwrap()).collect();
        assert!(shares.enter(&of("Secret", Some("busy"))).is_none());
        assert!(shares.enter(&of("ManifestWork", Some("busy"))).is_none());
        places.extend(
            [of("Secret", Some("other")), of("CSR", None), of("ManagedCluster", None)]
                .map(|of| shares.enter(&of).unwrap()),
        );
        drop(places.remove(0));
        assert!(shares.enter(&of("Secret", Some("busy"))).is_some());
        drop(places);
        assert!(shares.0.lock().is_empty(), "nothing is remembered of who left");
    }
}
