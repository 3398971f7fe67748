//! Orders two streams of the hub's events by version.
//!
//! A watcher continues from the last version that it saw, and relies on having every older event.
//! Each stream is ordered, but either may be slightly ahead of the other. So a line waits until the
//! other stream has reached its version, or has had enough time.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use super::virtual_tracker::Source;
use crate::hub::Line;

/// A hub sends a change on all watches within a few milliseconds. Watchers of clusters do not
/// notice this wait.
const SETTLE: Duration = Duration::from_millis(100);
/// Most waiting lines. With more, the oldest is passed on.
const MOST: usize = 64;

/// Lines that wait for the other stream.
pub struct InOrder {
    /// By version, then by arrival.
    waiting: BTreeMap<(u64, u64), Waiting>,
    /// The last version of each stream.
    received: [u64; 2],
    /// The highest version that was passed on.
    taken: u64,
    arrivals: u64,
    /// Bytes of the waiting lines.
    bytes: usize,
}

struct Waiting {
    source: Source,
    line: Line,
    arrived: Instant,
}

// === impl InOrder ===

impl InOrder {
    /// `both`: there are two streams. Lines of a single stream never wait.
    pub fn new(both: bool) -> Self {
        Self {
            waiting: BTreeMap::new(),
            received: [0, if both { 0 } else { u64::MAX }],
            taken: 0,
            arrivals: 0,
            bytes: 0,
        }
    }

    /// Adds a line with its version. A line without one is the last: an error, or the end.
    pub fn put(&mut self, source: Source, version: Option<u64>, line: Line, now: Instant) {
        let received = &mut self.received[source as usize];
        *received = version.unwrap_or_default().max(*received);
        self.arrivals += 1;
        self.bytes += line.length();
        self.waiting.insert((version.unwrap_or(u64::MAX), self.arrivals), Waiting { source, line, arrived: now });
    }

    /// The next line that need not wait any longer.
    pub fn take(&mut self, now: Instant) -> Option<(Source, Line)> {
        let (version, _) = *self.waiting.first_key_value()?.0;
        let [one, other] = self.received;
        let is_next = version <= one.min(other)
            || version == u64::MAX
            || self.waiting.len() > MOST
            || self.due().is_some_and(|due| due <= now);
        let waiting = is_next.then(|| self.waiting.pop_first())??.1;
        if version != u64::MAX {
            self.taken = version.max(self.taken);
        }
        self.bytes -= waiting.line.length();
        Some((waiting.source, waiting.line))
    }

    /// Bytes of the waiting lines.
    pub fn held(&self) -> usize {
        self.bytes
    }

    /// Whether a stream may still deliver an older event than one already passed on: a watch that
    /// continues from there would miss it.
    pub fn is_behind(&self) -> bool {
        let [one, other] = self.received;
        self.taken > one.min(other)
    }

    /// When the next line is passed on, whatever the streams do.
    pub fn due(&self) -> Option<Instant> {
        let ends = self.waiting.keys().next_back().is_some_and(|(version, _)| *version == u64::MAX);
        let first = self.waiting.values().map(|waiting| waiting.arrived).min()?;
        Some(if ends { first } else { first + SETTLE })
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn put(lines: &mut InOrder, source: Source, version: u64, now: Instant) {
        lines.put(source, Some(version), Line::Whole(Bytes::from(version.to_string())), now);
    }

    fn taken(lines: &mut InOrder, now: Instant) -> Vec<String> {
        let text = |(_, line)| match line {
            Line::Whole(line) => String::from_utf8_lossy(&line).into_owned(),
            other => format!("{other:?}"),
        };
        std::iter::from_fn(|| lines.take(now)).map(text).collect()
    }

    #[test]
    fn a_line_waits_for_the_other_stream() {
        let now = Instant::now();
        let mut lines = InOrder::new(true);
        put(&mut lines, Source::Secrets, 10, now);
        assert!(taken(&mut lines, now).is_empty());
        put(&mut lines, Source::Managed, 8, now);
        assert_eq!(taken(&mut lines, now), ["8"]);
        put(&mut lines, Source::Managed, 12, now);
        assert_eq!(taken(&mut lines, now), ["10"]);
        put(&mut lines, Source::Secrets, 12, now);
        assert_eq!(taken(&mut lines, now), ["12", "12"]);
    }

    #[test]
    fn but_not_for_long() {
        let now = Instant::now();
        let mut lines = InOrder::new(true);
        put(&mut lines, Source::Secrets, 10, now);
        put(&mut lines, Source::Secrets, 11, now + SETTLE / 2);
        assert_eq!(lines.due(), Some(now + SETTLE));
        assert_eq!(taken(&mut lines, now + SETTLE), ["10"]);
        // A late line goes before those that waited.
        put(&mut lines, Source::Managed, 9, now + SETTLE);
        assert_eq!(taken(&mut lines, now + SETTLE), ["9"]);
        assert_eq!(taken(&mut lines, now + SETTLE + SETTLE / 2), ["11"]);
        assert_eq!(lines.due(), None);
        assert!(lines.is_behind());
        put(&mut lines, Source::Managed, 11, now + SETTLE);
        assert!(!lines.is_behind());
    }

    #[test]
    fn one_stream_alone_waits_for_nobody() {
        let now = Instant::now();
        let mut lines = InOrder::new(false);
        put(&mut lines, Source::Secrets, 10, now);
        put(&mut lines, Source::Secrets, 9, now);
        assert_eq!(taken(&mut lines, now), ["9", "10"]);
    }

    #[test]
    fn the_end_comes_last_and_at_once() {
        let now = Instant::now();
        let mut lines = InOrder::new(true);
        put(&mut lines, Source::Secrets, 10, now);
        lines.put(Source::Managed, None, Line::End, now);
        assert_eq!(taken(&mut lines, now), ["10", "End"]);
    }

    #[test]
    fn a_crowd_does_not_wait() {
        let now = Instant::now();
        let mut lines = InOrder::new(true);
        for version in 0..=MOST as u64 {
            put(&mut lines, Source::Secrets, 10 + version, now);
        }
        assert_eq!(taken(&mut lines, now), ["10"]);
    }
}
