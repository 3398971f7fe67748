//! A hub in trouble.

use anyhow::{Context as _, Result};
use hub_tests::testbed::Testbed;
use hub_tests::trouble::{FAULTS, Trouble};
use hub_tests::{turns, wait};
use serde_json::json;

use super::{ALONE, CLUSTERS, condition, flags, registered};
use crate::fixture::{Running, SOON, apply, namespace, profile_kind};

/// What fails once after a start.
const BEGINNING: [&str; 3] = ["list ", "watch ", "write clusterprofiles"];
const BEGUN: [&str; 6] = [
    "list secrets",
    "watch secrets",
    "list clusterprofiles",
    "watch clusterprofiles",
    "write clusterprofiles",
    "write clusterprofiles/status",
];

pub fn outlived(testbed: &Testbed) -> Result<()> {
    let _alone = turns::alone(&[ALONE]);
    let place = "published-troubled";
    profile_kind(testbed)?;
    apply(testbed, &[namespace(place)])?;
    let server = &testbed.hub.server;
    // The gateway, which is asked without the hub, has to know who probes.
    let token = server.service_account_token("default", place)?;
    server.bind(place, "cluster-admin", ("default", place))?;
    let trouble = Trouble::start(server.client(None))?;
    let kubeconfig = trouble.kubeconfig(testbed.launcher(), place, Some(token))?;
    let mut flags = flags(testbed, place);
    flags.push("--leader-elect=false".to_owned());
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let mut controllers = Running::as_user(CLUSTERS, &kubeconfig, &flags)?;
    for (number, fault) in FAULTS.into_iter().enumerate() {
        let name = format!("published-troubled{number}");
        trouble.begin(fault, &BEGINNING);
        controllers.restart()?;
        registered(testbed, &name, &json!({}))?;
        condition(testbed, place, &name, "True").with_context(|| format!("after {fault:?}"))?;
        trouble.ensure_failed(&BEGUN)?;
        // Watches that are open end as well.
        trouble.begin(fault, &["watch ", "remove clusterprofiles"]);
        server.delete(&format!("secret {name} -n {CLUSTERS}"))?;
        let line = format!("clusterprofiles.multicluster.x-k8s.io {name} -n {place}");
        let is_gone = || Ok(server.read(&line)?.is_null());
        wait::until_true("the end of its profile", SOON, is_gone).with_context(|| format!("after {fault:?}"))?;
        trouble.ensure_failed(&["watch secrets", "remove clusterprofiles"])?;
    }
    Ok(())
}
