//! The rights that the documentation grants to see all, granted as it says.

use anyhow::{Context as _, Result, ensure};
use hub_tests::kubeconfig::Credential;
use hub_tests::page::{commands, section};
use hub_tests::testbed::{CLUSTER, Testbed};
use hub_tests::tunnel::CLUSTER_TUNNEL;
use kit::pki::Leaf;

use super::{LIMIT, Parts, start};
use crate::fixture::{clusters_as, ended};

const PAGE: &str = include_str!("../../../../docs/cli.md");
/// All that is needed to look at it is granted to her alone.
const USER: &str = "jane";

pub fn granted(testbed: &Testbed) -> Result<()> {
    testbed.tunnelled()?;
    let hub = &testbed.hub.server;
    let lines = commands(section(PAGE, "With these rights, Jane sees every cluster", "\n## kubeconfig")?);
    ensure!(lines.len() == 2, "other commands: {lines:?}");
    hub.kubectl().shell(&lines.join("\n"))?.run()?.success()?;
    let files = hub.authority().issue(&Leaf::client(USER)).write_to(&testbed.launcher().directory, "page-jane")?;
    let program = clusters_as(testbed, &hub.kubeconfig("page-jane", Credential::Certificate(files))?);
    let (_running, address) = start(&program, "")?;
    for cluster in [CLUSTER, CLUSTER_TUNNEL] {
        let mut events = address.events("events?v=0")?;
        events.until(LIMIT, |patch| patch["clusters"][cluster]["status"] == "Ready").context("she sees it")?;
        let mut events = address.events(&format!("clusters/{cluster}/events"))?;
        let mut parts = Parts::default();
        parts.until(&mut events, "way", |way| way.contains("</i>credential</b>"))?;
        let way = parts.of("way");
        let tunnel = ["tunnel-server", "tunnel-agent"].into_iter().filter(|_| cluster == CLUSTER_TUNNEL);
        for hop in ["hub", "gateway", "registration", "member"].into_iter().chain(tunnel) {
            ensure!(way.contains(&format!("</i>{hop}</b>")), "{hop}: {way}");
        }
        ensure!(!way.contains("class=\"bad\"") && !way.contains("to see its time you need"), "{way}");
        parts.until(&mut events, "answers", |answers| answers.contains("<b>200</b>"))?;
        parts
            .until(&mut events, "traffic", |traffic| traffic.contains("requests / s") && !traffic.contains("<dd>…"))?;
        ensure!(!parts.of("notices").contains("Traffic and failures are not shown"), "{}", parts.of("notices"));
    }
    // What her hub's rights let her read of a member, and no more.
    ended(&program, &format!("get secrets {CLUSTER} -n kube-system"), 0)?;
    let written = ended(&program, &format!("exec-each {CLUSTER} -- {} create namespace jane", kubectl(testbed)), 1)?;
    ensure!(format!("{written:?}").contains("forbidden"), "{written:?}");
    hub.delete("clusterrolebinding clusters-dashboard")?;
    hub.delete("clusterrole clusters-dashboard")
}

fn kubectl(testbed: &Testbed) -> String {
    testbed.hub.server.kubectl().binary.display().to_string()
}
