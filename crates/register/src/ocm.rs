//! Clusters of Open Cluster Management (`cluster.open-cluster-management.io/v1`), with the token of
//! a `ManagedServiceAccount`.
//!
//! A holder of a bootstrap credential may create a `ManagedCluster`, and an agent may write its
//! own, with any name and any address. Only an administrator's acceptance makes it a cluster; when
//! the acceptance ends, so does the cluster. Before acceptance, none of its fields count.

pub mod acceptance;
pub mod approvals;
pub mod availability;
pub mod condition;
pub mod delivery;
pub mod heartbeat;
pub mod leaving;
pub mod rival;
pub mod standing;
pub mod taints;

use api::secret::{ClusterEndpoint, ClusterSecret, ConstEndpoint, Endpoint, MOST_FALLBACKS, Trust};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::fields::{flag, list, text};
use crate::reading::{Object, Reading, SecretObject, Waiting};
use crate::{Refused, Rules, labels, parts};

pub const GROUP: &str = "cluster.open-cluster-management.io";
pub const KIND: &str = "ManagedCluster";
pub const VERSIONS: &[&str] = &["v1"];
/// Label that names a cluster's set.
pub const SET_LABEL: &str = "cluster.open-cluster-management.io/clusterset";
/// The set of clusters without that label.
pub const DEFAULT_SET: &str = "default";
/// Label of the Secrets that hold the token of a `ManagedServiceAccount`: `true`.
pub const TOKEN_LABEL: &str = "authentication.open-cluster-management.io/is-managed-serviceaccount";

const ACCEPTED: &str = "spec.hubAcceptsClient";
const CONFIGS: &str = "spec.managedClusterClientConfigs";
const URL: &str = "spec.managedClusterClientConfigs' url";
const BUNDLE: &str = "spec.managedClusterClientConfigs' caBundle";
const TOKEN_KEY: &str = "token";
const CA_KEY: &str = "ca.crt";

/// How members are reached (`--ocm-endpoint`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reach {
    /// By the addresses in the `ManagedCluster`, or through the tunnel if it has none.
    #[default]
    Auto,
    Direct,
    Tunnel,
}

/// The text is none of these values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it must be auto, direct or tunnel")]
pub struct InvalidReach;

/// Reads `cluster`, whose token is in `token`, if that exists.
///
/// The first usable address is its endpoint, with the bundle next to it (the system's roots without
/// one); the usable addresses after it are its fallbacks. An unusable address does not lead to the
/// tunnel: the cluster is refused if all addresses are unusable.
pub fn read(cluster: &Value, token: Option<&SecretObject>, reach: Reach, rules: &Rules) -> Reading {
    registered(cluster, token, reach, rules).into()
}

/// Whether an administrator accepts the cluster. Without acceptance, nothing of it is registered.
pub fn is_accepted(cluster: &Value) -> bool {
    flag(cluster, ACCEPTED).is_ok_and(|is_accepted| is_accepted)
}

fn registered(
    cluster: &Value,
    token: Option<&SecretObject>,
    reach: Reach,
    rules: &Rules,
) -> Result<ClusterSecret, Reading> {
    let object = Object::read(cluster)?;
    object.check(GROUP, KIND, VERSIONS)?;
    if object.is_deleting {
        return Err(Waiting::Leaving.into());
    }
    if !flag(cluster, ACCEPTED)? {
        return Err(Waiting::NotAccepted.into());
    }
    object.whole()?;
    let token = token.ok_or(Waiting::NoToken)?;
    if token.namespace != object.name || token.labels.get(TOKEN_LABEL).is_none_or(|value| value != "true") {
        return Err(Refused::NotOfAccount.into());
    }
    let credential = parts::token("the ManagedServiceAccount", token)?.ok_or(Refused::NoKey(TOKEN_KEY))?;
    let (endpoint, trust) = match (reach, list(cluster, CONFIGS)?) {
        (Reach::Tunnel, _) | (Reach::Auto, []) => (ClusterEndpoint::ClusterProxy, authority(token)?),
        (Reach::Direct, []) => return Err(Waiting::NoAddress.into()),
        (Reach::Direct | Reach::Auto, configs) => fixed(configs, rules)?,
    };
    let mut registered = ClusterSecret::new(endpoint, trust, credential);
    registered.labels = labels::taken(&object.labels);
    registered.document(None, "cluster").map_err(Refused::from)?;
    Ok(registered)
}

/// The CA of the member inside its own network, where the agent dials it.
fn authority(token: &SecretObject) -> Result<Trust, Refused> {
    parts::bundle(CA_KEY, token.value(CA_KEY).ok_or(Refused::NoKey(CA_KEY))?)
}

fn fixed(configs: &[Value], rules: &Rules) -> Result<(ClusterEndpoint, Trust), Refused> {
    let (mut first_mistake, mut usable) = (None, Vec::new());
    for config in configs {
        match address(config, rules) {
            Ok(_) if usable.len() > MOST_FALLBACKS => break,
            Ok(address) => usable.push(address),
            Err(mistake) => first_mistake = first_mistake.or(Some(mistake)),
        }
    }
    let mut usable = usable.into_iter();
    let Some((url, trust)) = usable.next() else { return Err(first_mistake.unwrap_or(Refused::Empty(CONFIGS))) };
    // Requests have the same base path at every address.
    let is_same = |(other, _): &(Endpoint, Trust)| other.base_path == url.base_path;
    let fallbacks = usable.filter(is_same).collect();
    Ok((ClusterEndpoint::Const(ConstEndpoint { url, proxy: None, fallbacks }), trust))
}

fn address(config: &Value, rules: &Rules) -> Result<(Endpoint, Trust), Refused> {
    let field = |path: &'static str, name| text(config, path).map_err(|_| Refused::Shape(name));
    let endpoint = parts::endpoint(URL, field("url", URL)?.trim(), rules)?;
    let trust = match field("caBundle", BUNDLE)?.trim() {
        "" => Trust::SystemRoots,
        base64 => parts::bundle(BUNDLE, &STANDARD.decode(base64).map_err(|_| Refused::NotBase64(BUNDLE))?)?,
    };
    Ok((endpoint, trust))
}

// === impl Reach ===

impl std::str::FromStr for Reach {
    type Err = InvalidReach;

    fn from_str(text: &str) -> Result<Self, InvalidReach> {
        match text {
            "auto" => Ok(Self::Auto),
            "direct" => Ok(Self::Direct),
            "tunnel" => Ok(Self::Tunnel),
            _ => Err(InvalidReach),
        }
    }
}

#[cfg(test)]
mod tests;
