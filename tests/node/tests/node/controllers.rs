//! The controllers' pods, as the page on delivery turns them on: one delivers, and when it ends or
//! hangs, the other takes over.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use hub_tests::wait;
use node_tests::connections::Caller;
use node_tests::operator::Operator;
use node_tests::testbed::Testbed;
use serde_json::{Value, json};

use crate::pods::{Inmate, settled};
use crate::readme;

/// Time for the Lease of a hanging holder to expire, and for the next leader to deliver.
const LIMIT: Duration = Duration::from_secs(90);
const NAMESPACE: &str = "vela-system";
/// The cluster that the works are for.
const CLUSTER: &str = "berlin";

/// The environment in which works are created, one after the other.
struct Site<'a> {
    testbed: &'a Testbed,
    operator: Operator<'a>,
}

pub(crate) fn led(testbed: &Testbed) -> Result<()> {
    settled(testbed)?;
    let site = Site { testbed, operator: readme::operator(testbed)? };
    site.ready()?;
    site.delivered("first")?;
    let leader = site.leader()?;
    site.operator.run(&format!("kubectl -n {NAMESPACE} delete pod {} --wait=false", name(&leader)?))?;
    // By the old leader, if it has not been told yet.
    site.delivered("at-deletion")?;
    site.follows(&leader)?;
    site.delivered("after-deletion")?;
    settled(testbed)?;
    let leader = site.leader()?;
    let process = Inmate::numbered(Caller::of(&leader)?.process());
    process.signal("STOP")?;
    let delivered = site.delivered("after-hanging").and_then(|()| site.follows(&leader));
    process.signal("CONT")?;
    delivered?;
    settled(testbed)?;
    site.delivered("at-last")?;
    site.removed()
}

/// Checks that a work reaches its cluster.
pub(crate) fn delivers(testbed: &Testbed, work: &str) -> Result<()> {
    let site = Site { testbed, operator: readme::operator(testbed)? };
    site.delivered(work)?;
    site.removed()
}

fn name(pod: &Value) -> Result<&str> {
    pod["metadata"]["name"].as_str().context("no name")
}

// === impl Site ===

impl Site<'_> {
    /// Checks that probes reach both pods, and that the leader and the waiting one are ready.
    fn ready(&self) -> Result<()> {
        for pod in self.pods()? {
            let path = format!("/api/v1/namespaces/{NAMESPACE}/pods/{}:8097/proxy/readyz", name(&pod)?);
            let told = self.testbed.hub.kubectl().args(["get", "--raw", &path]).run()?.success()?;
            ensure!(told.contains("ok"), "{told}");
            let restarts = &pod["status"]["containerStatuses"][0]["restartCount"];
            ensure!(restarts == 0, "{restarts} restarts of {}", name(&pod)?);
        }
        Ok(())
    }

    fn pods(&self) -> Result<Vec<Value>> {
        let list = self
            .testbed
            .hub
            .get(&format!("pods -n {NAMESPACE} -l app.kubernetes.io/name=cluster-gateway-controllers"))?;
        let mut pods = list["items"].as_array().context("no list")?.clone();
        pods.retain(|pod| pod["metadata"]["deletionTimestamp"].is_null());
        ensure!(pods.len() == 2, "{} pods", pods.len());
        Ok(pods)
    }

    /// The holder of the Lease, whose identity has its pod's name.
    fn holder(&self) -> Result<String> {
        let lease = self.testbed.hub.get(&format!("lease cluster-gateway-controllers -n {NAMESPACE}"))?;
        lease["spec"]["holderIdentity"].as_str().map(str::to_owned).context("nobody leads")
    }

    fn leader(&self) -> Result<Value> {
        wait::until("a leader", LIMIT, || {
            let holder = self.holder()?;
            let leads = |pod: &Value| name(pod).is_ok_and(|name| holder.contains(name));
            self.pods()?.into_iter().find(leads).with_context(|| format!("no pod of {holder}"))
        })
    }

    /// Waits until another pod leads.
    fn follows(&self, leader: &Value) -> Result<()> {
        wait::until("another leader", LIMIT, || {
            let holder = self.holder()?;
            ensure!(!holder.is_empty() && !holder.contains(name(leader)?), "{holder} leads still");
            Ok(())
        })
    }

    /// Creates a work, and checks that it is delivered through hub, gateway and tunnel.
    fn delivered(&self, work: &str) -> Result<()> {
        let manifest =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": work, "namespace": "default"}});
        let object = json!({"apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
            "metadata": {"name": work, "namespace": CLUSTER}, "spec": {"workload": {"manifests": [manifest]}}});
        self.testbed.hub.kubectl().apply(&object.to_string())?;
        let delivered = format!("configmap {work} -n default");
        wait::until(work, LIMIT, || self.testbed.member.get(&delivered))?;
        let applied = format!("kubectl -n {CLUSTER} wait manifestwork {work} --for=condition=Applied --timeout=60s");
        self.operator.run(&applied).map(drop)
    }

    /// Checks that delivered objects are deleted with their works.
    fn removed(&self) -> Result<()> {
        self.operator.run(&format!("kubectl -n {CLUSTER} delete manifestworks --all"))?;
        let left = self.operator.run("kubectl --context berlin -n default get configmaps -o name")?;
        let stays = ["configmap/kube-root-ca.crt", "configmap/tunnel-agent"];
        ensure!(left.lines().all(|name| stays.contains(&name)), "{left}");
        Ok(())
    }
}
