//! The end of a work: the objects that it applied are deleted first.

use std::fmt;
use std::time::Duration;

use delivery::condition;
use delivery::executor::Executor;
use delivery::identity::{Identity, Tracked};
use delivery::work::{DeleteOption, applied_name, deleting};
use kube::api::DynamicObject;
use kube::runtime::controller::Action;
use time::OffsetDateTime;
use tokio::time::Instant;

use super::Part;
use super::applied::{Keeper, OnMember};
use super::begun::{Begun, Removed};
use super::clusters::{Clusters, Mode};
use super::failure::Failure;
use super::memory::Memory;
use super::removal::{Leaving, MOST_AT_ONCE};
use super::target::{Slot, Target};
use super::work::{self, Work};
use crate::events::Reason;
use crate::feed::crd::Presence;

/// How long to try a cluster that is gone from the hub, or is being deleted, before works end
/// without it.
const LEFT: Duration = Duration::from_mins(10);

/// Objects that are being deleted, but are not gone.
#[derive(Debug)]
pub struct Left {
    pub count: usize,
    /// One of them, preferably one that the member refuses to delete.
    first: Identity,
    why: Option<String>,
}

/// How objects are removed, and for which executor.
#[derive(Debug, Clone, Copy, Default)]
pub struct How<'a> {
    pub option: Option<&'a DeleteOption>,
    pub executor: Option<&'a Executor>,
}

// === impl Left ===

impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} objects are not gone yet, {} first", self.count, words(&self.first))?;
        self.why.as_ref().map_or(Ok(()), |why| write!(f, ": {why}"))
    }
}

/// An object, as messages name it.
pub fn words(identity: &Identity) -> String {
    let Identity { group, resource, name, namespace } = identity;
    let dot = if group.is_empty() { "" } else { "." };
    let slash = if namespace.is_empty() { "" } else { "/" };
    format!("{resource}{dot}{group} {namespace}{slash}{name}")
}

/// Sets `since`, when a cluster began to leave. Returns whether it has been tried for long enough.
fn begin_or_due(since: &mut Option<Instant>, is_leaving: bool, now: Instant) -> bool {
    if !is_leaving {
        *since = None;
        return false;
    }
    now.saturating_duration_since(*since.get_or_insert(now)) >= LEFT
}

/// The mode of the work's cluster while the cluster exists, even while it is being deleted. When
/// the cluster is gone, its works stay as they are, as in upstream: with their finalizer, and with
/// what they applied. A work that is deleted after that is ended if only our finalizer holds it.
/// While the definition of clusters is being deleted, no work is ended.
fn mode(clusters: &Clusters, is_defined: bool, object: &DynamicObject) -> Option<Mode> {
    let cluster = object.metadata.namespace.as_deref().unwrap_or_default();
    let is_left_behind = || {
        object.metadata.deletion_timestamp.is_some()
            && clusters.is_gone(cluster)
            && is_defined
            && work::is_held_by_us(object)
    };
    clusters.mode(cluster).or_else(|| is_left_behind().then_some(Mode::Push))
}

// === impl Part ===

impl Part {
    /// Removes the work's objects from the member, and then its finalizer.
    pub(super) async fn end(
        &self,
        work: &mut Work,
        target: &Target,
        slot: &Slot,
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
        let executor = work.executor.clone().map_err(Failure::Executor)?;
        let how = How { option: option.as_ref(), executor: executor.as_ref() };
        // A work whose name is too long was never applied, nor was one that another cluster's work
        // blocks.
        let keeper = Keeper { agent: &self.agent, work };
        if let Ok(name) = applied_name(&self.agent.hub_hash, work.name())
            && let Some(mut held) = target.applied_for_certain(&name).await?
            && !held.is_of_sibling(keeper)
        {
            held.check_agent(keeper, mode)?;
            if !held.applied.is_ending {
                let (told, mut begun) = (&work.status.resource_status.manifests, memory.begin(work.generation));
                let listed = target.list_unlisted(slot, told, &mut held, &mut begun).await;
                memory.keep(begun, &listed, &target.kept);
                listed?;
            }
            target.end_applied(&held).await?;
            let held = if held.applied.is_ending { Some(held) } else { target.applied_for_certain(&name).await? };
            if let Some(held) = held
                && let Some(left) = self.go_on(target, slot, work, &held, (how, memory)).await?
            {
                self.tell_deleting(work, memory, Some(&left.to_string())).await?;
                // The cluster answers.
                (memory.failures, memory.left) = (0, None);
                return Ok(Action::requeue(memory.goes(left.count)));
            }
        }
        self.hold(work, memory, false).await?;
        self.leave(&work.key);
        Ok(Action::await_change())
    }

    /// As [`Part::go_away`], from where the earlier slot ended.
    async fn go_on(
        &self,
        target: &Target,
        slot: &Slot,
        work: &Work,
        held: &OnMember,
        (how, memory): (How<'_>, &mut Memory),
    ) -> Result<Option<Left>, Failure> {
        let mut begun = memory.begin(work.generation);
        let left = self.go_away(target, slot, work, held, (how, &mut begun)).await;
        memory.keep(begun, &left, &target.kept);
        left
    }

    /// Removes all applied objects, and then the object that lists them. Returns those that are not
    /// gone yet.
    pub(super) async fn go_away(
        &self,
        target: &Target,
        slot: &Slot,
        work: &Work,
        held: &OnMember,
        (how, begun): (How<'_>, &mut Begun),
    ) -> Result<Option<Left>, Failure> {
        let owner = held.applied.owner();
        let How { option, executor } = how;
        let (metrics, is_executor_required) = (&self.metrics.delivery, self.is_executor_required);
        let leaving = Leaving { work: work.name(), owner: &owner, option, executor, is_executor_required, metrics };
        let mut waiting: Vec<Tracked> = Vec::new();
        let mut why = None;
        // The member determines how many there are.
        let (these, later) = held.tracked().split_at(held.tracked().len().min(MOST_AT_ONCE));
        for (one, removed) in target.take_away(slot, these, leaving, begun).await? {
            match removed {
                Removed::Gone => {}
                Removed::Waits(version) => {
                    target.sights.going(work.name(), &one.identity, version);
                    waiting.push(one);
                }
                Removed::Refused(refusal) => {
                    why.get_or_insert_with(|| (one.identity.clone(), refusal));
                    waiting.push(one);
                }
            }
        }
        waiting.extend_from_slice(later);
        if waiting.is_empty() {
            target.release_applied(&held.applied.name).await?;
            return Ok(None);
        }
        let least = waiting.iter().map(|one| &one.identity).min_by_key(|one| words(one)).cloned().unwrap_or_default();
        let (first, why) = why.map_or((least, None), |(first, why)| (first, Some(why)));
        let left = Left { count: waiting.len(), first, why };
        let mut held = held.clone();
        target.list(&mut held, waiting).await?;
        Ok(Some(left))
    }

    /// How the cluster of a work is delivered to; none if this part does not deliver to it.
    pub(super) fn mode(&self, object: &DynamicObject) -> Option<Mode> {
        mode(&self.clusters, self.is_defined(), object)
    }

    fn is_defined(&self) -> bool {
        *self.definition.borrow() == Presence::There
    }

    fn is_leaving(&self, work: &Work) -> bool {
        work.is_ending && self.is_defined() && self.clusters.is_leaving(work.cluster())
    }

    /// Called when the work's cluster is unreachable. Ends the work without the cluster if that has
    /// been gone, or being deleted, for [`LEFT`], and returns whether it did.
    pub(super) async fn goes_without(&self, work: &mut Work, memory: &mut Memory) -> Result<bool, Failure> {
        let is_leaving = self.is_leaving(work);
        if !begin_or_due(&mut memory.left, is_leaving, Instant::now()) {
            return Ok(false);
        }
        let (cluster, name) = (work.cluster(), work.name());
        tracing::warn!(cluster, work = name, "a work ends with its cluster: what it applied stays there");
        let note = format!("cluster {cluster} is gone, and was not reached: what the work applied stays there");
        self.tell(work, Reason::WorkLeft, note);
        self.hold(work, memory, false).await?;
        self.leave(&work.key);
        Ok(true)
    }

    /// The work's cluster does not answer: the work waits, and its status says so.
    pub(super) async fn tell_waiting(&self, work: &mut Work, memory: &mut Memory) -> Result<(), Failure> {
        let cluster = work.cluster();
        let why = if self.is_leaving(work) {
            let after = LEFT.as_secs() / 60;
            format!(
                "cluster {cluster} is gone or being deleted, and is not reached: after {after} minutes the work's \
                 deletion completes without it"
            )
        } else {
            format!("cluster {cluster} does not answer: the deletion waits for it")
        };
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
    use std::collections::HashSet;

    use serde_json::{Value as Json, json};

    use super::*;

    fn work(is_ending: bool, manager: &str) -> DynamicObject {
        let held = json!({format!("v:\"{}\"", work::FINALIZER): {}});
        let entry = json!({"manager": manager, "operation": "Update", "fieldsType": "FieldsV1",
            "fieldsV1": {"f:metadata": {"f:finalizers": held}}});
        let mut metadata = json!({"name": "w", "namespace": "c1", "finalizers": [work::FINALIZER],
            "managedFields": [entry]});
        metadata["deletionTimestamp"] = if is_ending { "2026-01-01T00:00:00Z".into() } else { Json::Null };
        serde_json::from_value(json!({"apiVersion": "v1", "kind": "x", "metadata": metadata})).unwrap()
    }

    #[test]
    fn works_of_a_cluster_that_is_deleted_stay_until_they_are_deleted_themselves() {
        let (clusters, ours) = (Clusters::default(), crate::calls::MANAGER);
        clusters.listed(HashSet::from(["c1".to_owned()]));
        clusters.put("c1", Some(Mode::Push));
        clusters.saw("c1", true);
        for is_ending in [false, true] {
            assert_eq!(mode(&clusters, true, &work(is_ending, ours)), Some(Mode::Push), "it can be reached still");
        }
        clusters.lost("c1");
        clusters.put("c1", None);
        assert_eq!(mode(&clusters, true, &work(false, ours)), None, "nothing is taken away, and the finalizer stays");
        assert_eq!(mode(&clusters, true, &work(true, ours)), Some(Mode::Push));
        assert_eq!(mode(&clusters, true, &work(true, "work-agent")), None, "an agent may be waiting for its hub");
        assert_eq!(mode(&clusters, false, &work(true, ours)), None, "all clusters are gone by their definition");
    }

    #[tokio::test(start_paused = true)]
    async fn a_cluster_that_leaves_is_tried_for_a_while_and_one_that_is_back_begins_anew() {
        let mut since = None;
        assert!(!begin_or_due(&mut since, true, Instant::now()));
        tokio::time::advance(LEFT / 2).await;
        assert!(!begin_or_due(&mut since, false, Instant::now()), "it is there again");
        assert!(!begin_or_due(&mut since, true, Instant::now()));
        tokio::time::advance(LEFT / 2).await;
        assert!(!begin_or_due(&mut since, true, Instant::now()), "for half of the time");
        tokio::time::advance(LEFT / 2).await;
        assert!(begin_or_due(&mut since, true, Instant::now()));
    }

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
