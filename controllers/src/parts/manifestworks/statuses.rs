//! Writes of works on the hub.

use std::time::Duration;

use delivery::condition::{self, Condition, Status};
use delivery::work::{ManifestCondition, ManifestWorkStatus, is_complete, kind};
use kube::{Api, ResourceExt as _};
use time::OffsetDateTime;
use tokio::time::Instant;

use super::allowance::json_bytes;
use super::failure::Failure;
use super::memory::Memory;
use super::target::Target;
use super::work::{Work, works};
use super::{Part, telling};
use crate::metrics::WorkState;
use crate::parts::hub_calls::found;
use crate::raw::RawObject;

/// Bytes for the names of complete objects in a status that is too large otherwise.
const MOST_COMPLETE: usize = 256 * 1024;
/// How `Applied` ends then.
const LEFT_OUT: &str = "is larger than the hub takes, and left out: split the work";

// === impl Part ===

impl Part {
    /// Reports that nothing can be done for the work, without its manifests, at the pace of its
    /// other statuses: another client may write it, too. Returns the wait until it may be written.
    pub(super) async fn refuse(
        &self,
        work: &mut Work,
        memory: &mut Memory,
        why: &str,
    ) -> Result<Option<Duration>, Failure> {
        let mut status = work.status.clone();
        let message = format!("Failed to apply manifest work: {why}");
        let told = Condition::new(kind::APPLIED, Status::False, "AppliedManifestWorkFailed", message);
        condition::set(&mut status.conditions, told.at(work.generation), OffsetDateTime::now_utc());
        memory.settled = None;
        // An earlier status to report is obsolete.
        drop(memory.take_status());
        self.metrics.delivery.begin(&work.key, work.generation);
        if status == work.status {
            memory.status_writes.rest();
            return Ok(None);
        }
        let now = Instant::now();
        if let Some(wait) = memory.status_writes.wait(now, true) {
            return Ok(Some(wait));
        }
        self.write_status(work, memory, status).await?;
        memory.status_writes.wrote(now);
        Ok(None)
    }

    /// Writes the waiting status when it is time. Returns the wait until then.
    pub(super) async fn tell_status(&self, work: &mut Work, memory: &mut Memory) -> Result<Option<Duration>, Failure> {
        let Some(status) = memory.take_status() else { return Ok(None) };
        self.metrics.delivery.settle(&work.key, WorkState::of(&status, work.generation, memory.contested()));
        let mut status = fitting(status, memory, work.generation);
        if status == work.status {
            memory.status_writes.rest();
            memory.edits.reported(&status);
            return Ok(None);
        }
        let applied = condition::find(&work.status.conditions, kind::APPLIED);
        // A complete work is no longer applied.
        let is_first =
            applied.is_none_or(|one| one.observed_generation != work.generation) && !is_complete(&status.conditions);
        let now = Instant::now();
        let is_urgent = completed(&status) > completed(&work.status);
        if let Some(wait) = memory.status_writes.wait(now, is_urgent).filter(|_| !is_first) {
            match self.put_back(work, memory, status) {
                // Complete objects may be gone by the next pass, which would create them again.
                Some(left) if is_urgent => status = left,
                _ => return Ok(Some(wait)),
            }
        }
        let written = self.write_status(work, memory, status.clone()).await;
        if written.is_err() {
            drop(self.put_back(work, memory, status));
        }
        written?;
        memory.status_writes.wrote(now);
        Ok(None)
    }

    pub(super) async fn write_status(
        &self,
        work: &mut Work,
        memory: &mut Memory,
        status: ManifestWorkStatus,
    ) -> Result<(), Failure> {
        let mut status = fitting(status, memory, work.generation);
        loop {
            match self.write_whole(work, memory, &status).await {
                Err(failure) if failure.is_too_large() && !status.resource_status.manifests.is_empty() => {
                    memory.too_large = Some((work.generation, json_bytes(&status)));
                    status = fitting(status, memory, work.generation);
                }
                written => return written,
            }
        }
    }

    async fn write_whole(
        &self,
        work: &mut Work,
        memory: &mut Memory,
        status: &ManifestWorkStatus,
    ) -> Result<(), Failure> {
        if *status == work.status {
            memory.edits.reported(status);
            return Ok(());
        }
        let _permit = self.writes.acquire().await;
        let written = self.hub.merge_status(&self.works(work), work.name(), &work.with_status(status)).await?;
        work.version = written.resource_version().unwrap_or_default();
        work.status.clone_from(status);
        memory.edits.reported(&work.status);
        memory.wrote(work);
        Ok(())
    }

    /// Stores a status to write later. Without room for it, the next pass computes it again.
    fn put_back(&self, work: &Work, memory: &mut Memory, status: ManifestWorkStatus) -> Option<ManifestWorkStatus> {
        let Some(target) = self.targets.known(work.cluster()) else {
            memory.settled = None;
            return Some(status);
        };
        memory.put_back(status, &target.kept)
    }

    /// Adds our finalizer, or removes it.
    pub(super) async fn hold(&self, work: &mut Work, memory: &mut Memory, is_held: bool) -> Result<(), Failure> {
        let _permit = self.writes.acquire().await;
        let written = self.hub.merge(&self.works(work), work.name(), &work.hold(is_held)).await;
        // Nothing is applied without the finalizer. A work that is gone needs none.
        let Some(written) = found(written)? else { return if is_held { Err(Failure::Gone) } else { Ok(()) } };
        work.version = written.resource_version().unwrap_or_default();
        work.finalizers = written.finalizers().to_vec();
        memory.wrote(work);
        Ok(())
    }

    /// An API whose responses are not parsed: the work's contents may be beyond what can be parsed.
    fn works(&self, work: &Work) -> Api<RawObject> {
        Api::namespaced_with(self.hub.client.clone(), work.cluster(), &works())
    }
}

/// The status in a form that the hub accepts: a status as large as one that it refused is not
/// tried.
fn fitting(status: ManifestWorkStatus, memory: &Memory, generation: i64) -> ManifestWorkStatus {
    let too_large = memory.too_large.filter(|(at, _)| *at == generation);
    let is_too_large = |status: &ManifestWorkStatus| too_large.is_some_and(|(_, bytes)| json_bytes(status) >= bytes);
    if !is_too_large(&status) {
        return status;
    }
    let status = cut(status, MOST_COMPLETE);
    if is_too_large(&status) { cut(status, 0) } else { status }
}

/// The status of the work alone, with the reason why that of its manifests is missing. In `room`
/// bytes, it keeps which objects are complete, because these would otherwise be created again.
fn cut(mut status: ManifestWorkStatus, mut room: usize) -> ManifestWorkStatus {
    let manifests = std::mem::take(&mut status.resource_status.manifests);
    let count = manifests.len();
    let fits = |one: &ManifestCondition| {
        let rest = room.checked_sub(json_bytes(one));
        room = rest.unwrap_or(room);
        rest.is_some()
    };
    status.resource_status.manifests = manifests.into_iter().filter_map(complete_alone).take_while(fits).collect();
    let applied = status.conditions.iter_mut().find(|one| one.kind == kind::APPLIED && count > 0);
    if let Some(applied) = applied.filter(|one| !one.message.ends_with(LEFT_OUT)) {
        let why = format!("the status of its {count} manifests {LEFT_OUT}");
        let most = condition::MESSAGE.saturating_sub(why.len() + 2);
        applied.message.truncate(applied.message.floor_char_boundary(most));
        applied.message = format!("{}; {why}", applied.message);
    }
    status
}

/// That an object is complete, if it is.
fn complete_alone(manifest: ManifestCondition) -> Option<ManifestCondition> {
    let ManifestCondition { resource_meta, conditions, .. } = manifest;
    let complete = conditions.into_iter().find(|one| one.kind == kind::COMPLETE && one.status == Status::True)?;
    let complete = Condition { message: String::new(), ..complete };
    Some(ManifestCondition { resource_meta, conditions: vec![complete], ..ManifestCondition::default() })
}

/// Whether a status has the object's outcome, and not only that it is complete.
pub fn has_outcome(manifest: &ManifestCondition) -> bool {
    condition::find(&manifest.conditions, kind::APPLIED).is_some()
}

/// How much of it is complete. An object may expire by itself before that is reported.
fn completed(status: &ManifestWorkStatus) -> usize {
    let manifests = &status.resource_status.manifests;
    let objects = manifests.iter().filter(|one| is_complete(&one.conditions)).count();
    objects + usize::from(is_complete(&status.conditions))
}

// === impl Target ===

impl Target {
    /// Evaluates the rules on an object, which may take a second. None if that failed.
    pub(super) async fn said(&self, asking: telling::Asking) -> Option<telling::Said> {
        if !asking.is_costly() {
            return Some(asking.said());
        }
        let held = self.rules.enter().await;
        // The thread keeps its permit even if nothing waits for its result any more.
        let said = move || {
            let said = asking.said();
            drop(held);
            said
        };
        tokio::task::spawn_blocking(said).await.ok()
    }
}
