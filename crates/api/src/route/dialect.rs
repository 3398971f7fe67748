//! The spellings in which a member can be asked for: one parser each, and one route behind them.
//!
//! A parser finds the cluster and the member's part of the path, and nothing else. What the member
//! does with the request, and what its sender is reviewed for, is found out behind it, alike for
//! all. A path has a meaning in one dialect only, and none decodes, cleans or collapses.
//!
//! No dialect is on unless the operator turns it on. A path of one that is off, and one that names
//! no valid cluster, is refused before authentication: no cluster is looked up, so the answer
//! reveals none.

mod karmada;
mod kcp;

use super::{COLLECTION, PROXY, RESOURCE};
use crate::cluster_name::ClusterName;
use crate::{GROUP, VERSION};

/// In which spelling a member was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// `/apis/cluster.core.oam.dev/v1alpha1/clustergateways/<cluster>/proxy[/…]`
    Native,
    /// `/clusters/<cluster>[/…]`, kcp's.
    Kcp,
    /// `/<cluster>[/…]` on a port of its own, that of Open Cluster Management's user server.
    UserServer,
    /// `/apis/cluster.karmada.io/v1alpha1/clusters/<cluster>/proxy[/…]`
    Karmada,
}

/// What a port serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Served {
    /// The gateway's own paths, and members in these dialects beside the native one.
    Gateway(Dialects),
    /// Members alone, as Open Cluster Management's user server.
    UserServer,
}

/// The dialects that the gateway's own port serves beside the native one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Dialects {
    pub kcp: bool,
    pub karmada: KarmadaMode,
}

/// How Karmada's group is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KarmadaMode {
    #[default]
    Off,
    /// All of it is the gateway's.
    Standalone,
    /// Members are the gateway's. Everything else is for the server that had the group before.
    Beside,
}

/// Why a path in the form of a dialect asks for no member. Every client may read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoMember {
    /// The operator has not switched the dialect on.
    #[error("nothing is served under this path")]
    Off,
    #[error(
        "the path must name a cluster after /clusters/: lower-case DNS labels of at most 63 characters, separated by \
         ':' (the cluster a.b.c is a:b:c)"
    )]
    Workspace,
    #[error("the path must name a cluster between /clusters/ and /proxy: a lower-case DNS subdomain, not encoded")]
    Karmada,
    #[error("the path must begin with the name of a cluster: /<cluster>/<path on the member>")]
    UserServer,
    #[error("'*' means all clusters at once, which is not served under /clusters/: name one cluster")]
    Every,
}

/// What a path is in the dialects that are served.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reading<'a> {
    Member(Member<'a>),
    /// All members at once: the path up to their part.
    Every(&'a str),
    NoMember(NoMember),
    /// None of theirs.
    Other,
}

/// A member that is asked for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Member<'a> {
    pub(super) dialect: Dialect,
    pub(super) cluster: ClusterName,
    /// The path up to the member's part, which is empty or begins with a slash.
    pub(super) prefix: &'a str,
}

/// Reads `path` on a port where `served` is.
pub(super) fn read(path: &str, served: Served) -> Reading<'_> {
    let Served::Gateway(dialects) = served else { return read_user_server(path) };
    match read_native(path) {
        Some(member) => Reading::Member(member),
        None => match kcp::read(path, dialects.kcp) {
            Reading::Other => karmada::read(path, dialects.karmada != KarmadaMode::Off),
            found => found,
        },
    }
}

/// Our own: a cluster's proxy is a subresource, which the hub's aggregator passes on to us.
///
/// `None`: another path, a cluster's proxy without a valid name among them, which is reviewed as
/// what it says and not found.
fn read_native(path: &str) -> Option<Member<'_>> {
    let (name, tail) = path.strip_prefix(COLLECTION)?.strip_prefix('/')?.split_once('/')?;
    let remainder = tail.strip_prefix(PROXY).filter(|rest| rest.is_empty() || rest.starts_with('/'))?;
    let cluster = ClusterName::parse(name).ok()?;
    Some(Member { dialect: Dialect::Native, cluster, prefix: &path[..path.len() - remainder.len()] })
}

/// What [`read_native`] reads.
fn write_native(cluster: &ClusterName) -> String {
    format!("{COLLECTION}/{cluster}/{PROXY}")
}

/// Open Cluster Management's user server: `/<cluster>`, then the member's part
/// (`open-cluster-management.io/cluster-proxy/pkg/utils.GetTargetServiceConfigForKubeAPIServer`).
///
/// Every path there is a member's, so it has a port of its own: beside others, a cluster named
/// `apis` would take all of ours.
fn read_user_server(path: &str) -> Reading<'_> {
    let name = path.strip_prefix('/').and_then(|rest| rest.split('/').next()).unwrap_or_default();
    match ClusterName::parse(name) {
        Ok(cluster) => Reading::Member(Member { dialect: Dialect::UserServer, cluster, prefix: &path[..=name.len()] }),
        Err(_) => Reading::NoMember(NoMember::UserServer),
    }
}

// === impl Dialect ===

impl Dialect {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 4] = [Self::Native, Self::Kcp, Self::UserServer, Self::Karmada];

    /// A word for metrics and the audit log. `None` for the native one, so that what was written
    /// before there were others is written still.
    pub const fn word(self) -> Option<&'static str> {
        match self {
            Self::Native => None,
            Self::Kcp => Some("kcp"),
            Self::UserServer => Some("ocm-user-server"),
            Self::Karmada => Some("karmada"),
        }
    }

    /// The path under which `cluster`'s API is served: [`read`] reads it as that cluster. `None`:
    /// the dialect has no spelling of the name.
    pub fn path(self, cluster: &ClusterName) -> Option<String> {
        match self {
            Self::Native => Some(write_native(cluster)),
            Self::Kcp => kcp::write(cluster),
            Self::UserServer => Some(format!("/{cluster}")),
            Self::Karmada => Some(karmada::write(cluster)),
        }
    }

    /// Whether members see the caller, whatever the settings say about identities: the dialect
    /// promises that the member's own rights decide.
    pub const fn acts_as_caller(self) -> bool {
        matches!(self, Self::Karmada)
    }

    /// The resource whose subresource `proxy` is reviewed: group, version and name.
    pub(super) const fn reviewed(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Native | Self::Kcp | Self::UserServer => (GROUP, VERSION, RESOURCE),
            Self::Karmada => (crate::karmada::GROUP, crate::karmada::VERSION, crate::karmada::CLUSTERS),
        }
    }
}

// === impl Served ===

impl Default for Served {
    /// A gateway's port with all dialects off.
    fn default() -> Self {
        Self::Gateway(Dialects::default())
    }
}

#[cfg(test)]
pub(super) mod golden;
#[cfg(test)]
mod tests;
