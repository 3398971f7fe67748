//! Any Accept header, in any number of lines: an answer in bounded time, and JSON whenever plain
//! JSON is named.

use api::accept::{Shape, discovery, representation};
use http::header::{ACCEPT, HeaderMap, HeaderValue};

pub const WORDS: &[&str] = &[
    "application/json",
    "application/vnd.kubernetes.protobuf",
    ";as=Table",
    ";as=PartialObjectMetadataList",
    ";v=v1",
    ";g=meta.k8s.io",
    ";q=0",
    ";q=0.5",
    "*/*",
    ",",
    ";",
    "\n",
    "\"",
    "=",
];

pub fn check(input: &[u8]) {
    let mut headers = HeaderMap::new();
    // Before the others, since only so many clauses are read.
    headers.append(ACCEPT, HeaderValue::from_static("application/json;q=0.001"));
    for line in input.split(|byte| *byte == b'\n').take(64) {
        if let Ok(line) = HeaderValue::from_bytes(line) {
            headers.append(ACCEPT, line);
        }
    }
    let _ = discovery(&headers);
    for shape in [Shape::Object, Shape::List] {
        assert!(representation(&headers, shape).is_ok());
    }
}
