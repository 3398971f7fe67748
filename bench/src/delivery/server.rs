//! Scripted members, as many as ask: one process that tells them apart by their tokens.

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

/// What the bench asks of the process, beside what a member is asked.
pub const COUNTS: &str = "/bench/counts";
/// With `<member>/<mood>` behind it.
pub const MOODS: &str = "/bench/moods/";
pub const HANGS: &str = "hangs";
pub const FLAPS: &str = "flaps";
pub const FINE: &str = "fine";

/// How long one that flaps is there, and is away.
const FLAP: Duration = Duration::from_secs(1);
/// Of a watch that says nothing of its time.
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
    if let Some(rest) = path.strip_prefix("/bench/") {
        return Ok(response(state.lock().asked(rest)));
    }
    let number = number(head.headers.get(AUTHORIZATION));
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

/// In turns, beginning with being away.
fn is_away(since: Instant) -> bool {
    (since.elapsed().as_millis() / FLAP.as_millis()).is_multiple_of(2)
}

/// Which member is meant.
fn number(credential: Option<&HeaderValue>) -> usize {
    let text = credential.and_then(|value| value.to_str().ok()).unwrap_or_default();
    text.trim_start_matches("Bearer ").parse().unwrap_or_default()
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

    /// What the bench asks.
    fn asked(&mut self, rest: &str) -> Answered {
        if let Some((number, mood)) = rest.strip_prefix("moods/").and_then(|rest| rest.split_once('/')) {
            return self.feel(number.parse().unwrap_or_default(), mood);
        }
        member::answer(&json!({"requests": self.requests, "watches": self.watches}))
    }

    fn feel(&mut self, number: usize, mood: &str) -> Answered {
        let mood = match mood {
            HANGS => Mood::Hangs,
            FLAPS => Mood::Flaps(Instant::now()),
            _ => Mood::Fine,
        };
        self.moods.insert(number, mood);
        // It was cut off from those who watched it.
        if let (Mood::Flaps(_), Some(member)) = (mood, self.known.get_mut(&number)) {
            member.end_watches();
        }
        member::answer(&json!({}))
    }
}

// === impl Member ===

const WORK: &str = "work.open-cluster-management.io";

impl Member {
    fn answer(&mut self, method: &Method, path: &str, body: &[u8]) -> Answered {
        let resource = |name: &str, kind: &str, namespaced: bool| json!({"name": name, "kind": kind, "namespaced": namespaced, "verbs": []});
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
        let token = HeaderValue::from_str(&format!("Bearer {}", crate::clusters::token(7))).unwrap();
        assert_eq!((number(Some(&token)), number(None)), (7, 0));
        assert_eq!(parameter("watch=true&timeoutSeconds=290", "timeoutSeconds"), Some("290"));
    }
}
