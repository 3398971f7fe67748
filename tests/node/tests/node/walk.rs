//! The steps of an operator from an empty hub to two clusters, through failures, and back.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use hub_tests::screens::Screens;
use hub_tests::wait;
use node_tests::cluster::Cluster;
use node_tests::image::{PAUSE, repository};
use node_tests::inventory::Inventory;
use node_tests::load::{self, Load};
use node_tests::operator::Operator;
use node_tests::prometheus::{Prometheus, Targets};
use node_tests::testbed::Testbed;

use crate::pods::{AGENT, living};
use crate::started::part;

const README: &str = include_str!("../../../../README.md");
const TUNNEL: &str = include_str!("../../../../docs/tunnel.md");
const STARTED: &str = include_str!("../../../../docs/getting-started.md");

const LIMIT: Duration = Duration::from_mins(1);
/// Time limit where a kubelet waits before it restarts a pod's program.
const BACK: Duration = Duration::from_mins(4);
/// Where `join` puts agents and accounts on members.
const NAMESPACE: &str = "cluster-gateway";
/// The tunnel-servers' port for metrics.
const METRICS: u16 = 8095;
/// The gateways' port.
const SECURE: u16 = 9443;
/// The alert for a cluster whose agents are not linked.
const UNLINKED: &str = "TunnelClusterNotLinked";
/// Least number of reads after the rotation.
const SOME: usize = 40;
/// The namespace that `helm uninstall` leaves, as the chart's page says.
const KEPT: &str = "vela-system-clusters";

/// An operator with a hub, a member that the hub can dial, `berlin`, and one behind NAT, `oslo`.
struct Walk<'a> {
    testbed: &'a Testbed,
    berlin: &'a Cluster,
    operator: Operator<'a>,
}

pub(crate) fn walk(testbed: &Testbed) -> Result<()> {
    let berlin = &testbed.another("berlin")?;
    let operator = Operator::new(testbed, &[("berlin", berlin), ("oslo", &testbed.member)])?;
    let walk = Walk { testbed, berlin, operator };
    walk.settle()?;
    let hub = &Inventory::of(&testbed.hub)?;
    let members = [Inventory::of(&testbed.member)?, Inventory::of(berlin)?];
    testbed.hide_member(true)?;
    let walked = walk.through(hub, &members);
    // The tests after this one can use the member and the hub, even if this one failed.
    testbed.hide_member(false)?;
    walked.map_err(|failure| {
        let left = [hub.tidy(&testbed.hub), members[0].tidy(&testbed.member)];
        left.into_iter().filter_map(Result::err).fold(failure, |failure, left| failure.context(format!("{left:#}")))
    })
}

/// One of the README's first commands, with this testbed's registry.
fn first(number: usize) -> Result<String> {
    let mut commands = part(README, "Two commands install ", "![A terminal", "sh")?;
    ensure!(commands.len() == 3, "{commands:?}");
    Ok(commands.swap_remove(number))
}

/// One of those for a cluster that cannot be reached.
fn unreachable(number: usize) -> Result<String> {
    let mut commands = part(README, "Three commands enable ", "[The tunnel's page]", "sh")?;
    ensure!(commands.len() == 3, "{commands:?}");
    Ok(commands.swap_remove(number))
}

// === impl Walk ===

impl Walk<'_> {
    fn through(&self, hub: &Inventory, members: &[Inventory; 2]) -> Result<()> {
        self.install()?;
        let installed = Inventory::of(&self.testbed.hub)?;
        self.join()?;
        self.look()?;
        let prometheus = Prometheus::start(self.testbed.directory(), &self.targets()?)?;
        self.lose(&prometheus)?;
        self.kill(&prometheus)?;
        self.rotate()?;
        self.detach(&installed, members)?;
        prometheus.wait_for(UNLINKED, "oslo", false)?;
        drop(prometheus);
        self.uninstall(hub)
    }

    /// Waits for the objects that a new cluster makes by itself, and starts a pod.
    fn settle(&self) -> Result<()> {
        let account =
            || self.operator.run("kubectl --context berlin get serviceaccount/default configmap/kube-root-ca.crt");
        wait::until("a namespace to be complete", LIMIT, account)?;
        self.operator.run(&format!(
            "kubectl --context berlin run cart --image={PAUSE}
             kubectl --context berlin wait pod/cart --for=condition=Ready --timeout=60s"
        ))?;
        Ok(())
    }

    /// By the README's first commands, of which this is the first; and then for agents too, as
    /// the README and their page say. Then nothing more comes on the hub by itself.
    fn install(&self) -> Result<()> {
        self.operator.run(&first(0)?)?;
        let enable = part(TUNNEL, "Then enable the tunnel-servers:", "## Join a member", "sh")?.join("\n");
        for command in [unreachable(0)?, enable] {
            ensure!(command.contains(&repository("tunnel-server")), "another image: {command}");
            self.operator.run(&command)?;
        }
        // The hub looks every few seconds at an API that it could not use.
        wait::until("the hub to use the API", LIMIT, || {
            let checked = self.operator.run("kubectl clusters check")?;
            ensure!(checked.contains("✓ agents dial 10.244.0.1:8091") && !checked.contains('✗'), "{checked}");
            Ok(())
        })?;
        let status = "kubectl -n vela-system rollout status --timeout=150s deployment cluster-gateway";
        self.operator.run(&format!(
            "{status}\n{status}-tunnel-server
             kubectl create serviceaccount prometheus
             kubectl create clusterrole prometheus --verb=get --non-resource-url=/metrics
             kubectl create clusterrolebinding prometheus --clusterrole=prometheus --serviceaccount=default:prometheus"
        ))?;
        Ok(())
    }

    fn join(&self) -> Result<()> {
        let joined = self.operator.run(&first(1)?)?;
        ensure!(joined.contains("berlin joined: it answers the gateway"), "{joined}");
        // The second screen shows the operator's own pods, which run.
        let pods = self.operator.run(&first(2)?)?;
        ensure!(pods.starts_with("CLUSTER") && runs(&pods, "berlin", "cart"), "{pods}");
        // The hub cannot dial the other member. The next command completes what this one leaves.
        let unreached = self.operator.ended("join oslo --rights view -l env=prod --wait 2s", 1)?.stderr;
        ensure!(unreached.contains("oslo is registered, but") && unreached.contains("remedy:"), "{unreached}");
        // The agent's image is where the hub's are from.
        let joined = self.operator.run(&unreachable(1)?)?;
        ensure!(joined.contains("oslo joined") && joined.contains("serviceaccount:cluster-gateway:oslo"), "{joined}");
        let pods = self.operator.run(&unreachable(2)?)?;
        ensure!(pods.starts_with("CLUSTER") && pods.contains(" tunnel-agent-"), "{pods}");
        Ok(())
    }

    /// Checks that the overviews show everything.
    fn look(&self) -> Result<()> {
        wait::until("both agents", LIMIT, || {
            let listed = self.operator.run("kubectl clusters list")?;
            let row = |name: &str| {
                let row = listed.lines().find(|row| row.starts_with(name)).with_context(|| listed.clone())?;
                Ok::<_, anyhow::Error>(row.split_whitespace().collect::<Vec<_>>())
            };
            ensure!(row("berlin ")?[1..6] == ["Ready", "v1.35.4", row("berlin ")?[3], "Const", "-"], "{listed}");
            ensure!(row("oslo ")?[1..6] == ["Ready", "v1.35.4", row("oslo ")?[3], "ClusterProxy", "2/2"], "{listed}");
            Ok(())
        })?;
        self.operator.run(&format!("kubectl --context oslo run cart --image={PAUSE}"))?;
        self.operator.run("kubectl --context oslo wait pod/cart --for=condition=Ready --timeout=60s")?;
        let pods = self.operator.run("kubectl clusters get pods --all -A")?;
        for (cluster, pod) in [("berlin", "cart"), ("oslo", "tunnel-agent-"), ("oslo", "cart")] {
            ensure!(runs(&pods, cluster, pod), "no {pod} of {cluster}: {pods}");
        }
        self.operator.run("kubectl --context oslo delete pod cart")?;
        self.lack()?;
        wait::until("the page to count links", LIMIT, || {
            let page = self.page("clusters/oslo")?;
            ensure!(page.contains("<dt>Agents ready</dt><dd>2/2</dd>"), "{page}");
            let links = links(&page)?;
            ensure!(links.len() == 2 && links.iter().all(|links| *links > 0), "{links:?}: {page}");
            Ok(())
        })
    }

    /// Adds an agent for which no node is free.
    fn lack(&self) -> Result<()> {
        let oslo = "kubectl --context oslo";
        let scale = format!("{oslo} -n {NAMESPACE} scale deployment tunnel-agent --replicas");
        self.operator.run(&format!("{oslo} cordon -l kubernetes.io/os=linux\n{scale}=3"))?;
        wait::until("check to miss it", LIMIT, || {
            let checked = self.operator.ended("check oslo", 0)?.stdout;
            ensure!(
                checked.contains("‼ oslo: 2 of 3 agents are linked\n    remedy: see the agents' pods"),
                "{checked}"
            );
            Ok(())
        })?;
        self.operator.run(&format!("{scale}=2\n{oslo} uncordon -l kubernetes.io/os=linux"))?;
        let checked = || Ok(!self.operator.ended("check oslo", 0)?.stdout.contains("agents are linked"));
        wait::until_true("check to miss none", LIMIT, checked)
    }

    /// Ends its agents, and checks that all reports name the failing hop.
    fn lose(&self, prometheus: &Prometheus) -> Result<()> {
        prometheus.wait_for(UNLINKED, "oslo", false)?;
        let scale = |replicas| {
            let scale = format!("kubectl --context oslo -n {NAMESPACE} scale deployment tunnel-agent");
            self.operator.run(&format!("{scale} --replicas={replicas}"))
        };
        scale(0)?;
        self.is_told(prometheus, || Ok(()))?;
        scale(2)?;
        wait::until("the cluster to answer again", LIMIT, || self.operator.ended("probe oslo", 0))?;
        prometheus.wait_for(UNLINKED, "oslo", false)
    }

    /// Kills its agents, which report nothing before they end. A kubelet restarts them at once, and
    /// then after longer and longer pauses.
    fn kill(&self, prometheus: &Prometheus) -> Result<()> {
        let restarts = || {
            let path = "jsonpath={.items[*].status.containerStatuses[*].restartCount}";
            self.operator.run(&format!("kubectl --context oslo -n {NAMESPACE} get pods -o {path}"))
        };
        let pods = format!("kubectl --context oslo -n {NAMESPACE} get pods -o name");
        wait::until_true("two agents", LIMIT, || Ok(restarts()? == "0 0"))?;
        let before = self.operator.run(&pods)?;
        self.is_told(prometheus, || {
            for agent in living(AGENT)? {
                let _ = agent.signal("KILL"); // it may be gone
            }
            Ok(())
        })?;
        wait::until("the cluster to answer again", BACK, || self.operator.ended("probe oslo", 0))?;
        let linked = || Ok(self.operator.run("kubectl clusters list")?.contains(" 2/2 "));
        wait::until_true("both agents", BACK, linked)?;
        prometheus.wait_for(UNLINKED, "oslo", false)?;
        ensure!(self.operator.run(&pods)? == before, "others than {before}");
        let restarts = restarts()?;
        ensure!(!restarts.split(' ').any(|count| count == "0"), "nobody killed one: {restarts}");
        let page = self.page("clusters/oslo")?;
        ensure!(!page.contains("fails at the"), "{page}");
        self.operator.ended("check oslo", 0).map(drop)
    }

    /// Checks that all reports say that the agents are away. `again` keeps them away.
    fn is_told(&self, prometheus: &Prometheus, again: impl Fn() -> Result<()>) -> Result<()> {
        // While the agents end, one request of a probe may reach them and the next may not.
        wait::until("the link to be gone", LIMIT, || {
            again()?;
            let probed = self.operator.ended("probe oslo", 1)?;
            let names = ["✓ tunnel-server", "✗ tunnel-agent"].iter().all(|hop| probed.stdout.contains(hop));
            ensure!(names && probed.stderr.contains("are linked, and their log"), "{probed:?}");
            Ok(())
        })?;
        wait::until("check to name it", LIMIT, || {
            again()?;
            let checked = self.operator.ended("check", 1)?;
            let names = ["✓ berlin: ", "✗ oslo: TunnelDown: ", "✓ Deployment cluster-gateway"];
            ensure!(names.iter().all(|it| checked.stdout.contains(it)), "{checked:?}");
            let mut screens = Screens::default();
            screens.compare("check", &checked)?;
            screens.finish()
        })?;
        wait::until("the page to show it", LIMIT, || {
            again()?;
            let page = self.page("clusters/oslo")?;
            ensure!(page.contains("fails at the tunnel-agent") && page.contains("are linked, and their log"), "{page}");
            let links = links(&page)?;
            ensure!(links == [0, 0], "{links:?}: {page}");
            Ok(())
        })?;
        wait::until("the list to show it", LIMIT, || {
            again()?;
            let listed = self.operator.run("kubectl clusters list")?;
            let is_alone = |row: &str| row.starts_with("oslo ") == row.contains("TunnelDown");
            ensure!(listed.lines().all(is_alone), "{listed}");
            Ok(())
        })?;
        wait::until("the alert to fire", LIMIT, || {
            again()?;
            prometheus.expect(UNLINKED, "oslo", true)
        })
    }

    /// A page of the dashboard as a browser shows it, once the cluster was checked, which the
    /// page's events report first.
    fn page(&self, path: &str) -> Result<String> {
        self.operator.run(&format!(
            "rm -f page.address
             kubectl clusters dashboard --no-open > page.address 2> page.log & page=$!; trap \"kill $page\" EXIT
             until grep -qs / page.address; do sleep 0.1; done
             address=$(cat page.address); server=${{address%/*/}}
             ask() {{ kubectl --kubeconfig=/dev/null --server=$server get --raw ${{address#$server}}$1; }}
             ask '' > page.html; ask {path}/events > page.events 2> page.log &
             until grep -q '\"parts\"' page.events; do sleep 0.1; done; ask {path}"
        ))
    }

    /// Addresses of the metrics of the hub's programs.
    fn targets(&self) -> Result<Targets> {
        let of = |name: &str, port: u16| -> Result<Vec<String>> {
            let pods = self.testbed.hub.get(&format!("pods -n vela-system -l app.kubernetes.io/name={name}"))?;
            let pods = pods["items"].as_array().context("no list")?;
            ensure!(pods.len() == 2, "{} {name}s", pods.len());
            let address = |pod: &serde_json::Value| pod["status"]["podIP"].as_str().map(|ip| format!("{ip}:{port}"));
            pods.iter().map(|pod| address(pod).context("no address")).collect()
        };
        let token = self.operator.run("kubectl create token prometheus")?.trim().to_owned();
        Ok(Targets { servers: of("tunnel-server", METRICS)?, gateways: of("cluster-gateway", SECURE)?, token })
    }

    /// Rotates credentials under load, without a failed request.
    fn rotate(&self) -> Result<()> {
        let load = Load::start(&self.testbed.hub, &[("berlin", self.berlin), ("oslo", &self.testbed.member)])?;
        let rotated = self.operator.run("kubectl clusters rotate berlin --member-context berlin")?;
        ensure!(rotated.contains("berlin: rotated, 1 old token ended"), "{rotated}");
        let rotated = self.operator.run("kubectl clusters rotate oslo --member-context oslo")?;
        ensure!(rotated.contains("oslo: rotated, 2 old tokens ended"), "{rotated}");
        load.wait_for_more(2 * SOME)?;
        let tally = load.finish().context("while credentials are rotated")?;
        ensure!(tally.reads > 4 * SOME && tally.events > SOME, "no load: {tally:?}");
        ensure!(tally.repeated == 0, "clients had to repeat requests: {tally:?}");
        load::clean(&[&self.testbed.hub, &self.testbed.member, self.berlin])
    }

    /// Checks that nothing is left of the clusters: the hub has the same objects as after its
    /// installation, and the members the same as before.
    fn detach(&self, installed: &Inventory, [member, direct]: &[Inventory; 2]) -> Result<()> {
        let told = self.operator.ended("detach berlin --member-context berlin --yes", 0)?;
        ensure!(told.stdout.contains("cluster berlin detached"), "{told:?}");
        // As getting started says, with the pod that it starts.
        self.operator.run(&format!("kubectl --context oslo run cart --image={PAUSE}"))?;
        let remove =
            part(STARTED, "If you joined `oslo`, remove it first", "Then remove `berlin` and the gateway.", "sh")?;
        let told = self.operator.run(&remove.join("\n"))?;
        ensure!(told.contains("cluster oslo detached"), "{told}");
        let listed = self.operator.run("kubectl clusters list -o name")?;
        ensure!(listed.is_empty(), "{listed}");
        member.wait_restored(&self.testbed.member, |_| false)?;
        direct.wait_restored(self.berlin, |_| false)?;
        installed.wait_restored(&self.testbed.hub, |_| false).context("of the clusters")
    }

    /// Checks that nothing is left on the hub but what the documentation names.
    fn uninstall(&self, hub: &Inventory) -> Result<()> {
        self.operator.run(
            "helm uninstall cluster-gateway -n vela-system
             kubectl delete clusterrolebinding/prometheus clusterrole/prometheus serviceaccount/prometheus",
        )?;
        let kept = |object: &str| object.split(' ').any(|word| [KEPT, "vela-system"].contains(&word));
        hub.wait_restored(&self.testbed.hub, |object| kept(object) && namespaces_own(object))?;
        self.operator.run(&format!("kubectl delete namespace vela-system {KEPT}"))?;
        hub.wait_restored(&self.testbed.hub, |_| false)
    }
}

/// Whether a table of pods has a running pod of this name.
fn runs(pods: &str, cluster: &str, pod: &str) -> bool {
    let is_it = |row: &str| row.starts_with(&format!("{cluster} ")) && row.contains(&format!(" {pod}"));
    pods.lines().any(|row| is_it(row) && row.contains(" 1/1 ") && row.contains(" Running "))
}

/// The number of agents' links that the page of a cluster shows for each tunnel-server.
fn links(page: &str) -> Result<Vec<usize>> {
    let (_, told) = page.split_once("<dt>Links</dt><dd>").with_context(|| format!("no links: {page}"))?;
    let (told, _) = told.split_once("</dd>").context("no end of the links")?;
    let of = |one: &str| one.split_once(" at cluster-gateway-tunnel-server-")?.0.parse().ok();
    told.split(", ").map(|one| of(one).with_context(|| format!("no tunnel-server's: {told}"))).collect()
}

/// Whether the object is a namespace, or one that every namespace has.
pub(crate) fn namespaces_own(object: &str) -> bool {
    object.starts_with("Namespace ") || object.ends_with(" kube-root-ca.crt") || object.ends_with(" default")
}
