//! Warns of programs of another version. They may not know what a join asks of them: the warning
//! explains a failure that follows.

use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{Api, ListParams};
use serde_json::Value;

use crate::findings::{self, Finding};
use crate::session::Session;
use crate::{namespace, output};

const OWN: &str = env!("CARGO_PKG_VERSION");
/// Most Deployments that are read.
const MOST: u32 = 100;
/// The containers of the gateway's chart through which clusters are reached.
const PROGRAMS: [&str; 2] = ["cluster-gateway", "tunnel-server"];

/// Warns of programs on the hub that are older than this one. There is no warning if the user may
/// not see them, or cannot now: no join fails because of this.
pub async fn warn_of_hub(session: &Session) {
    let Ok(namespace) = namespace::of_gateway(session).await else { return };
    let deployments = Api::<Deployment>::namespaced(session.hub().clone(), &namespace);
    let Ok(listed) = session.within(deployments.list(&ListParams::default().limit(MOST))).await else { return };
    older(&listed.items, OWN).iter().for_each(warn);
}

/// Warns of an agent's chart whose version is not this program's.
pub fn warn_of_agent(manifests: &[Value]) {
    other(manifests, OWN).iter().for_each(warn);
}

fn older(deployments: &[Deployment], own: &str) -> Vec<Finding> {
    let ours = deployments.iter().filter(|deployment| findings::has_container(deployment, &PROGRAMS));
    ours.filter_map(|deployment| findings::age(deployment, own)).collect()
}

fn other(manifests: &[Value], own: &str) -> Option<Finding> {
    let deployment = manifests.iter().find(|document| document["kind"] == "Deployment")?;
    let told = deployment["metadata"]["labels"][findings::VERSION_LABEL].as_str().filter(|told| *told != own)?;
    let what = format!("the agent's chart is of version {told}, and this program is of {own}");
    Some(Finding::warning(what, "omit --agent-chart for this program's chart, or use the program of that version"))
}

fn warn(found: &Finding) {
    output::say(&format!("warning: {}", found.what));
    output::say(&format!("remedy: {}", found.remedy));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn deployment(container: &str, version: &str) -> Value {
        let pod = json!({"spec": {"containers": [{"name": container}]}});
        let metadata = json!({"name": container, "labels": {"app.kubernetes.io/version": version}});
        json!({"kind": "Deployment", "metadata": metadata, "spec": {"selector": {}, "template": pod}})
    }

    #[test]
    fn older_programs_of_the_hub_are_told_of_and_nobody_elses() {
        let all = [("cluster-gateway", "0.1.9"), ("tunnel-server", "0.2.0"), ("grafana", "0.0.1")];
        let all = all.map(|(name, version)| serde_json::from_value(deployment(name, version)).unwrap());
        let found = older(&all, "0.2.0");
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].what.contains("cluster-gateway is of version 0.1.9, older"), "{found:?}");
        assert!(found[0].remedy.contains("helm upgrade"), "{found:?}");
    }

    #[test]
    fn an_agent_of_another_version_is_told_of() {
        let told = |version: &str| other(&[json!({"kind": "Secret"}), deployment("tunnel-agent", version)], "0.2.0");
        assert_eq!(told("0.2.0"), None);
        for version in ["0.1.0", "0.3.0"] {
            let found = told(version).unwrap();
            assert!(found.what.contains(version) && found.remedy.contains("--agent-chart"), "{found:?}");
        }
        assert_eq!(other(&[], "0.2.0"), None);
    }
}
