//! Clusters of a Karmada control plane (`cluster.karmada.io/v1alpha1`), Push and Pull.
//!
//! A Cluster names Secrets, and the address that receives their tokens. So a user that may create
//! Clusters gets every token that Clusters may name. For this reason, only Secrets of the namespace
//! `karmada-cluster` are read, where `karmadactl` puts them. Tokens of the control plane's own
//! service accounts and credentials of registered clusters are refused.
//! <https://github.com/karmada-io/karmada/blob/master/pkg/apis/cluster/types.go>

mod proxy;

use std::collections::BTreeMap;

use api::karmada::ZONE_DELIMITER;
pub use api::karmada::{GROUP, KIND, PROVIDER_LABEL, REGION_LABEL, ZONE_LABEL};
use api::secret::{ClusterEndpoint, ClusterSecret, ConstEndpoint, Credential, Trust};
use api::selector::label::is_value;
use serde_json::Value;

use crate::fields::{field, flag, list, required, text};
use crate::reading::{Object, Reading, SecretObject, SecretReference};
use crate::{Refused, Rules, labels, parts};

pub const VERSIONS: &[&str] = &["v1alpha1"];

const ENDPOINT: &str = "spec.apiEndpoint";
const INSECURE: &str = "spec.insecureSkipTLSVerification";
const CA_KEY: &str = "caBundle";
const TOKEN_KEY: &str = "token";

/// A field that names a Secret.
#[derive(Clone, Copy)]
struct Reference {
    field: &'static str,
    namespace: &'static str,
    name: &'static str,
}

/// The namespace in which Karmada keeps the Secrets that clusters refer to. Others are not read: a
/// user that may write a Cluster, but no Secrets, could have their tokens sent to an address of its
/// own.
pub const NAMESPACE: &str = "karmada-cluster";

/// The credential of Karmada's own controllers, and the member's CA.
const OWN: Reference =
    Reference { field: "spec.secretRef", namespace: "spec.secretRef.namespace", name: "spec.secretRef.name" };
/// The credential of Karmada's proxy, which may only impersonate.
const IMPERSONATOR: Reference = Reference {
    field: "spec.impersonatorSecretRef",
    namespace: "spec.impersonatorSecretRef.namespace",
    name: "spec.impersonatorSecretRef.name",
};

/// The Secrets that `cluster` refers to. Malformed references are left out: [`read`] reports them.
pub fn references(cluster: &Value) -> Vec<SecretReference> {
    [OWN, IMPERSONATOR].into_iter().filter_map(|one| one.read(cluster).ok().flatten()).collect()
}

/// Reads `cluster`, with those Secrets it refers to that exist.
///
/// Its own credential is used, or the impersonator's if there is no other. A Pull cluster without
/// an endpoint is reached through a tunnel; its proxy is ignored.
pub fn read(cluster: &Value, secrets: &[&SecretObject], rules: &Rules) -> Reading {
    registered(cluster, secrets, rules).into()
}

fn registered(cluster: &Value, secrets: &[&SecretObject], rules: &Rules) -> Result<ClusterSecret, Reading> {
    let object = Object::whole_of(cluster, GROUP, KIND, VERSIONS)?;
    let find = |reference: Reference| {
        let found = reference.read(cluster)?;
        found.map(|found| parts::find(reference.field, &found, secrets, object.is_deleting)).transpose()
    };
    let own = find(OWN)?;
    let credential = credential(own, || find(IMPERSONATOR))?;
    let endpoint = endpoint(cluster, rules)?;
    let trust = trust(cluster, own, &endpoint, rules)?;
    let mut registered = ClusterSecret::new(endpoint, trust, credential);
    registered.labels = labels::taken(&object.labels);
    registered.labels.extend(place(cluster)?);
    registered.document(None, "cluster").map_err(Refused::from)?;
    Ok(registered)
}

/// Waits for a Secret that is named but does not exist yet. The other Secret does not replace it,
/// because then the credential would change twice.
fn credential<'a>(
    own: Option<&SecretObject>,
    impersonator: impl FnOnce() -> Result<Option<&'a SecretObject>, Reading>,
) -> Result<Credential, Reading> {
    if let Some(token) = own.map(|secret| parts::token(OWN.field, secret)).transpose()?.flatten() {
        return Ok(token);
    }
    let Some(impersonator) = impersonator()? else {
        let missing = if own.is_some() { Refused::NoKey(TOKEN_KEY) } else { Refused::Empty(OWN.field) };
        return Err(missing.into());
    };
    Ok(parts::token(IMPERSONATOR.field, impersonator)?.ok_or(Refused::NoKey(TOKEN_KEY))?)
}

fn endpoint(cluster: &Value, rules: &Rules) -> Result<ClusterEndpoint, Refused> {
    let mode = required(cluster, "spec.syncMode")?;
    if !matches!(mode, "Push" | "Pull") {
        return Err(Refused::Choice("spec.syncMode", "Push nor Pull"));
    }
    match text(cluster, ENDPOINT)? {
        "" if mode == "Pull" => Ok(ClusterEndpoint::ClusterProxy),
        "" => Err(Refused::Empty(ENDPOINT)),
        address => {
            let url = parts::address(ENDPOINT, address, rules)?;
            let proxy = proxy::read(cluster, rules)?;
            Ok(ClusterEndpoint::Const(ConstEndpoint { url, proxy, fallbacks: Vec::new() }))
        }
    }
}

/// `karmadactl` also stores the bundle of clusters that are not verified: the flag wins, as in
/// Karmada. Without a bundle, the system's roots are used. A member behind a tunnel needs a bundle:
/// none has a certificate from those roots.
fn trust(
    cluster: &Value,
    own: Option<&SecretObject>,
    endpoint: &ClusterEndpoint,
    rules: &Rules,
) -> Result<Trust, Refused> {
    let is_insecure = flag(cluster, INSECURE)?;
    match own.and_then(|secret| secret.value(CA_KEY)) {
        _ if is_insecure && !rules.allow_insecure => Err(Refused::Insecure(INSECURE, "the Secret's caBundle")),
        _ if is_insecure => Ok(Trust::Insecure),
        Some(pem) => parts::bundle(CA_KEY, pem),
        None if *endpoint == ClusterEndpoint::ClusterProxy => Err(Refused::NoKey(CA_KEY)),
        None => Ok(Trust::SystemRoots),
    }
}

/// Labels with the cluster's location. Values that are not valid in a label are left out.
fn place(cluster: &Value) -> Result<BTreeMap<String, String>, Refused> {
    let zones = list(cluster, "spec.zones")?.iter().filter_map(Value::as_str);
    let zones: Vec<_> = zones.filter(|zone| !zone.is_empty() && is_value(zone)).collect();
    let zone = if zones.is_empty() { text(cluster, "spec.zone")?.to_owned() } else { zones.join(ZONE_DELIMITER) };
    let said = [
        (REGION_LABEL, text(cluster, "spec.region")?.to_owned()),
        (ZONE_LABEL, zone),
        (PROVIDER_LABEL, text(cluster, "spec.provider")?.to_owned()),
    ];
    let is_label = |(_, value): &(&str, String)| !value.is_empty() && is_value(value);
    Ok(said.into_iter().filter(is_label).map(|(key, value)| (key.to_owned(), value)).collect())
}

// === impl Reference ===

impl Reference {
    fn read(self, cluster: &Value) -> Result<Option<SecretReference>, Refused> {
        if field(cluster, self.field).is_none() {
            return Ok(None);
        }
        let reference = SecretReference::new(text(cluster, self.namespace)?, text(cluster, self.name)?);
        let reference = reference.ok_or(Refused::Reference(self.field))?;
        if reference.namespace != NAMESPACE {
            return Err(Refused::Elsewhere(self.field, NAMESPACE));
        }
        Ok(Some(reference))
    }
}

#[cfg(test)]
mod tests;
