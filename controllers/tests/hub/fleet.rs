//! Placement, sets of works, their delivery and the clusters' availability together, as the chart
//! installs them: a fleet of three members without agents.
//!
//! Pods run on each. The API server of the first is killed, and the third takes its place.

mod loss;
mod page;
mod policy;
mod rights;
mod rollout;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use hub_tests::control_plane::ApiServer;
use hub_tests::hub::MemberSecret;
use hub_tests::member::Nodes;
use hub_tests::testbed::Testbed;
use hub_tests::turns;
use hub_tests::wait;
use kit::pki::Leaf;
use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::fixture::{Fixture, SOON, condition, said, test, wait_end_within};
use crate::part::{Part, has_part};
use crate::{argocd, registration, replica_sets, works};

/// The controllers' namespace.
const PLACE: &str = "fleet-controllers";
/// In the order in which a choice among equal clusters lists them.
const NAMES: [&str; 3] = ["fleet-a", "fleet-b", "fleet-c"];
/// The set.
const SET: &str = "fleet";
/// The duration of the Leases that agents would renew, short so that losses are known soon.
const LEASE_SECONDS: u32 = 1;
/// The number of clusters by the state that probes found.
const PROBED: &str = "cluster_gateway_controllers_probed_clusters";
const CLUSTER: &str = "cluster.open-cluster-management.io";
const WORK: &str = "work.open-cluster-management.io";

pub fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![
        test(fixture, "fleet: six commands, a policy, a template that changes, and a member is lost", everything),
        test(fixture, "rights: availability with what the chart grants, of which nothing stands idle", rights::used),
    ]
}

/// One arrangement for all of it: two more members take a while.
fn everything(testbed: &Testbed) -> Result<()> {
    let mut fleet = Fleet::start(testbed)?;
    page::quick_start(&fleet)?;
    policy::informs_then_enforces(&fleet)?;
    rollout::of_templates(&fleet)?;
    loss::of_one(&mut fleet)?;
    fleet.end()
}

struct Fleet<'t> {
    part: Part<'t>,
    servers: [ApiServer; 2],
    _nodes: [Nodes; 2],
}

has_part!(Fleet);

impl<'t> Fleet<'t> {
    fn start(testbed: &'t Testbed) -> Result<Self> {
        let alone = vec![turns::alone(&[registration::ALONE, argocd::ALONE, replica_sets::ALONE, works::ALONE])];
        let mut servers = [testbed.start_api_server(NAMES[0])?, testbed.start_api_server(NAMES[1])?];
        let part = Part::install(testbed, PLACE, "delivery.enabled=true", alone)?;
        for (server, name) in servers.iter_mut().zip(NAMES) {
            server.wait_ready()?;
            let identity = server.authority().issue(&Leaf::client("gateway").group("system:masters"));
            testbed.hub.register_member(name, &MemberSecret::with_certificate(server, &identity))?;
        }
        let nodes = [testbed.start_nodes(&servers[0])?, testbed.start_nodes(&servers[1])?];
        nodes.iter().zip(&servers).try_for_each(|(nodes, server)| nodes.wait_ready(server))?;
        let third = MemberSecret::with_token(&testbed.member.server, &testbed.member_token);
        testbed.hub.register_member(NAMES[2], &third)?;
        Ok(Self { part, servers, _nodes: nodes })
    }

    fn member(&self, name: &str) -> &ApiServer {
        match NAMES.iter().position(|known| *known == name) {
            Some(index @ 0..=1) => &self.servers[index],
            _ => &self.testbed.member.server,
        }
    }

    /// An object of a member, in the namespace `default`; null if it does not exist.
    fn object(&self, member: &str, what: &str) -> Result<Value> {
        self.member(member).read(&format!("{what} -n default"))
    }

    /// Waits until so many pods of a Deployment run on a member, and no more are there.
    fn wait_pods(&self, member: &str, deployment: &str, count: usize) -> Result<()> {
        wait::until(&format!("{count} pods of {deployment} to run on {member}"), 2 * SOON, || {
            let pods = self.object(member, &format!("pods -l app={deployment}"))?;
            let all = pods["items"].as_array().context("no list")?;
            let running = all.iter().filter(|pod| pod["status"]["phase"] == "Running").count();
            ensure!((running, all.len()) == (count, count), "{running} of {} run", all.len());
            Ok(())
        })
    }

    fn cluster(&self, name: &str) -> Result<Value> {
        self.json(&format!("managedcluster {name}"))
    }

    fn wait_available(&self, name: &str, expected: &str) -> Result<()> {
        self.wait_available_within(SOON, name, expected)
    }

    fn wait_available_within(&self, time: Duration, name: &str, expected: &str) -> Result<()> {
        wait::until(&format!("{name} to be {expected}"), time, || {
            let cluster = self.cluster(name)?;
            let found = condition(&cluster["status"], "ManagedClusterConditionAvailable");
            ensure!(said(found) == expected, "{found}");
            Ok(())
        })
    }

    /// Waits until the metric counts this many clusters as available and as unreachable: the alert
    /// uses it.
    fn wait_counted(&self, available: f64, unreachable: f64) -> Result<()> {
        wait::until("clusters to be counted", SOON, || {
            let count = |state: &str| self.running.metric(PROBED, &format!("{{state={state:?}}}"));
            let counts = (count("available")?, count("unreachable")?);
            let others = self.running.metric(PROBED, "")? - counts.0 - counts.1;
            let expected = [available, unreachable, 0.0];
            let is = [counts.0, counts.1, others];
            ensure!(is.iter().zip(expected).all(|(is, expected)| (is - expected).abs() < 0.5), "{is:?}: {expected:?}");
            Ok(())
        })
    }

    /// The clusters that a Placement chose.
    fn chosen(&self, placement: &str) -> Result<Vec<String>> {
        let decision = self.json(&format!("placementdecision {placement}-decision-1 -n default"))?;
        let list = decision["status"]["decisions"].as_array().into_iter().flatten();
        Ok(list.map(|one| one["clusterName"].as_str().unwrap_or_default().to_owned()).collect())
    }

    fn wait_chosen(&self, placement: &str, expected: &[&str]) -> Result<()> {
        wait::until(&format!("{placement} to choose {expected:?}"), SOON, || {
            let chosen = self.chosen(placement)?;
            ensure!(chosen == expected, "{chosen:?}");
            Ok(())
        })
    }

    /// The work of a set for a cluster.
    fn work(&self, set: &str, cluster: &str) -> Result<Value> {
        let line = format!("manifestworks -n {cluster} -l {WORK}/manifestworkreplicaset=default.{set}");
        self.json(&line)?["items"].get(0).cloned().context("no work")
    }

    /// Waits for `status/reason` of a condition of the work of a set.
    fn wait_work(&self, set: &str, cluster: &str, kind: &str, expected: &str) -> Result<()> {
        wait::until(&format!("{kind} of {set} at {cluster} to be {expected}"), SOON, || {
            let work = self.work(set, cluster)?;
            let found = condition(&work["status"], kind);
            ensure!(said(found) == expected, "{}", work["status"]);
            ensure!(found["observedGeneration"] == work["metadata"]["generation"], "another generation: {found}");
            Ok(())
        })
    }

    /// Deletes what would keep other controllers busy, and waits until the members are rid of it.
    fn end(mut self) -> Result<()> {
        self.delete("manifestworkreplicasets,placements --all -n default --wait=false")?;
        for name in NAMES {
            wait_end_within(&self.testbed.hub.server, &format!("manifestworks -n {name}"), 2 * SOON)?;
        }
        self.running.stop()?;
        self.delete("placementdecisions,managedclustersetbindings --all -n default")?;
        self.delete(&format!("managedclusters {}", NAMES.join(" ")))?;
        self.delete(&format!("managedclusterset {SET}"))?;
        NAMES.iter().try_for_each(|name| self.testbed.hub.forget_member(name))
    }
}

/// Shortens a cluster's Lease, so that its loss is known within seconds.
fn lease(fleet: &Fleet<'_>, name: &str) -> Result<()> {
    fleet.patch(&format!("managedcluster {name}"), &json!({"spec": {"leaseDurationSeconds": LEASE_SECONDS}}))
}
