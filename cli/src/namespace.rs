//! Finds the namespace of the clusters' Secrets.
//!
//! The gateway's API does not report it. The gateway's flag does, in the Deployment behind its
//! Service. Without the flag, it is the namespace of that Service, which is the charts' default.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::APIService;
use kube::api::{Api, ListParams};

use crate::session::Session;
use crate::trouble::{Result, Trouble};

/// The APIService that registers the gateway's API group on the hub.
pub const API_SERVICE: &str = "v1alpha1.cluster.core.oam.dev";
const FLAG: &str = "--secret-namespace";
/// Most Deployments that are read.
const MOST: u32 = 100;

/// The namespace that the option gives, or else the one found.
pub async fn of_clusters(session: &Session) -> Result<String> {
    if let Some(namespace) = &session.options.clusters_namespace {
        return Ok(namespace.clone());
    }
    let own = of_gateway(session).await.map_err(|trouble| {
        let refused = trouble.is_forbidden();
        if refused {
            trouble.remedied("give the namespace of the clusters' Secrets: --clusters-namespace")
        } else {
            trouble
        }
    })?;
    let deployments = Api::<Deployment>::namespaced(session.hub().clone(), &own);
    // If the user may not read them, the default may still be right.
    let found = session.within(deployments.list(&ListParams::default().limit(MOST))).await;
    Ok(found.ok().and_then(|list| of_flags(&list.items)).unwrap_or(own))
}

/// The namespace of the gateway's Service.
pub async fn of_gateway(session: &Session) -> Result<String> {
    let service = session.within(Api::<APIService>::all(session.hub().clone()).get_opt(API_SERVICE)).await;
    let Some(service) = service.map_err(unknown)? else {
        return Err(Trouble::no_gateway(format_args!("there is no APIService {API_SERVICE}")));
    };
    let namespace = service.spec.and_then(|spec| spec.service).and_then(|service| service.namespace);
    namespace.ok_or_else(|| {
        let remedy = "give the namespace of the clusters' Secrets: --clusters-namespace";
        Trouble::failed(format!("the APIService {API_SERVICE} names no Service"), remedy)
    })
}

fn unknown(trouble: Trouble) -> Trouble {
    let trouble = trouble.when("cannot find the gateway");
    if !trouble.is_forbidden() {
        return trouble;
    }
    trouble.remedied(format!("you need `get` of the APIService {API_SERVICE}"))
}

/// The value of the gateway's flag, from the first of `deployments` that has it.
fn of_flags(deployments: &[Deployment]) -> Option<String> {
    let containers = deployments
        .iter()
        .filter_map(|deployment| deployment.spec.as_ref()?.template.spec.as_ref())
        .flat_map(|pod| &pod.containers);
    let words = containers.map(|container| {
        let both = [&container.command, &container.args];
        both.into_iter().flatten().flatten().map(String::as_str).collect::<Vec<_>>()
    });
    words.into_iter().find_map(|words| {
        let mut words = words.into_iter();
        let word = words.find(|word| word.starts_with(FLAG))?;
        let value = match word.strip_prefix(FLAG)? {
            "" => words.next()?,
            given => given.strip_prefix('=')?,
        };
        Some(value.to_owned()).filter(|value| !value.is_empty())
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn deployment(args: &[&str]) -> Deployment {
        let spec = json!({"selector": {}, "template": {"spec": {"containers": [{"name": "c", "args": args}]}}});
        serde_json::from_value(json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {}, "spec": spec}))
            .unwrap()
    }

    #[test]
    fn the_gateways_flag_is_found_in_both_spellings() {
        let other = deployment(&["--secret-namespaces=no"]);
        for args in [&["--a", "--secret-namespace=clusters"][..], &["--secret-namespace", "clusters"]] {
            assert_eq!(of_flags(&[other.clone(), deployment(args)]).as_deref(), Some("clusters"));
        }
        assert_eq!(of_flags(&[other, deployment(&["--secret-namespace"])]), None);
    }
}
