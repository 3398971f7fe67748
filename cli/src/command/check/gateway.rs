//! The gateway's Deployments on the hub: replicas, age, certificate and rights.

use std::collections::BTreeMap;

use futures_util::future::join_all;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Service;
use kube::api::{Api, ListParams};

use super::{rights, unseen};
use crate::expiry::{Expiry, now};
use crate::findings::{self, Finding};
use crate::needs::{self, OF_GATEWAY};
use crate::serving;
use crate::session::Session;
use crate::trouble::Result;

/// Most Deployments that are read.
const MOST: u32 = 100;

/// The gateway's objects on the hub.
pub struct Gateway {
    pub namespace: String,
    /// All Deployments in its namespace.
    pub deployments: Result<Vec<Deployment>>,
    selector: Vec<(String, String)>,
}

// === impl Gateway ===

impl Gateway {
    /// The gateway behind the Service `name`.
    pub async fn behind(session: &Session, namespace: String, name: &str) -> Self {
        let client = session.hub();
        let service = session.within(Api::<Service>::namespaced(client.clone(), &namespace).get(name)).await;
        let selector = service.ok().and_then(|service| service.spec?.selector).unwrap_or_default();
        let deployments = Api::<Deployment>::namespaced(client.clone(), &namespace);
        let listed = session.within(deployments.list(&ListParams::default().limit(MOST))).await;
        Self { namespace, deployments: listed.map(|list| list.items), selector: selector.into_iter().collect() }
    }

    /// Findings about the gateway. `clusters` is the namespace of its clusters' Secrets.
    pub async fn look(&self, session: &Session, clusters: &str) -> Vec<Finding> {
        let deployments = match &self.deployments {
            Ok(deployments) => deployments,
            Err(trouble) => return vec![unseen("its Deployments", trouble)],
        };
        let own: Vec<_> = deployments.iter().filter(|deployment| is_behind(deployment, &self.selector)).collect();
        if own.is_empty() {
            let what = format!("no Deployment is behind its Service in {}", self.namespace);
            return vec![Finding::warning(what, "it runs elsewhere: check it there")];
        }
        let mut found: Vec<_> = own.iter().map(|deployment| findings::replicas(deployment)).collect();
        found.extend(own.iter().filter_map(|deployment| findings::age(deployment, env!("CARGO_PKG_VERSION"))));
        for deployment in &own {
            found.extend(certificate(session, deployment).await);
        }
        found.extend(self.rights(session, &own, clusters).await);
        found
    }

    async fn rights(&self, session: &Session, own: &[&Deployment], clusters: &str) -> Vec<Finding> {
        let account =
            own.iter().find_map(|own| own.spec.as_ref()?.template.spec.as_ref()?.service_account_name.as_deref());
        let user = &format!("system:serviceaccount:{}:{}", self.namespace, account.unwrap_or("default"));
        let asked =
            OF_GATEWAY.iter().map(|need| async move { (need, rights::may(session, user, need, clusters).await) });
        let mut found = Vec::new();
        for (need, allowed) in join_all(asked).await {
            match allowed {
                Ok(allowed) => found.push(needs::right("the gateway", need, clusters, allowed)),
                Err(trouble) => {
                    found.push(unseen("the gateway's rights", &trouble));
                    break;
                }
            }
        }
        found
    }
}

/// Finding about the gateway's serving certificate. `None` if it is not kept in a Secret.
async fn certificate(session: &Session, deployment: &Deployment) -> Option<Finding> {
    let what = "the gateway's serving certificate";
    match serving::file(session, deployment, serving::CERTIFICATE).await {
        Ok(pem) => {
            let remedy = "renew it: see the chart's README; the gateway follows without a restart";
            Some(findings::ending(what, Expiry::of_certificate(&pem?), now(), remedy))
        }
        Err(trouble) => Some(unseen(what, &trouble)),
    }
}

fn is_behind(deployment: &Deployment, selector: &[(String, String)]) -> bool {
    let labels = deployment.spec.as_ref().and_then(|spec| spec.template.metadata.as_ref()?.labels.as_ref());
    let matches =
        |labels: &BTreeMap<String, String>| selector.iter().all(|(key, value)| labels.get(key) == Some(value));
    !selector.is_empty() && labels.is_some_and(matches)
}
