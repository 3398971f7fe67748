//! Scripted members, any number of them: one process that distinguishes them by their tokens.

use std::collections::HashMap;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use parking_lot::Mutex;
use serde_json::json;
use tokio::time::Instant;

use super::body::Answer;
use super::member::{self, Answered, Member};
use crate::stand_in::{Gone, Options, serve};

/// The bench's own requests to the process, besides those that a member gets.
pub const COUNTS: &str = "/bench/counts";
/// Prefix of a path that ends in `<member>/<mood>`.
pub const MOODS: &str = "/bench/moods/";
pub const HANGS: &str = "hangs";
pub const FLAPS: &str = "flaps";
pub const FINE: &str = "fine";

/// How long a flapping member is reachable, and then away.
const FLAP: Duration = Duration::from_secs(1);
/// Length of a watch that names none.
const WATCH: Duration = Duration::from_mins(5);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mood {
    Fine,
    /// Answers nothing any more.
    Hangs,
    /// Is away every other second, from then on.
    Flaps(Instant),
}

#[derive(Default)]
struct Members {
    known: HashMap<usize, Member>,
    moods: HashMap<usize, Mood>,
    /// Watches aside.
    requests: u64,
    watches: u64,
}

type State = Arc<Mutex<Members>>;

/// Serves until the process is ended.
pub fn run(options: &Options) -> Result<()> {
    let state = State::default();
    serve(options, move |request| answer(Arc::clone(&state), request))
}

async fn answer(state: State, request: Request<Incoming>) -> Result<Response<Answer>, Gone> {
    let (head, body) = request.into_parts();
    let path = head.uri.path().to_owned();
    if path.starts_with("/bench/") {
        return Ok(response(state.lock().asked(&path)));
    }
    let Some(number) = number(head.headers.get(AUTHORIZATION)) else {
        return Ok(response(member::refuse(StatusCode::UNAUTHORIZED)));
    };
    let mood = state.lock().mood(number);
    match mood {
        Mood::Hangs => return pending().await,
        Mood::Flaps(since) if is_away(since) => return Err(Gone),
        Mood::Flaps(_) | Mood::Fine => {}
    }
    let body = body.collect().await.map_err(|_| Gone)?.to_bytes();
    let query = head.uri.query().unwrap_or_default();
    if query.contains("watch=true") {
        let lines = state.lock().watch(number, &path);
        let (version, time) = (parameter(query, "resourceVersion"), parameter(query, "timeoutSeconds"));
        let time = time.and_then(|time| time.parse().ok()).map_or(WATCH, Duration::from_secs);
        let body = Answer::watch(lines, version.unwrap_or("0"), time, number);
        return Ok(with_type(Response::new(body)));
    }
    let answered = state.lock().member(number).answer(&head.method, &path, &body);
    Ok(response(answered))
}

/// Whether it is away: it takes turns, beginning with that.
fn is_away(since: Instant) -> bool {
    (since.elapsed().as_millis() / FLAP.as_millis()).is_multiple_of(2)
}

/// Which member is meant. `None`: the credential is no member's.
fn number(credential: Option<&HeaderValue>) -> Option<usize> {
    credential?.to_str().ok()?.strip_prefix("Bearer ")?.parse().ok()
}

fn parameter<'a>(query: &'a str, name: &str) -> Option<&'a str> {
    query.split('&').filter_map(|pair| pair.split_once('=')).find(|(key, _)| *key == name).map(|(_, value)| value)
}

fn response((code, body): Answered) -> Response<Answer> {
    let mut response = with_type(Response::new(Answer::Whole(Some(body))));
    *response.status_mut() = code;
    response
}

fn with_type(mut response: Response<Answer>) -> Response<Answer> {
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

// === impl Mood ===

impl Mood {
    fn named(name: &str) -> Option<Self> {
        match name {
            FINE => Some(Self::Fine),
            HANGS => Some(Self::Hangs),
            FLAPS => Some(Self::Flaps(Instant::now())),
            _ => None,
        }
    }
}

// === impl Members ===

impl Members {
    fn mood(&self, number: usize) -> Mood {
        self.moods.get(&number).copied().unwrap_or(Mood::Fine)
    }

    fn member(&mut self, number: usize) -> &mut Member {
        self.requests += 1;
        self.known.entry(number).or_default()
    }

    fn watch(&mut self, number: usize, path: &str) -> tokio::sync::mpsc::UnboundedReceiver<Bytes> {
        self.watches += 1;
        self.known.entry(number).or_default().watch(path)
    }

    /// Answers a request of the bench's own.
    fn asked(&mut self, path: &str) -> Answered {
        if path == COUNTS {
            return member::answer(&json!({"requests": self.requests, "watches": self.watches}));
        }
        let asked = path.strip_prefix(MOODS).and_then(|rest| rest.split_once('/'));
        match asked.and_then(|(number, mood)| Some((number.parse().ok()?, Mood::named(mood)?))) {
            Some((number, mood)) => self.feel(number, mood),
            None => member::refuse(StatusCode::BAD_REQUEST),
        }
    }

    fn feel(&mut self, number: usize, mood: Mood) -> Answered {
        self.moods.insert(number, mood);
        // Its watchers were cut off.
        if let (Mood::Flaps(_), Some(member)) = (mood, self.known.get_mut(&number)) {
            member.end_watches();
        }
        member::answer(&json!({}))
    }
}

// === impl Member ===

const WORK: &str = "work.open-cluster-management.io";

/// An entry of an `APIResourceList`.
fn resource(name: &str, kind: &str, namespaced: bool) -> serde_json::Value {
    json!({"name": name, "kind": kind, "namespaced": namespaced, "verbs": []})
}

impl Member {
    fn answer(&mut self, method: &Method, path: &str, body: &[u8]) -> Answered {
        let resources = |one| member::answer(&json!({"kind": "APIResourceList", "resources": [one]}));
        match path {
            "/version" => return member::answer(&json!({"major": "1", "minor": "34"})),
            "/apis" => {
                let version = json!({"groupVersion": format!("{WORK}/v1"), "version": "v1"});
                return member::answer(
                    &json!({"kind": "APIGroupList", "groups": [{"name": WORK, "versions": [version]}]}),
                );
            }
            "/api/v1" => return resources(resource("configmaps", "ConfigMap", true)),
            _ if path == format!("/apis/{WORK}/v1") => {
                return resources(resource("appliedmanifestworks", "AppliedManifestWork", false));
            }
            _ => {}
        }
        let Some((collection, name)) = place(path) else { return member::refuse(StatusCode::NOT_FOUND) };
        match (method, name) {
            (&Method::GET, None) => self.list(collection),
            (&Method::POST, None) => self.create(collection, body),
            (&Method::GET, Some(name)) => self.get(collection, name),
            (&Method::PUT, Some(name)) => self.replace(collection, name, body),
            (&Method::PATCH, Some(name)) => self.merge(collection, name, body),
            (&Method::DELETE, Some(name)) => self.delete(collection, name),
            _ => member::refuse(StatusCode::BAD_REQUEST),
        }
    }
}

/// The path of a collection, and the name of an object in it; its status is the object itself.
fn place(path: &str) -> Option<(&str, Option<&str>)> {
    let end = ["/configmaps", "/appliedmanifestworks"].iter().find_map(|kind| Some(path.find(kind)? + kind.len()))?;
    let name = path[end..].trim_start_matches('/').trim_end_matches("/status");
    Some((&path[..end], Some(name).filter(|name| !name.is_empty())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_a_collection_and_a_name() {
        let maps = "/api/v1/namespaces/default/configmaps";
        assert_eq!(place(maps), Some((maps, None)));
        assert_eq!(place(&format!("{maps}/a")), Some((maps, Some("a"))));
        let applied = "/apis/work.open-cluster-management.io/v1/appliedmanifestworks";
        assert_eq!(place(&format!("{applied}/a/status")), Some((applied, Some("a"))));
        assert_eq!(place("/api/v1/pods"), None);
    }

    #[test]
    fn members_are_told_apart_by_their_tokens() {
        let token = |text: &str| HeaderValue::from_str(text).unwrap();
        assert_eq!(number(Some(&token(&format!("Bearer {}", crate::clusters::token(7))))), Some(7));
        for nobodys in ["", "Bearer ", "Bearer x", "Basic 7", "7"] {
            assert_eq!(number(Some(&token(nobodys))), None, "{nobodys}");
        }
        assert_eq!(number(None), None);
        assert_eq!(parameter("watch=true&timeoutSeconds=290", "timeoutSeconds"), Some("290"));
    }

    #[test]
    fn a_mood_is_one_that_is_known_of_a_member_that_is_meant() {
        let mut members = Members::default();
        let mut ask = |path: &str| members.asked(path).0;
        for path in [COUNTS, "/bench/moods/7/hangs", "/bench/moods/7/flaps", "/bench/moods/7/fine"] {
            assert_eq!(ask(path), StatusCode::OK, "{path}");
        }
        for path in ["/bench/moods/7/happy", "/bench/moods/x/fine", "/bench/moods/7", "/bench/count", "/bench/"] {
            assert_eq!(ask(path), StatusCode::BAD_REQUEST, "{path}");
        }
        assert!(members.mood(7) == Mood::Fine);
    }
}
