//! A permit of a limited number, counted while it is held.
//!
//! tokio's semaphores make callers wait, but a permit is refused at once. Also, the owner of a
//! count decides where it is stored.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use http_body::{Body, Frame, SizeHint};

/// Counted in `of`, and given back when dropped.
pub struct Permit<C> {
    of: Arc<C>,
    count: fn(&C) -> &AtomicUsize,
}

/// A body, unchanged, that carries a permit, a record or the like until it is dropped.
#[derive(Debug)]
pub struct Carried<B, T> {
    body: B,
    _carries: T,
}

/// Counts one more unless that exceeds `most`. The caller gives it back in its own way.
pub fn raise(count: &AtomicUsize, most: usize) -> bool {
    let more = |current| (current < most).then_some(current + 1);
    count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
}

// === impl Permit ===

impl<C> Permit<C> {
    /// One more, if there are fewer than `most`.
    pub fn within(of: Arc<C>, count: fn(&C) -> &AtomicUsize, most: usize) -> Option<Self> {
        raise(count(&of), most).then(|| Self { of, count })
    }

    /// One more, however many there are, because it exists already.
    pub fn beyond(of: Arc<C>, count: fn(&C) -> &AtomicUsize) -> Self {
        count(&of).fetch_add(1, Ordering::Relaxed);
        Self { of, count }
    }
}

impl Permit<AtomicUsize> {
    /// One more of `count`, if there are fewer than `most`.
    pub fn of(count: &Arc<AtomicUsize>, most: usize) -> Option<Self> {
        Self::within(Arc::clone(count), |count| count, most)
    }
}

impl<C> Drop for Permit<C> {
    fn drop(&mut self) {
        (self.count)(&self.of).fetch_sub(1, Ordering::Relaxed);
    }
}

impl<C> fmt::Debug for Permit<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Permit(..)")
    }
}

// === impl Carried ===

impl<B, T> Carried<B, T> {
    pub fn new(body: B, carries: T) -> Self {
        Self { body, _carries: carries }
    }
}

impl<B: Body + Unpin, T: Unpin> Body for Carried<B, T> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use bytes::Bytes;

    use super::*;

    struct Once(Option<Bytes>);

    impl Body for Once {
        type Data = Bytes;
        type Error = std::convert::Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
            Poll::Ready(self.0.take().map(|bytes| Ok(Frame::data(bytes))))
        }

        fn is_end_stream(&self) -> bool {
            self.0.is_none()
        }

        fn size_hint(&self) -> SizeHint {
            SizeHint::with_exact(self.0.as_ref().map_or(0, Bytes::len) as u64)
        }
    }

    #[test]
    fn what_is_dropped_is_there_for_the_next_and_what_is_refused_counts_nothing() {
        let count = Arc::default();
        let [first, second] = [Permit::of(&count, 2), Permit::of(&count, 2)].map(Option::unwrap);
        assert!(Permit::of(&count, 2).is_none());
        drop(first);
        let third = Permit::of(&count, 2).unwrap();
        let fourth = Permit::beyond(Arc::clone(&count), |count: &AtomicUsize| count);
        drop((second, third));
        assert_eq!(count.load(Ordering::Relaxed), 1);
        drop(fourth);
        assert_eq!(count.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn what_a_body_carries_stays_until_the_body_is_dropped() {
        let count = Arc::<AtomicUsize>::default();
        let mut body = Carried::new(Once(Some(Bytes::from("ab"))), Permit::of(&count, 1));
        assert_eq!((body.is_end_stream(), body.size_hint().exact()), (false, Some(2)));
        let mut cx = Context::from_waker(Waker::noop());
        let frame = Pin::new(&mut body).poll_frame(&mut cx);
        assert!(matches!(frame, Poll::Ready(Some(Ok(frame))) if frame.data_ref() == Some(&Bytes::from("ab"))));
        assert!(body.is_end_stream() && count.load(Ordering::Relaxed) == 1);
        drop(body);
        assert_eq!(count.load(Ordering::Relaxed), 0);
    }
}
