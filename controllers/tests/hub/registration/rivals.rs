//! The part stays out while upstream's controllers hold their Lease, or run without one.

use anyhow::{Result, ensure};
use hub_tests::testbed::Testbed;
use serde_json::{Value, json};

use super::{Registration, accept, exists, managed, wait_condition};
use crate::fixture::{apply, namespace, wait_logged};

const STANDS_IN: &str = "cluster_gateway_controllers_ocm_stands_in";

const THEIRS: &str = "open-cluster-management-hub";
const DEPLOYMENT: &str = "cluster-manager-registration-controller";
/// The namespace of a hosted `ClusterManager`, which has its name.
const HOSTED: &str = "rival-hosted";

fn lease(namespace: &str, holder: &str) -> Value {
    let now = k8s_openapi::jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string();
    json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "registration-controller-lock", "namespace": namespace},
        "spec": {"holderIdentity": holder, "leaseDurationSeconds": 3600, "renewTime": now}})
}

/// Their Deployment, as its controller reports it: the testbed's hub has none.
fn deployment(testbed: &Testbed, pods: i32) -> Result<()> {
    let labels = json!({"app": "clustermanager-registration-controller"});
    let container = json!({"name": "hub-registration-controller", "image": "none"});
    let mut deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": DEPLOYMENT, "namespace": THEIRS},
        "spec": {"replicas": pods, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}}}});
    apply(testbed, std::slice::from_ref(&deployment))?;
    deployment["status"] =
        json!({"replicas": pods, "updatedReplicas": pods, "readyReplicas": pods, "availableReplicas": pods});
    testbed.hub.server.apply_status(&deployment)
}

pub fn keeps_out(testbed: &Testbed) -> Result<()> {
    let values = format!(",controllers.rivalNamespaces={{{HOSTED}}}");
    let registration = Registration::with(testbed, "rival-place", &values)?;
    // A Lease in a namespace that any user may have does not keep the part out.
    apply(testbed, &[namespace("rival-team"), lease("rival-team", "anybody"), managed("rival0")])?;
    accept(testbed, "rival0", true)?;
    wait_condition(testbed, "rival0", "HubAcceptedManagedCluster", "True/HubClusterAdminAccepted")?;
    apply(testbed, &[namespace(HOSTED), lease(HOSTED, "hosted")])?;
    registration.wait_metric(STANDS_IN, 0.0)?;
    apply(testbed, &[lease(HOSTED, "")])?;
    registration.wait_metric(STANDS_IN, 1.0)?;
    apply(testbed, &[namespace(THEIRS), lease(THEIRS, "theirs")])?;
    registration.wait_metric(STANDS_IN, 0.0)?;
    ensure!(registration.running.get("/readyz")?.contains("ocm-rival"), "it is ready");
    apply(testbed, &[managed("rival1")])?;
    accept(testbed, "rival1", true)?;
    // After a restart, the part finds the Lease, too.
    let mut registration = registration;
    registration.running.restart()?;
    registration.wait_metric(STANDS_IN, 0.0)?;
    ensure!(!exists(testbed, "namespace rival1")?, "it works beside them");
    // They stop, and give their Lease up.
    apply(testbed, &[lease(THEIRS, "")])?;
    registration.wait_metric(STANDS_IN, 1.0)?;
    wait_condition(testbed, "rival1", "HubAcceptedManagedCluster", "True/HubClusterAdminAccepted")?;
    // They come again, without leader election: nobody holds the Lease.
    deployment(testbed, 1)?;
    registration.wait_metric(STANDS_IN, 0.0)?;
    wait_logged(testbed, &["registration controllers run", &format!("{THEIRS}/Deployment {DEPLOYMENT}")])?;
    deployment(testbed, 0)?;
    registration.wait_metric(STANDS_IN, 1.0)?;
    testbed.hub.server.delete("lease registration-controller-lock -n open-cluster-management-hub")?;
    testbed.hub.server.delete(&format!("deployment {DEPLOYMENT} -n {THEIRS}"))?;
    testbed.hub.server.delete("lease registration-controller-lock -n rival-team")?;
    testbed.hub.server.delete(&format!("lease registration-controller-lock -n {HOSTED}"))?;
    testbed.hub.server.delete("managedclusters rival0 rival1")
}
