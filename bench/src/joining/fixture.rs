//! Objects of a hub before clusters join: kinds, admission policies, and the accounts that may ask.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, ensure};
use bytes::Bytes;
use http::Method;
use hub_tests::helm::{Helm, account_kubeconfig, rights};
use hub_tests::tools;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::{GROUP, NAMESPACE};
use crate::caller::Caller;
use crate::testbed::HubSide;

const KINDS: [&str; 4] = ["cluster/v1/0000_00", "cluster/v1beta2/0000_0", "work/v1/0000_00", "addon/v1alpha1/0000_0"];
const ACCOUNT: &str = "agent";
/// Name of the controllers in the chart's output.
const CONTROLLERS: &str = "bench-cluster-gateway-controllers";
const VALUES: &str = "--set=controllers.enabled=true,controllers.ocmRegistration.enabled=true";
const PROBE: &str = "cluster.core.oam.dev/admission-probe";
const PROOF: &str = "cluster-gateway admission is in force";
/// For the hub to enforce policies that were just installed, and to be rid of other scenarios'
/// leftovers.
const LIMIT: Duration = Duration::from_mins(2);
const PAUSE: Duration = Duration::from_millis(100);

/// The user that the controllers let in without a person.
pub fn user() -> String {
    format!("system:serviceaccount:{NAMESPACE}:{ACCOUNT}")
}

/// The token of the account of agents, and the kubeconfig of that of the controllers.
pub struct Accounts {
    pub token: String,
    pub controllers: PathBuf,
}

/// Kinds, policies, and the accounts. `directory` is for helm's files.
pub fn lay(side: &HubSide, directory: &Path) -> Result<Accounts> {
    let server = &side.hub.server;
    side.install(&tools::kinds("open-cluster-management.io/api", &KINDS)?)?;
    server.create_namespace(NAMESPACE)?;
    let helm = Helm::prepare(directory, &server.kubectl().kubeconfig)?;
    // The chart lets the controllers approve requests of users only where its values name them.
    let values = format!("{VALUES},controllers.ocmRegistration.autoApproveUsers={{{}}}", user());
    let objects = helm.template("bench", NAMESPACE, &[values])?;
    let is_policy =
        |object: &&Value| object["kind"].as_str().is_some_and(|kind| kind.starts_with("ValidatingAdmissionPolicy"));
    let policies = objects.iter().filter(is_policy).cloned();
    let given: Vec<_> = policies.chain(rights(&objects, NAMESPACE)).collect();
    side.hub.apply(&given)?;
    let token = server.service_account_token(NAMESPACE, ACCOUNT)?;
    side.grant("joining-agents", (NAMESPACE, ACCOUNT), &rules())?;
    Ok(Accounts { token, controllers: account_kubeconfig(server, NAMESPACE, CONTROLLERS)? })
}

/// Upstream's of the bootstrap account.
fn rules() -> Value {
    json!([
        {"apiGroups": ["certificates.k8s.io"], "resources": ["certificatesigningrequests"],
            "verbs": ["create", "get", "list", "watch"]},
        {"apiGroups": [GROUP], "resources": ["managedclusters"], "verbs": ["get", "create", "list", "watch"]},
    ])
}

/// Deletes the clusters that other scenarios left, and waits until the first policy is enforced.
/// The controllers wait for the others.
pub async fn clear(hub: &Caller) -> Result<()> {
    let (connection, begin) = (hub.connect().await?, Instant::now());
    let path = format!("/apis/{GROUP}/v1/managedclusters");
    hub.ask(&connection, hub.request(Method::DELETE, &path, Bytes::new())?).await?;
    let probe = json!({"apiVersion": format!("{GROUP}/v1"), "kind": "ManagedCluster",
        "metadata": {"name": "probe", "annotations": {PROBE: ""}}});
    loop {
        let request = hub.json(Method::POST, &format!("{path}?dryRun=All"), &probe)?;
        let answer = hub.ask(&connection, request).await;
        if answer.as_ref().is_err_and(|refusal| refusal.to_string().contains(PROOF)) {
            return Ok(());
        }
        ensure!(begin.elapsed() < LIMIT, "the policies are not enforced: {answer:?}");
        sleep(PAUSE).await;
    }
}
