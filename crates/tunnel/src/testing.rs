//! A link and its server over a pipe in memory, for tests.

use kit::frames::{Frames, HEADERS};
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, duplex};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::{Destination, Hop, Incoming, Link, LinkError, Serving, Settings, Stream, serve};

/// A link, and the requests that reach its other end.
pub(crate) struct Pair {
    pub link: Link,
    pub serving: Serving,
    pub incoming: mpsc::UnboundedReceiver<Incoming>,
    pub served: JoinHandle<Result<(), LinkError>>,
}

pub(crate) fn to(authority: &str) -> Destination {
    Destination::parse(authority).unwrap()
}

/// A server of bare frames, and the first stream that it is asked for.
pub(crate) async fn asked(io: DuplexStream) -> (Frames<DuplexStream>, u32) {
    let mut frames = Frames::server(io, 100).await.unwrap();
    loop {
        let frame = frames.read().await.unwrap();
        if frame.kind == HEADERS {
            return (frames, frame.stream);
        }
    }
}

// === impl Pair ===

impl Pair {
    pub async fn new() -> Self {
        Self::with(&Settings::default()).await
    }

    pub async fn with(settings: &Settings) -> Self {
        let (near, far) = duplex(256 * 1024);
        Self::over(settings, near, far).await
    }

    /// A link like that of a gateway to a tunnel-server.
    pub async fn to_server() -> Self {
        let (near, far) = duplex(256 * 1024);
        Self::to(Hop::Server, &Settings::default(), near, far).await
    }

    pub async fn over<N, F>(settings: &Settings, near: N, far: F) -> Self
    where
        N: AsyncRead + AsyncWrite + Unpin + Send + 'static,
        F: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        Self::to(Hop::Agent, settings, near, far).await
    }

    async fn to<N, F>(peer: Hop, settings: &Settings, near: N, far: F) -> Self
    where
        N: AsyncRead + AsyncWrite + Unpin + Send + 'static,
        F: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let serving = Serving::default();
        let (sender, incoming) = mpsc::unbounded_channel();
        let (control, numbers) = (serving.clone(), settings.clone());
        let served = tokio::spawn(async move {
            let handler = move |incoming| {
                let _ = sender.send(incoming);
                async {}
            };
            serve(far, &numbers, control, handler).await
        });
        let link = Link::start(near, settings, peer).await.unwrap();
        Self { link, serving, incoming, served }
    }

    /// Both ends of a new stream.
    pub async fn open(&mut self) -> (Stream, Stream) {
        let accept = async { self.incoming.recv().await.unwrap().accept().unwrap() };
        let destination = to("db:5432");
        let (near, far) = tokio::join!(self.link.open(&destination, None), accept);
        (near.unwrap(), far)
    }
}
