//! `ManifestWorks` are delivered through the gateway, with upstream's kinds and the rights that the
//! chart grants, to a member that has no agent.

mod agents;
mod answers;
mod applied;
mod bad_input;
mod complete;
mod ended;
mod executor;
mod feedback;
mod fences;
mod granted;
mod ignoring;
mod leaders;
mod rights;
mod shared;
mod status;
mod stillness;
mod strategies;
mod tunnelled;
mod unlisted;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use hub_tests::control_plane::ApiServer;
use hub_tests::hub::MemberSecret;
use hub_tests::testbed::Testbed;
use hub_tests::turns::{self, Alone};
use hub_tests::wait;
use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::fixture::{Fixture, SOON, apply, condition, namespace, said, test};
use crate::part::{Part, has_part};
use crate::replica_sets;

const GROUP: &str = "work.open-cluster-management.io";
const WORKS: &str = "manifestworks.work.open-cluster-management.io";
const APPLIED: &str = "appliedmanifestworks.work.open-cluster-management.io";
const DELIVERY: &str = "cluster.core.oam.dev/delivery";
const FINALIZER: &str = "cluster.open-cluster-management.io/manifest-work-cleanup";
/// The controllers' namespace.
const PLACE: &str = "works-controllers";
/// A hub URL of these tests alone, so that its hash is, too.
const HUB: &str = "https://hub.example:6443";
/// Time for a change on a member to be reported on the hub: reports are gathered for a second, and
/// the machine may be busy.
const TOLD: Duration = Duration::from_secs(10);

/// Controllers of one test deliver the works of all tests, so only one test runs at a time.
pub const ALONE: &str = "ManifestWorks";

pub fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![
        test(fixture, "works: objects of all ranks arrive, owned and listed, and are told of", applied::everything),
        test(fixture, "works: what is no longer wanted goes, what is shared stays", applied::removed),
        test(fixture, "works: what somebody takes off the list is neither forgotten nor left", unlisted::by_hand),
        test(fixture, "works: invalid objects stand beside valid ones", applied::beside),
        test(fixture, "works: one that cannot be read says so, and holds nobody else up", applied::unreadable),
        test(fixture, "works: what is left behind, and taken back", applied::orphans),
        test(fixture, "works: the end of one takes its objects from the member", ended::deleted),
        test(fixture, "works: the end waits for a member that is away, and says so", ended::away),
        test(fixture, "works: each strategy against a change by hand", strategies::each),
        test(fixture, "works: what is ignored is let be", strategies::ignored),
        test(fixture, "works: fields are left to others, however they are named", ignoring::each_way),
        test(fixture, "works: replicas are left to the member's autoscaler", ignoring::autoscaled),
        test(fixture, "works: a conflict is not tried over and over", ignoring::conflicts),
        test(fixture, "works: a field manager of somebody else's is refused", ignoring::managers),
        test(fixture, "works: what somebody changes back is repaired less and less often", strategies::contested),
        test(fixture, "works: what the member fills in is not fought over", strategies::filled),
        test(fixture, "works: values, and rules, and the end of what is complete", status::told),
        test(fixture, "works: values of each type, one that is missing, and one that is none", feedback::scalar),
        test(fixture, "works: lists and maps as JSON, where that is asked for", feedback::raw),
        test(fixture, "works: bad input that the member refuses", bad_input::refused),
        test(fixture, "works: bad input that is Helm's", bad_input::of_helm),
        test(fixture, "works: bad input in names", bad_input::names),
        test(fixture, "works: bad input in paths and expressions", bad_input::expressions),
        test(fixture, "works: bad input in how many manifests there are", bad_input::crowded),
        test(fixture, "works: a member that answers all kinds of things", answers::of_all_kinds),
        test(fixture, "works: what is complete is made no more, and told of", complete::kept),
        test(fixture, "works: values that flap are not written each time", status::flapping),
        test(fixture, "works: a restart writes nothing", stillness::restart),
        test(fixture, "works: a leader is killed amid a hundred, and another ends them", leaders::killed),
        test(fixture, "works: a leader stops, and another goes on at once", leaders::stopped),
        test(fixture, "rights: manifestworks with what the chart grants, of which nothing stands idle", rights::used),
        test(fixture, "works: a member grants what the page lists, and no more", granted::least),
        test(fixture, "works: an executor may what it may, and gives no more", executor::reviewed),
        test(fixture, "works: where an executor is required, none is no excuse", executor::required),
        test(fixture, "works: a cluster that does not ask for it is not touched", fences::untouched),
        test(fixture, "works: beside registration, the controllers still write no spec", fences::guarded),
        test(fixture, "works: a cluster goes from upstream's agent to us and back", agents::handed_over),
        test(fixture, "works: what an agent keeps is left to it until it is adopted", fences::foreign),
        test(fixture, "works: an agent with another hash is named", fences::stranger),
        test(fixture, "works: two clusters that lead to one member, and works of one name", shared::one_member),
        test(fixture, "works: two that want different things of one object name each other", shared::at_odds),
        test(
            fixture,
            "works: who is not let through says so, and a member that is away changes nothing",
            fences::closed,
        ),
    ]
}

/// Tests that wait for the tunnel's ports, which others use for a while: they come last.
pub fn keepers(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![test(fixture, "works: through a tunnel, whose agent is killed and started again", tunnelled::killed)]
}

/// Until it is dropped, no other test delivers.
pub fn alone() -> Alone {
    turns::alone(&[ALONE])
}

/// The part, as the chart installs it, and a cluster that it delivers to.
struct Place<'t> {
    part: Part<'t>,
    /// The cluster, and also the namespace of its objects on the member.
    cluster: &'static str,
}

has_part!(Place);

impl<'t> Place<'t> {
    fn start(testbed: &'t Testbed, cluster: &'static str) -> Result<Self> {
        Self::with(testbed, cluster, "")
    }

    fn with(testbed: &'t Testbed, cluster: &'static str, values: &str) -> Result<Self> {
        Self::of(testbed, cluster, values, alone())
    }

    /// Installs it with the part that deletes works on the hub.
    fn with_sets(testbed: &'t Testbed, cluster: &'static str) -> Result<Self> {
        let alone = turns::alone(&[replica_sets::ALONE, ALONE]);
        Self::of(testbed, cluster, ",controllers.parts.replicaSets=true", alone)
    }

    fn of(testbed: &'t Testbed, cluster: &'static str, values: &str, alone: Alone) -> Result<Self> {
        let values = format!("controllers.parts.manifestworks=true,controllers.manifestworks.hubURL={HUB}{values}");
        let place = Self { part: Part::install(testbed, PLACE, &values, vec![alone])?, cluster };
        place.register(cluster)?;
        place.deliver(Some("push"))?;
        testbed.member.server.apply(&[namespace(cluster)])?;
        Ok(place)
    }

    /// Registers the member under another name.
    fn register(&self, cluster: &str) -> Result<()> {
        let secret = MemberSecret::with_token(&self.testbed.member.server, &self.testbed.member_token);
        let managed = json!({"apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
            "metadata": {"name": cluster}, "spec": {"hubAcceptsClient": false}});
        apply(self.testbed, &[namespace(cluster), managed])?;
        self.testbed.hub.register_member(cluster, &secret)
    }

    fn deliver(&self, how: Option<&str>) -> Result<()> {
        self.deliver_to(self.cluster, how)
    }

    fn deliver_to(&self, cluster: &str, how: Option<&str>) -> Result<()> {
        let change = how.map_or_else(|| format!("{DELIVERY}-"), |how| format!("{DELIVERY}={how}"));
        self.annotate(&format!("managedcluster {cluster} {change}"))
    }

    fn member(&self) -> &'t ApiServer {
        &self.testbed.member.server
    }

    /// Applies a work with these manifests, and with more fields in its spec.
    fn work(&self, name: &str, manifests: &[Value], more: &Value) -> Result<()> {
        self.work_in(self.cluster, name, manifests, more)
    }

    fn work_in(&self, cluster: &str, name: &str, manifests: &[Value], more: &Value) -> Result<()> {
        let mut spec = more.clone();
        spec["workload"] = json!({"manifests": manifests});
        let work = json!({"apiVersion": format!("{GROUP}/v1"), "kind": "ManifestWork",
            "metadata": {"name": name, "namespace": cluster}, "spec": spec});
        // Replaced, not merged: omitted fields are gone.
        self.testbed.hub.server.put(&work)
    }

    /// Reads a work; null if it does not exist.
    fn read(&self, name: &str) -> Result<Value> {
        self.read_in(self.cluster, name)
    }

    fn read_in(&self, cluster: &str, name: &str) -> Result<Value> {
        self.testbed.hub.server.read(&format!("{WORKS} {name} -n {cluster}"))
    }

    /// Reads an object of the member; null if it does not exist.
    fn object(&self, kind: &str, name: &str) -> Result<Value> {
        self.member().read(&format!("{kind} {name} -n {}", self.cluster))
    }

    /// Waits for `status/reason` of a condition of a work; returns its message.
    fn wait(&self, name: &str, kind: &str, expected: &str) -> Result<String> {
        self.wait_in(self.cluster, name, kind, expected)
    }

    fn wait_in(&self, cluster: &str, name: &str, kind: &str, expected: &str) -> Result<String> {
        wait::until(&format!("{kind} of {name} to be {expected}"), SOON, || {
            let work = self.read_in(cluster, name)?;
            let found = condition(&work["status"], kind);
            ensure!(said(found) == expected, "{}", work["status"]);
            ensure!(found["observedGeneration"] == work["metadata"]["generation"], "another generation: {found}");
            Ok(found["message"].as_str().unwrap_or_default().to_owned())
        })
    }

    /// Waits for a condition of the manifest `ordinal`; returns its message.
    fn wait_manifest(&self, name: &str, ordinal: usize, kind: &str, expected: &str) -> Result<String> {
        wait::until(&format!("{kind} of manifest {ordinal} of {name} to be {expected}"), SOON, || {
            let work = self.read(name)?;
            let manifest = &work["status"]["resourceStatus"]["manifests"][ordinal];
            let found = condition(manifest, kind);
            ensure!(said(found) == expected, "{}", work["status"]);
            Ok(found["message"].as_str().unwrap_or_default().to_owned())
        })
    }

    fn wait_applied(&self, name: &str) -> Result<()> {
        self.wait(name, "Applied", "True/AppliedManifestWorkComplete").map(drop)
    }

    /// The feedback values of a manifest, by name.
    fn values(&self, name: &str, ordinal: usize) -> Result<Value> {
        let work = self.read(name)?;
        let values = work["status"]["resourceStatus"]["manifests"][ordinal]["statusFeedback"]["values"].clone();
        let each = values.as_array().into_iter().flatten();
        let pairs = each.map(|one| {
            let field = &one["fieldValue"];
            let value =
                ["integer", "string", "boolean"].iter().map(|kind| &field[*kind]).find(|value| !value.is_null());
            (one["name"].as_str().unwrap_or_default().to_owned(), value.cloned().unwrap_or_default())
        });
        Ok(Value::Object(pairs.collect()))
    }

    fn applied(&self, work: &str) -> Result<Value> {
        self.member().read(&format!("{APPLIED} {}-{work}", hash()))
    }

    fn wait_gone(&self, name: &str) -> Result<()> {
        self.wait_end(&format!("{WORKS} {name} -n {}", self.cluster))
    }

    /// Stops the controllers, and deletes what would keep the next ones busy.
    fn end(mut self, works: &[&str]) -> Result<()> {
        for work in works {
            self.delete(&format!("{WORKS} {work} -n {} --wait=false --ignore-not-found", self.cluster))?;
        }
        for work in works {
            self.wait_gone(work)?;
        }
        // A registration test that has ended since may have left a finalizer.
        let cluster = format!("managedcluster {}", self.cluster);
        self.testbed.hub.server.patch(&cluster, &json!({"metadata": {"finalizers": null}}))?;
        self.delete(&cluster)?;
        self.running.stop()
    }
}

/// The hash of [`HUB`].
fn hash() -> String {
    hash_of(HUB)
}

/// The SHA-256 of a hub's URL.
fn hash_of(url: &str) -> String {
    use std::fmt::Write as _;
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, url.as_bytes());
    digest.as_ref().iter().fold(String::new(), |mut hash, byte| {
        let _ = write!(hash, "{byte:02x}");
        hash
    })
}

fn config_map(namespace: &str, name: &str, data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}, "data": data})
}

/// The update strategy of one of a work's config maps.
fn strategy(namespace: &str, name: &str, strategy: &Value) -> Value {
    json!({"resourceIdentifier": {"group": "", "resource": "configmaps", "namespace": namespace, "name": name},
        "updateStrategy": strategy})
}
