//! What happens to objects that are no longer wanted.

use std::collections::HashSet;

use serde_json::{Value as Json, json};

use crate::fields::{is_ending, text};
use crate::identity::{Identity, Tracked};
use crate::manifests::Manifest;
use crate::ownership::{Claim, Owner};

/// What to do with such an object.
#[derive(Debug, Clone, PartialEq)]
pub enum Removal {
    /// Stop tracking it: it is gone, is another object of that name, or is not ours.
    Forget,
    /// Others of our kind own it too: this JSON merge patch removes our reference. Then stop
    /// tracking it. A conflict means the same as that of a deletion.
    Release(Json),
    /// Like [`Self::Release`], with a JSON patch (RFC 6902).
    Unreference(Json),
    /// `DELETE` with these options. It stays tracked until it is gone. After a conflict, read it
    /// and decide again.
    Delete(Json),
    /// It is being deleted, and stays tracked until it is gone.
    Wait,
}

/// What must be unchanged since an object was observed for a request to succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guard {
    /// All of the object: another of our kind may own it by now.
    Version,
    /// Only its owners: something writes the object all the time, and it would never go. Our
    /// reference is removed if it is still where it was read, whatever else has changed. A deletion
    /// names only the UID: an owner that adopts the object between the read of its owners and the
    /// deletion sees it go, and creates it again. Kubernetes' garbage collector, for which owner
    /// references exist, deletes in the same way after a conflict (`deleteObject` in
    /// `pkg/controller/garbagecollector/operations.go`).
    Owners,
}

/// What to do with `tracked`; `observed` is the member's object.
pub fn removal(tracked: &Tracked, observed: Option<&Json>, owner: &Owner, guard: Guard) -> Removal {
    let Some(observed) = observed.filter(|observed| owner.owns(observed)) else { return Removal::Forget };
    if owner.rival(observed).is_some() {
        return release(observed, owner, guard);
    }
    if tracked.uid != text(observed, "/metadata/uid") {
        return Removal::Forget;
    }
    if is_ending(observed) {
        return Removal::Wait;
    }
    Removal::Delete(json!({
        "kind": "DeleteOptions",
        "apiVersion": "v1",
        "preconditions": preconditions(observed, guard),
        "propagationPolicy": "Background",
    }))
}

/// Removes our reference from `observed`, which stays.
pub fn release(observed: &Json, owner: &Owner, guard: Guard) -> Removal {
    let change = match guard {
        Guard::Version => owner.patch(observed, Claim::Release).map(Removal::Release),
        Guard::Owners => owner.unreference(observed).map(Removal::Unreference),
    };
    change.unwrap_or(Removal::Forget)
}

fn preconditions(observed: &Json, guard: Guard) -> Json {
    let mut all = json!({"uid": text(observed, "/metadata/uid")});
    let version = text(observed, "/metadata/resourceVersion");
    if guard == Guard::Version && !version.is_empty() {
        all["resourceVersion"] = version.into();
    }
    all
}

/// Those of `before` that are not among `after`, whatever their version and UID. Keeps what a
/// faulty manifest may mean: its fault does not say that the object is not wanted.
pub fn untracked<'t>(before: &'t [Tracked], after: &[Tracked], manifests: &[Manifest]) -> Vec<&'t Tracked> {
    let kept: HashSet<&Identity> = after.iter().map(|one| &one.identity).collect();
    let gone = before.iter().filter(|one| !kept.contains(&one.identity));
    let faulty: Vec<&Manifest> = manifests.iter().filter(|one| one.object.is_err()).collect();
    gone.filter(|one| !faulty.iter().any(|manifest| manifest.may_mean(&one.identity))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ownership::tests::{owned, owner};

    fn tracked(uid: &str) -> Tracked {
        Tracked { uid: uid.into(), ..Tracked::default() }
    }

    #[test]
    fn only_what_is_ours_alone_is_deleted() {
        let (us, them) = (owner("1"), owner("2"));
        assert_eq!(removal(&tracked("u"), None, &us, Guard::Version), Removal::Forget);
        assert_eq!(removal(&tracked("u"), Some(&owned(&[&them])), &us, Guard::Version), Removal::Forget);
        let Removal::Release(patch) = removal(&tracked("u"), Some(&owned(&[&us, &them])), &us, Guard::Version) else {
            panic!("not released")
        };
        assert_eq!(patch["metadata"]["ownerReferences"], json!([them.reference()]));
        let Removal::Delete(options) = removal(&tracked("u"), Some(&owned(&[&us])), &us, Guard::Version) else {
            panic!("not deleted")
        };
        assert_eq!(options["preconditions"], json!({"uid": "u", "resourceVersion": "7"}), "as it was seen");
        assert_eq!(options["propagationPolicy"], "Background");
    }

    #[test]
    fn of_what_is_written_all_the_time_its_owners_count() {
        let (us, them) = (owner("1"), owner("2"));
        let at = |observed: &Json| removal(&tracked("u"), Some(observed), &us, Guard::Owners);
        let Removal::Delete(options) = at(&owned(&[&us])) else { panic!("not deleted") };
        assert_eq!(options["preconditions"], json!({"uid": "u"}));
        let Removal::Unreference(patch) = at(&owned(&[&them, &us])) else { panic!("not released") };
        let ours = "/metadata/ownerReferences/1";
        let wanted = json!([{"op": "test", "path": "/metadata/uid", "value": "u"},
            {"op": "test", "path": ours, "value": us.reference()}, {"op": "remove", "path": ours}]);
        assert_eq!(patch, wanted, "the other reference may be another one by then");
        assert_eq!(at(&owned(&[&them])), Removal::Forget);
        assert_eq!(release(&owned(&[&them]), &us, Guard::Owners), Removal::Forget);
    }

    #[test]
    fn what_a_faulty_manifest_may_mean_stays() {
        use crate::manifests::{Lookup, Resource, read};
        let of = |group: &str, resource: &str, name: &str| {
            let identity =
                Identity { group: group.into(), resource: resource.into(), name: name.into(), namespace: "n".into() };
            Tracked { identity, version: "v1".into(), uid: "u".into() }
        };
        let before = [of("x.io", "widgets", "a"), of("x.io", "widgets", "b"), of("", "configmaps", "a")];
        let names = |manifest: Json, lookup: &Lookup| {
            let read = read(&[manifest], |_, _, _| lookup.clone());
            let found = untracked(&before, &[], &read);
            found.into_iter().map(|one| (one.identity.resource.clone(), one.identity.name.clone())).collect::<Vec<_>>()
        };
        let widget = |name: &str| json!({"apiVersion": "x.io/v1", "kind": "Widget", "metadata": {"name": name, "namespace": "n"}});
        let own = |name: &str| (String::from("widgets"), name.to_owned());
        let other = (String::from("configmaps"), String::from("a"));
        assert_eq!(names(widget("a"), &Lookup::Unknown("503".into())), [own("b"), other.clone()]);
        assert_eq!(names(widget("a"), &Lookup::Missing), [own("b"), other.clone()]);
        let found = Lookup::Found(Resource { name: "widgets".into(), is_namespaced: true });
        assert_eq!(names(widget(""), &found), std::slice::from_ref(&other));
        assert_eq!(names(json!(null), &found).len(), 3);
    }

    #[test]
    fn another_one_of_that_name_is_let_be() {
        assert_eq!(
            removal(&tracked("before"), Some(&owned(&[&owner("1")])), &owner("1"), Guard::Version),
            Removal::Forget
        );
    }

    #[test]
    fn one_that_ends_already_is_waited_for() {
        let mut ending = owned(&[&owner("1")]);
        ending["metadata"]["deletionTimestamp"] = json!("2026-03-01T12:00:00Z");
        assert_eq!(removal(&tracked("u"), Some(&ending), &owner("1"), Guard::Version), Removal::Wait);
    }
}
