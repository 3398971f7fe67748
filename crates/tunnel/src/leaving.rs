//! Notices of streams that are about to be cut: their own link is leaving, or a link further on is.
//!
//! A client that sends requests of its own inside a stream should then start no more of them there.
//! GOAWAY says that the link itself leaves. For links behind it, the server answers `GET /leaving`
//! with a body that lasts as long as the link and has the identifier of each affected stream (RFC
//! 9113 §5.1.1) on a line of its own.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use foldhash::quality::RandomState;
use h2::client::ResponseFuture;
use h2::{RecvStream, SendStream};
use http::StatusCode;
use net::words;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::answered::answered;

/// Path of the request for notices.
pub const LEAVING: &str = "/leaving";
/// Digits of the largest stream identifier.
const LONGEST_LINE: usize = 10;

/// The opener's end: the streams to notify.
#[derive(Debug, Default)]
pub(crate) struct Leaving {
    link: CancellationToken,
    streams: Mutex<HashMap<u32, CancellationToken, RandomState>>,
}

/// A stream's entry in [`Leaving`], removed when dropped.
#[derive(Debug)]
pub(crate) struct Notice {
    token: CancellationToken,
    listed: Option<(Arc<Leaving>, u32)>,
}

/// The server's end: the subscriber.
#[derive(Debug, Default)]
pub(crate) struct Notices(Mutex<Subscriber>);

#[derive(Debug, Default)]
enum Subscriber {
    /// No subscriber yet.
    #[default]
    Nobody,
    Listener(SendStream<Bytes>),
    /// Nothing more is sent: the link itself is leaving, or the subscriber does not read.
    Over,
}

// === impl Leaving ===

impl Leaving {
    /// Notifies all streams: the link accepts no new ones.
    pub fn all(&self) {
        self.link.cancel();
    }

    /// The notice of a stream whose link leaves only as a whole.
    pub fn whole(&self) -> Notice {
        Notice { token: self.link.clone(), listed: None }
    }

    /// The notice of the stream `id`, which may be notified alone.
    pub fn single(self: &Arc<Self>, id: u32) -> Notice {
        let token = self.link.child_token();
        self.streams.lock().insert(id, token.clone());
        Notice { token, listed: Some((Arc::clone(self), id)) }
    }

    /// Reads the answer to the request for notices, to its end.
    pub async fn follow(self: Arc<Self>, answer: ResponseFuture) {
        match answered(answer).await {
            Ok(answer) if answer.status() == StatusCode::OK => self.listen(answer.into_body()).await,
            // A server that does not know the request: its streams end without notice.
            Ok(answer) => tracing::debug!(status = %answer.status(), "no notice of leaving streams"),
            Err(error) => tracing::debug!(error = words::causes(&error), "no notice of leaving streams"),
        }
    }

    async fn listen(&self, mut body: RecvStream) {
        let mut line = String::new();
        while let Some(Ok(data)) = body.data().await {
            // Fails only for more than was received.
            let _ = body.flow_control().release_capacity(data.len());
            for byte in data {
                match byte {
                    b'\n' => {
                        self.tell(&line);
                        line.clear();
                    }
                    b'0'..=b'9' if line.len() < LONGEST_LINE => line.push(char::from(byte)),
                    _ => return tracing::debug!("a list of leaving streams that cannot be read"),
                }
            }
        }
    }

    fn tell(&self, line: &str) {
        let token = line.parse().ok().and_then(|id: u32| self.streams.lock().get(&id).cloned());
        // A stream that has ended meanwhile is no longer listed.
        if let Some(token) = token {
            token.cancel();
        }
    }
}

// === impl Notice ===

impl Notice {
    pub fn token(&self) -> &CancellationToken {
        &self.token
    }
}

impl Drop for Notice {
    fn drop(&mut self) {
        if let Some((leaving, id)) = self.listed.take() {
            leaving.streams.lock().remove(&id);
        }
    }
}

// === impl Notices ===

impl Notices {
    /// Makes `body` the subscriber: the last request counts.
    pub fn ask(&self, body: SendStream<Bytes>) {
        let mut subscriber = self.0.lock();
        if matches!(*subscriber, Subscriber::Over) {
            end(body);
        } else if let Subscriber::Listener(former) = std::mem::replace(&mut *subscriber, Subscriber::Listener(body)) {
            end(former);
        }
    }

    /// Notifies the peer of the stream `id`.
    pub fn tell(&self, id: u32) {
        let mut subscriber = self.0.lock();
        let Subscriber::Listener(body) = &mut *subscriber else { return };
        let line = Bytes::from(format!("{id}\n"));
        body.reserve_capacity(line.len());
        // A subscriber that does not read gets no more: notices must not be kept for it.
        if body.capacity() < line.len() || body.send_data(line, false).is_err() {
            *subscriber = Subscriber::Over;
        }
    }

    /// Ends the answer, so that it does not keep the link open.
    pub fn over(&self) {
        if let Subscriber::Listener(body) = std::mem::replace(&mut *self.0.lock(), Subscriber::Over) {
            end(body);
        }
    }
}

fn end(mut body: SendStream<Bytes>) {
    // An error: the peer is gone.
    let _ = body.send_data(Bytes::new(), true);
}

#[cfg(test)]
mod tests {
    use kit::wait::{WAIT, within};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio_util::sync::CancellationToken;

    use crate::testing::{Pair, to};
    use crate::{LinkError, Stream};

    /// A new stream: its opener's end, the other end, and its identifier there.
    async fn open(pair: &mut Pair) -> (Stream, Stream, u32) {
        let accept = async {
            let incoming = pair.incoming.recv().await.unwrap();
            let id = incoming.id();
            (incoming.accept().unwrap(), id)
        };
        let destination = to("db:5432");
        let (near, (far, id)) = tokio::join!(pair.link.open(&destination, None), accept);
        (near.unwrap(), far, id)
    }

    fn token(stream: &Stream) -> CancellationToken {
        stream.leaving().expect("an opened stream knows")
    }

    #[tokio::test]
    async fn one_stream_is_told_of_alone_and_goes_on() {
        let mut pair = Pair::to_server().await;
        let (mut first, mut far, id) = open(&mut pair).await;
        let (second, _far, _) = open(&mut pair).await;
        assert!(far.leaving().is_none(), "who accepts is not told");
        pair.serving.tell_leaving(id);
        within(WAIT, "the first stream's notice", token(&first).cancelled()).await;
        assert!(!token(&second).is_cancelled());
        assert!(pair.link.is_usable());
        first.write_all(b"on").await.unwrap();
        far.read_exact(&mut [0; 2]).await.unwrap();
    }

    #[tokio::test]
    async fn all_streams_leave_with_their_link() {
        for mut pair in [Pair::new().await, Pair::to_server().await] {
            let (near, far, _) = open(&mut pair).await;
            assert!(!token(&near).is_cancelled());
            pair.serving.drain();
            within(WAIT, "the notice", token(&near).cancelled()).await;
            drop((near, far));
            within(WAIT, "the end of a link that was asked to leave", pair.link.ended()).await;
        }
    }

    /// The answer lasts as long as the link, but does not keep it open.
    #[tokio::test]
    async fn who_listens_keeps_no_link() {
        let mut pair = Pair::to_server().await;
        let (near, far, _) = open(&mut pair).await;
        let ended = pair.link.finished();
        tokio::pin!(ended);
        assert!(futures_util::poll!(&mut ended).is_pending());
        assert!(token(&near).is_cancelled(), "nobody can open more");
        drop((near, far));
        let end = within(WAIT, "the end", ended).await;
        assert!(matches!(end, LinkError::Closed | LinkError::Broken(_)), "{end:?}");
    }

    #[tokio::test]
    async fn ends_are_forgotten() {
        let mut pair = Pair::to_server().await;
        let (near, _far, id) = open(&mut pair).await;
        let gone = token(&near);
        drop(near);
        pair.serving.tell_leaving(id);
        let (next, _far, id) = open(&mut pair).await;
        pair.serving.tell_leaving(id);
        within(WAIT, "the next stream's notice", token(&next).cancelled()).await;
        assert!(!gone.is_cancelled());
    }
}
