//! What nginx cannot do by itself: reading uploads to their end without writing them to a disk, and
//! holding watches open.
//!
//! A process of its own behind the upstream's nginx, on a Unix socket: this program, started again
//! with a hidden command.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::task::{Context, Poll};

use anyhow::{Context as _, Result};
use http::{Method, Request, Response};
use http_body_util::{BodyExt as _, Either, Full};
use hub_tests::process::Process;
use hyper::body::{Body, Bytes, Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::UnixListener;

use crate::stand_in;

/// The hidden command: `bench sink <SOCKET>`.
pub const COMMAND: &str = "sink";

const EVENT: &[u8] = b"{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\
    \"metadata\":{\"resourceVersion\":\"1\"}}}\n";

/// A watch: one event.
struct Silence {
    event: Option<Bytes>,
}

/// Starts it in `directory`.
pub fn start(directory: &Path) -> Result<Process> {
    let program = stand_in::this_program();
    Process::start(COMMAND, &program, [COMMAND.as_ref(), socket(directory).as_os_str()], directory)
}

/// The socket of a process started in `directory`.
pub fn socket(directory: &Path) -> PathBuf {
    directory.join("sink.sock")
}

/// Serves until it is killed.
pub fn serve(socket: &Path) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = UnixListener::bind(socket).with_context(|| format!("cannot listen on {}", socket.display()))?;
        loop {
            let (stream, _) = listener.accept().await?;
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(answer)));
        }
    })
}

async fn answer(request: Request<Incoming>) -> hyper::Result<Response<Either<Full<Bytes>, Silence>>> {
    if request.method() == Method::GET {
        return Ok(Response::new(Either::Right(Silence { event: Some(Bytes::from_static(EVENT)) })));
    }
    let mut body = request.into_body();
    let mut length = 0;
    while let Some(frame) = body.frame().await {
        length += frame?.data_ref().map_or(0, Bytes::len);
    }
    Ok(Response::new(Either::Left(Full::from(length.to_string()))))
}

// === impl Silence ===

impl Body for Silence {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.event.take() {
            Some(event) => Poll::Ready(Some(Ok(Frame::data(event)))),
            None => Poll::Pending, // until it is dropped with the connection
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::os::unix::net::UnixStream;
    use std::thread;
    use std::time::Duration;

    use hub_tests::wait;

    use super::*;

    #[test]
    fn an_upload_is_read_to_its_end() {
        let directory = tempfile::tempdir().unwrap();
        let path = socket(directory.path());
        let served = path.clone();
        thread::spawn(move || serve(&served)); // ends with the process
        let mut stream =
            wait::until("the socket", Duration::from_secs(20), || Ok(UnixStream::connect(&path)?)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
            .write_all(b"PUT / HTTP/1.1\r\nHost: sink\r\nConnection: close\r\nContent-Length: 70000\r\n\r\n")
            .unwrap();
        stream.write_all(&vec![b'x'; 70_000]).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("\r\n\r\n70000"), "{answer}");
    }
}
