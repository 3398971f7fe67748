//! Changes to running pods, while clients use a cluster behind the tunnel: no request fails that
//! its client would not repeat by itself, and no event of a watch is lost.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use hub_tests::page::{commands, section};
use hub_tests::wait;
use node_tests::cluster::Cluster;
use node_tests::image::{BROKEN, NEXT, TAG};
use node_tests::load::{self, Load};
use node_tests::operator::Operator;
use node_tests::testbed::Testbed;
use serde_json::{Value, json};

use crate::pods::settled;
use crate::readme;

const INSTALL: &str = include_str!("../../../../docs/install.md");
/// Deployments of the hub and of the member.
pub(crate) const DEPLOYMENTS: [(&str, &str, &str); 4] = [
    ("hub", "vela-system", "cluster-gateway"),
    ("hub", "vela-system", "cluster-gateway-tunnel-server"),
    ("hub", "vela-system", "cluster-gateway-controllers"),
    ("berlin", "default", "tunnel-agent"),
];
/// Least number of reads after a change: a break shows soon.
const SOME: usize = 30;
/// Most requests that clients may repeat during one change; usually they repeat none. While the API
/// is unreachable, each of the three clients repeats one a second, so nine seconds without the API
/// are more than four times as many.
const REPEATED: usize = 6;
/// Seconds that ending pods give to open streams.
const DRAIN: u32 = 5;
/// A path that the gateway serves only with the feature gate of health reports.
const HEALTH: &str = "/apis/cluster.core.oam.dev/v1alpha1/clustergateways/berlin/health";
/// Time for a kubelet to start a pod, and to see it end, on a busy machine.
const LIMIT: Duration = Duration::from_mins(3);
/// Time limit of a rollout, and of a drain, on a busy machine: pods are ready for some time before
/// the next one is replaced. What clients notice meanwhile does not depend on it.
const ROLLOUT: &str = "--timeout=300s";

/// A field of a pod: none of a pod that is left out, an error of one that has none yet.
type Field = fn(&Value) -> Result<Option<String>>;

/// An operator who changes the installation while clients use it.
struct Life<'a> {
    testbed: &'a Testbed,
    operator: Operator<'a>,
}

pub(crate) fn changed(testbed: &Testbed) -> Result<()> {
    let life = Life { testbed, operator: readme::operator(testbed)? };
    life.meanwhile("an upgrade", Life::upgrade)?;
    life.meanwhile("a pod of each program deleted", Life::delete)?;
    life.meanwhile("a node of the hub drained", |life| life.drain("hub", &testbed.hub))?;
    life.meanwhile("a node of the member drained", |life| life.drain("berlin", &testbed.member))?;
    life.meanwhile("a rollback", Life::roll_back)?;
    life.meanwhile("an upgrade to what does not start", Life::break_down)?;
    life.meanwhile("its rollback", Life::heal)?;
    load::clean(&[&testbed.hub, &testbed.member])
}

/// Waits until the desired pods run. Other pods may still serve open streams.
pub(crate) fn rolled_out(operator: &Operator<'_>) -> Result<()> {
    for (context, namespace, name) in DEPLOYMENTS {
        let status = format!("kubectl --context {context} -n {namespace} rollout status deployment {name}");
        operator.run(&format!("{status} {ROLLOUT}"))?;
    }
    Ok(())
}

/// The page's command lines that upgrade the gateway's chart, and roll it back.
fn lines() -> Result<[String; 2]> {
    let mut lines = commands(section(INSTALL, "## Upgrade, roll back, remove", "- **Values**")?);
    ensure!(lines.len() == 3 && lines[0].ends_with("--set image.tag=<new>"), "other commands: {lines:?}");
    let back = lines.swap_remove(1);
    Ok([lines.swap_remove(0), back])
}

// === impl Life ===

impl Life<'_> {
    fn meanwhile(&self, what: &str, change: impl Fn(&Self) -> Result<()>) -> Result<()> {
        let load = Load::start(&self.testbed.hub, &[("berlin", &self.testbed.member)])?;
        change(self).context(what.to_owned())?;
        load.wait_for_more(SOME)?;
        let tally = load.finish().context(what.to_owned())?;
        ensure!(tally.reads > 2 * SOME && tally.events > SOME / 2, "{what}: no load: {tally:?}");
        ensure!(tally.changes > SOME / 10, "{what}: few changes: {tally:?}");
        ensure!(tally.repeated <= REPEATED, "{what}: many requests had to be repeated: {tally:?}");
        Ok(())
    }

    /// Upgrades all four programs to another image, with additional values.
    fn upgrade_to(&self, tag: &str, [hub, member]: [&str; 2]) -> Result<()> {
        let new = format!("{tag},tunnel.server.image.tag={tag},controllers.image.tag={tag}{hub}");
        let [upgrade, _] = lines()?;
        self.operator.run(&format!(
            "{}
             helm --kube-context berlin upgrade tunnel-agent charts/tunnel-agent --reset-then-reuse-values \
             --set image.tag={tag}{member}",
            upgrade.replace("<new>", &new)
        ))?;
        Ok(())
    }

    fn back(&self) -> Result<()> {
        let [_, back] = lines()?;
        self.operator.run(&format!("{back}\nhelm --kube-context berlin rollback tunnel-agent"))?;
        rolled_out(&self.operator)
    }

    /// Replaces the pods of all programs. The new ones wait less for streams to end, which shortens
    /// later steps of the test.
    fn upgrade(&self) -> Result<()> {
        let before = self.pods()?;
        let hub = format!(
            ",log.format=json,featureGates.HealthinessCheck=true,drainTimeoutSeconds={DRAIN},tunnel.server.drainTimeoutSeconds={DRAIN}"
        );
        self.upgrade_to(NEXT, [&hub, &format!(",log.format=json,drainTimeoutSeconds={DRAIN}")])?;
        rolled_out(&self.operator)?;
        let kept: Vec<String> = self.pods()?.into_iter().filter(|pod| before.contains(pod)).collect();
        ensure!(kept.is_empty(), "not replaced: {kept:?}");
        self.run_of(NEXT)?;
        self.report()
    }

    fn roll_back(&self) -> Result<()> {
        let before = self.pods()?;
        self.back()?;
        ensure!(self.pods()?.iter().all(|pod| !before.contains(pod)), "not replaced");
        self.run_of(TAG)?;
        self.spread()?;
        let logs = self.operator.run("kubectl -n vela-system logs deployment/cluster-gateway")?;
        ensure!(!logs.starts_with('{'), "still the other format: {logs}");
        Ok(())
    }

    /// Upgrades to an image whose pods end as soon as they start. The old pods stay, and serve.
    fn break_down(&self) -> Result<()> {
        let before = self.all(name_and_restarts)?;
        self.upgrade_to(BROKEN, ["", ""])?;
        for deployment in DEPLOYMENTS {
            wait::until("a pod to end as soon as it starts", LIMIT, || {
                let ended = self.each_pod(deployment, restarts)?;
                ensure!(ended.iter().any(|count| *count != "0"), "{deployment:?}: {ended:?}");
                Ok(())
            })?;
        }
        self.stay(&before)
    }

    /// Rolls back, which replaces no other pods.
    fn heal(&self) -> Result<()> {
        let before = self.pods()?;
        self.back()?;
        let stay: Vec<String> = self.pods()?;
        ensure!(stay.iter().all(|pod| before.contains(pod)), "replaced: {before:?}: {stay:?}");
        self.run_of(TAG)
    }

    /// Checks that two pods of each Deployment are those of `before` ([`name_and_restarts`]), and
    /// are ready. On a busy machine a probe may be late: a pod that is not ready for a moment is
    /// the same one, but not if its container has ended and come back.
    fn stay(&self, before: &[String]) -> Result<()> {
        for (context, namespace, name) in DEPLOYMENTS {
            wait::until("the pods before to be ready", LIMIT, || {
                let ready = self.each_pod((context, namespace, name), ready)?;
                let stay = ready.iter().filter(|pod| before.contains(pod)).count();
                ensure!(stay == 2, "{name}: of {before:?}, ready are {ready:?}");
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Checks that every pod has this image.
    fn run_of(&self, tag: &str) -> Result<()> {
        for deployment in DEPLOYMENTS {
            for field in [wanted_image as Field, image] {
                let images = self.each_pod(deployment, field)?;
                ensure!(images.iter().all(|image| image.ends_with(&format!(":{tag}"))), "{deployment:?}: {images:?}");
            }
        }
        Ok(())
    }

    /// Checks that reported health is shown, which needs the feature gate.
    fn report(&self) -> Result<()> {
        let told = || self.operator.run("kubectl get clustergateways");
        for healthy in ["false", "true"] {
            let status = json!({"apiVersion": "cluster.core.oam.dev/v1alpha1", "kind": "ClusterGateway",
                "metadata": {"name": "berlin"}, "status": {"healthy": healthy == "true"}});
            let words = ["replace", "--raw", HEALTH, "-f", "-"];
            self.testbed.hub.kubectl().args(words).stdin(status.to_string()).run()?.success()?;
            let listed = told()?;
            ensure!(readme::healthy(&listed)? == healthy, "{listed}");
        }
        Ok(())
    }

    /// Checks that pods are on two nodes again: drains put them on one node, and the next rollout
    /// spreads them.
    fn spread(&self) -> Result<()> {
        for (context, namespace, name) in DEPLOYMENTS {
            let nodes = self.each_pod((context, namespace, name), node)?;
            ensure!(nodes.len() == 2 && nodes[0] != nodes[1], "{name} is on {nodes:?}");
        }
        Ok(())
    }

    fn delete(&self) -> Result<()> {
        for (context, namespace, name) in DEPLOYMENTS {
            let pod = self.each_pod((context, namespace, name), self::name)?.swap_remove(0);
            self.operator.run(&format!("kubectl --context {context} -n {namespace} delete pod {pod} --wait=false"))?;
        }
        rolled_out(&self.operator)?;
        settled(self.testbed)
    }

    /// Drains the cluster's second node: its pods move to the other one, at the pace that the
    /// disruption budgets allow.
    fn drain(&self, context: &str, cluster: &Cluster) -> Result<()> {
        let (kubectl, node) = (format!("kubectl --context {context}"), cluster.nodes[1].name());
        let there = format!("{kubectl} get pods -A -o name --field-selector spec.nodeName={node}");
        ensure!(!self.operator.run(&there)?.is_empty(), "{node} had no pods");
        self.operator.run(&format!("{kubectl} drain {node} {ROLLOUT}"))?;
        let left = self.operator.run(&there)?;
        ensure!(left.is_empty(), "{left}");
        rolled_out(&self.operator)?;
        self.operator.run(&format!("{kubectl} uncordon {node}")).map(drop)
    }

    fn pods(&self) -> Result<Vec<String>> {
        self.all(name)
    }

    /// A field of each pod of all programs.
    fn all(&self, field: Field) -> Result<Vec<String>> {
        let mut all = Vec::new();
        for deployment in DEPLOYMENTS {
            all.extend(self.each_pod(deployment, field)?);
        }
        Ok(all)
    }

    /// A field of each pod that is not ending, as far as it has one.
    fn each_pod(&self, (context, namespace, name): (&str, &str, &str), field: Field) -> Result<Vec<String>> {
        let program = if name.ends_with("tunnel-server") { "tunnel-server" } else { name };
        let cluster = if context == "hub" { &self.testbed.hub } else { &self.testbed.member };
        let listed = cluster.get(&format!("pods -n {namespace} -l app.kubernetes.io/name={program}"))?;
        let all = listed["items"].as_array().context("no list")?.iter();
        let stay = all.filter(|pod| pod["metadata"]["deletionTimestamp"].is_null());
        let pods: Vec<String> = stay.filter_map(|pod| field(pod).transpose()).collect::<Result<_>>()?;
        ensure!(pods.len() >= 2, "{name}: {pods:?}");
        Ok(pods)
    }
}

fn name(pod: &Value) -> Result<Option<String>> {
    text(&pod["metadata"]["name"])
}

fn node(pod: &Value) -> Result<Option<String>> {
    text(&pod["spec"]["nodeName"])
}

fn wanted_image(pod: &Value) -> Result<Option<String>> {
    text(&pod["spec"]["containers"][0]["image"])
}

fn image(pod: &Value) -> Result<Option<String>> {
    text(&pod["status"]["containerStatuses"][0]["image"])
}

/// How often its container was started again.
fn restarts(pod: &Value) -> Result<Option<String>> {
    let count = pod["status"]["containerStatuses"][0]["restartCount"].as_u64().context("not started")?;
    Ok(Some(count.to_string()))
}

fn name_and_restarts(pod: &Value) -> Result<Option<String>> {
    Ok(Some(format!("{}/{}", name(pod)?.context("no name")?, restarts(pod)?.context("not started")?)))
}

/// The same, of a pod that is ready.
fn ready(pod: &Value) -> Result<Option<String>> {
    let is_ready = pod["status"]["containerStatuses"][0]["ready"].as_bool().context("not started")?;
    if is_ready { name_and_restarts(pod) } else { Ok(None) }
}

fn text(field: &Value) -> Result<Option<String>> {
    field.as_str().map(|text| Some(text.to_owned())).context("no text")
}
