//! An `AppliedManifestWork` as the member has it, and whose it is.

use delivery::identity::{Identity, Tracked};
use delivery::work::{AppliedManifestWork, AppliedSpec, GROUP};
use serde_json::{Map, Value as Json, json};

use super::{ADOPTED, AGENT, RESOURCE};
use crate::parts::manifestworks::clusters::Mode;
use crate::parts::manifestworks::failure::Failure;
use crate::parts::manifestworks::work::Work;

/// The identity with which this hub applies works.
#[derive(Debug, Clone)]
pub struct Agent {
    /// Hash of the hub's URL.
    pub hub_hash: String,
    /// Id of this hub's controllers.
    pub id: String,
}

/// The keeper of a work's applied objects.
#[derive(Debug, Clone, Copy)]
pub struct Keeper<'a> {
    pub agent: &'a Agent,
    pub work: &'a Work,
}

/// The owner of an `AppliedManifestWork`.
#[derive(Debug, PartialEq, Eq)]
enum Whose {
    Ours,
    /// It belongs to another cluster of this hub, by its name, whether or not that cluster exists.
    /// A member that got another name, and a hub that was restored with half of its objects, look
    /// the same: an automatic takeover would remove the listed objects that are not the new
    /// owner's.
    Sibling(String),
    /// It is of a version whose IDs named no cluster: it may belong to another cluster.
    Earlier,
    Agent,
}

/// An `AppliedManifestWork` as it is on the member.
#[derive(Debug, Clone)]
pub struct OnMember {
    pub applied: AppliedManifestWork,
    pub(super) labels: Map<String, Json>,
    pub(super) finalizers: Vec<Json>,
    pub(super) was_adopted: bool,
}

// === impl Keeper ===

impl Keeper<'_> {
    /// The spec of its `AppliedManifestWork`. The agent ID includes the cluster, because two
    /// clusters may lead to one member: there, works of one name share a list, and each would
    /// delete the other's objects.
    pub fn spec(&self) -> AppliedSpec {
        let Agent { hub_hash, id } = self.agent;
        let agent_id = format!("{id}-{}", self.work.cluster());
        AppliedSpec { hub_hash: hub_hash.clone(), agent_id, manifest_work_name: self.work.name().to_owned() }
    }

    /// One of a version whose IDs named no cluster is ours if it lists an object of the work, or
    /// none. The first keeper to write its ID keeps it.
    fn whose(&self, held: &OnMember) -> Whose {
        let known = &held.applied.spec;
        let id = known.agent_id.strip_prefix(&self.agent.id).filter(|_| known.hub_hash == self.agent.hub_hash);
        match id {
            Some("") => {
                let tracked = held.tracked();
                let is_ours = tracked.is_empty() || tracked.iter().any(|one| self.work.has(&one.identity));
                if is_ours { Whose::Ours } else { Whose::Earlier }
            }
            Some(cluster) => match cluster.strip_prefix('-') {
                Some(cluster) if cluster == self.work.cluster() => Whose::Ours,
                Some(cluster) => Whose::Sibling(cluster.chars().take(AGENT).collect()),
                None => Whose::Agent,
            },
            None => Whose::Agent,
        }
    }
}

// === impl OnMember ===

impl OnMember {
    pub(super) fn read(object: Json) -> Result<Self, Failure> {
        let labels = object.pointer("/metadata/labels").and_then(Json::as_object).cloned().unwrap_or_default();
        let finalizers = object.pointer("/metadata/finalizers").and_then(Json::as_array).cloned().unwrap_or_default();
        let was_adopted = object["metadata"]["annotations"].get(ADOPTED).is_some();
        let applied = serde_json::from_value(object).map_err(|error| Failure::Unreadable(error.to_string()))?;
        Ok(Self { applied, labels, finalizers, was_adopted })
    }

    pub fn tracked(&self) -> &[Tracked] {
        &self.applied.status.applied_resources
    }

    /// Refuses an object that another keeper has: it is not fought over.
    pub fn check_agent(&self, keeper: Keeper<'_>, mode: Mode) -> Result<(), Failure> {
        let is_taken = match mode {
            Mode::Push => false,
            Mode::UNHEARD => !self.was_adopted,
            Mode::Adopt(_) => true,
        };
        if is_taken {
            return Ok(());
        }
        let (cluster, name) = (keeper.work.cluster().to_owned(), self.applied.name.clone());
        match keeper.whose(self) {
            Whose::Ours => Ok(()),
            Whose::Sibling(other) => Err(Failure::Shared { cluster, name, other }),
            Whose::Earlier => Err(Failure::Earlier { cluster, name }),
            Whose::Agent => {
                let agent = self.applied.spec.agent_id.chars().take(AGENT).collect();
                Err(Failure::Foreign { cluster, name, agent })
            }
        }
    }

    /// Whether it contains nothing of the work, because it belongs to another cluster of this hub.
    pub fn is_of_sibling(&self, keeper: Keeper<'_>) -> bool {
        matches!(keeper.whose(self), Whose::Sibling(_) | Whose::Earlier)
    }

    /// Whether it is ours after an adoption from an agent, and says so.
    pub fn is_adopted(&self, spec: &AppliedSpec) -> bool {
        self.applied.spec == *spec && self.was_adopted
    }

    pub(super) fn condition(&self) -> Json {
        json!({"uid": self.applied.uid, "resourceVersion": self.applied.resource_version})
    }
}

/// The object of this name on a member.
pub fn identity(name: &str) -> Identity {
    Identity { group: GROUP.to_owned(), resource: RESOURCE.to_owned(), name: name.to_owned(), namespace: String::new() }
}
