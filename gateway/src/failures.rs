//! Decides which failed requests the log mentions: each one, except in floods. An unreachable
//! cluster must not hide other failures behind its own lines, so each cluster and side has its own
//! share. That is for registered clusters, and for callers that may send requests there. All other
//! failures count together: otherwise strangers could make up names, or use up a cluster's share.

use std::collections::HashMap;

use api::cluster_name::ClusterName;
use api::side::Side;
use net::throttle::{LogThrottle, PERIOD};
use parking_lot::Mutex;
use tokio::time::Instant;

/// Most pairs of cluster and side with their own share. All others use one common share.
const MOST: usize = 4_096;

#[derive(Debug, Default)]
pub struct FailureLog {
    shares: Mutex<Shares>,
    others: LogThrottle,
}

#[derive(Debug, Default)]
struct Shares {
    of: HashMap<(Option<ClusterName>, Side), LogThrottle>,
    swept: Option<Instant>,
}

// === impl FailureLog ===

impl FailureLog {
    /// Whether a line is due, and how many lines of the same share were suppressed before it.
    /// `cluster` is `None` unless it is registered and the caller is authorized.
    pub fn due(&self, cluster: Option<&ClusterName>, side: Side) -> Option<u64> {
        let share = self.shares.lock().get((cluster.cloned(), side));
        share.as_ref().unwrap_or(&self.others).due()
    }
}

// === impl Shares ===

impl Shares {
    fn get(&mut self, key: (Option<ClusterName>, Side)) -> Option<LogThrottle> {
        if self.of.len() >= MOST && !self.of.contains_key(&key) {
            self.sweep();
            if self.of.len() >= MOST {
                return None;
            }
        }
        Some(self.of.entry(key).or_default().clone())
    }

    /// Forgets silent shares, at most once per period.
    fn sweep(&mut self) {
        let now = Instant::now();
        if self.swept.is_none_or(|swept| now.duration_since(swept) >= PERIOD) {
            self.swept = Some(now);
            self.of.retain(|_, share| !share.is_idle());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> ClusterName {
        ClusterName::parse(name).unwrap()
    }

    fn lines(log: &FailureLog, cluster: &str, side: Side) -> usize {
        let cluster = named(cluster);
        (0..100).filter_map(|_| log.due(Some(&cluster), side)).count()
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_hides_neither_another_cluster_nor_another_side() {
        let log = FailureLog::default();
        assert_eq!(lines(&log, "berlin", Side::Member), 20);
        assert_eq!(log.due(Some(&named("osaka")), Side::Member), Some(0));
        assert_eq!(log.due(Some(&named("berlin")), Side::Tunnel), Some(0));
        assert_eq!(log.due(None, Side::Hub), Some(0));
        tokio::time::sleep(PERIOD).await;
        assert_eq!(log.due(Some(&named("berlin")), Side::Member), Some(80));
    }

    #[tokio::test(start_paused = true)]
    async fn many_clusters_that_fail_at_once_take_bounded_room_and_few_lines_beyond() {
        let log = FailureLog::default();
        for number in 0..MOST {
            log.due(Some(&named(&format!("down-{number}"))), Side::Hub);
        }
        let beyond = (0..1_000).filter_map(|number| log.due(Some(&named(&format!("more-{number}"))), Side::Hub));
        assert_eq!(beyond.count(), 20);
        assert_eq!(log.shares.lock().of.len(), MOST);
        tokio::time::sleep(PERIOD).await;
        assert_eq!(lines(&log, "berlin", Side::Member), 20);
        assert_eq!(log.shares.lock().of.len(), 1);
    }
}
