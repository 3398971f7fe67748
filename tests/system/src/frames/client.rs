//! A client of the gateway that sends frames.

use kit::client::BoxedIo;
use kit::hub::FakeHub;
use kit::pki::ALPN_H2;
use kit::wait::{WAIT, within};

use super::{END_HEADERS, END_STREAM, Frame, Frames, GOAWAY, HEADERS, request};
use crate::{ADMIN, Testbed};

/// One HTTP/2 connection of the administrator. It is closed when dropped.
pub struct FrameClient {
    frames: Frames<BoxedIo>,
    next_stream: u32,
}

// === impl FrameClient ===

impl FrameClient {
    /// A new connection.
    pub async fn connect(testbed: &Testbed) -> Self {
        let io = testbed.client().raw(ALPN_H2).await.expect("the gateway accepts connections");
        Self { frames: Frames::client(io).await.expect("taken"), next_stream: 1 }
    }

    /// A new connection of `hub`'s aggregator.
    pub async fn connect_as_hub(testbed: &Testbed, hub: &FakeHub) -> Self {
        let io = testbed
            .client_with(&hub.front_proxy_identity())
            .raw(ALPN_H2)
            .await
            .expect("the gateway accepts connections");
        Self { frames: Frames::client(io).await.expect("taken"), next_stream: 1 }
    }

    /// The stream of a request that the test makes itself.
    pub fn stream(&mut self) -> u32 {
        let stream = self.next_stream;
        self.next_stream += 2;
        stream
    }

    /// Sends the head of a request, which ends there if `end`; returns its stream.
    pub async fn request(&mut self, method: &str, target: &str, end: bool) -> u32 {
        let stream = self.stream();
        let authorization = format!("Bearer {ADMIN}");
        let head = request(method, target, &[("authorization", &authorization)]);
        let flags = if end { END_HEADERS | END_STREAM } else { END_HEADERS };
        self.frames.send(HEADERS, flags, stream, &head).await.expect("taken");
        stream
    }

    /// Sends frames made by [`encode`](super::encode), in one write.
    pub async fn send_all(&mut self, frames: &[u8]) {
        within(WAIT, "room for frames", self.frames.send_all(frames)).await.expect("taken");
    }

    /// As [`FrameClient::send_all`]; fails when the gateway has ended the connection.
    pub async fn try_send_all(&mut self, frames: &[u8]) -> std::io::Result<()> {
        within(WAIT, "room for frames", self.frames.send_all(frames)).await
    }

    /// As [`Frames::settled`].
    pub async fn try_settled(&mut self) -> std::io::Result<()> {
        within(WAIT, "the answer to a PING", self.frames.settled()).await
    }

    /// The next frame that fulfils `condition`; those before it are lost. Panics at the end of the
    /// connection.
    pub async fn until(&mut self, what: &str, condition: impl Fn(&Frame) -> bool) -> Frame {
        let reading = async {
            loop {
                let frame = self.frames.read().await.expect("an open connection");
                assert_ne!(frame.kind, GOAWAY, "the gateway says goodbye to all users: {frame:?}");
                if condition(&frame) {
                    return frame;
                }
            }
        };
        within(WAIT, what, reading).await
    }

    /// As [`Frames::settled`]. Panics if the gateway says goodbye.
    pub async fn settled(&mut self) {
        within(WAIT, "the answer to a PING", self.frames.settled()).await.expect("an open connection");
    }
}
