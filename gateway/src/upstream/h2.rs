//! HTTP/2 to members, with the `h2` crate itself: hyper's client costs a fifth more per request,
//! and hides the frame budget.

mod body;
mod connection;
mod resets;
mod unanswered;
mod unsent;
mod upload;

use std::future::poll_fn;

use http::uri::PathAndQuery;
use http::{Request, Response, Uri, Version};
use hyper::body::Body;

pub use self::body::H2Body;
pub use self::connection::{Connection, Lease};
pub use self::unanswered::Lingers;
use self::unanswered::{Failure, Unanswered};
pub use self::upload::Upload;
use super::connect::Target;
use super::{Lost, SendError};
use crate::request_body::BoxedRequest;
use crate::unread::Source;

/// The outcome of sending a request.
pub enum Sent {
    /// Boxed: every waiting request's future has space for one.
    Response(Response<Box<H2Body>>),
    /// Nothing was processed, because the connection was closing (RFC 9113 §6.8). Returns the
    /// complete request and the reason.
    NotSent(BoxedRequest, Lost),
}

/// Sends `request`, whose head has this many bytes by
/// [`of_request`](crate::headers::size::of_request), on a leased stream. If this future is dropped
/// before the response and the member may continue the request, the request counts as `lingers`.
pub async fn send(
    mut lease: Lease,
    target: &Target,
    (mut request, bytes): (BoxedRequest, usize),
    lingers: Lingers<'_>,
) -> Result<Sent, SendError> {
    let Ok(room) = lease.connection().unsent().room(&request, bytes).await else {
        return Ok(Sent::NotSent(request, "it takes no new requests".into()));
    };
    if let Err(error) = lease.ready().await {
        lease.connection().close();
        return Ok(Sent::NotSent(request, error.into()));
    }
    let account = request.body().account().cloned();
    let ends = request.body().is_end_stream();
    let mut head = Request::new(());
    *head.method_mut() = request.method().clone();
    *head.uri_mut() = absolute(target, request.uri().path_and_query());
    *head.version_mut() = Version::HTTP_2;
    // Kept for another try if the member skips the request. A request with a body is not sent
    // twice, because part of the body may have been read.
    *head.headers_mut() = if ends { request.headers().clone() } else { std::mem::take(request.headers_mut()) };
    room.keep_in(head.headers_mut(), account.as_ref());
    let (response, stream) =
        lease.sender().send_request(head, ends).map_err(|error| SendError::Broken(error.into()))?;
    let (upload, kept) = if ends {
        (None, Some(request))
    } else {
        (Some(Upload::new(request.into_body(), stream, lease.connection().account())), None)
    };
    let mut unanswered = Unanswered::new(response, upload, lease, lingers, account.clone());
    let answer = poll_fn(|cx| unanswered.poll(cx)).await;
    match answer {
        Ok((answer, upload, lease)) => {
            lease.connection().saw_traffic();
            let (mut head, stream) = answer.into_parts();
            if let Some(unfit) = lease.connection().unfit(&mut head.headers) {
                return Err(SendError::UnfitAnswer(unfit));
            }
            let source = Source::new(stream, lease.connection().collector(), account.as_ref());
            Ok(Sent::Response(Response::from_parts(head, Box::new(H2Body::new(source, upload, lease)))))
        }
        Err(Failure::Interim(reason)) => Err(SendError::Broken(reason.into())),
        Err(Failure::Upload(why)) => Err(why.into()),
        Err(Failure::Shed) => Err(SendError::Shed),
        // The member itself reports that it did nothing with the request (RFC 9113 §8.7).
        Err(Failure::Upstream(error)) if error.is_remote() && error.reason() == Some(::h2::Reason::REFUSED_STREAM) => {
            Err(SendError::Refused)
        }
        // A GOAWAY with an earlier last stream: this one was not processed, either (RFC 9113 §6.8).
        // That is common, because Go's servers skip requests in flight when they end a connection.
        // h2 reports it only for such streams.
        Err(Failure::Upstream(error)) if error.is_remote() && error.is_go_away() => match kept {
            Some(request) => Ok(Sent::NotSent(request, error.into())),
            None => Err(SendError::Refused),
        },
        Err(Failure::Upstream(error)) => Err(SendError::Broken(error.into())),
    }
}

fn absolute(target: &Target, path: Option<&PathAndQuery>) -> Uri {
    let mut parts = http::uri::Parts::default();
    parts.scheme = Some(target.scheme.clone());
    parts.authority = Some(target.authority.clone());
    parts.path_and_query = Some(path.cloned().unwrap_or_else(|| PathAndQuery::from_static("/")));
    Uri::from_parts(parts).expect("scheme, authority and path are all present")
}
