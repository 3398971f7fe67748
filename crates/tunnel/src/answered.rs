//! Answers to requests on a link.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

use h2::RecvStream;
use h2::client::ResponseFuture;
use http::Response;

/// Most interim answers (1xx) before the answer. Neither agents nor tunnel-servers send any, and h2
/// would discard them uncounted while a caller waits.
const MOST_INTERIM: usize = 100;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoAnswer {
    #[error(transparent)]
    Failed(#[from] h2::Error),
    #[error("more than {MOST_INTERIM} interim answers to one request")]
    Interim,
}

/// Waits for the answer.
pub(crate) async fn answered(mut answer: ResponseFuture) -> Result<Response<RecvStream>, NoAnswer> {
    let mut interim = 0;
    poll_fn(|cx| poll(&mut answer, &mut interim, cx)).await
}

fn poll(
    answer: &mut ResponseFuture,
    interim: &mut usize,
    cx: &mut Context<'_>,
) -> Poll<Result<Response<RecvStream>, NoAnswer>> {
    loop {
        match answer.poll_informational(cx) {
            Poll::Ready(Some(Ok(_))) => *interim += 1,
            // The answer returns the error again.
            Poll::Ready(None | Some(Err(_))) => return Pin::new(answer).poll(cx).map_err(NoAnswer::from),
            Poll::Pending => return Poll::Pending,
        }
        if *interim > MOST_INTERIM {
            return Poll::Ready(Err(NoAnswer::Interim));
        }
    }
}
