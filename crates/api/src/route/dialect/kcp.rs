//! kcp's dialect: `/clusters/<name>`, then the member's part
//! (`github.com/kcp-dev/kcp/pkg/server/filters.ClusterPathFromAndStrip`).
//!
//! The workspace path `a:b:c` is the cluster `a.b.c`. The colon is the only separator: a dot as
//! another separator would give a cluster several paths.

use super::{Dialect, Member, NoMember, Reading};
use crate::cluster_name::{ClusterName, is_label};

const PREFIX: &str = "/clusters/";
/// The limit of one part (`github.com/kcp-dev/logicalcluster.Path.IsValid`), equal to that of a DNS
/// label.
const LONGEST_PART: usize = 63;

pub(super) fn read(path: &str, is_on: bool) -> Reading<'_> {
    let Some(rest) = path.strip_prefix(PREFIX) else { return Reading::Other };
    if !is_on {
        return Reading::NoMember(NoMember::Off);
    }
    let name = rest.split('/').next().unwrap_or_default();
    match cluster(name) {
        Ok(cluster) => {
            Reading::Member(Member { dialect: Dialect::Kcp, cluster, prefix: &path[..PREFIX.len() + name.len()] })
        }
        Err(why) => Reading::NoMember(why),
    }
}

fn cluster(name: &str) -> Result<ClusterName, NoMember> {
    // The escape is the form that Go's clients write.
    if name == "*" || name.eq_ignore_ascii_case("%2a") {
        return Err(NoMember::Every);
    }
    if !name.split(':').all(|part| part.len() <= LONGEST_PART && is_label(part)) {
        return Err(NoMember::Workspace);
    }
    let parsed =
        if name.contains(':') { ClusterName::parse(&name.replace(':', ".")) } else { ClusterName::parse(name) };
    parsed.map_err(|_| NoMember::Workspace)
}

/// Writes the path that [`read`] reads. Names of Kubernetes objects may have longer labels than
/// DNS.
pub(super) fn write(cluster: &ClusterName) -> Option<String> {
    let parts: Vec<&str> = cluster.as_str().split('.').collect();
    let fits = parts.iter().all(|part| part.len() <= LONGEST_PART);
    fits.then(|| format!("{PREFIX}{}", parts.join(":")))
}

#[cfg(test)]
mod tests;
