//! Owner references: who owns an object, and how a reference is added or removed.

use serde_json::{Value as Json, json};

use crate::fields::{group_and_version, list, text};

/// An owner on the member. Objects that it owns are deleted with it. Never a controller reference:
/// an object may have several such owners.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    pub api_version: String,
    pub kind: String,
    pub name: String,
    pub uid: String,
}

/// What should become of our reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// The object has it.
    Own,
    /// The object does not have it, and so outlives us.
    Release,
}

// === impl Owner ===

impl Owner {
    /// The entry in `metadata.ownerReferences`.
    pub fn reference(&self) -> Json {
        json!({"apiVersion": self.api_version, "kind": self.kind, "name": self.name, "uid": self.uid})
    }

    /// Whether `object` has our reference, of this very UID.
    pub fn owns(&self, object: &Json) -> bool {
        references(object).iter().any(|one| text(one, "/uid") == self.uid)
    }

    /// The name of the first other owner of our kind that has a reference on `object`.
    pub fn rival<'o>(&self, object: &'o Json) -> Option<&'o str> {
        self.rivals(object).next()
    }

    /// The names of the other owners of our kind, in any version, that have references on `object`.
    pub fn rivals<'o>(&self, object: &'o Json) -> impl Iterator<Item = &'o str> {
        let is_rival = move |one: &&Json| {
            group_and_version(text(one, "/apiVersion")).0 == group_and_version(&self.api_version).0
                && text(one, "/kind") == self.kind
                && text(one, "/uid") != self.uid
        };
        references(object).iter().filter(is_rival).map(|one| text(one, "/name"))
    }

    /// The references that `object` should have; none if it has them already.
    ///
    /// A reference with our name, kind and group is ours, whatever its UID and version: it is an
    /// earlier one of ours, and is replaced or removed.
    pub fn merged(&self, object: &Json, claim: Claim) -> Option<Vec<Json>> {
        let mut all = references(object).to_vec();
        let at = all.iter().position(|one| self.is_like(one));
        match (claim, at) {
            (Claim::Own, None) => all.push(self.reference()),
            (Claim::Own, Some(at)) => {
                let known = all.get_mut(at)?;
                let ours = self.reference();
                if is_same(known, &ours) {
                    return None;
                }
                *known = ours;
            }
            (Claim::Release, None) => return None,
            (Claim::Release, Some(at)) => drop(all.remove(at)),
        }
        Some(all)
    }

    /// A JSON merge patch of `object` with the references that it should have, which the API server
    /// refuses if the object was replaced or has changed; none if it has them already.
    pub fn patch(&self, object: &Json, claim: Claim) -> Option<Json> {
        let merged = self.merged(object, claim)?;
        Some(json!({"metadata": {
            "uid": text(object, "/metadata/uid"),
            "resourceVersion": text(object, "/metadata/resourceVersion"),
            "ownerReferences": merged,
        }}))
    }

    /// A JSON patch (RFC 6902) of `object` that removes our reference; none if it has none. The API
    /// server applies it to the object as it is by then, if the reference is where it was.
    pub fn unreference(&self, object: &Json) -> Option<Json> {
        let all = references(object);
        let at = all.iter().position(|one| self.is_like(one))?;
        let path = format!("/metadata/ownerReferences/{at}");
        Some(json!([
            {"op": "test", "path": "/metadata/uid", "value": text(object, "/metadata/uid")},
            {"op": "test", "path": path, "value": all.get(at)?},
            {"op": "remove", "path": path},
        ]))
    }

    fn is_like(&self, other: &Json) -> bool {
        let group = |api_version: &str| group_and_version(api_version).0.to_owned();
        text(other, "/name") == self.name
            && text(other, "/kind") == self.kind
            && group(text(other, "/apiVersion")) == group(&self.api_version)
    }
}

/// Whether two references say the same: flags that are false may be left out.
fn is_same(a: &Json, b: &Json) -> bool {
    let flag = |one: &Json, name: &str| one.get(name).and_then(Json::as_bool).unwrap_or(false);
    ["/apiVersion", "/kind", "/name", "/uid"].iter().all(|field| text(a, field) == text(b, field))
        && ["controller", "blockOwnerDeletion"].iter().all(|name| flag(a, name) == flag(b, name))
}

fn references(object: &Json) -> &[Json] {
    list(object, "/metadata/ownerReferences")
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub fn owner(uid: &str) -> Owner {
        Owner {
            api_version: "work.open-cluster-management.io/v1".into(),
            kind: "AppliedManifestWork".into(),
            name: format!("hash-{uid}"),
            uid: uid.into(),
        }
    }

    pub fn owned(owners: &[&Owner]) -> Json {
        let owners: Vec<Json> = owners.iter().map(|owner| owner.reference()).collect();
        json!({"metadata": {"name": "a", "uid": "u", "resourceVersion": "7", "ownerReferences": owners}})
    }

    #[test]
    fn ours_is_put_on_beside_others_and_taken_off_alone() {
        let (us, them) = (owner("1"), owner("2"));
        let theirs = owned(&[&them]);
        let patch = us.patch(&theirs, Claim::Own).unwrap();
        assert_eq!(patch["metadata"]["ownerReferences"], json!([them.reference(), us.reference()]));
        assert_eq!((&patch["metadata"]["uid"], &patch["metadata"]["resourceVersion"]), (&json!("u"), &json!("7")));
        let both = owned(&[&us, &them]);
        assert_eq!(us.patch(&both, Claim::Own), None);
        assert_eq!(us.merged(&both, Claim::Release), Some(vec![them.reference()]));
        assert_eq!(us.patch(&theirs, Claim::Release), None);
        assert_eq!(us.merged(&json!({}), Claim::Own), Some(vec![us.reference()]));
    }

    #[test]
    fn what_we_were_before_is_replaced() {
        let before =
            Owner { uid: "0".into(), api_version: "work.open-cluster-management.io/v1beta1".into(), ..owner("1") };
        let object = owned(&[&before]);
        assert!(!owner("1").owns(&object));
        assert_eq!(owner("1").merged(&object, Claim::Own), Some(vec![owner("1").reference()]));
        assert_eq!(owner("1").merged(&object, Claim::Release), Some(vec![]));
        let mut flagged = owned(&[&owner("1")]);
        flagged["metadata"]["ownerReferences"][0]["controller"] = json!(false);
        assert_eq!(owner("1").merged(&flagged, Claim::Own), None);
    }

    #[test]
    fn rivals_are_of_our_kind() {
        let us = owner("1");
        assert!(us.rival(&owned(&[&us, &owner("2")])).is_some() && us.owns(&owned(&[&us])));
        let three = owned(&[&us, &owner("2"), &owner("3")]);
        assert_eq!((us.rival(&three), us.rivals(&three).last()), (Some("hash-2"), Some("hash-3")));
        let older = Owner { api_version: "work.open-cluster-management.io/v1beta1".into(), ..owner("2") };
        assert!(us.rival(&owned(&[&us, &older])).is_some());
        let set = Owner { kind: "ReplicaSet".into(), ..owner("2") };
        assert!(us.rival(&owned(&[&us, &set])).is_none() && us.rival(&json!({})).is_none());
    }
}
