//! Limits the log lines about objects that cannot be read or kept: the writer of one may change it
//! each second.

use std::collections::HashMap;
use std::sync::LazyLock;
use std::time::Duration;

use net::throttle::LogThrottle;
use parking_lot::Mutex;
use tokio::time::Instant;

/// Time after which a line on the same object is written again.
const AGAIN: Duration = Duration::from_hours(1);
/// Objects that are remembered. Lines on others only have the limit of all lines.
const MOST: usize = 1024;

static LINES: LazyLock<Lines> = LazyLock::new(Lines::default);

#[derive(Default)]
struct Lines {
    /// By object: the time of its last line.
    written: Mutex<HashMap<String, Instant>>,
    all: LogThrottle,
}

/// Whether a line on an object is due, and how many lines on objects were left out before it.
pub fn due(what: &str, namespace: Option<&str>, name: Option<&str>) -> Option<u64> {
    LINES.due(what, namespace, name)
}

// === impl Lines ===

impl Lines {
    fn due(&self, what: &str, namespace: Option<&str>, name: Option<&str>) -> Option<u64> {
        let key = format!("{what}/{}/{}", namespace.unwrap_or_default(), name.unwrap_or_default());
        let (now, mut written) = (Instant::now(), self.written.lock());
        let is_recent = |at: &Instant| now.duration_since(*at) < AGAIN;
        if written.get(&key).is_some_and(is_recent) {
            return None;
        }
        let suppressed = self.all.due()?;
        if written.len() >= MOST {
            written.retain(|_, at| is_recent(at));
        }
        if written.len() < MOST {
            written.insert(key, now);
        }
        Some(suppressed)
    }
}

#[cfg(test)]
mod tests {
    use net::throttle::PERIOD;
    use tokio::time::sleep;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_object_that_changes_each_second_has_a_line_an_hour() {
        let lines = Lines::default();
        let due = |name: &str| lines.due("Lease", Some("c1"), Some(name));
        assert_eq!((due("a"), due("a"), due("b")), (Some(0), None, Some(0)));
        sleep(AGAIN / 2).await;
        assert_eq!(due("a"), None);
        sleep(AGAIN / 2).await;
        assert_eq!(due("a"), Some(0));
    }

    #[tokio::test(start_paused = true)]
    async fn very_many_objects_have_few_lines_and_take_little_memory() {
        let lines = Lines::default();
        let due = |name: usize| lines.due("Lease", None, Some(&name.to_string()));
        assert_eq!((0..10_000).filter_map(due).count(), 20);
        for round in 0..100 {
            sleep(PERIOD).await;
            let first = 10_000 * (round + 1);
            assert_eq!((first..first + 20).filter_map(due).count(), 20, "{round}");
        }
        assert_eq!(lines.written.lock().len(), MOST);
    }
}
