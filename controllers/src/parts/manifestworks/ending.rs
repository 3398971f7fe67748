//! The end of a work: what it applied goes first.

use std::fmt;

use delivery::condition;
use delivery::identity::{Identity, Tracked};
use delivery::work::{DeleteOption, applied_name, deleting};
use futures_util::{StreamExt as _, stream};
use kube::runtime::controller::Action;
use time::OffsetDateTime;
use tokio::time::Instant;

use super::applied::Held;
use super::clusters::Mode;
use super::failure::Failure;
use super::memory::Memory;
use super::place::Place;
use super::removal::Removed;
use super::work::Work;
use super::{Part, REQUESTS};

/// What is being deleted, and not gone.
#[derive(Debug)]
pub struct Left {
    pub count: usize,
    /// One of them, one that the member refuses to delete before others.
    first: Identity,
    why: Option<String>,
}

// === impl Left ===

impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} objects are not gone yet, {} first", self.count, words(&self.first))?;
        self.why.as_ref().map_or(Ok(()), |why| write!(f, ": {why}"))
    }
}

/// An object, as it is told.
pub fn words(identity: &Identity) -> String {
    let Identity { group, resource, name, namespace } = identity;
    let dot = if group.is_empty() { "" } else { "." };
    let slash = if namespace.is_empty() { "" } else { "/" };
    format!("{resource}{dot}{group} {namespace}{slash}{name}")
}

// === impl Part ===

impl Part {
    /// Takes what it applied from the member, and lets it go.
    pub(super) async fn end(
        &self,
        work: &mut Work,
        place: &Place,
        mode: Mode,
        memory: &mut Memory,
    ) -> Result<Action, Failure> {
        if !work.is_held() {
            self.leave(&work.key);
            return Ok(Action::await_change());
        }
        if condition::find(&work.status.conditions, &deleting(work.generation).kind).is_none() {
            self.tell_deleting(work, memory, None).await?;
        }
        if let Some(rest) = memory.heat.wait(Instant::now(), work.generation) {
            return Ok(Action::requeue(rest));
        }
        memory.heat.passed(Instant::now(), work.generation);
        let option = work.delete_option.clone().map_err(Failure::DeleteOption)?;
        // One whose name is too long was never applied.
        if let Ok(name) = applied_name(&self.agent.hub_hash, work.name())
            && let Some(held) = place.applied_for_certain(&name).await?
        {
            held.check_agent(work.cluster(), &self.agent.spec(work.name()), mode)?;
            place.end_applied(&held).await?;
            let held = if held.applied.is_ending { Some(held) } else { place.applied_for_certain(&name).await? };
            if let Some(held) = held
                && let Some(left) = self.go_away(place, work, &held, option.as_ref()).await?
            {
                self.tell_deleting(work, memory, Some(&left.to_string())).await?;
                memory.failures = 0;
                return Ok(Action::requeue(memory.goes(left.count)));
            }
        }
        self.hold(work, memory, false).await?;
        self.leave(&work.key);
        Ok(Action::await_change())
    }

    /// Takes all away that was applied, and then what lists it. Returns what is not gone yet.
    pub(super) async fn go_away(
        &self,
        place: &Place,
        work: &Work,
        held: &Held,
        option: Option<&DeleteOption>,
    ) -> Result<Option<Left>, Failure> {
        let owner = held.applied.owner();
        let removals = held.tracked().iter().map(|one| {
            let (one, owner) = (one.clone(), &owner);
            async move { (place.remove(&one, owner, option, &self.metrics.delivery).await, one) }
        });
        let removals: Vec<_> = removals.collect();
        let answers: Vec<_> = stream::iter(removals).buffer_unordered(REQUESTS).collect().await;
        let mut waiting: Vec<Tracked> = Vec::new();
        let mut why = None;
        for (removed, one) in answers {
            match removed? {
                Removed::Gone => {}
                Removed::Waits(version) => {
                    place.sights.looked(work.name(), &one.identity, version);
                    waiting.push(one);
                }
                Removed::Refused(refusal) => {
                    why.get_or_insert_with(|| (one.identity.clone(), refusal));
                    waiting.push(one);
                }
            }
        }
        if waiting.is_empty() {
            place.release_applied(&held.applied.name).await?;
            return Ok(None);
        }
        let least = waiting.iter().map(|one| &one.identity).min_by_key(|one| words(one)).cloned().unwrap_or_default();
        let (first, why) = why.map_or((least, None), |(first, why)| (first, Some(why)));
        let left = Left { count: waiting.len(), first, why };
        let mut held = held.clone();
        place.list(&mut held, waiting).await?;
        Ok(Some(left))
    }

    /// Its cluster does not answer: it waits, and says so.
    pub(super) async fn tell_waiting(&self, work: &mut Work, memory: &mut Memory) -> Result<(), Failure> {
        let why = format!("cluster {} does not answer, and is waited for", work.cluster());
        self.tell_deleting(work, memory, Some(&why)).await
    }

    pub(super) async fn tell_deleting(
        &self,
        work: &mut Work,
        memory: &mut Memory,
        why: Option<&str>,
    ) -> Result<(), Failure> {
        let mut told = deleting(work.generation);
        if let Some(why) = why {
            told.message = format!("{}: {why}", told.message);
        }
        let mut status = work.status.clone();
        condition::set(&mut status.conditions, told, OffsetDateTime::now_utc());
        self.write_status(work, memory, status).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_gone_is_named() {
        let namespaced =
            Identity { resource: "configmaps".into(), name: "a".into(), namespace: "n".into(), ..Identity::default() };
        let mut left = Left { count: 2, first: namespaced, why: None };
        assert_eq!(left.to_string(), "2 objects are not gone yet, configmaps n/a first");
        left.first =
            Identity { group: "x.io".into(), resource: "things".into(), name: "b".into(), ..Identity::default() };
        left.why = Some("no".into());
        assert_eq!(left.to_string(), "2 objects are not gone yet, things.x.io b first: no");
    }
}
