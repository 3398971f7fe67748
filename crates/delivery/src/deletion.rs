//! What becomes of objects that are no longer wanted.

use std::collections::HashSet;

use serde_json::{Value as Json, json};

use crate::fields::{is_ending, text};
use crate::identity::{Identity, Tracked};
use crate::manifests::Manifest;
use crate::ownership::{Claim, Owner};

/// What is to be done with one.
#[derive(Debug, Clone, PartialEq)]
pub enum Removal {
    /// It is tracked no longer: it is gone, is another one of that name, or is not ours.
    Forget,
    /// Others of our kind own it too: this JSON merge patch takes our reference off. Then it is
    /// forgotten.
    Release(Json),
    /// `DELETE` with these options. It stays tracked until it is gone. A conflict means that it is
    /// to be looked at anew.
    Delete(Json),
    /// It is being deleted, and stays tracked until it is gone.
    Wait,
}

/// What is to be done with `tracked`, which is `observed` on the member.
pub fn removal(tracked: &Tracked, observed: Option<&Json>, owner: &Owner) -> Removal {
    let Some(observed) = observed.filter(|observed| owner.owns(observed)) else { return Removal::Forget };
    if owner.rival(observed).is_some() {
        return owner.patch(observed, Claim::Release).map_or(Removal::Forget, Removal::Release);
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
        "preconditions": preconditions(observed),
        "propagationPolicy": "Background",
    }))
}

/// That it is as it was seen: another of our kind may own it by now.
fn preconditions(observed: &Json) -> Json {
    let mut all = json!({"uid": text(observed, "/metadata/uid")});
    let version = text(observed, "/metadata/resourceVersion");
    if !version.is_empty() {
        all["resourceVersion"] = version.into();
    }
    all
}

/// Those of `before` that are not among `after`, whatever their version and UID. What a manifest
/// may mean that could not be used stays: that it is faulty does not say that it is not wanted.
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
        assert_eq!(removal(&tracked("u"), None, &us), Removal::Forget);
        assert_eq!(removal(&tracked("u"), Some(&owned(&[&them])), &us), Removal::Forget);
        let Removal::Release(patch) = removal(&tracked("u"), Some(&owned(&[&us, &them])), &us) else {
            panic!("not released")
        };
        assert_eq!(patch["metadata"]["ownerReferences"], json!([them.reference()]));
        let Removal::Delete(options) = removal(&tracked("u"), Some(&owned(&[&us])), &us) else { panic!("not deleted") };
        assert_eq!(options["preconditions"], json!({"uid": "u", "resourceVersion": "7"}), "as it was seen");
        assert_eq!(options["propagationPolicy"], "Background");
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
        assert_eq!(removal(&tracked("before"), Some(&owned(&[&owner("1")])), &owner("1")), Removal::Forget);
    }

    #[test]
    fn one_that_ends_already_is_waited_for() {
        let mut ending = owned(&[&owner("1")]);
        ending["metadata"]["deletionTimestamp"] = json!("2026-03-01T12:00:00Z");
        assert_eq!(removal(&tracked("u"), Some(&ending), &owner("1")), Removal::Wait);
    }
}
