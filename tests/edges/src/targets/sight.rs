//! Any answer of a member to a list, and any to a watch: an error, or the sight of each object, cut
//! to the limit of a name.
//!
//! Input: the answer.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fleet::{Change, Sender, Sight};
use http::{Request, Response, StatusCode};
use kube::api::ApiResource;
use kube::client::Body;
use kube::core::GroupVersionKind;
use serde_json::Value;
use tokio::runtime::Builder;
use tower::service_fn;

pub const WORDS: &[&str] = &[
    "{\"items\":[",
    "],\"metadata\":{",
    "\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"7\"}",
    "\"continue\":\"x\"",
    "\"continue\":\"\"",
    "\"items\":null",
    "\"resourceVersion\":\"\"",
    "\"resourceVersion\":7",
    "{\"type\":\"ADDED\",\"object\":{",
    "\"MODIFIED\"",
    "\"DELETED\"",
    "\"BOOKMARK\"",
    "{\"type\":\"ERROR\",\"object\":{\"code\":410}}",
    "\"code\":-1",
    "\"code\":65536",
    "}}\n",
    "\n",
    "{},",
    "null",
    "\\u00e9",
    "\\ud83d\\ude00",
    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    "éééééééééééééééééééééééééééééééé",
    "[[[[[[[[[[[[[[[[",
    "]]]]]]]]]]]]]]]]",
];

/// Longest name, and longest version.
const LONGEST: usize = 253;

pub fn check(input: &[u8]) {
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime");
    let mut listed = Vec::new();
    let take = |name: &str, version: &str| listed.push((name.to_owned(), version.to_owned()));
    let list = runtime.block_on(sight(input).list(take));
    are_cut(&listed);
    if let (Ok(version), Ok(value)) = (list, serde_json::from_slice::<Value>(input)) {
        assert!(version.len() <= LONGEST);
        says_the_same(&value, &listed);
    }
    let mut seen = Vec::new();
    let tell = |_: Change, name: &str, version: &str| seen.push((name.to_owned(), version.to_owned()));
    let broken = runtime.block_on(sight(input).watch("1".to_owned(), tell));
    assert!(!broken.to_string().is_empty());
    are_cut(&seen);
    assert!(seen.iter().all(|(_, version)| !version.is_empty()), "a change without a version");
}

/// The sight of a member that answers so first, and is then gone.
fn sight(input: &[u8]) -> Sight {
    let (input, is_gone) = (input.to_vec(), Arc::new(AtomicBool::new(false)));
    let member = service_fn(move |_: Request<Body>| {
        let is_gone = is_gone.swap(true, Ordering::Relaxed);
        let mut response = Response::new(Body::from(if is_gone { Vec::new() } else { input.clone() }));
        *response.status_mut() = if is_gone { StatusCode::GONE } else { StatusCode::OK };
        std::future::ready(Ok::<_, Infallible>(response))
    });
    let resource = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk("", "v1", ""), "configmaps");
    Sight::new(Sender::new(member), &resource, "n")
}

fn are_cut(all: &[(String, String)]) {
    assert!(all.iter().all(|(name, version)| name.len() <= LONGEST && version.len() <= LONGEST));
}

/// As a reader of the whole text finds it: of fields that are there twice, the last.
fn says_the_same(value: &Value, listed: &[(String, String)]) {
    let of = |object: &Value, field: &str| {
        let text = object.pointer(&format!("/metadata/{field}")).and_then(Value::as_str).unwrap_or_default();
        Sight::cut(text).to_owned()
    };
    let items = value["items"].as_array().map(Vec::as_slice).unwrap_or_default();
    // A list in place of an object is read as its fields.
    if !items.iter().all(|item| item.is_object() && item.get("metadata").is_none_or(Value::is_object)) {
        return;
    }
    let found: Vec<_> = items.iter().map(|item| (of(item, "name"), of(item, "resourceVersion"))).collect();
    assert!(listed.ends_with(&found), "{listed:?} instead of {found:?}");
}
