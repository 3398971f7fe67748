//! Contexts that lead directly to members, at the addresses in their registrations.

use api::cluster_name::ClusterName;
use api::{GROUP, VERSION};
use fleet::{Failure, Kind, Outcome};
use kube::config::{AuthInfo, Cluster, Kubeconfig};

use crate::progress::Line;
use crate::session::{self, Session};
use crate::trouble::{Result, Trouble};
use crate::{contexts, output};

/// Whose credential goes to the members, and to which of them.
#[derive(Debug, clap::Args)]
pub struct Direct {
    /// Directly to the members, not through the hub
    #[arg(id = "direct", long, requires = "user")]
    pub wanted: bool,
    /// With --direct: user of your kubeconfig for the members
    #[arg(long, value_name = "NAME", requires = "direct")]
    user: Option<String>,
    /// With --direct: use that user for more than one cluster
    #[arg(long, requires = "direct")]
    one_user: bool,
    /// With --direct: include members with an http endpoint, or whose certificate is not verified
    #[arg(long, requires = "direct")]
    insecure: bool,
}

// === impl Direct ===

impl Direct {
    /// Contexts that lead to the clusters' registered addresses, named by `call`.
    pub async fn made(
        &self,
        session: &Session,
        clusters: &[ClusterName],
        call: impl Fn(&ClusterName) -> String,
    ) -> Result<Kubeconfig> {
        let user = self.user.as_deref().unwrap_or_default();
        refuse_user(&session.kubeconfig, &session.context, user)?;
        if clusters.len() > 1 && !self.one_user {
            return Err(Trouble::usage(
                format!("{} clusters would all get the credential of {user:?}", clusters.len()),
                "give each cluster its own user, one command each, or add --one-user",
            ));
        }
        let mut places = Vec::new();
        for (name, place) in places_of(session, clusters).await? {
            match place {
                Some(place) if self.insecure || is_proven(&place) => places.push((call(&name), place)),
                Some(_) => {
                    return Err(Trouble::usage(
                        format!("the identity of {name}, which gets the credential of {user:?}, would not be verified"),
                        "it is registered with http or without verified certificates: go through the hub, or add \
                         --insecure",
                    ));
                }
                None => output::say(&format!("{name} is omitted: it has no address, its agents dial out")),
            }
        }
        if places.is_empty() {
            return Err(Trouble::failed("no cluster can be reached directly", "omit --direct: go through the hub"));
        }
        Ok(contexts::leading(places, Some(user)))
    }
}

/// Refuses a missing user, and the hub's user, whose credential members must not get.
fn refuse_user(kubeconfig: &Kubeconfig, context: &str, user: &str) -> Result<()> {
    let find = |name: &str| kubeconfig.auth_infos.iter().find(|known| known.name == name);
    let Some(known) = find(user) else {
        let what = format!("the kubeconfig has no user {user:?}");
        return Err(Trouble::usage(what, "name one of `kubectl config get-users` with --user"));
    };
    let (_, inner) = contexts::parts(kubeconfig, contexts::named(kubeconfig, Some(context))?)?;
    let hubs = inner.user.as_deref().unwrap_or_default();
    // A user with another name can have the same credential.
    let same = |hubs: &AuthInfo| {
        let text = |user: &AuthInfo| serde_json::to_value(user).ok();
        known.auth_info.as_ref().is_some_and(|own| text(own) == text(hubs))
    };
    if user == hubs || find(hubs).and_then(|named| named.auth_info.as_ref()).is_some_and(same) {
        return Err(Trouble::usage(
            format!("{user:?} is your user of the hub, whose credential the member would get"),
            "name your user of the member with --user, or omit --direct: go through the hub",
        ));
    }
    Ok(())
}

fn is_proven(place: &Cluster) -> bool {
    place.insecure_skip_tls_verify != Some(true)
        && place.server.as_deref().is_some_and(|server| server.starts_with("https://"))
}

/// The address of each cluster. `None`: it has none.
async fn places_of(session: &Session, clusters: &[ClusterName]) -> Result<Vec<(ClusterName, Option<Cluster>)>> {
    let asked = fleet::each(clusters.to_vec(), session.limits(), |name| async move {
        let path = format!("/apis/{GROUP}/{VERSION}/clustergateways/{name}");
        let body = session::get(session.hub(), &path, session::JSON).await?;
        let object = serde_json::from_slice(&body).map_err(|_| Failure::own("the hub's answer cannot be read"))?;
        Ok::<_, Failure>(contexts::place(&object))
    });
    let mut line = Line::new("looked up");
    let outcomes = asked.in_order(|progress, event| line.tell(progress, event)).await;
    let place = |outcome: Outcome<_>| Ok((outcome.cluster, outcome.result.map_err(unseen)?));
    outcomes.into_iter().map(place).collect()
}

/// The right to see a cluster's address is separate from the right to use the cluster.
fn unseen(failure: Failure) -> Trouble {
    let forbidden = failure.kind == Kind::Answered(403);
    let trouble = Trouble::from(failure);
    if forbidden {
        trouble.remedied("ask the hub's administrator for the verb get on clustergateways")
    } else {
        trouble
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hubs_credential_is_for_the_hub() {
        let own = r#"{"contexts": [{"name": "hub", "context": {"cluster": "hub", "user": "jane"}}],
            "clusters": [{"name": "hub", "cluster": {"server": "https://hub"}}],
            "users": [{"name": "jane", "user": {"token": "t"}}, {"name": "alias", "user": {"token": "t"}},
                {"name": "berlin-admin", "user": {"token": "b"}}]}"#;
        let own = Kubeconfig::from_yaml(own).unwrap();
        assert_eq!(refuse_user(&own, "hub", "berlin-admin"), Ok(()));
        for hubs in ["jane", "alias"] {
            let trouble = refuse_user(&own, "hub", hubs).unwrap_err();
            assert!(trouble.what.contains(hubs) && trouble.remedy.contains("--user"), "{trouble}");
        }
        assert!(refuse_user(&own, "hub", "gone").unwrap_err().what.contains("no user \"gone\""));
    }

    #[test]
    fn a_credential_goes_where_tls_proves_who_gets_it() {
        let place = |server: &str, insecure: Option<bool>| Cluster {
            server: Some(server.to_owned()),
            insecure_skip_tls_verify: insecure,
            ..Cluster::default()
        };
        assert!(is_proven(&place("https://m:6443", None)) && is_proven(&place("https://m:6443", Some(false))));
        assert!(!is_proven(&place("http://m:8080", None)), "no TLS");
        assert!(!is_proven(&place("https://m:6443", Some(true))), "not verified");
    }
}
