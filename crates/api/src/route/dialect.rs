//! The dialects for naming a member: one parser per dialect, and one common route.
//!
//! A parser only finds the cluster and the member's part of the path. Common code behind it finds
//! out what the member does with the request, and what to review. A path has a meaning in one
//! dialect only, and no parser decodes, cleans or collapses.
//!
//! The operator must turn a dialect on. A path of a dialect that is off, or one without a valid
//! cluster name, is refused before authentication. No cluster is looked up, so the response reveals
//! none.

mod karmada;
mod kcp;

use super::{COLLECTION, PROXY, RESOURCE};
use crate::cluster_name::ClusterName;
use crate::{GROUP, VERSION};

/// The form in which a path names its member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// `/apis/cluster.core.oam.dev/v1alpha1/clustergateways/<cluster>/proxy[/…]`
    Native,
    /// `/clusters/<cluster>[/…]`, kcp's form.
    Kcp,
    /// `/<cluster>[/…]` on a port of its own, like Open Cluster Management's user server.
    UserServer,
    /// `/apis/cluster.karmada.io/v1alpha1/clusters/<cluster>/proxy[/…]`
    Karmada,
}

/// What a port serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Served {
    /// The gateway's own paths, and members in the native dialect and these dialects.
    Gateway(Dialects),
    /// Members only, like Open Cluster Management's user server.
    UserServer,
}

/// The dialects on the gateway's own port, besides the native one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Dialects {
    pub kcp: bool,
    pub karmada: KarmadaMode,
}

/// How the gateway serves Karmada's group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KarmadaMode {
    #[default]
    Off,
    /// The gateway serves all of it.
    Standalone,
    /// The gateway serves the members. All other requests go to the server that served the group
    /// before.
    Beside,
}

/// Why a path in the form of a dialect names no member. Every client may read the reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoMember {
    /// The operator has not turned the dialect on.
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

/// The meaning of a path in the served dialects.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reading<'a> {
    Member(Member<'a>),
    /// All members at once. Contains the path up to the members' part.
    Every(&'a str),
    NoMember(NoMember),
    /// Not a path of these dialects.
    Other,
}

/// A member that a path names.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Member<'a> {
    pub(super) dialect: Dialect,
    pub(super) cluster: ClusterName,
    /// The path up to the member's part, which is empty or starts with a slash.
    pub(super) prefix: &'a str,
}

/// Reads `path` on a port with `served`.
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

/// Our own dialect: a cluster's proxy is a subresource, which the hub's aggregator forwards to us.
///
/// `None` for any other path. This includes the proxy of an invalid cluster name, which is reviewed
/// under its own attributes and then not found.
fn read_native(path: &str) -> Option<Member<'_>> {
    let (name, tail) = path.strip_prefix(COLLECTION)?.strip_prefix('/')?.split_once('/')?;
    let remainder = tail.strip_prefix(PROXY).filter(|rest| rest.is_empty() || rest.starts_with('/'))?;
    let cluster = ClusterName::parse(name).ok()?;
    Some(Member { dialect: Dialect::Native, cluster, prefix: &path[..path.len() - remainder.len()] })
}

/// Writes the path that [`read_native`] reads.
fn write_native(cluster: &ClusterName) -> String {
    format!("{COLLECTION}/{cluster}/{PROXY}")
}

/// Open Cluster Management's user server: `/<cluster>`, then the member's part
/// (`open-cluster-management.io/cluster-proxy/pkg/utils.GetTargetServiceConfigForKubeAPIServer`).
///
/// Every path there is a member's, so it needs its own port: next to other paths, a cluster named
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
    /// All dialects, in the order of their numbers.
    pub const ALL: [Self; 4] = [Self::Native, Self::Kcp, Self::UserServer, Self::Karmada];

    /// A word for metrics and the audit log. `None` for the native dialect, so that output from
    /// before the other dialects stays the same.
    pub const fn word(self) -> Option<&'static str> {
        match self {
            Self::Native => None,
            Self::Kcp => Some("kcp"),
            Self::UserServer => Some("ocm-user-server"),
            Self::Karmada => Some("karmada"),
        }
    }

    /// The path of `cluster`'s API in this dialect: [`read`] maps it to that cluster. `None` if the
    /// dialect cannot spell the name.
    pub fn path(self, cluster: &ClusterName) -> Option<String> {
        match self {
            Self::Native => Some(write_native(cluster)),
            Self::Kcp => kcp::write(cluster),
            Self::UserServer => Some(format!("/{cluster}")),
            Self::Karmada => Some(karmada::write(cluster)),
        }
    }

    /// Whether members always see the caller, whatever the identity settings are: the dialect
    /// promises that the member's own permissions decide.
    pub const fn acts_as_caller(self) -> bool {
        matches!(self, Self::Karmada)
    }

    /// The resource with the reviewed subresource `proxy`: its group, version and name.
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
