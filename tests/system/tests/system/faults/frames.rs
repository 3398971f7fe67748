//! A member that treats requests as no library's server does on purpose (RFC 9113).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use system_tests::frames::{
    self, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, MemberFrames, RST_STREAM, STATUS_200,
};
use system_tests::testbed::Reachable;

const REFUSED_STREAM: u32 = 7;
/// `:status: 200`, and `content-length: 10`, a literal with an indexed name (RFC 7541 appendix A).
const LENGTH_10: &[u8] = &[0x88, 0x0f, 0x0d, 2, b'1', b'0'];

/// What a connection does with each request.
#[derive(Clone, Copy, Debug)]
pub(super) enum OnRequest {
    /// 200 without a body.
    Answer,
    /// GOAWAY that names an earlier stream as the last one, then the end.
    LeaveOut,
    /// GOAWAY that names this stream as the last one, with this error code, then the end.
    GiveUp(u32),
    /// 200 with a length of ten, five bytes, and the end of the stream.
    Shorten,
    /// `RST_STREAM` with `REFUSED_STREAM`.
    Refuse,
}

/// A running member. It stops when dropped.
pub(super) struct FaultyMember {
    inner: frames::FrameMember,
    requests: Arc<AtomicUsize>,
}

// === impl FaultyMember ===

impl FaultyMember {
    /// Starts a member whose connections, numbered from 0, treat requests as `script` says.
    pub(super) async fn start(script: impl Fn(usize) -> OnRequest + Send + Sync + 'static) -> Self {
        let requests = Arc::new(AtomicUsize::new(0));
        let counted = requests.clone();
        let connection = move |number, frames| serve(frames, script(number), counted.clone());
        Self { inner: frames::FrameMember::start(connection).await, requests }
    }

    /// Requests seen on all connections.
    pub(super) fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

impl Reachable for FaultyMember {
    fn url(&self) -> String {
        self.inner.url()
    }

    fn ca_pem(&self) -> String {
        self.inner.ca_pem()
    }
}

async fn serve(mut frames: MemberFrames, on_request: OnRequest, requests: Arc<AtomicUsize>) -> std::io::Result<()> {
    loop {
        let frame = frames.read().await?;
        if frame.kind != HEADERS {
            continue;
        }
        requests.fetch_add(1, Ordering::SeqCst);
        let stream = frame.stream;
        match on_request {
            OnRequest::Answer => frames.send(HEADERS, END_STREAM | END_HEADERS, stream, STATUS_200).await?,
            OnRequest::Refuse => frames.send(RST_STREAM, 0, stream, &REFUSED_STREAM.to_be_bytes()).await?,
            OnRequest::LeaveOut => leave(&mut frames, 0, 0).await?,
            OnRequest::GiveUp(code) => leave(&mut frames, stream, code).await?,
            OnRequest::Shorten => {
                frames.send(HEADERS, END_HEADERS, stream, LENGTH_10).await?;
                frames.send(DATA, END_STREAM, stream, b"hello").await?;
            }
        }
    }
}

/// Says goodbye: streams after `last` were not and will not be acted on.
async fn leave(frames: &mut MemberFrames, last: u32, code: u32) -> std::io::Result<()> {
    let payload = [last.to_be_bytes(), code.to_be_bytes()].concat();
    frames.send(GOAWAY, 0, 0, &payload).await?;
    frames.shutdown().await
}
