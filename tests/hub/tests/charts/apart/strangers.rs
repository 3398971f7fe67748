//! The namespace with the chart's name for the clusters belongs to another owner: no release takes
//! it without being asked to.

use hub_tests::prelude::*;
use libtest_mimic::Trial;

use super::{Installed, RELEASE, register};
use crate::fixture::{Fixture, Planes, namespace, on_hub};

const TUNNEL: &str = "--set=tunnel.server.enabled=true";
const TENANT: &str = "tenant";
/// The part of the role `admin` that is about Roles: this hub has no controller that aggregates it.
const ADMIN: &str = "system:aggregate-to-admin";

pub(super) fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![
        on_hub(fixture, "apart::a tenant's Role in the other namespace does not move the clusters", lured),
        on_hub(fixture, "apart::a namespace of somebody else is not taken unless the values name it", foreign),
    ]
}

fn lured(planes: &Planes) -> Result<()> {
    let (own, clusters) = ("lured", "lured-clusters");
    let release = Installed { planes, namespace: own };
    release.helm("install", &[])?;
    lure(&release, clusters)?;

    let stays = |values: &[&str]| {
        let values: Vec<_> = ["--reuse-values"].iter().chain(values).map(|&word| word.to_owned()).collect();
        release.helm("upgrade", &values)?;
        let read = release.secret_namespace()?;
        ensure!(read == own, "after an upgrade with {values:?} the clusters are the tenant's: {read}");
        let list = json!({"verb": "list", "resource": "secrets", "namespace": clusters});
        ensure!(!release.may(RELEASE, &list)?, "the gateway reads the tenant's Secrets after {values:?}");
        Ok(())
    };
    stays(&[])?;
    refused(&release, "upgrade", &["--reuse-values", TUNNEL], "no annotations of a helm release")?;
    stays(&[])?;
    register(planes, own)?;
    stays(&[TUNNEL])?;
    release.uninstall()
}

/// A tenant with rights in that namespace only creates what the release would have there: helm
/// adopts objects that are marked as the release's.
fn lure(release: &Installed<'_>, clusters: &str) -> Result<()> {
    let kubectl = release.planes.hub.server.kubectl();
    let bound = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": TENANT, "namespace": clusters}, "subjects": [{"kind": "User", "name": TENANT}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": ADMIN}});
    release.planes.hub.server.create(&[namespace(clusters), bound])?;
    let adopted = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "rules": [], "metadata": {
        "name": RELEASE, "namespace": clusters, "labels": {"app.kubernetes.io/managed-by": "Helm"},
        "annotations": {"meta.helm.sh/release-name": RELEASE, "meta.helm.sh/release-namespace": release.namespace},
    }});
    let words = [&format!("--as={TENANT}"), "create", "-f", "-"];
    kubectl.args(words).stdin(adopted.to_string()).run()?.success().context("the tenant may do less than an admin")?;
    register(release.planes, clusters)
}

fn foreign(planes: &Planes) -> Result<()> {
    let (own, clusters) = ("foreign", "foreign-clusters");
    let (release, hub) = (Installed { planes, namespace: own }, &planes.hub.server);
    hub.create(&[namespace(clusters)])?;
    refused(&release, "install", &[TUNNEL], "no annotations of a helm release")?;
    let annotations = format!("meta.helm.sh/release-namespace={own} meta.helm.sh/release-name=other");
    hub.annotate(&format!("namespace {clusters} {annotations}"))?;
    refused(&release, "install", &[TUNNEL], r#"helm release "foreign/other""#)?;

    release.helm("install", &[TUNNEL.into(), format!("--set=secretNamespace={clusters}")])?;
    ensure!(release.secret_namespace()? == clusters, "{}", release.secret_namespace()?);
    let list = json!({"verb": "list", "resource": "secrets", "namespace": clusters});
    ensure!(release.may(RELEASE, &list)?, "the clusters cannot be read");
    release.uninstall()?;
    hub.present(&format!("namespace {clusters}")).context("helm removed what was not the release's")?;
    // Without the tunnel, the clusters are in another namespace, whatever owns this one.
    release.helm("install", &[])?;
    ensure!(release.secret_namespace()? == own, "{}", release.secret_namespace()?);
    release.uninstall()
}

/// The command fails, and says what it found and what to do about it.
fn refused(release: &Installed<'_>, command: &str, values: &[&str], found: &str) -> Result<()> {
    let values: Vec<_> = values.iter().map(|&word| word.to_owned()).collect();
    let Err(error) = release.helm(command, &values) else {
        anyhow::bail!("{command} takes the namespace of somebody else: {}", release.secret_namespace()?);
    };
    let told = format!("{error:#}");
    let clusters = format!("{}-clusters", release.namespace);
    for words in
        [format!("namespace {clusters} already exists"), found.into(), format!("set secretNamespace={clusters}")]
    {
        ensure!(told.contains(&words), "nobody is told {words:?}: {told}");
    }
    Ok(())
}
