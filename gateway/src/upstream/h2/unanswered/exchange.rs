//! A request that waits for its response.

use std::task::{Context, Poll};

use h2::RecvStream;
use h2::client::ResponseFuture;
use http::{Response, StatusCode};
use tokio::time::timeout;

use super::{ANSWERED_WITHIN, MOST_INTERIM, ended};
use crate::holding::Account;
use crate::limits::LoadPermits;
use crate::request_body::Interrupted;
use crate::upstream::h2::upload::UploadEnd;
use crate::upstream::h2::{Lease, Upload};

pub(super) struct Exchange {
    pub(super) response: ResponseFuture,
    pub(super) upload: Option<Upload>,
    pub(super) lease: Lease,
    /// Interim responses so far. `None` until the first poll, when there cannot be any.
    pub(super) interim: Option<usize>,
}

/// Why there is no response.
pub enum Failure {
    Upstream(h2::Error),
    /// The connection gave way.
    Shed,
    /// The member sent something other than a response.
    Interim(&'static str),
    Upload(Interrupted),
}

// === impl Exchange ===

impl Exchange {
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Response<RecvStream>, Failure>> {
        // The head is polled first: an early response must not wait for a slow client.
        if self.pass_interim(cx)?.is_ready()
            && let Poll::Ready(answer) = std::pin::Pin::new(&mut self.response).poll(cx)
        {
            let shed = |error| if self.lease.connection().is_shed() { Failure::Shed } else { Failure::Upstream(error) };
            return Poll::Ready(answer.map_err(shed));
        }
        match self.upload.as_mut().map(|upload| upload.poll(cx)) {
            Some(Poll::Ready(UploadEnd::Interrupted(why))) => Poll::Ready(Err(Failure::Upload(why))),
            Some(Poll::Ready(UploadEnd::Sent | UploadEnd::Stopped)) => {
                self.upload = None;
                Poll::Pending
            }
            Some(Poll::Pending) | None => Poll::Pending,
        }
    }

    /// Consumes interim responses, which h2 would discard uncounted. Pending if no response follows
    /// them yet: h2 wakes the task for it, and need not be polled, and locked, again.
    fn pass_interim(&mut self, cx: &mut Context<'_>) -> Result<Poll<()>, Failure> {
        let Some(interim) = &mut self.interim else {
            self.interim = Some(0);
            return Ok(Poll::Ready(()));
        };
        loop {
            match self.response.poll_informational(cx) {
                Poll::Ready(Some(Ok(head))) if head.status() == StatusCode::SWITCHING_PROTOCOLS => {
                    return Err(Failure::Interim(
                        "it switched protocols, which HTTP/2 does not support (RFC 9113 §8.6)",
                    ));
                }
                Poll::Ready(Some(Ok(_))) => *interim += 1,
                // The response repeats the error.
                Poll::Ready(None | Some(Err(_))) => return Ok(Poll::Ready(())),
                Poll::Pending => return Ok(Poll::Pending),
            }
            if *interim > MOST_INTERIM {
                return Err(Failure::Interim("it sent more than 1,000 interim responses"));
            }
        }
    }

    /// The stream's number. Takes a lock.
    pub(super) fn stream(&self) -> u32 {
        self.response.stream_id().as_u32()
    }

    /// Reports the response: it proves that the member's queue has no earlier streams.
    pub(super) fn answered(&self) {
        let resets = self.lease.connection().resets();
        if resets.any() {
            resets.answered(self.stream());
        }
    }

    /// Keeps the stream, its permits and its account for as long as the member may continue the
    /// request.
    pub(super) async fn linger(self, permits: LoadPermits, account: Option<Account>) {
        let stream = self.stream();
        let Self { mut response, upload, lease, .. } = self;
        let resets = lease.connection().resets();
        let answer = async {
            // The rest of the request body will never come, so waiting for a response would only
            // occupy the member.
            if upload.is_some() {
                return None;
            }
            tokio::select! {
                answer = timeout(ANSWERED_WITHIN, &mut response) => Some(answer),
                // A large head that h2 has not written counts until then, see `unsent`.
                () = ended(account.as_ref()) => None,
            }
        };
        let passed = if let Some(answer) = answer.await {
            if matches!(answer, Ok(Ok(_))) {
                resets.answered(stream);
            }
            answer.is_ok() || resets.admit(stream, lease.connection().max_streams())
        } else {
            drop((response, upload, account));
            timeout(ANSWERED_WITHIN, resets.passed(stream)).await.is_ok()
        };
        if !passed {
            lease.connection().close();
        }
        drop((lease, permits));
    }
}
