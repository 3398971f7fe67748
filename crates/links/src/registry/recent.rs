//! Names of clusters that had a link here recently. Errors call these "not linked now", and all
//! others "unknown".

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;
use tunnel::ClusterName;

/// Most names that are remembered; the oldest are dropped first.
const MOST: usize = 10_000;
/// How long a name is remembered.
const LIFETIME: Duration = Duration::from_hours(1);

#[derive(Debug, Default)]
pub(super) struct RecentClusters(HashMap<ClusterName, Instant>);

// === impl RecentClusters ===

impl RecentClusters {
    pub(super) fn remember(&mut self, cluster: ClusterName) {
        if self.0.len() >= MOST && !self.0.contains_key(&cluster) {
            self.0.retain(|_, since| since.elapsed() < LIFETIME);
            let oldest = self.0.iter().min_by_key(|(_, since)| **since).map(|(name, _)| name.clone());
            if let Some(oldest) = oldest.filter(|_| self.0.len() >= MOST) {
                self.0.remove(&oldest);
            }
        }
        self.0.insert(cluster, Instant::now());
    }

    pub(super) fn has(&self, cluster: &ClusterName) -> bool {
        self.0.get(cluster).is_some_and(|since| since.elapsed() < LIFETIME)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(number: usize) -> ClusterName {
        ClusterName::parse(&format!("c{number}")).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn names_are_forgotten_after_an_hour_and_the_oldest_when_there_are_too_many() {
        let mut recent = RecentClusters::default();
        for number in 0..MOST {
            recent.remember(name(number));
            tokio::time::advance(Duration::from_millis(1)).await;
        }
        assert!(recent.has(&name(0)));
        recent.remember(name(MOST));
        assert!(!recent.has(&name(0)) && recent.has(&name(1)) && recent.has(&name(MOST)));
        tokio::time::advance(LIFETIME).await;
        assert!(!recent.has(&name(MOST)));
    }
}
