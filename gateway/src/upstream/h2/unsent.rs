//! Large request heads that HTTP/2 has not written yet.
//!
//! h2 keeps the head of a request until it has written it, also after the request is cancelled: a
//! reset must not be the first frame of its stream (RFC 9113 §5.1). So if a member does not read,
//! nothing that a caller or the budget of bytes ends gives this memory back before the connection
//! ends. Therefore h2 gets few bytes of large heads at a time. The other requests wait here, where
//! to drop a request frees its head. Small heads do not wait: the number of requests in flight
//! bounds them. Paths, of at most 64 KiB, do not make a head large.

use std::sync::Arc;

use bytes::Bytes;
use http::HeaderMap;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::holding::{Account, hold_in, size};

/// Most bytes of large heads, by [`size`], that the h2 of one connection has. A larger head goes
/// alone.
const MOST: u32 = 1 << 20;
/// Most bytes of a head, by [`size`], that needs no room.
const SMALL: usize = 2 * 1024;

/// The room of one connection.
pub struct UnsentHeads(Arc<Semaphore>);

/// The room of one head. Without a permit for a small one.
pub struct HeadRoom(Option<OwnedSemaphorePermit>);

/// The connection takes no new streams.
pub struct Closed;

/// A value of a head, with its room and the account of its request.
struct Unsent {
    value: Bytes,
    _room: OwnedSemaphorePermit,
    _account: Option<Account>,
}

// === impl UnsentHeads ===

impl UnsentHeads {
    pub fn new() -> Self {
        Self(Arc::new(Semaphore::new(MOST as usize)))
    }

    /// Waits until there is room for this head: first come, first served.
    pub async fn room(&self, headers: &HeaderMap) -> Result<HeadRoom, Closed> {
        let bytes = size(headers);
        if bytes <= SMALL {
            return Ok(HeadRoom(None));
        }
        let bytes = u32::try_from(bytes).unwrap_or(MOST).min(MOST);
        let permit = Arc::clone(&self.0).acquire_many_owned(bytes).await;
        permit.map(|permit| HeadRoom(Some(permit))).map_err(|_| Closed)
    }

    /// Nobody waits any more.
    pub fn close(&self) {
        self.0.close();
    }
}

// === impl HeadRoom ===

impl HeadRoom {
    /// Keeps the room, and the request's account, until h2 drops this head.
    pub fn keep_in(self, headers: &mut HeaderMap, account: Option<&Account>) {
        if let (Some(room), Some(value)) = (self.0, headers.values_mut().next()) {
            let account = account.cloned();
            hold_in(value, |value| Bytes::from_owner(Unsent { value, _room: room, _account: account }));
        }
    }
}

impl AsRef<[u8]> for Unsent {
    fn as_ref(&self) -> &[u8] {
        &self.value
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Waker};

    use http::HeaderValue;

    use super::*;

    fn head(bytes: usize) -> HeaderMap {
        let value = HeaderValue::from_bytes(&vec![b'x'; bytes]).expect("text");
        HeaderMap::from_iter([(http::header::COOKIE, value)])
    }

    fn now<T>(future: impl Future<Output = T>) -> Option<T> {
        match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
            std::task::Poll::Ready(output) => Some(output),
            std::task::Poll::Pending => None,
        }
    }

    #[test]
    fn a_large_head_waits_until_h2_has_written_another_and_a_small_one_does_not() {
        let heads = UnsentHeads::new();
        let mut first = head(1 << 20);
        let Some(Ok(room)) = now(heads.room(&first)) else { panic!("no room for a head that is alone") };
        room.keep_in(&mut first, None);
        assert_eq!(first[http::header::COOKIE].len(), 1 << 20, "the same text");
        assert!(now(heads.room(&head(4 << 10))).is_none());
        assert!(matches!(now(heads.room(&head(100))), Some(Ok(HeadRoom(None)))));
        drop(first);
        assert!(matches!(now(heads.room(&head(4 << 10))), Some(Ok(_))));
    }

    #[test]
    fn those_who_wait_learn_that_the_connection_takes_no_more() {
        let heads = UnsentHeads::new();
        let room = now(heads.room(&head(1 << 20)));
        let second = head(4 << 10);
        let mut waits = pin!(heads.room(&second));
        let mut poll = || waits.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(poll().is_pending());
        heads.close();
        assert!(matches!(poll(), std::task::Poll::Ready(Err(Closed))));
        drop(room);
    }
}
