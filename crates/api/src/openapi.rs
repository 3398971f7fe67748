//! OpenAPI v3 of what we serve: the list of documents, and the document of each group.
//!
//! A hub merges the list with those of all other servers, and users read the document through it
//! (`kubectl explain`). The rules are those of `k8s.io/kube-openapi/pkg/handler3`, with one
//! difference: we respond to a stale hash with the current document. Kubernetes redirects, but a
//! hub turns every redirect into a 502. We only write JSON, and only once.

mod karmada;
mod paths;
mod schema;
mod schemas;

use std::sync::LazyLock;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::EXPIRES;
use http::{HeaderMap, HeaderValue, Response};
use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc2822;

use crate::accept::{self, NotAcceptable};
use crate::discovery::{self, Document, Group};
use crate::route::OpenApi;
use crate::{go_text, query};
use schema::{Field, Schema};

/// Cache lifetime of the response to a request with the current hash. As good as forever, because
/// another document has another hash.
const IMMUTABLE: Duration = Duration::from_hours(365 * 24);

/// Cache-Control of a document that may change.
pub(crate) const KEPT: &str = "no-cache, private";

/// The content of a group's document.
struct Api {
    group: Group,
    /// Prefix of the schemas' names.
    prefix: &'static str,
    /// Part of the operations' ids.
    id: &'static str,
    tag: &'static str,
    type_fields: &'static [Field],
    schemas: &'static [Schema],
}

const OURS: Api = Api {
    group: discovery::OURS,
    prefix: "dev.oam.core.cluster",
    id: "ClusterV1alpha1",
    tag: "cluster_v1alpha1",
    type_fields: schema::TYPE_FIELDS,
    schemas: schemas::OURS,
};

const KARMADA: Api = Api {
    group: discovery::KARMADA,
    prefix: "io.karmada.cluster",
    id: "ClusterKarmadaIoV1alpha1",
    tag: "clusterKarmadaIo_v1alpha1",
    type_fields: schema::KARMADA_TYPE_FIELDS,
    schemas: karmada::SCHEMAS,
};

/// A group's document and its hash.
struct Hashed(Document, String);

struct Documents {
    root: Document,
    whole_root: Document,
    ours: Hashed,
    karmada: Hashed,
}

static DOCUMENTS: LazyLock<Documents> = LazyLock::new(|| {
    let json = HeaderValue::from_static("application/json");
    let (ours, karmada) = (Hashed::new(&OURS), Hashed::new(&KARMADA));
    let whole = root(&[(&OURS, &ours.1), (&KARMADA, &karmada.1)]);
    Documents {
        root: Document::new(go_text::json(&root(&[(&OURS, &ours.1)])), json.clone()),
        whole_root: Document::new(go_text::json(&whole), json),
        ours,
        karmada,
    }
});

/// The complete response to a GET (for a HEAD, drop the body): 200, or 304 if `If-None-Match` names
/// the current document. `now` is the wall clock, for `Expires`.
pub fn respond(
    asked: OpenApi,
    headers: &HeaderMap,
    query: Option<&str>,
    now: SystemTime,
) -> Result<Response<Bytes>, NotAcceptable> {
    let (document, fresh) = match asked {
        OpenApi::Root => (&DOCUMENTS.root, false),
        OpenApi::WholeRoot => (&DOCUMENTS.whole_root, false),
        OpenApi::Document => DOCUMENTS.ours.asked(headers, query)?,
        OpenApi::KarmadaDocument => DOCUMENTS.karmada.asked(headers, query)?,
    };
    let kept = if fresh { "public, immutable" } else { KEPT };
    let mut response = document.answer(headers, HeaderValue::from_static(kept));
    if fresh {
        response.headers_mut().extend(expires(now).map(|date| (EXPIRES, date)));
    }
    Ok(response)
}

/// The list of documents with only our own.
pub(crate) fn own_root() -> &'static [u8] {
    &DOCUMENTS.root.body
}

/// RFC 9110 §5.6.7: the date format of mail, with the zone `GMT`. `None` for a time that no
/// calendar has.
fn expires(now: SystemTime) -> Option<HeaderValue> {
    let date = OffsetDateTime::from(now.checked_add(IMMUTABLE)?).format(&Rfc2822).ok()?;
    HeaderValue::try_from(date.replace("+0000", "GMT")).ok()
}

/// Contains only our own keys. A hub merges these lists by key, and another key of ours could hide
/// the hub's own.
fn root(documents: &[(&Api, &str)]) -> Value {
    let paths = documents.iter().map(|(api, hash)| {
        let key = format!("apis/{}", api.group.api_version);
        // client-go prefixes its own base path only if the URL begins like this.
        let url = format!("/openapi/v3/{key}?hash={hash}");
        (key, json!({ "serverRelativeURL": url }))
    });
    json!({ "paths": paths.collect::<serde_json::Map<_, _>>() })
}

fn document(api: &Api) -> Value {
    json!({
        "openapi": "3.0.0",
        "info": { "title": "Cluster Gateway", "version": concat!("v", env!("CARGO_PKG_VERSION")) },
        "paths": paths::all(api),
        "components": { "schemas": schemas::all(api) },
    })
}

// === impl Hashed ===

impl Hashed {
    fn new(api: &Api) -> Self {
        let json = HeaderValue::from_static("application/json");
        let document = Document::new(go_text::json(&document(api)), json);
        let hash = document.etag.to_str().unwrap_or_default().trim_matches('"').to_owned();
        Self(document, hash)
    }

    /// The document, and whether the request names its hash.
    fn asked(&self, headers: &HeaderMap, query: Option<&str>) -> Result<(&Document, bool), NotAcceptable> {
        accept::json(headers)?;
        Ok((&self.0, query::first(query, "hash").is_some_and(|hash| hash == self.1)))
    }
}

#[cfg(test)]
mod tests;
