//! The Secrets of the tunnel and of the clusters in separate namespaces: accounts that read one
//! kind cannot read the other, and no release loses its clusters by it.

mod strangers;

use hub_tests::page::commands;
use hub_tests::prelude::*;
use libtest_mimic::Trial;

use crate::fixture::{Fixture, Planes, TUNNELLED, on_hub};
use crate::installed::{Installed, RELEASE, shell};

const SERVER: &str = "cluster-gateway-tunnel-server";
const AGENT: &str = "tunnel-agent-tunnelled";
const LABEL: &str = "cluster.core.oam.dev/cluster-credential-type";

pub(crate) fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    let own = vec![
        on_hub(fixture, "apart::who reads the clusters' Secrets reads none of the tunnel's", |planes| {
            fresh(planes, "server", "with-servers").context("tunnel-servers")?;
            fresh(planes, "embedded", "with-embedded").context("embedded")
        }),
        on_hub(
            fixture,
            "apart::a release that has clusters keeps them when the tunnel comes, and is told how to move them",
            settled,
        ),
    ];
    own.into_iter().chain(strangers::trials(fixture)).collect()
}

fn fresh(planes: &Planes, way: &str, namespace: &'static str) -> Result<()> {
    let clusters = format!("{namespace}-clusters");
    let values = [format!("--set=tunnel.{way}.enabled=true,tunnel.agents={{{TUNNELLED}}}")];
    let release = Installed { planes, namespace };
    let notes = release.helm("install", &values)?;
    rights(&release, &clusters)?;
    ensure!(notes.contains(&format!("-n {clusters} create secret generic")) && !notes.contains("WARNING"), "{notes}");
    ensure!(release.secret_namespace()? == clusters, "{}", release.secret_namespace()?);
    register(planes, &clusters)?;
    let off = [format!("--set=tunnel.{way}.enabled=false"), "--set-json=tunnel.agents=[]".into()];
    release.helm("upgrade", &[&["--reuse-values".to_owned()], &off[..]].concat())?;
    ensure!(release.secret_namespace()? == clusters, "the clusters are lost when the tunnel goes");
    release.uninstall()?;
    ensure!(is_registered(planes, &clusters)?, "clusters belong to those who registered them");
    release.helm("install", &values).context("the namespace is still there")?;
    ensure!(release.secret_namespace()? == clusters, "{}", release.secret_namespace()?);
    release.uninstall()
}

/// Which accounts may read what, in the release's namespace and in that of the clusters.
fn rights(release: &Installed<'_>, clusters: &str) -> Result<()> {
    let get = |name: &str, namespace: &str| json!({"verb": "get", "resource": "secrets", "name": name, "namespace": namespace});
    for secret in [
        AGENT, // its token
        "cluster-gateway-tls",
        "cluster-gateway-tunnel-agents-tls",
        "cluster-gateway-tunnel-frontends-tls",
        // The keys of CAs, from helm and from cert-manager.
        "cluster-gateway-tls-ca",
        "cluster-gateway-tunnel-agents-tls-ca",
        "cluster-gateway-tunnel-frontends-tls-ca",
        "cluster-gateway-ca",
        "cluster-gateway-tunnel-agents-ca",
        "cluster-gateway-tunnel-frontends-ca",
    ] {
        for account in [RELEASE, SERVER, AGENT] {
            ensure!(!release.may(account, &get(secret, release.namespace))?, "{account} may read {secret}");
        }
    }
    let all = |verb: &str, namespace: &str| json!({"verb": verb, "resource": "secrets", "namespace": namespace});
    for verb in ["get", "list", "watch"] {
        ensure!(!release.may(RELEASE, &all(verb, release.namespace))?, "the gateway may {verb} the release's Secrets");
        ensure!(release.may(RELEASE, &all(verb, clusters))?, "the gateway may not {verb} the clusters' Secrets");
    }
    for account in [SERVER, AGENT] {
        ensure!(!release.may(account, &get("berlin", clusters))?, "{account} may read a cluster's Secret");
    }
    Ok(())
}

fn settled(planes: &Planes) -> Result<()> {
    let namespace = "settled";
    let release = Installed { planes, namespace };
    release.helm("install", &[])?;
    register(planes, namespace)?;
    let on = ["--reuse-values".to_owned(), "--set=tunnel.server.enabled=true".to_owned()];
    let notes = release.helm("upgrade", &on)?;
    ensure!(release.secret_namespace()? == namespace, "the clusters are lost");
    let reads = |namespace: &str| {
        release.may(RELEASE, &json!({"verb": "get", "resource": "secrets", "name": "berlin", "namespace": namespace}))
    };
    ensure!(reads(namespace)?, "the clusters cannot be read");
    let (_, told) = notes.split_once("WARNING: ").context("nobody is warned")?;

    let mut commands = commands(told).into_iter();
    let mut next = || commands.next().context("not all is told");
    let (create, copy, upgrade) = (next()?, next()?, next()?);
    shell(planes, &create)?;
    shell(planes, &copy)?;
    let flags = upgrade.split_once(&format!("-n {namespace} ")).context("another release")?.1;
    release.helm("upgrade", &flags.split(' ').map(str::to_owned).collect::<Vec<_>>())?;
    ensure!(next()?.starts_with("kubectl get clustergateways"), "nobody looks whether all are there");
    shell(planes, &next()?)?;
    ensure!(release.secret_namespace()? == "settled-clusters" && reads("settled-clusters")?, "not moved");
    ensure!(is_registered(planes, "settled-clusters")? && !is_registered(planes, namespace)?, "berlin is not moved");
    ensure!(!reads(namespace)?, "the old namespace is read still");

    let notes = release.helm("upgrade", &["--reuse-values".into(), "--set=secretNamespace=".into()])?;
    ensure!(release.secret_namespace()? == "settled-clusters" && !notes.contains("WARNING"), "moved back: {notes}");
    ensure!(notes.contains("did not create namespace settled-clusters"), "nobody is told whose it is: {notes}");
    release.uninstall()
}

/// Registers a cluster in `namespace`.
fn register(planes: &Planes, namespace: &str) -> Result<()> {
    planes.hub.apply(&[json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "berlin", "namespace": namespace, "labels": {LABEL: "ServiceAccountToken"}},
        "stringData": {"endpoint": "https://192.0.2.7:6443", "token": "t"},
    })])
}

fn is_registered(planes: &Planes, namespace: &str) -> Result<bool> {
    let names = planes.hub.server.names(&format!("secrets -n {namespace} -l {LABEL}"))?;
    Ok(names.iter().any(|name| name == "berlin"))
}
