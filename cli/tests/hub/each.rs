//! `exec-each`.

use std::sync::Arc;

use anyhow::{Result, ensure};
use hub_tests::hub::{MemberSecret, SECRET_NAMESPACE};
use hub_tests::testbed::Testbed;
use libtest_mimic::Trial;
use serde_json::json;

use crate::fixture::{Fixture, clusters, script, test};

/// Most commands that run at the same time, as the page says.
const AT_ONCE: usize = 16;
const CLUSTERS: usize = AT_ONCE + 4;
/// Waits until [`AT_ONCE`] run at the same time, and prints how many do. The shell polls, because
/// only the other commands can wake it.
const KUBECTL: &str = r#"#!/bin/sh
mkdir "$RUNS/$CLUSTER"
until [ -e "$RUNS.full" ]; do
    [ "$(ls "$RUNS" | wc -l)" -ge "$AT_ONCE" ] && : > "$RUNS.full" || sleep 0.02
done
ls "$RUNS" | wc -l
rmdir "$RUNS/$CLUSTER"
"#;

pub fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![test(fixture, "each::commands run for 16 clusters at a time, and not for more", bounded)]
}

fn bounded(testbed: &Testbed) -> Result<()> {
    let member = MemberSecret::with_token(&testbed.member.server, &testbed.member_token);
    let documents = (0..CLUSTERS).map(|number| {
        let mut document = member.document(&format!("each-{number:02}"));
        document["metadata"]["labels"]["cli-each"] = json!("yes");
        document
    });
    testbed.hub.apply(&documents.collect::<Vec<_>>())?;
    let directory = testbed.directory("cli-each")?;
    let (kubectl, runs) = (directory.join("kubectl"), testbed.directory("cli-each/runs")?);
    script(&kubectl, KUBECTL)?;
    let path = format!("{}:{}", directory.display(), std::env::var("PATH")?);
    let line = "exec-each -l cli-each=yes --timeout 20s --prefix -- kubectl";
    let each = clusters(testbed).args(line.split(' ')).env("PATH", &path).env("AT_ONCE", &AT_ONCE.to_string());
    let told = each.env("RUNS", &runs.to_string_lossy()).run()?.success()?;
    let counts: Vec<usize> = told.lines().filter_map(|line| line.rsplit(": ").next()?.trim().parse().ok()).collect();
    ensure!(counts.len() == CLUSTERS && counts.iter().max() == Some(&AT_ONCE), "{told}");
    testbed.hub.server.delete(&format!("secrets -n {SECRET_NAMESPACE} -l cli-each=yes"))
}
