//! Objects as large as the hub takes, of users with few rights: they fill no memory, and hold up
//! nobody's acceptance.

use anyhow::{Result, ensure};
use hub_tests::testbed::Testbed;
use hub_tests::wait;
use serde_json::{Value, json};

use super::{Registration, accept, exists, managed, may};
use crate::fixture::{SOON, apply, event, namespace, print};

/// By one tenant, each with so many subjects: more than a mebibyte.
const BINDINGS: usize = 20;
const SUBJECTS: usize = 20_000;
const LABELS: usize = 30_000;
/// What all of that may add to the program's memory. Kept as values, the bindings would take 300
/// MiB.
const MEMORY: u64 = 96 << 20;
const ROLE: &str = "rolebinding -n bloat1 open-cluster-management:managedcluster:bloat1:registration";

pub fn large(testbed: &Testbed) -> Result<()> {
    let (place, tenant) = ("bloat-place", "bloat-tenant");
    let mut registration = Registration::start(testbed, place)?;
    apply(testbed, &[managed("bloat1"), namespace(tenant)])?;
    accept(testbed, "bloat1", true)?;
    wait::until_true("its rights", SOON, || exists(testbed, ROLE))?;
    registration.running.stop()?;
    for number in 0..BINDINGS {
        apply(testbed, &[binding(tenant, number)])?;
    }
    let labels: serde_json::Map<String, Value> = (0..LABELS).map(|number| (format!("l{number}"), json!(""))).collect();
    testbed.hub.server.patch("managedcluster bloat1", &json!({"metadata": {"labels": labels}}))?;
    let mut program = registration.running.process(testbed, place)?;
    program.wait_to_say("leading")?;
    let before = program.process.most_resident()?;
    apply(testbed, &[managed("bloat2")])?;
    accept(testbed, "bloat2", true)?;
    wait::until_true("somebody else's rights", SOON, || {
        may(testbed, "bloat2", "create clustergateways.cluster.core.oam.dev/bloat2 tunnel")
    })?;
    wait::until("it to be told", SOON, || event(testbed, "default", "bloat1", "ClusterTooLarge"))?;
    ensure!(exists(testbed, ROLE)?, "what was given stays");
    let more = program.process.most_resident()? - before;
    print(&format!("{BINDINGS} large bindings and a cluster with {LABELS} labels took {} MiB more", more >> 20));
    ensure!(more < MEMORY, "{more} bytes more");
    accept(testbed, "bloat1", false)?;
    wait::until_true("a no to count", SOON, || Ok(!exists(testbed, ROLE)?))?;
    let hub = testbed.hub.server.kubectl();
    hub.ok(&format!("delete namespace {tenant}"))?;
    hub.ok("delete managedclusters bloat1 bloat2").map(drop)
}

fn binding(namespace: &str, number: usize) -> Value {
    let group = "rbac.authorization.k8s.io";
    let subject = json!({"kind": "User", "apiGroup": group, "name": "u"});
    json!({"apiVersion": format!("{group}/v1"), "kind": "RoleBinding",
        "metadata": {"name": format!("b{number}"), "namespace": namespace,
            "labels": {"open-cluster-management.io/cluster-name": "bloat1"}},
        "roleRef": {"kind": "Role", "apiGroup": group, "name": "own"}, "subjects": vec![subject; SUBJECTS]})
}
