//! The assertions of the Go cluster-gateway's own tests (its e2e suite and the tables of its unit
//! tests), for this gateway on a real hub: discovery, reading clusters, health, proxying, the
//! conversion of Secrets, virtual clusters.
//!
//! Where this gateway differs on purpose (credentials are not shown, an absent cluster is a 404),
//! the test asserts the difference.

mod health;
mod managed;
mod proxying;
mod secrets;
mod virtual_clusters;

use hub_tests::hub::SECRET_NAMESPACE;
use hub_tests::prelude::*;
use libtest_mimic::Trial;

use crate::fixture::{Fixture, test};
use crate::viewer;

/// Time from a change on the hub to its effect at the gateway, on a busy machine too.
const PROMPT: Duration = Duration::from_secs(5);
const KIND: &str = "cluster.core.oam.dev/cluster-credential-type";
const ENDPOINT_TYPE: &str = "cluster.core.oam.dev/cluster-endpoint-type";

pub(crate) fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    let mut trials = vec![
        test(fixture, "parity::the resources are in discovery with their kinds, verbs and short names", discovery),
        test(fixture, "parity::a cluster can be read, and is in the list", read),
    ];
    trials.extend(health::trials(fixture));
    trials.extend(proxying::trials(fixture));
    trials.extend(secrets::trials(fixture));
    trials.extend(virtual_clusters::trials(fixture));
    trials.extend(managed::trials(fixture));
    trials
}

/// A Secret in the clusters' namespace, as its owner would write it.
fn secret(name: &str, labels: &Value, annotations: &Value, data: &Value) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": SECRET_NAMESPACE, "labels": labels, "annotations": annotations},
        "stringData": data,
    })
}

/// Waits for the object at `path`, as the viewer reads it directly from the gateway.
fn appear(testbed: &Testbed, path: &str) -> Result<Value> {
    wait::until(path, PROMPT, || viewer::get(testbed, Route::Gateway, path)?.expect(StatusCode::OK)?.json())
}

fn discovery(testbed: &Testbed) -> Result<()> {
    let expected = json!({
        "clusterGateways": ["clustergateway", false, "ClusterGateway", ["get", "list", "watch"], null],
        "health": ["", false, "ClusterGateway", ["get", "patch", "update"], null],
        "proxy": ["", false, "ClusterGatewayProxyOptions", ["create", "delete", "get", "patch", "update"], null],
        "virtualClusters": ["virtualcluster", false, "VirtualCluster", ["get", "list", "watch"],
            ["vc", "vcluster", "vclusters", "virtual-cluster", "virtual-clusters"]],
    });
    for route in Route::PROXIED {
        let list = viewer::get(testbed, route, "")?.expect(StatusCode::OK)?.json()?;
        ensure!(list["kind"] == "APIResourceList" && list["groupVersion"] == "cluster.core.oam.dev/v1alpha1", "{list}");
        let row = |name: &str| -> Result<Value> {
            let resources = list["resources"].as_array().context("no resources")?;
            let row = resources.iter().find(|row| row["name"] == name).with_context(|| format!("no {name}: {list}"))?;
            Ok(json!([row["singularName"], row["namespaced"], row["kind"], row["verbs"], row["shortNames"]]))
        };
        let found = json!({
            "clusterGateways": row("clustergateways")?,
            "health": row("clustergateways/health")?,
            "proxy": row("clustergateways/proxy")?,
            "virtualClusters": row("virtualclusters")?,
        });
        ensure!(found == expected, "via {}: {found:#}", route.name());
    }
    Ok(())
}

fn read(testbed: &Testbed) -> Result<()> {
    for route in Route::PROXIED {
        let object =
            viewer::get(testbed, route, &format!("/clustergateways/{CLUSTER}"))?.expect(StatusCode::OK)?.json()?;
        let access = &object["spec"]["access"];
        ensure!(object["kind"] == "ClusterGateway" && object["metadata"]["name"] == CLUSTER, "{object}");
        ensure!(object["spec"]["provider"] == "" && access["endpoint"]["type"] == "Const", "{object}");
        ensure!(access["credential"] == json!({"type": "ServiceAccountToken"}), "{object}");
        let list = viewer::get(testbed, route, "/clustergateways")?.expect(StatusCode::OK)?.json()?;
        let items = list["items"].as_array().context("no items")?;
        let item = items.iter().find(|item| item["metadata"]["name"] == CLUSTER).context("it is not in the list")?;
        ensure!(item["spec"] == object["spec"] && item["kind"].is_null(), "{item}\nis not\n{object}");
        // Informers need these; the Go cluster-gateway omits them.
        for pointer in ["/metadata/uid", "/metadata/resourceVersion", "/metadata/creationTimestamp"] {
            let text = object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
            ensure!(!text.is_empty() && item.pointer(pointer) == object.pointer(pointer), "{pointer}: {object}");
        }
        ensure!(list["metadata"]["resourceVersion"].as_str().is_some_and(|text| !text.is_empty()), "{list}");
        let absent = viewer::get(testbed, route, "/clustergateways/absent")?.expect(StatusCode::NOT_FOUND)?.json()?;
        ensure!(absent["message"] == "clustergateways.cluster.core.oam.dev \"absent\" not found", "{absent}");
    }
    Ok(())
}
