//! What the page has an administrator do until a first agent has joined: kinds, a bootstrap
//! kubeconfig, and two approvals.

use anyhow::{Context as _, Result, ensure};
use hub_tests::page::block;
use hub_tests::testbed::Testbed;
use hub_tests::{tools, wait};

use super::agent::ask;
use super::{CLUSTERS, reads, registers, wait_condition};
use crate::fixture::{SOON, script};

const PAGE: &str = include_str!("../../../../docs/registration.md");
/// Of the page's kinds.
const MODULE: &str = "open-cluster-management.io/api";
/// The page's cluster, by a name that no other test has.
const NAME: &str = "by-hand";
const REQUEST: &str = "by-hand-first";

/// With the part running, which leaves such a request to a person.
pub fn followed(testbed: &Testbed) -> Result<()> {
    let directory = testbed.directory("registration-by-hand")?;
    let run = |commands: &str| script(testbed, &directory, commands);
    let kinds = tools::kinds_module(MODULE)?;
    let version = PAGE.split_once("git clone --depth 1 --branch ").context("no version")?.1;
    let version = version.split(' ').next().unwrap_or_default();
    ensure!(kinds.to_string_lossy().ends_with(&format!("@{version}")), "{version} is not {}", kinds.display());
    run(&block(PAGE, "sh", "kubectl apply --server-side")?.replace("ocm-api/", &format!("{}/", kinds.display())))?;

    testbed.hub.server.kubectl().apply(block(PAGE, "yaml", "metadata: {name: agent-bootstrap}")?)?;
    let authority = testbed.hub.server.authority_file().display().to_string();
    let bootstrap = block(PAGE, "sh", "kubectl create namespace agent-bootstrap")?;
    let bootstrap = bootstrap.replace("https://<hub>", &testbed.hub.server.url());
    run(&bootstrap.replace("<CA file of the hub>", &authority))?;

    let agent = testbed.launcher().kubectl(&directory.join("bootstrap.kubeconfig"));
    wait::until("the right to join", SOON, || registers(&agent, NAME))?;
    let asked = ask(&agent, NAME, REQUEST)?;
    let approve = block(PAGE, "sh", "kubectl certificate approve <request>")?;
    let told = run(&approve.replace("<request>", REQUEST).replace("berlin", NAME))?;
    ensure!(["Pending", "approved", "patched"].iter().all(|word| told.contains(word)), "{told}");
    let agent = asked.kubectl(testbed)?;
    wait_condition(testbed, NAME, "HubAcceptedManagedCluster", "True/HubClusterAdminAccepted")?;
    wait::until_true("its rights", SOON, || reads(&agent, &format!("{CLUSTERS}/{NAME}")))?;
    testbed.hub.server.delete(&format!("managedcluster {NAME}"))?;
    run("kubectl delete clusterrolebinding,clusterrole agent-bootstrap
         kubectl delete namespace agent-bootstrap --wait=false")
    .map(drop)
}
