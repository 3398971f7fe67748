//! The end of a work: what it applied goes first.

use std::time::Duration;

use delivery::condition;
use delivery::identity::Tracked;
use delivery::work::{DeleteOption, applied_name, deleting};
use futures_util::{StreamExt as _, stream};
use kube::runtime::controller::Action;
use time::OffsetDateTime;

use super::applied::Held;
use super::clusters::Mode;
use super::failure::Failure;
use super::memory::Memory;
use super::place::Place;
use super::removal::Removed;
use super::work::Work;
use super::{Part, REQUESTS};

/// Until what is being deleted is looked at again. Its end is seen, mostly.
const GOING: Duration = Duration::from_secs(2);

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
        self.tell_deleting(work, memory, None).await?;
        // One whose name is too long was never applied.
        if let Ok(name) = applied_name(&self.agent.hub_hash, work.name())
            && let Some(held) = place.applied(&name).await?
        {
            held.check_agent(&self.agent.spec(work.name()), mode)?;
            place.end_applied(&held).await?;
            let held = if held.applied.is_ending { Some(held) } else { place.applied(&name).await? };
            let option = work.spec.as_ref().ok().and_then(|spec| spec.delete_option.as_ref());
            if let Some(held) = held
                && !self.go_away(place, work, &held, option).await?
            {
                return Ok(Action::requeue(GOING));
            }
        }
        self.hold(work, memory, false).await?;
        self.leave(&work.key);
        Ok(Action::await_change())
    }

    /// Takes all away that was applied, and then what lists it. Returns whether that is done.
    pub(super) async fn go_away(
        &self,
        place: &Place,
        work: &Work,
        held: &Held,
        option: Option<&DeleteOption>,
    ) -> Result<bool, Failure> {
        let owner = held.applied.owner();
        let removals = held.tracked().iter().map(|one| {
            let (one, owner) = (one.clone(), &owner);
            async move { (place.remove(&one, owner, option, &self.metrics.delivery).await, one) }
        });
        let removals: Vec<_> = removals.collect();
        let answers: Vec<_> = stream::iter(removals).buffer_unordered(REQUESTS).collect().await;
        let mut waiting: Vec<Tracked> = Vec::new();
        for (removed, one) in answers {
            match removed? {
                Removed::Gone => {}
                Removed::Waits(version) => {
                    place.sights.looked(work.name(), &one.identity, version);
                    waiting.push(one);
                }
            }
        }
        if waiting.is_empty() {
            place.release_applied(&held.applied.name).await?;
            return Ok(true);
        }
        let mut held = held.clone();
        place.list(&mut held, waiting).await?;
        Ok(false)
    }

    /// Its cluster does not answer: it waits, and says so.
    pub(super) async fn tell_waiting(&self, work: &mut Work, memory: &mut Memory) -> Result<(), Failure> {
        let why = format!("cluster {} does not answer, and is waited for", work.cluster());
        self.tell_deleting(work, memory, Some(&why)).await
    }

    async fn tell_deleting(&self, work: &mut Work, memory: &mut Memory, why: Option<&str>) -> Result<(), Failure> {
        let mut told = deleting(work.generation);
        if let Some(why) = why {
            told.message = format!("{}: {why}", told.message);
        }
        let mut status = work.status.clone();
        condition::set(&mut status.conditions, told, OffsetDateTime::now_utc());
        self.write_status(work, memory, status).await
    }
}
