//! Limits the lines of a watch: its reader keeps a line until the line's end.

use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Frame;
use tokio::time::{Instant, timeout_at};
use tower::BoxError;

use super::Room;
use crate::sender::{Streamed, streamed};

struct Lines<R: Room> {
    body: Streamed,
    room: R,
    within: Duration,
    /// Bytes received of the unfinished line.
    length: usize,
    /// When that line must have ended.
    until: Option<Instant>,
    /// Room for a long line.
    held: Option<R::Held>,
    is_over: bool,
}

/// The same body, with limits.
///
/// A line of more than [`Room::SHORT`] bytes waits for room. A line of more than [`Room::LONG`]
/// bytes, or one that does not end `within` that time, breaks the watch off. After a long line the
/// watch ends, as any watch does from time to time: its reader would keep a buffer of that length.
pub fn lines<R: Room>(body: Streamed, room: R, within: Duration) -> Streamed {
    let lines = Lines { body, room, within, length: 0, until: None, held: None, is_over: false };
    let frames = stream::unfold(lines, |mut lines| async move {
        let frame = lines.next().await?;
        lines.is_over |= frame.is_err();
        Some((frame.map(Frame::data), lines))
    });
    streamed(StreamBody::new(frames))
}

// === impl Lines ===

impl<R: Room> Lines<R> {
    /// `None` after the end.
    async fn next(&mut self) -> Option<Result<Bytes, BoxError>> {
        loop {
            if self.is_over {
                return None;
            }
            let frame = match self.until {
                None => self.body.frame().await?,
                Some(until) => match timeout_at(until, self.body.frame()).await {
                    Ok(frame) => frame?,
                    Err(_) => return Some(Err(format!("a line has no end within {:?}", self.within).into())),
                },
            };
            match frame.map(Frame::into_data) {
                Ok(Ok(data)) => return Some(self.keep(data).await),
                // Trailers.
                Ok(Err(_)) => {}
                Err(error) => return Some(Err(error.into())),
            }
        }
    }

    /// Waits until there is room for `data`, which it cuts after the end of a long line.
    async fn keep(&mut self, mut data: Bytes) -> Result<Bytes, BoxError> {
        let mut until = self.until.unwrap_or_else(|| Instant::now() + self.within);
        let (mut at, mut longest) = (0, self.length);
        for part in data.split_inclusive(|byte| *byte == b'\n') {
            self.length += part.len();
            at += part.len();
            longest = longest.max(self.length);
            if part.ends_with(b"\n") {
                self.is_over = self.length > R::SHORT;
                self.length = 0;
                if self.is_over {
                    break;
                }
                until = Instant::now() + self.within;
            }
        }
        data.truncate(at);
        if longest > R::LONG {
            return Err(format!("a line of more than {} bytes", R::LONG).into());
        }
        if longest > R::SHORT && self.held.is_none() {
            let none = |_| "there was no room for so long a line";
            self.held = Some(timeout_at(until, self.room.line()).await.map_err(none)?);
        }
        self.until = (self.length > 0).then_some(until);
        Ok(data)
    }
}
