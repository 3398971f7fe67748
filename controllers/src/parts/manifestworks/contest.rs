//! An object that somebody changes back: it is repaired less and less often.

use std::time::Duration;

use serde_json::Value as Json;
use tokio::time::Instant;

use crate::calls::MANAGER;

/// Before the repairs that follow the first.
const WAITS: [Duration; 4] =
    [Duration::from_secs(1), Duration::from_secs(5), Duration::from_secs(30), Duration::from_mins(5)];
/// Without a change, nobody contests it.
const PEACE: Duration = Duration::from_mins(10);

/// Repairs of one object.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Contest {
    repairs: usize,
    last: Option<Instant>,
}

// === impl Contest ===

impl Contest {
    /// How long a repair has to wait; none: not at all.
    pub fn wait(&self, now: Instant) -> Option<Duration> {
        let last = self.last.filter(|last| now < *last + PEACE)?;
        let wait = WAITS.get(self.repairs.checked_sub(1)?.min(WAITS.len() - 1))?;
        (last + *wait).checked_duration_since(now).filter(|rest| !rest.is_zero())
    }

    /// It was repaired.
    pub fn repaired(&mut self, now: Instant) {
        if self.last.is_some_and(|last| now >= last + PEACE) {
            self.repairs = 0;
        }
        self.repairs = self.repairs.saturating_add(1);
        self.last = Some(now);
    }

    /// When it is one no more, if nobody goes on.
    pub fn ends(&self, now: Instant) -> Option<Instant> {
        self.last.filter(|_| self.is_contested(now)).map(|last| last + PEACE)
    }

    /// Whether it is one, and worth an event.
    pub fn is_contested(&self, now: Instant) -> bool {
        self.repairs > WAITS.len() - 1 && self.last.is_some_and(|last| now < last + PEACE)
    }
}

/// Who wrote an object last, beside us (`metadata.managedFields`).
pub fn other_manager(object: &Json) -> Option<&str> {
    let entries = object.pointer("/metadata/managedFields").and_then(Json::as_array).into_iter().flatten();
    let text = |entry: &'_ Json, key: &str| entry.get(key).and_then(Json::as_str).unwrap_or_default().to_owned();
    let others = entries.filter(|entry| {
        let manager = text(entry, "manager");
        manager != MANAGER && !manager.starts_with("work-agent") && text(entry, "subresource").is_empty()
    });
    others.max_by_key(|entry| text(entry, "time"))?.get("manager")?.as_str()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn repairs_wait_longer_each_time_and_begin_anew_after_peace() {
        let mut contest = Contest::default();
        let mut waited = Vec::new();
        for _ in 0..6 {
            let wait = contest.wait(Instant::now());
            waited.push(wait.map_or(0, |wait| wait.as_secs()));
            tokio::time::advance(wait.unwrap_or_default()).await;
            contest.repaired(Instant::now());
        }
        assert_eq!(waited, [0, 1, 5, 30, 300, 300]);
        assert!(contest.is_contested(Instant::now()));
        assert_eq!(contest.ends(Instant::now()), Some(Instant::now() + PEACE));
        tokio::time::advance(PEACE).await;
        assert!(!contest.is_contested(Instant::now()) && contest.wait(Instant::now()).is_none());
        contest.repaired(Instant::now());
        assert_eq!(contest.wait(Instant::now()), Some(WAITS[0]));
    }

    #[test]
    fn the_last_other_writer_is_named() {
        let entry = |manager: &str, time: &str| json!({"manager": manager, "time": time});
        let fields = [entry("kubectl", "2"), entry("helm", "1"), entry(MANAGER, "4"), entry("work-agent-x", "5")];
        let object = json!({"metadata": {"managedFields": fields}});
        assert_eq!(other_manager(&object), Some("kubectl"));
        assert_eq!(other_manager(&json!({})), None);
    }
}
