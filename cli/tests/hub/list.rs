//! `list`.

use std::sync::Arc;

use anyhow::{Context as _, Result, bail, ensure};
use hub_tests::hub::{MemberSecret, SECRET_NAMESPACE};
use hub_tests::ports;
use hub_tests::prelude::Method;
use hub_tests::testbed::{ALL_VERBS, CLUSTER, CLUSTER_X509, Testbed};
use hub_tests::tunnel::CLUSTER_TUNNEL;
use hub_tests::wait;
use kit::member::{FakeMember, MemberOptions, Recorded, Reply};
use libtest_mimic::Trial;
use serde_json::{Value, json};
use std::time::Duration;

use crate::fixture::{Fixture, clusters, clusters_as, ended, hub_user, rule, test};

const LIMIT: Duration = Duration::from_secs(30);

pub fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![
        test(fixture, "list::each cluster says what it is, or why not", each),
        test(fixture, "list::agents that were installed by hand are counted where they are", installed),
        test(fixture, "list::what was reported of a cluster is told", reported),
        test(fixture, "list::what changes is shown while somebody watches", watched),
        test(fixture, "list::who may not read Secrets sees all but their dates", unprivileged),
        test(fixture, "list::a hub that cannot be asked is told from clusters that fail", unreachable),
        test(fixture, "list::what a member says of itself has an end", endless),
        test(fixture, "list::a cluster without a gateway is no hub, and says so", without_gateway),
    ]
}

fn each(testbed: &Testbed) -> Result<()> {
    let dead = format!("https://127.0.0.1:{}", ports::free()?);
    testbed.hub.register_member(
        "list-dead",
        &MemberSecret::with_token(&testbed.member.server, &testbed.member_token).at(&dead),
    )?;
    let program = clusters(testbed);
    let document: Value = serde_json::from_str(&ended(&program, "list -o json", 0)?.stdout)?;
    let rows = document["clusters"].as_array().context("clusters")?;
    let row = |name: &str| rows.iter().find(|row| row["name"] == name).with_context(|| format!("{name}: {document:#}"));
    let member = row(CLUSTER)?;
    ensure!(
        member["status"] == "Ready" && member["version"].as_str().is_some_and(|version| version.starts_with("v1.")),
        "{member}"
    );
    ensure!(member["latencyMillis"].is_u64() && member["endpoint"] == testbed.member.server.url(), "{member}");
    ensure!(
        member["credentialExpiresIn"].as_str().is_some_and(|left| left.ends_with('h')),
        "a token for 24 hours: {member}"
    );
    ensure!(row(CLUSTER_X509)?["credentialExpiresAt"].is_i64(), "{document:#}");
    let dead = row("list-dead")?;
    ensure!(
        dead["status"] == "Unreachable" && dead["reason"].as_str().is_some_and(|why| why.contains("dial tcp")),
        "{dead}"
    );
    let yaml = ended(&program, "list -o yaml", 0)?.stdout;
    let same: Value = serde_saphyr::from_str(&yaml)?;
    let same = same["clusters"].as_array().and_then(|rows| rows.iter().find(|row| row["name"] == CLUSTER_X509));
    let shown = |row: &Value| ["status", "version", "endpoint", "credentialExpiresAt"].map(|field| row[field].clone());
    ensure!(
        yaml.starts_with("clusters:\n") && same.map(shown) == Some(shown(row(CLUSTER_X509)?)),
        "not what JSON says: {yaml}"
    );
    let table = ended(&program, "list", 0)?.stdout;
    ensure!(table.starts_with("NAME ") && !table.contains("REASON"), "{table}");
    let rows: Vec<_> = table.lines().skip(1).filter_map(|line| line.split(' ').next()).collect();
    let told = ended(&program, "list -o name", 0)?.stdout;
    let names: Vec<_> = told.lines().collect();
    // Clusters of other tests come and go meanwhile.
    for name in [CLUSTER, CLUSTER_X509, "list-dead"] {
        ensure!(rows.contains(&name) && names.contains(&name), "{table}{told}");
    }
    ensure!(rows.is_sorted() && names.is_sorted(), "{table}{told}");
    ensure!(ended(&program, "list -l no=such", 0)?.stderr.contains("No clusters found"), "an empty list");
    testbed.hub.forget_member("list-dead")
}

/// Agents as the chart installs them, in two releases; no node runs the pods of one. Other agents
/// link the same member under another name.
fn installed(testbed: &Testbed) -> Result<()> {
    testbed.tunnelled()?;
    for (name, cluster, replicas, node) in
        [("one", CLUSTER_TUNNEL, 2, "linux"), ("two", CLUSTER_TUNNEL, 1, "none"), ("other", "elsewhere", 5, "none")]
    {
        let labels = json!({"app.kubernetes.io/name": "tunnel-agent", "app.kubernetes.io/instance": name});
        let containers = json!([{"name": "tunnel-agent", "image": "none", "args": [format!("--cluster={cluster}")]}]);
        let pod = json!({"containers": containers, "nodeSelector": {"kubernetes.io/os": node}});
        let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": format!("list-agents-{name}"), "namespace": "default", "labels": labels},
            "spec": {"replicas": replicas, "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": pod}}});
        testbed.member.server.apply(&[deployment])?;
    }
    wait::until("those that run to be counted", LIMIT, || {
        let document: Value = serde_json::from_str(&ended(&clusters(testbed), "list -o json", 0)?.stdout)?;
        let row = |name: &str| document["clusters"].as_array().into_iter().flatten().find(|row| row["name"] == name);
        let of = |name: &str| row(name).map(|row| row["agents"].clone()).with_context(|| format!("{document:#}"));
        ensure!(of(CLUSTER_TUNNEL)? == json!({"linked": 2, "wanted": 3}), "{document:#}");
        ensure!(of(CLUSTER)?.is_null(), "of one that is dialled: {document:#}");
        Ok(())
    })?;
    let names = ["one", "two", "other"].map(|name| format!("list-agents-{name}")).join(" ");
    testbed.member.server.delete(&format!("deployment {names} -n default"))
}

/// The member answers, but a report says that it is unhealthy.
fn reported(testbed: &Testbed) -> Result<()> {
    let member = MemberSecret::with_token(&testbed.member.server, &testbed.member_token);
    testbed.hub.register_member("list-reported", &member)?;
    let (program, hub) = (clusters(testbed), &testbed.hub.server);
    let path = "/apis/cluster.core.oam.dev/v1alpha1/clustergateways/list-reported/health";
    for (healthy, status, reason) in
        [(false, "Unhealthy", "reported: disk full"), (true, "Ready", ""), (false, "Unhealthy", "reported: disk full")]
    {
        let report = json!({"apiVersion": "cluster.core.oam.dev/v1alpha1", "kind": "ClusterGateway",
            "metadata": {"name": "list-reported"}, "status": {"healthy": healthy, "healthyReason": "disk full"}});
        let answer = hub.ask(&Method::PUT, path, "application/json", &report)?;
        ensure!(answer.status.is_success(), "{}", answer.text());
        let told = ended(&program, "list -o json", 0)?.stdout;
        let rows: Value = serde_json::from_str(&told)?;
        let row = rows["clusters"].as_array().into_iter().flatten().find(|row| row["name"] == "list-reported");
        let row = row.with_context(|| told.clone())?;
        ensure!(row["status"] == status && row["reason"].as_str().unwrap_or_default() == reason, "{row}");
    }
    let wide = ended(&program, "list -o wide", 0)?.stdout;
    let row = wide.lines().find(|row| row.starts_with("list-reported ")).with_context(|| wide.clone())?;
    ensure!(row.contains(" Unhealthy ") && row.contains("disk full"), "{wide}");
    testbed.hub.forget_member("list-reported")
}

fn watched(testbed: &Testbed) -> Result<()> {
    let program = clusters(testbed);
    let member = MemberSecret::with_token(&testbed.member.server, &testbed.member_token);
    ended(&program, "list -w -o json", 2)?;
    let words = "list -w --interval 100ms -l cli-watch=yes";
    let mut watching = program.args(words.split(' ')).start()?;
    testbed.hub.register_member("list-watched", &member)?;
    testbed.hub.server.label(&format!("secret list-watched -n {SECRET_NAMESPACE} cli-watch=yes"))?;
    ensure!(watching.next_line(LIMIT)?.starts_with("NAME "), "a table");
    let row = watching.next_line(LIMIT)?;
    ensure!(row.starts_with("list-watched ") && row.contains(" Ready "), "{row}");
    testbed.hub.forget_member("list-watched")?;
    // Between its end and the end of its connections, it may be seen with another status.
    for _ in 0..10 {
        if watching.next_line(LIMIT)?.contains(" Gone ") {
            return Ok(());
        }
    }
    bail!("its end is not shown")
}

fn unprivileged(testbed: &Testbed) -> Result<()> {
    let token = testbed.hub.create_user("list-user", &[CLUSTER], ALL_VERBS)?;
    let program = clusters_as(testbed, &hub_user(testbed, "list-user", &token)?);
    let refused = ended(&program, "list", 3)?.stderr;
    ensure!(refused.contains("clustergateways") && refused.contains("remedy:"), "{refused}");
    let lists = json!([rule("cluster.core.oam.dev", &["clustergateways"], &["list"])]);
    testbed.hub.server.grant("list-user-lists", None, &lists, ("default", "list-user"))?;
    let table = ended(&program, "list -o wide", 0)?.stdout;
    let row =
        |name: &str| table.lines().find(|line| line.split(' ').next() == Some(name)).with_context(|| table.clone());
    let own: Vec<_> = row(CLUSTER)?.split_whitespace().collect();
    ensure!(own[1] == "Ready" && own[7] == "-", "{table}");
    ensure!(row(CLUSTER_X509)?.contains("Forbidden"), "{table}");
    Ok(())
}

fn unreachable(testbed: &Testbed) -> Result<()> {
    let program = clusters(testbed);
    let lost = program.args(["list", "--kubeconfig", "/nowhere/kubeconfig"]).run()?;
    ensure!(
        lost.status == 2 && lost.stderr.contains("/nowhere/kubeconfig") && lost.stderr.contains("remedy:"),
        "{lost:?}"
    );
    let context = ended(&program, "list --context prod", 2)?.stderr;
    ensure!(context.contains("\"prod\"") && context.contains("there are it"), "{context}");
    let dead = hub_tests::kubeconfig::Kubeconfig {
        server: format!("https://127.0.0.1:{}", ports::free()?),
        authority: testbed.hub.server.authority_file().to_path_buf(),
        credential: hub_tests::kubeconfig::Credential::None,
    };
    let dead = dead.write(testbed.launcher().file("cli-dead.kubeconfig"))?;
    let told = ended(&clusters_as(testbed, &dead), "list", 3)?.stderr;
    ensure!(told.contains("refused") && told.contains("remedy: check that the hub's address"), "{told}");
    let stranger = hub_user(testbed, "stranger", "no-such-token")?;
    let told = ended(&clusters_as(testbed, &stranger), "list", 3)?.stderr;
    ensure!(told.contains("renew the credential"), "{told}");
    Ok(())
}

/// As with the wrong context, or before a gateway is installed.
fn without_gateway(testbed: &Testbed) -> Result<()> {
    let admin = testbed.member.server.kubectl().kubeconfig;
    let program = clusters_as(testbed, &admin);
    let join = format!("join bodo --rights view --member-kubeconfig {} --endpoint https://10.0.0.7", admin.display());
    for line in ["list", "get pods --all", "kubeconfig --all", "rotate bodo", "probe bodo", &join] {
        let told = ended(&program, line, 3)?.stderr;
        for part in ["this hub has no gateway", "remedy: choose the hub with --context", "--set image.repository="] {
            ensure!(told.contains(part), "`{line}`: {part}: {told}");
        }
    }
    // Nothing is known about a cluster that is given by name.
    let named = ended(&program, "get pods bodo", 1)?.stderr;
    ensure!(named.contains("remedy: check whether this hub has a gateway"), "{named}");
    let checked = ended(&program, "check", 1)?.stdout;
    ensure!(checked.contains("✗ there is no APIService") && checked.contains("--set image.repository="), "{checked}");
    Ok(())
}

/// Members whose texts are too long: the version, the user that asks, and the cause of a failure.
fn endless(testbed: &Testbed) -> Result<()> {
    let long = "x".repeat(20_000);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let start = || runtime.block_on(FakeMember::start(MemberOptions::default()));
    let (talker, failing) = (start(), start());
    let told = long.clone();
    talker.on_any(move |request: &Recorded| match request.path() {
        "/version" => Reply::json(200, &json!({"gitVersion": told})),
        _ => Reply::json(201, &json!({"status": {"userInfo": {"username": told}}})),
    });
    let told = long.clone();
    failing.on_any(move |_: &Recorded| {
        Reply::json(500, &json!({"kind": "Status", "status": "Failure", "message": told, "code": 500}))
    });
    for (name, member) in [("list-talker", &talker), ("list-failing", &failing)] {
        let secret =
            MemberSecret::with_token(&testbed.member.server, "t").at(&member.url()).trusting(member.authority());
        testbed.hub.register_member(name, &secret)?;
    }
    let alias = format!("cluster.core.oam.dev/cluster-alias={long}");
    testbed.hub.server.annotate(&format!("secret list-talker -n {SECRET_NAMESPACE} {alias}"))?;
    let program = clusters(testbed);
    let document: Value = serde_json::from_str(&ended(&program, "list -o json", 0)?.stdout)?;
    let row = |name: &str| document["clusters"].as_array()?.iter().find(|row| row["name"] == name);
    let length = |name: &str, field: &str| row(name).and_then(|row| Some(row[field].as_str()?.chars().count()));
    let lengths = [("list-talker", "version"), ("list-talker", "alias"), ("list-failing", "reason")]
        .map(|(name, field)| length(name, field));
    ensure!(lengths == [Some(65), Some(257), Some(4096)], "{lengths:?}");
    let probed = ended(&program, "probe list-talker", 0)?.stdout;
    ensure!(probed.lines().all(|line| line.len() < 500), "{probed}");
    // An answer that is longer than any version is not read to its end.
    let told = "x".repeat(100_000);
    talker.on_any(move |_: &Recorded| Reply::json(200, &json!({"gitVersion": told})));
    let unread = ended(&program, "probe list-talker", 1)?.stderr;
    ensure!(unread.contains("length limit exceeded") && unread.len() < 2000, "{unread}");
    testbed.hub.forget_member("list-talker")?;
    testbed.hub.forget_member("list-failing")
}
