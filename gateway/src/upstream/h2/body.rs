//! A response body over HTTP/2, with the rest of its request.

use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::Reason;
use http::HeaderMap;
use http_body::Frame;

use super::{Lease, Upload};
use crate::unread::Source;
use crate::upstream::Truncated;
use crate::upstream::shed::GaveWay;

pub struct H2Body {
    stream: Source,
    /// Dropped with the response: after its end the member does not need the rest of the request
    /// (RFC 9113 §8.1). Boxed, because few requests still upload when their response begins.
    upload: Option<Box<Upload>>,
    lease: Lease,
    data_ended: bool,
}

// === impl H2Body ===

impl H2Body {
    pub fn new(stream: Source, upload: Option<Upload>, lease: Lease) -> Self {
        Self { stream, upload: upload.map(Box::new), lease, data_ended: false }
    }

    pub fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Truncated>>> {
        if self.upload.as_mut().is_some_and(|upload| upload.poll(cx).is_ready()) {
            self.upload = None;
        }
        if !self.data_ended {
            match ready!(self.stream.poll_data(cx)) {
                Some(Ok(data)) => {
                    self.lease.connection().saw_traffic();
                    return Poll::Ready(Some(Ok(Frame::data(data))));
                }
                Some(Err(error)) => return Poll::Ready(self.cut_off(error)),
                None => self.data_ended = true,
            }
        }
        match ready!(self.stream.poll_trailers(cx)) {
            Ok(Some(trailers)) => Poll::Ready(Some(self.whole(trailers))),
            Ok(None) => Poll::Ready(None),
            Err(error) => Poll::Ready(self.cut_off(error)),
        }
    }

    pub fn is_end_stream(&self) -> bool {
        self.stream.is_end_stream()
    }

    fn whole(&self, mut trailers: HeaderMap) -> Result<Frame<Bytes>, Truncated> {
        if let Some(unfit) = self.lease.connection().unfit(&mut trailers) {
            return Err(Truncated(format!("its trailers have {unfit}").into()));
        }
        Ok(Frame::trailers(trailers))
    }

    fn cut_off(&self, error: h2::Error) -> Option<Result<Frame<Bytes>, Truncated>> {
        // A server that responds early resets with NO_ERROR to stop the upload. Its response was
        // complete (RFC 9113 §8.1).
        if error.is_reset() && error.reason() == Some(Reason::NO_ERROR) && self.stream.is_end_stream() {
            return None;
        }
        let shed = self.lease.connection().is_shed();
        Some(Err(Truncated(if shed { GaveWay.into() } else { error.into() })))
    }
}
