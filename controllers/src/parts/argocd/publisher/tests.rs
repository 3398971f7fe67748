//! Tests of Secrets that already have the name, on a hub in memory.

use std::sync::Arc;

use http::Method;
use kube::Client;
use parking_lot::Mutex;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::*;
use crate::args::Argocd;
use crate::parts::argocd::keeper::of_account;
use crate::parts::argocd::secret::CLUSTER_KEY;
use crate::parts::argocd::strays;
use crate::scripted;
use crate::term::Term;
use crate::wakes::Wakes;

/// A hub on which the name is taken.
#[derive(Default)]
struct Taken {
    /// Metadata of the Secret that has the name.
    metadata: Value,
    refuses_patches: bool,
    patches: Vec<Value>,
}

// === impl Taken ===

impl Taken {
    fn answer(&mut self, method: &Method, body: Value) -> (u16, Value) {
        let refused = (409, json!({"kind": "Status", "apiVersion": "v1", "code": 409, "reason": "Conflict"}));
        match *method {
            Method::GET => {
                let item =
                    json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": self.metadata});
                let kind = ("PartialObjectMetadataList", "meta.k8s.io/v1");
                (200, json!({"kind": kind.0, "apiVersion": kind.1, "metadata": {}, "items": [item]}))
            }
            Method::PATCH if !self.refuses_patches => {
                let mut metadata = body["metadata"].clone();
                metadata["name"] = "cluster-gateway-berlin".into();
                let secret = json!({"kind": "Secret", "apiVersion": "v1", "metadata": metadata, "data": body["data"]});
                self.patches.push(body);
                (200, secret)
            }
            _ => refused,
        }
    }
}

fn client(taken: &Arc<Mutex<Taken>>) -> Client {
    let taken = Arc::clone(taken);
    scripted::client(move |head, body| Some(taken.lock().answer(&head.method, body)))
}

fn publisher(taken: &Arc<Mutex<Taken>>, registry: &mut Registry) -> Publisher {
    let argocd = Argocd { namespace: "argocd".into(), account: ("argocd".into(), "deployer".into()) };
    let inventory = Inventory::new(20, &argocd);
    inventory.put_cluster("berlin", true);
    inventory.put_token(of_account("u1"));
    let metrics = Metrics::register(registry, Arc::default());
    Publisher {
        secrets: Api::namespaced(client(taken), &argocd.namespace),
        hub: LeaderClient { client: client(taken), may_write: Arc::new(|| Duration::from_mins(1)) },
        gateway: GatewayAddress { url: "https://gateway:9443".into(), ca: None },
        inventory: Arc::new(inventory),
        events: Events::start(client(taken), metrics.events_left_out.clone(), Term::endless()),
        metrics,
        tries: Tries::default(),
    }
}

fn berlin() -> DynamicObject {
    DynamicObject::new("berlin", &managed_clusters())
}

#[tokio::test(start_paused = true)]
async fn a_label_that_somebody_took_away_is_put_back() {
    let metadata = json!({"name": "cluster-gateway-berlin", "namespace": "argocd", "uid": "u", "resourceVersion": "5",
        "annotations": {CLUSTER_KEY: "berlin"}});
    let taken = Arc::new(Mutex::new(Taken { metadata, ..Taken::default() }));
    let publisher = publisher(&taken, &mut Registry::default());
    publisher.work(&berlin()).await.unwrap();
    let patched = taken.lock().patches.pop().expect("a patch");
    let wanted = (&json!("5"), &json!("berlin"));
    assert_eq!((&patched["metadata"]["resourceVersion"], &patched["metadata"]["labels"][CLUSTER_KEY]), wanted);
    assert_eq!(publisher.inventory.settled(), 1);
}

#[tokio::test(start_paused = true)]
async fn who_has_the_name_is_told_and_what_to_do() {
    let metadata = json!({"name": "cluster-gateway-berlin", "namespace": "argocd", "uid": "u", "resourceVersion": "5",
        "managedFields": [{"manager": "kubectl-create"}]});
    let taken = Arc::new(Mutex::new(Taken { metadata, ..Taken::default() }));
    let mut registry = Registry::default();
    let publisher = publisher(&taken, &mut registry);
    let told = publisher.work(&berlin()).await.unwrap_err().to_string();
    for word in ["argocd/cluster-gateway-berlin", "kubectl-create", "cluster berlin", "delete it"] {
        assert!(told.contains(word), "{word}: {told}");
    }
    assert!(taken.lock().patches.is_empty(), "a person's Secret is touched");
    assert!(failures(&registry).ends_with(" 1"), "{}", failures(&registry));
}

#[tokio::test(start_paused = true)]
async fn a_conflict_alone_is_no_failure() {
    let metadata = json!({"name": "cluster-gateway-berlin", "annotations": {CLUSTER_KEY: "berlin"}});
    let taken = Arc::new(Mutex::new(Taken { metadata, refuses_patches: true, ..Taken::default() }));
    let mut registry = Registry::default();
    let publisher = publisher(&taken, &mut registry);
    let failure = publisher.work(&berlin()).await.unwrap_err();
    assert!(failure.is_conflict() && failures(&registry).is_empty(), "{}", failures(&registry));
    // Nothing is reported of a cluster that is no longer accepted.
    publisher.inventory.put_cluster("berlin", false);
    publisher.work(&berlin()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_secret_without_our_label_goes_with_its_cluster() {
    let metadata = json!({"name": "cluster-gateway-berlin", "annotations": {CLUSTER_KEY: "berlin"}});
    let taken = Arc::new(Mutex::new(Taken { metadata, ..Taken::default() }));
    let publisher = publisher(&taken, &mut Registry::default());
    publisher.inventory.put_cluster("berlin", false);
    assert!(publisher.inventory.due().again.is_none(), "it is not watched");
    strays::look(&publisher, &Wakes::default()).await.unwrap();
    let again = publisher.inventory.due().again.expect("it is due");
    tokio::time::advance(again - Instant::now()).await;
    assert_eq!(publisher.inventory.due().now.len(), 1);
}

/// The series of failures; empty if there were none.
fn failures(registry: &Registry) -> String {
    let mut text = String::new();
    encode(&mut text, registry).unwrap();
    text.lines().find(|line| line.contains("failures_total{")).unwrap_or_default().to_owned()
}
