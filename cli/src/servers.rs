//! The servers that agents link to: what the gateway's chart installed for agents on the hub.

use k8s_openapi::ByteString;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Secret, Service};
use kube::ResourceExt as _;
use kube::api::{Api, ListParams};
use std::collections::BTreeMap;

use crate::agent;
use crate::session::Session;
use crate::trouble::{Result, Trouble};

/// Most Services, and most Deployments, that are read.
const MOST: u32 = 500;
/// Name suffix of the chart's Service for agents: of tunnel-servers, or of gateways that accept
/// agents themselves.
const SUFFIX: &str = "-tunnel-agents";
const PORT: i32 = 8091;

/// The Service that agents dial, in the gateway's `namespace`. `None`: the hub accepts no agents.
pub async fn service(session: &Session, namespace: &str) -> Result<Option<Service>> {
    let services = Api::<Service>::namespaced(session.hub().clone(), namespace);
    let listed = session.within(services.list(&ListParams::default().limit(MOST))).await?;
    Ok(listed.items.into_iter().find(|service| service.name_any().ends_with(SUFFIX)))
}

/// The `HOST:PORT` at which members can dial the Service.
pub fn addresses(service: &Service) -> Result<Vec<String>> {
    let port =
        service.spec.as_ref().and_then(|spec| spec.ports.as_ref()?.first().map(|port| port.port)).unwrap_or(PORT);
    let ingress = service.status.clone().and_then(|status| status.load_balancer?.ingress).unwrap_or_default();
    let hosts: Vec<_> = ingress.into_iter().filter_map(|ingress| ingress.hostname.or(ingress.ip)).collect();
    if hosts.is_empty() {
        let what = format!("the Service {} has no address that a member could dial", service.name_any());
        return Err(Trouble::failed(what, "give the address with --server HOST:PORT"));
    }
    let bracketed =
        |host: String| if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
    Ok(hosts.into_iter().map(bracketed).collect())
}

/// The Secret with the certificate that agents verify, and with its CA. `None`: it is kept
/// elsewhere.
pub async fn certificate(session: &Session, service: &Service) -> Result<Option<BTreeMap<String, ByteString>>> {
    let (name, namespace) = (service.name_any(), service.namespace().unwrap_or_default());
    let secrets = Api::<Secret>::namespaced(session.hub().clone(), &namespace);
    for name in [format!("{name}-tls"), format!("{name}-tls-issued")] {
        let secret = session.within(secrets.get_opt(&name)).await?;
        if let Some(data) = secret.and_then(|secret| secret.data) {
            return Ok(Some(data));
        }
    }
    Ok(None)
}

/// The agent's image from the same place as those of the hub's programs, in the gateway's
/// `namespace`. `None`: unknown.
pub async fn agents_image(session: &Session, namespace: &str) -> Option<String> {
    let deployments = Api::<Deployment>::namespaced(session.hub().clone(), namespace);
    let listed = session.within(deployments.list(&ListParams::default().limit(MOST))).await.ok()?;
    let pods = listed.items.into_iter().filter_map(|deployment| deployment.spec?.template.spec);
    pods.flat_map(|pod| pod.containers).find_map(|container| agent::image_beside(&container.image?))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn agents_dial_what_the_load_balancer_got() {
        let service = |ingress: Value| -> Service {
            serde_json::from_value(json!({"metadata": {"name": "x-agents"}, "spec": {"ports": [{"port": 8091}]}, "status": {"loadBalancer": {"ingress": ingress}}})).unwrap()
        };
        let found =
            addresses(&service(json!([{"ip": "10.0.0.1"}, {"hostname": "hub.example"}, {"ip": "2001:db8::1"}])))
                .unwrap();
        assert_eq!(found, ["10.0.0.1:8091", "hub.example:8091", "[2001:db8::1]:8091"]);
        assert!(addresses(&service(json!([]))).unwrap_err().remedy.contains("--server"));
    }
}
