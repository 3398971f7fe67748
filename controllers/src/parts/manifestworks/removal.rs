//! Objects that are no longer wanted.

use delivery::deletion::{Removal, removal};
use delivery::identity::Tracked;
use delivery::ownership::{Claim, Owner};
use delivery::strategy::Strategy;
use delivery::work::{DeleteOption, is_owned};
use serde_json::Value as Json;

use super::member::{At, MemberError};
use super::place::Place;
use crate::metrics::{Act, Delivery, Ended};

/// What became of one.
#[derive(Debug)]
pub enum Removed {
    /// It is tracked no longer.
    Gone,
    /// It stays tracked until it is gone; its version.
    Waits(Option<String>),
    /// The same: the member refuses that it goes, and why.
    Refused(String),
}

// === impl Place ===

impl Place {
    /// Takes an object away that is tracked, unless it is not ours, or to be left behind.
    ///
    /// # Errors
    ///
    /// The member did not answer. What it refuses of the object waits.
    pub async fn remove(
        &self,
        tracked: &Tracked,
        owner: &Owner,
        option: Option<&DeleteOption>,
        metrics: &Delivery,
    ) -> Result<Removed, MemberError> {
        match self.removed(tracked, owner, option, metrics).await {
            Err(MemberError::Refused(failure)) => Ok(Removed::Refused(failure.to_string())),
            // One object may hang. Whether it is the member is soon found out.
            Err(MemberError::Late(_)) => self.member.is_there().await.map(|()| Removed::Waits(None)),
            removed => removed,
        }
    }

    async fn removed(
        &self,
        tracked: &Tracked,
        owner: &Owner,
        option: Option<&DeleteOption>,
        metrics: &Delivery,
    ) -> Result<Removed, MemberError> {
        let at = At { identity: &tracked.identity, version: &tracked.version };
        // Its definition may be gone, and then it is.
        if !self.kinds.serves(&self.member, &tracked.identity.group, &tracked.version).await? {
            return Ok(Removed::Gone);
        }
        let observed = self.member.get(at).await?;
        let what = match (&observed, is_owned(&tracked.identity, option, &Strategy::Update)) {
            // It was to be left behind, and there was no time to let go of it.
            (Some(observed), false) => owner.patch(observed, Claim::Release).map_or(Removal::Forget, Removal::Release),
            (observed, _) => removal(tracked, observed.as_ref(), owner),
        };
        let version = || observed.as_ref().and_then(version);
        match what {
            Removal::Forget => Ok(Removed::Gone),
            Removal::Wait => Ok(Removed::Waits(version())),
            Removal::Release(change) => {
                let answer = counted(metrics, Act::Patch, self.member.merge(at, &change).await);
                gone_or(answer.map(|_| Removed::Gone))
            }
            Removal::Delete(options) => {
                let answer = counted(metrics, Act::Delete, self.member.delete(at, &options).await);
                // A Status says that it is gone, the object that it is not gone yet.
                gone_or(answer.map(|answer| match answer.get("kind").and_then(Json::as_str) {
                    Some("Status") => Removed::Gone,
                    _ => Removed::Waits(self::version(&answer)),
                }))
            }
        }
    }
}

fn version(object: &Json) -> Option<String> {
    object.pointer("/metadata/resourceVersion").and_then(Json::as_str).map(str::to_owned)
}

/// Somebody else was faster, or another one of that name is there.
fn gone_or(removed: Result<Removed, MemberError>) -> Result<Removed, MemberError> {
    match removed {
        Err(error) if error.is_missing() => Ok(Removed::Gone),
        Err(error) if error.is_conflict() => Ok(Removed::Waits(None)),
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
