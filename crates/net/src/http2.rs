//! The start of a client of HTTP/2.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

/// The limit of streams that a connection begins with, unlike any that the peer may set: until its
/// SETTINGS come, its limit is unknown.
pub const UNKNOWN_STREAM_LIMIT: usize = usize::MAX - 1;

/// Drives `connection` until the peer's SETTINGS have come; `streams` says how many streams it
/// takes. Fails if it ends before, without an error where it ended in order.
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
