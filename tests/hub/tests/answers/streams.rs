//! Watches read to their end: the member's events, bookmarks and initial events, in every encoding.
//!
//! Two watches differ in the version that a bookmark carries, so bookmarks are compared by their
//! shape.

use hub_tests::prelude::*;
use libtest_mimic::Trial;

use super::{CBOR, JSON, PROTOBUF, lists, prepare, send, values};
use crate::fixture::{Fixture, test};

const SELECTED: &str = "/api/v1/namespaces/answers/configmaps?labelSelector=paged%3Dyes&watch=true";
/// Long enough for the bookmark that a kube-apiserver sends 2 s before a watch's end (`cacher.go`,
/// `bookmarkFrequency`).
const BOOKMARKED: &str = "&allowWatchBookmarks=true&timeoutSeconds=4";
const INITIAL: &str =
    "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=1";

pub(super) fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![
        test(fixture, "answers::a watch with bookmarks, to its end", bookmarks),
        test(fixture, "answers::a watch with its initial events", initial_events),
        test(fixture, "answers::a watch in other encodings", encodings),
        test(fixture, "answers::a watch with wrong options", refused),
    ]
}

/// All bytes of a watch on `route` until its end.
fn watch(testbed: &Testbed, route: Route, options: &str, kind: &str) -> Result<Bytes> {
    let path = format!("{SELECTED}{options}");
    let answer =
        send(testbed, route, &Method::GET, &path, &[("accept", kind)], Bytes::new())?.expect(StatusCode::OK)?;
    let chunked = !answer.headers.contains_key("content-length");
    ensure!(chunked, "via {}: a stream with a length: {:?}", route.name(), answer.headers);
    Ok(answer.body)
}

/// The events of a JSON watch; bookmarks by their shape only.
fn events(body: &Bytes) -> Result<Vec<Value>> {
    let lines = body.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    lines
        .map(|line| {
            let mut event: Value = serde_json::from_slice(line).context("a line that is no event")?;
            if event["type"] == "BOOKMARK" {
                let version = &mut event["object"]["metadata"]["resourceVersion"];
                ensure!(version.as_str().is_some_and(|text| text.parse::<u64>().is_ok()), "{version}");
                *version = Value::from("some");
            }
            Ok(event)
        })
        .collect()
}

/// The number of bookmarks depends on the member's clock: consecutive ones count as one.
fn bookmarks(testbed: &Testbed) -> Result<()> {
    prepare(testbed)?;
    // At the same time: each lasts as long as requested.
    let watch = |route| {
        let mut events = events(&watch(testbed, route, &format!("{BOOKMARKED}&resourceVersion=0"), JSON)?)?;
        events.dedup_by(|event, before| event["type"] == "BOOKMARK" && event == before);
        Ok::<_, anyhow::Error>(events)
    };
    let [direct, hub, gateway] = std::thread::scope(|scope| {
        Route::ALL.map(|route| scope.spawn(move || watch(route))).map(|thread| thread.join().expect("no panic"))
    });
    let direct = direct?;
    let (added, marks): (Vec<&Value>, Vec<&Value>) = direct.iter().partition(|event| event["type"] == "ADDED");
    ensure!(added.len() == lists::MAPS && !marks.is_empty(), "{} objects and {} marks", added.len(), marks.len());
    let (hub, gateway) = (hub?, gateway?);
    let counts = [&direct, &hub, &gateway].map(Vec::len);
    ensure!(hub == direct && gateway == direct, "other events than directly: {counts:?}");
    Ok(())
}

fn initial_events(testbed: &Testbed) -> Result<()> {
    prepare(testbed)?;
    let direct = initial(&watch(testbed, Route::Direct, INITIAL, JSON)?)?;
    for route in Route::PROXIED {
        let proxied = initial(&watch(testbed, route, INITIAL, JSON)?)?;
        ensure!(proxied == direct, "via {}: other events or another end than directly", route.name());
    }
    Ok(())
}

/// The initial events in the order of their names (the member's own is random), and the bookmark
/// that ends them.
fn initial(body: &Bytes) -> Result<Vec<Value>> {
    let mut events = events(body)?;
    let is_end = |event: &Value| event["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"] == "true";
    let end = events.iter().position(is_end).context("no end of the initial events")?;
    ensure!(end == lists::MAPS, "the initial events end after {end}");
    events.truncate(end + 1);
    events[..end].sort_by_key(|event| event["object"]["metadata"]["name"].to_string());
    Ok(events)
}

/// Events in protobuf and CBOR are frames, not lines: a proxy that splits at lines breaks them.
fn encodings(testbed: &Testbed) -> Result<()> {
    prepare(testbed)?;
    for (asked, answered) in [
        (PROTOBUF, "application/vnd.kubernetes.protobuf;stream=watch"),
        (CBOR, "application/cbor-seq"),
        ("application/yaml", "application/json"),
    ] {
        let path = format!("{SELECTED}&timeoutSeconds=1&resourceVersion=0");
        let get = |route| send(testbed, route, &Method::GET, &path, &[("accept", asked)], Bytes::new());
        let direct = get(Route::Direct)?;
        let kind = values(&direct.headers, "content-type").concat();
        let expected = direct.status != StatusCode::OK || kind == answered.as_bytes();
        ensure!(expected, "{asked}: the member answers with {}", String::from_utf8_lossy(&kind));
        for route in Route::PROXIED {
            super::same(route, &get(route)?, &direct).with_context(|| asked.to_owned())?;
        }
    }
    Ok(())
}

fn refused(testbed: &Testbed) -> Result<()> {
    prepare(testbed)?;
    for (code, options) in [
        (422, "&sendInitialEvents=true"),
        (422, "&resourceVersionMatch=Exact&resourceVersion=1"),
        (500, "&resourceVersion=many"),
        (400, "&fieldSelector=a%3D%3D%3Db"),
    ] {
        let path = format!("{SELECTED}&timeoutSeconds=1{options}");
        let get = |route| send(testbed, route, &Method::GET, &path, &[("accept", JSON)], Bytes::new());
        let direct = get(Route::Direct)?.expect(StatusCode::from_u16(code)?).with_context(|| options.to_owned())?;
        for route in Route::PROXIED {
            super::same(route, &get(route)?, &direct).with_context(|| options.to_owned())?;
        }
    }
    Ok(())
}
