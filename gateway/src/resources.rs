//! Serves the gateway's own paths: its resources, discovery, OpenAPI, probes, version and metrics.

mod clusters;
mod health;
mod in_order;
mod karmada;
mod kinds;
mod memory;
mod memory_watch;
mod sent;
mod traffic;
mod translate;
mod virtual_clusters;
mod virtual_sources;
mod virtual_tracker;
mod virtual_watch;
mod watch;
mod weight;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use api::accept::{self, Shape};
use api::cluster_name::ClusterName;
use api::list_options::{ListOptions, WatchOptions};
use api::route::{ClustersRoute, Discovery, OpenApi, Probe, ProbeCheck};
use api::served::Form;
use api::table::IncludeObject;
use api::{discovery as documents, openapi, query};
use auth::Permission;
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Limited};

use crate::body::ResponseBody;
use crate::error::Error;
use crate::needs::RequestNeeds;
use crate::request_body::RequestBody;

pub use self::clusters::serve as clusters;
pub use self::health::serve as health;
pub use self::karmada::serve as karmada;
pub use self::traffic::serve as traffic;
pub use self::virtual_clusters::serve as virtual_clusters;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

/// A JSON document.
fn ok(body: Bytes) -> Response<ResponseBody> {
    answer(StatusCode::OK, JSON, body)
}

/// A discovery document. Like OpenAPI, it depends on nothing that can fail: when it fails, a hub
/// treats the whole group as unavailable.
pub fn discovery(document: Discovery, headers: &HeaderMap) -> Response<ResponseBody> {
    documents::respond(document, headers).map(ResponseBody::full)
}

/// An OpenAPI document. Refuses clients that accept no JSON.
pub fn open_api(document: OpenApi, request: &Request<RequestBody>) -> Result<Response<ResponseBody>, Error> {
    let answer = openapi::respond(document, request.headers(), request.uri().query(), SystemTime::now());
    answer.map(|response| response.map(ResponseBody::full)).map_err(|_| Error::NotAcceptable)
}

/// A read of clusters. Its options are not parsed with the route, so that only callers that may
/// read learn of mistakes in them.
enum ClustersRead<'a> {
    Get(&'a ClusterName),
    List(ListOptions),
    Watch(WatchOptions),
}

/// What `request` reads by `route`, and the form that it accepts.
fn clusters_read<'a, B>(route: &'a ClustersRoute, request: &Request<B>) -> Result<(ClustersRead<'a>, Form), Error> {
    let query = request.uri().query();
    let shape = if matches!(route, ClustersRoute::List) { Shape::List } else { Shape::Object };
    let form = form_of(shape, request)?;
    let read = match route {
        ClustersRoute::Get(name) => ClustersRead::Get(name),
        ClustersRoute::List => ClustersRead::List(ListOptions::from_query(query).map_err(Error::List)?),
        ClustersRoute::Watch => ClustersRead::Watch(WatchOptions::from_query(query).map_err(Error::List)?),
    };
    Ok((read, form))
}

fn form_of<B>(shape: Shape, request: &Request<B>) -> Result<Form, Error> {
    Ok(Form {
        representation: accept::representation(request.headers(), shape).map_err(|_| Error::NotAcceptable)?,
        include: IncludeObject::from_query(request.uri().query())
            .map_err(|_| Error::BadRequest("includeObject must be None, Metadata or Object"))?,
    })
}

/// The `resourceVersion` of a GET, as a query for the hub.
fn version_query(uri: &Uri) -> String {
    let version = query::first(uri.query(), "resourceVersion").unwrap_or_default();
    let valid = !version.is_empty() && version.bytes().all(|byte| byte.is_ascii_digit());
    if valid { format!("resourceVersion={version}") } else { String::new() }
}

/// The conditions of readiness, by the names that their owners use.
const CONDITIONS: [&str; 4] = ["clusters", "identity", "managedclusters", "shutdown"];

/// `/healthz` and `/livez` show that requests get responses; `/readyz` shows that these are right.
pub fn probe(gateway: &RequestNeeds, probe: Probe, query: Option<&str>) -> Response<ResponseBody> {
    let (blocked, conditions): (_, &[&str]) = match probe {
        Probe::Healthz | Probe::Livez => (Vec::new(), &[]),
        Probe::Readyz => (gateway.readiness.blocked_by(), &CONDITIONS),
    };
    let verbose = query::pairs(query.unwrap_or_default()).any(|(key, _)| key == "verbose");
    let status = if blocked.is_empty() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    if blocked.is_empty() && !verbose {
        return answer(status, TEXT, "ok");
    }
    let mut text = String::from("[+]ping ok\n");
    for condition in conditions {
        let failed = blocked.contains(condition);
        text.extend(if failed { ["[-]", condition, " failed\n"] } else { ["[+]", condition, " ok\n"] });
    }
    text.push_str(if blocked.is_empty() { "check passed\n" } else { "check failed\n" });
    answer(status, TEXT, text)
}

/// `/readyz/<condition>`: one condition.
pub fn probe_check(gateway: &RequestNeeds, check: &ProbeCheck) -> Result<Response<ResponseBody>, Error> {
    let known = &*check.check == "ping" || (check.probe == Probe::Readyz && CONDITIONS.contains(&&*check.check));
    if !known {
        return Err(Error::NotFound);
    }
    Ok(if gateway.readiness.blocked_by().contains(&&*check.check) {
        answer(StatusCode::SERVICE_UNAVAILABLE, TEXT, format!("{} failed\n", check.check))
    } else {
        answer(StatusCode::OK, TEXT, "ok")
    })
}

/// The version, in the form of `k8s.io/apimachinery/pkg/version.Info`.
pub fn version() -> Response<ResponseBody> {
    const VERSION: &str = concat!(
        "{\n  \"major\": \"",
        env!("CARGO_PKG_VERSION_MAJOR"),
        "\",\n  \"minor\": \"",
        env!("CARGO_PKG_VERSION_MINOR"),
        "\",\n  \"gitVersion\": \"v",
        env!("CARGO_PKG_VERSION"),
        "\"\n}"
    );
    answer(StatusCode::OK, JSON, VERSION)
}

/// Encodes on the control runtime: a scrape must not delay a core's requests.
pub async fn metrics(gateway: &Arc<RequestNeeds>) -> Response<ResponseBody> {
    let owned = Arc::clone(gateway);
    match gateway.control.spawn(async move { owned.exposition.encode() }).await {
        Ok(text) => answer(StatusCode::OK, HeaderValue::from_static(telemetry::metrics::CONTENT_TYPE), text),
        Err(_) => Error::ClustersUnknown.into_response(),
    }
}

/// A response of the gateway itself, which must not be cached.
pub fn answer(status: StatusCode, content_type: HeaderValue, body: impl Into<Bytes>) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::full(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, content_type);
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}

/// Sets the log level of the running process, like `PUT /debug/flags/v` of Kubernetes components.
/// The body is a level (`debug`), a filter, or a klog number.
pub async fn log_level(
    gateway: &RequestNeeds,
    permission: &Permission,
    request: Request<RequestBody>,
) -> Result<Response<ResponseBody>, Error> {
    const LONGEST: usize = 1024;
    const WITHIN: Duration = Duration::from_secs(10);
    let body = tokio::time::timeout(WITHIN, Limited::new(request.into_body(), LONGEST).collect()).await;
    let body = body.ok().and_then(Result::ok).ok_or(Error::BadRequest("the body must be a log level"))?.to_bytes();
    let level = std::str::from_utf8(&body).map_err(|_| Error::BadRequest("the body must be a log level"))?;
    Ok(set_log_level(gateway, permission, level))
}

fn set_log_level(gateway: &RequestNeeds, permission: &Permission, level: &str) -> Response<ResponseBody> {
    let level = match level.trim().parse::<u8>() {
        Ok(8..) => "trace",
        Ok(4..) => "debug",
        Ok(_) => "info",
        Err(_) => level.trim(),
    };
    let Some(logs) = &gateway.log_level else {
        return answer(StatusCode::CONFLICT, TEXT, "this process does not control the log level\n");
    };
    match logs.set(level) {
        Ok(()) => {
            tracing::info!(level, user = permission.user().name, "log level changed");
            answer(StatusCode::OK, TEXT, format!("log level is now {level}\n"))
        }
        Err(error) => answer(StatusCode::BAD_REQUEST, TEXT, format!("{error}\n")),
    }
}
