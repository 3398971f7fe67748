//! The upstream of watches, a process of its own so that its usage does not count as a proxy's.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::Result;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{Request, Response};
use hyper::body::Incoming;

use super::lines::Lines;
use crate::stand_in::{Options, serve};

/// A watch on which nothing happens after its first line.
pub const IDLE: &str = "/api/v1/namespaces/default/configmaps?watch=true";
/// A watch with an event a second.
pub const EVENTS: &str = "/api/v1/namespaces/default/events?watch=true";
/// Answers with the credential it was asked with.
pub const ECHO: &str = "/api/v1/namespaces/default/configmaps/credential";

/// Serves until the process is ended.
pub fn run(options: &Options) -> Result<()> {
    let streams = Arc::new(AtomicU32::new(0));
    serve(options, move |request| {
        let answer = answer(&request, streams.fetch_add(1, Ordering::Relaxed));
        async { Ok(answer) }
    })
}

/// `number` distinguishes streams, so that their events are spread over the second.
fn answer(request: &Request<Incoming>, number: u32) -> Response<Lines> {
    let asked = request.uri().path_and_query().map_or("", |asked| asked.as_str());
    let body = if asked.ends_with(EVENTS) {
        Lines::with_events(number)
    } else if asked.ends_with(IDLE) {
        Lines::idle()
    } else {
        let credential = request.headers().get(AUTHORIZATION).map(|value| value.as_bytes().to_vec());
        Lines::only(credential.unwrap_or_default().into())
    };
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
    response
}
