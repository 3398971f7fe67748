//! kubectl of the oldest and of the newest version, on the gateway's own resources and through it
//! into pods.
//!
//! The oldest knows no aggregated discovery v2, no streamed lists and no WebSocket: it finds
//! everything by other documents, and execs over SPDY with protocol v4.

mod tables;
mod watches;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use hub_tests::hub::MemberSecret;
use hub_tests::kubectl::{Kubectl, Output};
use hub_tests::lab::{Lab, Route};
use hub_tests::wait;
use libtest_mimic::Trial;

use crate::stage::{Stage, test};
use crate::{forward, streams, viewer};

/// For a change to be seen by kubectl; a tenth of a second is usual.
const LIMIT: Duration = Duration::from_secs(10);

/// Both ends of the range of versions.
#[derive(Clone, Copy, Debug)]
enum Version {
    Oldest,
    Newest,
}

pub(crate) fn trials(stage: &Arc<Stage>) -> Vec<Trial> {
    let mut trials = Vec::new();
    for version in [Version::Oldest, Version::Newest] {
        for route in Route::PROXIED {
            let name = |what: &str| format!("versions::{version:?} kubectl via {}: {what}", route.name());
            trials.push(test(stage, name("get, describe, explain"), move |lab| tables::tables(lab, version, route)));
            trials.push(test(stage, name("get -w and wait"), move |lab| watches::watches(lab, version, route)));
        }
    }
    for route in Route::PROXIED {
        let name = format!("versions::Oldest kubectl via {}: exec, logs -f, port-forward", route.name());
        trials.push(test(stage, name, move |lab| into_pods(lab, route)));
    }
    trials
}

// === impl Version ===

impl Version {
    /// kubectl of this version as the viewer, for the hub's or the gateway's own resources.
    fn viewer(self, lab: &Lab, route: Route) -> Result<Kubectl> {
        let kubectl = viewer::kubectl(lab, route)?;
        Ok(match self {
            Self::Oldest => lab.oldest(kubectl),
            Self::Newest => kubectl,
        })
    }
}

/// A cluster of this trial alone, which is known to the gateway when this returns.
fn register(lab: &Lab, kubectl: &Kubectl, cluster: &str) -> Result<()> {
    lab.hub.register_member(cluster, &MemberSecret::with_token(&lab.member.server, &lab.member_token))?;
    wait::until("the new cluster", LIMIT, || kubectl.ok(&format!("get clustergateway {cluster} -o name")))?;
    Ok(())
}

fn run(kubectl: &Kubectl, line: &str) -> Result<Output> {
    kubectl.args(line.split(' ')).run()
}

fn into_pods(lab: &Lab, route: Route) -> Result<()> {
    streams::pod(lab)?;
    let kubectl = lab.oldest(lab.kubectl(route));
    let version = kubectl.ok("version -o json")?;
    ensure!(version.contains(r#""gitVersion": "v1.27"#) && version.contains(r#""serverVersion""#), "{version}");

    let output = kubectl.args(["exec", "-i", "shell", "-n", "streams", "--", "sh", "-c", "cat; echo err >&2; exit 7"]);
    let output = output.stdin("one\ntwo").run()?;
    ensure!(output.status == 7 && output.stdout == "one\ntwo", "{output:?}");
    ensure!(output.stderr.starts_with("err\n"), "{output:?}");

    let name = format!("aged-{}", route.name());
    lab.member.run_pod("streams", &name, "before\n")?;
    let mut follower = kubectl.args(["logs", "-f", &name, "-n", "streams"]).start()?;
    for text in ["before", "after"] {
        if text == "after" {
            let path = lab.member.container("streams", &name).join("main.log");
            std::fs::write(&path, "before\nafter\n").context("the log")?;
        }
        let line = follower.next_line(LIMIT)?;
        ensure!(line == text, "{line:?} instead of {text:?}");
    }
    forward::small_echo(&kubectl)
}
