//! Objects that are applied but not listed, because another client removed them from the list of an
//! `AppliedManifestWork`.

use std::collections::HashSet;

use delivery::condition;
use delivery::identity::{Identity, Tracked};
use delivery::ownership::Owner;
use delivery::work::{ManifestCondition, ManifestWorkSpec, ResourceMeta, is_owned, kind, options};
use futures_util::{StreamExt as _, stream};
use serde_json::Value as Json;

use super::REQUESTS;
use super::applied::OnMember;
use super::begun::Begun;
use super::failure::Failure;
use super::member::{At, MemberError};
use super::target::{Slot, Target};

/// Objects of one work that one batch searches. Results by the end of a slot are kept for the next:
/// a work may have thousands.
const LOOKS: usize = 256;

/// The wanted objects of a work, or the known ones.
pub type Identities<'k> = HashSet<&'k Identity>;

/// Whether an object must be listed, by its status on the hub.
pub fn is_to_be_listed(identity: &Identity, told: &ManifestCondition, spec: &ManifestWorkSpec) -> bool {
    let is_owned = |strategy| is_owned(identity, spec.delete_option.as_ref(), &strategy);
    let strategy = options(identity, &spec.manifest_configs).strategy();
    condition::is_true(&told.conditions, kind::APPLIED) && strategy.is_ok_and(is_owned)
}

// === impl Target ===

impl Target {
    /// Lists again the objects that are applied by the status on the hub, before they are removed.
    pub async fn list_unlisted(
        &self,
        slot: &Slot,
        told: &[ManifestCondition],
        held: &mut OnMember,
        begun: &mut Begun,
    ) -> Result<(), Failure> {
        let listed = held.tracked().to_vec();
        let known = listed.iter().map(|one| &one.identity).collect();
        let unlisted = self.unlisted(slot, told, (&held.applied.owner(), &known), begun).await?;
        self.list(held, listed.into_iter().chain(unlisted).collect()).await
    }

    /// The listed objects, and the missing ones that the hub's status names (`told`), and that are
    /// neither `wanted` nor among those that are in `stays`.
    pub async fn applied_once(
        &self,
        slot: &Slot,
        told: &[ManifestCondition],
        held: &OnMember,
        (wanted, stays): (&HashSet<Identity>, &[Tracked]),
        begun: &mut Begun,
    ) -> Result<Vec<Tracked>, Failure> {
        let known: Identities<'_> = wanted.iter().chain(stays.iter().map(|one| &one.identity)).collect();
        let mut unlisted = self.unlisted(slot, told, (&held.applied.owner(), &known), begun).await?;
        // Some objects have a second name, in another group.
        let uids: HashSet<&str> = stays.iter().map(|one| &*one.uid).collect();
        unlisted.retain(|one| !uids.contains(&*one.uid));
        Ok(held.tracked().iter().cloned().chain(unlisted).collect())
    }

    /// The objects that the hub's status names (`told`) and that are not `known`, if they exist and
    /// are ours. Objects that the member refuses to show stay.
    ///
    /// # Errors
    ///
    /// Fails if the member did not answer, or the slot ended.
    async fn unlisted(
        &self,
        slot: &Slot,
        told: &[ManifestCondition],
        (owner, known): (&Owner, &Identities<'_>),
        begun: &mut Begun,
    ) -> Result<Vec<Tracked>, Failure> {
        let applied = told.iter().filter(|one| condition::is_true(&one.conditions, kind::APPLIED));
        let all = applied.filter_map(|one| placed(&one.resource_meta));
        // The status may name the same object any number of times.
        let mut told = HashSet::new();
        let unknown: Vec<Tracked> =
            all.filter(|one| !known.contains(&one.identity) && told.insert(one.identity.clone())).collect();
        begun.unlisted.retain(&told);
        drop(told);
        let left: Vec<&Tracked> = unknown.iter().filter(|one| !begun.unlisted.has(&one.identity)).collect();
        for some in left.chunks(LOOKS) {
            let looks = some.iter().map(|one| async move {
                let _step = slot.step()?;
                Ok::<_, Failure>((one.identity.clone(), self.owned((*one).clone(), owner).await?))
            });
            let mut looks = stream::iter(looks.collect::<Vec<_>>()).buffered(REQUESTS);
            while let Some(look) = looks.next().await {
                let (identity, found) = look?;
                begun.unlisted.insert(identity, found);
            }
        }
        let found = unknown.iter().filter_map(|one| begun.unlisted.other(&one.identity));
        Ok(found.cloned().collect())
    }

    async fn owned(&self, one: Tracked, owner: &Owner) -> Result<Option<Tracked>, MemberError> {
        match self.member.get(At { identity: &one.identity, version: &one.version }).await {
            Ok(Some(object)) if owner.owns(&object) => {
                let uid = object.pointer("/metadata/uid").and_then(Json::as_str).unwrap_or_default().to_owned();
                Ok(Some(Tracked { uid, ..one }))
            }
            Ok(_) | Err(MemberError::Refused(_)) => Ok(None),
            // One object may hang.
            Err(MemberError::Late(_)) => self.member.is_there().await.map(|()| None),
            Err(error) => Err(error),
        }
    }
}

/// The location of an object that a status names; none if it is unknown. Clients that may write
/// statuses may have written anything.
fn placed(meta: &ResourceMeta) -> Option<Tracked> {
    let ResourceMeta { group, version, resource, name, namespace, .. } = meta.clone();
    let identity = Identity { group, resource, name, namespace };
    let is_placed = !identity.resource.is_empty() && identity.check(&version).is_ok();
    is_placed.then(|| Tracked { identity, version, uid: String::new() })
}
