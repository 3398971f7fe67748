//! The gateway's Deployments on the hub: replicas, age, certificate and rights.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Service;
use kube::api::{Api, ListParams};

use super::rights::Account;
use super::unseen;
use crate::expiry::{Expiry, now};
use crate::findings::{self, Finding};
use crate::needs::OF_GATEWAY;
use crate::serving;
use crate::session::Session;
use crate::trouble::Result;

/// Most Deployments that are read.
const MOST: u32 = 100;
/// The controllers' container, as the chart calls it.
const CONTROLLERS: &str = "cluster-gateway-controllers";

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
        let mut found = replicas(&own);
        for deployment in &own {
            found.extend(certificate(session, deployment).await);
        }
        let account = own.iter().find_map(|deployment| account(deployment));
        let account = Account { who: "the gateway", namespace: &self.namespace, name: account.unwrap_or("default") };
        found.extend(account.rights(session, &OF_GATEWAY, clusters).await);
        found
    }

    /// What is found of the controllers, if they are installed beside it.
    pub fn controllers(&self) -> Vec<Finding> {
        let deployments = self.deployments.as_deref().unwrap_or_default();
        let own: Vec<_> =
            deployments.iter().filter(|deployment| findings::has_container(deployment, &[CONTROLLERS])).collect();
        replicas(&own)
    }
}

/// Their replicas, and which of them are of another version.
fn replicas(own: &[&Deployment]) -> Vec<Finding> {
    let ages = own.iter().filter_map(|deployment| findings::age(deployment, env!("CARGO_PKG_VERSION")));
    own.iter().map(|deployment| findings::replicas(deployment)).chain(ages).collect()
}

/// The ServiceAccount of its pods.
pub fn account(deployment: &Deployment) -> Option<&str> {
    deployment.spec.as_ref()?.template.spec.as_ref()?.service_account_name.as_deref()
}

/// Nothing of one that is kept elsewhere.
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
