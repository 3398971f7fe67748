//! A hub in trouble.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use hub_tests::kubectl::Kubectl;
use hub_tests::testbed::Testbed;
use hub_tests::trouble::{FAULTS, Fault, Trouble};
use hub_tests::wait;

use super::agent::ask;
use super::{Registration, accept, bootstrap, condition, exists, may, registers};
use crate::fixture::SOON;

const PLACE: &str = "troubled-place";
const ACCEPTED: &str = "HubAcceptedManagedCluster";
/// What fails once after a start.
const BEGINNING: [&str; 5] = [
    "list ",
    "watch ",
    "write managedclusters",
    "write clusterrolebindings",
    "write certificatesigningrequests/approval",
];
const BEGUN: [&str; 9] = [
    "list managedclusters",
    "watch managedclusters",
    "list certificatesigningrequests",
    "watch certificatesigningrequests",
    "list leases",
    "write managedclusters",
    "write managedclusters/status",
    "write clusterrolebindings",
    "write certificatesigningrequests/approval",
];
/// For some failures in a row of one cluster, and another look at the admission policies.
const OUTLIVED: Duration = SOON.saturating_mul(3);

pub fn joins(testbed: &Testbed) -> Result<()> {
    let trouble = Trouble::start(testbed.hub.server.client(None))?;
    let mut registration = Registration::over(testbed, PLACE, &trouble)?;
    let user = bootstrap(testbed, PLACE)?;
    for (number, fault) in FAULTS.into_iter().enumerate() {
        let name = format!("troubled{number}");
        trouble.begin(fault, &BEGINNING);
        registration.running.restart()?;
        join(testbed, &user, &name).with_context(|| format!("after {fault:?}"))?;
        trouble.ensure_failed(&BEGUN)?;
        leave(testbed, &trouble, (fault, &name)).with_context(|| format!("after {fault:?}"))?;
    }
    Ok(())
}

fn tunnel(name: &str) -> String {
    format!("create clustergateways.cluster.core.oam.dev/{name} tunnel")
}

/// By a trusted user's request, with all that a yes gives.
fn join(testbed: &Testbed, user: &Kubectl, name: &str) -> Result<()> {
    let asked = ask(user, name, &format!("{name}-first"))?;
    registers(user, name)?;
    wait::until_true("the approval", OUTLIVED, || asked.is_approved(testbed))?;
    wait::until("the yes", OUTLIVED, || {
        let found = condition(testbed, name, ACCEPTED)?;
        ensure!(found == "True/HubClusterAdminAccepted", "{found}");
        Ok(())
    })?;
    wait::until_true("its rights", OUTLIVED, || {
        Ok(may(testbed, name, &tunnel(name))?
            && may(testbed, name, &format!("update leases.coordination.k8s.io -n {name}"))?
            && exists(testbed, &format!("lease managed-cluster-lease -n {name}"))?)
    })
}

/// A no takes the rights, also where watches have ended and a call fails.
fn leave(testbed: &Testbed, trouble: &Trouble, (fault, name): (Fault, &str)) -> Result<()> {
    trouble.begin(fault, &["watch ", "remove "]);
    accept(testbed, name, false)?;
    wait::until_true("the end of its rights", OUTLIVED, || Ok(!may(testbed, name, &tunnel(name))?))?;
    testbed.hub.server.delete(&format!("managedcluster {name} --wait=false"))?;
    wait::until_true("its end", OUTLIVED, || Ok(!exists(testbed, &format!("managedcluster {name}"))?))?;
    trouble.ensure_failed(&["watch managedclusters"])
}
