//! A release with the chart's own values: installed, used, upgraded, used again, removed.

use hub_tests::hub::SECRET_NAMESPACE as NAMESPACE;
use hub_tests::prelude::*;
use hub_tests::testbed::ALL_VERBS;
use libtest_mimic::Trial;

use crate::fixture::{CLUSTER, Fixture, Planes, on_hub};
use crate::release::{AVAILABLE, Release};

/// Time for the gateway to see new files, and for the hub to check a failed API.
const RELOAD: Duration = Duration::from_mins(1);
const RELEASE: &str = "cluster-gateway";

pub(crate) fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![
        on_hub(fixture, "lifecycle::install, use, upgrade, use, uninstall", lifecycle),
        on_hub(fixture, "lifecycle::clusters of sources outlive upgrade, rollback and uninstallation", sources),
    ]
}

/// Clusters that sources have registered stay, whatever happens to the release.
fn sources(planes: &Planes) -> Result<()> {
    let _group = planes.claim_group();
    let values = "--set=controllers.enabled=true,controllers.watchNamespaces={default},\
                  controllers.sources.kubeconfig=true";
    let release = Release::install(planes, (RELEASE, RELEASE, RELEASE), &[values.to_owned()])?;
    // A Secret as the controllers write it.
    let written = json!({"apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "sourced", "namespace": NAMESPACE,
            "labels": {"cluster.core.oam.dev/cluster-credential-type": "ServiceAccountToken",
                "cluster.core.oam.dev/source": "kubeconfig"},
            "annotations": {"cluster.core.oam.dev/source-object": "core/Secret/default/sourced"}},
        "stringData": {"endpoint": "https://10.9.8.7", "token": "token"}});
    planes.hub.server.apply(&[written])?;
    let secret = format!("secret sourced -n {NAMESPACE}");
    let before = planes.hub.server.read(&secret)?;
    let is_kept = |step: &str| -> Result<()> {
        let now = planes.hub.server.read(&secret)?;
        ensure!(now == before, "{step}: {now}");
        Ok(())
    };
    release.upgrade("controllers.sources.capi=true,controllers.replicas=1")?;
    is_kept("another source")?;
    // A source that is turned off leaves the clusters that it has registered.
    release.upgrade("controllers.sources.kubeconfig=false")?;
    is_kept("a source less")?;
    release.rollback(1)?;
    is_kept("the rollback")?;
    let args = |source: &str| -> Result<bool> {
        let line = format!("deployment {RELEASE}-controllers -n {NAMESPACE}");
        let deployment = planes.hub.server.read(&line)?;
        Ok(deployment["spec"]["template"]["spec"]["containers"][0]["args"].to_string().contains(source))
    };
    ensure!(args("--enable=kubeconfig")?, "it was not rolled back");
    release.upgrade("controllers.enabled=false")?;
    is_kept("no controllers")?;
    release.uninstall()?;
    is_kept("the uninstallation")?;
    planes.hub.server.delete(&secret)
}

fn lifecycle(planes: &Planes) -> Result<()> {
    let _group = planes.claim_group();
    let mark = planes.audit.mark()?;
    let release = Release::install(planes, (RELEASE, RELEASE, RELEASE), &[])?;
    let installed = release.workload()?;
    ensure!(installed.deployment["spec"]["replicas"] == 2, "{}", installed.deployment);
    let gateway = release.run(&installed)?;
    release.wait_condition(AVAILABLE)?;
    let user = Credential::Token(planes.hub.create_user("user", &[CLUSTER], ALL_VERBS)?);
    use_member(planes, &user, "installed")?;
    rights(planes)?;
    kept_pairs(&release)?;

    let before = certificates(planes, &release)?;
    release.upgrade("replicas=3,log.level=debug")?;
    ensure!(certificates(planes, &release)? == before, "the upgrade changed the certificate");
    let upgraded = release.workload()?;
    ensure!(upgraded.deployment["spec"]["replicas"] == 3, "{}", upgraded.deployment);
    ensure!(upgraded.flag("--log-level") == Some("debug"), "{:?}", upgraded.args);
    drop(gateway);
    let gateway = release.run(&upgraded)?;
    release.wait_condition(AVAILABLE)?;
    use_member(planes, &user, "upgraded")?;
    renew(planes, &release, &user, &before)?;
    drop(gateway);
    planes.ensure_nothing_refused(mark)?;

    release.uninstall()?;
    // Clusters belong to those who registered them.
    planes.hub.server.present(&format!("secret {CLUSTER} -n {NAMESPACE}"))
}

/// Another certificate, and another CA, for the running gateway, as the chart's documentation says.
/// The API is available all the time, also before the pods see their new files.
fn renew(planes: &Planes, release: &Release<'_>, user: &Credential, before: &(Value, Value)) -> Result<()> {
    let delete = |name: &str, values: &str| {
        planes.hub.server.delete(&format!("secret {name} -n {NAMESPACE}"))?;
        release.upgrade(values)?;
        certificates(planes, release)
    };
    let (secret, authority) = delete(&format!("{RELEASE}-tls"), "replicas=2")?;
    ensure!(secret["tls.crt"] != before.0["tls.crt"] && authority == before.1, "not renewed below the same CA");
    use_member(planes, user, "renewed")?;
    let (kept, authority) = delete(&format!("{RELEASE}-tls-ca"), "replicas=3")?;
    ensure!(kept["tls.crt"] == secret["tls.crt"] && authority != before.1, "not just another CA");
    use_member(planes, user, "another-ca")?;
    let (secret, authority) = delete(&format!("{RELEASE}-tls"), "replicas=2")?;
    ensure!(secret["tls.crt"] != kept["tls.crt"] && secret["ca.crt"] == authority, "the hub believes another CA");
    use_member(planes, user, "still-the-old-pair")?;
    release.workload()?; // writes the volume's files, as the kubelet does in time
    let served = || release.serves(&secret["tls.crt"]);
    wait::until_true("the gateway to serve the new pair", RELOAD, served)?;
    use_member(planes, user, "the-new-pair")
}

/// Writes through the hub and the gateway, and checks for the object on the member.
fn use_member(planes: &Planes, user: &Credential, name: &str) -> Result<()> {
    let through = planes.through_hub("user", user.clone())?;
    through.ok(&format!("create configmap {name} -n default --from-literal=a=b"))?;
    planes.member.present(&format!("configmap {name} -n default"))
}

/// The ServiceAccount's rights on the hub.
fn rights(planes: &Planes) -> Result<()> {
    let to = |verb: &str, resource: &str, namespace: &str| {
        let (resource, group) = resource.split_once('.').unwrap_or((resource, ""));
        let (resource, name) = resource.split_once('/').unwrap_or((resource, ""));
        json!({"verb": verb, "group": group, "resource": resource, "name": name, "namespace": namespace})
    };
    for attributes in [
        to("list", "secrets", NAMESPACE),
        to("watch", "secrets", NAMESPACE),
        to("create", "tokenreviews.authentication.k8s.io", ""),
        to("create", "subjectaccessreviews.authorization.k8s.io", ""),
        to("get", "configmaps/extension-apiserver-authentication", "kube-system"),
    ] {
        ensure!(planes.may(NAMESPACE, RELEASE, &attributes)?, "may not {attributes}");
    }
    for attributes in [
        to("list", "secrets", "kube-system"),
        to("list", "secrets", "default"),
        to("create", "secrets", NAMESPACE),
        to("update", "secrets", NAMESPACE),
        to("list", "configmaps", "kube-system"),
        to("list", "namespaces", ""),
        to("impersonate", "users", ""),
        to("patch", "apiservices.apiregistration.k8s.io", ""),
    ] {
        ensure!(!planes.may(NAMESPACE, RELEASE, &attributes)?, "may {attributes}");
    }
    Ok(())
}

/// A generated pair stays as long as it is for the right host, even if cert-manager is used later.
fn kept_pairs(release: &Release<'_>) -> Result<()> {
    let preview = |more: &[&str]| -> Result<Vec<Value>> {
        release.preview(&more.iter().map(|&word| word.to_owned()).collect::<Vec<_>>())
    };
    let bundle = |more: &[&str]| -> Result<Value> {
        let mut objects = preview(more)?;
        let service = objects.iter_mut().find(|object| object["kind"] == "APIService").context("no APIService")?;
        Ok(service["spec"]["caBundle"].take())
    };
    let here = release.api_service()?["spec"]["caBundle"].take();
    ensure!(bundle(&["--set=replicas=5"])? == here, "another CA for nothing");
    ensure!(bundle(&["--api-versions=cert-manager.io/v1"])? == here, "cert-manager took over by itself");
    let pair = |more: &[&str]| -> Result<Value> {
        let mut objects = preview(more)?;
        let secret = objects.iter_mut().find(|object| object["metadata"]["name"] == format!("{RELEASE}-tls"));
        Ok(secret.context("no Secret")?["data"]["tls.crt"].take())
    };
    let (kept, other) = (pair(&["--set=replicas=5"])?, pair(&["--set=service.name=other"])?);
    ensure!(other.is_string() && other != kept, "a certificate for another host is kept");
    ensure!(bundle(&["--set=tls.certManager.enabled=true"])?.is_null(), "two sources of one CA");
    Ok(())
}

/// The Secret's contents and the CA in the APIService.
fn certificates(planes: &Planes, release: &Release<'_>) -> Result<(Value, Value)> {
    let secret = planes.hub.server.field(&format!("secret {RELEASE}-tls -n {NAMESPACE}"), "/data")?;
    Ok((secret, release.api_service()?["spec"]["caBundle"].take()))
}
