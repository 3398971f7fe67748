//! What a pass keeps, lists and reports of its objects.

use std::collections::HashSet;

use delivery::deletion::untracked;
use delivery::identity::{Identity, Tracked};
use delivery::manifests::{Fault, Manifest};
use delivery::work::Failed;
use time::OffsetDateTime;
use tokio::time::Instant;

use super::{Looked, Pass};
use crate::events::Reason;
use crate::parts::manifestworks::applied::{self, OnMember};
use crate::parts::manifestworks::begun::{Begun, Kept};
use crate::parts::manifestworks::done::Done;
use crate::parts::manifestworks::ending::words;
use crate::parts::manifestworks::failure::Failure;
use crate::parts::manifestworks::memory::Memory;
use crate::parts::manifestworks::removal::Staying;
use crate::parts::manifestworks::sights::Scope;
use crate::parts::manifestworks::telling;
use crate::parts::watched::number;

impl Pass<'_> {
    pub(super) fn keep(&self, manifest: &Manifest, looked: Looked, memory: &mut Memory, done: &mut Done<'_>) {
        let identity = manifest.identity();
        let Looked { kept, mut remembered, contested_by, twins, is_conflict, hop } = looked;
        if is_conflict {
            remembered.conflicted(self.work.generation, Instant::now());
        }
        if let Err(Failed::IgnoreFields(why) | Failed::Other(why)) = &kept.result {
            let number = number(why);
            if remembered.said != Some(number) {
                let (cluster, work, object) = (self.work.cluster(), self.work.name(), words(&identity));
                tracing::info!(cluster, work, object, hop, "an object is not applied: {why}");
            }
            remembered.said = Some(number);
        }
        if let Some(by) = contested_by {
            let note = format!(
                "{by} {} of cluster {} each time: it is repaired every 5 minutes. Stop that, or take the object out of \
                 the work",
                words(&identity),
                self.work.cluster()
            );
            self.part.tell(self.work, Reason::ObjectContested, note);
        }
        for twin in twins.into_iter().filter(|twin| memory.met(twin)) {
            let note = format!(
                "AppliedManifestWork {twin} of cluster {} owns {} too: an agent applied a work of this name there, for \
                 another hub or by another URL than --hub-url. If it still runs, both write the object: stop one of \
                 them",
                self.work.cluster(),
                words(&identity)
            );
            self.part.tell(self.work, Reason::ForeignAgent, note);
        }
        // A duplicate is the object of another manifest.
        if !matches!(manifest.object, Err(Fault::Duplicate(_))) {
            memory.objects.insert(self.target.sights.shared(&identity), remembered);
        }
        if let Some(target) = done.outcomes.get_mut(manifest.ordinal) {
            *target = Some(kept);
        }
    }

    /// Lists the objects that are applied now, and removes those no longer wanted. Returns those
    /// that are not gone yet.
    pub(super) async fn list(
        &self,
        done: &Done<'_>,
        held: &mut OnMember,
        memory: &mut Memory,
        begun: &mut Begun,
    ) -> Result<Staying, Failure> {
        let wanted: HashSet<Identity> = done.wanted().into_iter().map(|one| one.identity).collect();
        // The work may want fewer objects than before.
        let before = if self.is_whole {
            let told = &self.work.status.resource_status.manifests;
            let stays = done.listed(held.tracked());
            self.target.applied_once(self.slot, told, held, (&wanted, &stays), begun).await?
        } else {
            held.tracked().to_vec()
        };
        let mut now = done.tracked(&before);
        // Before the removal, so that a new object is not without an entry for long.
        let gone: Vec<Tracked> = untracked(&before, &done.wanted(), done.manifests).into_iter().cloned().collect();
        let leaving: HashSet<&Identity> = gone.iter().map(|one| &one.identity).collect();
        let kept = before.iter().filter(|one| !leaving.contains(&one.identity) && !wanted.contains(&one.identity));
        now.extend(kept.cloned());
        let staying = self.take_away(gone, &held.applied.owner(), begun).await?;
        now.extend(staying.objects.iter().map(|(one, _)| one).chain(&staying.later).cloned());
        self.target.list_again(held, now, &mut memory.writes.list).await?;
        memory.applied_again = memory.writes.again(Instant::now());
        Ok(staying)
    }

    /// Sets the objects to follow from now on: also `held`, the `AppliedManifestWork`, if it lists
    /// them.
    pub(in crate::parts::manifestworks) fn see(
        &self,
        done: &Done<'_>,
        memory: &mut Memory,
        held: Option<&OnMember>,
        waiting: &[(Tracked, Option<String>)],
    ) {
        let (sights, name) = (&self.target.sights, self.work.name());
        if memory.is_unwatched() {
            return;
        }
        let waiting = Self::remembered(memory, done.manifests, waiting);
        let (mut scopes, mut all) = (HashSet::new(), HashSet::new());
        if let Some(held) = held {
            let own = applied::identity(&self.name);
            sights.looked(name, &own, Some(held.applied.resource_version.clone()));
            scopes.insert(Scope::of(&own, applied::VERSION));
            all.insert(own);
        }
        for (manifest, outcome) in done.manifests.iter().zip(&done.outcomes) {
            let identity = manifest.identity();
            if manifest.object.is_ok() {
                scopes.insert(Scope::of(&identity, &manifest.version));
                if let Some(outcome) = outcome {
                    sights.looked(name, &identity, outcome.version.clone());
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
        memory.objects.retain(&all);
        let lacking = done.lacking();
        let definitions = (!lacking.is_empty()).then(Scope::definitions);
        sights.awaits(name, lacking);
        let followed: HashSet<Scope> = scopes.iter().cloned().chain(definitions).collect();
        sights.follow(name, &followed, &self.part.route(self.target));
        // The definitions are not among them: without a sight of them, the kind is looked for.
        memory.scopes = scopes;
    }

    pub(in crate::parts::manifestworks) fn status(
        &self,
        done: Done<'_>,
        stays: Option<String>,
    ) -> delivery::work::ManifestWorkStatus {
        let entry = |(manifest, outcome): (&Manifest, Option<Kept>)| {
            let news = outcome.map(|outcome| telling::News {
                result: outcome.result,
                availability: outcome.availability,
                said: outcome.said,
                note: outcome.note,
            });
            telling::Entry::new(manifest, news)
        };
        let telling = telling::Telling {
            before: self.work.status.clone(),
            generation: self.work.generation,
            configs: self.spec.manifest_configs.clone(),
            entries: done.manifests.iter().zip(done.outcomes).map(entry).collect(),
            stays,
            is_of_set: self.work.labels.contains_key(delivery::work::replica_set::SET_LABEL),
            needs_rules: self.part.needs_rules,
            is_complete: self.is_complete,
        };
        telling.status(OffsetDateTime::now_utc())
    }
}
