//! `get -w` on the gateway's own resources: every change of a Secret arrives as the corresponding
//! event of its cluster.

use anyhow::{Context as _, Result, ensure};
use hub_tests::hub::{MemberSecret, SECRET_NAMESPACE};
use hub_tests::kubectl::Running;
use hub_tests::testbed::{Route, Testbed};

use super::{LIMIT, Version, register};

const KIND: &str = "cluster.core.oam.dev/cluster-credential-type";

pub(super) fn watches(testbed: &Testbed, version: Version, route: Route) -> Result<()> {
    let kubectl = version.viewer(testbed, route)?;
    let cluster = &format!("watched-{version:?}-{}", route.name()).to_lowercase();
    register(testbed, &kubectl, cluster)?;
    let selector = format!("--field-selector=metadata.name={cluster}");
    let start = |words: &str| kubectl.args(words.split(' ')).start();
    let mut table = start(&format!("get clustergateways {selector} -w --output-watch-events"))?;
    let mut virtual_table = start(&format!("get vc {selector} -w --output-watch-events"))?;
    let mut future = start(&format!("get clustergateways {selector} --watch-only --output-watch-events"))?;
    for watch in [&mut table, &mut virtual_table] {
        ensure!(watch.next_line(LIMIT)?.starts_with("EVENT"), "no heading");
        event(watch, "ADDED", cluster)?;
    }

    let operator = testbed.hub.server.kubectl();
    let secret = format!("secret {cluster} -n {SECRET_NAMESPACE}");
    // Changes for --watch-only, whose beginning has no sign: later changes count only from its
    // first event on.
    let mut marks = 0;
    hub_tests::wait::until("the watch of what comes", LIMIT, || {
        marks += 1;
        testbed.hub.server.annotate(&format!("{secret} mark={marks}"))?;
        future.next_line(std::time::Duration::from_millis(500)).map(drop)
    })?;
    for (change, expected) in [
        (format!("label {secret} {KIND}-"), "DELETED"),
        (format!("label {secret} {KIND}=ServiceAccountToken"), "ADDED"),
        (format!("delete {secret}"), "DELETED"),
    ] {
        operator.ok(&change)?;
        for watch in [&mut table, &mut virtual_table, &mut future] {
            next_but_modified(watch, expected, cluster).with_context(|| change.clone())?;
        }
    }
    testbed.hub.register_member(cluster, &MemberSecret::with_token(&testbed.member.server, &testbed.member_token))?;
    event(&mut table, "ADDED", cluster)?;
    let waiting =
        start(&format!("wait clustergateway/{cluster} --for=jsonpath={{.status.healthy}}=true --timeout=30s"))?;
    testbed.hub.server.annotate(&format!("{secret} status.cluster.core.oam.dev/healthy=true"))?;
    ensure!(waiting.wait(LIMIT)? == 0, "kubectl wait does not see that the cluster is healthy");
    let waiting = start(&format!("wait clustergateway/{cluster} --for=delete --timeout=30s"))?;
    testbed.hub.forget_member(cluster)?;
    ensure!(waiting.wait(LIMIT)? == 0, "kubectl wait does not see that the cluster is gone");
    Ok(())
}

fn event(watch: &mut Running, kind: &str, cluster: &str) -> Result<()> {
    let line = watch.next_line(LIMIT)?;
    let words: Vec<&str> = line.split_whitespace().collect();
    let found = words.first() == Some(&kind) && words.get(1) == Some(&cluster);
    ensure!(found, "{line:?} instead of {kind} {cluster}");
    Ok(())
}

/// The marks are changes, too.
fn next_but_modified(watch: &mut Running, kind: &str, cluster: &str) -> Result<()> {
    loop {
        let line = watch.next_line(LIMIT)?;
        if !line.starts_with("MODIFIED") && !line.starts_with("EVENT") {
            ensure!(line.starts_with(kind) && line.contains(cluster), "{line:?} instead of {kind} {cluster}");
            return Ok(());
        }
    }
}
