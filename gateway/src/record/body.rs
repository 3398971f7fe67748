//! The body of every response while it is sent, with the record that ends with it.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use hyper::body::Body;

use super::Record;
use crate::body::ResponseBody;
use crate::upstream::Truncated;

pub struct RecordedBody {
    body: ResponseBody,
    /// None if an upgraded connection has the record.
    _record: Option<Record>,
}

// === impl RecordedBody ===

impl RecordedBody {
    pub fn new(body: ResponseBody, record: Option<Record>) -> Self {
        Self { body, _record: record }
    }
}

impl Body for RecordedBody {
    type Data = Bytes;
    type Error = Truncated;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Truncated>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
