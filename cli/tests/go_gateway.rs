//! Tests `kubectl clusters` against the Go cluster-gateway (oam-dev/cluster-gateway v1.9.1). A
//! scripted hub answers what a real one with that gateway answered, without certificates and other
//! resources.

#[allow(dead_code, reason = "the tests on a hub use the rest")]
#[path = "hub/dashboard/http.rs"]
mod http;

use std::collections::HashMap;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use hub_tests::kubeconfig::{Credential, Kubeconfig};
use hub_tests::kubectl::{Kubectl, Output};
use kit::member::{FakeMember, MemberOptions, Recorded, Reply};
use serde_json::Value;
use tempfile::TempDir;
use tokio::runtime::Runtime;

use self::http::Address;

const ANSWERS: &str = include_str!("go_gateway/recorded.json");
const PATH: &str = "/apis/cluster.core.oam.dev/v1alpha1/clustergateways";
const LIMIT: Duration = Duration::from_secs(30);

/// A hub with the Go cluster-gateway, and the program as its administrator.
struct Hub {
    program: Kubectl,
    member: FakeMember,
    runtime: Runtime,
    _directory: TempDir,
}

// === impl Hub ===

impl Hub {
    fn start() -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let member = runtime.block_on(FakeMember::start(MemberOptions::default()));
        let answers = answers()?;
        member.on_any(move |request| answers.get(&key(request)).map_or_else(unrecorded, reply));
        let directory = tempfile::tempdir()?;
        let authority = directory.path().join("ca.crt");
        std::fs::write(&authority, member.ca_pem())?;
        let kubeconfig = Kubeconfig { server: member.url(), authority, credential: Credential::Token("admin".into()) };
        let program = Kubectl {
            binary: env!("CARGO_BIN_EXE_kubectl-clusters").into(),
            kubeconfig: kubeconfig.write(directory.path().join("kubeconfig"))?,
            cache: directory.path().join("cache"),
        };
        Ok(Self { program, member, runtime, _directory: directory })
    }

    /// Runs a command line, which must end with `code`. Returns its output.
    fn ended(&self, line: &str, code: i32) -> Result<Output> {
        let output = self.program.args(line.split_whitespace()).run()?;
        ensure!(output.status == code, "`{line}`: {output:?}");
        ensure!(!output.stderr.contains("panicked"), "{output:?}");
        Ok(output)
    }

    /// Checks that a command line fails, with these words in its output.
    fn fails(&self, line: &str, parts: &[&str]) -> Result<()> {
        let output = self.ended(line, 1)?;
        let told = format!("{}{}", output.stdout, output.stderr);
        for part in parts {
            ensure!(told.contains(part), "`{line}`: {part}: {told}");
        }
        Ok(())
    }
}

fn answers() -> Result<HashMap<String, Value>> {
    let all: Vec<Value> = serde_json::from_str(ANSWERS)?;
    let key = |answer: &Value| Some(format!("{} {}", answer["method"].as_str()?, answer["path"].as_str()?));
    all.into_iter().map(|answer| Ok((key(&answer).context("method and path")?, answer))).collect()
}

fn key(request: &Recorded) -> String {
    format!("{} {}", request.method, request.target)
}

fn reply(answer: &Value) -> Reply {
    let code = answer["code"].as_u64().and_then(|code| u16::try_from(code).ok()).expect("a code");
    let kind = answer["type"].as_str().unwrap_or("application/json");
    let body = answer["body"].as_str().map_or_else(|| answer["body"].to_string(), str::to_owned);
    Reply::full(code, &[("content-type", kind)], body)
}

/// The response for the hub's own resources, which the person may not read.
fn unrecorded() -> Reply {
    Reply::status(403, "this is forbidden")
}

/// The words of the row of `name`.
fn row<'a>(table: &'a str, name: &str) -> Result<Vec<&'a str>> {
    let row = table.lines().find(|row| row.split_whitespace().next() == Some(name));
    Ok(row.with_context(|| format!("{name}: {table}"))?.split_whitespace().collect())
}

#[test]
fn clusters_are_listed_with_what_each_answers() -> Result<()> {
    let hub = Hub::start()?;
    let listed = hub.ended("list -o wide", 0)?.stdout;
    let member = row(&listed, "member")?;
    assert_eq!((member[1], member[2], member[4]), ("Ready", "v1.35.4", "Const"), "{listed}");
    assert_eq!(row(&listed, "badtoken")?[1], "CredentialRefused", "{listed}");
    for (name, cause) in [("dead", "connection refused"), ("broken", "PEM block"), ("oslo", "cluster proxy client")] {
        let row = row(&listed, name)?;
        ensure!(row[1] == "Failed" && row.join(" ").contains(cause), "{row:?}");
    }
    let names = hub.ended("list --no-probe -o name", 0)?.stdout;
    assert_eq!(names.lines().collect::<Vec<_>>(), ["badtoken", "broken", "dead", "member", "oslo"]);
    // A shell completes the names.
    let offered = hub.ended("completion kubectl -- probe m", 0)?.stdout;
    assert_eq!(offered, "member\n:4\n");
    Ok(())
}

#[test]
fn a_probe_names_the_hop_that_fails() -> Result<()> {
    let hub = Hub::start()?;
    let good = hub.ended("probe member", 0)?.stdout;
    let hops = good.lines().filter_map(|line| line.strip_prefix("✓ ")?.split(' ').next());
    assert_eq!(hops.collect::<Vec<_>>(), ["hub", "gateway", "registration", "member", "credential"], "{good}");
    ensure!(good.contains("accepted, as system:serviceaccount:default:gateway"), "{good}");
    hub.fails("probe dead", &["✗ member", "connection refused", "remedy: "])?;
    hub.fails("probe badtoken", &["✗ credential", "Unauthorized", "rotate badtoken"])?;
    hub.fails("probe broken", &["✗ registration", "PEM block", "the cluster's Secret"])?;
    hub.fails("probe oslo", &["✗ registration", "cluster proxy client", "OCM's cluster-proxy"])?;
    hub.fails("probe nosuch", &["✗ registration", "secret \"nosuch\" not found", "join nosuch"])
}

#[test]
fn a_check_says_of_each_cluster_what_to_do() -> Result<()> {
    let hub = Hub::start()?;
    let checked = hub.ended("check", 1)?.stdout;
    for part in [
        "✓ it answers: Kubernetes v1.35.4",
        "✓ member: Kubernetes v1.35.4",
        "✗ badtoken: CredentialRefused: Unauthorized\n    remedy: `kubectl clusters rotate badtoken",
        "✗ dead: Failed: dial tcp 127.0.0.1:26999: connect: connection refused\n    remedy: check that the member's",
        "✗ broken: Failed: 500: ",
        "remedy: correct what the message names",
    ] {
        ensure!(checked.contains(part), "{part}: {checked}");
    }
    Ok(())
}

#[test]
fn reads_over_many_clusters_are_one_table() -> Result<()> {
    let hub = Hub::start()?;
    let output = hub.ended("get ns --all", 1)?;
    assert_eq!(row(&output.stdout, "member")?[..3], ["member", "default", "Active"], "{output:?}");
    for (name, cause) in [("dead", "connection refused"), ("badtoken", "Unauthorized"), ("oslo", "cluster-proxy")] {
        let told = output.stderr.lines().find(|line| line.starts_with(&format!("error: cluster {name}: ")));
        ensure!(told.is_some_and(|line| line.contains(cause)), "{name}: {output:?}");
    }
    let each = hub.ended("exec-each member -- sh -c env", 0)?.stdout;
    ensure!(each.contains("CLUSTER=member"), "{each}");
    let printed = hub.ended("kubeconfig member", 0)?.stdout;
    ensure!(printed.contains(&format!("server: {}{PATH}/member/proxy", hub.member.url())), "{printed}");
    Ok(())
}

#[test]
fn what_it_does_not_have_is_said() -> Result<()> {
    let hub = Hub::start()?;
    let line = "join helsinki --tunnel --rights view --member-context it --server 10.0.0.3:8091";
    hub.fails(line, &["the Go cluster-gateway, which links no agents", "remedy: ", "without --tunnel"])?;
    // Nothing was created before that.
    let asked = hub.runtime.block_on(async { hub.member.next_request().await });
    assert_eq!(key(&asked), "GET /apis/cluster.core.oam.dev/v1alpha1");
    let mut running = hub.program.args(["dashboard", "--no-open", "--interval", "1s"]).start()?;
    let address = Address::parse(&running.next_line(LIMIT)?)?;
    let mut events = address.events("clusters/member/events")?;
    loop {
        let parts = events.next()?["parts"].take();
        let text = |part: &str| parts[part].as_str().unwrap_or_default().to_owned();
        if text("notices").contains("Traffic and failures are not shown") {
            ensure!(text("notices").contains("the Go cluster-gateway do not serve"), "{parts}");
            ensure!(text("way").contains("accepted, as system:serviceaccount:default:gateway"), "{parts}");
            return Ok(());
        }
    }
}
