//! Complete works are deleted after their TTL, whichever agent applies them.

use std::time::Duration;

use anyhow::{Result, ensure};
use hub_tests::testbed::Testbed;
use hub_tests::wait;
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{Place, WORK};
use crate::fixture::{SOON, apply};

const CLUSTER: &str = "sets-expiry1";
/// Times on the hub have whole seconds.
const WHOLE: Duration = Duration::from_secs(1);

/// The part that delivers does not run here.
pub fn expired(testbed: &Testbed) -> Result<()> {
    let place = Place::start(testbed, "sets-expiry")?;
    place.clusters(&[CLUSTER])?;
    let label = json!({format!("{WORK}/manifestworkreplicaset"): "nobody.there"});
    for (name, seconds, labels) in [("of-set", 0, label), ("kept", 3600, json!({})), ("at-once", 0, json!({}))] {
        complete(&place, CLUSTER, name, (seconds, &labels))?;
    }
    place.wait_end(&format!("manifestwork at-once -n {CLUSTER}"))?;
    let began = Instant::now();
    complete(&place, CLUSTER, "brief", (4, &json!({})))?;
    place.wait_end(&format!("manifestwork brief -n {CLUSTER}"))?;
    ensure!(began.elapsed() + WHOLE >= Duration::from_secs(4), "it went after {:?}", began.elapsed());
    for name in ["of-set", "kept"] {
        ensure!(!read(&place, name)?.is_null(), "{name} is gone");
    }
    // A shorter TTL for a work that was to stay.
    let option = json!({"spec": {"deleteOption": {"ttlSecondsAfterFinished": 1}}});
    place.patch(&format!("manifestwork kept -n {CLUSTER}"), &option)?;
    wait::until_true("its end", SOON, || Ok(read(&place, "kept")?.is_null()))?;
    place.delete(&format!("manifestwork of-set -n {CLUSTER}"))?;
    place.end()
}

fn read(place: &Place<'_>, name: &str) -> Result<Value> {
    place.testbed.hub.server.read(&format!("manifestwork {name} -n {CLUSTER}"))
}

/// Creates a work that is complete as of now, with a TTL of `seconds`.
pub fn complete(place: &Place<'_>, cluster: &str, name: &str, (seconds, labels): (u32, &Value)) -> Result<()> {
    let work = json!({"apiVersion": format!("{WORK}/v1"), "kind": "ManifestWork",
        "metadata": {"name": name, "namespace": cluster, "labels": labels},
        "spec": {"workload": {"manifests": []}, "deleteOption": {"ttlSecondsAfterFinished": seconds}}});
    apply(place.testbed, &[work])?;
    let now = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let condition = json!({"type": "Complete", "status": "True", "reason": "Reported", "message": "",
        "lastTransitionTime": now});
    let status = json!({"status": {"conditions": [condition]}});
    place.patch(&format!("manifestwork {name} -n {cluster} --subresource=status"), &status)
}
