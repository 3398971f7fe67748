//! Karmada's aggregated API server, with the hub as its control plane and the hub's etcd as its
//! store.
//!
//! It needs nothing more of Karmada: its own API has the Cluster, the hub has the Secret that the
//! Cluster names, and the hub reviews callers. A controller of Karmada's would also set up
//! impersonation rights at the member: the upstream does not ask for them.

use std::path::Path;

use anyhow::{Context as _, Result};
use bytes::Bytes;
use http::{Method, StatusCode};
use hub_tests::http::Client;
use hub_tests::hub::SECRET_NAMESPACE;
use hub_tests::process::Process;
use hub_tests::wait;
use serde_json::{Value, json};

use super::{Access, Plan};
use crate::route::START_LIMIT;
use crate::testbed::{CALLER, HubSide, VERBS};
use crate::upstream::TOKEN;

const GROUP: &str = "cluster.karmada.io";
const CLUSTERS: &str = "/apis/cluster.karmada.io/v1alpha1/clusters";
/// Its ServiceAccount, its rights to read, and the rights of its callers.
const ACCOUNT: &str = "karmada";
const READER: &str = "karmada-reader";
const CALLERS: &str = "karmada-callers";
/// Namespace of the Secrets: not where gateways look.
const NAMESPACE: &str = "default";

/// Uses as many processors as it finds.
pub fn start(hub: &HubSide, plan: &Plan<'_>, program: &Path) -> Result<(Process, Access)> {
    let kubeconfig = hub.hub.create_reviewer(ACCOUNT)?;
    // `configmaps`: the hub publishes there the certificates that it trusts.
    let rules = json!([{"apiGroups": [""], "resources": ["secrets", "configmaps"], "verbs": ["get", "list", "watch"]}]);
    hub.grant(READER, (SECRET_NAMESPACE, ACCOUNT), &rules)?;
    allow_callers(hub)?;
    hub.hub.apply(&[secret(plan)])?;
    let kubeconfig = kubeconfig.display();
    let flags = [
        format!("--secure-port={}", plan.address.port()),
        format!("--bind-address={}", plan.address.ip()),
        format!("--kubeconfig={kubeconfig}"),
        format!("--authentication-kubeconfig={kubeconfig}"),
        format!("--authorization-kubeconfig={kubeconfig}"),
        format!("--etcd-servers={}", hub.etcd.url()),
        format!("--etcd-prefix=/{}", plan.name),
        format!("--tls-cert-file={}", plan.serving.certificate.display()),
        format!("--tls-private-key-file={}", plan.serving.key.display()),
    ];
    let mut process = Process::start(&plan.name, program, flags, &plan.directory)?;
    register(hub, plan, &mut process).with_context(|| process.log_tail())?;
    let prefix = format!("{CLUSTERS}/{}/proxy", plan.destination.cluster);
    Ok((process, Access { address: None, prefix, headers: vec![format!("Authorization: Bearer {}", hub.token)] }))
}

/// Lets the bench's caller use clusters by Karmada's path.
pub fn allow_callers(hub: &HubSide) -> Result<()> {
    hub.grant(CALLERS, CALLER, &json!([{"apiGroups": [GROUP], "resources": ["clusters/proxy"], "verbs": VERBS}]))
}

/// Creates the Cluster as an administrator of the hub, as soon as the server is there.
fn register(hub: &HubSide, plan: &Plan<'_>, process: &mut Process) -> Result<()> {
    let client = Client::new(plan.address, &plan.trusted, Some(hub.hub.server.admin()));
    let cluster = Bytes::from(cluster(plan).to_string());
    wait::until("its Cluster", START_LIMIT, || {
        process.check()?;
        let headers = [("content-type", "application/json")];
        client.send(&Method::POST, CLUSTERS, &headers, cluster.clone())?.expect(StatusCode::CREATED)
    })
    .map(drop)
}

fn cluster(plan: &Plan<'_>) -> Value {
    let secret = json!({"namespace": NAMESPACE, "name": plan.name});
    json!({
        "apiVersion": format!("{GROUP}/v1alpha1"),
        "kind": "Cluster",
        "metadata": {"name": plan.destination.cluster},
        "spec": {
            "syncMode": "Push",
            "apiEndpoint": format!("https://{}", plan.destination.address),
            "secretRef": secret,
            "impersonatorSecretRef": secret,
        },
    })
}

/// Both Secrets of the Cluster: the member's authority, and the token of an account that may
/// impersonate.
fn secret(plan: &Plan<'_>) -> Value {
    let token = plan.registered.token.unwrap_or(TOKEN);
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"namespace": NAMESPACE, "name": plan.name},
        "stringData": {"token": token, "caBundle": plan.destination.authority.root_pem()},
    })
}
