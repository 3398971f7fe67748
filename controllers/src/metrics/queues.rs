//! The queues and watches of sources: queued objects, the time that an object takes, and failures.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use telemetry::histogram::Histogram;

use super::{BOUNDS, OfSource, PREFIX};
use crate::wakes::Wakes;

/// Clones share their values.
#[derive(Debug, Clone)]
pub struct Queues {
    of_sources: Waiting,
    work_seconds: Histogram,
    watch_failures: Family<OfSource, Counter>,
}

/// The existing queues, by source: one for each feed.
#[derive(Debug, Clone, Default)]
struct Waiting(Arc<Mutex<Vec<(&'static str, Wakes)>>>);

// === impl Queues ===

impl Queues {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let of_sources = Waiting::default();
        let queues = Self { of_sources, work_seconds: Histogram::new(BOUNDS), watch_failures: Family::default() };
        registry.register(
            format!("{PREFIX}_queue_work_seconds"),
            "Time to process one object of a source",
            queues.work_seconds.clone(),
        );
        registry.register(
            format!("{PREFIX}_watch_failures"),
            "Failed lists and watches of a source; each restarts",
            queues.watch_failures.clone(),
        );
        registry.register_collector(Box::new(queues.of_sources.clone()));
        queues
    }

    pub fn follow(&self, source: &'static str, queue: Wakes) {
        self.of_sources.0.lock().push((source, queue));
    }

    pub fn worked(&self, took: Duration) {
        self.work_seconds.observe(took);
    }

    pub fn watch_failed(&self, source: &'static str) {
        self.watch_failures.get_or_create(&OfSource { source }).inc();
    }

    /// Another replica writes: nothing waits here.
    pub(super) fn clear(&self) {
        self.of_sources.0.lock().clear();
    }
}

// === impl Waiting ===

impl Collector for Waiting {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let mut waiting = BTreeMap::<&'static str, i64>::new();
        for (source, queue) in &*self.0.lock() {
            let more = i64::try_from(queue.waiting()).unwrap_or(i64::MAX);
            let all = waiting.entry(source).or_default();
            *all = all.saturating_add(more);
        }
        let (name, help) = (format!("{PREFIX}_queue_waiting"), "Objects of a source that wait to be processed");
        let mut all = encoder.encode_descriptor(&name, help, None, MetricType::Gauge)?;
        for (source, waiting) in waiting {
            ConstGauge::new(waiting).encode(all.encode_family(&OfSource { source })?)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_is_counted_by_source_while_this_replica_leads() {
        let mut registry = Registry::default();
        let queues = Queues::register(&mut registry);
        let encoded = || {
            let mut text = String::new();
            prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
            text
        };
        let feeds = [Wakes::default(), Wakes::default()];
        for (number, feed) in feeds.iter().enumerate() {
            queues.follow("capi", feed.clone());
            feed.push("fleet", "c1");
            feed.push("fleet", &format!("other-{number}"));
        }
        queues.worked(Duration::from_millis(20));
        queues.watch_failed("capi");
        let text = encoded();
        for line in [
            "queue_waiting{source=\"capi\"} 4",
            "queue_work_seconds_count 1",
            "watch_failures_total{source=\"capi\"} 1",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
        queues.clear();
        assert!(!encoded().contains("queue_waiting{"), "of another replica");
    }
}
