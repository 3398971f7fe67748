//! A hub of one Lease in this process, so that time can be paused: it decides, call by call, how
//! long each takes on its way there and back, and what becomes of it.

use std::sync::Arc;
use std::time::Duration;

use http::{Method, Request, Response, StatusCode};
use json_patch::Patch;
use kube::Client;
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};
use tower::{BoxError, service_fn};

/// A call, as far as its fate depends on it.
#[derive(Clone, Debug)]
pub(super) struct Call {
    /// Whose client.
    pub(super) who: &'static str,
    pub(super) method: Method,
    pub(super) body: String,
}

/// What becomes of a call.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Fate {
    /// Until it is carried out.
    pub(super) there: Duration,
    /// Until its answer arrives.
    pub(super) back: Duration,
    pub(super) outcome: Outcome,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Outcome {
    #[default]
    Answered,
    /// Not carried out: a Status with this code.
    Failed(u16),
    /// Carried out, and no answer ever.
    Unheard,
}

/// Every call has come to be carried out, or not: when, whose, which, with what status.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) at: Instant,
    pub(super) call: Call,
    pub(super) status: u16,
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
}

// === impl Hub ===

impl Hub {
    /// One that answers everything at once.
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { state: Mutex::default(), script: Mutex::new(Box::new(|_| Fate::default())) })
    }

    /// From now on.
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

    /// Somebody's hand.
    pub(super) fn change(&self, change: impl FnOnce(&mut Option<Value>)) {
        let mut state = self.state.lock();
        change(&mut state.lease);
        state.changed();
    }

    async fn answer(self: Arc<Self>, who: &'static str, request: Request<Body>) -> Result<Response<Body>, BoxError> {
        let (parts, body) = request.into_parts();
        let body = String::from_utf8(body.collect_bytes().await?.to_vec())?;
        let kind = parts.headers.get("content-type").map_or("", |kind| kind.to_str().unwrap_or_default()).to_owned();
        let call = Call { who, method: parts.method, body };
        let fate = (self.script.lock())(&call);
        let (tell, told) = oneshot::channel();
        // A task of its own: a caller that leaves stops nothing.
        tokio::spawn(async move {
            sleep(fate.there).await;
            let (status, answer) = match fate.outcome {
                Outcome::Failed(code) => refusal(code, "as scripted"),
                Outcome::Answered | Outcome::Unheard => self.state.lock().carry_out(&call, &kind),
            };
            self.state.lock().entries.push(Entry { at: Instant::now(), call, status });
            sleep(fate.back).await;
            if matches!(fate.outcome, Outcome::Unheard) {
                std::future::pending::<()>().await;
            }
            let _ = tell.send((status, answer)); // the caller may have left
        });
        let (status, answer) = told.await?;
        let mut response = Response::new(Body::from(answer.to_string().into_bytes()));
        *response.status_mut() = StatusCode::from_u16(status)?;
        Ok(response)
    }
}

// === impl State ===

impl State {
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
        if let Some(lease) = &mut self.lease {
            lease["metadata"]["resourceVersion"] = json!(self.version.to_string());
        }
        self.lease.clone().unwrap_or_default()
    }
}

fn refusal(code: u16, message: &str) -> (u16, Value) {
    let reason = if code == 404 { "NotFound" } else { "" };
    let status = json!({"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message});
    (code, status)
}
