//! `get`.

use std::sync::Arc;

use anyhow::{Result, ensure};
use hub_tests::hub::MemberSecret;
use hub_tests::ports;
use hub_tests::testbed::{CLUSTER, CLUSTER_X509, Testbed};
use libtest_mimic::Trial;
use serde_json::Value;

use crate::fixture::{Fixture, clusters, ended, test};

pub fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![test(fixture, "get::objects of many clusters are one table, and failures come last", many)]
}

fn many(testbed: &Testbed) -> Result<()> {
    testbed.member.server.create_namespace("cli-get")?;
    testbed.member.run_pod("cli-get", "web", "")?;
    let dead = format!("https://127.0.0.1:{}", ports::free()?);
    testbed.hub.register_member(
        "get-dead",
        &MemberSecret::with_token(&testbed.member.server, &testbed.member_token).at(&dead),
    )?;
    let program = clusters(testbed);
    let both = format!("{CLUSTER_X509},{CLUSTER}");
    let table = ended(&program, &format!("get pods {both} -n cli-get"), 0)?.stdout;
    let lines: Vec<Vec<_>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    ensure!(lines[0] == ["CLUSTER", "NAME", "READY", "STATUS", "RESTARTS", "AGE"], "{table}");
    ensure!(lines[1][..2] == [CLUSTER, "web"] && lines[2][..2] == [CLUSTER_X509, "web"] && lines.len() == 3, "{table}");
    // The same by another name, in all namespaces, with a cluster that is away.
    let some = ended(&program, &format!("get po {both},get-dead -A --where app=web"), 1)?;
    ensure!(some.stdout.contains("NAMESPACE") && some.stdout.lines().count() == 3, "{some:?}");
    ensure!(
        some.stderr.contains("error: cluster get-dead is unreachable: ")
            && some.stderr.contains("remedy: see whether the member"),
        "{some:?}"
    );
    let named: Value =
        serde_json::from_str(&ended(&program, &format!("get pods/web {CLUSTER} -n cli-get -o json"), 0)?.stdout)?;
    ensure!(named["clusters"][0]["items"][0]["metadata"]["name"] == "web", "{named}");
    let unknown = ended(&program, &format!("get widgets {both}"), 1)?.stderr;
    ensure!(unknown.contains("no cluster knows this resource"), "{unknown}");
    let none = ended(&program, "get pods", 2)?.stderr;
    ensure!(none.contains("--all"), "{none}");
    let absent = ended(&program, &format!("get pods/gone {CLUSTER} -n cli-get"), 1)?.stderr;
    ensure!(absent.contains("\"gone\" not found"), "{absent}");
    testbed.hub.forget_member("get-dead")
}
