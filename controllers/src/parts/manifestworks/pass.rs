//! One pass over a work: it applies the manifests that are owed to the member, removes what the
//! work no longer has, and leaves the status to report in memory.

mod results;

use std::collections::HashSet;
use std::sync::Arc;

use delivery::executor::Executor;
use delivery::identity::{Identity, Tracked};
use delivery::manifests::{self, Manifest};
use delivery::ownership::Owner;
use delivery::rules::Evaluator;
use delivery::work::{Index, ManifestWorkSpec, ResourceMeta, is_complete, was_applied};
use fleet::Sight;
use futures_util::{StreamExt as _, stream};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::Part;
use super::applied::{self, Keeper, OnMember};
use super::begun::{Begun, Kept};
use super::clusters::Mode;
use super::complete::{read, reopened};
use super::contest::{By, twins};
use super::discovery::Gvk;
use super::done::Done;
use super::ending::How;
use super::failure::Failure;
use super::memory::Memory;
use super::object::{Outcome, Remembered, Setting, settle};
use super::statuses::has_outcome;
use super::target::{Slot, Target};
use super::telling::Asking;
use super::unlisted::{Identities, is_to_be_listed};
use super::work::Work;

/// The parameters of a pass.
pub struct Pass<'a> {
    pub part: &'a Part,
    pub target: &'a Target,
    pub slot: &'a Slot,
    pub work: &'a Work,
    pub spec: &'a Arc<ManifestWorkSpec>,
    pub executor: Option<&'a Executor>,
    pub mode: Mode,
    /// Name of the `AppliedManifestWork`.
    pub name: String,
    /// Whether it processes all objects, not only the owed ones.
    pub is_whole: bool,
    /// The work is complete: its objects are only read.
    pub is_complete: bool,
}

/// A manifest, what is known of its object, and its last reported status.
type Chosen<'m> = (&'m Manifest, Remembered, LastStatus);

/// The reported status of a manifest.
#[derive(Debug, Clone, Copy)]
struct LastStatus {
    /// At this generation.
    was_applied: bool,
    /// Its object is no longer applied.
    is_complete: bool,
}

/// The result of processing one object.
struct Looked {
    kept: Kept,
    remembered: Remembered,
    contested_by: Option<By>,
    /// The `AppliedManifestWorks` of agents that deliver it, too.
    twins: Vec<String>,
    is_conflict: bool,
    /// Where what failed did.
    hop: &'static str,
}

// === impl Pass ===

impl Pass<'_> {
    /// Runs the pass. Afterwards, memory holds the status to report.
    pub async fn run(&self, memory: &mut Memory) -> Result<(), Failure> {
        let mut begun = memory.begin(self.work.generation);
        let ended = self.go_over(memory, &mut begun).await;
        if ended.is_ok() && !begun.later.is_empty() {
            memory.owed.extend(std::mem::take(&mut begun.later));
            self.part.wakes.push(self.work.cluster(), self.work.name());
        }
        memory.keep(begun, &ended, &self.target.kept);
        if ended.is_err() {
            memory.owes_all(self.work.generation);
        }
        ended
    }

    async fn go_over(&self, memory: &mut Memory, begun: &mut Begun) -> Result<(), Failure> {
        if self.is_complete {
            return self.read_over(memory, begun).await;
        }
        let mut held = self.held(memory).await?;
        if held.applied.is_ending {
            return self.go(memory, &held, begun).await;
        }
        let manifests = self.manifests(begun).await?;
        self.make_room(memory, &manifests);
        let (done, failure) = self.settle_all(&manifests, memory, (&held.applied.owner(), held.tracked()), begun).await;
        let listed = match failure {
            None => self.list(&done, &mut held, memory, begun).await,
            Some(failure) => Err(failure),
        };
        let staying = match listed {
            Ok(staying) => staying,
            Err(failure) => {
                self.list_made(&done, &mut held).await;
                if failure.is_for_slot() {
                    self.remember(done, memory, begun);
                    let version = Some(held.applied.resource_version.clone());
                    self.target.sights.looked(self.work.name(), &applied::identity(&self.name), version);
                }
                return Err(failure);
            }
        };
        self.see(&done, memory, Some(&held), &staying.objects);
        if staying.len() == 0 {
            memory.clear_going();
        }
        memory.removal = (staying.len() > 0).then(|| Instant::now() + memory.goes(staying.len()));
        let status = self.status(done, staying.why);
        begun.later.extend(reopened(&self.work.status, &status));
        memory.status = Some(status);
        memory.settled = Some(self.work.generation);
        // Not `clear`, which would keep the allocation, for all objects of each work.
        memory.owed = HashSet::new();
        Ok(())
    }

    /// Lists the created objects, in case the next pass no longer wants them.
    async fn list_made(&self, done: &Done<'_>, held: &mut OnMember) {
        let made = done.listed(held.tracked());
        if let Err(error) = self.target.list(held, made).await {
            tracing::debug!(cluster = self.work.cluster(), work = self.work.name(), %error, "what was made is not listed");
        }
    }

    /// Keeps the progress for the next slot. Processed objects are no longer owed, and later
    /// changes of them are new.
    pub(super) fn remember(&self, done: Done<'_>, memory: &mut Memory, begun: &mut Begun) {
        for (manifest, outcome) in done.manifests.iter().zip(&done.outcomes) {
            if let Some(outcome) = outcome.as_ref().filter(|_| manifest.object.is_ok()) {
                let identity = manifest.identity();
                memory.owed.remove(&identity);
                self.target.sights.looked(self.work.name(), &identity, outcome.version.clone());
            }
        }
        begun.outcomes = done.outcomes;
    }

    /// Somebody deleted the `AppliedManifestWork`: all objects are deleted and created again.
    async fn go(&self, memory: &mut Memory, held: &OnMember, begun: &mut Begun) -> Result<(), Failure> {
        memory.settled = None;
        begun.outcomes.clear();
        let own = applied::identity(&self.name);
        self.target.sights.looked(self.work.name(), &own, Some(held.applied.resource_version.clone()));
        let how = How { option: None, executor: self.executor };
        let left = self.part.go_away(self.target, self.slot, self.work, held, (how, begun)).await?;
        memory.removal = Some(Instant::now() + memory.goes(left.map_or(0, |left| left.count)));
        Ok(())
    }

    /// The `AppliedManifestWork`, which is read again each time: it is as large as all state of the
    /// work's objects, and most works have nothing to do for days.
    async fn held(&self, memory: &mut Memory) -> Result<OnMember, Failure> {
        let keeper = Keeper { agent: &self.part.agent, work: self.work };
        let mode = if memory.adopted == Some(self.mode) { Mode::Push } else { self.mode };
        let held = self.target.ensure_applied(&self.name, keeper, mode, &mut memory.writes.head).await?;
        // If the write failed, the adoption was not carried out.
        if self.mode != Mode::Push && held.is_adopted(&keeper.spec()) {
            memory.adopted = Some(self.mode);
        }
        Ok(held)
    }

    async fn manifests(&self, begun: &mut Begun) -> Result<Vec<Manifest>, Failure> {
        let all = &self.spec.workload.manifests;
        let wanted: HashSet<Gvk> = all.iter().filter_map(gvk).collect();
        let found = &mut begun.kinds;
        self.target.kinds.find(&self.target.member, || self.slot.step(), wanted, found).await?;
        Ok(manifests::read(all, |group, version, kind| found.lookup(group, version, kind)))
    }

    /// Processes the chosen manifests, rank by rank, until the member does not answer.
    pub(super) async fn settle_all<'m>(
        &self,
        manifests: &'m [Manifest],
        memory: &mut Memory,
        (owner, listed): (&Owner, &[Tracked]),
        begun: &mut Begun,
    ) -> (Done<'m>, Option<Failure>) {
        let listed: Identities<'_> = listed.iter().map(|one| &one.identity).collect();
        let setting = Setting {
            target: self.target,
            work: self.work.name(),
            spec: self.spec,
            owner,
            executor: self.executor,
            is_kept: !memory.is_unwatched(),
            metrics: &self.part.metrics.delivery,
        };
        let index = Index::new(&self.work.status.resource_status.manifests);
        let due: Vec<Identity> = memory.due(Instant::now()).cloned().collect();
        // Until this pass has ended, which may be in the middle.
        memory.owed.extend(due);
        begun.put_off(manifests, &mut memory.owed);
        let mut done = Done { manifests, outcomes: std::mem::take(&mut begun.outcomes) };
        done.outcomes.resize_with(manifests.len(), || None);
        let evaluator = Arc::new(Mutex::new(Evaluator::default()));
        for some in manifests::ranked(manifests).into_iter().flat_map(|(_, rank)| self.steps(rank)) {
            let chosen = self.choose(some, (&index, &listed), memory, &done);
            let looks: Vec<_> = chosen
                .into_iter()
                .map(|(manifest, before, told)| {
                    let evaluator = Arc::clone(&evaluator);
                    async move { (manifest, self.look(setting, manifest, before, told, evaluator).await) }
                })
                .collect();
            let answers: Vec<_> = stream::iter(looks).buffer_unordered(super::REQUESTS).collect().await;
            let mut failure: Option<Failure> = None;
            for (manifest, answer) in answers {
                match answer {
                    Ok(looked) => self.keep(manifest, looked, memory, &mut done),
                    // The end of a slot during requests says nothing about the member.
                    Err(error) if failure.as_ref().is_none_or(Failure::is_for_slot) => {
                        failure = Some(error);
                    }
                    Err(_) => {}
                }
            }
            if failure.is_some() {
                return (done, failure);
            }
        }
        (done, None)
    }

    /// What of a rank is processed together.
    fn steps<'m>(&self, rank: Vec<&'m Manifest>) -> [Vec<&'m Manifest>; 2] {
        if self.executor.is_some() { manifests::bindings_last(rank) } else { [rank, Vec::new()] }
    }

    /// The manifests to process now, with the state of their objects, and whether they were
    /// applied. An object whose fields others own and change is retried only after its rest.
    fn choose<'m>(
        &self,
        rank: Vec<&'m Manifest>,
        (index, listed): (&Index<'_>, &Identities<'_>),
        memory: &mut Memory,
        done: &Done<'_>,
    ) -> Vec<Chosen<'m>> {
        let (now, generation) = (Instant::now(), self.work.generation);
        let mut chosen = Vec::new();
        for manifest in rank {
            let (identity, known) = (manifest.identity(), index.find(&ResourceMeta::from(manifest)));
            let told = LastStatus {
                was_applied: known.is_some_and(|known| was_applied(known, generation)),
                is_complete: self.is_complete || known.is_some_and(|known| is_complete(&known.conditions)),
            };
            let is_unlisted = || {
                let is_to_be_listed = known.is_some_and(|known| is_to_be_listed(&identity, known, self.spec));
                is_to_be_listed && !told.is_complete && !listed.contains(&identity)
            };
            let is_due = self.is_whole || memory.owed.contains(&identity) || is_unlisted();
            if Begun::is_looked_at(&done.outcomes, manifest) || (!is_due && known.is_some_and(has_outcome)) {
                continue;
            }
            let before = memory.objects.get(&identity);
            if let Some(again) = before.rests(generation, now) {
                let remembered = Remembered { again: Some(again), ..before };
                memory.objects.insert(self.target.sights.shared(&identity), remembered);
                continue;
            }
            memory.owed.insert(identity);
            chosen.push((manifest, before, told));
        }
        chosen
    }

    /// Processes one object, and evaluates the work's rules on it at once.
    async fn look(
        &self,
        setting: Setting<'_>,
        manifest: &Manifest,
        before: Remembered,
        told: LastStatus,
        evaluator: Arc<Mutex<Evaluator>>,
    ) -> Result<Looked, Failure> {
        let _step = self.slot.step()?;
        let identity = manifest.identity();
        if manifest.object.is_ok() {
            self.target.sights.looking(self.work.name(), &identity);
        }
        // An invalid manifest is reported, like any other.
        let outcome = if told.is_complete && (self.is_complete || manifest.object.is_ok()) {
            read(setting, manifest, before).await?
        } else {
            settle(setting, manifest, before, told.was_applied).await?
        };
        let (uid, version) = (outcome.text("uid"), outcome.text("resourceVersion"));
        let Outcome { result, hop, availability, observed, is_owned, remembered, contested_by, note, is_conflict } =
            outcome;
        let owned = observed.as_ref().filter(|_| is_owned);
        let twins = owned.map(|object| twins(setting.owner, object)).unwrap_or_default();
        let said = match observed {
            Some(object) => {
                let (spec, generation, raw) = (Arc::clone(self.spec), self.work.generation, self.part.raw_feedback);
                self.target.said(Asking { spec, identity, object, generation, raw, evaluator }).await
            }
            None => None,
        };
        let kept = Kept { result, availability, is_owned, uid, version, said, note };
        Ok(Looked { kept, remembered, contested_by, twins, is_conflict, hop })
    }
}

/// Group, version and kind of a manifest, if it has them.
fn gvk(manifest: &serde_json::Value) -> Option<Gvk> {
    let text = |key: &str| manifest.get(key)?.as_str();
    let api_version = text("apiVersion")?;
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let gvk = (group.to_owned(), version.to_owned(), text("kind")?.to_owned());
    // An invalid part of a path is reported with the manifest later, and not requested.
    let identity = Identity { group: gvk.0.clone(), resource: "x".into(), name: "x".into(), namespace: String::new() };
    identity.check(&gvk.1).is_ok().then_some(gvk)
}

// === impl Outcome ===

impl Outcome {
    /// A field of the object's metadata, cut: it is kept for each object, and the member determines
    /// its length.
    fn text(&self, field: &str) -> Option<String> {
        let object = self.observed.as_ref()?;
        object.pointer("/metadata")?.get(field)?.as_str().map(|text| Sight::cut(text).to_owned())
    }
}
