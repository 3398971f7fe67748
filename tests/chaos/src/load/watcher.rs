//! Watches the objects that writers make, for as long as the run lasts.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, StatusCode};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::{sleep, timeout};

use super::{AGAIN, Route, Shared, text};
use crate::feed::{Feed, Next};

/// A stream without data for this long has ended without a sign, which a reader cannot distinguish
/// from silence. Longer than any fault.
const SILENCE: Duration = Duration::from_secs(90);

/// Asks the member to end each stream after `seconds`, so that many begin.
pub(super) async fn run(shared: &Shared, route: &Route, feed: &Arc<Mutex<Feed>>, seconds: Option<u32>) {
    let (mut listed, mut failures) = (false, 0);
    loop {
        if failures > 0 {
            sleep(AGAIN.wait(failures)).await;
        }
        failures += 1;
        if !listed {
            let Ok((version, items)) = route.written().await else { continue };
            shared.report.counts.watch_lists.add();
            let items = items.iter().map(|item| (text(item, "uid"), self::version(item)));
            if let Err(what) = feed.lock().list(version, items) {
                shared.report.violation(&format!("a watcher of {}", route.name), &what);
            }
            listed = true;
        }
        match open(route, feed, seconds).await {
            Opened::Stream(body) => {
                failures = 0;
                shared.report.counts.watch_streams.add();
                let next = read(shared, route, feed, body).await;
                shared.report.counts.watch_resumes.add();
                listed = next != Next::List;
            }
            Opened::Expired => listed = false,
            Opened::Not => {}
        }
    }
}

/// The version of an object. One that is no number is older than any, so that it is noticed.
fn version(item: &Value) -> u64 {
    text(item, "resourceVersion").parse().unwrap_or_default()
}

enum Opened {
    Stream(Incoming),
    Expired,
    Not,
}

async fn open(route: &Route, feed: &Mutex<Feed>, seconds: Option<u32>) -> Opened {
    let (version, limit) = (feed.lock().last(), seconds.map(|s| format!("&timeoutSeconds={s}")).unwrap_or_default());
    let query = format!("{}&watch=true&allowWatchBookmarks=true&resourceVersion={version}{limit}", super::WRITTEN);
    let path = route.path(&format!("configmaps?{query}"));
    match route.caller.open(Method::GET, &path, Bytes::new()).await {
        Ok(response) if response.status() == StatusCode::OK => Opened::Stream(response.into_body()),
        Ok(response) if response.status() == StatusCode::GONE => Opened::Expired,
        _ => Opened::Not,
    }
}

/// Reads one stream to its end.
async fn read(shared: &Shared, route: &Route, feed: &Mutex<Feed>, mut body: Incoming) -> Next {
    let wrong = |what: String| shared.report.violation(&format!("a watcher of {}", route.name), &what);
    loop {
        let frame = match timeout(SILENCE, body.frame()).await {
            Ok(Some(Ok(frame))) => frame,
            Ok(None) => {
                let _ = feed.lock().end(true).map_err(wrong);
                return Next::Resume;
            }
            Ok(Some(Err(_))) | Err(_) => {
                let _ = feed.lock().end(false).map_err(wrong);
                return Next::Resume;
            }
        };
        let Ok(bytes) = frame.into_data() else { continue };
        let mut feed = feed.lock();
        let before = feed.len();
        match feed.take(&bytes) {
            Ok(Next::Read) => shared.report.counts.watch_events.add_many((feed.len() - before) as u64),
            Ok(next) => {
                let _ = feed.end(false);
                return next;
            }
            Err(what) => {
                wrong(what);
                let _ = feed.end(false);
                return Next::List;
            }
        }
    }
}
