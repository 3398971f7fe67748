//! Gateways of the hub: ours and the Go one, which takes the same flags.

use std::path::Path;

use anyhow::Result;
use hub_tests::hub::SECRET_NAMESPACE;
use hub_tests::process::Process;
use serde_json::{Value, json};

use super::{Access, Plan};
use crate::testbed::Testbed;
use crate::upstream::TOKEN;

/// Starts ours with as many serving threads as planned, and `more` flags.
pub fn ours(testbed: &mut Testbed, plan: &Plan<'_>, program: &Path, more: &[&str]) -> Result<(Process, Access)> {
    let mut flags = flags(testbed, plan)?;
    flags.extend(more.iter().map(|&flag| flag.to_owned()));
    flags.push(format!("--serving-threads={}", plan.threads));
    flags.push("--shutdown-delay-duration=0s".to_owned());
    Ok((Process::start(&plan.name, program, flags, &plan.directory)?, access(testbed, plan)?))
}

/// Reads of the hub that the Go gateway needs before it serves requests: admission and flow
/// control, as its chart allows it.
fn read_rights() -> Value {
    let verbs = ["get", "list", "watch"];
    let rule = |group: &str, name: &str| json!({"apiGroups": [group], "resources": [name], "verbs": verbs});
    json!([
        rule("", "namespaces"),
        rule("admissionregistration.k8s.io", "*"),
        rule("flowcontrol.apiserver.k8s.io", "*")
    ])
}

/// Uses as many processors as it finds: it is not slowed down.
pub fn go(testbed: &mut Testbed, plan: &Plan<'_>, program: &Path) -> Result<(Process, Access)> {
    let mut flags = flags(testbed, plan)?;
    testbed.hub()?.grant("go-gateway", (SECRET_NAMESPACE, "gateway"), &read_rights())?;
    flags.push("--authorization-always-allow-paths=/healthz,/readyz,/livez,/metrics".to_owned());
    Ok((Process::start(&plan.name, program, flags, &plan.directory)?, access(testbed, plan)?))
}

/// Registers the destination on the hub, too, unless that was done.
fn flags(testbed: &mut Testbed, plan: &Plan<'_>) -> Result<Vec<String>> {
    let hub = testbed.hub()?;
    let (destination, registered) = (&plan.destination, &plan.registered);
    if registered.namespace.is_none() {
        hub.register(destination.cluster, &format!("https://{}", destination.address), destination.authority, TOKEN)?;
    }
    let kubeconfig = hub.kubeconfig.display();
    let mut flags = vec![
        format!("--secure-port={}", plan.address.port()),
        format!("--bind-address={}", plan.address.ip()),
        format!("--kubeconfig={kubeconfig}"),
        format!("--authentication-kubeconfig={kubeconfig}"),
        format!("--authorization-kubeconfig={kubeconfig}"),
        format!("--secret-namespace={}", registered.namespace.unwrap_or(SECRET_NAMESPACE)),
        format!("--tls-cert-file={}", plan.serving.certificate.display()),
        format!("--tls-private-key-file={}", plan.serving.key.display()),
    ];
    flags.extend(registered.flags.iter().map(|&flag| flag.to_owned()));
    Ok(flags)
}

fn access(testbed: &mut Testbed, plan: &Plan<'_>) -> Result<Access> {
    Ok(Access {
        address: None,
        prefix: format!("/apis/cluster.core.oam.dev/v1alpha1/clustergateways/{}/proxy", plan.destination.cluster),
        headers: vec![format!("Authorization: Bearer {}", testbed.hub()?.token)],
    })
}
