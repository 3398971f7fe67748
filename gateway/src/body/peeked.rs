//! A body that can be read in part before it is passed on. The passed body repeats the read part
//! unchanged, including an early end.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt;
use hyper::body::Body;
use tokio::time::timeout;

pub struct Peeked<B: Body> {
    seen: VecDeque<Result<Frame<Bytes>, B::Error>>,
    rest: B,
}

// === impl Peeked ===

impl<B: Body<Data = Bytes> + Unpin> Peeked<B> {
    pub fn new(body: B) -> Self {
        Self { seen: VecDeque::new(), rest: body }
    }

    /// The whole body, if it ends cleanly within `limit` bytes and this time. Called once.
    pub async fn short(&mut self, limit: usize, within: Duration) -> Option<Bytes> {
        timeout(within, self.look(limit)).await.ok().flatten()
    }

    async fn look(&mut self, limit: usize) -> Option<Bytes> {
        let mut whole = BytesMut::new();
        // The timeout can only fire between two frames, so none is lost.
        while let Some(frame) = self.rest.frame().await {
            let data = frame.as_ref().ok().map(|frame| frame.data_ref().cloned());
            self.seen.push_back(frame);
            let data = data?.unwrap_or_default();
            if data.len() > limit - whole.len() {
                return None;
            }
            whole.extend_from_slice(&data);
        }
        Some(whole.freeze())
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for Peeked<B>
where
    B::Error: Unpin,
{
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        match self.seen.pop_front() {
            Some(frame) => Poll::Ready(Some(frame)),
            None => Pin::new(&mut self.rest).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.seen.is_empty() && self.rest.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        // The length is in the response's Content-Length, which is passed on.
        if self.seen.is_empty() { self.rest.size_hint() } else { SizeHint::default() }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::stream;
    use http_body_util::StreamBody;

    use super::*;

    type Piece = Result<Frame<Bytes>, &'static str>;

    #[expect(clippy::unnecessary_wraps, reason = "as streams have it")]
    fn piece(text: &'static str) -> Piece {
        Ok(Frame::data(text.into()))
    }

    async fn peek(pieces: Vec<Piece>, limit: usize) -> (Option<Bytes>, Vec<Result<String, &'static str>>) {
        let mut peeked = Peeked::new(StreamBody::new(stream::iter(pieces)));
        let seen = peeked.short(limit, Duration::from_secs(1)).await;
        let mut passed = Vec::new();
        while let Some(frame) = peeked.frame().await {
            passed.push(frame.map(|frame| String::from_utf8(frame.into_data().unwrap().to_vec()).unwrap()));
        }
        (seen, passed)
    }

    fn texts(texts: &[&str]) -> Vec<Result<String, &'static str>> {
        texts.iter().map(|text| Ok((*text).to_owned())).collect()
    }

    #[tokio::test]
    async fn what_was_looked_at_comes_all_the_same() {
        let pieces = || vec![piece("ab"), piece("cd")];
        assert_eq!(peek(pieces(), 4).await, (Some("abcd".into()), texts(&["ab", "cd"])));
        assert_eq!(peek(pieces(), 3).await, (None, texts(&["ab", "cd"])));
        assert_eq!(peek(pieces(), 1).await, (None, texts(&["ab", "cd"])));
    }

    #[tokio::test]
    async fn a_body_that_breaks_off_breaks_off_then_too() {
        let (seen, passed) = peek(vec![piece("ab"), Err("lost")], 100).await;
        assert_eq!((seen, passed), (None, vec![Ok("ab".to_owned()), Err("lost")]));
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_does_not_end_is_not_waited_for() {
        let mut peeked = Peeked::new(StreamBody::new(stream::pending::<Piece>()));
        assert_eq!(peeked.short(100, Duration::from_secs(1)).await, None);
    }
}
