//! Whether upstream's hub controllers run: they hold a Lease, or, without leader election, have a
//! Deployment with pods. Times are milliseconds since 1970.

/// Name of their Lease.
pub const LEASE: &str = "registration-controller-lock";
/// Their Deployment on a hub, as upstream's operator names it (`registration/deployment.yaml` in
/// its `manifests/cluster-manager/management`). In hosted mode it is on another cluster.
pub const DEPLOYMENT: &str = "cluster-manager-registration-controller";
/// Its namespace.
pub const HUB_NAMESPACE: &str = "open-cluster-management-hub";
/// Usual prefix of the namespaces in which they run. With other namespaces, a user that may create
/// Leases could keep this part out, and with it the withdrawal of rights. No cluster's namespace
/// has this prefix.
const NAMESPACES: &str = "open-cluster-management";
/// Upstream's duration, for a Lease without one.
const DEFAULT_SECONDS: i32 = 137;

/// Limit above upstream's duration: a Lease that exceeds it was created to keep us out.
const MOST_SECONDS: i32 = 3600;

/// A Lease of theirs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hold<'a> {
    /// Empty when they released it.
    pub holder: &'a str,
    /// Time of renewal as they wrote it.
    pub renewed: Option<i64>,
    pub seconds: Option<i32>,
}

/// Whether a Lease in `namespace` can be theirs.
pub fn may_be_theirs(namespace: &str) -> bool {
    namespace.starts_with(NAMESPACES)
}

// === impl Hold ===

impl Hold<'_> {
    /// Time until which the holder has the Lease, unless it renews; none without a holder.
    ///
    /// `changed` is the time at which we saw the Lease change, if we did, because the holder's
    /// clock may be behind. A clock ahead of ours does not make the Lease longer.
    pub fn until(&self, changed: Option<i64>, now_millis: i64) -> Option<i64> {
        if self.holder.is_empty() {
            return None;
        }
        let since = self.renewed.map(|renewed| renewed.min(now_millis)).max(changed)?;
        let seconds = self.seconds.filter(|seconds| *seconds > 0).unwrap_or(DEFAULT_SECONDS).min(MOST_SECONDS);
        Some(since.saturating_add(i64::from(seconds) * 1000))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_held_until_it_runs_out_or_is_given_up() {
        let hold = Hold { holder: "them", renewed: Some(10_000), seconds: Some(15) };
        let now = 20_000;
        assert_eq!(hold.until(None, now), Some(25_000));
        assert_eq!(hold.until(Some(now), now), Some(35_000), "seen to change");
        assert_eq!(Hold { holder: "", ..hold }.until(Some(now), now), None);
        assert_eq!(Hold { seconds: None, ..hold }.until(None, now), Some(147_000));
        assert_eq!(Hold { renewed: None, ..hold }.until(None, now), None, "nobody has ever renewed it");
        assert_eq!(Hold { renewed: Some(i64::MAX), ..hold }.until(None, now), Some(35_000), "in a thousand years");
        let hold = Hold { seconds: Some(i32::MAX), ..hold };
        assert_eq!(hold.until(None, now), Some(10_000 + i64::from(MOST_SECONDS) * 1000), "for 68 years");
    }

    #[test]
    fn a_lease_of_a_users_namespace_is_not_theirs() {
        for (namespace, expected) in [("open-cluster-management-hub", true), ("team-a", false), ("", false)] {
            assert_eq!(may_be_theirs(namespace), expected, "{namespace}");
        }
    }
}
