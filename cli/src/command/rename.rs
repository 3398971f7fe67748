//! `rename`: registers a cluster under another name.

use std::process::ExitCode;
use std::time::Duration;

use api::cluster_name::ClusterName;
use api::secret::{ENDPOINT_TYPE_CLUSTER_PROXY, ENDPOINT_TYPE_LABEL, MEMBER_ACCOUNT_ANNOTATION, MEMBER_UID_ANNOTATION};
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt as _;
use register::claims::SOURCE_LABEL;
use serde_json::json;

use crate::reach::until_answered;
use crate::registration::Registrations;
use crate::session::Session;
use crate::trouble::{Result, Trouble};
use crate::{output, selection};

/// Time for the cluster to answer under its new name.
const LIMIT: Duration = Duration::from_secs(30);

/// Rename a cluster.
///
/// Registers the cluster under its new name, and removes the old name when the cluster has answered
/// under the new one. Update the roles that name the old cluster in `resourceNames`. The
/// ServiceAccount on the member stays. A cluster that a source of the controllers registers cannot
/// be renamed.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  kubectl clusters rename berlin berlin-1")]
pub struct Rename {
    /// The cluster's name
    old: String,
    /// Its new name
    new: String,
}

// === impl Rename ===

impl Rename {
    pub async fn run(&self, session: &Session) -> Result<ExitCode> {
        let (old, new) = (selection::name(&self.old)?, selection::name(&self.new)?);
        if old == new {
            return Err(Trouble::usage("both names are the same", "give another"));
        }
        let registrations = Registrations::of(session).await?;
        let secret = registrations.get(&old).await?;
        refuse_sourced(&secret, &old)?;
        refuse_tunnelled(&secret, &old, &new)?;
        match registrations.find(&new).await? {
            None => drop(registrations.write(&copy(&secret, new.as_str()), None).await?),
            // An unfinished rename left this.
            Some(other) if other.data == secret.data => {}
            // The same, but the old registration has got another token since.
            Some(other) if is_copy(&other, &secret) => {
                registrations.write(&copy(&secret, new.as_str()), Some(&other)).await?;
            }
            Some(_) => {
                let remedy = format!("choose another name, or `kubectl clusters detach {new}` first");
                return Err(Trouble::usage(format!("the name {new} is taken"), remedy));
            }
        }
        until_answered(session, &new, None, LIMIT).await.map_err(|trouble| {
            let remedy = format!(
                "{}; {old} works as before: run the same command again, or `kubectl clusters detach {new} --hub-only`",
                trouble.remedy
            );
            trouble.when(format!("{new} is registered, but does not answer")).remedied(remedy)
        })?;
        registrations.delete_unchanged(&secret).await.map_err(|trouble| {
            let remedy = "check whether a rotate runs, and run the same command again";
            trouble.when(format!("{old} changed meanwhile, and stays beside {new}")).remedied(remedy)
        })?;
        output::say(&format!("Roles that name {old} in resourceNames of clustergateways/proxy must name {new}."));
        output::print(&format!("cluster {old} is now {new}\n"))?;
        Ok(ExitCode::SUCCESS)
    }
}

/// The controllers would register the old name again, and would never follow the new one.
fn refuse_sourced(secret: &Secret, old: &ClusterName) -> Result<()> {
    let Some(source) = secret.labels().get(SOURCE_LABEL) else { return Ok(()) };
    Err(Trouble::usage(
        format!("the controllers registered {old} from the source {source}, and would register it again"),
        format!(
            "set a name template (controllers.nameTemplates.{source} in the chart, --name-template), which gives \
             all clusters of the source new names and leaves the former names; do not delete the object to create \
             it again: that may delete the cluster itself, for example with Cluster API"
        ),
    ))
}

fn refuse_tunnelled(secret: &Secret, old: &ClusterName, new: &ClusterName) -> Result<()> {
    if secret.labels().get(ENDPOINT_TYPE_LABEL).map(String::as_str) != Some(ENDPOINT_TYPE_CLUSTER_PROXY) {
        return Ok(());
    }
    Err(Trouble::usage(
        "a cluster behind the tunnel cannot be renamed: its agents link the old name",
        format!(
            "`kubectl clusters detach {old}`, then `kubectl clusters join {new} --tunnel`: agents of both names \
             cannot be in one namespace"
        ),
    ))
}

/// Whether both name the same account of the same member: a rename made one from the other.
fn is_copy(one: &Secret, other: &Secret) -> bool {
    let of = |secret: &Secret| {
        let said = |key: &str| secret.annotations().get(key).cloned();
        Some((said(MEMBER_UID_ANNOTATION)?, said(MEMBER_ACCOUNT_ANNOTATION)?))
    };
    of(one).is_some_and(|known| of(other) == Some(known))
}

fn copy(secret: &Secret, name: &str) -> serde_json::Value {
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "type": secret.type_,
        "metadata": {
            "name": name,
            "namespace": secret.namespace(),
            "labels": secret.labels(),
            "annotations": secret.annotations(),
        },
        "data": secret.data,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_of_a_source_has_its_name_from_there() {
        let secret = |labels: serde_json::Value| -> Secret {
            serde_json::from_value(json!({"metadata": {"name": "c", "labels": labels}})).unwrap()
        };
        let name = selection::name("berlin").unwrap();
        assert!(refuse_sourced(&secret(json!({"region": "north"})), &name).is_ok());
        let trouble = refuse_sourced(&secret(json!({SOURCE_LABEL: "capi"})), &name).unwrap_err();
        assert!(trouble.what.contains("the source capi"), "{}", trouble.what);
        for part in ["may delete the cluster itself", "nameTemplates.capi", "leaves the former names"] {
            assert!(trouble.remedy.contains(part), "{}", trouble.remedy);
        }
    }

    #[test]
    fn a_copy_is_of_the_same_account() {
        let secret = |uid: &str, account: &str| -> Secret {
            let annotations = json!({MEMBER_UID_ANNOTATION: uid, MEMBER_ACCOUNT_ANNOTATION: account});
            serde_json::from_value(json!({"metadata": {"name": "c", "annotations": annotations}})).unwrap()
        };
        assert!(is_copy(&secret("u", "ns/a"), &secret("u", "ns/a")));
        for other in [secret("v", "ns/a"), secret("u", "ns/b"), Secret::default()] {
            assert!(!is_copy(&secret("u", "ns/a"), &other) && !is_copy(&other, &Secret::default()));
        }
    }
}
