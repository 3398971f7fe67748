//! Discovery and OpenAPI documents. They depend on nothing that could fail: a hub takes the whole
//! group for unavailable when they do.

use std::time::SystemTime;

use api::route::{Discovery, OpenApi};
use api::{discovery as written, openapi};
use http::{HeaderMap, Request, Response};

use crate::body::ResponseBody;
use crate::error::Error;
use crate::request_body::RequestBody;

pub fn discovery(document: Discovery, headers: &HeaderMap) -> Response<ResponseBody> {
    written::respond(document, headers).map(ResponseBody::full)
}

/// Refuses those who accept no JSON.
pub fn open_api(document: OpenApi, request: &Request<RequestBody>) -> Result<Response<ResponseBody>, Error> {
    let answer = openapi::respond(document, request.headers(), request.uri().query(), SystemTime::now());
    answer.map(|response| response.map(ResponseBody::full)).map_err(|_| Error::NotAcceptable)
}
