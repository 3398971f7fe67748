//! Bodies of a scripted member's answers.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Instant, Interval, Sleep, interval_at, sleep};

/// Interval of the lines which say that nothing has happened, as API servers have it.
const BOOKMARKS: Duration = Duration::from_mins(1);

/// The body of an answer.
pub enum Answer {
    Whole(Option<Bytes>),
    Watch(Box<Watch>),
}

/// Lines until its time is over, or the member ends it.
pub struct Watch {
    lines: UnboundedReceiver<Bytes>,
    bookmark: Bytes,
    bookmarks: Interval,
    end: Pin<Box<Sleep>>,
}

// === impl Answer ===

impl Answer {
    /// A watch that ends after `time`. `number` spreads the bookmarks of many members' watches over
    /// the minute.
    pub fn watch(lines: UnboundedReceiver<Bytes>, version: &str, time: Duration, number: usize) -> Self {
        let object = serde_json::json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
            "metadata": {"resourceVersion": version}});
        let bookmark = format!("{}\n", serde_json::json!({"type": "BOOKMARK", "object": object}));
        let first = BOOKMARKS.mul_f64(0.5) + Duration::from_millis(u64::try_from(number * 37 % 30_000).unwrap_or(0));
        let bookmarks = interval_at(Instant::now() + first, BOOKMARKS);
        Self::Watch(Box::new(Watch { lines, bookmark: bookmark.into(), bookmarks, end: Box::pin(sleep(time)) }))
    }
}

impl Body for Answer {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut *self {
            Self::Whole(body) => Poll::Ready(body.take().map(|body| Ok(Frame::data(body)))),
            Self::Watch(watch) => watch.poll(cx).map(|line| line.map(|line| Ok(Frame::data(line)))),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(body) => SizeHint::with_exact(body.as_ref().map_or(0, |body| body.len() as u64)),
            Self::Watch(_) => SizeHint::default(),
        }
    }
}

// === impl Watch ===

impl Watch {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if let Poll::Ready(line) = self.lines.poll_recv(cx) {
            return Poll::Ready(line);
        }
        if self.bookmarks.poll_tick(cx).is_ready() {
            return Poll::Ready(Some(self.bookmark.clone()));
        }
        self.end.as_mut().poll(cx).map(|()| None)
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;
    use tokio::sync::mpsc;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_watch_says_each_minute_that_it_is_there_and_ends_in_time() {
        let (sender, receiver) = mpsc::unbounded_channel();
        let mut watch = Answer::watch(receiver, "7", Duration::from_secs(100), 3);
        sender.send(Bytes::from_static(b"line")).unwrap();
        let mut lines = Vec::new();
        while let Some(frame) = watch.frame().await {
            lines.push(String::from_utf8(frame.unwrap().into_data().unwrap().to_vec()).unwrap());
        }
        assert_eq!(lines.len(), 3, "{lines:?}");
        assert!(lines[0] == "line" && lines[1].contains("BOOKMARK") && lines[2].contains("\"7\""), "{lines:?}");
    }
}
