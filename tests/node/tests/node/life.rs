//! What happens to pods in their lives, while clients use a cluster behind the tunnel: no read
//! fails that its client would not repeat by itself, and no event of a watch is lost.

use anyhow::{Context as _, Result, ensure};
use node_tests::load::{self, Load};
use node_tests::operator::Operator;
use node_tests::testbed::Testbed;

use crate::pods::settled;
use crate::readme;

/// Of the hub, and of the member.
pub(crate) const DEPLOYMENTS: [(&str, &str, &str); 3] = [
    ("hub", "vela-system", "cluster-gateway"),
    ("hub", "vela-system", "cluster-gateway-tunnel-server"),
    ("berlin", "default", "tunnel-agent"),
];
/// Reads after a change, at least: what it breaks, it breaks soon.
const SOME: usize = 30;
/// Seconds that open streams get from pods that end.
const DRAIN: u32 = 5;
/// For a rollout: pods are ready for some time before the next one goes.
const ROLLOUT: &str = "--timeout=150s";

/// Somebody who changes what runs, and clients meanwhile.
struct Life<'a> {
    testbed: &'a Testbed,
    operator: Operator<'a>,
}

pub(crate) fn changed(testbed: &Testbed) -> Result<()> {
    let life = Life { testbed, operator: readme::operator(testbed)? };
    life.meanwhile("an upgrade", Life::upgrade)?;
    life.meanwhile("a pod of each program deleted", Life::delete)?;
    life.meanwhile("a node drained", Life::drain)?;
    life.meanwhile("a rollback", Life::roll_back)?;
    load::clean(&[&testbed.hub, &testbed.member])
}

/// Waits until what is wanted runs. What is not may still serve what is open.
pub(crate) fn rolled_out(operator: &Operator<'_>) -> Result<()> {
    for (context, namespace, name) in DEPLOYMENTS {
        let status = format!("kubectl --context {context} -n {namespace} rollout status deployment {name}");
        operator.run(&format!("{status} {ROLLOUT}"))?;
    }
    Ok(())
}

// === impl Life ===

impl Life<'_> {
    fn meanwhile(&self, what: &str, change: fn(&Self) -> Result<()>) -> Result<()> {
        let load = Load::start(&self.testbed.hub, &[("berlin", &self.testbed.member)])?;
        change(self).context(what.to_owned())?;
        load.wait_for_more(SOME)?;
        let tally = load.finish().context(what.to_owned())?;
        ensure!(tally.reads > 2 * SOME && tally.events > SOME / 2, "{what}: no load: {tally:?}");
        Ok(())
    }

    /// New pods of all three programs, which then wait less for streams to end: so do we.
    fn upgrade(&self) -> Result<()> {
        let before = self.pods()?;
        self.operator.run(&format!(
            "helm upgrade cluster-gateway charts/cluster-gateway -n vela-system --reuse-values --set log.format=json \
             --set drainTimeoutSeconds={DRAIN},tunnel.server.drainTimeoutSeconds={DRAIN}
             helm --kube-context berlin upgrade tunnel-agent charts/tunnel-agent --reuse-values \
             --set log.format=json,drainTimeoutSeconds={DRAIN}"
        ))?;
        rolled_out(&self.operator)?;
        let kept: Vec<String> = self.pods()?.into_iter().filter(|pod| before.contains(pod)).collect();
        ensure!(kept.is_empty(), "not replaced: {kept:?}");
        Ok(())
    }

    fn roll_back(&self) -> Result<()> {
        let before = self.pods()?;
        self.operator.run(
            "helm rollback cluster-gateway -n vela-system
             helm --kube-context berlin rollback tunnel-agent",
        )?;
        rolled_out(&self.operator)?;
        ensure!(self.pods()?.iter().all(|pod| !before.contains(pod)), "not replaced");
        self.spread()?;
        let logs = self.operator.run("kubectl -n vela-system logs deployment/cluster-gateway")?;
        ensure!(!logs.starts_with('{'), "still the other format: {logs}");
        Ok(())
    }

    /// What the drain has put on one node, the next rollout spreads again.
    fn spread(&self) -> Result<()> {
        for (context, namespace, name) in DEPLOYMENTS.iter().filter(|(context, ..)| *context == "hub") {
            let nodes = self.each_pod(context, namespace, name, ".spec.nodeName")?;
            ensure!(nodes.len() == 2 && nodes[0] != nodes[1], "{name} is on {nodes:?}");
        }
        Ok(())
    }

    fn delete(&self) -> Result<()> {
        for (context, namespace, name) in DEPLOYMENTS {
            let pod = self.pods_of(context, namespace, name)?.swap_remove(0);
            self.operator.run(&format!("kubectl --context {context} -n {namespace} delete pod {pod} --wait=false"))?;
        }
        rolled_out(&self.operator)?;
        settled(self.testbed)
    }

    /// Its pods go elsewhere, as far as the budgets let them.
    fn drain(&self) -> Result<()> {
        let node = &self.testbed.hub.nodes[1].name();
        self.operator.run(&format!("kubectl drain {node} --timeout=120s"))?;
        let left = format!("kubectl get pods -A -o name --field-selector spec.nodeName={node}");
        let left = self.operator.run(&left)?;
        ensure!(left.is_empty(), "{left}");
        rolled_out(&self.operator)?;
        self.operator.run(&format!("kubectl uncordon {node}")).map(drop)
    }

    fn pods(&self) -> Result<Vec<String>> {
        let mut pods = Vec::new();
        for (context, namespace, name) in DEPLOYMENTS {
            pods.extend(self.pods_of(context, namespace, name)?);
        }
        Ok(pods)
    }

    fn pods_of(&self, context: &str, namespace: &str, name: &str) -> Result<Vec<String>> {
        self.each_pod(context, namespace, name, ".metadata.name")
    }

    /// A field of each pod that is not ending.
    fn each_pod(&self, context: &str, namespace: &str, name: &str, field: &str) -> Result<Vec<String>> {
        let program = name.trim_start_matches("cluster-gateway-");
        let template = format!(
            "{{{{range .items}}}}{{{{if not .metadata.deletionTimestamp}}}}{{{{{field}}}}} {{{{end}}}}{{{{end}}}}"
        );
        let words = format!("-l app.kubernetes.io/name={program} -o go-template='{template}'");
        let listed = self.operator.run(&format!("kubectl --context {context} -n {namespace} get pods {words}"))?;
        let pods: Vec<String> = listed.split_whitespace().map(str::to_owned).collect();
        ensure!(pods.len() >= 2, "{name}: {pods:?}");
        Ok(pods)
    }
}
