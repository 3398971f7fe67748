//! Reads a watch with many small events in bursts. An event that comes alone takes several times
//! the CPU time of one among others: the thread wakes, and nothing that reads a record, a chunk, a
//! line and an object is in the processor's caches any more.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_util::{Stream, StreamExt as _};
use kube::runtime::watcher::{self, Event};
use tokio::time::{Instant, Sleep, sleep};

/// No event is read for so long after one that came alone: the next ones are seen later by at most
/// this.
const REST: Duration = Duration::from_millis(100);
/// An event came alone if it came so long after the one before. If it came sooner, it was there
/// already, or events come so fast that each rest would leave more of them unread.
const ALONE: Duration = Duration::from_millis(2);

/// The events of a watch, in the same order.
pub struct Bursts<S> {
    events: S,
    rest: Pin<Box<Sleep>>,
    /// `rest` has begun, and nothing is read until it ends.
    is_resting: bool,
    /// The last event came alone.
    is_alone: bool,
    /// When the last event was read, or the last rest ended.
    last: Instant,
}

// === impl Bursts ===

impl<S> Bursts<S> {
    pub fn of(events: S) -> Self {
        let rest = Box::pin(sleep(Duration::ZERO));
        Self { events, rest, is_resting: false, is_alone: false, last: Instant::now() }
    }

    fn read(&mut self, is_change: bool) {
        let now = Instant::now();
        // Lists come in pages, and each is waited for.
        self.is_alone = is_change && now >= self.last + ALONE;
        self.last = now;
    }
}

impl<K, S: Stream<Item = watcher::Result<Event<K>>> + Unpin> Stream for Bursts<S> {
    type Item = S::Item;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<S::Item>> {
        let this = &mut *self;
        if this.is_resting {
            ready!(this.rest.as_mut().poll(cx));
            (this.is_resting, this.last) = (false, Instant::now());
        }
        let Poll::Ready(event) = this.events.poll_next_unpin(cx) else {
            if std::mem::take(&mut this.is_alone) {
                this.rest.as_mut().reset(Instant::now() + REST);
                this.is_resting = true;
            }
            return Poll::Pending;
        };
        this.read(matches!(event, Some(Ok(Event::Apply(_) | Event::Delete(_)))));
        Poll::Ready(event)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::stream::unfold;
    use tokio::task::yield_now;

    use super::*;

    /// Events with the time at which they come, one each `pause`, each in a turn of its own.
    fn events(
        pause: Duration,
        make: fn(Instant) -> Event<Instant>,
    ) -> impl Stream<Item = watcher::Result<Event<Instant>>> {
        let begin = Instant::now();
        unfold(1, move |number| async move {
            let at = begin + pause * number;
            tokio::time::sleep_until(at).await;
            yield_now().await;
            Some((Ok(make(at)), number + 1))
        })
    }

    /// How late these events are read, and at how many different times.
    async fn read(events: impl Stream<Item = watcher::Result<Event<Instant>>>, count: usize) -> (Duration, usize) {
        let mut events = Bursts::of(Box::pin(events));
        let (mut latest, mut times) = (Duration::ZERO, Vec::new());
        for _ in 0..count {
            let (Event::Apply(at) | Event::InitApply(at)) = events.next().await.unwrap().unwrap() else { continue };
            latest = latest.max(at.elapsed());
            times.push(Instant::now());
        }
        times.dedup();
        (latest, times.len())
    }

    #[tokio::test(start_paused = true)]
    async fn events_that_come_alone_are_read_together_and_soon() {
        let (latest, times) = read(events(Duration::from_millis(10), Event::Apply), 1000).await;
        assert!(latest <= REST, "{latest:?}");
        assert!(times <= 200, "{times} times in 10 s");
    }

    #[tokio::test(start_paused = true)]
    async fn a_rare_event_waits_for_nothing() {
        let (latest, _) = read(events(Duration::from_secs(1), Event::Apply), 100).await;
        assert_eq!(latest, Duration::ZERO);
    }

    /// Otherwise more would come than are read.
    #[tokio::test(start_paused = true)]
    async fn events_without_end_are_read_without_a_rest() {
        let begin = Instant::now();
        read(events(Duration::ZERO, Event::Apply), 100_000).await;
        assert_eq!(begin.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn lists_are_read_as_they_come() {
        let (latest, _) = read(events(Duration::from_millis(10), Event::InitApply), 1000).await;
        assert_eq!(latest, Duration::ZERO);
    }
}
