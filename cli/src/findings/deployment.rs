//! What a Deployment says of itself: replicas, and the age of its version.

use k8s_openapi::api::apps::v1::Deployment;
use kube::ResourceExt as _;

use super::Finding;

/// Label of what a chart installed: its version.
pub const VERSION_LABEL: &str = "app.kubernetes.io/version";

/// The program contains the newer chart.
const UPGRADE: &str =
    "`kubectl clusters install` again, or `helm upgrade` the chart; or use the program of that version";

/// Finding about the replicas of a Deployment.
pub fn replicas(deployment: &Deployment) -> Finding {
    let name = deployment.name_any();
    let wanted = deployment.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
    let ready = deployment.status.as_ref().and_then(|status| status.ready_replicas).unwrap_or(0);
    let told = format!("Deployment {name}: {ready} of {wanted} replicas are ready");
    let remedy = format!(
        "see `kubectl -n {} describe deployment {name}` and its pods' log",
        deployment.namespace().unwrap_or_default()
    );
    match ready {
        _ if ready >= wanted && wanted > 1 => Finding::good(told),
        _ if ready >= wanted && wanted == 1 => {
            Finding::warning(told, "one replica is unavailable whenever its node is: run two")
        }
        1.. => Finding::warning(told, remedy),
        _ => Finding::bad(told, remedy),
    }
}

/// Whether a Deployment has a container with one of these names, which our charts give.
pub fn has_container(deployment: &Deployment, names: &[&str]) -> bool {
    let pod = deployment.spec.as_ref().and_then(|spec| spec.template.spec.as_ref());
    pod.is_some_and(|pod| pod.containers.iter().any(|container| names.contains(&container.name.as_str())))
}

/// Warns of a Deployment that is older than this program. Its version label comes from the chart
/// that installed it.
pub fn age(deployment: &Deployment, own: &str) -> Option<Finding> {
    let told = deployment.labels().get(VERSION_LABEL)?;
    let parts = |text: &str| -> Option<Vec<u64>> {
        let text = text.trim_start_matches('v').split(['-', '+']).next()?;
        text.split('.').map(|part| part.parse().ok()).collect()
    };
    let older = parts(told)? < parts(own)?;
    let what = format!("Deployment {} is of version {told}, older than this program ({own})", deployment.name_any());
    older.then(|| Finding::warning(what, UPGRADE))
}
