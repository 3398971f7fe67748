//! Placement and delivery, turned on by a single value.

use hub_tests::page::{blocks, section};
use hub_tests::prelude::*;
use libtest_mimic::Trial;

use crate::fixture::{Fixture, Planes, on_hub};
use crate::installed::{Installed, RELEASE, shell};
use crate::kinds::Kinds;

const VALUES: &str = "--set=delivery.enabled=true";
const PARTS: &str = "--enable=placement,replica-sets,manifestworks,availability";
const ACCOUNT: &str = "cluster-gateway-controllers";
const CLUSTER: &str = "cluster.open-cluster-management.io";
const WORK: &str = "work.open-cluster-management.io";
/// Time for the hub to enforce policies and grant rights.
const SOON: Duration = Duration::from_secs(20);
/// The quick start of the documentation.
const PAGE: &str = include_str!("../../../../docs/delivery.md");

pub(crate) fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![on_hub(fixture, "delivery::one value brings parts, kinds, rights and the policy", by_one_value)]
}

fn by_one_value(planes: &Planes) -> Result<()> {
    let kinds = Kinds::none(planes);
    let hub = &planes.hub.server;
    let release = Installed { planes, namespace: "delivery" };
    release.helm("install", &[VALUES.to_owned()])?;
    kinds.wait()?;
    let line = format!("deployment {ACCOUNT} -n {}", release.namespace);
    let args = hub.field(&line, "/spec/template/spec/containers/0/args")?;
    let args = args.as_array().context("no arguments")?;
    let enabled = args.iter().filter_map(Value::as_str).find(|arg| arg.starts_with("--enable=")).context("no parts")?;
    let sorted = |flag: &str| {
        let mut parts: Vec<String> = flag.trim_start_matches("--enable=").split(',').map(str::to_owned).collect();
        parts.sort_unstable();
        parts
    };
    ensure!(sorted(enabled) == sorted(PARTS), "{enabled}");
    rights(&release)?;
    // The policy for works is in force, and the hub accepts the page's objects.
    wait::until("the policy", SOON, || {
        let none = json!({"apiVersion": format!("{WORK}/v1"), "kind": "ManifestWork",
            "metadata": {"name": "none", "namespace": "default"}, "spec": {}});
        let refused = hub.dry_run(&none)?;
        ensure!(refused.text().contains("workload.manifests: at least one"), "{}", refused.text());
        Ok(())
    })?;
    let commands = blocks(section(PAGE, "## Quick start", "\n## ")?, "sh").last().context("no quick start")?;
    let each: Vec<&str> = commands.split("\n\n").collect();
    let (writes, _) = each.split_at_checked(4).context("four writes")?;
    for command in writes {
        shell(planes, command)?;
    }
    let printed = shell(planes, "kubectl get mwrs,placements -n default --no-headers")?;
    ensure!(printed.contains("manifestworkreplicaset") && printed.contains("placement.cluster"), "{printed}");
    // Uninstallation removes no objects.
    release.uninstall()?;
    hub.present("placement web -n default")?;
    hub.delete("manifestworkreplicasets,placements,managedclustersetbindings --all -n default")?;
    hub.delete("managedclustersets --all")?;
    kinds.delete()
}

/// The rights of the four parts, and none to Secrets.
fn rights(release: &Installed<'_>) -> Result<()> {
    let may = |verb: &str, group: &str, resource: &str, subresource: &str| {
        let attributes = json!({"verb": verb, "group": group, "resource": resource, "subresource": subresource});
        release.may(ACCOUNT, &attributes)
    };
    for (verb, group, resource, subresource) in [
        ("create", CLUSTER, "placementdecisions", ""),
        ("patch", CLUSTER, "placements", "status"),
        ("patch", CLUSTER, "managedclusters", "status"),
        ("create", WORK, "manifestworks", ""),
        ("patch", WORK, "manifestworks", "status"),
        ("patch", WORK, "manifestworkreplicasets", "status"),
        ("update", "cluster.core.oam.dev", "clustergateways", "proxy"),
    ] {
        let what = format!("that {ACCOUNT} may {verb} {resource}/{subresource}");
        wait::until_true(&what, SOON, || may(verb, group, resource, subresource))?;
    }
    for (verb, group, resource) in
        [("list", "", "secrets"), ("get", "", "secrets"), ("impersonate", "", "users"), ("create", "", "pods")]
    {
        ensure!(!may(verb, group, resource, "")?, "it may {verb} {resource}");
    }
    ensure!(!release.may(RELEASE, &json!({"verb": "create", "group": WORK, "resource": "manifestworks"}))?);
    Ok(())
}
