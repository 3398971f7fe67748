//! A hub with one Lease in this process, so that time can be paused. A script decides for each call
//! how long it takes in each direction, and its result.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http::{Method, Request, Response, StatusCode, Uri};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::Frame;
use json_patch::Patch;
use kube::Client;
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep, sleep_until};
use tower::{BoxError, service_fn};

/// A call, with what its fate may depend on.
#[derive(Clone, Debug)]
pub(super) struct Call {
    /// The contender that sent it.
    pub(super) who: &'static str,
    pub(super) method: Method,
    pub(super) body: String,
    /// The version to watch from.
    pub(super) watches: Option<u64>,
}

/// The delays and the result of a call.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Fate {
    /// Delay until it is carried out.
    pub(super) there: Duration,
    /// Delay until its response arrives, and the delay of each watch event.
    pub(super) back: Duration,
    pub(super) outcome: Outcome,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Outcome {
    #[default]
    Answered,
    /// Not carried out: the response is a Status with this code.
    Failed(u16),
    /// Carried out, without a response.
    Unheard,
    /// For a watch: it begins, and sends nothing.
    Mute,
    /// For a watch: it begins, and ends at once.
    Cut,
}

/// A call, recorded when it was carried out or refused.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) at: Instant,
    pub(super) call: Call,
    pub(super) status: u16,
}

type Answered = Response<UnsyncBoxBody<Bytes, BoxError>>;

/// A change: its time and its watch event.
type Change = (Instant, Value);

enum Answer {
    Whole(Value),
    Told(mpsc::UnboundedReceiver<Change>),
}

type Script = Box<dyn FnMut(&Call) -> Fate + Send>;

pub(super) struct Hub {
    state: Mutex<State>,
    script: Mutex<Script>,
}

#[derive(Default)]
struct State {
    lease: Option<Value>,
    version: u64,
    entries: Vec<Entry>,
    /// One per version.
    changes: Vec<Change>,
    watches: Vec<mpsc::UnboundedSender<Change>>,
}

// === impl Hub ===

impl Hub {
    /// A hub that responds to everything at once.
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { state: Mutex::default(), script: Mutex::new(Box::new(|_| Fate::default())) })
    }

    /// Sets the script for calls from now on.
    pub(super) fn script(&self, script: impl FnMut(&Call) -> Fate + Send + 'static) {
        *self.script.lock() = Box::new(script);
    }

    pub(super) fn client(self: &Arc<Self>, who: &'static str) -> Client {
        let hub = Arc::clone(self);
        Client::new(service_fn(move |request| Arc::clone(&hub).answer(who, request)), "default")
    }

    pub(super) fn lease(&self) -> Option<Value> {
        self.state.lock().lease.clone()
    }

    pub(super) fn entries(&self) -> Vec<Entry> {
        self.state.lock().entries.clone()
    }

    /// Changes the Lease as a person would.
    pub(super) fn change(&self, change: impl FnOnce(&mut Option<Value>)) {
        let mut state = self.state.lock();
        change(&mut state.lease);
        state.changed();
    }

    async fn answer(self: Arc<Self>, who: &'static str, request: Request<Body>) -> Result<Answered, BoxError> {
        let (parts, body) = request.into_parts();
        let body = String::from_utf8(body.collect_bytes().await?.to_vec())?;
        let kind = parts.headers.get("content-type").map_or("", |kind| kind.to_str().unwrap_or_default()).to_owned();
        let call = Call { who, method: parts.method, body, watches: watched(&parts.uri) };
        let fate = (self.script.lock())(&call);
        let (tell, told) = oneshot::channel();
        // A separate task: a caller that disconnects does not stop it.
        tokio::spawn(async move {
            sleep(fate.there).await;
            let (status, answer) = match fate.outcome {
                Outcome::Failed(code) => whole(refusal(code, "as scripted")),
                Outcome::Mute => (200, Answer::Told(mute())),
                Outcome::Cut => (200, Answer::Told(mpsc::unbounded_channel().1)),
                Outcome::Answered | Outcome::Unheard => self.state.lock().answer(&call, &kind),
            };
            self.state.lock().entries.push(Entry { at: Instant::now(), call, status });
            sleep(fate.back).await;
            if matches!(fate.outcome, Outcome::Unheard) {
                std::future::pending::<()>().await;
            }
            let _ = tell.send((status, answer)); // the caller may have left
        });
        let (status, answer) = told.await?;
        let body = match answer {
            Answer::Whole(value) => Full::new(value.to_string().into()).map_err(|never| match never {}).boxed_unsync(),
            Answer::Told(changes) => StreamBody::new(stream::unfold(changes, move |mut changes| async move {
                let (at, event) = changes.recv().await?;
                sleep_until(at + fate.back).await;
                Some((Ok::<_, BoxError>(Frame::data(Bytes::from(format!("{event}\n")))), changes))
            }))
            .boxed_unsync(),
        };
        Ok(Response::builder().status(StatusCode::from_u16(status)?).body(body)?)
    }
}

fn watched(uri: &Uri) -> Option<u64> {
    let query = uri.query().unwrap_or_default();
    let of = |name: &str| query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
    of("watch")?;
    of("resourceVersion")?.parse().ok()
}

/// A channel that stays open and silent as long as the test runs.
fn mute() -> mpsc::UnboundedReceiver<Change> {
    let (tell, told) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        let _tell = tell;
        std::future::pending::<()>().await;
    });
    told
}

fn whole((status, value): (u16, Value)) -> (u16, Answer) {
    (status, Answer::Whole(value))
}

// === impl State ===

impl State {
    fn answer(&mut self, call: &Call, kind: &str) -> (u16, Answer) {
        let Some(from) = call.watches else { return whole(self.carry_out(call, kind)) };
        let (tell, told) = mpsc::unbounded_channel();
        let seen = usize::try_from(from).unwrap_or_default();
        for change in self.changes.iter().skip(seen) {
            let _ = tell.send(change.clone());
        }
        self.watches.push(tell);
        (200, Answer::Told(told))
    }

    fn carry_out(&mut self, call: &Call, kind: &str) -> (u16, Value) {
        let Some(lease) = &self.lease else {
            if call.method != Method::POST {
                return refusal(404, "not found");
            }
            self.lease = serde_json::from_str(&call.body).ok();
            return (201, self.changed());
        };
        match (&call.method, kind) {
            (&Method::GET, _) => (200, lease.clone()),
            (&Method::POST, _) => refusal(409, "already exists"),
            (&Method::PATCH, "application/json-patch+json") => {
                let mut changed = lease.clone();
                let patch: Patch = serde_json::from_str(&call.body).expect("a JSON patch");
                match json_patch::patch(&mut changed, &patch) {
                    Ok(()) => {
                        self.lease = Some(changed);
                        (200, self.changed())
                    }
                    Err(error) => refusal(422, &error.to_string()),
                }
            }
            (&Method::PATCH, "application/merge-patch+json") => {
                let patch: Value = serde_json::from_str(&call.body).expect("a merge patch");
                if patch["metadata"]["resourceVersion"] != lease["metadata"]["resourceVersion"] {
                    return refusal(409, "the object has been modified");
                }
                json_patch::merge(self.lease.get_or_insert_default(), &patch);
                (200, self.changed())
            }
            _ => refusal(405, "not here"),
        }
    }

    fn changed(&mut self) -> Value {
        self.version += 1;
        let version = json!(self.version.to_string());
        let event = match &mut self.lease {
            Some(lease) => {
                lease["metadata"]["resourceVersion"] = version;
                json!({"type": "MODIFIED", "object": lease})
            }
            None => json!({"type": "DELETED", "object": {"metadata": {"resourceVersion": version}}}),
        };
        let change = (Instant::now(), event);
        self.watches.retain(|watch| watch.send(change.clone()).is_ok());
        self.changes.push(change);
        self.lease.clone().unwrap_or_default()
    }
}

fn refusal(code: u16, message: &str) -> (u16, Value) {
    let reason = if code == 404 { "NotFound" } else { "" };
    let status = json!({"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message});
    (code, status)
}
