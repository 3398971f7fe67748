//! The start of an HTTP/2 client connection.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

/// The initial limit of streams, unlike any that the peer may set: its limit is unknown until its
/// SETTINGS arrive.
pub const UNKNOWN_STREAM_LIMIT: usize = usize::MAX - 1;

/// Drives `connection` until the peer's SETTINGS have arrived; `streams` returns the peer's stream
/// limit. Fails if the connection ends before, without an error if it ended cleanly.
pub async fn settled<C, E>(connection: &mut C, mut streams: impl FnMut(&mut C) -> usize) -> Result<(), Option<E>>
where
    C: Future<Output = Result<(), E>> + Unpin,
{
    poll_fn(|cx| match Pin::new(&mut *connection).poll(cx) {
        Poll::Ready(ended) => Poll::Ready(Err(ended.err())),
        Poll::Pending if streams(connection) == UNKNOWN_STREAM_LIMIT => Poll::Pending,
        Poll::Pending => Poll::Ready(Ok(())),
    })
    .await
}
