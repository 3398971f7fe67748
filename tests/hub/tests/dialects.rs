//! A real member in the dialects of other tools: kubectl works there as on the member itself, and
//! the commands of the page are run unchanged.

use std::net::{Ipv4Addr, SocketAddr};

use hub_tests::kubeconfig::Kubeconfig;
use hub_tests::kubectl::Kubectl;
use hub_tests::page::{below, first};
use hub_tests::ports;
use hub_tests::prelude::*;
use hub_tests::product::Product;
use libtest_mimic::Trial;

use crate::fixture::{Fixture, test};
use crate::{forward, streams};

const PAGE: &str = include_str!("../../../docs/dialects.md");
/// The page's cluster.
const BERLIN: &str = "berlin";
const LIMIT: Duration = Duration::from_secs(10);

pub(crate) fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![
        test(fixture, "dialects::a member in every dialect: kcp", kcp),
        test(fixture, "dialects::a member in every dialect: OCM's user server", user_server),
    ]
}

fn kcp(testbed: &Testbed) -> Result<()> {
    let gateway = gateway(testbed, "kcp", &["--kcp-dialect"])?;
    let server = format!("https://{}", gateway.address());
    follow(testbed, &gateway, "## kcp", ("https://gateway.example", &server))?;
    works(testbed, "kcp", &kubectl(testbed, "kcp", &gateway, format!("{server}/clusters/{BERLIN}"))?)
}

fn user_server(testbed: &Testbed) -> Result<()> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, ports::free()?));
    let gateway = gateway(testbed, "user-server", &[&format!("--ocm-user-server-listen={address}")])?;
    let server = format!("https://{address}");
    let heading = "## Open Cluster Management's user server";
    follow(testbed, &gateway, heading, ("https://gateway.example:9092", &server))?;
    works(testbed, "user-server", &kubectl(testbed, "user-server", &gateway, format!("{server}/{BERLIN}"))?)
}

/// A separate gateway for the hub, which knows the member as [`BERLIN`].
fn gateway(testbed: &Testbed, name: &str, flags: &[&str]) -> Result<Product> {
    testbed.hub.register_member(BERLIN, &MemberSecret::with_token(&testbed.member.server, &testbed.member_token))?;
    testbed.start_gateway(&format!("{name}-gateway"), &testbed.hub.gateway_kubeconfig(), flags)
}

/// kubectl as a user who may do everything, with a separate server and cache.
fn kubectl(testbed: &Testbed, name: &str, gateway: &Product, server: String) -> Result<Kubectl> {
    let directory = testbed.directory(&format!("dialect-{name}"))?;
    let credential = Credential::Token(testbed.token.clone());
    let kubeconfig = Kubeconfig { server, authority: gateway.authority_file(), credential };
    let kubeconfig = kubeconfig.write(directory.join("kubeconfig"))?;
    Ok(Kubectl { kubeconfig, cache: directory, ..testbed.kubectl(Route::Direct) })
}

/// Runs the commands below a heading of the page, with another address than the page's.
fn follow(testbed: &Testbed, gateway: &Product, heading: &str, (shown, real): (&str, &str)) -> Result<()> {
    let name = format!("page-{}", gateway.address().port());
    let kubectl = kubectl(testbed, &name, gateway, "https://nowhere.example".to_owned())?;
    for line in first(below(PAGE, &format!("\n{heading}\n"))?, "sh")?.lines() {
        let words = line.replace(shown, real);
        let words = words.strip_prefix("kubectl ").with_context(|| format!("no kubectl: {line}"))?;
        kubectl.ok(words).with_context(|| line.to_owned())?;
    }
    Ok(())
}

/// Checks that kubectl works as on the member: reads, writes, watches, streams.
pub(crate) fn works(testbed: &Testbed, name: &str, kubectl: &Kubectl) -> Result<()> {
    let direct = testbed.member.server.kubectl();
    for line in ["get namespaces -o name", "api-resources -o name", "get --raw /version", "explain pods.spec"] {
        // Other tests create and remove namespaces meanwhile.
        wait::until("the same", LIMIT, || {
            ensure!(kubectl.ok(line)? == direct.ok(line)?, "{line} says something else");
            Ok(())
        })?;
    }
    let namespace = format!("dialect-{name}");
    kubectl.ok(&format!("create namespace {namespace}"))?;
    let mut watch = kubectl.args(format!("get configmaps -n {namespace} -l seen=yes -w -o name").split(' ')).start()?;
    let noticed = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "noticed", "namespace": namespace, "labels": {"seen": "yes"}}});
    kubectl.apply(&noticed.to_string())?;
    let seen = watch.next_line(LIMIT)?;
    ensure!(seen == "configmap/noticed", "{seen}");
    kubectl.ok(&format!("delete namespace {namespace} --wait=false"))?;

    streams::pod(testbed)?;
    let words = ["exec", "-i", "shell", "-n", "streams", "--", "sh", "-c", "cat; exit 7"];
    let output = kubectl.args(words).stdin("typed").run()?;
    ensure!(output.status == 7 && output.stdout == "typed", "{output:?}");
    forward::small_echo(kubectl)
}
