use serde_json::{Value, json};
use time::OffsetDateTime;
use tokio::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::member::{clock::Clock, kind::Kind, negotiate::Representation, render::Render, request::Query};

const FIRST: u64 = 100;

struct Bench {
    hub: Hub,
    clock: Clock,
    stop: CancellationToken,
}

fn pod(name: &str, app: &str) -> Value {
    json!({"metadata": {"name": name, "namespace": "shop", "labels": {"app": app}}, "status": {"phase": "Running"}})
}

impl Bench {
    fn new() -> Self {
        let clock = Clock::starting_at(OffsetDateTime::UNIX_EPOCH);
        Self { hub: Hub::new(Model::new(FIRST)), clock, stop: CancellationToken::new() }
    }

    fn put(&self, name: &str, app: &str) {
        self.hub.update(|model| model.put(Kind::Pod, pod(name, app)));
    }

    fn remove(&self, name: &str) {
        self.hub.update(|model| model.remove(&Key::new(Kind::Pod, "shop", name)));
    }

    fn watch(&self, since: Since, labels: &str, query: &str, representation: Representation) -> Stream {
        let query = Query::parse(query);
        let selection = Selection::all(Kind::Pod, None).narrow(labels, "").unwrap();
        let subscription = self.hub.subscribe(&selection, since).unwrap();
        let options = Options {
            selection,
            render: Render::new(representation, &query).unwrap(),
            bookmarks: query.flag("allowWatchBookmarks"),
            timeout_seconds: query.number("timeoutSeconds").unwrap(),
        };
        Stream::new(options, subscription, self.clock.clone(), self.stop.clone())
    }

    fn plain(&self, since: Since, labels: &str) -> Stream {
        self.watch(since, labels, "", Representation::Plain)
    }
}

async fn event(stream: &mut Stream) -> Value {
    let line = stream.next().await.expect("the watch goes on");
    assert_eq!(line.iter().position(|byte| *byte == b'\n'), Some(line.len() - 1), "one event, one line");
    serde_json::from_slice(&line).expect("an event is JSON")
}

/// Type, name and resource version: what a controller lives on.
async fn brief(stream: &mut Stream) -> (String, String, u64) {
    let event = event(stream).await;
    let metadata = &event["object"]["metadata"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    (text(&event["type"]), text(&metadata["name"]), text(&metadata["resourceVersion"]).parse().unwrap())
}

fn expect(kind: &str, name: &str, version: u64) -> (String, String, u64) {
    (kind.to_owned(), name.to_owned(), version)
}

#[tokio::test(start_paused = true)]
async fn a_watch_from_now_starts_with_what_is_there() {
    let bench = Bench::new();
    bench.put("b", "web");
    bench.put("a", "web");
    let mut watch = bench.plain(Since::Now, "");
    bench.remove("b");
    assert_eq!(brief(&mut watch).await, expect("ADDED", "a", FIRST + 2));
    assert_eq!(brief(&mut watch).await, expect("ADDED", "b", FIRST + 1));
    assert_eq!(brief(&mut watch).await, expect("DELETED", "b", FIRST + 3));
}

#[tokio::test(start_paused = true)]
async fn a_watch_resumes_behind_its_version_without_gap_or_overlap() {
    let bench = Bench::new();
    bench.put("a", "web");
    bench.put("b", "web");
    let mut watch = bench.plain(Since::Version(FIRST + 1), "");
    bench.put("b", "web");
    assert_eq!(brief(&mut watch).await, expect("ADDED", "b", FIRST + 2));
    assert_eq!(brief(&mut watch).await, expect("MODIFIED", "b", FIRST + 3));
}

#[tokio::test(start_paused = true)]
async fn leaving_and_entering_a_selection_is_deletion_and_addition() {
    let bench = Bench::new();
    bench.put("a", "web");
    let mut watch = bench.plain(Since::Version(FIRST + 1), "app=web");
    bench.put("a", "api");
    bench.put("other", "api");
    bench.put("a", "web");
    assert_eq!(brief(&mut watch).await, expect("DELETED", "a", FIRST + 2));
    assert_eq!(brief(&mut watch).await, expect("ADDED", "a", FIRST + 4));
}

#[test]
fn versions_outside_the_history_are_expired() {
    let bench = Bench::new();
    for _ in 0..=HISTORY {
        bench.put("a", "web");
    }
    let selection = Selection::all(Kind::Pod, None);
    let start = |version| bench.hub.subscribe(&selection, Since::Version(version)).map(|started| started.backlog.len());
    let latest = FIRST + HISTORY as u64 + 1;
    assert_eq!(start(FIRST), Err(Refusal::Expired(FIRST)));
    assert_eq!(start(FIRST + 1), Ok(HISTORY));
    assert_eq!(start(latest), Ok(0));
    assert_eq!(start(latest + 1), Err(Refusal::Expired(latest + 1)));
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_falls_behind_ends_with_410() {
    let bench = Bench::new();
    let mut watch = bench.plain(Since::Version(FIRST), "");
    for _ in 0..=LIVE_QUEUE {
        bench.put("a", "web");
    }
    let last = event(&mut watch).await;
    assert_eq!((&last["type"], &last["object"]["code"]), (&json!("ERROR"), &json!(410)));
    assert_eq!(watch.next().await, None);
}

#[tokio::test(start_paused = true)]
async fn bookmarks_come_when_asked_for_and_carry_the_version() {
    let bench = Bench::new();
    bench.put("a", "web");
    let query = "allowWatchBookmarks=true&timeoutSeconds=90";
    let mut watch = bench.watch(Since::Version(FIRST + 1), "", query, Representation::Plain);
    let started = Instant::now();
    let bookmark = event(&mut watch).await;
    assert_eq!(bookmark["type"], "BOOKMARK");
    assert_eq!(bookmark["object"]["kind"], "Pod");
    assert_eq!(bookmark["object"]["metadata"]["resourceVersion"], (FIRST + 1).to_string());
    assert_eq!(watch.next().await, None, "timeoutSeconds ends it cleanly");
    assert_eq!(started.elapsed(), Duration::from_secs(90));
}

#[tokio::test(start_paused = true)]
async fn a_table_watch_names_its_columns_once() {
    let bench = Bench::new();
    bench.put("a", "web");
    bench.put("b", "web");
    let mut watch = bench.watch(Since::Now, "", "", Representation::Table);
    let (first, second) = (event(&mut watch).await, event(&mut watch).await);
    assert_eq!(first["object"]["columnDefinitions"][0]["name"], "Name");
    assert_eq!(second["object"]["columnDefinitions"], json!([]));
    assert_eq!(second["object"]["rows"][0]["cells"][0], "b");
    assert_eq!(second["object"]["rows"][0]["object"]["kind"], "PartialObjectMetadata");
}

#[tokio::test(start_paused = true)]
async fn a_stop_ends_an_idle_watch() {
    let bench = Bench::new();
    let mut watch = bench.plain(Since::Now, "");
    bench.stop.cancel();
    assert_eq!(watch.next().await, None);
}
