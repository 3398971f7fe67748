//! Output that arrives while it happens: `get -w` and `logs -f`. A route that buffers before it
//! forwards fails here.

use std::io::Write as _;

use hub_tests::prelude::*;
use libtest_mimic::Trial;

use crate::compare::Ways;
use crate::fixture::Fixture;

/// Time for kubectl to see an event; a tenth of a second is usual.
const LIMIT: Duration = Duration::from_secs(10);

pub(crate) fn trials(fixture: &Arc<Fixture>, ways: Ways) -> Vec<Trial> {
    vec![
        ways.test(fixture, "watches::get -w shows every change as it happens", move |testbed| watch(testbed, ways)),
        ways.test(fixture, "watches::get -w of a Table", move |testbed| watch_table(testbed, ways)),
        ways.test(fixture, "watches::logs -f grows line by line", move |testbed| follow(testbed, ways)),
    ]
}

fn watch(testbed: &Testbed, ways: Ways) -> Result<()> {
    let kubectl = testbed.member.server.kubectl();
    for route in ways.all() {
        let namespace = format!("watch-{}", ways.scope(route));
        testbed.member.server.create_namespace(&namespace)?;
        let words = format!("get configmaps -n {namespace} -l seen=yes -w --output-watch-events");
        let mut watch = testbed.kubectl(route).args(words.split(' ')).start()?;
        for (change, line) in [
            ("create configmap first", None),
            ("label configmap first seen=yes", Some("ADDED first")),
            ("annotate configmap first note=changed", Some("MODIFIED first")),
            ("delete configmap first", Some("DELETED first")),
        ] {
            kubectl.ok(&format!("{change} -n {namespace}"))?;
            let Some(expected) = line else { continue };
            let mut seen = watch.next_line(LIMIT).with_context(|| format!("{} after {change}", route.name()))?;
            if seen.starts_with("EVENT") {
                seen = watch.next_line(LIMIT)?; // the heading comes with the first event
            }
            let seen = seen.split_whitespace().take(2).collect::<Vec<_>>().join(" "); // event and name
            ensure!(seen == expected, "via {}: {seen:?} instead of {expected:?}", route.name());
        }
    }
    Ok(())
}

fn watch_table(testbed: &Testbed, ways: Ways) -> Result<()> {
    let namespace = &format!("watch-table-{}", ways.scope(Route::Direct));
    testbed.member.server.create_namespace(namespace)?;
    let start =
        |route: Route| testbed.kubectl(route).args(["get", "pods", "-n", namespace, "-w", "-o", "wide"]).start();
    let mut watches = Vec::new();
    testbed.member.run_pod(namespace, "first", "")?;
    for route in ways.all() {
        let mut watch = start(route)?;
        watch.next_line(LIMIT)?; // heading
        let line = watch.next_line(LIMIT)?;
        ensure!(line.starts_with("first") && line.contains("Running"), "via {}: {line}", route.name());
        watches.push((route, watch));
    }
    testbed.member.server.label(&format!("pod first -n {namespace} changed=yes"))?;
    for (route, watch) in &mut watches {
        let line = watch.next_line(LIMIT)?;
        ensure!(line.starts_with("first") && line.contains("Running"), "via {}: {line}", route.name());
    }
    Ok(())
}

fn follow(testbed: &Testbed, ways: Ways) -> Result<()> {
    let namespace = &format!("follow-{}", ways.scope(Route::Direct));
    testbed.member.server.create_namespace(namespace)?;
    testbed.member.run_pod(namespace, "talker", "before\n")?;
    let mut log = std::fs::OpenOptions::new()
        .append(true)
        .open(testbed.member.container(namespace, "talker").join("main.log"))
        .context("the log")?;
    let mut followers = Vec::new();
    for route in ways.all() {
        let follower = testbed.kubectl(route).args(["logs", "-f", "talker", "-n", namespace]).start()?;
        followers.push((route, follower));
    }
    // One line at a time: nothing larger follows that could push a buffered line out.
    for text in ["before", "first", "second", "third"] {
        if text != "before" {
            writeln!(log, "{text}")?;
        }
        for (route, follower) in &mut followers {
            let line = follower.next_line(LIMIT).with_context(|| format!("via {}", route.name()))?;
            ensure!(line == text, "via {}: {line:?} instead of {text:?}", route.name());
        }
    }
    Ok(())
}
