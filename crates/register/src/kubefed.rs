//! Clusters of a KubeFed control plane (`core.kubefed.io/v1beta1`), as `kubefedctl join` writes
//! them.
//!
//! A `KubeFedCluster` names a Secret of its own namespace, and the address that receives its token.
//! A user that may create one gets every token there; those of the namespace's own service accounts
//! are refused. Only its own controller writes its status, which is not used here.
//! <https://github.com/kubernetes-retired/kubefed/tree/master/pkg/apis/core/v1beta1>

use api::secret::{ClusterEndpoint, ClusterSecret, ConstEndpoint, Trust};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::fields::{list, required, text};
use crate::reading::{Object, Reading, SecretObject, SecretReference};
use crate::{Refused, Rules, labels, parts};

pub const GROUP: &str = "core.kubefed.io";
pub const KIND: &str = "KubeFedCluster";
pub const VERSIONS: &[&str] = &["v1beta1"];

const ENDPOINT: &str = "spec.apiEndpoint";
const PROXY: &str = "spec.proxyURL";
const BUNDLE: &str = "spec.caBundle";
const SECRET: &str = "spec.secretRef.name";
const DISABLED: &str = "spec.disabledTLSValidations";
/// Values of `spec.disabledTLSValidations`.
const ALL: &str = "*";
const SUBJECT_NAME: &str = "SubjectName";
const VALIDITY_PERIOD: &str = "ValidityPeriod";
const TOKEN_KEY: &str = "token";

/// The Secret that `cluster` refers to. Malformed references are left out: [`read`] reports them.
pub fn references(cluster: &Value) -> Vec<SecretReference> {
    Object::read(cluster).and_then(|object| reference(&object, cluster)).into_iter().collect()
}

/// Reads `cluster`, with the Secret it refers to, if that exists.
///
/// Its address is a URL, or a host with or without a port; without a scheme it is https. Without a
/// bundle it is verified against the system's roots.
pub fn read(cluster: &Value, secrets: &[&SecretObject], rules: &Rules) -> Reading {
    registered(cluster, secrets, rules).into()
}

fn registered(cluster: &Value, secrets: &[&SecretObject], rules: &Rules) -> Result<ClusterSecret, Reading> {
    let object = Object::whole_of(cluster, GROUP, KIND, VERSIONS)?;
    let secret = parts::find(SECRET, &reference(&object, cluster)?, secrets, object.is_deleting)?;
    let credential = parts::token(SECRET, secret)?.ok_or(Refused::NoKey(TOKEN_KEY))?;
    let url = parts::address(ENDPOINT, required(cluster, ENDPOINT)?, rules)?;
    let proxy = match text(cluster, PROXY)? {
        "" => None,
        proxy => Some(parts::proxy(PROXY, proxy, rules)?),
    };
    let endpoint = ClusterEndpoint::Const(ConstEndpoint { url, proxy, fallbacks: Vec::new() });
    let mut registered = ClusterSecret::new(endpoint, trust(cluster, rules)?, credential);
    registered.labels = labels::taken(&object.labels);
    registered.document(None, "cluster").map_err(Refused::from)?;
    Ok(registered)
}

fn reference(object: &Object, cluster: &Value) -> Result<SecretReference, Refused> {
    let namespace = object.namespace.as_deref().unwrap_or_default();
    SecretReference::new(namespace, required(cluster, SECRET)?).ok_or(Refused::Reference(SECRET))
}

/// A certificate is verified fully or not at all: the gateway cannot skip a part of the
/// verification.
fn trust(cluster: &Value, rules: &Rules) -> Result<Trust, Refused> {
    let is_insecure = is_insecure(list(cluster, DISABLED)?)?;
    if is_insecure && !rules.allow_insecure {
        return Err(Refused::Insecure("spec.disabledTLSValidations *", BUNDLE));
    }
    if is_insecure {
        return Ok(Trust::Insecure);
    }
    match text(cluster, BUNDLE)? {
        "" => Ok(Trust::SystemRoots),
        base64 => parts::bundle(BUNDLE, &STANDARD.decode(base64).map_err(|_| Refused::NotBase64(BUNDLE))?),
    }
}

/// `*` stands alone, as KubeFed's webhook requires.
fn is_insecure(disabled: &[Value]) -> Result<bool, Refused> {
    let refused = match disabled {
        [] => return Ok(false),
        [only] if only == ALL => return Ok(true),
        [first, ..] => match first.as_str() {
            Some(ALL) => Refused::AllAndOthers,
            Some(SUBJECT_NAME) => Refused::SubjectName,
            Some(VALIDITY_PERIOD) => Refused::ValidityPeriod,
            _ => Refused::Choice(DISABLED, "*, SubjectName nor ValidityPeriod"),
        },
    };
    Err(refused)
}

#[cfg(test)]
mod tests;
