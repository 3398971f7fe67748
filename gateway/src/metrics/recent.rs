//! The last failures of requests for a cluster, as the log has them.
//!
//! Few and truncated, because callers choose how many requests fail, and members choose the texts.
//! A failure that the log suppresses in a flood is missing here too.

use std::collections::VecDeque;
use std::time::SystemTime;

use api::traffic::RecentFailure;
use parking_lot::Mutex;

/// Most failures kept for one cluster.
const MOST: usize = 16;
/// Most bytes kept of one text. A failure with its fields takes at most 1.5 KiB, and all those of a
/// cluster 24 KiB.
const LONGEST: usize = 512;

/// See the [module](self).
#[derive(Debug, Default)]
pub struct Recent(Mutex<VecDeque<RecentFailure>>);

// === impl Recent ===

impl Recent {
    /// Adds a failure that has just happened; sets its `time`.
    pub fn add(&self, mut failure: RecentFailure) {
        failure.time = millis(SystemTime::now());
        for field in [&mut failure.user, &mut failure.verb, &mut failure.resource, &mut failure.text] {
            field.truncate(field.floor_char_boundary(LONGEST.min(field.len())));
        }
        let mut kept = self.0.lock();
        if kept.len() == MOST {
            kept.pop_front();
        }
        kept.push_back(failure);
    }

    /// Ordered from the oldest.
    pub fn read(&self) -> Vec<RecentFailure> {
        self.0.lock().iter().cloned().collect()
    }
}

/// Milliseconds since 1970.
pub(super) fn millis(time: SystemTime) -> i64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_are_kept_and_cut_between_characters() {
        let recent = Recent::default();
        for code in 0..40 {
            recent.add(RecentFailure { code, text: "é".repeat(1_000), ..RecentFailure::default() });
        }
        let kept = recent.read();
        assert_eq!(kept.iter().map(|failure| failure.code).collect::<Vec<_>>(), (24..40).collect::<Vec<_>>());
        assert!(kept.iter().all(|failure| failure.text == "é".repeat(256) && failure.time > 0));
    }
}
