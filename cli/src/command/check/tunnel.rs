//! The tunnel on the hub: its servers, what agents dial, and the certificates of all three ends.

use std::collections::{BTreeMap, BTreeSet};

use api::secret::{CA_KEY, TLS_CERT_KEY};
use futures_util::future::join_all;
use k8s_openapi::ByteString;
use k8s_openapi::api::apps::v1::Deployment;

use super::gateway::{Gateway, account};
use super::rights::Account;
use super::unseen;
use crate::expiry::{Expiry, now};
use crate::findings::{self, Finding};
use crate::needs::OF_TUNNEL_SERVERS;
use crate::session::Session;
use crate::trouble::Result;
use crate::{servers, serving};

const RENEW: &str = "renew it: see the chart's README";
/// Flags of gateways and tunnel-servers that name the files for TLS between the two, what each file
/// is, and whether it is a CA. When one of them has expired, no cluster behind the tunnel can be
/// reached.
const BETWEEN: [(&str, &str, bool); 4] = [
    ("--proxy-cert", "the gateway's certificate for tunnel-servers", false),
    ("--proxy-ca-cert", "the gateway's CA for tunnel-servers", true),
    ("--frontend-tls-cert-file", "the tunnel-servers' certificate for gateways", false),
    ("--frontend-client-ca-file", "the tunnel-servers' CA for gateways", true),
];

/// Findings about the tunnel-servers' Deployments, the certificates, and what agents dial, if there
/// are any.
pub async fn look(session: &Session, gateway: &Gateway) -> Vec<Finding> {
    let serves = |deployment: &&Deployment| findings::has_container(deployment, &["tunnel-server"]);
    let deployments = gateway.deployments.as_deref().unwrap_or_default();
    let mut found: Vec<_> = deployments.iter().filter(serves).map(findings::replicas).collect();
    let (certificates, rights, service) = tokio::join!(
        join_all(deployments.iter().map(|deployment| between(session, deployment))),
        rights(session, gateway, deployments.iter().filter(serves)),
        servers::service(session, &gateway.namespace)
    );
    found.extend(certificates.into_iter().flatten().chain(rights));
    match service {
        Ok(Some(service)) => {
            let certificate = servers::certificate(session, &service).await;
            let names = certificate.as_ref().ok().and_then(|data| servers::names(data.as_ref()?));
            found.push(match servers::dialled(&service, names.as_deref(), &[]) {
                Ok((addresses, _)) => Finding::good(format!("agents dial {}", addresses.join(", "))),
                Err(trouble) => Finding::warning(trouble.what, "`kubectl clusters join --tunnel` needs --server then"),
            });
            found.extend(of_agents(certificate));
        }
        Ok(None) => {}
        Err(trouble) => found.push(unseen("the Service for agents", &trouble)),
    }
    found
}

/// Whether the tunnel-servers may ask the hub who agents are, and which cluster they may link.
async fn rights<'a>(
    session: &Session,
    gateway: &Gateway,
    servers: impl Iterator<Item = &'a Deployment>,
) -> Vec<Finding> {
    let accounts: BTreeSet<_> = servers.map(|server| account(server).unwrap_or("default")).collect();
    let asked = accounts.into_iter().map(async |name| {
        let account = Account { who: "the tunnel-servers", namespace: &gateway.namespace, name };
        account.rights(session, &OF_TUNNEL_SERVERS, "").await
    });
    join_all(asked).await.into_iter().flatten().collect()
}

/// Nothing of those that are kept elsewhere than in Secrets.
async fn between(session: &Session, deployment: &Deployment) -> Vec<Finding> {
    let looks = BETWEEN.map(async |(flag, what, is_authority)| match serving::file(session, deployment, flag).await {
        Ok(Some(pem)) if is_authority => Some(findings::bundle(what, &pem, now(), RENEW)),
        Ok(Some(pem)) => Some(findings::ending(what, Expiry::of_certificate(&pem), now(), RENEW)),
        Ok(None) => None,
        Err(trouble) => Some(unseen(what, &trouble)),
    });
    join_all(looks).await.into_iter().flatten().collect()
}

/// Nothing of what is kept elsewhere.
fn of_agents(certificate: Result<Option<BTreeMap<String, ByteString>>>) -> Vec<Finding> {
    let what = "the certificate that agents verify";
    match certificate {
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
    let authority = authority.map(|pem| findings::bundle("the agents' CA for tunnel-servers", &pem.0, now(), RENEW));
    certificate.into_iter().chain(authority).collect()
}
