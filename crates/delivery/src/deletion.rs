//! What becomes of objects that are no longer wanted.

use std::collections::HashSet;

use serde_json::{Value as Json, json};

use crate::fields::{is_ending, text};
use crate::identity::{Identity, Tracked};
use crate::ownership::{Claim, Owner};

/// What is to be done with one.
#[derive(Debug, Clone, PartialEq)]
pub enum Removal {
    /// It is tracked no longer: it is gone, is another one of that name, or is not ours.
    Forget,
    /// Others of our kind own it too: this JSON merge patch takes our reference off. Then it is
    /// forgotten.
    Release(Json),
    /// `DELETE` with these options. It stays tracked until it is gone.
    Delete(Json),
    /// It is being deleted, and stays tracked until it is gone.
    Wait,
}

/// What is to be done with `tracked`, which is `observed` on the member.
pub fn removal(tracked: &Tracked, observed: Option<&Json>, owner: &Owner) -> Removal {
    let Some(observed) = observed.filter(|observed| owner.owns(observed)) else { return Removal::Forget };
    if owner.has_rival(observed) {
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
        "preconditions": {"uid": tracked.uid},
        "propagationPolicy": "Background",
    }))
}

/// Those of `before` that are not among `after`, whatever their version and UID.
pub fn untracked<'t>(before: &'t [Tracked], after: &[Tracked]) -> Vec<&'t Tracked> {
    let kept: HashSet<&Identity> = after.iter().map(|one| &one.identity).collect();
    before.iter().filter(|one| !kept.contains(&one.identity)).collect()
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
        assert_eq!(options["preconditions"]["uid"], "u");
        assert_eq!(options["propagationPolicy"], "Background");
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
