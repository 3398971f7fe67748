//! `AppliedManifestWork` on the member: what it lists, and whether another client keeps it.

mod on_member;

use std::hash::Hash;
use std::time::Duration;

use delivery::identity::{DEFINITIONS, Identity, Tracked};
use delivery::work::{APPLIED_FINALIZER, AppliedSpec, GROUP, applied_object, sorted};
use serde_json::{Map, Value as Json, json};
use tokio::time::Instant;

use super::clusters::Mode;
use super::contest::Contest;
use super::failure::Failure;
use super::member::At;
use super::target::Target;
use crate::parts::watched::number;

pub use self::on_member::{Agent, Keeper, OnMember, identity};

/// Its definition, which is installed if it is missing.
const DEFINITION: &str = include_str!("definition.json");
pub const RESOURCE: &str = "appliedmanifestworks";
pub const VERSION: &str = "v1";
/// Annotation of an `AppliedManifestWork` that was adopted once. If an agent takes it back, a
/// restart must not adopt it again because of the same `adopt`.
const ADOPTED: &str = "cluster.core.oam.dev/adopted";
/// Limit of the reported name of another agent, in characters: the agent chooses it.
const AGENT: usize = 200;

/// Writes of one `AppliedManifestWork`: its creation and head, and its list. A write that somebody
/// undoes is repeated less and less often.
#[derive(Debug, Default)]
pub struct Writes {
    pub head: Undone,
    pub list: Undone,
}

/// Writes of one kind.
#[derive(Debug, Default)]
pub struct Undone {
    contest: Contest,
    /// The last written content, as a number.
    wrote: Option<u64>,
}

// === impl Writes ===

impl Writes {
    /// Time of the next repeated write.
    pub fn again(&self, now: Instant) -> Option<Instant> {
        let waits = [&self.head, &self.list].into_iter().filter_map(|one| one.contest.wait(now));
        waits.min().map(|wait| now + wait)
    }
}

// === impl Undone ===

impl Undone {
    /// How long a write must wait: repeating the same write is a repair. None: write now.
    fn begin(&mut self, what: &impl Hash, now: Instant) -> Option<Duration> {
        let what = Some(number(what));
        if self.wrote == what {
            if let Some(wait) = self.contest.wait(now) {
                return Some(wait);
            }
            self.contest.repaired(now);
        }
        self.wrote = what;
        None
    }
}

// === impl Target ===

impl Target {
    /// The object of that name, if it exists.
    pub async fn applied(&self, name: &str) -> Result<Option<OnMember>, Failure> {
        if !self.kinds.serves(&self.member, GROUP, VERSION).await? {
            return Ok(None);
        }
        let identity = identity(name);
        match self.member.get(at(&identity)).await? {
            Some(object) => OnMember::read(object).map(Some),
            None => Ok(None),
        }
    }

    /// The same, regardless of the known kinds. None only if the member says that the object, or
    /// the definition, does not exist.
    pub async fn applied_for_certain(&self, name: &str) -> Result<Option<OnMember>, Failure> {
        match self.member.find(at(&identity(name))).await {
            Ok(object) => OnMember::read(object).map(Some),
            Err(error) if error.is_kind_missing() => self.check_undefined().await.map(|()| None),
            Err(error) if error.is_missing() => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The kind may temporarily not be served. Without its definition, there is no object.
    async fn check_undefined(&self) -> Result<(), Failure> {
        let identity = Identity { name: format!("{RESOURCE}.{GROUP}"), ..definitions() };
        match self.member.find(At { identity: &identity, version: "v1" }).await {
            Ok(_) => Err(Failure::Defined),
            Err(error) if error.is_missing() && !error.is_kind_missing() => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// The same, but creates it if it does not exist.
    pub async fn ensure_applied(
        &self,
        name: &str,
        keeper: Keeper<'_>,
        mode: Mode,
        writes: &mut Undone,
    ) -> Result<OnMember, Failure> {
        let (spec, labels) = (&keeper.spec(), &keeper.work.labels);
        let held = self.applied(name).await?;
        let is_marked = held.as_ref().is_some_and(|held| held.was_adopted) || mode == Mode::Push;
        let what = json!([spec, labels, is_marked]).to_string();
        let contested = |after| {
            let (cluster, name) = (self.member.cluster.to_string(), name.to_owned());
            Failure::Contested { cluster, name, after }
        };
        let Some(held) = held else {
            return match writes.begin(&what, Instant::now()) {
                Some(after) => Err(contested(after)),
                None => self.create_applied(name, spec, labels, mode).await,
            };
        };
        held.check_agent(keeper, mode)?;
        let is_ours = held.applied.spec == *spec;
        let is_labelled = labels.iter().all(|(key, value)| held.labels.get(key) == Some(value));
        let is_finalized = held.finalizers.iter().any(|one| *one == *APPLIED_FINALIZER);
        if (is_ours && is_labelled && is_finalized && is_marked) || held.applied.is_ending {
            return Ok(held);
        }
        if let Some(after) = writes.begin(&what, Instant::now()) {
            // If it is ours, it stays so until the next write.
            return if is_ours { Ok(held) } else { Err(contested(after)) };
        }
        let mut metadata = held.condition();
        if let Some(metadata) = metadata.as_object_mut() {
            metadata.insert("labels".to_owned(), labels.clone().into());
            if !is_marked {
                metadata.insert("annotations".to_owned(), json!({ADOPTED: "true"}));
            }
            // When a klusterlet is deleted, it removes the finalizer from what its agent applied.
            if !is_finalized {
                let finalizers = held.finalizers.iter().cloned().chain([APPLIED_FINALIZER.into()]).collect();
                metadata.insert("finalizers".to_owned(), finalizers);
            }
        }
        let change = json!({"metadata": metadata, "spec": spec});
        OnMember::read(self.member.merge(at(&identity(name)), &change).await?)
    }

    async fn create_applied(
        &self,
        name: &str,
        spec: &AppliedSpec,
        labels: &Map<String, Json>,
        mode: Mode,
    ) -> Result<OnMember, Failure> {
        if !self.kinds.serves(&self.member, GROUP, VERSION).await? {
            self.define().await?;
        }
        let mut object = applied_object(name, spec, labels);
        if mode != Mode::Push {
            object["metadata"]["annotations"] = json!({ADOPTED: "true"});
        }
        match self.member.create(at(&identity(name)), &object).await {
            // It was served a moment ago.
            Err(error) if error.is_kind_missing() => {
                self.kinds.forget();
                Err(Failure::Defined)
            }
            answer => OnMember::read(answer?),
        }
    }

    /// Installs the definition. It is served a moment later.
    async fn define(&self) -> Result<(), Failure> {
        let definition: Json =
            serde_json::from_str(DEFINITION).map_err(|error| Failure::Unreadable(error.to_string()))?;
        let identity = definitions();
        match self.member.create(At { identity: &identity, version: "v1" }, &definition).await {
            Ok(_) => tracing::info!(cluster = %self.member.cluster, "AppliedManifestWork was defined"),
            Err(error) if error.is_conflict() => {}
            Err(error) => return Err(error.into()),
        }
        self.kinds.forget();
        Err(Failure::Defined)
    }

    /// Writes its list, if it has changed.
    pub async fn list(&self, held: &mut OnMember, resources: Vec<Tracked>) -> Result<(), Failure> {
        let resources = sorted(resources);
        if resources == held.tracked() {
            return Ok(());
        }
        let change = json!({"metadata": held.condition(), "status": {"appliedResources": resources}});
        *held = OnMember::read(self.member.merge_status(at(&identity(&held.applied.name)), &change).await?)?;
        Ok(())
    }

    /// The same, at a contest's pace. Entries that must wait to be listed are known until then.
    pub async fn list_again(
        &self,
        held: &mut OnMember,
        resources: Vec<Tracked>,
        writes: &mut Undone,
    ) -> Result<(), Failure> {
        let resources = sorted(resources);
        if resources != held.tracked() && writes.begin(&json!(resources).to_string(), Instant::now()).is_some() {
            held.applied.status.applied_resources = resources;
            return Ok(());
        }
        self.list(held, resources).await
    }

    /// Deletes it. It stays until its finalizer is removed.
    pub async fn end_applied(&self, held: &OnMember) -> Result<(), Failure> {
        if held.applied.is_ending {
            return Ok(());
        }
        let options = json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background",
            "preconditions": {"uid": held.applied.uid}});
        match self.member.delete(at(&identity(&held.applied.name)), &options).await {
            Err(error) if !error.is_missing() => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Removes its finalizer.
    pub async fn release_applied(&self, name: &str) -> Result<(), Failure> {
        let Some(held) = self.applied(name).await? else { return Ok(()) };
        if !held.finalizers.iter().any(|one| *one == *APPLIED_FINALIZER) {
            return Ok(());
        }
        let mut metadata = held.condition();
        let others: Vec<&Json> = held.finalizers.iter().filter(|one| **one != *APPLIED_FINALIZER).collect();
        if let Some(metadata) = metadata.as_object_mut() {
            metadata.insert("finalizers".to_owned(), json!(others));
        }
        match self.member.merge(at(&identity(name)), &json!({"metadata": metadata})).await {
            Err(error) if !error.is_missing() => Err(error.into()),
            _ => Ok(()),
        }
    }
}

/// A definition of a kind, on a member.
pub fn definitions() -> Identity {
    let [group, resource] = [DEFINITIONS.0, DEFINITIONS.1].map(str::to_owned);
    Identity { group, resource, ..Identity::default() }
}

fn at(identity: &Identity) -> At<'_> {
    At { identity, version: VERSION }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;

    use super::*;
    use crate::parts::manifestworks::work::Work;

    #[tokio::test(start_paused = true)]
    async fn what_somebody_undoes_is_written_less_and_less_often() {
        let (mut writes, begin, mut count) = (Writes::default(), Instant::now(), 0);
        // It is undone each second.
        while begin.elapsed() < Duration::from_mins(10) {
            count += u32::from(writes.list.begin(&"a", Instant::now()).is_none());
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        assert!((4..=7).contains(&count), "{count}");
        assert!(writes.again(Instant::now()).is_some_and(|again| again > Instant::now()));
        assert!(writes.list.begin(&"b", Instant::now()).is_none(), "what is new is written at once");
    }

    fn work(cluster: &str, objects: &[&str]) -> Work {
        let told = objects.iter().map(|name| json!({"resourceMeta": {"resource": "configmaps", "name": name}}));
        let object = json!({"apiVersion": "v1", "kind": "x", "metadata": {"name": "w", "namespace": cluster},
            "spec": {"workload": {"manifests": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "new"}}]}},
            "status": {"resourceStatus": {"manifests": told.collect::<Vec<_>>()}}});
        Work::read(&serde_json::from_value(object).unwrap())
    }

    fn held(agent: &str, annotations: &Json, objects: &[&str]) -> OnMember {
        let listed = objects.iter().map(|name| json!({"version": "v1", "resource": "configmaps", "name": name}));
        let object = json!({"metadata": {"name": "h-w", "annotations": annotations},
            "spec": {"hubHash": "h", "agentID": agent, "manifestWorkName": "w"},
            "status": {"appliedResources": listed.collect::<Vec<_>>()}});
        OnMember::read(object).expect("it can be read")
    }

    fn agent() -> Agent {
        Agent { hub_hash: "h".into(), id: "ours".into() }
    }

    #[test]
    fn what_was_adopted_once_is_so_again_only_by_a_word_that_was_heard() {
        let (agent, work, adopted) = (agent(), work("c", &[]), json!({ADOPTED: "true"}));
        let keeper = Keeper { agent: &agent, work: &work };
        let may = |held: &OnMember, mode| held.check_agent(keeper, mode).is_ok();
        let [new, back] = [json!({}), adopted.clone()].map(|annotations| held("klusterlet", &annotations, &[]));
        let all = [Mode::Push, Mode::UNHEARD, Mode::Adopt(Some(NonZeroU64::MIN))];
        assert_eq!(all.map(|mode| may(&new, mode)), [false, true, true]);
        assert_eq!(all.map(|mode| may(&back, mode)), [false, false, true]);
        assert_eq!(all.map(|mode| may(&held("ours-c", &adopted, &[]), mode)), [true; 3]);
    }

    #[test]
    fn of_two_clusters_that_lead_to_one_member_one_keeps_it() {
        let agent = agent();
        let told = |cluster: &str, by: &str| {
            let work = work(cluster, &["a"]);
            let (keeper, held) = (Keeper { agent: &agent, work: &work }, held(by, &json!({}), &["a"]));
            (held.check_agent(keeper, Mode::Push).err().map(|why| why.to_string()), held.is_of_sibling(keeper))
        };
        assert_eq!(told("c1", &keeper_id("c1")), (None, false));
        let (why, is_of_sibling) = told("c2", &keeper_id("c1"));
        assert!(is_of_sibling && why.is_some_and(|why| why.contains("kept for cluster \"c1\"")));
        // Another hub's, and an agent's, are neither: they end it.
        for other in ["oursx", "klusterlet"] {
            let (why, is_of_sibling) = told("c1", other);
            assert!(!is_of_sibling && why.is_some_and(|why| why.contains("stop that agent")), "{other}");
        }
    }

    fn keeper_id(cluster: &str) -> String {
        let (agent, work) = (agent(), work(cluster, &[]));
        Keeper { agent: &agent, work: &work }.spec().agent_id
    }

    #[test]
    fn one_that_names_no_cluster_is_of_the_work_whose_object_it_lists() {
        let agent = agent();
        let is_ours = |has: &[&str], lists: &[&str]| {
            let work = work("c", has);
            let (keeper, held) = (Keeper { agent: &agent, work: &work }, held("ours", &json!({}), lists));
            let is_ours = held.check_agent(keeper, Mode::Push).is_ok();
            assert_eq!(held.is_of_sibling(keeper), !is_ours, "its end takes nothing away that is not its own");
            is_ours
        };
        assert!(is_ours(&["a", "b"], &["b", "c"]) && is_ours(&[], &[]) && is_ours(&["a"], &[]));
        assert!(is_ours(&[], &["new"]), "it was not told yet");
        assert!(!is_ours(&["a"], &["b"]) && !is_ours(&[], &["b"]));
    }

    #[test]
    fn the_definition_is_of_that_kind() {
        let definition: Json = serde_json::from_str(DEFINITION).unwrap();
        assert_eq!(definition["metadata"]["name"], format!("{RESOURCE}.{GROUP}"));
        assert_eq!(definition["spec"]["versions"][0]["name"], VERSION);
    }
}
