//! Large request heads that HTTP/2 has not written yet.
//!
//! h2 keeps the head of a request until it has written it, also after the request is cancelled: a
//! reset must not be the first frame of its stream (RFC 9113 §5.1). So if a member does not read,
//! nothing that a caller or the budget of bytes ends gives this memory back before the connection
//! ends. Therefore h2 gets few bytes of large heads at a time. The other requests wait here, where
//! dropping a request frees its head. Small heads do not wait: the number of requests in flight
//! bounds them.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Request};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::holding::{Account, hold_in, size, table};

/// Most bytes of large heads, by [`size`] and with their paths and methods, that the h2 of one
/// connection has. A larger head goes alone.
const MOST: u32 = 1 << 20;
/// Most bytes of a head, by [`of_request`](crate::headers::size::of_request), that needs no room: a
/// usual one, with a ServiceAccount's token of a kilobyte.
const SMALL: usize = 4 * 1024;

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

    /// Waits until there is room for this head, first come, first served. It has this many `bytes`,
    /// counted as for [`SMALL`].
    pub async fn room<B>(&self, request: &Request<B>, bytes: usize) -> Result<HeadRoom, Closed> {
        // Few bytes may be many names, whose table is larger.
        if bytes <= SMALL && table(request.headers()) == 0 {
            return Ok(HeadRoom(None));
        }
        // h2 copies the path, which may have 64 KiB, and a method that it does not know, which may
        // have as much as a header.
        let path = request.uri().path_and_query().map_or(0, |path| path.as_str().len());
        let bytes = size(request.headers()) + path + request.method().as_str().len();
        let bytes = u32::try_from(bytes).unwrap_or(MOST).min(MOST);
        let permit = Arc::clone(&self.0).acquire_many_owned(bytes).await;
        permit.map(|permit| HeadRoom(Some(permit))).map_err(|_| Closed)
    }

    /// Ends all waits for room: the connection takes no new requests.
    pub fn close(&self) {
        self.0.close();
    }
}

// === impl HeadRoom ===

impl HeadRoom {
    /// Keeps the room, and the request's account, until h2 drops this head. One that is forwarded
    /// has a header in any case: `Via`.
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

    use http::header::COOKIE;
    use http::{HeaderName, HeaderValue};

    use super::*;
    use crate::headers::size::of_request;

    fn head(bytes: usize) -> Request<()> {
        let mut request = Request::new(());
        let value = HeaderValue::from_bytes(&vec![b'x'; bytes]).expect("text");
        request.headers_mut().insert(COOKIE, value);
        request
    }

    async fn room(heads: &UnsentHeads, request: &Request<()>) -> Result<HeadRoom, Closed> {
        // What is too large to be sent is asked about, too.
        heads.room(request, of_request(request).unwrap_or(usize::MAX)).await
    }

    fn now<T>(future: impl Future<Output = T>) -> Option<T> {
        match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
            std::task::Poll::Ready(output) => Some(output),
            std::task::Poll::Pending => None,
        }
    }

    /// All of the room, in a head that h2 has not written.
    fn full(heads: &UnsentHeads) -> HeaderMap {
        let mut first = head(1 << 20);
        let Some(Ok(room)) = now(room(heads, &first)) else { panic!("no room for a head that is alone") };
        room.keep_in(first.headers_mut(), None);
        std::mem::take(first.headers_mut())
    }

    #[test]
    fn a_large_head_waits_until_h2_has_written_another_and_a_small_one_does_not() {
        let heads = UnsentHeads::new();
        let first = full(&heads);
        assert_eq!(first[COOKIE].len(), 1 << 20, "the same text");
        assert!(now(room(&heads, &head(4 << 10))).is_none());
        assert!(matches!(now(room(&heads, &head(100))), Some(Ok(HeadRoom(None)))));
        assert!(matches!(now(room(&heads, &head(3 << 10))), Some(Ok(HeadRoom(None)))), "as with tokens");
        drop(first);
        assert!(matches!(now(room(&heads, &head(4 << 10))), Some(Ok(HeadRoom(Some(_))))));
    }

    /// Its headers are few: what is long is what it asks for, or how.
    #[test]
    fn a_head_with_a_long_path_or_method_is_a_large_one() {
        let heads = UnsentHeads::new();
        let first = full(&heads);
        let (mut path, mut method) = (head(100), head(100));
        *path.uri_mut() = format!("/api/v1/pods?labelSelector={}", "x".repeat(60_000)).parse().expect("a URI");
        *method.method_mut() = "X".repeat(60_000).parse().expect("a method");
        for large in [path, method] {
            assert!(now(room(&heads, &large)).is_none());
        }
        drop(first);
        assert!(matches!(now(room(&heads, &head(100))), Some(Ok(HeadRoom(None)))));
    }

    /// Its bytes are few, but each name has an entry in a table.
    #[test]
    fn a_head_of_many_short_names_is_a_large_one() {
        let heads = UnsentHeads::new();
        let first = full(&heads);
        let mut many = head(1);
        for number in 0..60 {
            let name = HeaderName::try_from(format!("x-{number}")).expect("a name");
            many.headers_mut().insert(name, HeaderValue::from_static("a"));
        }
        assert!(of_request(&many).is_ok_and(|bytes| bytes <= SMALL));
        assert!(now(room(&heads, &many)).is_none());
        drop(first);
        assert!(matches!(now(room(&heads, &many)), Some(Ok(HeadRoom(Some(_))))));
    }

    #[test]
    fn those_who_wait_learn_that_the_connection_takes_no_more() {
        let heads = UnsentHeads::new();
        let first = full(&heads);
        let second = head(4 << 10);
        let mut waits = pin!(room(&heads, &second));
        let mut poll = || waits.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(poll().is_pending());
        heads.close();
        assert!(matches!(poll(), std::task::Poll::Ready(Err(Closed))));
        drop(first);
    }
}
