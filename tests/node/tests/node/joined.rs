//! An agent that joins by itself, in a pod: the page on joining, word for word. It gets a bootstrap
//! kubeconfig and two approvals, and brings the member's credential.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use hub_tests::page::{blocks, first, section};
use hub_tests::wait;
use node_tests::inventory::Inventory;
use node_tests::operator::Operator;
use node_tests::testbed::Testbed;

const JOIN: &str = include_str!("../../../../docs/join.md");
const README: &str = include_str!("../../../../README.md");
const REGISTRATION: &str = include_str!("../../../../docs/registration.md");
const LIMIT: Duration = Duration::from_mins(1);
/// What the page needs on the hub: tunnel-servers, the part that lets agents join, its kinds, and
/// the source of their credentials.
const INSTALL: &str = "kubectl clusters install --set image.repository=localhost/cluster-gateway \
     --set tunnel.server.enabled=true,tunnel.server.image.repository=localhost/tunnel-server \
     --set controllers.enabled=true,controllers.image.repository=localhost/cluster-gateway-controllers \
     --set controllers.crds=true,controllers.ocmRegistration.enabled=true,controllers.sources.ocm=true";

pub(crate) fn followed(testbed: &Testbed) -> Result<()> {
    let before = [Inventory::of(&testbed.hub)?, Inventory::of(&testbed.member)?];
    let operator = Operator::new(testbed, &[("berlin", &testbed.member)])?;
    let joined = join(testbed, &operator);
    let removed = remove(&operator);
    joined?;
    removed?;
    let [hub, member] = &before;
    member.wait_restored(&testbed.member, |_| false)?;
    // Roles for all agents stay. OCM's own controllers would use theirs, too.
    let roles = ["open-cluster-management", "cluster-gateway:managedcluster:"];
    hub.wait_restored(&testbed.hub, |object| roles.iter().any(|of_all| object.contains(of_all)))
}

fn join(testbed: &Testbed, operator: &Operator<'_>) -> Result<()> {
    operator.run(INSTALL)?;
    bootstrap(testbed, operator).context("the bootstrap kubeconfig")?;
    let page = section(JOIN, "## With one command at the member", "### Bring the credential too")?;
    let blocks: Vec<_> = blocks(page, "sh").collect();
    let [authority, install, approve] = &blocks[..] else { anyhow::bail!("other commands: {blocks:?}") };
    operator.run(authority)?;
    operator.run(&of_member(install))?;
    same_as_readme(operator)?;
    let request = wait::until("the agent's request", LIMIT, || {
        operator.run("kubectl get managedcluster berlin -o name")?;
        let label = "open-cluster-management.io/cluster-name=berlin";
        let told = operator.run(&format!("kubectl get csr -l {label} -o name"))?;
        let name = told.lines().next().and_then(|name| name.rsplit('/').next()).context("no request")?;
        Ok(name.to_owned())
    })?;
    operator.run(&approve.replace("<request>", &request))?;
    let ready = "kubectl --context berlin -n tunnel rollout status deployment tunnel-agent --timeout=60s";
    operator.run(ready).context("its links")?;
    brought(operator, ready)
}

/// The README's command, run after the page's, changes nothing.
fn same_as_readme(operator: &Operator<'_>) -> Result<()> {
    let part = section(README, "- **One command at the member**", "- **By hand**")?;
    let install = first(part, "sh")?;
    let manifest = || operator.run("helm --kube-context berlin get manifest tunnel-agent -n tunnel");
    let page = manifest()?;
    operator.run(&of_member(install).replace(" install tunnel-agent ", " upgrade tunnel-agent "))?;
    ensure!(manifest()? == page, "the README installs something else: {install}");
    Ok(())
}

/// Makes the bootstrap kubeconfig, by the page on registration.
fn bootstrap(testbed: &Testbed, operator: &Operator<'_>) -> Result<()> {
    let page = section(REGISTRATION, "**A bootstrap kubeconfig** lets", "1. Give the agent")?;
    let role = first(page, "yaml")?;
    std::fs::write(operator.directory().join("role.yaml"), role)?;
    operator.run("kubectl apply -f role.yaml")?;
    let make = first(page, "sh")?;
    let authority = testbed.hub.server.authority_file().display().to_string();
    let make = make.replace("https://<hub>", &testbed.hub.url()).replace("<CA file of the hub>", &authority);
    operator.run(&make).map(drop)
}

/// The member answers callers of the hub by the credential that the agent brings.
fn brought(operator: &Operator<'_>, ready: &str) -> Result<()> {
    let page = section(JOIN, "### Bring the credential too", "## By hand")?;
    let bring = first(page, "sh")?;
    operator.run(&of_member(bring))?;
    operator.run(ready).context("its links, once more")?;
    wait::until("the cluster to answer", LIMIT, || {
        let pods = operator.run("kubectl clusters get pods berlin -n tunnel")?;
        ensure!(pods.contains("tunnel-agent-") && pods.contains(" 1/1 "), "{pods}");
        Ok(())
    })?;
    // By its view, not by an administrator's credential.
    let refused = operator.ended("get secrets berlin -n tunnel", 1)?;
    ensure!(format!("{refused:?}").contains("forbidden"), "{refused:?}");
    Ok(())
}

/// A command of the page, run with the member's context.
fn of_member(commands: &str) -> String {
    let here = commands.replace("<registry>", "localhost").replace("hub.example.com", "10.244.0.1");
    here.replace("kubectl ", "kubectl --context berlin ").replace("helm ", "helm --kube-context berlin ")
}

/// Removes what there is, also after a failure: the tests share these nodes.
fn remove(operator: &Operator<'_>) -> Result<()> {
    operator.run(
        "kubectl delete managedcluster berlin --ignore-not-found --timeout=60s || true
         helm --kube-context berlin uninstall tunnel-agent -n tunnel || true
         kubectl --context berlin delete namespace tunnel --ignore-not-found
         helm uninstall cluster-gateway -n vela-system || true
         kubectl delete csr -l open-cluster-management.io/cluster-name=berlin
         kubectl delete clusterrolebinding,clusterrole agent-bootstrap --ignore-not-found
         kubectl delete namespace agent-bootstrap berlin vela-system vela-system-clusters --ignore-not-found
         kubectl get managedclusters -o name | xargs -r -n 1 kubectl patch --type=merge -p '{\"metadata\":{\"finalizers\":null}}' || true
         kubectl get crd -o name | xargs -r kubectl delete --timeout=60s",
    )?;
    Ok(())
}
