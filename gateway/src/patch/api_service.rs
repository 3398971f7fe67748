//! One attempt: reads the Secret and the APIService, and patches the differences.

use std::fmt;

use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::APIService;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use net::words::causes;
use serde::Serialize;

use super::args::Args;
use super::bundle::{Bundle, NotABundle};

/// The result of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    Patched,
    /// It was correct already.
    None,
}

/// Why an attempt failed. Another may succeed.
#[derive(Debug, thiserror::Error)]
pub enum PatchError {
    #[error("Secret {0} does not exist")]
    NoSecret(String),
    #[error("Secret {secret} has no key {key:?}: it has {present}")]
    NoKey { secret: String, key: String, present: String },
    #[error("key {key:?} of Secret {secret} {source}")]
    Value { secret: String, key: String, source: NotABundle },
    #[error("APIService {0} does not exist")]
    NoApiService(String),
    #[error("cannot {verb} {object}: {problem}")]
    Hub { verb: &'static str, object: String, problem: Problem },
}

/// An error of the hub's client, in a form that may be shown.
#[derive(Debug)]
pub struct Problem(kube::Error);

#[derive(Debug, Serialize)]
struct Document<'a> {
    spec: Spec<'a>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Spec<'a> {
    ca_bundle: &'a k8s_openapi::ByteString,
    #[serde(rename = "insecureSkipTLSVerify")]
    insecure_skip_tls_verify: bool,
}

/// Makes the APIService trust the Secret's certificates, and only them.
pub async fn put_right(client: &Client, args: &Args) -> Result<Change, PatchError> {
    let bundle = bundle(client, args).await?;
    let object = || format!("APIService {}", args.api_service);
    let hub = |verb| move |error| PatchError::Hub { verb, object: object(), problem: Problem(error) };
    let api_services = Api::<APIService>::all(client.clone());
    let found = api_services.get_opt(&args.api_service).await.map_err(hub("read"))?;
    let found = found.ok_or_else(|| PatchError::NoApiService(args.api_service.clone()))?;
    if is_right(&found, &bundle) {
        return Ok(Change::None);
    }
    // Both in one patch: the hub refuses an APIService that has a bundle and skips verification.
    let document = Document { spec: Spec { ca_bundle: bundle.bytes(), insecure_skip_tls_verify: false } };
    let patch = Patch::Merge(&document);
    api_services.patch(&args.api_service, &PatchParams::default(), &patch).await.map_err(hub("patch"))?;
    Ok(Change::Patched)
}

async fn bundle(client: &Client, args: &Args) -> Result<Bundle, PatchError> {
    let name = format!("{}/{}", args.namespace, args.secret);
    let secrets = Api::<Secret>::namespaced(client.clone(), &args.namespace);
    let secret = match secrets.get_opt(&args.secret).await {
        Ok(Some(secret)) => secret,
        Ok(None) => return Err(PatchError::NoSecret(name)),
        Err(error) => {
            return Err(PatchError::Hub { verb: "read", object: format!("Secret {name}"), problem: Problem(error) });
        }
    };
    let data = secret.data.unwrap_or_default();
    let key = args.key.clone();
    let Some(value) = data.get(&key) else {
        let keys: Vec<_> = data.into_keys().collect();
        let present = if keys.is_empty() { "none".to_owned() } else { keys.join(", ") };
        return Err(PatchError::NoKey { secret: name, key, present });
    };
    Bundle::parse(value).map_err(|source| PatchError::Value { secret: name, key, source })
}

fn is_right(found: &APIService, bundle: &Bundle) -> bool {
    found.spec.as_ref().is_some_and(|spec| {
        spec.ca_bundle.as_ref() == Some(bundle.bytes()) && !spec.insecure_skip_tls_verify.unwrap_or_default()
    })
}

// === impl Problem ===

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            kube::Error::Api(status) => f.write_str(&status.message),
            // Its text quotes what could not be parsed, which may be the Secret.
            kube::Error::SerdeError(_) => f.write_str("the answer is not a Kubernetes object"),
            kube::Error::Service(error) => f.write_str(&causes(error.as_ref())),
            other => other.fmt(f),
        }
    }
}
