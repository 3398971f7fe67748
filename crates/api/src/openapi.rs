//! OpenAPI v3 of what we serve: the list of documents, and the one document in it.
//!
//! A hub passes the list on merged with everybody else's, and users read the document through it
//! (`kubectl explain`). The rules are those of `k8s.io/kube-openapi/pkg/handler3`, with one
//! difference: a stale hash is answered with the current document where Kubernetes redirects,
//! because a hub makes a 502 of every redirect. Only JSON is written, and only once.

mod paths;
mod schema;
mod schemas;

use std::sync::LazyLock;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, EXPIRES, VARY};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc2822;

use crate::accept::{self, NotAcceptable};
use crate::discovery::{Document, RESOURCES};
use crate::route::OpenApi;
use crate::{GROUP, VERSION, go_text, query};

/// How long an answer to a request with the current hash may be kept: as good as for ever, since
/// another document has another hash.
const IMMUTABLE: Duration = Duration::from_hours(365 * 24);

struct Documents {
    root: Document,
    ours: Document,
    /// Of `ours`.
    hash: String,
}

static DOCUMENTS: LazyLock<Documents> = LazyLock::new(|| {
    let json = HeaderValue::from_static("application/json");
    let ours = Document::new(go_text::json(&document()), json.clone());
    let hash = ours.etag.to_str().unwrap_or_default().trim_matches('"').to_owned();
    Documents { root: Document::new(go_text::json(&root(&hash)), json), ours, hash }
});

/// The whole answer to a GET (for a HEAD, drop the body): 200, or 304 when `If-None-Match` names
/// the current document. `now` is the wall clock, for `Expires`.
pub fn respond(
    asked: OpenApi,
    headers: &HeaderMap,
    query: Option<&str>,
    now: SystemTime,
) -> Result<Response<Bytes>, NotAcceptable> {
    let (document, fresh) = match asked {
        OpenApi::Root => (&DOCUMENTS.root, false),
        OpenApi::Document => {
            accept::json(headers)?;
            let hash = query::first(query, "hash");
            (&DOCUMENTS.ours, hash.is_some_and(|hash| hash == DOCUMENTS.hash))
        }
    };
    let mut response = Response::new(Bytes::new());
    let answer = response.headers_mut();
    answer.insert(ETAG, document.etag.clone());
    answer.insert(VARY, HeaderValue::from_static("Accept"));
    answer.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    if fresh {
        answer.insert(CACHE_CONTROL, HeaderValue::from_static("public, immutable"));
        answer.extend(expires(now).map(|date| (EXPIRES, date)));
    }
    if document.is_known(headers) {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    } else {
        answer.insert(CONTENT_TYPE, document.content_type.clone());
        *response.body_mut() = document.body.clone();
    }
    Ok(response)
}

/// RFC 9110 §5.6.7: the date of mail, but in GMT by name. `None` for times that no calendar has.
fn expires(now: SystemTime) -> Option<HeaderValue> {
    let date = OffsetDateTime::from(now.checked_add(IMMUTABLE)?).format(&Rfc2822).ok()?;
    HeaderValue::try_from(date.replace("+0000", "GMT")).ok()
}

/// Only our own key: a hub merges these lists by key, and any other of ours could stand before its
/// own.
fn root(hash: &str) -> Value {
    let key = format!("apis/{GROUP}/{VERSION}");
    // client-go puts its own base path before this only if it begins so.
    let url = format!("/openapi/v3/{key}?hash={hash}");
    json!({ "paths": { key: { "serverRelativeURL": url } } })
}

fn document() -> Value {
    json!({
        "openapi": "3.0.0",
        "info": { "title": "Cluster Gateway", "version": concat!("v", env!("CARGO_PKG_VERSION")) },
        "paths": paths::all(RESOURCES),
        "components": { "schemas": schemas::all() },
    })
}

#[cfg(test)]
mod tests;
