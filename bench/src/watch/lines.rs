//! The lines of a watch: JSON, each with the time at which it was due.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::time::{Instant, Interval, interval_at};

/// Length of a line with an event, its newline included.
pub const EVENT_BYTES: usize = 500;

const BEFORE: &str = r#"{"due":""#;
/// Nanoseconds since 1970 in decimal, with leading zeros.
const DIGITS: usize = 20;
const PERIOD: Duration = Duration::from_secs(1);
/// Consecutive multiples of it modulo a second are spread evenly, however many there are (the
/// golden section).
const STEP_MICROSECONDS: u64 = 618_034;

/// The body of a response.
pub struct Lines {
    first: Option<Bytes>,
    then: Then,
}

/// What follows the first line.
enum Then {
    End,
    Nothing,
    Events { interval: Interval, clock: Clock },
}

/// Turns the runtime's time into that of the driver's process.
#[derive(Clone, Copy)]
struct Clock {
    instant: Instant,
    since_epoch: Duration,
}

/// The time since 1970, which all processes of this machine share.
pub fn since_epoch() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// When the event at the beginning of `chunk` was due; none if a line does not begin there.
pub fn due(chunk: &[u8]) -> Option<Duration> {
    let digits = chunk.strip_prefix(BEFORE.as_bytes())?.get(..DIGITS)?;
    std::str::from_utf8(digits).ok()?.parse().ok().map(Duration::from_nanos)
}

fn event(due: Duration) -> Bytes {
    let start = format!(r#"{BEFORE}{:0DIGITS$}","type":"MODIFIED","object":{{"kind":"Event","data":""#, due.as_nanos());
    let end = "\"}}\n";
    let filling = "x".repeat(EVENT_BYTES - start.len() - end.len());
    Bytes::from(start + &filling + end)
}

// === impl Lines ===

impl Lines {
    /// A line, then nothing for ever.
    pub fn idle() -> Self {
        let bookmark = r#"{"type":"BOOKMARK","object":{"kind":"ConfigMap","apiVersion":"v1"}}"#;
        Self { first: Some(Bytes::from(format!("{bookmark}\n"))), then: Then::Nothing }
    }

    /// An event every second; `number` sets the time within the second.
    pub fn with_events(number: u32) -> Self {
        let clock = Clock { instant: Instant::now(), since_epoch: since_epoch() };
        let phase = Duration::from_micros(u64::from(number) * STEP_MICROSECONDS % 1_000_000);
        let interval = interval_at(clock.instant + phase, PERIOD);
        Self { first: None, then: Then::Events { interval, clock } }
    }

    /// A body with an end.
    pub fn only(body: Bytes) -> Self {
        Self { first: Some(body), then: Then::End }
    }
}

impl Body for Lines {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(Ok(Frame::data(first))));
        }
        match &mut self.then {
            Then::End => Poll::Ready(None),
            Then::Nothing => Poll::Pending,
            Then::Events { interval, clock } => {
                // Late ones are made up for, each with the time when it should have come: no stall
                // hides behind itself.
                let due = ready!(interval.poll_tick(cx));
                let since_epoch = clock.since_epoch + due.duration_since(clock.instant);
                Poll::Ready(Some(Ok(Frame::data(event(since_epoch)))))
            }
        }
    }

    fn size_hint(&self) -> SizeHint {
        match (&self.first, &self.then) {
            (Some(only), Then::End) => SizeHint::with_exact(only.len() as u64),
            _ => SizeHint::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::*;

    #[test]
    fn an_event_is_a_line_of_json_that_says_when_it_was_due() {
        let time = Duration::from_nanos(1_790_000_000_123_456_789);
        let line = event(time);
        assert_eq!(line.len(), EVENT_BYTES);
        assert_eq!(due(&line), Some(time));
        assert!(line.ends_with(b"\n"));
        serde_json::from_slice::<serde_json::Value>(&line).unwrap();
        assert_eq!(due(&line[1..]), None, "not the beginning");
        assert_eq!(due(&line[..20]), None, "cut off");
    }

    #[tokio::test(start_paused = true)]
    async fn events_come_every_second() {
        let mut lines = Lines::with_events(7);
        let mut times = Vec::new();
        for _ in 0..3 {
            let frame = lines.frame().await.unwrap().unwrap();
            times.push(due(frame.data_ref().unwrap()).unwrap());
        }
        assert_eq!(times[1].saturating_sub(times[0]), PERIOD);
        assert_eq!(times[2].saturating_sub(times[1]), PERIOD);
    }
}
