//! The charts' network policies, where a program enforces them.

use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use hub_tests::wait;
use node_tests::cluster::Cluster;
use node_tests::connections::Caller;
use node_tests::family::Family;
use node_tests::load::{self, Load};
use node_tests::operator::Operator;
use node_tests::testbed::Testbed;
use serde_json::{Value, json};

use crate::controllers;
use crate::life::{DEPLOYMENTS, rolled_out};
use crate::pods::settled;
use crate::readme;

/// Time for a policy to take effect, or to lose it.
const LIMIT: Duration = Duration::from_secs(90);
/// Number of reads through hub, gateway and tunnel, under policies.
const SOME: usize = 30;
/// Pods that no policy admits: namespace, name, and which of its cluster's nodes they are on.
const STRANGERS: [(&str, &str, usize); 2] = [("default", "stranger", 0), ("kube-system", "stranger", 1)];
/// Ports that a scraper of metrics may connect to.
const SCRAPED: [&str; 2] = ["https", "admin"];

/// A port of a pod of ours.
#[derive(Debug)]
struct Door {
    name: String,
    address: SocketAddr,
}

/// Pods and addresses between which connections are tried.
struct Site<'a> {
    testbed: &'a Testbed,
    operator: Operator<'a>,
    strangers: Vec<Caller>,
    scraper: Caller,
    /// A pod of the member that no policy admits.
    neighbour: Caller,
    /// An address that no gateway needs to connect to.
    elsewhere: TcpListener,
}

pub(crate) fn enforced(testbed: &Testbed) -> Result<()> {
    settled(testbed)?;
    let enforcers = (testbed.hub.enforce_policies()?, testbed.member.enforce_policies()?);
    let site = Site::build(testbed)?;
    wait::until("everybody to be let in", LIMIT, || site.check(true))?;
    let tried = site.closed();
    // The tests after this one need open connections, even if this one failed.
    site.open()?;
    wait::until("everybody to be let in again", LIMIT, || site.check(true))?;
    site.remove()?;
    drop(enforcers);
    tried
}

/// Every port of the pods named `name`.
fn doors(cluster: &Cluster, namespace: &str, name: &str) -> Result<Vec<Door>> {
    let pods = cluster.get(&format!("pods -n {namespace} -l app.kubernetes.io/name={name}"))?;
    let mut doors = Vec::new();
    for pod in pods["items"].as_array().context("no list")? {
        let address = pod["status"]["podIP"].as_str().context("no address")?.parse()?;
        for port in pod["spec"]["containers"][0]["ports"].as_array().context("no ports")? {
            let number = port["containerPort"].as_u64().context("no number")?.try_into()?;
            let name = port["name"].as_str().context("no name")?.to_owned();
            doors.push(Door { name, address: SocketAddr::new(address, number) });
        }
    }
    ensure!(doors.len() >= 2, "{name}: {doors:?}");
    Ok(doors)
}

fn gateways(testbed: &Testbed) -> Result<Vec<Caller>> {
    let pods = testbed.hub.get("pods -n vela-system -l app.kubernetes.io/name=cluster-gateway")?;
    pods["items"].as_array().context("no list")?.iter().map(Caller::of).collect()
}

// === impl Site ===

impl<'a> Site<'a> {
    fn build(testbed: &'a Testbed) -> Result<Self> {
        let create = |(namespace, name, node): (&str, &str, usize), labels: Value| {
            Caller::create(&testbed.hub, namespace, name, &testbed.hub.nodes[node].name(), &labels)
        };
        let strangers = STRANGERS.map(|stranger| create(stranger, json!({})));
        let neighbour =
            Caller::create(&testbed.member, "kube-system", "stranger", &testbed.member.nodes[0].name(), &json!({}))?;
        Ok(Self {
            testbed,
            operator: readme::operator(testbed)?,
            strangers: strangers.into_iter().collect::<Result<_>>()?,
            scraper: create(("kube-system", "scraper", 0), json!({"role": "scraper"}))?,
            neighbour,
            elsewhere: TcpListener::bind((Family::V4.node(1), 0))?,
        })
    }

    /// Checks that every connection is possible, or, unless `open`, only the necessary ones.
    fn check(&self, open: bool) -> Result<()> {
        let of = |program| doors(&self.testbed.hub, "vela-system", program);
        let hub = [of("cluster-gateway")?, of("tunnel-server")?, of("cluster-gateway-controllers")?];
        let gets = |caller: &Caller, door: &Door, may: bool| {
            ensure!(caller.reaches(door.address)? == may, "{caller:?} gets through {door:?}: not {may}");
            Ok(())
        };
        for door in hub.iter().flatten() {
            self.strangers.iter().try_for_each(|stranger| gets(stranger, door, open))?;
            gets(&self.scraper, door, open || SCRAPED.contains(&&*door.name))?;
        }
        for door in doors(&self.testbed.member, "default", "tunnel-agent")? {
            gets(&self.neighbour, &door, open)?;
        }
        let elsewhere = self.elsewhere.local_addr()?;
        for gateway in gateways(self.testbed)? {
            ensure!(gateway.reaches(elsewhere)? == open, "a gateway connects to {elsewhere}: not {open}");
        }
        Ok(())
    }

    /// Checks both older and new pods with policies in force.
    fn closed(&self) -> Result<()> {
        self.close()?;
        wait::until("strangers to be kept out", LIMIT, || self.check(false))?;
        // New pods open all the connections they need again.
        for (context, namespace, name) in DEPLOYMENTS {
            self.operator
                .run(&format!("kubectl --context {context} -n {namespace} rollout restart deployment {name}"))?;
        }
        rolled_out(&self.operator)?;
        settled(self.testbed)?;
        // The enforcing program learns of new pods a while after they are ready, and refuses all
        // their connections until then.
        wait::until("strangers to be kept out of new pods", LIMIT, || self.check(false))?;
        self.works()
    }

    /// Turns both charts' policies on.
    fn close(&self) -> Result<()> {
        let port = self.testbed.hub.server.address().port();
        let nodes = json!([{"ipBlock": {"cidr": "10.244.0.0/24"}}]);
        let dns = json!([{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}]);
        let metrics = json!([{"namespaceSelector": {}, "podSelector": {"matchLabels": {"role": "scraper"}}}]);
        let hub = json!({"networkPolicy": {"enabled": true, "callers": nodes, "agents": nodes, "metrics": metrics,
            "egress": [{"to": nodes, "ports": dns}, {"to": nodes, "ports": [{"port": port}]},
                {"to": [{"podSelector": {}}], "ports": [{"port": "frontends"}, {"port": "https"}]}]}});
        let member = json!({"networkPolicy": {"enabled": true, "metrics": metrics}});
        std::fs::write(self.operator.directory().join("hub-policy.yaml"), hub.to_string())?;
        std::fs::write(self.operator.directory().join("member-policy.yaml"), member.to_string())?;
        self.upgrade("-f hub-policy.yaml", "-f member-policy.yaml")
    }

    fn open(&self) -> Result<()> {
        let off = "--set networkPolicy.enabled=false";
        self.upgrade(off, off)
    }

    fn upgrade(&self, hub: &str, member: &str) -> Result<()> {
        let lines = format!(
            "helm upgrade cluster-gateway charts/cluster-gateway -n vela-system --reuse-values {hub}
             helm --kube-context berlin upgrade tunnel-agent charts/tunnel-agent --reuse-values {member}"
        );
        self.operator.run(&lines).map(drop)
    }

    /// Checks that all necessary connections are possible.
    fn works(&self) -> Result<()> {
        let load = Load::start(&self.testbed.hub, &[("berlin", &self.testbed.member)])?;
        load.wait_for_more(SOME)?;
        let tally = load.finish()?;
        ensure!(tally.reads > SOME, "{tally:?}");
        controllers::delivers(self.testbed, "under-policies")?;
        load::clean(&[&self.testbed.hub, &self.testbed.member])
    }

    fn remove(&self) -> Result<()> {
        for (namespace, name, _) in STRANGERS.into_iter().chain([("kube-system", "scraper", 0)]) {
            self.operator.run(&format!("kubectl -n {namespace} delete pod {name}"))?;
        }
        self.operator.run("kubectl --context berlin -n kube-system delete pod stranger").map(drop)
    }
}
