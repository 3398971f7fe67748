//! One pass over a work: what changed of it, or of its objects, is looked at, and what differs is
//! written, on the member and on the hub.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use delivery::deletion::untracked;
use delivery::executor::Executor;
use delivery::identity::{Identity, Tracked};
use delivery::manifests::{self, Manifest};
use delivery::ownership::Owner;
use delivery::work::{Index, ManifestWorkSpec, ResourceMeta, was_applied};
use futures_util::{StreamExt as _, stream};
use tokio::time::Instant;

use super::applied::{self, Held};
use super::clusters::Mode;
use super::discovery::Gvk;
use super::failure::Failure;
use super::memory::Memory;
use super::object::{Outcome, Setting, settle};
use super::place::Place;
use super::removal::Removed;
use super::sights::Scope;
use super::work::Work;
use super::{Part, telling};
use crate::events::Reason;

/// Until what is being deleted is looked at again. Its end is seen, mostly.
const GOING: Duration = Duration::from_secs(5);

/// What a pass is for.
pub struct Pass<'a> {
    pub part: &'a Part,
    pub place: &'a Place,
    pub work: &'a Work,
    pub spec: &'a ManifestWorkSpec,
    pub executor: Option<&'a Executor>,
    pub mode: Mode,
    /// Of the `AppliedManifestWork`.
    pub name: String,
    /// All objects, or those that are owed.
    pub is_whole: bool,
}

/// What became of the manifests.
struct Done<'m> {
    manifests: &'m [Manifest],
    /// By ordinal; none: it was not looked at.
    outcomes: Vec<Option<Outcome>>,
}

// === impl Pass ===

impl Pass<'_> {
    /// Goes over it. What is to be told of it is in the memory then.
    pub async fn run(&self, memory: &mut Memory) -> Result<(), Failure> {
        let mut held = self.held(memory).await?;
        if held.applied.is_ending {
            memory.applied = None;
            return self.part.go_away(self.place, self.work, &held, None).await.map(|is_gone| {
                memory.settled = None;
                memory.removal = Some(Instant::now() + if is_gone { Duration::ZERO } else { GOING });
            });
        }
        let manifests = self.manifests().await?;
        let owner = held.applied.owner();
        let done = self.settle_all(&manifests, memory, &owner).await?;
        let waiting = self.list(&done, &mut held, &owner).await?;
        self.see(&done, memory, &held, &waiting);
        memory.applied = Some(held);
        memory.removal = (!waiting.is_empty()).then(|| Instant::now() + GOING);
        memory.status = Some(self.status(done).await);
        memory.settled = Some(self.work.generation);
        memory.owed.clear();
        Ok(())
    }

    /// The `AppliedManifestWork`, read anew where it may be another one.
    async fn held(&self, memory: &Memory) -> Result<Held, Failure> {
        let own = applied::identity(&self.name);
        if let Some(held) = memory.applied.as_ref().filter(|_| !self.is_whole && !memory.owed.contains(&own)) {
            return Ok(held.clone());
        }
        let spec = self.part.agent.spec(self.work.name());
        self.place.ensure_applied(&self.name, &spec, &self.work.labels, self.mode).await
    }

    async fn manifests(&self) -> Result<Vec<Manifest>, Failure> {
        let all = &self.spec.workload.manifests;
        let wanted: HashSet<Gvk> = all.iter().filter_map(gvk).collect();
        let found = self.place.kinds.find(&self.place.member, wanted).await?;
        Ok(manifests::read(all, |group, version, kind| found.lookup(group, version, kind)))
    }

    /// Looks at those whose turn it is, rank by rank.
    async fn settle_all<'m>(
        &self,
        manifests: &'m [Manifest],
        memory: &mut Memory,
        owner: &Owner,
    ) -> Result<Done<'m>, Failure> {
        let setting = Setting {
            place: self.place,
            spec: self.spec,
            owner,
            executor: self.executor,
            metrics: &self.part.metrics.delivery,
        };
        let index = Index::new(&self.work.status.resource_status.manifests);
        let mut done = Done { manifests, outcomes: manifests.iter().map(|_| None).collect() };
        let due: HashSet<Identity> = memory.due(Instant::now()).cloned().collect();
        for (_, rank) in manifests::ranked(manifests) {
            let chosen = rank.into_iter().filter_map(|manifest| {
                let (identity, known) = (manifest.identity(), index.find(&ResourceMeta::from(manifest)));
                let is_due = self.is_whole || memory.owed.contains(&identity) || due.contains(&identity);
                let was_applied = known.is_some_and(|known| was_applied(known, self.work.generation));
                let before = memory.objects.get(&identity).copied().unwrap_or_default();
                (is_due || known.is_none()).then_some((manifest, before, was_applied))
            });
            let looks: Vec<_> = chosen
                .map(|(manifest, before, was_applied)| async move {
                    (manifest, settle(setting, manifest, before, was_applied).await)
                })
                .collect();
            let answers: Vec<_> = stream::iter(looks).buffer_unordered(super::REQUESTS).collect().await;
            let mut failure = None;
            for (manifest, answer) in answers {
                match answer {
                    Ok(outcome) => self.keep(manifest, outcome, memory, &mut done),
                    Err(error) => failure = Some(error),
                }
            }
            if let Some(error) = failure {
                return Err(error.into());
            }
        }
        Ok(done)
    }

    fn keep(&self, manifest: &Manifest, outcome: Outcome, memory: &mut Memory, done: &mut Done<'_>) {
        let identity = manifest.identity();
        if let Err(why) = &outcome.result {
            let (cluster, work) = (self.work.cluster(), self.work.name());
            tracing::info!(cluster, work, object = ?identity, ?why, "an object is not applied");
        }
        if let Some(by) = &outcome.contested_by {
            let note = format!(
                "{by} changes {} {}/{} of the cluster back each time: it is repaired each 5 minutes",
                identity.resource, identity.namespace, identity.name
            );
            self.part.tell(self.work, Reason::ObjectContested, note);
        }
        memory.objects.insert(identity, outcome.remembered);
        if let Some(place) = done.outcomes.get_mut(manifest.ordinal) {
            *place = Some(outcome);
        }
    }

    /// Lists what is applied now, and takes away what is no longer wanted. Returns what of that is
    /// not gone yet.
    async fn list(
        &self,
        done: &Done<'_>,
        held: &mut Held,
        owner: &Owner,
    ) -> Result<Vec<(Tracked, Option<String>)>, Failure> {
        let before = held.tracked().to_vec();
        let mut now = done.tracked(&before);
        // Before anything is taken away: what is new is never without an entry for long.
        let gone: Vec<Tracked> = untracked(&before, &done.wanted(), done.manifests).into_iter().cloned().collect();
        let (wanted, leaving): (HashSet<Identity>, HashSet<&Identity>) = (
            done.wanted().into_iter().map(|one| one.identity).collect(),
            gone.iter().map(|one| &one.identity).collect(),
        );
        let kept = before.iter().filter(|one| !leaving.contains(&one.identity) && !wanted.contains(&one.identity));
        now.extend(kept.cloned());
        let mut waiting = Vec::new();
        for one in gone {
            let option = self.spec.delete_option.as_ref();
            match self.place.remove(&one, owner, option, &self.part.metrics.delivery).await? {
                Removed::Gone => {}
                Removed::Waits(version) => waiting.push((one, version)),
            }
        }
        now.extend(waiting.iter().map(|(one, _)| one.clone()));
        self.place.list(held, now).await?;
        Ok(waiting)
    }

    /// What is looked at from now on.
    fn see(&self, done: &Done<'_>, memory: &mut Memory, held: &Held, waiting: &[(Tracked, Option<String>)]) {
        let (sights, name) = (&self.place.sights, self.work.name());
        let own = applied::identity(&self.name);
        let version = Some(held.applied.resource_version.clone());
        sights.looked(name, &own, version);
        let mut scopes = HashSet::from([Scope::of(&own, applied::VERSION)]);
        let mut all = HashSet::from([own]);
        for (manifest, outcome) in done.manifests.iter().zip(&done.outcomes) {
            let identity = manifest.identity();
            if manifest.object.is_ok() {
                scopes.insert(Scope::of(&identity, &manifest.version));
                if let Some(outcome) = outcome {
                    sights.looked(name, &identity, outcome.version());
                }
            }
            all.insert(identity);
        }
        for (tracked, version) in waiting {
            sights.looked(name, &tracked.identity, version.clone());
            scopes.insert(Scope::of(&tracked.identity, &tracked.version));
            all.insert(tracked.identity.clone());
        }
        sights.retain(name, |identity| all.contains(identity));
        memory.objects.retain(|identity, _| all.contains(identity));
        sights.follow(name, &scopes, &self.part.way(self.place));
        memory.scopes = scopes;
    }

    async fn status(&self, done: Done<'_>) -> delivery::work::ManifestWorkStatus {
        let entry = |(manifest, outcome): (&Manifest, Option<Outcome>)| {
            let news = outcome.map(|outcome| telling::News {
                result: outcome.result,
                availability: outcome.availability,
                observed: outcome.observed,
            });
            telling::Entry::new(manifest, news)
        };
        let telling = telling::Telling {
            before: self.work.status.clone(),
            generation: self.work.generation,
            configs: self.spec.manifest_configs.clone(),
            entries: done.manifests.iter().zip(done.outcomes).map(entry).collect(),
            is_of_set: self.work.labels.contains_key(delivery::work::replica_set::SET_LABEL),
        };
        self.part.told(telling).await
    }
}

/// Group, version and kind of a manifest, if it says any.
fn gvk(manifest: &serde_json::Value) -> Option<Gvk> {
    let text = |key: &str| manifest.get(key)?.as_str();
    let api_version = text("apiVersion")?;
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let gvk = (group.to_owned(), version.to_owned(), text("kind")?.to_owned());
    // What cannot be part of a path is told of the manifest later, and not asked for.
    let identity = Identity { group: gvk.0.clone(), resource: "x".into(), name: "x".into(), namespace: String::new() };
    identity.check(&gvk.1).is_ok().then_some(gvk)
}

// === impl Done ===

impl Done<'_> {
    /// All that is wanted, whatever became of it.
    fn wanted(&self) -> Vec<Tracked> {
        let wanted = self.manifests.iter().filter(|manifest| manifest.object.is_ok());
        let tracked = |manifest: &Manifest| Tracked {
            identity: manifest.identity(),
            version: manifest.version.clone(),
            uid: String::new(),
        };
        wanted.map(tracked).collect()
    }

    /// What of that is tracked: what is owned and there, and, where that is not known, what was.
    fn tracked(&self, before: &[Tracked]) -> Vec<Tracked> {
        let wanted = self.manifests.iter().zip(&self.outcomes).filter(|(manifest, _)| manifest.object.is_ok());
        let before: HashMap<&Identity, &Tracked> = before.iter().map(|one| (&one.identity, one)).collect();
        let each = wanted.filter_map(|(manifest, outcome)| {
            let identity = manifest.identity();
            let known = || before.get(&identity).map(|one| (*one).clone());
            let Some(outcome) = outcome else { return known() };
            match (&outcome.result, outcome.is_owned, outcome.uid()) {
                (Ok(()), true, Some(uid)) => Some(Tracked { version: manifest.version.clone(), uid, identity }),
                (Ok(()), false, _) => None,
                _ => known(),
            }
        });
        each.collect()
    }
}

// === impl Outcome ===

impl Outcome {
    fn text(&self, field: &str) -> Option<String> {
        let object = self.observed.as_ref()?;
        object.pointer("/metadata")?.get(field)?.as_str().map(str::to_owned)
    }

    fn uid(&self) -> Option<String> {
        self.text("uid")
    }

    fn version(&self) -> Option<String> {
        self.text("resourceVersion")
    }
}
