//! Finds the response to a browser's request.

use std::sync::Arc;
use std::time::Duration;

use api::cluster_name::ClusterName;
use http::header::{self, HeaderValue};
use http::{Response, StatusCode};
use tokio::time::timeout;

use super::access::Refused;
use super::one::ClusterDetails;
use super::overview::{self, View};
use super::response::{Body, finished, full, text};
use super::{Dashboard, events, one};

/// Time that a page waits for the hub's first answer about its clusters. After that, the page
/// begins empty.
const FIRST: Duration = Duration::from_secs(1);

const HTML: &str = "text/html; charset=utf-8";
const STYLE: (&str, &str) = ("text/css; charset=utf-8", include_str!("page.css"));
const SCRIPT: (&str, &str) = ("text/javascript; charset=utf-8", include_str!("page.js"));
const ICON: (&str, &str) = ("image/svg+xml", include_str!("icon.svg"));

/// The response for `path`, which is the path after the token.
pub async fn to(dashboard: &Arc<Dashboard>, path: &str, query: Option<&str>) -> Response<Body> {
    finished(at(dashboard, path, query.unwrap_or_default()).await)
}

/// Refuses the request, and closes the connection: a refused client holds none.
pub fn refusal(Refused(status, words): Refused) -> Response<Body> {
    let mut response = finished(text(status, words));
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

async fn at(dashboard: &Arc<Dashboard>, path: &str, query: &str) -> Response<Body> {
    let (static_type, file) = match path {
        "" => return full(HTML, overview(dashboard, view(query)).await),
        "events" => return events::of_all(dashboard, version(query)),
        "page.css" => STYLE,
        "page.js" => SCRIPT,
        "icon.svg" => ICON,
        _ => return of_cluster(dashboard, path),
    };
    full(static_type, file)
}

fn of_cluster(dashboard: &Arc<Dashboard>, path: &str) -> Response<Body> {
    let nothing = || text(StatusCode::NOT_FOUND, "Page not found.");
    let Some(rest) = path.strip_prefix("clusters/") else { return nothing() };
    let (name, is_stream) = match rest.strip_suffix("/events") {
        Some(name) => (name, true),
        None => (rest, false),
    };
    match ClusterName::parse(name) {
        Err(_) => nothing(),
        Ok(name) if is_stream => events::of_one(dashboard, name),
        Ok(name) => full(HTML, cluster(dashboard, &name)),
    }
}

async fn overview(dashboard: &Dashboard, view: View) -> String {
    let mut newest = dashboard.board.subscribe();
    // After the timeout, the page begins empty, and events fill it.
    drop(timeout(FIRST, newest.wait_for(|snapshot| snapshot.asked)).await);
    let snapshot = Arc::clone(&newest.borrow());
    overview::page(&snapshot, view, dashboard.server())
}

/// The page of a cluster as it was seen last. Its stream looks again.
fn cluster(dashboard: &Dashboard, name: &ClusterName) -> String {
    let snapshot = dashboard.board.look();
    let parts = dashboard.page(name, |page| {
        if page.parts.is_empty() {
            page.parts = ClusterDetails { name, snapshot: &snapshot, inspection: None, history: &page.history }.parts();
        }
        page.parts.clone()
    });
    one::page(name, dashboard.server(), &parts)
}

fn view(query: &str) -> View {
    if query.split('&').any(|pair| pair == "view=tiles") { View::Tiles } else { View::Table }
}

/// The version of the snapshot that a page shows.
fn version(query: &str) -> u64 {
    query.split('&').find_map(|pair| pair.strip_prefix("v=")?.parse().ok()).unwrap_or(0)
}
