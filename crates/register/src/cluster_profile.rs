//! Clusters of other managers' inventories: `ClusterProfile` (`multicluster.x-k8s.io/v1alpha1`).
//!
//! A profile says where a cluster is, and which providers can issue a credential for it; the
//! operator's file names their programs. The choice of the provider, and the fields of the profile
//! that reach the program, follow upstream's library.
//! <https://github.com/kubernetes-sigs/cluster-inventory-api/tree/main/pkg/access>

mod providers;

use std::collections::BTreeMap;

use api::secret::{ClusterEndpoint, ClusterSecret, Credential, ExecConfig};
use serde_json::Value;

use self::providers::{ArgsPolicy, EnvPolicy, Provider};
pub use self::providers::{InvalidProviders, Providers};
use crate::fields::{field, list, text, texts};
use crate::kubeconfig::stanza;
use crate::reading::{Object, Reading, Waiting};
use crate::{Refused, Rules, labels, parts};

pub const GROUP: &str = "multicluster.x-k8s.io";
pub const KIND: &str = "ClusterProfile";
pub const VERSIONS: &[&str] = &["v1alpha1"];
/// The `spec.clusterManager.name` of the profiles that this program writes.
pub const MANAGER: &str = "cluster-gateway";
/// Label of profiles: the name of their manager.
pub const MANAGER_LABEL: &str = "x-k8s.io/cluster-manager";

/// Lists of `status`; an entry in a later list replaces the one of the same name in an earlier
/// list.
const ACCESS_PROVIDERS: &str = "status.accessProviders";
const CREDENTIAL_PROVIDERS: &str = "status.credentialProviders";
/// Extension of a provider's cluster: the program gets it as `spec.cluster.config` of its
/// `ExecCredential`.
pub(crate) const CONFIG: &str = "client.authentication.k8s.io/exec";
/// Extension (KEP-5339): further arguments of the program.
const ARGS: &str = "clusterprofiles.multicluster.x-k8s.io/exec/additional-args";
/// Extension (KEP-5339): further variables of the program.
const ENV: &str = "clusterprofiles.multicluster.x-k8s.io/exec/additional-envs";

/// Whether this program writes the profile. If so, it is not another manager's profile to import.
pub fn is_own(profile: &Value) -> bool {
    let is_ours = |manager: &str| manager == MANAGER;
    let labels = texts(profile, "metadata.labels").unwrap_or_default();
    text(profile, "spec.clusterManager.name").is_ok_and(is_ours)
        || labels.get(MANAGER_LABEL).is_some_and(|manager| is_ours(manager))
}

/// Reads the cluster of `profile`, with the first of `providers` that the profile names.
pub fn read(profile: &Value, providers: &Providers, rules: &Rules) -> Reading {
    registered(profile, providers, rules).into()
}

fn registered(profile: &Value, providers: &Providers, rules: &Rules) -> Result<ClusterSecret, Reading> {
    let object = Object::read(profile)?;
    object.check(GROUP, KIND, VERSIONS)?;
    if is_own(profile) {
        return Err(Refused::OwnProfile.into());
    }
    object.whole()?;
    let access = access(profile)?;
    let known = providers.all().iter().find_map(|provider| Some((provider, *access.get(provider.name.as_str())?)));
    let (provider, cluster) = known.ok_or(Waiting::NoProvider)?;
    let exec = program(provider, cluster, rules)?;
    rules.check_program(&exec)?;
    let (endpoint, trust, tls_server_name) = stanza(cluster, rules)?;
    let mut registered = ClusterSecret::new(ClusterEndpoint::Const(endpoint), trust, Credential::Exec(exec));
    registered.tls_server_name = tls_server_name;
    registered.labels = labels::taken(&object.labels);
    registered.document(None, "cluster").map_err(Refused::from)?;
    Ok(registered)
}

/// The clusters by the names of their providers.
fn access(profile: &Value) -> Result<BTreeMap<&str, &Value>, Refused> {
    let mut access = BTreeMap::new();
    for path in [CREDENTIAL_PROVIDERS, ACCESS_PROVIDERS] {
        for provider in list(profile, path)? {
            let name = text(provider, "name").map_err(|_| Refused::Shape(path))?;
            access.insert(name, provider.get("cluster").unwrap_or(&Value::Null));
        }
    }
    Ok(access)
}

/// The provider's program, with the additions of the profile that the provider's policies allow.
fn program(provider: &Provider, cluster: &Value, rules: &Rules) -> Result<ExecConfig, Refused> {
    let mut exec = provider.exec.clone();
    for extension in list(cluster, "extensions")? {
        let name = text(extension, "name").map_err(|_| Refused::Shape("extensions"))?;
        let Some(value) = field(extension, "extension") else { continue };
        match name {
            ARGS if provider.args == ArgsPolicy::Append => exec.args.extend(arguments(value)?),
            ENV if provider.env != EnvPolicy::Ignore => set_variables(&mut exec, provider.env, extension, rules)?,
            // A program that does not ask for it misses nothing.
            CONFIG if exec.provide_cluster_info => return Err(Refused::ClusterConfig),
            _ => {}
        }
    }
    Ok(exec)
}

fn arguments(extension: &Value) -> Result<Vec<String>, Refused> {
    let arguments = extension.as_array().ok_or(Refused::Shape(ARGS))?.iter();
    arguments.map(|argument| Ok(argument.as_str().ok_or(Refused::Shape(ARGS))?.to_owned())).collect()
}

fn set_variables(exec: &mut ExecConfig, policy: EnvPolicy, extension: &Value, rules: &Rules) -> Result<(), Refused> {
    let variables = texts(extension, "extension").map_err(|_| Refused::Shape(ENV))?;
    for (name, value) in variables {
        parts::variable(ENV, &name, rules)?;
        let is_there = exec.env.iter().any(|(other, _)| *other == name);
        if is_there && policy == EnvPolicy::AppendIfNotExists {
            continue;
        }
        exec.env.retain(|(other, _)| *other != name);
        exec.env.push((name, value.into()));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
