//! The refusal of a request beyond a limit.

use std::sync::Arc;

use api::GROUP;
use api::cluster_name::ClusterName;
use api::status::Details;
use auth::User;

use super::Kind;

/// The owner of the reached limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Whose {
    Cluster(ClusterName),
    /// The Karmada upstream has the budget of one cluster.
    KarmadaUpstream,
    User(Arc<User>),
}

/// A request beyond a limit. The text is for the caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TooMany {
    pub whose: Whose,
    pub kind: Kind,
    pub most: u32,
}

// === impl TooMany ===

impl std::error::Error for TooMany {}

impl std::fmt::Display for TooMany {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (what, long) = match self.kind {
            Kind::Short => ("requests", ""),
            Kind::Long => ("watches, followed logs and upgrades", "-long"),
        };
        let most = self.most;
        let (whose, flag) = match &self.whose {
            Whose::Cluster(name) => (format!("cluster {name}"), "cluster"),
            Whose::KarmadaUpstream => ("Karmada's API server".to_owned(), "cluster"),
            Whose::User(user) => match user.service_account_namespace() {
                Some(namespace) => (format!("all ServiceAccounts of namespace {namespace:?}"), "user"),
                None => (format!("user {:?}", user.name), "user"),
            },
        };
        write!(
            f,
            "too many {what} in flight for {whose} (limit {most}, --max{long}-requests-per-{flag}); retry shortly"
        )
    }
}

impl TooMany {
    /// The cluster, if the limit is one's.
    pub fn details(&self) -> Details {
        match &self.whose {
            Whose::Cluster(name) => Details {
                name: name.to_string().into(),
                group: GROUP.into(),
                kind: "clustergateways".into(),
                ..Details::default()
            },
            Whose::KarmadaUpstream | Whose::User(_) => Details::default(),
        }
    }
}
