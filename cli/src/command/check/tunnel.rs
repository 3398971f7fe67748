//! The tunnel on the hub: its servers, what agents dial, and the certificates of all three ends.

use std::collections::BTreeMap;

use api::secret::{CA_KEY, TLS_CERT_KEY};
use futures_util::future::join_all;
use k8s_openapi::ByteString;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Service;

use super::gateway::Gateway;
use super::unseen;
use crate::expiry::{Expiry, now};
use crate::findings::{self, Finding};
use crate::session::Session;
use crate::{servers, serving};

const RENEW: &str = "renew it: see the chart's README";
/// Flags of gateways and tunnel-servers that name the files for TLS between the two, what each file
/// is, and whether it is a CA. When one of them has expired, no cluster behind the tunnel can be
/// reached.
const BETWEEN: [(&str, &str, bool); 4] = [
    ("--proxy-cert", "the gateway's certificate for tunnel-servers", false),
    ("--proxy-ca-cert", "the CA by which the gateway knows tunnel-servers", true),
    ("--frontend-tls-cert-file", "the tunnel-servers' certificate for gateways", false),
    ("--frontend-client-ca-file", "the CA by which tunnel-servers know gateways", true),
];

/// Findings about the tunnel-servers' Deployments, the certificates, and what agents dial, if there
/// are any.
pub async fn look(session: &Session, gateway: &Gateway) -> Vec<Finding> {
    let serves = |deployment: &&Deployment| findings::has_container(deployment, &["tunnel-server"]);
    let deployments = gateway.deployments.as_deref().unwrap_or_default();
    let mut found: Vec<_> = deployments.iter().filter(serves).map(findings::replicas).collect();
    let (certificates, service) = tokio::join!(
        join_all(deployments.iter().map(|deployment| between(session, deployment))),
        servers::service(session, &gateway.namespace)
    );
    found.extend(certificates.into_iter().flatten());
    match service {
        Ok(Some(service)) => {
            found.push(match servers::addresses(&service) {
                Ok(addresses) => Finding::good(format!("agents dial {}", addresses.join(", "))),
                Err(trouble) => Finding::warning(trouble.what, "`kubectl clusters join --tunnel` needs --server then"),
            });
            found.extend(of_agents(session, &service).await);
        }
        Ok(None) => {}
        Err(trouble) => found.push(unseen("the Service for agents", &trouble)),
    }
    found
}

/// Findings about the files of [`BETWEEN`], except those that are not kept in Secrets.
async fn between(session: &Session, deployment: &Deployment) -> Vec<Finding> {
    let looks = BETWEEN.map(async |(flag, what, is_authority)| match serving::file(session, deployment, flag).await {
        Ok(Some(pem)) if is_authority => Some(findings::bundle(what, &pem, now(), RENEW)),
        Ok(Some(pem)) => Some(findings::ending(what, Expiry::of_certificate(&pem), now(), RENEW)),
        Ok(None) => None,
        Err(trouble) => Some(unseen(what, &trouble)),
    });
    join_all(looks).await.into_iter().flatten().collect()
}

/// Findings about the certificate that agents verify. None if it is kept elsewhere.
async fn of_agents(session: &Session, service: &Service) -> Vec<Finding> {
    let what = "the certificate that agents verify";
    match servers::certificate(session, service).await {
        Ok(Some(data)) => verified(&data, what),
        Ok(None) => Vec::new(),
        Err(trouble) => vec![unseen(what, &trouble)],
    }
}

/// Findings about a certificate and its CA. A certificate of a public CA comes without its CA.
fn verified(data: &BTreeMap<String, ByteString>, what: &str) -> Vec<Finding> {
    let certificate = data.get(TLS_CERT_KEY);
    let certificate = certificate.map(|pem| findings::ending(what, Expiry::of_certificate(&pem.0), now(), RENEW));
    let authority = data.get(CA_KEY).filter(|pem| !pem.0.is_empty());
    let authority = authority.map(|pem| findings::bundle("the CA by which agents verify it", &pem.0, now(), RENEW));
    certificate.into_iter().chain(authority).collect()
}
