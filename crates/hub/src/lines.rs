//! Reads a watch line by line, as the lines arrive.
//!
//! A line from the hub is an object of at most 1 MiB (the limit of Secrets) and little else. A
//! longer line is nothing we asked for. A hub that breaks off or falls silent ends the watch in the
//! same way as a hub that ends it properly: the watcher resumes from the last version it saw, as it
//! does every few minutes anyway.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Body as HttpBody;
use kube::client::Body;
use net::words::causes;
use tokio::time::timeout;

/// Longest accepted line, in bytes.
const LONGEST: usize = 2 << 20;
/// A hub sends a bookmark each minute. A hub that is silent for this long is dead.
const SILENCE: Duration = Duration::from_mins(10);

/// The lines of a watch.
pub struct Lines<B = Body> {
    body: B,
    read: BytesMut,
    /// Bytes of `read` known to hold no newline.
    scanned: usize,
    longest: usize,
    silence: Duration,
}

/// Why the body cannot be read further.
type Broken = Box<dyn std::error::Error + Send + Sync>;

/// The result of reading one line.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// Without its newline.
    Whole(Bytes),
    /// Longer than any event can be.
    TooLong,
    /// The watch has ended.
    End,
}

// === impl Line ===

impl Line {
    /// Length of a whole line in bytes, or 0.
    pub fn length(&self) -> usize {
        if let Self::Whole(line) = self { line.len() } else { 0 }
    }
}

// === impl Lines ===

impl Lines {
    /// The lines of a watch of the hub.
    pub fn new(body: Body) -> Self {
        Self::within(body, LONGEST, SILENCE)
    }
}

impl<B: HttpBody<Data = Bytes, Error: Into<Broken>> + Unpin> Lines<B> {
    /// Lines of at most `longest` bytes each, whatever their frames, from a server that is never
    /// silent for `silence`. The buffer holds at most `longest` bytes and one frame.
    pub fn within(body: B, longest: usize, silence: Duration) -> Self {
        Self { body, read: BytesMut::new(), scanned: 0, longest, silence }
    }

    /// Bytes buffered: lines that are incomplete or not yet taken.
    pub fn held(&self) -> usize {
        self.read.capacity()
    }

    /// The next line. Cancel-safe: dropping the future loses nothing.
    pub async fn next(&mut self) -> Line {
        self.try_next().await.unwrap_or_else(|error| {
            tracing::debug!(error = causes(&*error), "a watch of the hub was cut off");
            Line::End
        })
    }

    /// Like [`Lines::next`], but reports a watch that was cut off as an error. A watch that ended
    /// or fell silent is [`Line::End`].
    ///
    /// # Errors
    /// Fails if the body cannot be read further.
    pub async fn try_next(&mut self) -> Result<Line, Broken> {
        loop {
            if let Some(line) = self.take() {
                match line.len() {
                    0 => continue,
                    length if length > self.longest => return Ok(Line::TooLong),
                    _ => return Ok(Line::Whole(line)),
                }
            }
            if self.read.len() > self.longest {
                return Ok(Line::TooLong);
            }
            match timeout(self.silence, self.body.frame()).await {
                Ok(Some(frame)) => {
                    if let Ok(data) = frame.map_err(Into::into)?.into_data() {
                        self.read.extend_from_slice(&data);
                    }
                }
                Ok(None) => return Ok(Line::End),
                Err(_) => {
                    tracing::debug!("a watch fell silent");
                    return Ok(Line::End);
                }
            }
        }
    }

    fn take(&mut self) -> Option<Bytes> {
        let Some(at) = self.read[self.scanned..].iter().position(|byte| *byte == b'\n') else {
            self.scanned = self.read.len();
            return None;
        };
        let line = self.read.split_to(self.scanned + at).freeze();
        bytes::Buf::advance(&mut self.read, 1);
        self.scanned = 0;
        Some(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines of a body that is already complete. kube makes bodies of several frames only from
    /// connections.
    async fn lines(text: impl Into<Vec<u8>>) -> Vec<Line> {
        let mut lines = Lines::new(Body::from(text.into()));
        let mut found = Vec::new();
        loop {
            found.push(lines.next().await);
            if matches!(found.last(), Some(Line::End | Line::TooLong)) {
                return found;
            }
        }
    }

    #[tokio::test]
    async fn whole_lines_are_told_and_half_ones_are_not() {
        let whole = |text: &'static str| Line::Whole(Bytes::from_static(text.as_bytes()));
        assert_eq!(lines("a\nbc\n\nd").await, [whole("a"), whole("bc"), Line::End]);
        assert_eq!(lines("").await, [Line::End]);
    }

    #[tokio::test]
    async fn a_line_has_a_limit() {
        let longest = lines([vec![b'x'; LONGEST], b"\n".to_vec()].concat()).await;
        assert!(matches!(&longest[..], [Line::Whole(_), Line::End]));
        assert_eq!(lines(vec![b'x'; LONGEST + 1]).await, [Line::TooLong]);
        let whole = lines([vec![b'x'; LONGEST + 1], b"\n".to_vec()].concat()).await;
        assert_eq!(whole, [Line::TooLong], "its end came with it");
    }
}
