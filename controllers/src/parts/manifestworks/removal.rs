//! Objects that are no longer wanted.

use delivery::deletion::{Guard, Removal, release, removal};
use delivery::executor::Executor;
use delivery::identity::{DEFINITIONS, Identity, Tracked};
use delivery::ownership::Owner;
use delivery::strategy::Strategy;
use delivery::work::{DeleteOption, is_owned};
use fleet::Sight;
use futures_util::{StreamExt as _, stream};
use serde_json::Value as Json;

use super::REQUESTS;
use super::applied::definitions;
use super::begun::{Begun, MayDelete, Removed};
use super::failure::Failure;
use super::member::{At, MemberError};
use super::target::{Slot, Step, Target};
use crate::metrics::{Act, Delivery, Ended};

/// Otherwise an author who removes the executor from a work would delete objects with the rights of
/// the member's credential.
pub const NO_EXECUTOR: &str =
    "an executor is required here: name one in spec.executor that may delete the object on the member";
/// Objects of one work that one pass removes: the rest stays listed for the next.
pub const MOST_AT_ONCE: usize = 10_000;
/// Limit of the versions of a group in which an object is searched: each is a request.
const VERSIONS: usize = 16;
/// Attempts for one object while another client writes in between: after these, only its owners
/// must be unchanged.
const TRIES: usize = 3;

/// The parameters of removals.
#[derive(Clone, Copy)]
pub struct Leaving<'a> {
    pub work: &'a str,
    pub owner: &'a Owner,
    pub option: Option<&'a DeleteOption>,
    pub executor: Option<&'a Executor>,
    /// Whether nothing is removed without an executor.
    pub is_executor_required: bool,
    pub metrics: &'a Delivery,
}

/// The state of a tracked object on the member.
enum TrackedState {
    /// It exists, in a served version.
    There(String, Json),
    Gone,
    /// It is unknown whether it is gone, with the reason.
    Unknown(String),
}

/// Objects that are no longer wanted, and not gone yet.
#[derive(Default)]
pub struct Staying {
    pub objects: Vec<(Tracked, Option<String>)>,
    /// Objects that a later pass removes.
    pub later: Vec<Tracked>,
    /// The reason of the first refusal, by the member or the executor's rights.
    pub why: Option<String>,
}

// === impl Staying ===

impl Staying {
    pub fn len(&self) -> usize {
        self.objects.len() + self.later.len()
    }
}

// === impl Target ===

impl Target {
    /// Whether an object may be removed for the work's executor. This is asked for all objects
    /// before any is removed, because an object may be what grants the right.
    pub async fn may_delete(&self, tracked: &Tracked, leaving: Leaving<'_>) -> Result<MayDelete, MemberError> {
        let Some(executor) = leaving.executor else {
            return Ok(if leaving.is_executor_required { Err(NO_EXECUTOR.to_owned()) } else { Ok(()) });
        };
        match self.review_removal(leaving.work, executor, tracked).await {
            Err(MemberError::Refused(failure)) => Ok(Err(failure.to_string())),
            answer => answer,
        }
    }

    /// Removes a tracked object, unless it is not ours, or must be left behind.
    ///
    /// # Errors
    ///
    /// Fails if the member did not answer, or the slot ended. An object that the member refuses to
    /// delete waits.
    pub async fn remove(
        &self,
        tracked: &Tracked,
        leaving: Leaving<'_>,
        may_delete: MayDelete,
        step: &Step<'_>,
    ) -> Result<Removed, Failure> {
        for _ in 0..TRIES {
            match self.removed(tracked, leaving, &may_delete, (Guard::Version, step)).await {
                // By now, it may also belong to another work.
                Err(failure) if failure.is_conflict() => step.goes_on()?,
                removed => return self.judged_removal(removed).await,
            }
        }
        if takes_others_along(&tracked.identity) {
            return Ok(Removed::Waits(None));
        }
        match self.removed(tracked, leaving, &may_delete, (Guard::Owners, step)).await {
            // It is a different object.
            Err(failure) if failure.is_conflict() => Ok(Removed::Waits(None)),
            removed => self.judged_removal(removed).await,
        }
    }

    async fn judged_removal(&self, removed: Result<Removed, Failure>) -> Result<Removed, Failure> {
        match removed {
            Err(Failure::Member(MemberError::Refused(failure))) => Ok(Removed::Refused(failure.to_string())),
            // One object may hang. This request shows whether the member hangs.
            Err(Failure::Member(MemberError::Late(_))) => {
                Ok(self.member.is_there().await.map(|()| Removed::Waits(None))?)
            }
            removed => removed,
        }
    }

    async fn removed(
        &self,
        tracked: &Tracked,
        leaving: Leaving<'_>,
        may_delete: &MayDelete,
        (guard, step): (Guard, &Step<'_>),
    ) -> Result<Removed, Failure> {
        let Leaving { owner, option, metrics, .. } = leaving;
        let (served, observed) = match self.whereabouts(tracked, step).await? {
            TrackedState::There(version, object) => (version, object),
            TrackedState::Gone => return Ok(Removed::Gone),
            TrackedState::Unknown(why) => return Ok(Removed::Refused(why)),
        };
        let at = At { identity: &tracked.identity, version: &served };
        let what = if is_owned(&tracked.identity, option, &Strategy::Update) {
            removal(tracked, Some(&observed), owner, guard)
        } else {
            // It must be left behind, and our ownership was not released before.
            release(&observed, owner, guard)
        };
        let version = || version(&observed);
        match what {
            Removal::Forget => Ok(Removed::Gone),
            Removal::Wait => Ok(Removed::Waits(version())),
            Removal::Release(change) => {
                let answer = counted(metrics, Act::Patch, self.member.merge(at, &change).await);
                Ok(gone_or(answer.map(|_| Removed::Gone))?)
            }
            Removal::Unreference(operations) => {
                let answer = counted(metrics, Act::Patch, self.member.patch(at, &operations).await);
                if answer.as_ref().is_err_and(MemberError::is_unprocessable) {
                    return Ok(Removed::Waits(None));
                }
                Ok(gone_or(answer.map(|_| Removed::Gone))?)
            }
            Removal::Delete(options) => {
                if let Err(why) = may_delete {
                    return Ok(Removed::Refused(why.clone()));
                }
                let answer = counted(metrics, Act::Delete, self.member.delete(at, &options).await);
                // A Status means that it is gone, the object that it is not gone yet.
                let removed = gone_or(answer.map(|answer| match answer.get("kind").and_then(Json::as_str) {
                    Some("Status") => Removed::Gone,
                    _ => Removed::Waits(self::version(&answer)),
                }));
                Ok(removed?)
            }
        }
    }
}

// === impl Target ===

impl Target {
    /// Searches an object in the version in which it was applied, and then in the other versions of
    /// its group that the member serves: a version that is no longer served says nothing about
    /// objects.
    async fn whereabouts(&self, tracked: &Tracked, step: &Step<'_>) -> Result<TrackedState, Failure> {
        let Tracked { identity, version, .. } = tracked;
        let mut versions = self.kinds.versions_of(&self.member, identity).await?;
        versions.sort_by_key(|one| one != version);
        let is_more = versions.len() > VERSIONS;
        for version in versions.into_iter().take(VERSIONS) {
            step.goes_on()?;
            match self.member.find(At { identity, version: &version }).await {
                Ok(object) => return Ok(TrackedState::There(version, object)),
                Err(error) if error.is_kind_missing() => {}
                Err(error) if error.is_missing() => return Ok(TrackedState::Gone),
                Err(error) => return Err(error.into()),
            }
        }
        if is_more {
            let (resource, group) = (&identity.resource, &identity.group);
            let why = format!("{VERSIONS} versions of {group} have no {resource}, and it has more: serve fewer");
            return Ok(TrackedState::Unknown(why));
        }
        step.goes_on()?;
        Ok(self.is_undefined(identity).await?)
    }

    /// No version has the kind. If its definition is gone, so is the object.
    async fn is_undefined(&self, identity: &Identity) -> Result<TrackedState, MemberError> {
        let name = format!("{}.{}", identity.resource, identity.group);
        let definition = Identity { name: name.clone(), ..definitions() };
        let unknown = |why: &str| Ok(TrackedState::Unknown(format!("no version of {name} is served, {why}")));
        match self.member.find(At { identity: &definition, version: "v1" }).await {
            Ok(_) => unknown("and its definition is there: serve one until its objects are gone"),
            // A built-in kind has no definition, and may end with an upgrade.
            Err(error) if error.is_missing() => Ok(TrackedState::Gone),
            Err(error) if error.is_forbidden() => {
                unknown("and whether it is defined may not be read: grant get on customresourcedefinitions there")
            }
            Err(error) => Err(error),
        }
    }
}

// === impl Target ===

impl Target {
    /// Removes all of these that may be removed. Returns the result for each.
    ///
    /// # Errors
    ///
    /// Fails if the member did not answer, or the slot ended: results so far are in `begun`.
    pub async fn take_away(
        &self,
        slot: &Slot,
        all: &[Tracked],
        leaving: Leaving<'_>,
        begun: &mut Begun,
    ) -> Result<Vec<(Tracked, Removed)>, Failure> {
        // The member may list other objects than before.
        begun.reviewed.retain(all.iter().map(|one| &one.identity));
        begun.removed.retain(all.iter().map(|one| &one.identity));
        self.review_removals(slot, all, leaving, begun).await?;
        self.remove_all(slot, all, leaving, begun).await?;
        let ended = |one: &Tracked| {
            if begun.removed.is_usual(&one.identity) {
                return Removed::Gone;
            }
            begun.removed.other(&one.identity).cloned().unwrap_or(Removed::Waits(None))
        };
        Ok(all.iter().map(|one| (one.clone(), ended(one))).collect())
    }

    /// Asks for each of these whether it may be removed.
    pub(super) async fn review_removals(
        &self,
        slot: &Slot,
        all: &[Tracked],
        leaving: Leaving<'_>,
        begun: &mut Begun,
    ) -> Result<(), Failure> {
        let asked = all.iter().filter(|one| !begun.reviewed.has(&one.identity));
        let reviews = asked.map(|one| async move {
            let _step = slot.step()?;
            Ok::<_, Failure>((one.identity.clone(), self.may_delete(one, leaving).await?))
        });
        let mut reviews = stream::iter(reviews.collect::<Vec<_>>()).buffered(REQUESTS);
        while let Some(review) = reviews.next().await {
            let (identity, may_delete) = review?;
            begun.reviewed.insert(identity, may_delete.err());
        }
        Ok(())
    }

    pub(super) async fn remove_all(
        &self,
        slot: &Slot,
        all: &[Tracked],
        leaving: Leaving<'_>,
        begun: &mut Begun,
    ) -> Result<(), Failure> {
        let rest = all.iter().filter(|one| !begun.removed.has(&one.identity));
        let removals = rest.map(|one| {
            let may_delete = if begun.reviewed.is_usual(&one.identity) {
                Ok(())
            } else {
                let why = begun.reviewed.other(&one.identity).cloned();
                Err(why.unwrap_or_else(|| "it was not reviewed".to_owned()))
            };
            async move {
                let removed = match slot.step() {
                    Ok(step) => self.remove(one, leaving, may_delete, &step).await,
                    Err(failure) => Err(failure),
                };
                (one.identity.clone(), removed)
            }
        });
        let mut removals = stream::iter(removals.collect::<Vec<_>>()).buffer_unordered(REQUESTS);
        let mut ended = Ok(());
        while let Some((identity, removed)) = removals.next().await {
            match removed {
                Ok(Removed::Gone) => begun.removed.insert(identity, None),
                Ok(stays) => begun.removed.insert(identity, Some(stays)),
                Err(failure) if ended.is_ok() => ended = Err(failure),
                Err(_) => {}
            }
        }
        ended
    }
}

/// Kinds whose deletion also removes data or other objects: a work that takes over such an object
/// at the last moment could not restore them.
fn takes_others_along(identity: &Identity) -> bool {
    matches!(
        (identity.group.as_str(), identity.resource.as_str()),
        ("", "namespaces" | "persistentvolumeclaims" | "persistentvolumes") | DEFINITIONS
    )
}

fn version(object: &Json) -> Option<String> {
    let version = object.pointer("/metadata/resourceVersion").and_then(Json::as_str);
    version.map(|version| Sight::cut(version).to_owned())
}

/// If the object is missing, another client was faster.
fn gone_or(removed: Result<Removed, MemberError>) -> Result<Removed, MemberError> {
    match removed {
        Err(error) if error.is_missing() => Ok(Removed::Gone),
        other => other,
    }
}

fn counted(metrics: &Delivery, act: Act, answer: Result<Json, MemberError>) -> Result<Json, MemberError> {
    let ended = match &answer {
        Ok(_) => Ended::Done,
        Err(error) if error.is_missing() => Ended::Done,
        Err(error) if error.is_conflict() => Ended::Conflict,
        Err(_) => Ended::Failed,
    };
    metrics.acted(act, ended);
    answer
}
