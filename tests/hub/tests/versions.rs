//! kubectl of the oldest and of the newest version, on the gateway's own resources and through it
//! into pods.
//!
//! The oldest knows no aggregated discovery v2, no streamed lists and no WebSocket: it finds
//! everything by other documents, and runs exec over SPDY with protocol v4.

mod tables;
mod watches;

use hub_tests::kubectl::{Kubectl, Output};
use hub_tests::prelude::*;
use libtest_mimic::Trial;

use crate::fixture::{Fixture, test};
use crate::{forward, streams, viewer};

/// Time for kubectl to see a change; a tenth of a second is usual.
const LIMIT: Duration = Duration::from_secs(10);

/// Both ends of the range of versions.
#[derive(Clone, Copy, Debug)]
enum Version {
    Oldest,
    Newest,
}

pub(crate) fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    let mut trials = Vec::new();
    for version in [Version::Oldest, Version::Newest] {
        for route in Route::PROXIED {
            let name = |what: &str| format!("versions::{version:?} kubectl via {}: {what}", route.name());
            trials.push(test(fixture, name("get, describe, explain"), move |testbed| {
                tables::tables(testbed, version, route)
            }));
            trials
                .push(test(fixture, name("get -w and wait"), move |testbed| watches::watches(testbed, version, route)));
        }
    }
    for route in Route::PROXIED {
        let name = format!("versions::Oldest kubectl via {}: exec, logs -f, port-forward", route.name());
        trials.push(test(fixture, name, move |testbed| into_pods(testbed, route)));
    }
    trials
}

// === impl Version ===

impl Version {
    /// kubectl of this version as the viewer, for the hub's or the gateway's own resources.
    fn viewer(self, testbed: &Testbed, route: Route) -> Result<Kubectl> {
        let kubectl = viewer::kubectl(testbed, route)?;
        Ok(match self {
            Self::Oldest => testbed.oldest(kubectl),
            Self::Newest => kubectl,
        })
    }
}

/// Registers a cluster of this trial only, which the gateway knows when this returns.
fn register(testbed: &Testbed, kubectl: &Kubectl, cluster: &str) -> Result<()> {
    testbed.hub.register_member(cluster, &MemberSecret::with_token(&testbed.member.server, &testbed.member_token))?;
    wait::until("the new cluster", LIMIT, || kubectl.ok(&format!("get clustergateway {cluster} -o name")))?;
    Ok(())
}

fn run(kubectl: &Kubectl, line: &str) -> Result<Output> {
    kubectl.args(line.split(' ')).run()
}

fn into_pods(testbed: &Testbed, route: Route) -> Result<()> {
    streams::pod(testbed)?;
    let kubectl = testbed.oldest(testbed.kubectl(route));
    let version = kubectl.ok("version -o json")?;
    ensure!(version.contains(r#""gitVersion": "v1.27"#) && version.contains(r#""serverVersion""#), "{version}");

    let output = kubectl.args(["exec", "-i", "shell", "-n", "streams", "--", "sh", "-c", "cat; echo err >&2; exit 7"]);
    let output = output.stdin("one\ntwo").run()?;
    ensure!(output.status == 7 && output.stdout == "one\ntwo", "{output:?}");
    ensure!(output.stderr.starts_with("err\n"), "{output:?}");

    let name = format!("aged-{}", route.name());
    testbed.member.run_pod("streams", &name, "before\n")?;
    let mut follower = kubectl.args(["logs", "-f", &name, "-n", "streams"]).start()?;
    for text in ["before", "after"] {
        if text == "after" {
            let path = testbed.member.container("streams", &name).join("main.log");
            std::fs::write(&path, "before\nafter\n").context("the log")?;
        }
        let line = follower.next_line(LIMIT)?;
        ensure!(line == text, "{line:?} instead of {text:?}");
    }
    forward::small_echo(&kubectl)
}
