//! A kubeconfig as `vela cluster export-config` writes it: one file, a context for each cluster,
//! the hub's own authority and credential inline, and servers that end in
//! `/clustergateways/<name>/proxy`. kubectl works with it as with any other.

use std::sync::OnceLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hub_tests::kubectl::{Invocation, Kubectl};
use hub_tests::prelude::*;
use hub_tests::testbed::{ALL_VERBS, CLUSTER_X509};
use libtest_mimic::Trial;

use crate::fixture::{Fixture, test};
use crate::{forward, streams};

const LIMIT: Duration = Duration::from_secs(10);
const USER: &str = "exporter";
const NAMESPACE: &str = "exported";
const SETTINGS: &str =
    "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: exported}, data: {a: b}}";

pub(crate) fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![
        test(fixture, "exported::each context is a member", contexts),
        test(fixture, "exported::get -w and logs -f arrive as they happen", live),
        test(fixture, "exported::exec and port-forward", into_pods),
        test(fixture, "exported::apply --dry-run=server changes nothing", dry_run),
    ]
}

/// kubectl with the exported file, in the context of the first cluster by default. The first call
/// creates the file.
fn kubectl(testbed: &Testbed) -> Result<Kubectl> {
    static MADE: OnceLock<Result<(), String>> = OnceLock::new();
    let path = testbed.directory("exported")?.join("kubeconfig");
    let made = MADE.get_or_init(|| {
        let made = || -> Result<()> {
            testbed.hub.allow(USER, &json!([{"kind": "User", "name": USER}]), &[CLUSTER, CLUSTER_X509], ALL_VERBS)?;
            std::fs::write(&path, exported(testbed)?.to_string())?;
            testbed.member.server.create_namespace(NAMESPACE)?;
            streams::pod(testbed)
        };
        made().map_err(|error| format!("{error:#}"))
    });
    made.as_ref().map_err(|error| anyhow!("no exported kubeconfig: {error}"))?;
    Ok(Kubectl { kubeconfig: path, ..testbed.hub.server.kubectl() })
}

fn exported(testbed: &Testbed) -> Result<Value> {
    let identity = testbed.hub.server.authority().issue(&Leaf::client(USER));
    let authority = BASE64.encode(std::fs::read(testbed.hub.server.authority_file()).context("the hub's authority")?);
    let clusters = [CLUSTER, CLUSTER_X509];
    let cluster = |name: &str| {
        let server = format!("{}{}", testbed.hub.server.url(), Testbed::proxy_path(name));
        json!({"name": name, "cluster": {"server": server, "certificate-authority-data": authority}})
    };
    let user = json!({
        "client-certificate-data": BASE64.encode(&identity.chain_pem),
        "client-key-data": BASE64.encode(&identity.key_pem),
    });
    Ok(json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": clusters.map(cluster),
        "users": clusters.map(|name| json!({"name": name, "user": user})),
        "contexts": clusters.map(|name| json!({"name": name, "context": {"cluster": name, "user": name}})),
        "current-context": CLUSTER,
    }))
}

fn line(kubectl: &Kubectl, words: &str) -> Invocation {
    kubectl.args(words.split(' '))
}

fn contexts(testbed: &Testbed) -> Result<()> {
    let kubectl = kubectl(testbed)?;
    for (context, user) in [(CLUSTER, "system:serviceaccount:default:gateway"), (CLUSTER_X509, "gateway-x509")] {
        let name = kubectl.ok(&format!("--context {context} auth whoami -o jsonpath={{.status.userInfo.username}}"))?;
        ensure!(name == user, "{context} is used as {name}");
    }
    Ok(())
}

fn live(testbed: &Testbed) -> Result<()> {
    let kubectl = kubectl(testbed)?;
    let mut watch = line(&kubectl, "get configmaps -n exported -l seen=yes -w -o name").start()?;
    testbed.member.server.kubectl().apply(
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: noticed, namespace: exported, labels: {seen: 'yes'}}}",
    )?;
    let seen = watch.next_line(LIMIT)?;
    ensure!(seen == "configmap/noticed", "{seen}");

    testbed.member.run_pod(NAMESPACE, "talker", "before\n")?;
    let mut follower = line(&kubectl, "logs -f talker -n exported").start()?;
    ensure!(follower.next_line(LIMIT)? == "before", "another line");
    std::fs::write(testbed.member.container(NAMESPACE, "talker").join("main.log"), "before\nafter\n")?;
    ensure!(follower.next_line(LIMIT)? == "after", "another line");
    Ok(())
}

fn into_pods(testbed: &Testbed) -> Result<()> {
    let kubectl = kubectl(testbed)?;
    for context in [CLUSTER, CLUSTER_X509] {
        let words = ["--context", context, "exec", "-i", "shell", "-n", "streams", "--", "sh", "-c", "cat; exit 7"];
        let output = kubectl.args(words).stdin("typed").run()?;
        ensure!(output.status == 7 && output.stdout == "typed", "{context}: {output:?}");
    }
    forward::small_echo(&kubectl)
}

fn dry_run(testbed: &Testbed) -> Result<()> {
    let kubectl = kubectl(testbed)?;
    for words in ["apply --dry-run=server -f -", "apply --server-side --dry-run=server -f -"] {
        let text = line(&kubectl, words).stdin(SETTINGS).run()?.success()?;
        ensure!(text.contains("dry run"), "{text}");
        let absent = line(&kubectl, "get configmap settings -n exported").run()?;
        ensure!(absent.stderr.contains("(NotFound)"), "{words} made it: {absent:?}");
    }
    kubectl.apply(SETTINGS)?;
    let text = line(&kubectl, "delete configmap settings -n exported --dry-run=server").run()?.success()?;
    ensure!(text.contains("dry run"), "{text}");
    kubectl.ok("get configmap settings -n exported")?;
    Ok(())
}
