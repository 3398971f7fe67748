//! Complete works, and complete objects of works that are not complete: they are no longer applied,
//! but still reported.

use delivery::identity::Identity;
use delivery::manifests::{Fault, Manifest};
use delivery::strategy::Strategy;
use delivery::work::{Availability, Index, ManifestWorkStatus, ResourceMeta, is_complete};
use serde_json::Value as Json;
use tokio::time::Instant;

use super::MOST_MANIFESTS;
use super::member::{At, MemberError, OWN};
use super::object::{GRANTED, Outcome, Remembered, Setting, judged};

/// The objects in a status. Clients that may write statuses may have written anything.
pub fn listed(status: &ManifestWorkStatus) -> Vec<Manifest> {
    let manifest = |(ordinal, meta): (usize, &ResourceMeta)| {
        let ResourceMeta { group, version, kind, resource, name, namespace, .. } = meta.clone();
        let mut manifest =
            Manifest { ordinal, group, version, kind, resource, namespace, name, object: Ok(Json::Null) };
        let identity = manifest.identity();
        if identity.resource.is_empty() || identity.name.is_empty() || identity.check(&manifest.version).is_err() {
            manifest.object = Err(Fault::NoObject);
        }
        manifest
    };
    let listed = status.resource_status.manifests.iter().map(|one| &one.resource_meta);
    listed.take(MOST_MANIFESTS).enumerate().map(manifest).collect()
}

/// The objects that were complete and no longer are: they are applied again.
pub fn reopened(before: &ManifestWorkStatus, now: &ManifestWorkStatus) -> Vec<Identity> {
    let index = Index::new(&now.resource_status.manifests);
    let is_reopened = |meta: &&ResourceMeta| index.find(meta).is_some_and(|one| !is_complete(&one.conditions));
    let complete = before.resource_status.manifests.iter().filter(|one| is_complete(&one.conditions));
    complete.map(|one| &one.resource_meta).filter(is_reopened).map(identity).collect()
}

fn identity(meta: &ResourceMeta) -> Identity {
    let ResourceMeta { group, resource, name, namespace, .. } = meta.clone();
    Identity { group, resource, name, namespace }
}

/// Reads an object that is no longer applied. The executor must be allowed to read it: it may be
/// another one than the executor for which the object was applied.
///
/// # Errors
///
/// Fails if the member did not answer: then nothing is known about the object.
pub async fn read(setting: Setting<'_>, manifest: &Manifest, before: Remembered) -> Result<Outcome, MemberError> {
    let calm = Remembered { failures: 0, again: None, said: None, ..before };
    if manifest.object.is_err() {
        return Ok(outcome(Availability::Incomplete, None, true, calm));
    }
    let (why, again) = match look(setting, manifest).await {
        Ok(Ok(None)) => return Ok(outcome(Availability::NotFound, None, false, calm)),
        Ok(Ok(Some(object))) => {
            let is_owned = setting.owner.owns(&object);
            return Ok(outcome(Availability::Available, Some(object), is_owned, calm));
        }
        Ok(Err(why)) => (why, GRANTED),
        Err(error) => {
            let judged = judged(setting.target, error, before.failures).await?;
            (judged.why, judged.again)
        }
    };
    let again = Some(Instant::now() + again);
    let remembered = Remembered { failures: before.failures.saturating_add(1), again, ..before };
    Ok(outcome(Availability::Unknown(why), None, true, remembered))
}

/// The existing object; or why the executor may not read it.
async fn look(setting: Setting<'_>, manifest: &Manifest) -> Result<Result<Option<Json>, String>, MemberError> {
    let target = setting.target;
    if let Some(executor) = setting.executor {
        let verdict = target.review(setting.work, executor, manifest, false, &Strategy::ReadOnly).await?;
        if let Err(why) = verdict {
            return Ok(Err(why));
        }
    }
    target.member.get(At { identity: &manifest.identity(), version: &manifest.version }).await.map(Ok)
}

/// The outcome of an object that counts as applied, as its status says.
fn outcome(availability: Availability, observed: Option<Json>, is_owned: bool, remembered: Remembered) -> Outcome {
    let (result, contested_by, note, is_conflict) = (Ok(()), None, None, false);
    Outcome { result, hop: OWN, availability, observed, is_owned, remembered, contested_by, note, is_conflict }
}
