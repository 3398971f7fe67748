//! The servers that agents link to: what the gateway's chart installed for agents on the hub.

use api::secret::TLS_CERT_KEY;
use k8s_openapi::ByteString;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Secret, Service};
use kube::ResourceExt as _;
use kube::api::{Api, ListParams};
use std::collections::BTreeMap;

use crate::session::Session;
use crate::trouble::{Result, Trouble};
use crate::{agent, serving};

/// Most Services, and most Deployments, that are read.
const MOST: u32 = 500;
/// Name suffix of the chart's Service for agents: of tunnel-servers, or of gateways that accept
/// agents themselves.
const SUFFIX: &str = "-tunnel-agents";
const PORT: i32 = 8091;
/// Of tunnel-servers and of gateways that are their own: with the certificate that agents verify.
const FLAGS: [&str; 2] = ["--agent-tls-cert-file", "--tunnel-tls-cert-file"];

/// The Service that agents dial, in the gateway's `namespace`. `None`: the hub accepts no agents.
pub async fn service(session: &Session, namespace: &str) -> Result<Option<Service>> {
    let services = Api::<Service>::namespaced(session.hub().clone(), namespace);
    let listed = session.within(services.list(&ListParams::default().limit(MOST))).await?;
    Ok(listed.items.into_iter().find(|service| service.name_any().ends_with(SUFFIX)))
}

/// The Service's name as the chart's certificate has it.
pub fn own_name(service: &Service) -> String {
    format!("{}.{}.svc", service.name_any(), service.namespace().unwrap_or_default())
}

/// What agents dial whose servers' certificate is for `names` (`None`: not known), and the name
/// that they expect in it; `None`: the host dialled. `given`: the addresses that a person chose.
pub fn dialled(service: &Service, names: Option<&[String]>, given: &[String]) -> Result<(Vec<String>, Option<String>)> {
    let dialled = if given.is_empty() { addresses(service)? } else { given.to_vec() };
    let own = own_name(service);
    let Some(names) = names.filter(|names| !names.contains(&own)) else { return Ok((dialled, Some(own))) };
    if dialled.iter().all(|address| names.iter().any(|name| is_for(name, host(address)))) {
        return Ok((dialled, None));
    }
    match names.iter().find(|name| !name.starts_with('*')) {
        Some(name) if given.is_empty() => Ok((vec![joined(name, port(service))], None)),
        Some(name) => Ok((dialled, Some(name.clone()))),
        None => {
            let names = if names.is_empty() { "no name".to_owned() } else { names.join(", ") };
            let what =
                format!("the certificate that agents verify is for {names}, and they dial {}", dialled.join(", "));
            Err(Trouble::failed(what, "give --server HOST:PORT, and with --server-name a name in the certificate"))
        }
    }
}

/// Whether a certificate with this name is for `host`. A wildcard stands for one label.
fn is_for(name: &str, host: &str) -> bool {
    let host = host.to_ascii_lowercase();
    match name.strip_prefix("*.") {
        Some(parent) => host.split_once('.').is_some_and(|(_, rest)| rest == parent),
        None => name == host,
    }
}

fn host(address: &str) -> &str {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    host.trim_start_matches('[').trim_end_matches(']')
}

fn joined(host: &str, port: i32) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

fn port(service: &Service) -> i32 {
    let ports = service.spec.as_ref().and_then(|spec| spec.ports.as_ref());
    ports.and_then(|ports| ports.first()).map_or(PORT, |port| port.port)
}

/// `HOST:PORT` where it can be dialled from elsewhere.
fn addresses(service: &Service) -> Result<Vec<String>> {
    let port = port(service);
    let ingress = service.status.clone().and_then(|status| status.load_balancer?.ingress).unwrap_or_default();
    let hosts: Vec<_> = ingress.into_iter().filter_map(|ingress| ingress.hostname.or(ingress.ip)).collect();
    if hosts.is_empty() {
        let what = format!("the Service {} has no address that a member could dial", service.name_any());
        return Err(Trouble::failed(what, "give the address with --server HOST:PORT"));
    }
    Ok(hosts.iter().map(|host| joined(host, port)).collect())
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
    // One that a person made has any name, which only the programs know that use it.
    let deployments = Api::<Deployment>::namespaced(session.hub().clone(), &namespace);
    let listed = session.within(deployments.list(&ListParams::default().limit(MOST))).await?;
    let own = |deployment| FLAGS.iter().find_map(|flag| serving::secret(deployment, flag));
    let Some(name) = listed.items.iter().find_map(own) else { return Ok(None) };
    Ok(session.within(secrets.get_opt(&name)).await?.and_then(|secret| secret.data))
}

/// What that certificate is for; `None`: it cannot be read.
pub fn names(data: &BTreeMap<String, ByteString>) -> Option<Vec<String>> {
    register::certificate::names(&data.get(TLS_CERT_KEY)?.0)
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

    fn service(ingress: &Value) -> Service {
        serde_json::from_value(json!({"metadata": {"name": "x-agents", "namespace": "hub"},
            "spec": {"ports": [{"port": 8091}]}, "status": {"loadBalancer": {"ingress": ingress}}}))
        .unwrap()
    }

    #[test]
    fn agents_dial_what_their_certificate_is_for() {
        let service = service(&json!([{"ip": "10.0.0.1"}]));
        let told = |names: &[&str], given: &[&str]| {
            let [names, given] = [names, given].map(|all| all.iter().map(|&one| one.to_owned()).collect::<Vec<_>>());
            dialled(&service, Some(&names), &given).map(|(all, name)| (all.join(" "), name.unwrap_or_default()))
        };
        let is = |address: &str, name: &str| Ok((address.to_owned(), name.to_owned()));
        let own = "x-agents.hub.svc";
        assert_eq!(told(&[own, "a.example.com"], &[]), is("10.0.0.1:8091", own));
        assert_eq!(told(&["*.example.com", "a.example.com"], &[]), is("a.example.com:8091", ""));
        assert_eq!(told(&["2001:db8::1"], &[]), is("[2001:db8::1]:8091", ""));
        assert_eq!(told(&["a.example.com", "10.0.0.1"], &[]), is("10.0.0.1:8091", ""));
        assert_eq!(told(&["a.example.com"], &["10.0.0.9:443"]), is("10.0.0.9:443", "a.example.com"));
        assert_eq!(told(&["*.example.com"], &["B.example.com:443"]), is("B.example.com:443", ""));
        for (names, part) in [(&["*.example.com"][..], "for *.example.com, and"), (&[], "for no name, and")] {
            let trouble = told(names, &["a.b.example.com:443"]).unwrap_err();
            assert!(trouble.what.contains(part) && trouble.remedy.contains("--server-name"), "{trouble}");
        }
        assert_eq!(dialled(&service, None, &[]).unwrap().1.as_deref(), Some(own), "as the chart makes it");
    }

    #[test]
    fn agents_dial_what_the_load_balancer_got() {
        let found =
            addresses(&service(&json!([{"ip": "10.0.0.1"}, {"hostname": "hub.example"}, {"ip": "2001:db8::1"}])))
                .unwrap();
        assert_eq!(found, ["10.0.0.1:8091", "hub.example:8091", "[2001:db8::1]:8091"]);
        assert!(addresses(&service(&json!([]))).unwrap_err().remedy.contains("--server"));
    }
}
