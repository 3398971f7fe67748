use std::collections::VecDeque;
use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response, Uri};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::Frame;
use k8s_openapi::api::core::v1::Secret;
use kube::client::Body;
use kube::{Client, ResourceExt as _};
use parking_lot::Mutex;
use tower::{BoxError, Layer as _, service_fn};

use super::*;
use crate::paged;
use crate::streamed::{PAGES_FOR, Streamed};

type Answered = Response<UnsyncBoxBody<Bytes, BoxError>>;

const END: &str = r#"{"type":"BOOKMARK","object":{"kind":"Secret","apiVersion":"v1","metadata":{"resourceVersion":"9","creationTimestamp":null,"annotations":{"k8s.io/initial-events-end":"true"}}}}"#;
const MARK: &str =
    r#"{"type":"BOOKMARK","object":{"kind":"Secret","apiVersion":"v1","metadata":{"resourceVersion":"8"}}}"#;

/// How a hub answers a request for a list as events.
enum Answer {
    Status(u16),
    /// These lines, and nothing more.
    Stays(Vec<String>),
    /// These lines, and the end.
    Ends(Vec<String>),
}

/// A hub with these answers, whose list in pages has `p1` and `p2`. Watches stay open.
#[derive(Clone)]
struct Hub {
    answers: Arc<Mutex<VecDeque<Answer>>>,
    asked: Arc<Mutex<Vec<&'static str>>>,
}

fn event(kind: &str, name: &str) -> String {
    format!(
        r#"{{"type":"{kind}","object":{{"kind":"Secret","apiVersion":"v1","metadata":{{"name":"{name}","resourceVersion":"7"}}}}}}"#
    )
}

fn error(code: u16) -> String {
    format!(
        r#"{{"type":"ERROR","object":{{"kind":"Status","status":"Failure","message":"m","reason":"r","code":{code}}}}}"#
    )
}

fn lines(lines: &[&str]) -> Vec<String> {
    lines.iter().map(|line| (*line).to_owned()).collect()
}

fn whole(code: u16, text: String) -> Answered {
    let body = Full::new(Bytes::from(text)).map_err(|never| match never {}).boxed_unsync();
    Response::builder().status(code).body(body).unwrap()
}

fn events(lines: Vec<String>, stays: bool) -> Answered {
    let frames = stream::iter(lines).map(|line| Ok(Frame::data(Bytes::from(line + "\n"))));
    let rest = stream::pending().take(usize::from(stays));
    Response::new(StreamBody::new(frames.chain(rest)).boxed_unsync())
}

fn page(name: &str, next: &str) -> Answered {
    let object = format!(r#"{{"metadata":{{"name":"{name}","resourceVersion":"7"}}}}"#);
    let metadata = format!(r#"{{"resourceVersion":"9","continue":"{next}"}}"#);
    whole(200, format!(r#"{{"kind":"SecretList","apiVersion":"v1","metadata":{metadata},"items":[{object}]}}"#))
}

// === impl Hub ===

impl Hub {
    fn new(answers: impl IntoIterator<Item = Answer>) -> Self {
        Self { answers: Arc::new(Mutex::new(answers.into_iter().collect())), asked: Arc::default() }
    }

    fn client(&self) -> Client {
        self.client_with(&Streamed::default())
    }

    fn client_with(&self, streamed: &Streamed) -> Client {
        let hub = self.clone();
        let answer = move |request: Request<Body>| {
            let answered = hub.answer(request.uri());
            async move { Ok::<_, BoxError>(answered) }
        };
        Client::new(streamed.layer(service_fn(answer)), "default")
    }

    fn answer(&self, uri: &Uri) -> Answered {
        let query = uri.query().unwrap_or_default();
        if query.contains("sendInitialEvents=true") {
            self.asked.lock().push("events");
            assert!(query.contains("resourceVersionMatch=NotOlderThan") && query.contains("allowWatchBookmarks=true"));
            assert!(!query.contains("resourceVersion="), "it may be of any age: {query}");
            return match self.answers.lock().pop_front().expect("an answer") {
                Answer::Status(code) => whole(code, format!(r#"{{"kind":"Status","code":{code},"reason":"r"}}"#)),
                Answer::Stays(lines) => events(lines, true),
                Answer::Ends(lines) => events(lines, false),
            };
        }
        if query.contains("watch=true") {
            return events(Vec::new(), true);
        }
        self.asked.lock().push("page");
        if query.contains("continue=") { page("p2", "") } else { page("p1", "n") }
    }

    /// What is asked from here on.
    fn asked(&self) -> Vec<&'static str> {
        std::mem::take(&mut *self.asked.lock())
    }
}

fn told(event: watcher::Result<Event<Secret>>) -> String {
    match event {
        Ok(Event::Init) => "begin".to_owned(),
        Ok(Event::InitApply(object)) => object.name_any(),
        Ok(Event::InitDone) => "all".to_owned(),
        Ok(Event::Apply(object)) => format!("+{}", object.name_any()),
        Ok(Event::Delete(object)) => format!("-{}", object.name_any()),
        Err(_) => "error".to_owned(),
    }
}

/// As many events of one follower as `expected` has are these.
async fn follows(client: &Client, expected: &[&str]) {
    let mut events = pin!(watcher(Api::<Secret>::all(client.clone()), paged()).map(told));
    let mut found = Vec::new();
    while found.len() < expected.len() {
        found.push(events.next().await.unwrap());
    }
    assert_eq!(found, expected);
}

const IN_PAGES: [&str; 4] = ["begin", "p1", "p2", "all"];

#[tokio::test(start_paused = true)]
async fn a_list_is_one_request_and_complete_by_its_bookmark() {
    let (a, b, later, gone) = (event("ADDED", "a"), event("ADDED", "b"), event("MODIFIED", "b"), event("DELETED", "a"));
    let hub = Hub::new([
        Answer::Stays(lines(&[&a, MARK, &b, END, &later, &gone])),
        // Once a list has come whole, the hub is known to send such.
        Answer::Stays(lines(&[END])),
    ]);
    let client = hub.client();
    follows(&client, &["begin", "a", "b", "all", "+b", "-a"]).await;
    follows(&client, &["begin", "all"]).await;
    assert_eq!(hub.asked(), ["events", "events"]);
}

#[tokio::test(start_paused = true)]
async fn a_hub_that_refuses_is_asked_for_pages_and_not_again_for_some_minutes() {
    for code in [400, 422] {
        let hub = Hub::new([Answer::Status(code), Answer::Stays(lines(&[END]))]);
        let client = hub.client();
        follows(&client, &IN_PAGES).await;
        assert_eq!(hub.asked(), ["events", "page", "page"]);
        follows(&client, &IN_PAGES).await;
        assert_eq!(hub.asked(), ["page", "page"], "{code}: asked in vain");
        tokio::time::advance(PAGES_FOR).await;
        follows(&client, &["begin", "all"]).await;
        assert_eq!(hub.asked(), ["events"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_whose_bookmark_does_not_come_is_none() {
    let a = event("ADDED", "a");
    let expected = [&["begin", "a"][..], &IN_PAGES].concat();
    for (answer, waits) in [
        (Answer::Stays(lines(&[&a])), QUIET),
        (Answer::Stays(lines(&[&a, MARK])), QUIET),
        (Answer::Ends(lines(&[&a])), Duration::ZERO),
    ] {
        let hub = Hub::new([answer]);
        let (client, began) = (hub.client(), Instant::now());
        follows(&client, &expected).await;
        assert!((waits..waits + Duration::from_secs(1)).contains(&began.elapsed()), "{:?}", began.elapsed());
        follows(&client, &IN_PAGES).await;
        assert!(hub.asked().ends_with(&["page"; 4]), "one follower asked in vain");
    }
}

/// Objects come one by one, each within the longest silence, and without an end.
#[tokio::test(start_paused = true)]
async fn a_list_that_goes_on_and_on_is_none() {
    let answer = |request: Request<Body>| {
        let query = request.uri().query().unwrap_or_default();
        let answered = if query.contains("sendInitialEvents=true") {
            let slow = stream::unfold(0, async |number| {
                tokio::time::sleep(QUIET / 2).await;
                let line = event("ADDED", &format!("a{number}")) + "\n";
                Some((Ok::<_, BoxError>(Frame::data(Bytes::from(line))), number + 1))
            });
            Response::new(StreamBody::new(slow).boxed_unsync())
        } else {
            page("p", "")
        };
        async move { Ok::<_, BoxError>(answered) }
    };
    let began = Instant::now();
    let client = Client::new(service_fn(answer), "default");
    let mut events = pin!(watcher(Api::<Secret>::all(client), paged()).map(told));
    while events.next().await.unwrap() != "all" {}
    assert!((WITHIN..WITHIN + QUIET).contains(&began.elapsed()), "{:?}", began.elapsed());
}

/// They may come at once, and each of them is small.
#[tokio::test(start_paused = true)]
async fn a_list_of_too_many_bytes_is_none() {
    let (a, b) = (event("ADDED", "a"), event("ADDED", "b"));
    let size = a.len() + b.len() + 2;
    let answers = || [Answer::Stays(lines(&[&a, &b, END])), Answer::Stays(lines(&[END]))];
    let hub = Hub::new(answers());
    let client = hub.client_with(&Streamed::of_at_most(size));
    follows(&client, &["begin", "a", "b", "all"]).await;
    follows(&client, &["begin", "all"]).await;
    assert_eq!(hub.asked(), ["events", "events"], "the bookmark may come beyond the limit");

    let hub = Hub::new(answers());
    let client = hub.client_with(&Streamed::of_at_most(size - 1));
    follows(&client, &[&["begin", "a", "error"][..], &IN_PAGES].concat()).await;
    follows(&client, &IN_PAGES).await;
    assert_eq!(hub.asked(), ["events", "page", "page", "page", "page"]);
}

/// The error is passed on, so that callers back off. What came before it does not count.
#[tokio::test(start_paused = true)]
async fn a_list_that_fails_is_told_and_made_anew() {
    let a = event("ADDED", "a");
    for code in [410, 429, 500] {
        let hub = Hub::new([Answer::Stays(lines(&[&a, &error(code)]))]);
        follows(&hub.client(), &[&["begin", "a", "error"][..], &IN_PAGES].concat()).await;
        assert_eq!(hub.asked(), ["events", "page", "page"], "{code}");
    }
    // One that would be the answer to pages, too, says nothing of lists as events.
    for code in [403, 410, 429] {
        let hub = Hub::new([Answer::Status(code), Answer::Stays(lines(&[&a, END]))]);
        follows(&hub.client(), &["error", "begin", "a", "all"]).await;
        assert_eq!(hub.asked(), ["events", "events"], "{code}");
    }
    for code in [500, 503] {
        let hub = Hub::new([Answer::Status(code)]);
        follows(&hub.client(), &[&["error"][..], &IN_PAGES].concat()).await;
        assert_eq!(hub.asked(), ["events", "page", "page"], "{code}");
    }
}

/// It may happen to each list, as often as somebody deletes an object.
#[tokio::test(start_paused = true)]
async fn an_object_that_is_deleted_while_the_list_comes_is_not_in_it() {
    let (a, gone) = (event("ADDED", "a"), event("DELETED", "a"));
    let hub = Hub::new([Answer::Stays(lines(&[&a, &gone, END])), Answer::Stays(lines(&[END]))]);
    let client = hub.client();
    follows(&client, &["begin", "a", "error"]).await;
    // Another follower, as after each error of a source.
    follows(&client, &IN_PAGES).await;
    assert_eq!(hub.asked(), ["events", "page", "page"]);
    tokio::time::advance(PAGES_FOR).await;
    follows(&client, &["begin", "all"]).await;
    assert_eq!(hub.asked(), ["events"], "the hub can send such lists");
}

#[tokio::test(start_paused = true)]
async fn after_an_expired_watch_the_list_is_asked_for_as_at_first() {
    let (a, b) = (event("ADDED", "a"), event("ADDED", "b"));
    let hub = Hub::new([
        Answer::Ends(lines(&[&a, END, &error(410)])),
        Answer::Stays(lines(&[&b, END])),
        Answer::Ends(lines(&[&a, END, &error(410)])),
        Answer::Status(422),
    ]);
    let client = hub.client();
    follows(&client, &["begin", "a", "all", "error", "begin", "b", "all"]).await;
    follows(&client, &[&["begin", "a", "all", "error"][..], &IN_PAGES].concat()).await;
    assert_eq!(hub.asked(), ["events", "events", "events", "events", "page", "page"]);
}
