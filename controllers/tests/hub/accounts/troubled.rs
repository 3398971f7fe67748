//! A hub in trouble.

use anyhow::{Context as _, Result};
use hub_tests::testbed::Testbed;
use hub_tests::trouble::{FAULTS, Trouble};
use hub_tests::wait;

use super::{ALONE_HERE, CLUSTERS, ENABLE, KIND, account, filled_one, on_member, register};
use crate::fixture::{Running, SOON, apply};

/// What fails once after a start.
const BEGINNING: [&str; 4] = ["list ", "watch ", "write managedserviceaccounts", "write secrets"];
const BEGUN: [&str; 5] = [
    "list managedserviceaccounts",
    "watch managedserviceaccounts",
    "write managedserviceaccounts",
    "write managedserviceaccounts/status",
    "write secrets",
];

pub fn outlived(testbed: &Testbed) -> Result<()> {
    let cluster = "accounts-troubled";
    register(testbed, cluster)?;
    let server = &testbed.hub.server;
    let trouble = Trouble::start(server.client(Some(server.admin())))?;
    let kubeconfig = trouble.kubeconfig(testbed.launcher(), cluster, None)?;
    let mut controllers = Running::as_user(CLUSTERS, &kubeconfig, &[ENABLE, ALONE_HERE])?;
    for (number, fault) in FAULTS.into_iter().enumerate() {
        let name = format!("troubled{number}");
        trouble.begin(fault, &BEGINNING);
        controllers.restart()?;
        apply(testbed, &[account(cluster, &name)])?;
        filled_one(testbed, cluster, &name).with_context(|| format!("after {fault:?}"))?;
        trouble.ensure_failed(&BEGUN)?;
        // Watches that are open end as well.
        trouble.begin(fault, &["watch ", "write managedserviceaccounts"]);
        server.delete(&format!("{KIND} {name} -n {cluster}"))?;
        let is_gone = || Ok(on_member(testbed, &name)?.is_null());
        wait::until_true("the end of its ServiceAccount", SOON, is_gone).with_context(|| format!("after {fault:?}"))?;
        trouble.ensure_failed(&["watch managedserviceaccounts", "write managedserviceaccounts"])?;
    }
    Ok(())
}
